/* The part of the recorder that runs inside of the recorded program: it writes a record of each
 * MPI call to a ring in shared memory, from which a helper process reads and folds them.
 *
 * Compiled with the site's mpicc, and preloaded. The wrappers behind this text are generated from
 * the table of calls. It calls only PMPI_*, never prints unless something is wrong, and catches
 * no signals: a program that dies leaves its records to the helper.
 *
 * A record is a header (call, length in words, the lane of paths that has a mark for it), start and
 * duration in nanoseconds, with LOOPFOLD_RECORD_SITES the return address, and what the table says.
 * One thread writes to a lane and the helper reads it: head and tail are the only words that both
 * look at. A full lane makes the program wait, so nothing is lost while the helper reads.
 *
 * Every event is counted before anything else is done with it, so that both ends can be compared
 * (lost.c). Nothing here waits without limit: a helper that is dead is noticed at once, one that
 * makes no progress after a minute; then events are dropped and counted.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LF_EXPORT __attribute__((visibility("default")))
#define LF_WEAK __attribute__((weak))
#define LF_SITE __builtin_return_address(0)

/* ---- shared memory: the same numbers are in ring.rs ---- */

enum {
    LF_LANES = 128,
    LF_WORDS = 1 << 17,
    LF_DATA = 1 << 16,
    LF_COUNT = 1 << 15,
    /* Events of threads that have no lane; how many events the helper has saved. */
    LF_OTHERS = LF_COUNT + 128,
    LF_SAVED = LF_COUNT + 256,
    LF_MOST = 48,
    /* A longer record is written in pieces. */
    LF_PIECE = 4096,
};

enum { LF_CONTINUED = 0xffff, LF_COMMUNICATOR = 0xfffe, LF_ENTER = 0xfffd, LF_LEAVE = 0xfffc, LF_MARK = 0xfffb, LF_OFF_CPU = 0xfffa, LF_RECORDING = 0xfff9 };

struct lf_shared_lane {
    _Atomic uint64_t head;
    /* How many events the thread has had, whether or not they were recorded. */
    _Atomic uint64_t events;
    char room[48];
    _Atomic uint64_t tail;
    char more_room[56];
};

struct lf_lane {
    struct lf_shared_lane *shared;
    int64_t *words;
    uint64_t head, tail, events;
    /* Whoever writes beyond this has to look whether there is room. */
    uint64_t look_at;
    /* When the last call ended, or returned if that is known; when the CPU time of the thread was read,
     * and what it was then. */
    uint64_t ended, read_at, cpu_time;
    /* Off the CPU since the last call, in nanoseconds. */
    int64_t off_cpu;
    /* How long recording the last call took, or -1 if that was not measured; how many calls it is
     * until the next is. */
    int64_t recording;
    uint32_t until_measured, random;
};

/* Silent is a process that records nothing, or no longer, but takes part in what all processes do
 * together: they would wait for it for ever. */
enum { LF_OFF, LF_OVER, LF_SILENT, LF_ON };

static _Atomic int lf_state = LF_OFF;
static char *lf_memory;
static int lf_socket = -1;
/* The number of the helper's process, or 0; whether it was given up. */
static int lf_helper;
static _Atomic int lf_is_given_up;
/* Whether events are recorded, or should have been: then they are counted. */
static int lf_is_counted;
/* Why events are not recorded. */
static char lf_why[640];
static int lf_rank, lf_size;
static int lf_with_sites;
/* Of the run-time library of `loopfold-cc`, if the paths of the program are recorded, too: leaves a
 * mark among the paths of the thread, and returns which lane of theirs has it. */
static uint32_t (*lf_mark_paths)(void);
static int64_t lf_skew, lf_skew_by_second, lf_skew_since;
static int lf_is_skewed;
static MPI_Comm lf_comm_own = MPI_COMM_NULL;
static struct lf_lane lf_lanes[LF_LANES];
static unsigned char lf_lane_is_given[LF_LANES], lf_lane_was_given[LF_LANES];
static unsigned lf_lanes_most;
static pthread_mutex_t lf_lanes_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t lf_lane_key;
static __thread struct lf_lane *lf_mine __attribute__((tls_model("initial-exec")));
/* The frame of the wrapper that the thread is in. */
static __thread const char *lf_inside __attribute__((tls_model("initial-exec")));

