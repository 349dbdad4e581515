/* Threads and their lanes: rings of chunks in the shared memory.
 *
 * A chunk is zeroed before it is written to, so that whatever happens to the program, the first 0 is
 * the end of what was written. `head` counts the chunks that are complete; `tail`, which the
 * recorder writes, those that it has read. A full ring makes the thread wait, as long as the
 * recorder reads. What is written is counted when a chunk is complete; what cannot be written is
 * counted, too.
 *
 * A chunk of 16,384 tokens costs 64 KiB of zeros.
 */
#ifndef LF_LANES_H
#define LF_LANES_H

#include "recorder.h"

/* A ring that is full and not read for so long is given up. */
#ifndef LF_MOST_SECONDS
#define LF_MOST_SECONDS 60
#endif

static void lf_become_copy(void);

static inline uint32_t *lf_chunk(const struct lf_lane *lane, uint64_t number)
{
    return lane->chunks + number % LF_CHUNKS * LF_CHUNK_TOKENS;
}

/* From here on tokens are thrown away. */
static LF_COLD void lf_switch_off(void)
{
    atomic_store(&lf_mode, LF_OFF);
}

/* Makes a chunk empty, which may have been written to before. Its pages are made first, as a write to
 * one for which there is no memory would be a signal. */
static int lf_clear_chunk(const struct lf_lane *lane, uint64_t number, int was_used)
{
    uint32_t *const chunk = lf_chunk(lane, number);
#ifdef MADV_POPULATE_WRITE
    if (!was_used) {
        const long result = lf_call(SYS_madvise, chunk, LF_CHUNK_BYTES, MADV_POPULATE_WRITE);
        if (result == 0)
            return 1;
        if (result != -EINVAL && result != -ENOSYS && result != -EINTR && result != -EAGAIN)
            return 0;
    }
#endif
    lf_zero(chunk, LF_CHUNK_BYTES);
    return 1;
}

/* How many tokens the present chunk of the lane of this level has. */
static uint32_t lf_tokens_in_chunk(const struct lf_thread *self)
{
    const struct lf_lane *const lane = &self->lanes[self->level];
    const uint32_t *const chunk = lf_chunk(lane, atomic_load_explicit(&lane->shared->head, memory_order_relaxed));
    const struct lf_variables active = lf_variables(self->active);
    const uint32_t *const cursor = lf_is_slow ? lane->next : *active.cursor;
    uint32_t words = (uint32_t)(cursor - chunk);
    /* After a jump out of a handler it is not known where the chunk was written to. */
    if (!cursor || cursor < chunk || cursor > chunk + LF_CHUNK_TOKENS)
        for (words = 0; words < LF_CHUNK_TOKENS && chunk[words]; words += 1u + (uint32_t)lf_is_timed) {
        }
    return lf_is_timed ? words / 2 : words;
}

/* Counts the tokens of the present chunk. In this order, so that none is counted twice. */
static void lf_count_chunk(const struct lf_thread *self)
{
    struct lf_shared_lane *const shared = self->lanes[self->level].shared;
    const uint64_t written = atomic_load_explicit(&shared->written, memory_order_relaxed);
    atomic_store_explicit(&shared->open, 0, memory_order_relaxed);
    atomic_store_explicit(&shared->written, written + lf_tokens_in_chunk(self), memory_order_release);
}

/* Counts the tokens so far of the present chunk, which goes on. */
static void lf_count_open_chunk(const struct lf_thread *self)
{
    struct lf_shared_lane *const shared = self->lanes[self->level].shared;
    if (shared)
        atomic_store_explicit(&shared->open, lf_tokens_in_chunk(self), memory_order_relaxed);
}

/* ---- threads ---- */

/* Ends all lanes: that of the handlers, and that of what they interrupted. */
static void lf_end_lanes(struct lf_thread *self)
{
    const uint32_t level = self->level;
    for (self->level = 0; self->level < LF_LEVELS; self->level++) {
        struct lf_lane *const lane = &self->lanes[self->level];
        if (!lane->shared)
            continue;
        /* Of levels that were interrupted it is found out. */
        if (self->level != level)
            lf_move(self, NULL, NULL);
        lf_count_chunk(self);
        atomic_store_explicit(&lane->shared->ended, atomic_load_explicit(&lane->shared->begun, memory_order_relaxed), memory_order_release);
        lane->shared = NULL;
    }
    self->level = level;
}

