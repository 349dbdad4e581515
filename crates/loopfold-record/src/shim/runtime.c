/* The part of the recorder that runs inside of the recorded program: it writes a record of each
 * MPI call to a ring in shared memory, from which a helper process reads and folds them.
 *
 * Compiled with the site's mpicc, and preloaded. The wrappers behind this text are generated from
 * the table of calls. It calls only PMPI_*, never prints unless something is wrong, and catches
 * no signals: a program that dies leaves its records to the helper.
 *
 * A record is a header (call, length in words), start and duration in nanoseconds, with
 * LOOPFOLD_RECORD_SITES the return address, and what the table says. One thread writes to a lane
 * and the helper reads it: head and tail are the only words that both look at. A full lane makes
 * the program wait, so nothing is lost.
 */
#define _GNU_SOURCE
#include <mpi.h>

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
    LF_MOST = 48,
    /* A longer record is written in pieces. */
    LF_PIECE = 4096,
};

enum { LF_CONTINUED = 0xffff, LF_COMMUNICATOR = 0xfffe, LF_ENTER = 0xfffd, LF_LEAVE = 0xfffc, LF_MARK = 0xfffb };

struct lf_shared_lane {
    _Atomic uint64_t head;
    char room[56];
    _Atomic uint64_t tail;
    char more_room[56];
};

struct lf_lane {
    struct lf_shared_lane *shared;
    int64_t *words;
    uint64_t head, tail;
};

enum { LF_OFF, LF_ON, LF_OVER };

static _Atomic int lf_state = LF_OFF;
static char *lf_memory;
static int lf_socket = -1;
static int lf_rank, lf_size;
static int lf_with_sites;
static int64_t lf_skew, lf_skew_by_second, lf_skew_since;
static int lf_is_skewed;
static MPI_Comm lf_comm_own = MPI_COMM_NULL;
static int lf_main_pid;
static struct lf_lane lf_lanes[LF_LANES];
static _Atomic unsigned lf_lanes_used;
static __thread struct lf_lane *lf_mine __attribute__((tls_model("initial-exec")));
static __thread int lf_depth __attribute__((tls_model("initial-exec")));

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

/* ---- the helper ---- */

/* All of it, or -1. */
static int lf_send_all(const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length > 0) {
        const ssize_t sent = send(lf_socket, next, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
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
        const ssize_t got = recv(lf_socket, next, length, 0);
        if (got < 0 && errno == EINTR)
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
    if (atomic_compare_exchange_strong(&lf_state, &on, LF_OVER))
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

/* Without the recorder, in the environment of what the program starts. */
static char **lf_clean_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **clean = calloc(count + 1, sizeof *clean);
    if (!clean)
        return environ;
    size_t kept = 0;
    for (size_t index = 0; index < count; index++)
        if (strncmp(environ[index], "LD_PRELOAD=", 11) != 0)
            clean[kept++] = environ[index];
    return clean;
}

/* Starts the helper. It starts itself once more and ends, so that the program never has a child
 * that it does not know. */
static int lf_spawn_helper(const char *helper, int socket, int memory)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, memory, 3);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *const arguments[] = {(char *)helper, "record-helper", NULL};
    pid_t child = 0;
    char **environment = lf_clean_environment();
    const int failed = posix_spawn(&child, helper, &actions, &attributes, arguments, environment);
    if (environment != environ)
        free(environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed)
        return failed;
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return 0;
}

static void lf_in_child(void)
{
    atomic_store(&lf_state, LF_OVER);
    lf_hang_up();
}

