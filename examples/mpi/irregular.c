/* An irregular program: every process sends to a few others that it draws anew now and then, as a
 * code with an adaptive mesh does after it was balanced again.
 *
 * Usage: irregular [EPOCHS [STEPS]]. The same numbers are drawn in every execution. In an epoch: who
 * sends to whom (MPI_Alltoall), then STEPS exchanges. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int epochs = argc > 1 ? atoi(argv[1]) : 5, steps = argc > 2 ? atoi(argv[2]) : 20;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *to = calloc((size_t)size, sizeof *to), *from = calloc((size_t)size, sizeof *from);
    MPI_Request *requests = calloc(2 * (size_t)size, sizeof *requests);
    double (*in)[16] = calloc((size_t)size, sizeof *in), out[16] = {0};
    unsigned state = 12345u + (unsigned)rank;
    for (int epoch = 0; epoch < epochs; epoch++) {
        for (int peer = 0; peer < size; peer++)
            to[peer] = peer != rank && draw(&state) % 3 == 0 ? 1 + (int)(draw(&state) % 16) : 0;
        MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
        for (int step = 0; step < steps; step++) {
            int count = 0;
            for (int peer = 0; peer < size; peer++)
                if (from[peer] > 0)
                    MPI_Irecv(in[peer], from[peer], MPI_DOUBLE, peer, epoch, MPI_COMM_WORLD, &requests[count++]);
            for (int peer = 0; peer < size; peer++)
                if (to[peer] > 0)
                    MPI_Isend(out, to[peer], MPI_DOUBLE, peer, epoch, MPI_COMM_WORLD, &requests[count++]);
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d epochs\n", epochs);
    free(to);
    free(from);
    free(requests);
    free(in);
    MPI_Finalize();
    return 0;
}
