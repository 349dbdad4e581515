/* The run-time library of programs that `loopfold cc` compiles: takes the tokens that the compiler
 * pass emits and hands them to the recorder through shared memory, a ring of chunks for each thread.
 *
 * It is linked into programs that must not notice it. So it makes system calls itself (no function
 * of the program is called by accident, none is a point of cancellation, errno stays), allocates
 * nothing with malloc, keeps no file descriptor open (but for a counter), and catches no signals. Without a recorder,
 * and when the recorder has ended, tokens are thrown away in a small private buffer.
 *
 * A thread writes to a lane: a ring of chunks in the shared memory. A chunk is zeroed before it is
 * written to, so that whatever happens to the program, the first 0 is the end of what was written.
 * `head` counts the chunks that are complete; `tail`, which the recorder writes, those that it has
 * read. A full ring makes the thread wait.
 *
 * A signal handler may interrupt the two instructions that emit a token, so handlers run at a
 * level of their own, with a lane of their own; the level is in the upper bits of the depth, so that
 * a jump out of a handler is noticed where it arrives.
 *
 * A token costs two instructions and a comparison in the program; a chunk of 16,384 of them 64 KiB
 * of zeros and one system call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LF_PUBLIC __attribute__((visibility("default")))
#define LF_TLS __thread __attribute__((tls_model("initial-exec")))
#define LF_COLD __attribute__((cold, noinline))
#define LF_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* ---- shared memory and messages: the same numbers are in memory.rs ---- */

enum {
    LF_CHUNKS = 16,
    LF_CHUNK_TOKENS = 1 << 14,
    LF_LANES_AT = 4096,
    LF_DATA_AT = 1 << 18,
    LF_MOST_LANES = 1024,
    LF_VERSION = 1,
};
#define LF_CHUNK_BYTES ((size_t)LF_CHUNK_TOKENS * 4)
#define LF_LANE_BYTES ((size_t)LF_CHUNKS * LF_CHUNK_BYTES)

struct lf_shared_lane {
    /* Written by the program. */
    _Atomic uint64_t head;
    /* A lane is used again: these are the numbers of its present use. It is free when all three
     * are equal, and has ended when the first two are. */
    _Atomic uint32_t begun, ended;
    uint32_t thread, level, mark;
    char room[36];
    /* Written by the recorder. */
    _Atomic uint64_t tail;
    _Atomic uint32_t drained;
    char more_room[52];
};
_Static_assert(sizeof(struct lf_shared_lane) == 128, "the recorder knows this size");

struct lf_shared {
    uint32_t version, lanes;
    _Atomic uint32_t used, missed;
    /* How many processes were to begin as copies of this one. */
    _Atomic uint32_t forks;
    char room[44];
    /* Written by the recorder: no more is wanted. */
    _Atomic uint32_t stop;
};

enum { LF_HELLO = 1, LF_MODULE = 2, LF_FAILURE = 3, LF_NO_COUNTER = 4 };

struct lf_message {
    uint32_t magic, kind, pid, parent;
    /* Hello: the mark in the parent's lane, and the first number of a function that is not
     * inherited. Module: the number of its first function, and how many there are. Failure, no
     * counter: the error. */
    uint32_t first, second;
    uint64_t bytes;
};
#define LF_MAGIC 0x3150464cu

/* Tokens that the run-time emits itself. */
#define LF_MARK_UNWIND 0xc0000000u
#define LF_MARK_FORK 0xc8000000u
#define LF_MARK_EVENT 0xd0000000u
#define LF_MARK_BITS 0x07ffffffu

/* ---- the program's side ---- */

enum { LF_LEVELS = 8, LF_LEVEL_SHIFT = 27, LF_THROWN = 4096 };

struct lf_lane {
    struct lf_shared_lane *shared;
    uint32_t *chunks;
    /* Where writing goes on, while another level runs. */
    uint32_t *cursor, *limit;
    /* With cycles: where the next token goes, and when the last one was written. */
    uint32_t *next, *end;
    uint64_t last;
};

struct lf_saved {
    uint32_t *cursor, *limit;
    uint32_t depth;
    /* Cursor and limit are being changed, so that a jump may leave one of them. */
    int is_moving;
};

