/* Paths and calls of MPI: with $MIXED_LOG, every function and call is noted in a file of its thread by
 * code that is not instrumented. The first argument is the number of steps. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define QUIET __attribute__((no_profile_instrument_function, noinline))
#define LOUD __attribute__((noinline))

static int rank, size;
static __thread int thread;
static __thread FILE *file;
static __thread char *early;
static __thread size_t early_bytes;

/* Before MPI is started, the rank is not known. */
QUIET static void note(const char *what)
{
    const char *const folder = getenv("MIXED_LOG");
    if (!folder)
        return;
    if (!file)
        file = open_memstream(&early, &early_bytes);
    fprintf(file, "%s\n", what);
}

QUIET static void keep(void)
{
    char path[4096];
    if (!file)
        return;
    fclose(file);
    snprintf(path, sizeof path, "%s/%d-%d", getenv("MIXED_LOG"), rank, thread);
    file = fopen(path, "w");
    fwrite(early, 1, early_bytes, file);
    fclose(file);
    file = NULL;
}

LOUD static int collatz(int number)
{
    note("enter collatz");
    int steps = 0;
    for (; number > 1; steps++)
        number = number & 1 ? 3 * number + 1 : number / 2;
    note("leave collatz");
    return steps;
}

/* A function that MPI calls. */
LOUD static void smaller(void *in, void *out, int *count, MPI_Datatype *type)
{
    note("enter smaller");
    for (int at = 0; at < *count; at++)
        if (((int *)in)[at] < ((int *)out)[at])
            ((int *)out)[at] = ((int *)in)[at];
    note("leave smaller");
}

LOUD static void shift(int step, int depth)
{
    note("enter shift");
    int out = step, in;
    MPI_Request request;
    if (depth > 0) {
        shift(step + 1, depth - 1);
    } else {
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, thread, MPI_COMM_WORLD, &request);
        note("MPI_Irecv");
        collatz(step % 50);
        MPI_Send(&out, 1, MPI_INT, (rank + 1) % size, thread, MPI_COMM_WORLD);
        note("MPI_Send");
        if (step % 3) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            note("MPI_Wait");
        } else {
            collatz(7);
            MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
            note("MPI_Waitall");
        }
    }
    note("leave shift");
}

LOUD static void *talks(void *steps)
{
    thread = 1;
    note("enter talks");
    for (long step = 0; step < (long)steps; step++)
        shift((int)step, (int)step % 2);
    note("leave talks");
    keep();
    return NULL;
}

LOUD static void *computes(void *steps)
{
    thread = 2;
    note("enter computes");
    for (long step = 0; step < (long)steps; step++)
        collatz((int)step % 100);
    note("leave computes");
    keep();
    return NULL;
}

/* A thread that is over before the next one begins, so that they have the same numbers each time. */
LOUD static void with_thread(void *(*work)(void *), long steps)
{
    note("enter with_thread");
    pthread_t other;
    pthread_create(&other, NULL, work, (void *)steps);
    for (long step = 0; step < steps; step++)
        shift((int)step, 0);
    pthread_join(other, NULL);
    note("leave with_thread");
}

int main(int argc, char **argv)
{
    note("enter main");
    const long steps = argc > 1 ? atol(argv[1]) : 20;
    int provided, sum = collatz(27);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    note("MPI_Init_thread");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    note("MPI_Comm_rank");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    note("MPI_Comm_size");
    with_thread(talks, steps);
    with_thread(computes, steps);
    MPI_Op operation;
    MPI_Op_create(smaller, 1, &operation);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, operation, MPI_COMM_SELF);
    note("MPI_Allreduce");
    int low[2] = {rank, -rank}, all[2] = {9, 9};
    MPI_Reduce_local(low, all, 2, MPI_INT, operation);
    note("MPI_Reduce_local");
    MPI_Op_free(&operation);
    MPI_Barrier(MPI_COMM_WORLD);
    note("MPI_Barrier");
    MPI_Finalize();
    note("MPI_Finalize");
    keep();
    collatz(99);
    printf("%d\n", sum);
    return 0;
}
