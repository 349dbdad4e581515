/* An MPI program with a run-time library of paths: built here for another version of the recorder. The
 * argument is how many tokens are emitted before MPI starts. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

void loopfold_rt_slow(uint32_t token);

int main(int argc, char **argv)
{
    const long tokens = argc > 1 ? atol(argv[1]) : 1;
    for (long token = 0; token < tokens; token++)
        loopfold_rt_slow(1);
    MPI_Init(&argc, &argv);
    for (int round = 0; round < 5; round++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
