/* Guard cells of a mesh that is refined while the program runs: after each refinement all processes
 * exchange with others than before.
 *
 * Usage: adaptive [REFINEMENTS [FIRST [SECOND [MOST]]]]. The processes are a ring. After a refinement
 * each sends to the processes at two distances, in this order, and receives from those at the same
 * distances; no two refinements have the same two in the same order, so there are at most n (n - 1)
 * for n + 1 processes. FIRST exchanges after the first refinement, SECOND after the second, then
 * MOST, MOST / 2, MOST / 3 and so on, but at least two. A sum comes before each refinement. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int times_of(int refinement, const int *given)
{
    if (refinement < 2)
        return given[refinement];
    const int times = given[2] / (refinement - 1);
    return times > 2 ? times : 2;
}

static void exchange(int rank, int size, const int distances[2])
{
    MPI_Request requests[4];
    double in[2], out[2] = {rank, rank};
    for (int nth = 0; nth < 2; nth++)
        MPI_Irecv(&in[nth], 1, MPI_DOUBLE, (rank + size - distances[nth]) % size, nth, MPI_COMM_WORLD, &requests[nth]);
    for (int nth = 0; nth < 2; nth++)
        MPI_Isend(&out[nth], 1, MPI_DOUBLE, (rank + distances[nth]) % size, nth, MPI_COMM_WORLD, &requests[2 + nth]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int refinements = argc > 1 ? atoi(argv[1]) : 6;
    const int given[3] = {argc > 2 ? atoi(argv[2]) : 30, argc > 3 ? atoi(argv[3]) : 5, argc > 4 ? atoi(argv[4]) : 20};
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (refinements > (size - 1) * (size - 2)) {
        if (rank == 0)
            fprintf(stderr, "at most %d refinements on %d processes\n", (size - 1) * (size - 2), size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int refinement = 0; refinement < refinements; refinement++) {
        /* All pairs of one and another, from 1 to size - 1. */
        const int one = refinement / (size - 2), other = refinement % (size - 2);
        const int distances[2] = {1 + one, 1 + other + (other >= one)};
        double own = rank, sum;
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int nth = 0; nth < times_of(refinement, given); nth++)
            exchange(rank, size, distances);
    }
    MPI_Finalize();
    return 0;
}
