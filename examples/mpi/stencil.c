/* A 2-D stencil with nonblocking exchange of borders, and the residual every tenth step.
 *
 * Usage: stencil [STEPS [SIDE [SWEEPS]]]. SIDE is the side of the part of each process, SWEEPS how
 * often it is computed in a step, so that the work of a step can be made realistic.
 * A step: four MPI_Irecv, four MPI_Isend, MPI_Waitall; processes at a border talk to nobody there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int steps = argc > 1 ? atoi(argv[1]) : 100;
    const int side = argc > 2 ? atoi(argv[2]) : 16;
    const int sweeps = argc > 3 ? atoi(argv[3]) : 1;
    int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    int peers[4];
    MPI_Cart_shift(grid, 0, 1, &peers[0], &peers[1]);
    MPI_Cart_shift(grid, 1, 1, &peers[2], &peers[3]);

    const size_t width = (size_t)side + 2;
    double *old = calloc(width * width, sizeof *old), *new = calloc(width * width, sizeof *new);
    double *out = calloc(4 * (size_t)side, sizeof *out), *in = calloc(4 * (size_t)side, sizeof *in);
    for (size_t cell = 0; cell < width * width; cell++)
        old[cell] = (double)((cell * 2654435761u + (size_t)rank) % 1000) / 1000;
    double residual = 0;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[8];
        for (int direction = 0; direction < 4; direction++)
            MPI_Irecv(in + direction * side, side, MPI_DOUBLE, peers[direction], direction ^ 1, grid, &requests[direction]);
        for (int cell = 0; cell < side; cell++) {
            out[cell] = old[width + 1 + (size_t)cell];
            out[side + cell] = old[(size_t)side * width + 1 + (size_t)cell];
            out[2 * side + cell] = old[((size_t)cell + 1) * width + 1];
            out[3 * side + cell] = old[((size_t)cell + 1) * width + (size_t)side];
        }
        for (int direction = 0; direction < 4; direction++)
            MPI_Isend(out + direction * side, side, MPI_DOUBLE, peers[direction], direction, grid, &requests[4 + direction]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        for (int cell = 0; cell < side; cell++) {
            old[1 + (size_t)cell] = in[cell];
            old[((size_t)side + 1) * width + 1 + (size_t)cell] = in[side + cell];
            old[((size_t)cell + 1) * width] = in[2 * side + cell];
            old[((size_t)cell + 1) * width + (size_t)side + 1] = in[3 * side + cell];
        }
        double local = 0;
        for (int sweep = 0; sweep < sweeps; sweep++)
            for (size_t row = 1; row <= (size_t)side; row++)
                for (size_t column = 1; column <= (size_t)side; column++) {
                    const size_t at = row * width + column;
                    new[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - width] + old[at + width]);
                    local += (new[at] - old[at]) * (new[at] - old[at]);
                }
        double *swap = old;
        old = new;
        new = swap;
        if (step % 10 == 9)
            MPI_Allreduce(&local, &residual, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
    if (rank == 0)
        printf("residual %.12g\n", residual);
    free(old);
    free(new);
    free(out);
    free(in);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
