/* Appending tokens, from whichever library of the process; and levels.
 *
 * A signal handler may interrupt the two instructions that emit a token, so handlers run at a level
 * of their own, with a lane of their own; the level is in the upper bits of the depth, so that a
 * jump out of a handler is noticed where it arrives. What was interrupted finds all variables as
 * they were.
 */
#ifndef LF_LEVELS_H
#define LF_LEVELS_H

#include "lanes.h"

/* ---- appending ---- */

/* All is lost that a library emits in this thread, until the buffer is full. */
static void lf_throw_away(struct lf_thread *self, uint32_t library, uint32_t token)
{
    const struct lf_variables variables = lf_variables(library);
    const int is_full = *variables.cursor == self->thrown + LF_THROWN;
    lf_count_thrown(is_full ? LF_THROWN : 1);
    self->thrown[0] = token;
    *variables.limit = self->thrown + LF_THROWN;
    *variables.cursor = self->thrown + 1;
}

/* A token, and the ticks since the last one if they are wanted. The token is written last: without it
 * there is nothing. Cursor and limit stay equal, so that the next token comes here, too. */
static void lf_append_slowly(struct lf_thread *self, uint32_t token)
{
    const uint64_t now = lf_is_timed ? lf_ticks(self) : 0;
    struct lf_lane *const lane = &self->lanes[self->level];
    /* The place is one of the parent's. */
    if (LF_UNLIKELY(lf_is_copy()))
        lf_become_copy();
    if (LF_UNLIKELY(!lane->shared || lane->next == lane->end)) {
        uint32_t *const chunk = lf_fresh_chunk(self);
        if (!chunk)
            return lf_throw_away(self, self->active, token);
        lane->next = chunk;
        lane->end = chunk + LF_CHUNK_TOKENS;
    }
    uint32_t *const place = lane->next;
    if (lf_is_timed) {
        /* A lane may have begun since. */
        const uint64_t ticks = now > lane->last ? now - lane->last : 0;
        place[1] = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
    }
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint32_t *)place = token;
    lane->next = place + 1 + lf_is_timed;
    if (lf_is_timed)
        lane->last = lf_has_counter ? now : lf_clock();
}

/* Appends a token in the library that is active, where its chunk is full. */
static void lf_append(struct lf_thread *self, uint32_t token)
{
    if (!lf_is_on())
        return lf_throw_away(self, self->active, token);
    if (lf_is_slow || lf_is_forking)
        return lf_append_slowly(self, token);
    uint32_t *const chunk = lf_fresh_chunk(self);
    if (!chunk)
        return lf_throw_away(self, self->active, token);
    *chunk = token;
    lf_move(self, chunk + 1, chunk + LF_CHUNK_TOKENS);
}

static void lf_emit(struct lf_thread *self, uint32_t token)
{
    const struct lf_variables active = lf_variables(self->active);
    uint32_t *const place = *active.cursor;
    if (place == *active.limit) {
        lf_append(self, token);
    } else {
        *place = token;
        *active.cursor = place + 1;
    }
}

/* Another library becomes active: it goes on where the last one was, at the depth of that one and
 * what it has added itself. */
static LF_COLD void lf_activate(struct lf_thread *self, uint32_t library)
{
    const struct lf_variables from = lf_variables(self->active), to = lf_variables(library);
    volatile int *const is_moving = &self->saved[self->level].is_moving;
    *is_moving = 1;
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t *const cursor = *from.cursor, *const limit = *from.limit;
    const uint32_t depth = *from.depth;
    self->seen[self->active] = depth;
    *from.limit = *from.cursor = NULL;
    *to.limit = limit;
    *to.cursor = cursor;
    *to.depth = depth + (*to.depth - self->seen[library]);
    self->active = library;
    atomic_signal_fence(memory_order_seq_cst);
    *is_moving = 0;
}

/* There is no room for a token, or its library is not active. */
static void lf_slow(uint32_t library, uint32_t token)
{
    struct lf_thread *const self = lf_me ? lf_me : lf_new_thread();
    /* Without memory, and in a thread that has ended, every token comes here. */
    if (!self || self == &lf_over)
        return lf_count_thrown(1);
    if (LF_UNLIKELY(!lf_is_on()))
        return lf_throw_away(self, library, token);
    if (self->active != library)
        lf_activate(self, library);
    lf_emit(self, token);
}

/* For recorders of other events: one of theirs happened here. Returns the number of the lane's use
 * that has the mark, or 0 if it was thrown away. */
