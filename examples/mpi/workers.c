/* A master and its workers: process 0 gives a task to whoever asks, the others work and ask again.
 *
 * Usage: workers [TASKS]. The master receives from any process, with any tag. Which worker gets which
 * task differs from execution to execution. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { RESULT = 1, TASK = 2, STOP = 3 };

static void lead(int tasks, int workers)
{
    long total = 0;
    for (int task = 0, stopped = 0; stopped < workers;) {
        int result;
        MPI_Status status;
        MPI_Recv(&result, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        total += result;
        const int tag = task < tasks ? TASK : STOP;
        MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, tag, MPI_COMM_WORLD);
        task += tag == TASK;
        stopped += tag == STOP;
    }
    printf("total %ld\n", total);
}

static void work(void)
{
    for (int result = 0;;) {
        int task;
        MPI_Status status;
        MPI_Send(&result, 1, MPI_INT, 0, RESULT, MPI_COMM_WORLD);
        MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP)
            return;
        result = task % 7;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int tasks = argc > 1 ? atoi(argv[1]) : 200;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        lead(tasks, size - 1);
    else
        work();
    MPI_Finalize();
    return 0;
}