struct lf_thread {
    uint32_t level, number, rounds;
    /* The mark that the parent of this process left, until the first lane begins. */
    uint32_t mark;
    /* The file of the counter and 1, 0 if it is not open, negative if it cannot be. */
    int counter;
    struct lf_lane lanes[LF_LEVELS];
    struct lf_saved saved[LF_LEVELS];
    uint32_t thrown[LF_THROWN];
};

LF_PUBLIC LF_TLS uint32_t *loopfold_rt_cursor, *loopfold_rt_limit;
LF_PUBLIC LF_TLS uint32_t loopfold_rt_depth;
static LF_TLS struct lf_thread *lf_me;

enum { LF_OFF, LF_ON };
static _Atomic int lf_mode = LF_OFF;
static int lf_is_timed;
/* What is counted instead of cycles, if there is something. */
static int lf_has_counter;
static struct perf_event_attr lf_counter;
static struct lf_shared *lf_memory;
static size_t lf_memory_bytes;
static struct sockaddr_un lf_address;
static size_t lf_address_bytes;
static uint32_t lf_owner, lf_next_id = 1, lf_next_serial, lf_next_fork;
static _Atomic uint32_t lf_next_thread;
static pthread_key_t lf_key;
static int lf_has_key;
static _Atomic int lf_lock;
static uint64_t lf_mask_at_fork;
static uint32_t lf_fork_mark;
static struct lf_thread lf_over;

extern char **environ;

/* ---- the system ---- */

static inline long lf_call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
    const int kept = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result < 0)
        result = -errno;
    errno = kept;
    return result;
#endif
}
#define lf_call(number, a, b, c) lf_call6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static inline uint64_t lf_clock(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now = {0, 0};
    lf_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

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

static inline void lf_zero(void *memory, size_t bytes)
{
#if defined(__x86_64__)
    size_t words = bytes / 8;
    __asm__ volatile("rep stosq" : "+D"(memory), "+c"(words) : "a"(0L) : "memory");
#else
    for (volatile uint64_t *word = memory, *end = word + bytes / 8; word < end; word++)
        *word = 0;
#endif
}

static uint64_t lf_block_signals(void)
{
    const uint64_t all = ~(uint64_t)0;
    uint64_t before = 0;
    lf_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
    return before;
}

static void lf_restore_signals(uint64_t mask)
{
    lf_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
}

static void lf_sleep(long nanoseconds)
{
    const struct timespec time = {0, nanoseconds};
    lf_call(SYS_nanosleep, &time, 0, 0);
}

/* The lock is held with signals blocked, so that no handler waits for its own thread. */
static uint64_t lf_take_lock(void)
{
    const uint64_t mask = lf_block_signals();
    while (atomic_exchange_explicit(&lf_lock, 1, memory_order_acquire))
        lf_sleep(10000);
    return mask;
}

static void lf_give_lock(uint64_t mask)
{
    atomic_store_explicit(&lf_lock, 0, memory_order_release);
    lf_restore_signals(mask);
}

/* ---- the connection ---- */

static int lf_connect(int flags)
{
    const int connection = (int)lf_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (connection < 0)
        return connection;
    long result;
    do
        result = lf_call(SYS_connect, connection, &lf_address, lf_address_bytes);
    while (result == -EINTR);
    if (result == 0)
        return connection;
    lf_call(SYS_close, connection, 0, 0);
    return (int)result;
}

/* False if nobody listens any more. A recorder that is stopped or busy still does. */
static int lf_recorder_lives(void)
{
    const int connection = lf_connect(SOCK_NONBLOCK);
    if (connection >= 0)
        lf_call(SYS_close, connection, 0, 0);
    return connection != -ECONNREFUSED && connection != -ENOENT;
}

