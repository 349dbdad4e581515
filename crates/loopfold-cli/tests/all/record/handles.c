/* Handles that are passed on, given back or given up: by the first argument. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm comm;
static MPI_Request request;
static int in, out = 1;
static pthread_barrier_t both;

enum { TIMES = 30 };

/* A thread makes the communicator and posts the receive. */
static void *make(void *nothing)
{
    for (int step = 0; step < TIMES; step++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (rank == 1)
            MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &request);
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
    }
    return nothing;
}

/* The other one uses them. */
static void pass_on(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, make, NULL);
    for (int step = 0; step < TIMES; step++) {
        pthread_barrier_wait(&both);
        if (rank == 0)
            MPI_Send(&out, 1, MPI_INT, 1, 5, comm);
        if (rank == 1) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Send(&out, 1, MPI_INT, 2, 6, comm);
        }
        if (rank == 2)
            MPI_Recv(&in, 1, MPI_INT, 1, 6, comm, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
        pthread_barrier_wait(&both);
    }
    pthread_join(thread, NULL);
}

static void free_requests(void)
{
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int step = 0; step < TIMES; step++) {
        MPI_Isend(&out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Irecv(&in, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void cancel(void)
{
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Waitall(1, &request, &status);
    MPI_Sendrecv(&out, 1, MPI_INT, rank, 7, &in, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Ranks 0 and 1, then 0 and 2: both communicators have the same number. */
static void use_again(void)
{
    MPI_Group world, pair;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int other = 1; other < 3; other++) {
        const int members[2] = {0, other};
        MPI_Group_incl(world, 2, members, &pair);
        MPI_Comm_create(MPI_COMM_WORLD, pair, &comm);
        if (comm == MPI_COMM_NULL)
            continue;
        if (rank == 0)
            MPI_Send(&out, 1, MPI_INT, 1, other, comm);
        else
            MPI_Recv(&in, 1, MPI_INT, 0, other, comm, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
    }
}

/* A receive for a message that never comes, until a file appears. */
static void wait_for(const char *file)
{
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
    while (access(file, F_OK) != 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(10000);
    }
    MPI_Cancel(&request);
    MPI_Request_free(&request);
}

/* A thread that lives in the middle of the execution. */
static void *talk(void *nothing)
{
    usleep(300000);
    for (int step = 0; step < 5; step++) {
        if (rank == 0)
            MPI_Send(&out, 1, MPI_INT, 1, 3, comm);
        else
            MPI_Recv(&in, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
        usleep(40000);
    }
    return nothing;
}

static void talk_for_a_while(void)
{
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_create(&thread, NULL, talk, NULL);
    pthread_join(thread, NULL);
    usleep(300000);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE || argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(argv[1], "pass"))
        pass_on();
    else if (!strcmp(argv[1], "free"))
        free_requests();
    else if (!strcmp(argv[1], "cancel"))
        cancel();
    else if (!strcmp(argv[1], "again"))
        use_again();
    else if (!strcmp(argv[1], "talk"))
        talk_for_a_while();
    else
        wait_for(argv[1]);
    MPI_Finalize();
    return 0;
}
