/* Things that programs are allowed to do and that a recorder can get wrong; the first argument names
 * one of them. Exits with another status than 0 if it can see that something is wrong. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void exchange_with_self(int count)
{
    MPI_Request request;
    int out = 1, in;
    for (int step = 0; step < count; step++) {
        MPI_Irecv(&in, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request);
        MPI_Send(&out, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Calls that fail leave what they would return as it is. */
static void errors(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, none;
    int index = 0x3fffffff, completed = 0x3fffffff, indices[2], in[2], out[2] = {1, 2};
    check(MPI_Waitany(-1, requests, &index, MPI_STATUS_IGNORE) != MPI_SUCCESS, "waitany");
    check(MPI_Waitsome(-1, requests, &completed, indices, MPI_STATUSES_IGNORE) != MPI_SUCCESS, "waitsome");
    memset(&none, 0x77, sizeof none);
    check(MPI_Irecv(in, 1, MPI_INT, 99, 0, MPI_COMM_WORLD, &none) != MPI_SUCCESS, "irecv");
    exchange_with_self(2);
    /* The first is cut, which not every MPI says; if it does, the second may be left. */
    for (int tag = 0; tag < 2; tag++)
        MPI_Irecv(in + tag, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, requests + tag);
    MPI_Send(out, 2, MPI_INT, rank, 0, MPI_COMM_WORLD);
    MPI_Send(out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    for (int nth = 0; nth < 2; nth++)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    exchange_with_self(2);
}

static jmp_buf place;
static void leave(MPI_Comm *comm, int *error, ...) { longjmp(place, 1); }

static __attribute__((noinline)) void duplicate(void)
{
    volatile char room[4096];
    MPI_Comm made;
    room[0] = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    room[1] = 0;
}

/* An error handler that does not return. */
static void jump(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (rank == 0 && !setjmp(place))
        MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    duplicate();
    exchange_with_self(3);
}

/* A communicator that is freed when another is. */
static int freed_with(MPI_Comm comm, int key, void *inner, void *state) { return MPI_Comm_free(inner); }

static void communicators(void)
{
    MPI_Comm some, duplicate, half, inter, outer, inner, last;
    MPI_Request request;
    int key, one = 1;
    /* Numbers differ between the processes from here on. */
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &some);
    MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Bcast(&one, 1, MPI_INT, 0, duplicate);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 1, &inter);
    MPI_Barrier(inter);
    int counts[2] = {rank < 2 ? 3 : 2, rank < 2 ? 1 : 2}, given[4] = {0}, got[4];
    MPI_Reduce_scatter(given, got, counts, MPI_INT, MPI_SUM, inter);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed_with, &key, NULL);
    for (int step = 0; step < 3; step++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        MPI_Comm_dup(outer, &inner);
        MPI_Comm_set_attr(outer, key, &inner);
        MPI_Barrier(inner);
        MPI_Comm_free(&outer);
    }
    int sides[9] = {4, 1, 1, 1, 1, 1, 1, 1, 1}, periods[9] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 9, sides, periods, 0, &last);
    MPI_Barrier(last);
}

static MPI_Comm bases[2];
static pthread_barrier_t both;

static void *make_communicators(void *number)
{
    MPI_Comm made;
    for (int step = 0; step < 20; step++) {
        pthread_barrier_wait(&both);
        MPI_Comm_dup(bases[(long)number], &made);
        MPI_Barrier(made);
        pthread_barrier_wait(&both);
        MPI_Comm_free(&made);
    }
    return NULL;
}

static void *ask(void *nothing)
{
    int members;
    MPI_Comm_size(MPI_COMM_WORLD, &members);
    return NULL;
}

static void threads(void)
{
    pthread_t other;
    MPI_Comm_dup(MPI_COMM_WORLD, bases);
    MPI_Comm_dup(MPI_COMM_WORLD, bases + 1);
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&other, NULL, make_communicators, (void *)1L);
    make_communicators(0);
    pthread_join(other, NULL);
    for (int nth = 0; nth < 150; nth++) {
        pthread_create(&other, NULL, ask, NULL);
        pthread_join(other, NULL);
    }
}

/* Processes that are not recorded become members. */
static void spawn(char *self, MPI_Comm parent)
{
    char *arguments[] = {"spawn", NULL};
    MPI_Comm inter = parent, merged;
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
    check(sum == (parent == MPI_COMM_NULL ? size + 1 : sum), "members");
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
}

static volatile int signals;
static void count_signal(int number) { signals++; }

/* What else a process has: children, signals, descriptors, environment. */
static FILE *before_start(void)
{
    signal(SIGCHLD, count_signal);
    FILE *child = popen("cat >/dev/null", "w");
    close(0);
    return child;
}

static void after_start(FILE *child)
{
    const char *preloaded = getenv("LD_PRELOAD");
    check(signals == 0, "a signal");
    check(preloaded && !strcmp(preloaded, "libm.so.6"), "what is preloaded");
    check(pclose(child) == 0, "a child");
    char byte;
    check(read(0, &byte, 1) < 0, "a descriptor");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    FILE *child = !strcmp(what, "surroundings") ? before_start() : NULL;
    MPI_Comm parent;
    int provided;
    MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    if (child)
        after_start(child);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (!strcmp(what, "errors"))
        errors();
    if (!strcmp(what, "jump"))
        jump();
    if (!strcmp(what, "communicators"))
        communicators();
    if (!strcmp(what, "threads"))
        threads();
    if (!strcmp(what, "spawn"))
        spawn(argv[0], parent);
    if (!strcmp(what, "duplicate"))
        duplicate();
    MPI_Finalize();
    return 0;
}