/* Sends all of it, with a file if there is one; false if that fails. */
static int lf_send(int connection, const void *bytes, size_t length, int file)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control;
    while (length > 0) {
        struct iovec piece = {(void *)bytes, length};
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
        if (file >= 0) {
            lf_zero(&control, sizeof control & ~(size_t)7);
            message.msg_control = control.room;
            message.msg_controllen = sizeof control.room;
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            *(int *)CMSG_DATA(header) = file;
        }
        const long sent = lf_call(SYS_sendmsg, connection, &message, MSG_NOSIGNAL);
        if (sent == -EINTR)
            continue;
        if (sent <= 0)
            return 0;
        file = -1;
        bytes = (const char *)bytes + sent;
        length -= (size_t)sent;
    }
    return 1;
}

/* ---- the memory ---- */

/* Creates and maps it; as large as this process may, with at least two lanes. Returns its file, or
 * an error. */
static int lf_create_memory(void)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    lf_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&most, 0, 0);
    long failure = -EFBIG;
    for (uint32_t lanes = LF_MOST_LANES; lanes >= 2; lanes /= 8) {
        const size_t bytes = LF_DATA_AT + lanes * LF_LANE_BYTES;
        /* A file beyond the limit would be a signal. */
        if (most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur)
            continue;
        const int file = (int)lf_call(SYS_memfd_create, "loopfold", MFD_CLOEXEC, 0);
        if (file < 0)
            return file;
        failure = lf_call(SYS_ftruncate, file, bytes, 0);
        if (failure == 0) {
            const long at = lf_call6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (at > 0 || at < -4095) {
                lf_memory = (struct lf_shared *)at;
                lf_memory_bytes = bytes;
                lf_memory->version = LF_VERSION;
                lf_memory->lanes = lanes;
                return file;
            }
            failure = at;
        }
        lf_call(SYS_close, file, 0, 0);
    }
    return (int)failure;
}

/* Connects, introduces this process with its memory, and returns the connection; negative if
 * nobody is there or there is no memory. The recorder is given the reason. */
static int lf_introduce(uint32_t parent, uint32_t mark)
{
    const int connection = lf_connect(0);
    if (connection < 0)
        return connection;
    lf_owner = (uint32_t)lf_call(SYS_getpid, 0, 0, 0);
    const int file = lf_create_memory();
    const struct lf_message hello = {LF_MAGIC, file < 0 ? LF_FAILURE : LF_HELLO, lf_owner, parent, file < 0 ? (uint32_t)-file : mark, lf_next_id, 0};
    const int is_sent = lf_send(connection, &hello, sizeof hello, file);
    if (file >= 0)
        lf_call(SYS_close, file, 0, 0);
    if (file >= 0 && is_sent) {
        atomic_store(&lf_mode, LF_ON);
        return connection;
    }
    lf_call(SYS_close, connection, 0, 0);
    return -1;
}

static inline uint32_t *lf_chunk(const struct lf_lane *lane, uint64_t number)
{
    return lane->chunks + number % LF_CHUNKS * LF_CHUNK_TOKENS;
}

/* Makes a chunk empty. Its pages are made before, as a write to one for which there is no memory
 * would be a signal. */
static int lf_clear_chunk(const struct lf_lane *lane, uint64_t number)
{
    uint32_t *const chunk = lf_chunk(lane, number);
    if (number < LF_CHUNKS) {
#ifdef MADV_POPULATE_WRITE
        const long result = lf_call(SYS_madvise, chunk, LF_CHUNK_BYTES, MADV_POPULATE_WRITE);
        if (result < 0 && result != -EINVAL && result != -ENOSYS && result != -EINTR && result != -EAGAIN)
            return 0;
#endif
    }
    lf_zero(chunk, LF_CHUNK_BYTES);
    return 1;
}

/* ---- threads and lanes ---- */

static void lf_end_lanes(struct lf_thread *self)
{
    for (int level = 0; level < LF_LEVELS; level++) {
        struct lf_shared_lane *const shared = self->lanes[level].shared;
        if (shared)
            atomic_store_explicit(&shared->ended, atomic_load_explicit(&shared->begun, memory_order_relaxed), memory_order_release);
        self->lanes[level].shared = NULL;
    }
}

