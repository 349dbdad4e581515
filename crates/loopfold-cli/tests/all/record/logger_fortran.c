/* The independent recorder for the Fortran examples: the calls they make, as Fortran enters them.
 * Open MPI's Fortran calls PMPI_* itself, so the functions of logger.c see none of its calls. MPICH's
 * calls MPI_*, but for the calls of `use mpi_f08` that have no buffer. */
#include "logger.c"

typedef MPI_Fint F;

#define ENTRY(NAME, PARAMETERS, VALUES, BEFORE, AFTER)   \
    void NAME PARAMETERS                                 \
    {                                                    \
        static void(*next) PARAMETERS;                   \
        if (!next)                                       \
            *(void **)&next = dlsym(RTLD_NEXT, #NAME);   \
        BEFORE;                                          \
        next VALUES;                                     \
        AFTER;                                           \
    }
#ifdef OPEN_MPI
#define CALL(NAME, ...) ENTRY(mpi_##NAME##_, __VA_ARGS__) ENTRY(mpi_##NAME##_f08_, __VA_ARGS__)
#define CALL_WITH_BUFFER CALL
#else
#define CALL(NAME, ...) ENTRY(mpi_##NAME##_f08_, __VA_ARGS__)
#define CALL_WITH_BUFFER(...)
#endif

static int comm_of(F *a) { return comm(PMPI_Comm_f2c(*a)); }
static int size_of(F *n, F *t) { return size(*n, PMPI_Type_f2c(*t)); }
static void complete(MPI_Request one)
{
    say(posted && pending[0] == one ? "MPI_Wait n=1\n" : "MPI_Wait n=1 done=?\n");
    memmove(pending, pending + 1, sizeof *pending * (size_t)--posted);
}
static void create_grid(F *a, F *d, F *p, F *b)
{
    comms[2] = PMPI_Comm_f2c(*b);
    say("MPI_Cart_create comm=%d dims=%dx%d periods=%dx%d newcomm=2\n", comm_of(a), d[0], d[1], !!p[0], !!p[1]);
}
static void split(F *a, F *c, F *k, F *b)
{
    comms[2] = PMPI_Comm_f2c(*b);
    say("MPI_Comm_split comm=%d color=%d key=%d newcomm=2\n", comm_of(a), *c, *k);
}

CALL(init, (F *e), (e), , open_log())
CALL(finalize, (F *e), (e), say("MPI_Finalize\n"); fclose(out), )
CALL(comm_rank, (F *a, F *r, F *e), (a, r, e), say("MPI_Comm_rank comm=%d\n", comm_of(a)), )
CALL(comm_size, (F *a, F *r, F *e), (a, r, e), say("MPI_Comm_size comm=%d\n", comm_of(a)), )
CALL(comm_free, (F *a, F *e), (a, e), say("MPI_Comm_free comm=%d\n", comm_of(a)), )
CALL(comm_split, (F *a, F *c, F *k, F *b, F *e), (a, c, k, b, e), , split(a, c, k, b))
CALL(dims_create, (F *n, F *d, F *s, F *e), (n, d, s, e), say("MPI_Dims_create\n"), )
CALL(cart_create, (F *a, F *n, F *d, F *p, F *r, F *b, F *e), (a, n, d, p, r, b, e), , create_grid(a, d, p, b))
CALL(cart_shift, (F *a, F *d, F *s, F *x, F *y, F *e), (a, d, s, x, y, e), say("MPI_Cart_shift comm=%d\n", comm_of(a)), )
CALL(wait, (F *r, void *s, F *e), (r, s, e), complete(PMPI_Request_f2c(*r)), )
CALL_WITH_BUFFER(send, (void *x, F *n, F *t, F *p, F *g, F *a, F *e), (x, n, t, p, g, a, e),
    say("MPI_Send dest=%s tag=%d bytes=%d comm=%d\n", rank(*p), *g, size_of(n, t), comm_of(a)), )
CALL_WITH_BUFFER(recv, (void *x, F *n, F *t, F *p, F *g, F *a, void *s, F *e), (x, n, t, p, g, a, s, e), ,
    say("MPI_Recv src=%s tag=%d bytes=%d comm=%d\n", rank(*p), *g, size_of(n, t), comm_of(a)))
CALL_WITH_BUFFER(irecv, (void *x, F *n, F *t, F *p, F *g, F *a, F *r, F *e), (x, n, t, p, g, a, r, e), ,
    say("MPI_Irecv src=%s tag=%d bytes=%d comm=%d\n", rank(*p), *g, size_of(n, t), comm_of(a));
    pending[posted++] = PMPI_Request_f2c(*r))
CALL_WITH_BUFFER(allreduce, (void *x, void *y, F *n, F *t, F *o, F *a, F *e), (x, y, n, t, o, a, e),
    say("MPI_Allreduce op=%s bytes=%d comm=%d\n", PMPI_Op_f2c(*o) == MPI_SUM ? "SUM" : "?", size_of(n, t), comm_of(a)), )