/* Before MPI starts: the ring and the helper. */
static int lf_prepare(void)
{
    static int was_here;
    const char *output = getenv("LOOPFOLD_RECORD"), *helper = getenv("LOOPFOLD_RECORD_HELPER");
    if (was_here || !output || !helper)
        return 0;
    was_here = 1;
    lf_with_sites = getenv("LOOPFOLD_RECORD_SITES") != NULL;
    const size_t bytes = LF_DATA + (size_t)LF_LANES * LF_WORDS * sizeof(int64_t);
    const int memory = memfd_create("loopfold", MFD_CLOEXEC);
    int sockets[2] = {-1, -1};
    if (memory < 0 || ftruncate(memory, (off_t)bytes) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0) {
        lf_complain("no shared memory for recording: %s", strerror(errno));
        return 0;
    }
    lf_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
    lf_socket = sockets[0];
    const int failed = lf_memory == MAP_FAILED ? errno : lf_spawn_helper(helper, sockets[1], memory);
    close(sockets[1]);
    close(memory);
    char answer[64];
    if (failed || lf_ask(answer, sizeof answer, "?\n") < 0 || strcmp(answer, "ok") != 0) {
        lf_complain("%s cannot be started, so nothing is recorded%s%s", helper, failed ? ": " : "", failed ? strerror(failed) : "");
        return 0;
    }
    /* Programs that this one starts are not recorded. */
    unsetenv("LD_PRELOAD");
    pthread_atfork(NULL, NULL, lf_in_child);
    return 1;
}

/* ---- the ring ---- */

static struct lf_lane *lf_new_lane(void)
{
    const unsigned number = atomic_fetch_add(&lf_lanes_used, 1);
    if (number >= LF_LANES) {
        atomic_store(&lf_lanes_used, LF_LANES);
        static _Atomic int said;
        if (!atomic_exchange(&said, 1))
            lf_complain("rank %d: more than %d threads call MPI; the others are not recorded", lf_rank, LF_LANES);
        return NULL;
    }
    struct lf_lane *lane = &lf_lanes[number];
    lane->shared = (struct lf_shared_lane *)lf_memory + number;
    lane->words = (int64_t *)(lf_memory + LF_DATA) + (size_t)number * LF_WORDS;
    atomic_store((_Atomic uint64_t *)(lf_memory + LF_COUNT), number + 1);
    return lane;
}

static void lf_wait_for_room(struct lf_lane *lane, unsigned words)
{
    for (unsigned tries = 0; atomic_load(&lf_state) == LF_ON; tries++) {
        lane->tail = atomic_load_explicit(&lane->shared->tail, memory_order_acquire);
        if (lane->head + words - lane->tail <= LF_WORDS)
            return;
        if (tries % 64 == 0) {
            struct pollfd helper = {lf_socket, POLLIN, 0};
            if (poll(&helper, 1, 0) > 0 && helper.revents & (POLLHUP | POLLERR))
                return lf_stop_without_helper();
            lf_wake();
        }
        usleep(20);
    }
}

static void lf_write(unsigned call, uint64_t start, uint64_t duration, const void *site, const int64_t *words, unsigned count)
{
    struct lf_lane *lane = lf_mine ? lf_mine : (lf_mine = lf_new_lane());
    if (!lane)
        return;
    const unsigned length = 3 + (unsigned)lf_with_sites + count;
    if (__builtin_expect(lane->head + length - lane->tail > LF_WORDS / 2, 0)) {
        lane->tail = atomic_load_explicit(&lane->shared->tail, memory_order_acquire);
        if (lane->head + length - lane->tail > LF_WORDS / 2 && (lane->head >> 13) != ((lane->head + length) >> 13))
            lf_wake();
        if (lane->head + length - lane->tail > LF_WORDS)
            lf_wait_for_room(lane, length);
    }
    uint64_t head = lane->head;
    int64_t *const ring = lane->words;
    ring[head++ % LF_WORDS] = (int64_t)(call | (uint64_t)length << 16);
    ring[head++ % LF_WORDS] = (int64_t)start;
    ring[head++ % LF_WORDS] = (int64_t)duration;
    if (lf_with_sites)
        ring[head++ % LF_WORDS] = (int64_t)(intptr_t)site;
    for (unsigned index = 0; index < count; index++)
        ring[head++ % LF_WORDS] = words[index];
    lane->head = head;
    atomic_store_explicit(&lane->shared->head, head, memory_order_release);
}