/* Runs when a thread ends: in the last round, as destructors of others may still emit tokens. */
static void lf_thread_ends(void *thread)
{
    struct lf_thread *const self = thread;
    if (++self->rounds < 4 && pthread_setspecific(lf_key, self) == 0)
        return;
    const uint64_t mask = lf_block_signals();
    lf_me = &lf_over;
    loopfold_rt_cursor = lf_over.thrown;
    loopfold_rt_limit = lf_over.thrown + LF_THROWN;
    if (lf_owner == (uint32_t)lf_call(SYS_getpid, 0, 0, 0))
        lf_end_lanes(self);
    if (self->counter > 0)
        lf_call(SYS_close, self->counter - 1, 0, 0);
    lf_call(SYS_munmap, self, sizeof *self, 0);
    lf_restore_signals(mask);
}

static LF_COLD struct lf_thread *lf_new_thread(void)
{
    const uint64_t mask = lf_block_signals();
    const long at = lf_call6(SYS_mmap, 0, sizeof(struct lf_thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at > 0 || at < -4095) {
        struct lf_thread *const self = (struct lf_thread *)at;
        const int is_first = lf_call(SYS_gettid, 0, 0, 0) == lf_call(SYS_getpid, 0, 0, 0);
        self->number = is_first ? 0 : atomic_fetch_add(&lf_next_thread, 1) + 1;
        if (lf_has_key && !is_first)
            pthread_setspecific(lf_key, self);
        lf_me = self;
    }
    lf_restore_signals(mask);
    return lf_me;
}

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
    if (!lf_clear_chunk(lane, atomic_load_explicit(&shared->head, memory_order_relaxed))) {
        atomic_store(&lf_memory->missed, lf_memory->missed + 1);
        atomic_store(&lf_mode, LF_OFF);
        return 0;
    }
    shared->thread = self->number;
    shared->level = self->level;
    shared->mark = self->mark;
    self->mark = 0;
    atomic_store_explicit(&shared->begun, ++lf_next_serial, memory_order_release);
    if (number == lf_memory->used)
        atomic_store_explicit(&lf_memory->used, number + 1, memory_order_release);
    lane->shared = shared;
    lane->next = lane->end = NULL;
    lane->last = lf_is_timed ? lf_ticks(self) : 0;
    return 1;
}

static LF_COLD int lf_start_lane(struct lf_thread *self)
{
    for (;;) {
        int is_soon = 0;
        const uint64_t mask = lf_take_lock();
        const int is_started = lf_try_start_lane(self, &is_soon);
        const int is_missed = !is_started && !is_soon;
        if (is_missed && atomic_load(&lf_mode) == LF_ON)
            atomic_store(&lf_memory->missed, lf_memory->missed + 1);
        lf_give_lock(mask);
        if (is_started || is_missed)
            return is_started;
        lf_sleep(200000);
        if (!lf_recorder_lives())
            atomic_store(&lf_mode, LF_OFF);
        if (atomic_load(&lf_mode) == LF_OFF)
            return 0;
    }
}

/* Waits until the chunk behind the present one was read; false if that will never be. */
static int lf_wait_for_room(const struct lf_lane *lane)
{
    struct lf_shared_lane *const shared = lane->shared;
    const uint64_t head = atomic_load_explicit(&shared->head, memory_order_relaxed);
    long pause = 20000, slept = 0;
    for (;;) {
        if (atomic_load_explicit(&lf_memory->stop, memory_order_relaxed) || atomic_load(&lf_mode) == LF_OFF)
            return 0;
        const uint64_t tail = atomic_load_explicit(&shared->tail, memory_order_acquire);
        if (head + 1 - tail < LF_CHUNKS)
            return 1;
        if (slept > 100000000) {
            slept = 0;
            if (!lf_recorder_lives())
                atomic_store(&lf_mode, LF_OFF);
        }
        lf_sleep(pause);
        slept += pause;
        if (pause < 500000)
            pause *= 2;
    }
}

static void lf_in_child(void);

/* Makes the present chunk complete and begins the next. Interrupted by a jump, it leaves a chunk
 * that is empty at worst. */
