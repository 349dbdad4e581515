/* Every process exchanges messages with all others.
 *
 * Usage: allpairs [TIMES [ROUNDS [FIRST]]]. FIRST rounds, then TIMES times ROUNDS rounds and a sum. In a
 * round each process exchanges a message with each of the others; rounds differ in their order. */
#include <mpi.h>
#include <stdlib.h>

static int rank, size;
static MPI_Request *requests;
static double *in, own;

/* The nth distance of a round: upwards in even rounds, downwards in odd ones, beginning further up
 * every other round. */
static int distance_of(int round, int nth)
{
    const int place = round % 2 ? size - 2 - nth : nth;
    return 1 + (place + round / 2) % (size - 1);
}

static void exchange(int round)
{
    int count = 0;
    for (int nth = 0; nth < size - 1; nth++) {
        const int distance = distance_of(round, nth);
        MPI_Irecv(&in[distance], 1, MPI_DOUBLE, (rank + size - distance) % size, round, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(&own, 1, MPI_DOUBLE, (rank + distance) % size, round, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int times = argc > 1 ? atoi(argv[1]) : 100, rounds = argc > 2 ? atoi(argv[2]) : 1;
    const int first = argc > 3 ? atoi(argv[3]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    requests = calloc(2 * (size_t)size, sizeof *requests);
    in = calloc((size_t)size, sizeof *in);
    own = rank;
    for (int round = 0; round < first; round++)
        exchange(round);
    for (int nth = 0; nth < times; nth++) {
        double sum;
        for (int round = 0; round < rounds; round++)
            exchange(round);
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    free(requests);
    free(in);
    MPI_Finalize();
    return 0;
}