static void lf_put(unsigned call, uint64_t start, uint64_t end, const void *site, const int64_t *words, size_t count)
{
    while (count > LF_PIECE) {
        lf_write(LF_CONTINUED, 0, 0, NULL, words, LF_PIECE);
        words += LF_PIECE;
        count -= LF_PIECE;
    }
    lf_write(call, start, end - start, site, words, (unsigned)count);
}

static inline int lf_begin(void)
{
    if (atomic_load_explicit(&lf_state, memory_order_relaxed) != LF_ON || lf_depth > 0)
        return 0;
    lf_depth++;
    return 1;
}

static inline void lf_end(void)
{
    lf_depth--;
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

static inline int64_t lf_received(const MPI_Status *status)
{
    return lf_peer(status->MPI_SOURCE) * ((int64_t)1 << 32) + (int64_t)(uint32_t)status->MPI_TAG;
}

#define LF_HANDLE(handle) ((int64_t)(intptr_t)(handle))

/* ---- communicators ---- */

enum { LF_COMMS = 1 << 16 };
static MPI_Comm lf_comms[LF_COMMS];
static unsigned char lf_comm_taken[LF_COMMS];
static _Atomic int lf_comms_used;
static pthread_mutex_t lf_comms_lock = PTHREAD_MUTEX_INITIALIZER;

static int lf_free_number(int from)
{
    while (from < LF_COMMS - 1 && lf_comm_taken[from])
        from++;
    return from;
}

/* The helper learns the own rank and the size, and the members unless they follow from the call. */
static void lf_announce(MPI_Comm comm, int number, int with_members)
{
    int is_inter = 0, rank = 0, size = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    if (!is_inter) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_size(comm, &size);
    }
    int64_t *words = calloc((size_t)size + 4, sizeof *words);
    int *ranks = calloc(2 * (size_t)size + 2, sizeof *ranks);
    if (!words || !ranks) {
        free(words);
        free(ranks);
        return;
    }
    int64_t count = 0;
    if (with_members && !is_inter && lf_size > 0) {
        MPI_Group group, world;
        PMPI_Comm_group(comm, &group);
        PMPI_Comm_group(MPI_COMM_WORLD, &world);
        int is_world = size == lf_size;
        for (int index = 0; index < size; index++)
            ranks[index] = index;
        PMPI_Group_translate_ranks(group, size, ranks, world, ranks + size);
        for (int index = 0; index < size; index++) {
            words[4 + index] = ranks[size + index];
            is_world &= ranks[size + index] == index;
        }
        PMPI_Group_free(&group);
        PMPI_Group_free(&world);
        count = is_world ? 0 : size;
    }
    words[0] = number;
    words[1] = rank;
    words[2] = size;
    words[3] = count;
    lf_put(LF_COMMUNICATOR, 0, 0, NULL, words, (size_t)(4 + count));
    free(words);
    free(ranks);
}

static void lf_keep(MPI_Comm comm, int number)
{
    pthread_mutex_lock(&lf_comms_lock);
    lf_comms[number] = comm;
    lf_comm_taken[number] = 1;
    if (number >= atomic_load(&lf_comms_used))
        atomic_store(&lf_comms_used, number + 1);
    pthread_mutex_unlock(&lf_comms_lock);
}

static int lf_comm(MPI_Comm comm)
{
    static __thread int last __attribute__((tls_model("initial-exec")));
    if (comm == MPI_COMM_NULL)
        return -1;
    const int used = atomic_load_explicit(&lf_comms_used, memory_order_acquire);
    if (last < used && lf_comms[last] == comm && lf_comm_taken[last])
        return last;
    for (int number = 0; number < used; number++)
        if (lf_comms[number] == comm && lf_comm_taken[number])
            return last = number;
    /* Made by a call that is not wrapped. */
    const int number = lf_free_number(2);
    lf_keep(comm, number);
    lf_announce(comm, number, 1);
    return number;
}