static int lf_next_chunk(struct lf_lane *lane)
{
    /* A process that was made without the C library shares the memory of its parent. */
    if (LF_UNLIKELY((uint32_t)lf_call(SYS_getpid, 0, 0, 0) != lf_owner)) {
        lf_fork_mark = 0;
        lf_in_child();
        atomic_store(&lf_lock, 0);
        return 0;
    }
    if (atomic_load_explicit(&lf_memory->stop, memory_order_relaxed))
        atomic_store(&lf_mode, LF_OFF);
    if (!lf_wait_for_room(lane))
        return 0;
    const uint64_t head = atomic_load_explicit(&lane->shared->head, memory_order_relaxed);
    if (!lf_clear_chunk(lane, head + 1)) {
        atomic_store(&lf_memory->missed, lf_memory->missed + 1);
        atomic_store(&lf_mode, LF_OFF);
        return 0;
    }
    atomic_store_explicit(&lane->shared->head, head + 1, memory_order_release);
    return 1;
}

/* Where a lane that has just begun, or come to its next chunk, is written to. NULL if tokens are
 * thrown away. */
static uint32_t *lf_fresh_chunk(struct lf_thread *self)
{
    for (;;) {
        if (atomic_load_explicit(&lf_mode, memory_order_relaxed) == LF_OFF)
            return NULL;
        struct lf_lane *const lane = &self->lanes[self->level];
        if (!lane->shared) {
            if (!lf_start_lane(self))
                return NULL;
        } else if (!lf_next_chunk(lane)) {
            /* In a new process there is a lane to begin. */
            if (lane->shared)
                return NULL;
            continue;
        }
        return lf_chunk(lane, atomic_load_explicit(&lane->shared->head, memory_order_relaxed));
    }
}

/* Writing goes on there. */
static void lf_move(struct lf_thread *self, uint32_t *cursor, uint32_t *limit)
{
    volatile int *const is_moving = &self->saved[self->level].is_moving;
    *is_moving = 1;
    atomic_signal_fence(memory_order_seq_cst);
    loopfold_rt_limit = limit;
    loopfold_rt_cursor = cursor;
    atomic_signal_fence(memory_order_seq_cst);
    *is_moving = 0;
}

static void lf_throw_away(struct lf_thread *self, uint32_t token)
{
    self->thrown[0] = token;
    lf_move(self, self->thrown + 1, self->thrown + LF_THROWN);
}

/* A token and the ticks since the last one. The token is written last: without it there is nothing. */
static void lf_write_timed(struct lf_thread *self, uint32_t token)
{
    const uint64_t now = lf_ticks(self);
    struct lf_lane *const lane = &self->lanes[self->level];
    if (LF_UNLIKELY(!lane->shared || lane->next == lane->end)) {
        uint32_t *const chunk = lf_fresh_chunk(self);
        if (!chunk)
            return lf_throw_away(self, token);
        lane->next = chunk;
        lane->end = chunk + LF_CHUNK_TOKENS;
    }
    /* A lane may have begun since. */
    const uint64_t ticks = now > lane->last ? now - lane->last : 0;
    uint32_t *const place = lane->next;
    place[1] = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint32_t *)place = token;
    lane->next = place + 2;
    lane->last = lf_has_counter ? now : lf_clock();
}

LF_PUBLIC LF_COLD void loopfold_rt_slow(uint32_t token)
{
    struct lf_thread *const self = lf_me ? lf_me : lf_new_thread();
    /* Without memory, every token comes here. */
    if (!self)
        return;
    if (self == &lf_over || atomic_load_explicit(&lf_mode, memory_order_relaxed) == LF_OFF)
        return lf_throw_away(self, token);
    if (lf_is_timed)
        return lf_write_timed(self, token);
    uint32_t *const chunk = lf_fresh_chunk(self);
    if (!chunk)
        return lf_throw_away(self, token);
    *chunk = token;
    lf_move(self, chunk + 1, chunk + LF_CHUNK_TOKENS);
}

static void lf_emit(uint32_t token)
{
    uint32_t *const place = loopfold_rt_cursor;
    if (place == loopfold_rt_limit) {
        loopfold_rt_slow(token);
    } else {
        *place = token;
        loopfold_rt_cursor = place + 1;
    }
}

