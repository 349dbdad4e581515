/* Every process exchanges messages with all others.
 *
 * Usage: allpairs [TIMES [ROUNDS]]. ROUNDS exchanges with each of the others, TIMES times, with a sum
 * between them. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int times = argc > 1 ? atoi(argv[1]) : 100, rounds = argc > 2 ? atoi(argv[2]) : 1;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Request *requests = calloc(2 * (size_t)size, sizeof *requests);
    double *in = calloc((size_t)size, sizeof *in), out = rank, sum;
    for (int nth = 0; nth < times; nth++) {
        for (int round = 0; round < rounds; round++) {
            int count = 0;
            for (int distance = 1; distance < size; distance++) {
                MPI_Irecv(&in[distance], 1, MPI_DOUBLE, (rank + size - distance) % size, round, MPI_COMM_WORLD, &requests[count++]);
                MPI_Isend(&out, 1, MPI_DOUBLE, (rank + distance) % size, round, MPI_COMM_WORLD, &requests[count++]);
            }
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Allreduce(&out, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    free(requests);
    free(in);
    MPI_Finalize();
    return 0;
}