/* The number of a new communicator: the smallest that is free in all of its processes, so that it
 * is the same for all, and loops that make and free communicators are loops of equal events. */
static int64_t lf_new_comm(MPI_Comm comm, int with_members)
{
    if (comm == MPI_COMM_NULL)
        return -1;
    int is_inter = 0, number = lf_free_number(2);
    PMPI_Comm_test_inter(comm, &is_inter);
    while (!is_inter) {
        int mine[2] = {number, -number}, all[2];
        if (PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || all[0] == -all[1])
            break;
        number = lf_free_number(all[0]);
    }
    lf_keep(comm, number);
    lf_announce(comm, number, with_members || is_inter);
    return number;
}

/* One that is not ready yet has the members of its parent. */
static int64_t lf_duplicate(MPI_Comm parent, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return -1;
    const int number = lf_free_number(2);
    int rank = 0, size = 0;
    PMPI_Comm_rank(parent, &rank);
    PMPI_Comm_size(parent, &size);
    const int64_t words[4] = {number, rank, size, 0};
    lf_keep(comm, number);
    lf_put(LF_COMMUNICATOR, 0, 0, NULL, words, 4);
    return number;
}

static int lf_forget(MPI_Comm comm)
{
    const int number = lf_comm(comm);
    if (number >= 2) {
        pthread_mutex_lock(&lf_comms_lock);
        lf_comm_taken[number] = 0;
        pthread_mutex_unlock(&lf_comms_lock);
    }
    return number;
}

/* ---- clocks ---- */

/* How far the clock of rank 0 is ahead of this one: half of the fastest of some round trips, and
 * when that was measured, by the own clock. Only one process of each node measures, as the others
 * have the same clock. */
static int64_t lf_clock_offset(int64_t *measured)
{
    enum { ROUNDS = 20, TAG = 77 };
    MPI_Comm node = MPI_COMM_NULL;
    int node_rank = 0, *leaders = calloc((size_t)lf_size, sizeof *leaders);
    if (!leaders)
        return 0;
    if (!lf_is_skewed) {
        PMPI_Comm_split_type(lf_comm_own, MPI_COMM_TYPE_SHARED, lf_rank, MPI_INFO_NULL, &node);
        PMPI_Comm_rank(node, &node_rank);
    }
    const int leads = node_rank == 0;
    PMPI_Allgather(&leads, 1, MPI_INT, leaders, 1, MPI_INT, lf_comm_own);
    int64_t offset = 0;
    *measured = (int64_t)lf_now();
    for (int leader = 1; leader < lf_size; leader++) {
        if (!leaders[leader] || (lf_rank != 0 && lf_rank != leader))
            continue;
        uint64_t fastest = UINT64_MAX;
        for (int round = 0; round < ROUNDS; round++) {
            if (lf_rank == 0) {
                int64_t time = 0;
                PMPI_Recv(&time, 1, MPI_INT64_T, leader, TAG, lf_comm_own, MPI_STATUS_IGNORE);
                time = (int64_t)lf_now();
                PMPI_Send(&time, 1, MPI_INT64_T, leader, TAG, lf_comm_own);
            } else {
                const uint64_t before = lf_now();
                int64_t time = 0;
                PMPI_Send(&time, 1, MPI_INT64_T, 0, TAG, lf_comm_own);
                PMPI_Recv(&time, 1, MPI_INT64_T, 0, TAG, lf_comm_own, MPI_STATUS_IGNORE);
                const uint64_t after = lf_now();
                if (after - before < fastest) {
                    fastest = after - before;
                    *measured = (int64_t)(before + fastest / 2);
                    offset = time - *measured;
                }
            }
        }
    }
    if (node != MPI_COMM_NULL) {
        int64_t both[2] = {offset, *measured};
        PMPI_Bcast(both, 2, MPI_INT64_T, 0, node);
        offset = both[0];
        *measured = both[1];
        PMPI_Comm_free(&node);
    }
    free(leaders);
    return offset;
}

/* ---- start and end ---- */