/* For recorders of other events: one of theirs happened here. Returns the number of the lane's use
 * that has the mark, or 0 if it was thrown away. */
LF_PUBLIC uint32_t loopfold_rt_event(void)
{
    lf_emit(LF_MARK_EVENT);
    const struct lf_thread *const self = lf_me;
    const struct lf_lane *const lane = self ? &self->lanes[self->level] : NULL;
    const uint32_t *const behind = loopfold_rt_cursor;
    if (!lane || !lane->shared || behind <= lane->chunks || behind > lane->chunks + LF_LANE_BYTES / 4)
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
    saved->cursor = loopfold_rt_cursor;
    saved->limit = loopfold_rt_limit;
    saved->depth = loopfold_rt_depth;
    self->level++;
    const struct lf_lane *const lane = &self->lanes[self->level];
    lf_move(self, lane->cursor, lane->limit);
    loopfold_rt_depth = self->level << LF_LEVEL_SHIFT;
    lf_restore_signals(mask);
    return self;
}

/* With signals blocked: a handler that begins between two levels would save what is of neither. */
static void lf_end_level(struct lf_thread *self)
{
    struct lf_lane *const lane = &self->lanes[self->level];
    lane->limit = loopfold_rt_limit;
    lane->cursor = loopfold_rt_cursor;
    self->level--;
    const struct lf_saved *const saved = &self->saved[self->level];
    loopfold_rt_limit = saved->limit;
    loopfold_rt_cursor = saved->cursor;
    loopfold_rt_depth = saved->depth;
}

/* Of a level that a jump has left in the middle of moving, or arrives at, neither cursor nor limit
 * is certain: its next token begins a new chunk. */
static void lf_settle(struct lf_thread *self)
{
    if (self->saved[self->level].is_moving)
        lf_move(self, NULL, NULL);
}

/* A jump out of handlers: their frames are gone. */
static LF_COLD void lf_leave_handlers(struct lf_thread *self, uint32_t depth)
{
    const uint64_t mask = lf_block_signals();
    while (self->level > depth >> LF_LEVEL_SHIFT) {
        lf_settle(self);
        if (loopfold_rt_depth != self->level << LF_LEVEL_SHIFT)
            lf_emit(LF_MARK_UNWIND);
        lf_end_level(self);
    }
    lf_settle(self);
    /* What was interrupted may have been about to emit the token that goes with its depth. */
    lf_emit(LF_MARK_UNWIND | (depth & LF_MARK_BITS));
    loopfold_rt_depth = depth;
    lf_restore_signals(mask);
}

/* Control has arrived in a frame by a jump or an exception: the frames inside of it are gone. */
LF_PUBLIC void loopfold_rt_unwind(uint32_t depth)
{
    struct lf_thread *const self = lf_me;
    if (self && self->level > depth >> LF_LEVEL_SHIFT)
        return lf_leave_handlers(self, depth);
    if (loopfold_rt_depth > depth)
        lf_emit(LF_MARK_UNWIND | (depth & LF_MARK_BITS));
    loopfold_rt_depth = depth;
}

/* ---- signals ---- */

enum { LF_SIGNALS = 65 };
static void (*_Atomic lf_handlers[LF_SIGNALS])(int);

static void lf_return_from_level(struct lf_thread *self)
{
    if (!self)
        return;
    const uint64_t mask = lf_block_signals();
    lf_end_level(self);
    lf_restore_signals(mask);
}

static void lf_on_signal(int signal)
{
    struct lf_thread *const self = lf_begin_level();
    atomic_load(&lf_handlers[signal])(signal);
    lf_return_from_level(self);
}

static void lf_on_siginfo(int signal, siginfo_t *info, void *context)
{
    struct lf_thread *const self = lf_begin_level();
    const struct sigaction action = {.sa_handler = atomic_load(&lf_handlers[signal])};
    action.sa_sigaction(signal, info, context);
    lf_return_from_level(self);
}