static void lf_complain(const char *text, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, text);
    const int length = vsnprintf(line, sizeof line - 1, text, arguments);
    va_end(arguments);
    const size_t end = length < 0 ? 0 : (size_t)length < sizeof line - 2 ? (size_t)length : sizeof line - 2;
    line[end] = '\n';
    if (write(2, "loopfold: ", 10) < 0 || write(2, line, end + 1) < 0)
        return;
}

static inline uint64_t lf_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (__builtin_expect(lf_skew_by_second != 0, 0))
        time += (int64_t)(time - (uint64_t)lf_skew_since) / 1000000 * lf_skew_by_second / 1000;
    return time + (uint64_t)lf_skew;
}

/* ---- patience ----
 *
 * Whoever waits for the helper looks whether it makes progress: by what it sends and reads, or by the
 * CPU time that it takes. Only time in which this process could run counts, so that nobody is given
 * up after both were stopped. */

enum { LF_LOOK = 100000000, LF_ASK_SYSTEM = 1000000000 };

struct lf_patience {
    uint64_t looked_at, waited, asked, progress;
};

/* Nanoseconds without progress after which the helper is given up; the tests wait less. */
static uint64_t lf_most_patience(void)
{
    static uint64_t most;
    if (most == 0) {
        const char *seconds = getenv("LOOPFOLD_RECORD_PATIENCE");
        const double wanted = seconds ? atof(seconds) : 0;
        most = (uint64_t)((wanted > 0 ? wanted : 60) * 1e9);
    }
    return most;
}

/* The CPU time of the helper in ticks, or 0. */
static uint64_t lf_helper_time(void)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", lf_helper);
    const int file = lf_helper ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    /* Behind the name, which may have anything in it: the 12th and 13th of what follows. */
    const char *const end = strrchr(text, ')');
    unsigned long long user = 0, system = 0;
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
        return 0;
    return user + system;
}

static uint64_t lf_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether the helper has made no progress for too long. To be asked again and again while waiting. */
static int lf_is_over(struct lf_patience *patience)
{
    const uint64_t now = lf_monotonic(), passed = patience->looked_at ? now - patience->looked_at : 0;
    patience->looked_at = now;
    patience->waited += passed < 2 * LF_LOOK ? passed : 2 * LF_LOOK;
    if (patience->waited < lf_most_patience() && patience->waited - patience->asked < LF_ASK_SYSTEM)
        return 0;
    const uint64_t progress = lf_helper_time();
    patience->asked = patience->waited;
    if (progress == patience->progress)
        return patience->waited >= lf_most_patience();
    patience->progress = progress;
    patience->waited = patience->asked = 0;
    return 0;
}

/* ---- the helper ---- */

/* Waits until the socket can be used; -1 if the helper was given up. That the helper is gone is
 * noticed by whoever uses the socket. */
static int lf_wait_for_socket(short use)
{
    struct lf_patience patience = {0, 0, 0, 0};
    while (!atomic_load(&lf_is_given_up)) {
        struct pollfd helper = {lf_socket, use, 0};
        if (poll(&helper, 1, LF_LOOK / 1000000) > 0)
            return 0;
        if (lf_is_over(&patience))
            atomic_store(&lf_is_given_up, 1);
    }
    return -1;
}

/* Whether a call on the socket can be made once more. */
static int lf_can_try_again(short use)
{
    if (errno == EINTR)
        return 1;
    return (errno == EAGAIN || errno == EWOULDBLOCK) && lf_wait_for_socket(use) == 0;
}