static int lf_is_this_mpi(void)
{
#if defined(OPEN_MPI)
    char expected[64], version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    snprintf(expected, sizeof expected, "Open MPI v%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
    const char *expected = MPICH_VERSION;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
#else
    const char *expected = "";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
#endif
    int length = 0;
    PMPI_Get_library_version(version, &length);
    if (strstr(version, expected))
        return 1;
    const char *own = getenv("LOOPFOLD_RECORD_SHIM");
    if (own)
        unlink(own);
    lf_complain("the recorder was built for another MPI than this (%.60s), so nothing is recorded; it is rebuilt next time", version);
    return 0;
}

static void lf_started(unsigned call, uint64_t start, const void *site)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &lf_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &lf_size);
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (lf_rank == 0)
            lf_complain("processes that MPI_Comm_spawn starts are not recorded");
        return lf_hang_up();
    }
    const int is_this = lf_is_this_mpi();
    const char *skew = getenv("LOOPFOLD_RECORD_CLOCK_SKEW");
    if (skew) {
        long long by_rank = 0, by_second = 0;
        sscanf(skew, "%lld,%lld", &by_rank, &by_second);
        lf_is_skewed = 1;
        lf_skew_since = (int64_t)start;
        lf_skew_by_second = by_second * lf_rank;
        lf_skew = by_rank * lf_rank;
        start += (uint64_t)lf_skew;
    }
    PMPI_Comm_dup(MPI_COMM_WORLD, &lf_comm_own);
    int64_t measured = 0;
    const int64_t offset = lf_clock_offset(&measured);
    int64_t own = (int64_t)start + offset, base = 0;
    PMPI_Allreduce(&own, &base, 1, MPI_INT64_T, MPI_MIN, lf_comm_own);
    char answer[600] = "";
    if (!is_this || lf_ask(answer, sizeof answer, "I %d %d %d %lld %lld %lld\n", lf_rank, lf_size, (int)getpid(), (long long)base, (long long)offset, (long long)measured) < 0 || strcmp(answer, "ok") != 0) {
        if (is_this)
            lf_complain("rank %d is not recorded: %s", lf_rank, *answer ? answer : "the process that folds has ended");
        return lf_hang_up();
    }
    lf_keep(MPI_COMM_WORLD, 0);
    lf_keep(MPI_COMM_SELF, 1);
    atomic_store(&lf_state, LF_ON);
    lf_announce(MPI_COMM_WORLD, 0, 0);
    lf_announce(MPI_COMM_SELF, 1, 1);
    lf_put(call, start, lf_now(), site, NULL, 0);
}

/* One thread finalizes. */
static char lf_part[1 << 20];

/* Sends the folded events of this rank and of those below it in the tree, as the helper gives them,
 * part by part; -1 says that there are none. */
static void lf_send_up(int is_complete, int to)
{
    char answer[64];
    long long size = -1;
    if (!is_complete || lf_ask(answer, sizeof answer, "X\n") < 0 || sscanf(answer, "%lld", &size) != 1 || size <= 0)
        size = -1;
    int64_t left = size;
    PMPI_Send(&left, 1, MPI_INT64_T, to, 78, lf_comm_own);
    while (left > 0) {
        const int length = left < (int64_t)sizeof lf_part ? (int)left : (int)sizeof lf_part;
        /* If the helper is gone, what is sent makes no archive, and the other side notices. */
        if (lf_receive_all(lf_part, (size_t)length) < 0)
            memset(lf_part, 0, (size_t)length);
        PMPI_Send(lf_part, length, MPI_BYTE, to, 78, lf_comm_own);
        left -= length;
    }
}

/* Receives what another rank sends up and passes it to the helper. Returns whether that merged it;
 * all of it is received in any case. */
