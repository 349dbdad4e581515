/* Two functions that exchange borders on a grid of processes, as a weather model does: one to set up
 * the domain, one for every time step. Regions name the functions.
 *
 * Usage: weather [STEPS [EXCHANGES [FIRST]]]. FIRST exchanges when the domain is started, then STEPS
 * time steps with EXCHANGES exchanges each. `loopfold record --header` prints loopfold.h. */
#include <mpi.h>
#include <stdlib.h>

#include "loopfold.h"

static MPI_Comm grid;
static int peers[4];

static void exchange(void)
{
    MPI_Request requests[8];
    double out[4] = {0}, in[4];
    int count = 0;
    for (int direction = 0; direction < 4; direction++)
        if (peers[direction] != MPI_PROC_NULL)
            MPI_Irecv(&in[direction], 1, MPI_DOUBLE, peers[direction], direction ^ 1, grid, &requests[count++]);
    for (int direction = 0; direction < 4; direction++)
        if (peers[direction] != MPI_PROC_NULL)
            MPI_Isend(&out[direction], 1, MPI_DOUBLE, peers[direction], direction, grid, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int steps = argc > 1 ? atoi(argv[1]) : 100, exchanges = argc > 2 ? atoi(argv[2]) : 35;
    const int first = argc > 3 ? atoi(argv[3]) : 10;
    int size, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &peers[0], &peers[1]);
    MPI_Cart_shift(grid, 1, 1, &peers[2], &peers[3]);
    loopfold_enter("start_domain");
    for (int nth = 0; nth < first; nth++)
        exchange();
    loopfold_leave("start_domain");
    for (int step = 0; step < steps; step++) {
        loopfold_enter("solve");
        for (int nth = 0; nth < exchanges; nth++)
            exchange();
        loopfold_leave("solve");
        double time = 0;
        MPI_Bcast(&time, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
