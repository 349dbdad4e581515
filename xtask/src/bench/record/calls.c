/* How long calls of MPI take: a ping-pong, or probes that find nothing.
 * Usage: calls pingpong|iprobe COUNT. Rank 0 prints the nanoseconds a call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int is_pingpong = argc > 1 && !strcmp(argv[1], "pingpong");
    const long count = argc > 2 ? atol(argv[2]) : 100000;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char byte = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (long nth = 0; nth < count; nth++) {
        if (!is_pingpong) {
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        } else if (rank == 0) {
            MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    const double seconds = MPI_Wtime() - start;
    if (rank == 0)
        printf("%.3f\n", seconds * 1e9 / (double)count / (is_pingpong ? 2 : 1));
    MPI_Finalize();
    return 0;
}