static int lf_receive_up(int from, int is_complete, char *answer, size_t room)
{
    int64_t left = -1;
    PMPI_Recv(&left, 1, MPI_INT64_T, from, 78, lf_comm_own, MPI_STATUS_IGNORE);
    char head[64];
    const int head_length = snprintf(head, sizeof head, "M %lld\n", (long long)left);
    int is_passed = is_complete && left > 0 && lf_send_all(head, (size_t)head_length) == 0;
    while (left > 0) {
        const int length = left < (int64_t)sizeof lf_part ? (int)left : (int)sizeof lf_part;
        PMPI_Recv(lf_part, length, MPI_BYTE, from, 78, lf_comm_own, MPI_STATUS_IGNORE);
        is_passed = is_passed && lf_send_all(lf_part, (size_t)length) == 0;
        left -= length;
    }
    return is_passed && lf_receive_line(answer, room) == 0 && strcmp(answer, "ok") == 0;
}

/* Merges all ranks over a binomial tree; rank 0 writes the archive. */
static void lf_merge(void)
{
    char answer[600] = "";
    int is_complete = atomic_load(&lf_state) == LF_ON;
    atomic_store(&lf_state, LF_OVER);
    int64_t measured = 0;
    const int64_t offset = lf_clock_offset(&measured);
    if (is_complete && (lf_ask(answer, sizeof answer, "O %lld %lld\n", (long long)offset, (long long)measured) < 0 || strcmp(answer, "ok") != 0))
        is_complete = 0;
    int step = 1;
    for (; step < lf_size && !(lf_rank & step); step *= 2) {
        if (lf_rank + step >= lf_size)
            continue;
        is_complete = lf_receive_up(lf_rank + step, is_complete, answer, sizeof answer);
    }
    int is_written = 0;
    if (lf_rank != 0) {
        lf_send_up(is_complete, lf_rank - step);
    } else if (is_complete) {
        is_written = lf_ask(answer, sizeof answer, "F\n") == 0 && strcmp(answer, "ok") == 0;
    }
    if (lf_rank == 0 && !is_written)
        lf_complain("the ranks cannot be merged%s%s; what was recorded is in the folder %s.parts", *answer && strcmp(answer, "ok") ? ": " : "", strcmp(answer, "ok") ? answer : "", getenv("LOOPFOLD_RECORD"));
    PMPI_Bcast(&is_written, 1, MPI_INT, 0, lf_comm_own);
    lf_ask(answer, sizeof answer, is_written ? "D\n" : "K\n");
    PMPI_Comm_free(&lf_comm_own);
    lf_hang_up();
}

/* What was recorded so far is written before the program is killed. */
static void lf_flush(void)
{
    char answer[64];
    if (atomic_load(&lf_state) == LF_ON)
        lf_ask(answer, sizeof answer, "S\n");
}

__attribute__((constructor)) static void lf_loaded(void)
{
    lf_main_pid = getpid();
}

__attribute__((destructor)) static void lf_unloaded(void)
{
    const char *pid = getenv("LOOPFOLD_RECORD_PID"), *output = getenv("LOOPFOLD_RECORD");
    char folder[4096];
    struct stat about;
    if (!pid || !output || getpid() != atoi(pid) || lf_memory)
        return;
    snprintf(folder, sizeof folder, "%s.parts", output);
    if (stat(folder, &about) < 0 && stat(output, &about) < 0)
        lf_complain("the program did not call MPI_Init, so nothing was recorded");
}

/* ---- regions ---- */

static void lf_region(unsigned kind, const char *name, const void *site)
{
    if (!lf_begin())
        return;
    int64_t words[34] = {0};
    const size_t length = strnlen(name, 256);
    words[0] = (int64_t)length;
    memcpy(words + 1, name, length);
    const uint64_t now = lf_now();
    lf_put(kind, now, now, site, words, 1 + (length + 7) / 8);
    lf_end();
}

LF_EXPORT void loopfold_enter_region(const char *name) { lf_region(LF_ENTER, name, LF_SITE); }
LF_EXPORT void loopfold_leave_region(const char *name) { lf_region(LF_LEAVE, name, LF_SITE); }
LF_EXPORT void loopfold_mark_place(const char *name) { lf_region(LF_MARK, name, LF_SITE); }
