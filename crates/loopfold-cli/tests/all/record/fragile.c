/* A program that ends in a way that the first argument names, after as many steps as the second says,
 * with as many microseconds between them as the third, or that is controlled from outside: in $FRAGILE_FOLDER each rank has a file of two numbers, how many
 * calls have returned, and what it is asked to do. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ABORT = 1, FAULT = 2, STOP = 3 };
static struct { long returned, command; } unshared, *control = &unshared;

static void open_control(int rank)
{
    char path[4096];
    if (!getenv("FRAGILE_FOLDER"))
        return;
    snprintf(path, sizeof path, "%s/control-%d", getenv("FRAGILE_FOLDER"), rank);
    const int file = open(path, O_RDWR);
    void *page = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED)
        control = page;
}
static long command(void) { return __atomic_load_n(&control->command, __ATOMIC_ACQUIRE); }

/* The compiler must not know where it leads. */
static int *volatile nowhere;
static void fault(void) { *nowhere = 1; }

/* A call has returned. */
static void returned(void)
{
    __atomic_store_n(&control->returned, control->returned + 1, __ATOMIC_RELEASE);
    if (command() == ABORT)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (command() == FAULT)
        fault();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "never"))
        return 5;
    MPI_Init(&argc, &argv);
    if (!strcmp(how, "twice"))
        MPI_Init(&argc, &argv);
    int rank, size, stop = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    open_control(rank);
    control->returned = 2;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    returned();
    const long steps = argc > 2 ? atol(argv[2]) : 1000, pause = argc > 3 ? atol(argv[3]) : 0;
    for (long step = 0; step < steps && !stop; step++) {
        int out = 0, in = 0;
        if (pause)
            usleep((useconds_t)pause);
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        returned();
        if (step % 10 == 9) {
            /* All stop in the same step. */
            stop = rank == 0 && command() == STOP;
            MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            returned();
        }
    }
    if (!strcmp(how, "abort") && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(how, "fault") && rank == 1)
        fault();
    if (!strcmp(how, "exit"))
        _exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    returned();
    MPI_Finalize();
    return 0;
}
