/* A ring: every process sends to the next one and receives from the one before, again and again.
 *
 * Usage: ring [ITERATIONS [BYTES]]. One MPI_Sendrecv an iteration. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int iterations = argc > 1 ? atoi(argv[1]) : 100;
    const int bytes = argc > 2 ? atoi(argv[2]) : 1024;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = calloc((size_t)bytes + 1, 1), *in = calloc((size_t)bytes + 1, 1);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int iteration = 0; iteration < iterations; iteration++)
        MPI_Sendrecv(out, bytes, MPI_CHAR, next, 0, in, bytes, MPI_CHAR, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
