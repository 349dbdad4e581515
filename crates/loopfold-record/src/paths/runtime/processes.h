/* Copies of the process: each has a memory of its own, and its parent's lane has a mark where it
 * began.
 */
#ifndef LF_PROCESSES_H
#define LF_PROCESSES_H

#include "levels.h"

/* Between the calls before and after a fork. */
static int lf_is_forking;
static uint64_t lf_mask_at_fork;
static uint32_t lf_fork_mark;

/* Makes the present chunk complete, in the middle. Returns whether that was possible. */
static int lf_hand_over(struct lf_thread *self)
{
    uint32_t *const chunk = lf_fresh_chunk(self);
    if (!chunk)
        return 0;
    if (lf_is_timed) {
        struct lf_lane *const lane = &self->lanes[self->level];
        lane->next = chunk;
        lane->end = chunk + LF_CHUNK_TOKENS;
    } else {
        lf_move(self, chunk, chunk + LF_CHUNK_TOKENS);
    }
    return 1;
}

/* Before a fork: leaves a mark, so that the recorder knows the frames that the child inherits, and
 * hands it over, as the parent may wait for the child. */
static void lf_before_fork(void)
{
    struct lf_thread *const self = lf_me;
    uint32_t left = 0;
    if (lf_is_on() && self && self != &lf_over && self->lanes[self->level].shared) {
        const uint32_t mark = atomic_fetch_add(&lf_next_fork, 1) % LF_MARK_BITS + 1;
        lf_emit(self, LF_MARK_FORK | mark);
        left = lf_hand_over(self) ? mark : 0;
    }
    lf_mask_at_fork = lf_take_lock(&lf_lock);
    lf_is_forking = 1;
    if (lf_is_on())
        atomic_fetch_add(&lf_memory->forks, 1);
    lf_fork_mark = left;
}

static void lf_in_parent(void)
{
    if (!lf_is_forking)
        return;
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
    struct lf_thread *const self = lf_me == &lf_over ? NULL : lf_me;
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
        const int connection = lf_introduce(parent, lf_fork_mark);
        if (connection >= 0)
            lf_call(SYS_close, connection, 0, 0);
    }
}

static void lf_in_forked_child(void)
{
    if (!lf_is_forking)
        return;
    lf_is_forking = 0;
    lf_in_child();
    lf_give_lock(&lf_lock, lf_mask_at_fork);
}

/* A copy that was made without the C library. */
static void lf_become_copy(void)
{
    lf_fork_mark = 0;
    lf_in_child();
    lf_is_forking = 0;
    atomic_store(&lf_lock, 0);
}

#endif
