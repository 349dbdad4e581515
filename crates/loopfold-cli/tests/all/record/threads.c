/* Threads that all call MPI: each has a stream. */
#include <mpi.h>
#include <pthread.h>

static int rank, size;

static void *work(void *number)
{
    const int tag = (int)(long)number;
    for (int step = 0; step < 25 * tag; step++) {
        int out = step, in;
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, tag, &in, 1, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t threads[2];
    for (long number = 1; number <= 2; number++)
        pthread_create(&threads[number - 1], 0, work, (void *)number);
    for (int number = 0; number < 2; number++)
        pthread_join(threads[number], 0);
    MPI_Finalize();
    return 0;
}
