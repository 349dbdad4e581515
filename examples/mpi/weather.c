/* Two functions that exchange borders on a grid of processes, as a weather model does: one to set up
 * the domain, one for every time step. Regions name the functions. Process 0 reads and writes files:
 * it collects the fields of all processes, and distributes what it read.
 *
 * Usage: weather [STEPS [EXCHANGES [FIRST [OUTPUTS]]]]. FIRST exchanges and OUTPUTS outputs when the
 * domain is started, then STEPS time steps with EXCHANGES exchanges each. Three of five steps have input
 * before their last exchange, the others end with an output. `loopfold record --header` prints
 * loopfold.h. */
#include <mpi.h>
#include <stdlib.h>

#include "loopfold.h"

enum { CELLS = 2 };

static MPI_Comm grid;
static int peers[4];
/* What each process has of a field, and a field. */
static int *counts, *places;
static double *field, own[CELLS];

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

static void gather_counts(void)
{
    const int count = CELLS;
    MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void output(void)
{
    double time = 0;
    MPI_Bcast(&time, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    gather_counts();
    MPI_Gatherv(own, CELLS, MPI_DOUBLE, field, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/* What is read is added to the field that there is. */
static void input(void)
{
    output();
    gather_counts();
    MPI_Scatterv(field, counts, places, MPI_DOUBLE, own, CELLS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void start_domain(int exchanges, int outputs)
{
    loopfold_enter("start_domain");
    for (int nth = 0; nth < exchanges; nth++)
        exchange();
    for (int nth = 0; nth < outputs; nth++)
        output();
    loopfold_leave("start_domain");
}

static void solve(int exchanges, int has_input)
{
    loopfold_enter("solve");
    for (int nth = 0; nth < exchanges; nth++) {
        if (has_input && nth == exchanges - 1)
            input();
        exchange();
    }
    loopfold_leave("solve");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int steps = argc > 1 ? atoi(argv[1]) : 100, exchanges = argc > 2 ? atoi(argv[2]) : 35;
    const int first = argc > 3 ? atoi(argv[3]) : 10, outputs = argc > 4 ? atoi(argv[4]) : 0;
    int size, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &peers[0], &peers[1]);
    MPI_Cart_shift(grid, 1, 1, &peers[2], &peers[3]);
    counts = calloc((size_t)size, sizeof *counts);
    places = calloc((size_t)size, sizeof *places);
    field = calloc((size_t)size * CELLS, sizeof *field);
    for (int process = 0; process < size; process++)
        places[process] = process * CELLS;
    start_domain(first, outputs);
    for (int step = 0; step < steps; step++) {
        const int has_input = step % 5 < 3;
        solve(exchanges, has_input);
        if (!has_input)
            output();
    }
    free(counts);
    free(places);
    free(field);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