LF_PUBLIC int loopfold_rt_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (signal < 1 || signal >= LF_SIGNALS)
        return sigaction(signal, action, old);
    struct sigaction wrapped, before;
    const uint64_t mask = lf_block_signals();
    void (*const previous)(int) = atomic_load(&lf_handlers[signal]);
    if (action) {
        wrapped = *action;
        if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
            atomic_store(&lf_handlers[signal], action->sa_handler);
            if (action->sa_flags & SA_SIGINFO)
                wrapped.sa_sigaction = lf_on_siginfo;
            else
                wrapped.sa_handler = lf_on_signal;
        }
    }
    const int result = sigaction(signal, action ? &wrapped : NULL, &before);
    if (result < 0)
        atomic_store(&lf_handlers[signal], previous);
    if (result == 0 && old) {
        if (before.sa_handler == lf_on_signal || before.sa_sigaction == lf_on_siginfo)
            before.sa_handler = previous;
        *old = before;
    }
    lf_restore_signals(mask);
    return result;
}

LF_PUBLIC void (*loopfold_rt_signal(int signal, void (*handler)(int)))(int)
{
    struct sigaction action = {.sa_flags = SA_RESTART}, old;
    action.sa_handler = handler;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return loopfold_rt_sigaction(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* ---- processes ---- */

/* Before a fork: leaves a mark, so that the recorder knows the frames that the child inherits, and
 * hands it over, as the parent may wait for the child. */
static void lf_before_fork(void)
{
    struct lf_thread *const self = lf_me;
    uint32_t left = 0;
    if (atomic_load(&lf_mode) == LF_ON && self && self != &lf_over && self->lanes[self->level].shared) {
        const uint32_t mark = atomic_fetch_add((_Atomic uint32_t *)&lf_next_fork, 1) % LF_MARK_BITS + 1;
        lf_emit(LF_MARK_FORK | mark);
        uint32_t *const chunk = lf_fresh_chunk(self);
        struct lf_lane *const lane = &self->lanes[self->level];
        if (chunk && lf_is_timed) {
            lane->next = chunk;
            lane->end = chunk + LF_CHUNK_TOKENS;
        } else if (chunk) {
            lf_move(self, chunk, chunk + LF_CHUNK_TOKENS);
        }
        left = chunk ? mark : 0;
    }
    const uint64_t mask = lf_take_lock();
    lf_mask_at_fork = mask;
    if (atomic_load(&lf_mode) == LF_ON)
        atomic_fetch_add(&lf_memory->forks, 1);
    lf_fork_mark = left;
}

static void lf_in_parent(void)
{
    lf_give_lock(lf_mask_at_fork);
}

/* The child has a memory of its own; that of the parent is not touched. */
static void lf_in_child(void)
{
    struct lf_thread *const self = lf_me == &lf_over ? NULL : lf_me;
    const uint32_t parent = lf_owner;
    lf_next_serial = 0;
    atomic_store(&lf_next_thread, 0);
    for (int level = 0; self && level < LF_LEVELS; level++) {
        struct lf_lane *const lane = &self->lanes[level];
        lane->shared = NULL;
        lane->cursor = lane->limit = lane->next = lane->end = NULL;
        self->saved[level].cursor = self->saved[level].limit = NULL;
    }
    loopfold_rt_cursor = loopfold_rt_limit = NULL;
    if (lf_memory)
        lf_call(SYS_munmap, lf_memory, lf_memory_bytes, 0);
    lf_memory = NULL;
    if (self) {
        self->number = 0;
        self->mark = lf_fork_mark;
        /* It counts the parent. */
        if (self->counter > 0)
            lf_call(SYS_close, self->counter - 1, 0, 0);
        self->counter = 0;
    }
    if (atomic_load(&lf_mode) == LF_ON) {
        atomic_store(&lf_mode, LF_OFF);
        const int connection = lf_introduce(parent, lf_fork_mark);
        if (connection >= 0)
            lf_call(SYS_close, connection, 0, 0);
    }
}

static void lf_in_forked_child(void)
{
    lf_in_child();
    lf_give_lock(lf_mask_at_fork);
}

/* ---- modules ---- */

static const char *lf_variable(const char *name)
{
    for (char **entry = environ; entry && *entry; entry++) {
        const char *text = *entry, *wanted = name;
        while (*wanted && *text == *wanted)
            text++, wanted++;
        if (!*wanted && *text == '=')
            return text + 1;
    }
    return NULL;
}

/* Not in programs that are linked statically: these preload nothing. */
extern void *dlsym(void *, const char *) __attribute__((weak));

/* Where the recorder listens, or NULL. For an MPI program, the library that is preloaded starts it
 * now. */
static const char *lf_find_recorder(void)
{
    const char *const address = lf_variable("LOOPFOLD_PATHS");
    if (address || !lf_variable("LOOPFOLD_RECORD") || !dlsym)
        return address;
    const char *(*start)(void);
    *(void **)&start = dlsym(NULL, "loopfold_record_paths");
    return start ? start() : NULL;
}

/* Two numbers with a colon between: which counter of which kind. */
static void lf_choose_counter(const char *text)
{
    uint32_t numbers[2] = {0, 0};
    for (int place = 0; text && *text; text++) {
        if (*text == ':')
            place = 1;
        else
            numbers[place] = numbers[place] * 10 + (uint32_t)(*text - '0');
    }
    lf_has_counter = text != NULL;
    lf_counter.size = PERF_ATTR_SIZE_VER0;
    lf_counter.type = numbers[0];
    lf_counter.config = numbers[1];
    lf_counter.exclude_kernel = numbers[0] == PERF_TYPE_HARDWARE;
    lf_counter.exclude_hv = lf_counter.exclude_kernel;
}

/* The recorder is given the reason why there is no counter. */
static void lf_check_counter(int connection)
{
    const int file = lf_open_counter();
    const struct lf_message missing = {LF_MAGIC, LF_NO_COUNTER, lf_owner, 0, (uint32_t)-file, 0, 0};
    if (file < 0)
        lf_send(connection, &missing, sizeof missing, -1);
    else
        lf_call(SYS_close, file, 0, 0);
}

/* The first module: finds the recorder. Returns the connection, negative if there is none. */
static int lf_begin(void)
{
    const char *const address = lf_find_recorder();
    if (!address || !*address)
        return -1;
    size_t length = 0;
    lf_address.sun_family = AF_UNIX;
    for (; length + 1 < sizeof lf_address.sun_path && address[length]; length++)
        lf_address.sun_path[length] = address[length];
    /* A name that is not one of a file. */
    if (*address == '@')
        lf_address.sun_path[0] = 0;
    lf_address_bytes = offsetof(struct sockaddr_un, sun_path) + length;
    /* Not in MPI programs. */
    lf_is_timed = lf_variable("LOOPFOLD_PATHS") && lf_variable("LOOPFOLD_PATHS_CYCLES");
    lf_choose_counter(lf_variable("LOOPFOLD_PATHS_COUNTER"));
    const int connection = lf_introduce(0, 0);
    if (connection < 0)
        return connection;
    if (lf_has_counter)
        lf_check_counter(connection);
    lf_has_key = pthread_key_create(&lf_key, lf_thread_ends) == 0;
    pthread_atfork(lf_before_fork, lf_in_parent, lf_in_forked_child);
    return connection;
}

/* Every module with instrumented functions calls this before any of them runs. */
LF_PUBLIC void loopfold_rt_register(uint32_t *ids, uint32_t functions, const uint8_t *description, uint64_t bytes)
{
    static int was_here;
    const uint64_t mask = lf_take_lock();
    const int connection = !was_here ? lf_begin() : atomic_load(&lf_mode) == LF_ON ? lf_connect(0) : -1;
    was_here = 1;
    if (connection >= 0 && functions < 0x3fffffffu - lf_next_id) {
        const struct lf_message module = {LF_MAGIC, LF_MODULE, lf_owner, 0, lf_next_id, functions, bytes};
        if (lf_send(connection, &module, sizeof module, -1) && lf_send(connection, description, bytes, -1)) {
            for (uint32_t index = 0; index < functions; index++)
                ids[index] = lf_next_id + index;
            lf_next_id += functions;
        }
    }
    if (connection >= 0)
        lf_call(SYS_close, connection, 0, 0);
    lf_give_lock(mask);
}
