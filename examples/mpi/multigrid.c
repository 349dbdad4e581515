/* Multigrid cycles on a line of processes: on each coarser level only every second process of the
 * level before takes part, and the others are idle; then back to the finest level.
 *
 * Usage: multigrid [CYCLES]. Neighbours exchange borders on each level, on the finest one with
 * persistent requests; a maximum ends the cycle. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 64 };

static double border[2], inner[2];

/* Borders with the neighbours at a distance. */
static void exchange(int rank, int size, int distance, int cells)
{
    const int left = rank >= distance ? rank - distance : MPI_PROC_NULL;
    const int right = rank + distance < size ? rank + distance : MPI_PROC_NULL;
    double buffer[2 * CELLS] = {0};
    MPI_Sendrecv(buffer, cells, MPI_DOUBLE, right, 1, buffer + CELLS, cells, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(buffer, cells, MPI_DOUBLE, left, 2, buffer + CELLS, cells, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int cycles = argc > 1 ? atoi(argv[1]) : 50;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Request finest[4];
    MPI_Recv_init(&inner[0], 1, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &finest[0]);
    MPI_Recv_init(&inner[1], 1, MPI_DOUBLE, right, 6, MPI_COMM_WORLD, &finest[1]);
    MPI_Send_init(&border[1], 1, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &finest[2]);
    MPI_Send_init(&border[0], 1, MPI_DOUBLE, left, 6, MPI_COMM_WORLD, &finest[3]);
    for (int cycle = 0; cycle < cycles; cycle++) {
        MPI_Startall(4, finest);
        MPI_Waitall(4, finest, MPI_STATUSES_IGNORE);
        border[0] = border[1] = 0.5 * (inner[0] + inner[1]) + rank;
        int cells = CELLS / 2;
        for (int distance = 2; distance < size; distance *= 2, cells = cells > 1 ? cells / 2 : 1)
            if (rank % distance == 0)
                exchange(rank, size, distance, cells);
        for (int distance = 2; distance < size; distance *= 2)
            if (rank % distance == 0)
                exchange(rank, size, distance, 1);
        double norm = border[0], sum = 0;
        MPI_Reduce(&norm, &sum, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    for (int request = 0; request < 4; request++)
        MPI_Request_free(&finest[request]);
    if (rank == 0)
        printf("border %g\n", border[0]);
    MPI_Finalize();
    return 0;
}