static uint32_t lf_event(void)
{
    struct lf_thread *const self = lf_me ? lf_me : lf_new_thread();
    if (!self || self == &lf_over)
        return 0;
    lf_emit(self, LF_MARK_EVENT);
    const struct lf_lane *const lane = &self->lanes[self->level];
    const uint32_t *const behind = lf_is_slow ? lane->next : *lf_variables(self->active).cursor;
    if (!lane->shared || behind <= lane->chunks || behind > lane->chunks + LF_LANE_BYTES / 4)
        return 0;
    return atomic_load_explicit(&lane->shared->begun, memory_order_relaxed);
}

/* ---- levels ---- */

/* Returns NULL if handlers are nested too deeply: then the handler's tokens are mixed with those of
 * what it interrupted. */
static struct lf_thread *lf_begin_level(void)
{
    struct lf_thread *const self = lf_me ? lf_me : lf_new_thread();
    if (!self || self == &lf_over || self->level + 1 >= LF_LEVELS)
        return NULL;
    const uint64_t mask = lf_block_signals();
    struct lf_saved *const saved = &self->saved[self->level];
    saved->active = self->active;
    self->level++;
    const struct lf_lane *const lane = &self->lanes[self->level];
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const struct lf_variables variables = lf_variables(library);
        saved->of[library] = (struct lf_saved_library){*variables.cursor, *variables.limit, *variables.depth, self->seen[library]};
        const int is_active = library == self->active;
        *variables.limit = is_active ? lane->limit : NULL;
        *variables.cursor = is_active ? lane->cursor : NULL;
        *variables.depth = self->seen[library] = self->level << LF_LEVEL_SHIFT;
    }
    self->saved[self->level].is_moving = 0;
    lf_restore_signals(mask);
    return self;
}

/* With signals blocked: a handler that begins between two levels would save what is of neither. */
static void lf_end_level(struct lf_thread *self)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    const struct lf_variables active = lf_variables(self->active);
    lane->limit = *active.limit;
    lane->cursor = *active.cursor;
    self->level--;
    const struct lf_saved *const saved = &self->saved[self->level];
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const struct lf_variables variables = lf_variables(library);
        *variables.limit = saved->of[library].limit;
        *variables.cursor = saved->of[library].cursor;
        *variables.depth = saved->of[library].depth;
        self->seen[library] = saved->of[library].seen;
    }
    self->active = saved->active;
}

/* Of a level that a jump has left in the middle of moving, or arrives at, neither cursor nor limit
 * is certain: its next token begins a new chunk. */
static void lf_settle(struct lf_thread *self)
{
    if (!self->saved[self->level].is_moving)
        return;
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const struct lf_variables variables = lf_variables(library);
        *variables.limit = *variables.cursor = NULL;
    }
    self->saved[self->level].is_moving = 0;
}

/* Control is in a frame of this depth in this library; those inside of it are gone. */
static void lf_arrive(struct lf_thread *self, uint32_t library, uint32_t depth)
{
    if (self->active != library)
        lf_activate(self, library);
    lf_emit(self, LF_MARK_UNWIND | (depth & LF_MARK_BITS));
    *lf_variables(library).depth = depth;
}

/* A jump out of handlers: their frames are gone. */
static LF_COLD void lf_leave_handlers(struct lf_thread *self, uint32_t library, uint32_t depth)
{
    const uint64_t mask = lf_block_signals();
    while (self->level > depth >> LF_LEVEL_SHIFT) {
        lf_settle(self);
        if (*lf_variables(self->active).depth != self->level << LF_LEVEL_SHIFT)
            lf_emit(self, LF_MARK_UNWIND);
        lf_end_level(self);
    }
    lf_settle(self);
    /* What was interrupted may have been about to emit the token of its depth. */
    lf_arrive(self, library, depth);
    lf_restore_signals(mask);
}

/* Control has arrived in a frame by a jump or an exception. */
static void lf_unwind(uint32_t library, uint32_t depth)
{
    struct lf_thread *const self = lf_me;
    const int is_known = self && self != &lf_over;
    if (is_known && self->level > depth >> LF_LEVEL_SHIFT)
        return lf_leave_handlers(self, library, depth);
    const uint32_t now = *lf_variables(is_known ? self->active : library).depth;
    if (is_known && now > depth)
        lf_arrive(self, library, depth);
    else if (is_known && self->active != library)
        lf_activate(self, library);
    *lf_variables(library).depth = depth;
}

#endif
