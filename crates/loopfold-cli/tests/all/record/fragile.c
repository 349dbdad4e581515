/* A program that ends in a way that the first argument names. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "never"))
        return 5;
    MPI_Init(&argc, &argv);
    if (!strcmp(how, "twice"))
        MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const long steps = argc > 2 ? atol(argv[2]) : 1000;
    for (long step = 0; step < steps; step++) {
        int out = 0, in = 0;
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (step % 10 == 9)
            MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "abort") && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(how, "fault") && rank == 1)
        raise(SIGSEGV);
    if (!strcmp(how, "exit"))
        _exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
