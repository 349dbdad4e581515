/* What a run-time library knows: of itself, of its threads, and of the other run-time libraries of
 * the process.
 *
 * A process can have several: a library whose symbols are hidden (by a version script, an export
 * list, or dlopen) has its own. The first one is the leader: it has the shared memory and all
 * state of threads. The others follow: they have variables of threads of their own, because
 * instrumented code uses them, and call the leader.
 *
 * In a thread one of them is active: its cursor and limit are in use. Those of the others are NULL,
 * so that their next token comes to `lf_slow`, which makes them active. In this way all append to
 * one lane, in order, and code that stays in one library costs nothing more. The depth is counted
 * by each for itself; what one has added to it since it was last active is added to the depth of
 * the one that was active (`seen`).
 */
#ifndef LF_STATE_H
#define LF_STATE_H

#include "layout.h"
#include "system.h"

#define LF_PUBLIC __attribute__((visibility("default")))
#define LF_TLS __thread __attribute__((tls_model("initial-exec")))
#define LF_COLD __attribute__((cold, noinline))
#define LF_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum { LF_LEVELS = 8, LF_LEVEL_SHIFT = 27, LF_THROWN = 4096, LF_LIBRARIES = 32 };

/* The variables of a thread that instrumented code uses. */
struct lf_variables {
    uint32_t **cursor, **limit, *depth;
};

/* What followers call. A change of it is a change of LF_VERSION. */
struct lf_leader {
    uint32_t version;
    /* Distinguishes its C library from others. */
    const void *c_library;
    /* A library joins, with a function that gives its variables of the calling thread. Returns its
     * number, 0 if there are too many. */
    uint32_t (*join)(void (*variables)(struct lf_variables *));
    void (*slow)(uint32_t library, uint32_t token);
    void (*unwind)(uint32_t library, uint32_t depth);
    uint32_t (*event)(void);
    void (*register_module)(uint32_t *ids, uint32_t functions, const uint8_t *description, uint64_t bytes);
    int (*sigaction)(int signal, const struct sigaction *action, struct sigaction *old);
    void (*before_fork)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
};

struct lf_lane {
    struct lf_shared_lane *shared;
    uint32_t *chunks;
    /* Where writing goes on, while another level runs. */
    uint32_t *cursor, *limit;
    /* Where every token is slow: where the next one goes, and with cycles, when the last was written. */
    uint32_t *next, *end;
    uint64_t last;
};

struct lf_saved_library {
    uint32_t *cursor, *limit;
    uint32_t depth, seen;
};

struct lf_saved {
    struct lf_saved_library of[LF_LIBRARIES];
    uint32_t active;
    /* Cursor and limit are being changed, so that a jump may leave one of them. */
    int is_moving;
};

struct lf_thread {
    uint32_t level, number, rounds;
    /* The mark that the parent of this process left, until the lane of this level begins. */
    uint32_t mark, mark_level;
    /* The file of the counter and 1, 0 if it is not open, negative if it cannot be. */
    int counter;
    uint32_t active;
    /* For each library that is not active its depth when it last was. */
    uint32_t seen[LF_LIBRARIES];
    struct lf_lane lanes[LF_LEVELS];
    struct lf_saved saved[LF_LEVELS];
    uint32_t thrown[LF_THROWN];
};

/* ---- of each library ---- */

LF_PUBLIC LF_TLS uint32_t *loopfold_rt_cursor, *loopfold_rt_limit;
LF_PUBLIC LF_TLS uint32_t loopfold_rt_depth;
static const struct lf_leader *_Atomic lf_leader;
/* Its number for the leader. */
static uint32_t lf_library;
static _Atomic int lf_join_lock;

static void lf_own_variables(struct lf_variables *variables)
{
    variables->cursor = &loopfold_rt_cursor;
    variables->limit = &loopfold_rt_limit;
    variables->depth = &loopfold_rt_depth;
}

/* ---- of the leader ---- */

static LF_TLS struct lf_thread *lf_me;
/* What `lf_me` is in threads that have ended. */
static struct lf_thread lf_over;

enum { LF_OFF, LF_ON };
static _Atomic int lf_mode = LF_OFF;
static _Atomic int lf_lock;
/* This thread is between the calls before and after a fork, and holds the lock. */
static LF_TLS int lf_is_forking;
static struct lf_shared *lf_memory;
static size_t lf_memory_bytes;
/* The process that the memory is of, and a byte that is 0 in a copy of it. */
static uint32_t lf_owner;
static char *lf_original;
static uint32_t lf_next_id = 1, lf_next_serial;
static _Atomic uint32_t lf_next_fork, lf_next_thread;
/* `lf_me` of the first thread. */
static struct lf_thread **lf_first;
static pthread_key_t lf_key;
static int lf_has_key;
static int lf_is_timed;
/* Every token comes to `lf_slow`: as it is timed, or as copies of the process are not announced. */
static int lf_is_slow;
/* What is counted instead of cycles, if there is something. */
static int lf_has_counter;
static struct perf_event_attr lf_counter;

static _Atomic uint32_t lf_libraries = 1;
static void (*lf_variables_of[LF_LIBRARIES])(struct lf_variables *) = {lf_own_variables};

static inline struct lf_variables lf_variables(uint32_t library)
{
    struct lf_variables variables;
    if (library == 0)
        lf_own_variables(&variables);
    else
        lf_variables_of[library](&variables);
    return variables;
}

static inline uint32_t lf_library_count(void)
{
    return atomic_load_explicit(&lf_libraries, memory_order_acquire);
}

static inline int lf_is_on(void)
{
    return atomic_load_explicit(&lf_mode, memory_order_relaxed) == LF_ON;
}

/* The lock, which a thread that forks has already. */
static inline uint64_t lf_enter(void)
{
    return lf_is_forking ? lf_block_signals() : lf_take_lock(&lf_lock);
}

static inline void lf_leave(uint64_t mask)
{
    if (lf_is_forking)
        lf_restore_signals(mask);
    else
        lf_give_lock(&lf_lock, mask);
}

/* Tokens are lost. */
static inline void lf_count_thrown(uint64_t tokens)
{
    if (lf_memory)
        atomic_fetch_add_explicit(&lf_memory->thrown, tokens, memory_order_relaxed);
}

/* A thread, or the rest of one, is lost. */
static inline void lf_count_missed(void)
{
    atomic_fetch_add_explicit(&lf_memory->missed, 1, memory_order_relaxed);
}

/* Writing goes on there, in the library that is active. */
static inline void lf_move(struct lf_thread *self, uint32_t *cursor, uint32_t *limit)
{
    const struct lf_variables active = lf_variables(self->active);
    volatile int *const is_moving = &self->saved[self->level].is_moving;
    *is_moving = 1;
    atomic_signal_fence(memory_order_seq_cst);
    *active.limit = limit;
    *active.cursor = cursor;
    atomic_signal_fence(memory_order_seq_cst);
    *is_moving = 0;
}

#endif
