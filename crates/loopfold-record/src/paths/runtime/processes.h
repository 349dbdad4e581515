/* Copies of the process: each has a memory of its own, and its parent's lane has a mark where it
 * began.
 *
 * The parent connects to the recorder before it forks, and the child introduces itself on that
 * connection: as long as it is open, the recorder waits for the child. A copy that is made without
 * the C library is noticed when it comes to `lf_fresh_chunk`. Where that is the only way to fork, every
 * token comes there (`lf_is_slow`).
 */
#ifndef LF_PROCESSES_H
#define LF_PROCESSES_H

#include "levels.h"

static uint64_t lf_mask_at_fork;
/* The mark of a fork, and whether its child is counted. */
static uint32_t lf_fork_mark, lf_fork_bits;
/* The connection for its child, negative if there is none. */
static int lf_promised = -1;

/* Makes the present chunk complete, in the middle. Returns whether that was possible. */
static int lf_hand_over(struct lf_thread *self)
{
    uint32_t *const chunk = lf_fresh_chunk(self);
    if (!chunk)
        return 0;
    if (lf_is_slow) {
        struct lf_lane *const lane = &self->lanes[self->level];
        lane->next = chunk;
        lane->end = chunk + LF_CHUNK_TOKENS;
    } else {
        lf_move(self, chunk, chunk + LF_CHUNK_TOKENS);
    }
    return 1;
}

/* A connection for a child. Negative where there is none at once. */
static int lf_promise(void)
{
    const int connection = lf_connect(SOCK_NONBLOCK);
    const struct lf_message promise = {LF_MAGIC, LF_PROMISE, lf_owner, lf_tag(), 0, 0, 0};
    if (connection < 0 || lf_send(connection, &promise, sizeof promise, -1))
        return connection;
    lf_call(SYS_close, connection, 0, 0);
    return -1;
}

static void lf_close_promised(void)
{
    if (lf_promised >= 0)
        lf_call(SYS_close, lf_promised, 0, 0);
    lf_promised = -1;
}

/* Other handlers may emit tokens before ours is called in the child: while a thread forks, all of its
 * tokens come to `lf_append_slowly`. */
static void lf_pause(struct lf_thread *self)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    const struct lf_variables active = lf_variables(self->active);
    if (lf_is_slow || !lf_is_on())
        return;
    lane->next = *active.cursor;
    lane->end = *active.limit;
    lf_move(self, NULL, NULL);
}

static void lf_resume(struct lf_thread *self)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    if (lf_is_slow || !lf_is_on())
        return;
    lf_move(self, lane->next, lane->end);
    lane->next = lane->end = NULL;
}

static inline struct lf_thread *lf_known_thread(void)
{
    return lf_me == &lf_over ? NULL : lf_me;
}

/* Before a fork: leaves a mark, so that the recorder knows the frames that the child inherits, and
 * hands it over, as the parent may wait for the child. */
static void lf_before_fork(void)
{
    struct lf_thread *const self = lf_known_thread();
    uint32_t left = 0;
    if (lf_is_on() && self && self->lanes[self->level].shared) {
        const uint32_t mark = atomic_fetch_add(&lf_next_fork, 1) % LF_MARK_BITS + 1;
        lf_emit(self, LF_MARK_FORK | mark);
        left = lf_hand_over(self) ? mark : 0;
    }
    lf_mask_at_fork = lf_take_lock(&lf_lock);
    lf_is_forking = 1;
    lf_fork_mark = left;
    lf_promised = lf_is_on() ? lf_promise() : -1;
    lf_fork_bits = lf_is_on() && lf_promised < 0 ? LF_COUNTED : 0;
    if (lf_fork_bits)
        atomic_fetch_add(&lf_memory->forks, 1);
    if (self)
        lf_pause(self);
}

static void lf_in_parent(void)
{
    if (!lf_is_forking)
        return;
    struct lf_thread *const self = lf_known_thread();
    if (self)
        lf_resume(self);
    lf_close_promised();
    lf_is_forking = 0;
    lf_give_lock(&lf_lock, lf_mask_at_fork);
}

/* Nothing of the lanes is this process's. */
static void lf_forget_lanes(struct lf_thread *self)
{
    for (int level = 0; level < LF_LEVELS; level++) {
        struct lf_lane *const lane = &self->lanes[level];
        lane->shared = NULL;
        lane->cursor = lane->limit = lane->next = lane->end = NULL;
        for (uint32_t library = 0; library < LF_LIBRARIES; library++)
            self->saved[level].of[library].cursor = self->saved[level].of[library].limit = NULL;
    }
    self->number = 0;
    self->mark = lf_fork_mark;
    self->mark_level = self->level;
    /* It counts the parent. */
    if (self->counter > 0)
        lf_call(SYS_close, self->counter - 1, 0, 0);
    self->counter = 0;
}

/* The child has a memory of its own; that of the parent is not touched. */
static void lf_in_child(void)
{
    struct lf_thread *const self = lf_known_thread();
    const uint32_t parent = lf_owner;
    lf_next_serial = 0;
    atomic_store(&lf_next_thread, 0);
    if (self)
        lf_forget_lanes(self);
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const struct lf_variables variables = lf_variables(library);
        *variables.limit = *variables.cursor = NULL;
    }
    if (lf_memory)
        lf_call(SYS_munmap, lf_memory, lf_memory_bytes, 0);
    lf_memory = NULL;
    if (lf_is_on()) {
        atomic_store(&lf_mode, LF_OFF);
        lf_promised = lf_introduce(lf_promised, parent, lf_fork_mark, lf_fork_bits);
    }
    lf_close_promised();
}

static void lf_in_forked_child(void)
{
    if (!lf_is_forking)
        return;
    /* It may have come to a token before. */
    if (!lf_is_on() || lf_is_copy())
        lf_in_child();
    lf_is_forking = 0;
    lf_give_lock(&lf_lock, lf_mask_at_fork);
}

/* A copy that was made without the C library, or has not come to our handler. */
static LF_COLD void lf_become_copy(void)
{
    const uint64_t mask = lf_block_signals();
    if (!lf_is_forking) {
        lf_close_promised();
        lf_fork_mark = 0;
        lf_fork_bits = lf_is_slow ? 0 : LF_MIXED;
        atomic_store(&lf_lock, 0);
    }
    lf_in_child();
    lf_restore_signals(mask);
}

#endif
