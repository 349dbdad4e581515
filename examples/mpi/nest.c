/* The communication of a loop nest that is written on the command line.
 *
 * Usage: nest NEST. A number n is n different calls, (…)^k repeats what is in it: the bulk of NAS LU
 * is '((4)^100 (4)^100 12)^249'. A call exchanges a message with the next process of a ring, under
 * a tag of its own, so that different calls are different events; #t is the call with tag t. */
#include <ctype.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int next, previous;

static void exchange(int tag)
{
    char out = 0, in;
    MPI_Sendrecv(&out, 1, MPI_CHAR, next, tag, &in, 1, MPI_CHAR, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static const char *play(const char *text, int *tag, int is_played);

/* What is in brackets, as often as it says; returns what follows. */
static const char *play_loop(const char *text, int *tag, int is_played)
{
    const int first = *tag;
    const char *end = play(text, tag, 0);
    long times = 1;
    char *rest = (char *)end + (*end == ')');
    if (*rest == '^')
        times = strtol(rest + 1, &rest, 10);
    for (long nth = 0; is_played && nth < times; nth++) {
        *tag = first;
        play(text, tag, 1);
    }
    return rest;
}

/* Numbers and loops up to a closing bracket; tags are counted even where nothing is played. */
static const char *play(const char *text, int *tag, int is_played)
{
    while (*text && *text != ')') {
        if (*text == '(') {
            text = play_loop(text + 1, tag, is_played);
        } else if (*text == '#') {
            char *rest;
            const long chosen = strtol(text + 1, &rest, 10);
            if (is_played)
                exchange((int)chosen);
            text = rest;
        } else if (isdigit((unsigned char)*text)) {
            char *rest;
            for (long count = strtol(text, &rest, 10); count > 0; count--, (*tag)++)
                if (is_played)
                    exchange(*tag);
            text = rest;
        } else {
            text++;
        }
    }
    return text;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, tag = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    play(argc > 1 ? argv[1] : "((4)^10 (4)^10 12)^24", &tag, 1);
    MPI_Finalize();
    return 0;
}