/* What was thrown away since the last time that this was counted. */
static void lf_count_thrown_rest(const struct lf_thread *self)
{
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const uint32_t *const cursor = *lf_variables(library).cursor;
        if (cursor > self->thrown && cursor <= self->thrown + LF_THROWN)
            lf_count_thrown((uint64_t)(cursor - self->thrown) - 1);
    }
}

/* Runs when a thread ends: in the last round, as destructors of others may still emit tokens. */
static void lf_thread_ends(void *thread)
{
    struct lf_thread *const self = thread;
    if (++self->rounds < 4 && pthread_setspecific(lf_key, self) == 0)
        return;
    const uint64_t mask = lf_block_signals();
    if (!lf_is_copy()) {
        lf_count_thrown_rest(self);
        lf_end_lanes(self);
    }
    lf_me = &lf_over;
    for (uint32_t library = 0; library < lf_library_count(); library++) {
        const struct lf_variables variables = lf_variables(library);
        *variables.limit = *variables.cursor = NULL;
    }
    if (self->counter > 0)
        lf_call(SYS_close, self->counter - 1, 0, 0);
    lf_call(SYS_munmap, self, sizeof *self, 0);
    lf_restore_signals(mask);
}

static LF_COLD struct lf_thread *lf_new_thread(void)
{
    const uint64_t mask = lf_block_signals();
    const long at = lf_call6(SYS_mmap, 0, sizeof(struct lf_thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lf_is_address(at)) {
        struct lf_thread *const self = (struct lf_thread *)at;
        /* The number of the thread would be another one in a child that shares all memory (vfork). */
        const int is_first = lf_first ? lf_first == &lf_me : lf_call(SYS_gettid, 0, 0, 0) == lf_owner;
        self->number = is_first ? 0 : atomic_fetch_add(&lf_next_thread, 1) + 1;
        if (lf_has_key && !is_first)
            pthread_setspecific(lf_key, self);
        lf_me = self;
    }
    lf_restore_signals(mask);
    return lf_me;
}

/* ---- where ticks come from ---- */

/* Opens the counter for this thread. */
static int lf_open_counter(void)
{
    return (int)lf_call6(SYS_perf_event_open, (long)&lf_counter, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

/* What the ticks of a thread are differences of. */
static uint64_t lf_ticks(struct lf_thread *self)
{
    if (!lf_has_counter)
        return lf_clock();
    if (self->counter == 0) {
        const int file = lf_open_counter();
        self->counter = file < 0 ? -1 : file + 1;
    }
    uint64_t count = 0;
    if (self->counter > 0)
        lf_call(SYS_read, self->counter - 1, &count, sizeof count);
    return count;
}

/* ---- lanes ---- */

/* A lane that is free, or new; NULL if all are in use. Sets `is_soon` if one will be free. */
static struct lf_shared_lane *lf_free_lane(uint32_t *number, int *is_soon)
{
    struct lf_shared_lane *const lanes = (struct lf_shared_lane *)((char *)lf_memory + LF_LANES_AT);
    const uint32_t used = atomic_load_explicit(&lf_memory->used, memory_order_relaxed);
    for (*number = 0; *number < used; ++*number) {
        struct lf_shared_lane *const lane = lanes + *number;
        const uint32_t begun = atomic_load_explicit(&lane->begun, memory_order_relaxed);
        if (begun == atomic_load_explicit(&lane->drained, memory_order_acquire))
            return lane;
        *is_soon |= begun == atomic_load_explicit(&lane->ended, memory_order_relaxed);
    }
    return used < lf_memory->lanes ? lanes + used : NULL;
}

static int lf_try_start_lane(struct lf_thread *self, int *is_soon)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    uint32_t number;
    struct lf_shared_lane *const shared = lf_free_lane(&number, is_soon);
    if (!shared)
        return 0;
    lane->chunks = (uint32_t *)((char *)lf_memory + LF_DATA_AT + number * LF_LANE_BYTES);
    const int was_used = atomic_load_explicit(&shared->begun, memory_order_relaxed) > 0;
    if (!lf_clear_chunk(lane, atomic_load_explicit(&shared->head, memory_order_relaxed), was_used)) {
        *is_soon = 0;
        lf_switch_off();
        return 0;
    }
    shared->thread = self->number;
    shared->level = self->level;
    shared->mark = self->level == self->mark_level ? self->mark : 0;
    atomic_store_explicit(&shared->written, 0, memory_order_relaxed);
    if (self->level == self->mark_level)
        self->mark = 0;
    atomic_store_explicit(&shared->begun, ++lf_next_serial, memory_order_release);
    if (number == lf_memory->used)
        atomic_store_explicit(&lf_memory->used, number + 1, memory_order_release);
    lane->shared = shared;
    lane->next = lane->end = NULL;
    lane->last = lf_is_timed ? lf_ticks(self) : 0;
    return 1;
}

/* Whoever waits connects to the recorder so seldom, in nanoseconds. */
enum { LF_ASK_AFTER = 100000000 };

/* Whether to wait longer: for somebody who lives, and not too long. */
static int lf_may_wait(long long waited)
{
    if (atomic_load_explicit(&lf_memory->stop, memory_order_relaxed))
        return 0;
    if (waited > LF_MOST_SECONDS * 1000000000ll) {
        atomic_store(&lf_memory->gave_up, 1);
        return 0;
    }
    return lf_recorder_lives();
}

static LF_COLD int lf_start_lane(struct lf_thread *self)
{
    const long pause = 200000;
    long long asked = 0;
    for (long long waited = 0;; waited += pause) {
        int is_soon = 0;
        const uint64_t mask = lf_enter();
        const int is_started = lf_is_on() && lf_try_start_lane(self, &is_soon);
        const int is_missed = !is_started && !is_soon;
        if (is_missed)
            lf_count_missed();
        lf_leave(mask);
        if (is_started || is_missed)
            return is_started;
        lf_sleep(pause);
        if (waited - asked > LF_ASK_AFTER) {
            asked = waited;
            if (!lf_may_wait(waited))
                lf_switch_off();
        }
    }
}

/* Waits until the chunk behind the present one was read; false if that will never be. */
static int lf_wait_for_room(const struct lf_lane *lane)
{
    struct lf_shared_lane *const shared = lane->shared;
    const uint64_t head = atomic_load_explicit(&shared->head, memory_order_relaxed);
    long long waited = 0, asked = 0;
    for (long pause = 20000;; waited += pause, pause = pause < 500000 ? pause * 2 : pause) {
        if (!lf_is_on())
            return 0;
        const uint64_t tail = atomic_load_explicit(&shared->tail, memory_order_acquire);
        if (head + 1 - tail < LF_CHUNKS)
            return 1;
        if (waited - asked > LF_ASK_AFTER) {
            asked = waited;
            if (!lf_may_wait(waited))
                lf_switch_off();
        }
        lf_sleep(pause);
    }
}

/* Makes the present chunk complete and begins the next. Interrupted by a jump, it leaves a chunk
 * that is empty at worst. */
static int lf_next_chunk(struct lf_thread *self)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    if (atomic_load_explicit(&lf_memory->stop, memory_order_relaxed))
        lf_switch_off();
    if (!lf_wait_for_room(lane))
        return 0;
    const uint64_t head = atomic_load_explicit(&lane->shared->head, memory_order_relaxed);
    if (!lf_clear_chunk(lane, head + 1, head + 1 >= LF_CHUNKS)) {
        lf_count_missed();
        lf_switch_off();
        return 0;
    }
    lf_count_chunk(self);
    atomic_store_explicit(&lane->shared->head, head + 1, memory_order_release);
    return 1;
}

/* Where a lane that has just begun, or come to its next chunk, is written to. NULL if tokens are
 * thrown away. */
static uint32_t *lf_fresh_chunk(struct lf_thread *self)
{
    for (;;) {
        if (!lf_is_on())
            return NULL;
        if (LF_UNLIKELY(lf_is_copy())) {
            lf_become_copy();
            continue;
        }
        struct lf_lane *const lane = &self->lanes[self->level];
        if (lane->shared ? !lf_next_chunk(self) : !lf_start_lane(self))
            return NULL;
        return lf_chunk(lane, atomic_load_explicit(&lane->shared->head, memory_order_relaxed));
    }
}

#endif
