/* Calls that the examples do not make: probes, tests, persistent and nonblocking collectives,
 * neighbourhoods, graphs, one-sided communication, files, communicators that are made again and
 * again, and requests that complete out of order. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "loopfold.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, value = 1, sum = 0, flag = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Request requests[4];

    /* The last of three receives completes first. */
    loopfold_enter("order");
    int in[3];
    for (int tag = 0; tag < 3; tag++)
        MPI_Irecv(&in[tag], 1, MPI_INT, previous, tag, MPI_COMM_WORLD, &requests[tag]);
    MPI_Send(&value, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    loopfold_mark("halfway");
    MPI_Send(&value, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Send(&value, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    loopfold_leave("order");

    /* A nonblocking receive from anyone, and a matched probe. */
    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Ssend(&value, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Isend(&value, 1, MPI_INT, next, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Message message;
    MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in[0], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);

    /* Collectives of all kinds. */
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    int *counts = calloc((size_t)size, sizeof *counts), *places = calloc((size_t)size, sizeof *places);
    int *all = calloc(2 * (size_t)size, sizeof *all);
    for (int peer = 0; peer < size; peer++) {
        counts[peer] = 1 + peer % 2;
        places[peer] = peer;
    }
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Exscan(&value, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
    MPI_Allreduce_init(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    for (int i = 0; i < 5; i++) {
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&requests[0]);
#endif

    /* Communicators come and go with the same number; some have other members. */
    for (int i = 0; i < 10; i++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Barrier(half);
        MPI_Comm_free(&half);
    }
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoall(&value, 1, MPI_INT, &sum, 1, MPI_INT, graph);
    MPI_Neighbor_alltoallv(&value, &value, places, MPI_INT, &sum, &value, places, MPI_INT, graph);
    MPI_Comm_free(&graph);

    /* One-sided communication and a file. */
    int window[4] = {0};
    MPI_Win win;
    MPI_Win_create(window, sizeof window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (argc > 1) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    free(counts);
    free(places);
    free(all);
    MPI_Finalize();
    return 0;
}
