/* Preloaded: prints how long a program takes between MPI_Init and MPI_Finalize, the slowest process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static double start;

static void begin(void)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    start = PMPI_Wtime();
}

static void end(void)
{
    double own = PMPI_Wtime() - start, longest = 0;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        fprintf(stderr, "took %.9f s\n", longest);
}

int MPI_Init(int *argc, char ***argv)
{
    const int result = PMPI_Init(argc, argv);
    begin();
    return result;
}

int MPI_Finalize(void)
{
    end();
    return PMPI_Finalize();
}

/* The Fortran bindings do not call the C ones. */
#define FORTRAN(name, before, after)                          \
    void name(int *error)                                     \
    {                                                         \
        void (*next)(int *) = NULL;                           \
        *(void **)&next = dlsym(RTLD_NEXT, #name);            \
        before;                                               \
        if (next)                                             \
            next(error);                                      \
        after;                                                \
    }

FORTRAN(mpi_init_, , begin())
FORTRAN(mpi_init_f08_, , begin())
FORTRAN(mpi_finalize_, end(), )
FORTRAN(mpi_finalize_f08_, end(), )
