/* A butterfly: in round r every process exchanges with the one whose number differs in bit r, as in
 * a transform or a reduction by recursive doubling.
 *
 * Usage: butterfly [ITERATIONS]. The number of processes must be a power of two. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int iterations = argc > 1 ? atoi(argv[1]) : 100;
    int rank, size, rounds = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (1 << rounds < size)
        rounds++;
    if (1 << rounds != size) {
        if (rank == 0)
            fprintf(stderr, "the number of processes must be a power of two\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double mine = rank, other = 0;
    for (int iteration = 0; iteration < iterations; iteration++)
        for (int round = 0; round < rounds; round++) {
            const int peer = rank ^ 1 << round;
            MPI_Request requests[2];
            MPI_Irecv(&other, 1, MPI_DOUBLE, peer, round, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(&mine, 1, MPI_DOUBLE, peer, round, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            mine = 0.5 * (mine + other);
        }
    if (rank == 0)
        printf("mean %g\n", mine);
    MPI_Finalize();
    return 0;
}