/* All of it, or -1. */
static int lf_send_all(const void *bytes, size_t length)
{
    const char *next = bytes;
    if (atomic_load(&lf_is_given_up))
        return -1;
    while (length > 0) {
        const ssize_t sent = send(lf_socket, next, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && lf_can_try_again(POLLOUT))
            continue;
        if (sent <= 0)
            return -1;
        next += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int lf_receive_all(void *bytes, size_t length)
{
    char *next = bytes;
    while (length > 0) {
        const ssize_t got = recv(lf_socket, next, length, MSG_DONTWAIT);
        if (got < 0 && lf_can_try_again(POLLIN))
            continue;
        if (got <= 0)
            return -1;
        next += got;
        length -= (size_t)got;
    }
    return 0;
}

/* One line of text, without its end. */
static int lf_receive_line(char *line, size_t room)
{
    for (size_t length = 0; length + 1 < room; length++) {
        if (lf_receive_all(line + length, 1) < 0)
            return -1;
        if (line[length] == '\n') {
            line[length] = 0;
            return 0;
        }
    }
    return -1;
}

/* The number may soon be that of a file of the program. */
static void lf_hang_up(void)
{
    if (lf_socket >= 0)
        close(lf_socket);
    lf_socket = -1;
}

static void lf_stop(const char *why)
{
    int on = LF_ON;
    if (!atomic_compare_exchange_strong(&lf_state, &on, LF_SILENT))
        return;
    snprintf(lf_why, sizeof lf_why, "%s", why);
    lf_complain("rank %d: %s; the rest of this rank is not recorded", lf_rank, why);
}

/* The helper is gone; it may have left a line that says why. */
static void lf_stop_without_helper(void)
{
    char text[640] = "the process that folds has ended: ";
    const size_t begin = strlen(text);
    const ssize_t got = recv(lf_socket, text + begin, sizeof text - begin - 1, MSG_DONTWAIT);
    const size_t end = got > 0 ? begin + (size_t)got : begin - 2;
    text[end] = 0;
    text[strcspn(text, "\n")] = 0;
    lf_stop(text);
}

#define LF_NO_ANSWER "the process that folds makes no progress"

static void lf_wake(void)
{
    const char wake = 'w';
    if (send(lf_socket, &wake, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        lf_stop_without_helper();
}

/* A question and its answer, a line each. */
static int lf_ask(char *answer, size_t room, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || lf_send_all(line, (size_t)length) < 0)
        return -1;
    return lf_receive_line(answer, room);
}

/* ---- the ring ---- */

/* A thread ends: its lane may be given to another. */
static void lf_return_lane(void *lane)
{
    pthread_mutex_lock(&lf_lanes_lock);
    lf_lane_is_given[(struct lf_lane *)lane - lf_lanes] = 0;
    pthread_mutex_unlock(&lf_lanes_lock);
    lf_mine = NULL;
}

/* One that no thread has had, or else one whose thread has ended, or -1. */
static int lf_free_lane_locked(void)
{
    for (unsigned number = 0; number < lf_lanes_most; number++)
        if (!lf_lane_was_given[number])
            return (int)number;
    for (unsigned number = 0; number < lf_lanes_most; number++)
        if (!lf_lane_is_given[number])
            return (int)number;
    return -1;
}

static struct lf_lane *lf_new_lane(void)
{
    pthread_mutex_lock(&lf_lanes_lock);
    const int number = lf_free_lane_locked();
    if (number >= 0) {
        _Atomic uint64_t *const count = (_Atomic uint64_t *)(lf_memory + LF_COUNT);
        lf_lane_is_given[number] = lf_lane_was_given[number] = 1;
        lf_lanes[number].read_at = 0;
        lf_lanes[number].off_cpu = 0;
        lf_lanes[number].recording = -1;
        lf_lanes[number].until_measured = 1;
        lf_lanes[number].shared = (struct lf_shared_lane *)lf_memory + number;
        lf_lanes[number].words = (int64_t *)(lf_memory + LF_DATA) + (size_t)number * LF_WORDS;
        if (atomic_load(count) < (uint64_t)number + 1)
            atomic_store(count, (uint64_t)number + 1);
    }
    pthread_mutex_unlock(&lf_lanes_lock);
    if (number < 0) {
        static _Atomic int said;
        if (!atomic_exchange(&said, 1))
            lf_complain("rank %d: more than %u threads call MPI at once; the others are not recorded", lf_rank, lf_lanes_most);
        return NULL;
    }
    pthread_setspecific(lf_lane_key, &lf_lanes[number]);
    return &lf_lanes[number];
}

/* Waits until the helper has read what is in the way, or is given up. */
static void lf_wait_for_room(struct lf_lane *lane, unsigned words)
{
    struct lf_patience patience = {0, 0, 0, 0};
    for (unsigned tries = 0; atomic_load(&lf_state) == LF_ON; tries++) {
        lane->tail = atomic_load_explicit(&lane->shared->tail, memory_order_acquire);
        if (lane->head + words - lane->tail <= LF_WORDS)
            return;
        if (tries % 64 == 0) {
            struct pollfd helper = {lf_socket, POLLIN, 0};
            if (poll(&helper, 1, 0) > 0 && helper.revents & (POLLHUP | POLLERR))
                return lf_stop_without_helper();
            if (lf_is_over(&patience)) {
                atomic_store(&lf_is_given_up, 1);
                return lf_stop(LF_NO_ANSWER);
            }
            lf_wake();
        }
        usleep(20);
    }
}

/* Where the reader is, is in memory that it writes: looking takes long, so it is done once in a
 * while as long as half of the ring is full, and not at all before. */
static __attribute__((noinline)) void lf_look_for_room(struct lf_lane *lane, unsigned length)
{
    const uint64_t behind = lane->head + length;
    lane->until_measured = 1;
    lane->tail = atomic_load_explicit(&lane->shared->tail, memory_order_acquire);
    lane->look_at = lane->tail + LF_WORDS / 2;
    if (behind <= lane->look_at)
        return;
    lf_wake();
    if (behind - lane->tail > LF_WORDS)
        lf_wait_for_room(lane, length);
    const uint64_t full = lane->tail + LF_WORDS, soon = behind + LF_WORDS / 16;
    lane->look_at = soon < full ? soon : full;
}

/* Counts an event; without a lane among those of other threads. */
static inline void lf_count_event(struct lf_lane *lane)
{
    if (lane)
        atomic_store_explicit(&lane->shared->events, ++lane->events, memory_order_relaxed);
    else
        atomic_fetch_add((_Atomic uint64_t *)(lf_memory + LF_OTHERS), 1);
}

static void lf_write(unsigned call, uint64_t start, uint64_t duration, const void *site, const int64_t *words, unsigned count)
{
    const int is_event = call != LF_CONTINUED && call != LF_COMMUNICATOR && call != LF_OFF_CPU && call != LF_RECORDING;
    if (__builtin_expect(atomic_load_explicit(&lf_state, memory_order_relaxed) != LF_ON, 0)) {
        if (is_event && lf_is_counted && atomic_load(&lf_state) == LF_SILENT)
            lf_count_event(lf_mine);
        return;
    }
    struct lf_lane *lane = lf_mine ? lf_mine : (lf_mine = lf_new_lane());
    if (is_event)
        lf_count_event(lane);
    if (!lane)
        return;
    const unsigned length = 3 + (unsigned)lf_with_sites + count;
    if (__builtin_expect(lane->head + length > lane->look_at, 0)) {
        lf_look_for_room(lane, length);
        /* What was not read yet must not be overwritten. */
        if (atomic_load(&lf_state) != LF_ON)
            return;
    }
    /* The mark comes before the record: a record that is there has its mark, and nothing is behind a
     * mark without a record. */
    const uint64_t marked = is_event && lf_mark_paths ? lf_mark_paths() : 0;
    uint64_t head = lane->head;
    int64_t *const ring = lane->words;
    ring[head++ % LF_WORDS] = (int64_t)(call | (uint64_t)length << 16 | marked << 32);
    ring[head++ % LF_WORDS] = (int64_t)start;
    ring[head++ % LF_WORDS] = (int64_t)duration;
    if (lf_with_sites)
        ring[head++ % LF_WORDS] = (int64_t)(intptr_t)site;
    for (unsigned index = 0; index < count; index++)
        ring[head++ % LF_WORDS] = words[index];
    lane->head = head;
    atomic_store_explicit(&lane->shared->head, head, memory_order_release);
}

/* ---- time off the CPU ----
 *
 * What a thread computes between calls is the time between them, without the time in which another
 * had its core. Reading the CPU time is a system call, so it is read only at the end of what took
 * long: a gap or a call. In between, CPU time is taken to pass like time. */

enum { LF_LONG = 10000, LF_OFF_CPU_LEAST = 5000 };

static uint64_t lf_cpu_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reads the CPU time; returns how long the thread did not run since the last time it was read. */
static __attribute__((noinline)) int64_t lf_off_cpu_until(struct lf_lane *lane, uint64_t now)
{
    const uint64_t cpu_time = lf_cpu_time();
    const int64_t passed = (int64_t)(now - lane->read_at), ran = (int64_t)(cpu_time - lane->cpu_time);
    const int64_t off = lane->read_at ? passed - ran : 0;
    lane->read_at = now;
    lane->cpu_time = cpu_time;
    return off > LF_OFF_CPU_LEAST ? off : 0;
}

/* The time at the start of a call. */
static inline uint64_t lf_start(void)
{
    const uint64_t now = lf_now();
    struct lf_lane *const lane = lf_mine;
    if (lane && now - lane->ended > LF_LONG)
        lane->off_cpu = lf_off_cpu_until(lane, now);
    return now;
}

/* ---- what recording takes ----
 *
 * A recorded call returns later than it ends, and what lies between is no computation of the program.
 * It is measured for one call in sixteen on average, in no order that a loop of the program could
 * have, too, and for those that are known to take longer than others. */

static __attribute__((noinline)) void lf_measure_recording(struct lf_lane *lane, uint64_t end)
{
    const uint64_t now = lf_now();
    lane->recording = (int64_t)(now - end);
    lane->ended = now;
    if (now - end > LF_LONG)
        lf_off_cpu_until(lane, now);
    lane->random = lane->random * 1664525u + 1013904223u;
    lane->until_measured = 1 + (lane->random >> 27);
}

/* What is known of the time since the last call. */
static inline void lf_put_time_between(struct lf_lane *lane)
{
    if (__builtin_expect(lane->off_cpu > 0, 0)) {
        lf_write(LF_OFF_CPU, 0, 0, NULL, &lane->off_cpu, 1);
        lane->off_cpu = 0;
    }
    if (__builtin_expect(lane->recording >= 0, 0)) {
        lf_write(LF_RECORDING, 0, 0, NULL, &lane->recording, 1);
        lane->recording = -1;
    }
}

static void lf_put_words(unsigned call, uint64_t start, uint64_t end, const void *site, const int64_t *words, size_t count)
{
    while (count > LF_PIECE) {
        lf_write(LF_CONTINUED, 0, 0, NULL, words, LF_PIECE);
        words += LF_PIECE;
        count -= LF_PIECE;
    }
    lf_write(call, start, end - start, site, words, (unsigned)count);
}

/* A communicator, before the call that makes it or uses it first. */
static void lf_put_communicator(const int64_t *words, size_t count)
{
    lf_put_words(LF_COMMUNICATOR, 0, 0, NULL, words, count);
    if (lf_mine)
        lf_mine->until_measured = 1;
}

static void lf_put(unsigned call, uint64_t start, uint64_t end, const void *site, const int64_t *words, size_t count)
{
    struct lf_lane *const lane = lf_mine;
    if (lane) {
        lf_put_time_between(lane);
        lane->ended = end;
        if (end - start > LF_LONG)
            lf_off_cpu_until(lane, end);
    }
    lf_put_words(call, start, end, site, words, count);
    if (lane && __builtin_expect(--lane->until_measured == 0, 0))
        lf_measure_recording(lane, end);
}

/* Enters a wrapper, unless the thread is inside of one. An error handler may have left that one by a
 * jump: the frames of calls from inside are below its own. */
static inline __attribute__((always_inline)) int lf_enter(void)
{
    const char *const frame = __builtin_frame_address(0);
    if (__builtin_expect(lf_inside != NULL, 0) && frame < lf_inside)
        return 0;
    lf_inside = frame;
    return 1;
}

static inline __attribute__((always_inline)) int lf_begin(void)
{
    return atomic_load_explicit(&lf_state, memory_order_relaxed) >= LF_SILENT && lf_enter();
}

static inline void lf_end(void)
{
    lf_inside = NULL;
}

/* ---- arguments ---- */

static inline int64_t lf_peer(int64_t rank)
{
    return rank == MPI_ANY_SOURCE ? -1 : rank == MPI_PROC_NULL ? -2 : rank == MPI_ROOT ? -3 : rank;
}

static inline int64_t lf_tag(int64_t tag)
{
    return tag == MPI_ANY_TAG ? -1 : tag;
}

static inline int64_t lf_size_of(MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size_x(type, &size);
    return (int64_t)size;
}

static int64_t lf_operation(MPI_Op operation)
{
    const MPI_Op known[] = {MPI_SUM,  MPI_MAX, MPI_MIN,  MPI_PROD, MPI_LAND,   MPI_BAND,   MPI_LOR,
                            MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
    for (unsigned index = 0; index < sizeof known / sizeof *known; index++)
        if (operation == known[index])
            return index + 1;
    return 0;
}

#ifdef OPEN_MPI
extern int mpi_fortran_in_place_ LF_WEAK, mpi_fortran_in_place LF_WEAK, mpi_fortran_in_place__ LF_WEAK, MPI_FORTRAN_IN_PLACE LF_WEAK;
#endif

static inline int lf_in_place(const void *buffer)
{
#ifdef OPEN_MPI
    if (buffer && (buffer == &mpi_fortran_in_place_ || buffer == &mpi_fortran_in_place || buffer == &mpi_fortran_in_place__ || buffer == &MPI_FORTRAN_IN_PLACE))
        return 1;
#endif
    return buffer == MPI_IN_PLACE;
}

/* How many blocks a reduction is scattered into. */
static int lf_local_members(MPI_Comm comm)
{
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int lf_members(MPI_Comm comm)
{
    int is_inter = 0, size = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

static int lf_neighbors(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED, count = 0, in, weighted, rank;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        PMPI_Cartdim_get(comm, &count);
        return 2 * count;
    }
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &in, &count, &weighted);
    else if (topology == MPI_GRAPH) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &count);
    }
    return count;
}

#define LF_SUM(counts, members)                             \
    __extension__({                                         \
        int64_t lf_sum = 0;                                 \
        const int lf_n = (members);                         \
        for (int lf_i = 0; (counts) && lf_i < lf_n; lf_i++) \
            lf_sum += (int64_t)(counts)[lf_i];              \
        lf_sum;                                             \
    })

#define LF_SUM_TYPED(counts, types, to_c, members)                                  \
    __extension__({                                                                 \
        int64_t lf_sum = 0;                                                         \
        const int lf_n = (members);                                                 \
        for (int lf_i = 0; (counts) && (types) && lf_i < lf_n; lf_i++)              \
            lf_sum += (int64_t)(counts)[lf_i] * lf_size_of(to_c((types)[lf_i]));    \
        lf_sum;                                                                     \
    })
#define LF_AS_IT_IS(value) (value)

/* The status of a send may have anything, also what would mean that it was cancelled. */
static inline int64_t lf_received(const MPI_Status *status)
{
    const int64_t source = lf_peer(status->MPI_SOURCE);
    return (source < -3 ? -1 : source) * ((int64_t)1 << 32) + (int64_t)(uint32_t)status->MPI_TAG;
}

/* In place of that, of a request that has failed: wildcards. */
#define LF_NOT_KNOWN ((int64_t)-1)

#define LF_HANDLE(handle) ((int64_t)(intptr_t)(handle))
