/* An independent recorder: prints every MPI call of the examples as text, a file for each rank.
 * It is linked into the program and passes every call on, so that both recorders see the same one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;
static MPI_Comm comms[64];
static MPI_Request pending[4096];
static int posted;
static struct { MPI_Request handle; int send, peer, tag, bytes; } persistent[64];
static int persistents;

static void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (out)
        vfprintf(out, format, values);
    va_end(values);
}
static int comm(MPI_Comm one)
{
    for (int i = 0; i < 64; i++)
        if (comms[i] == one)
            return i;
    return -1;
}
static int size(int count, MPI_Datatype type)
{
    int bytes;
    PMPI_Type_size(type, &bytes);
    return count * bytes;
}
static const char *rank(int peer)
{
    static char texts[8][16];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, 16, peer == MPI_PROC_NULL ? "none" : "%d", peer);
    return text;
}
#define NEXT(name) static __typeof__(name) *next; if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name)

static void open_log(void)
{
    int own;
    char path[4096];
    PMPI_Comm_rank(MPI_COMM_WORLD, &own);
    snprintf(path, sizeof path, "%s/rank-%d.txt", getenv("LOGGER_FOLDER"), own);
    out = fopen(path, "w");
    for (int i = 0; i < 64; i++)
        comms[i] = MPI_COMM_NULL;
    comms[0] = MPI_COMM_WORLD;
    say("MPI_Init\n");
}
int MPI_Init(int *c, char ***v)
{
    NEXT(MPI_Init);
    const int result = next(c, v);
    open_log();
    return result;
}
int MPI_Finalize(void) { NEXT(MPI_Finalize); say("MPI_Finalize\n"); fclose(out); return next(); }
int MPI_Comm_rank(MPI_Comm a, int *b) { NEXT(MPI_Comm_rank); say("MPI_Comm_rank comm=%d\n", comm(a)); return next(a, b); }
int MPI_Comm_size(MPI_Comm a, int *b) { NEXT(MPI_Comm_size); say("MPI_Comm_size comm=%d\n", comm(a)); return next(a, b); }
int MPI_Dims_create(int n, int d, int *s) { NEXT(MPI_Dims_create); say("MPI_Dims_create\n"); return next(n, d, s); }
int MPI_Cart_create(MPI_Comm a, int n, const int *d, const int *p, int r, MPI_Comm *b)
{
    NEXT(MPI_Cart_create);
    const int result = next(a, n, d, p, r, b);
    comms[2] = *b;
    say("MPI_Cart_create comm=%d dims=%dx%d periods=%dx%d newcomm=2\n", comm(a), d[0], d[1], p[0], p[1]);
    return result;
}
int MPI_Cart_shift(MPI_Comm a, int d, int s, int *x, int *y) { NEXT(MPI_Cart_shift); say("MPI_Cart_shift comm=%d\n", comm(a)); return next(a, d, s, x, y); }
int MPI_Comm_free(MPI_Comm *a) { NEXT(MPI_Comm_free); say("MPI_Comm_free comm=%d\n", comm(*a)); return next(a); }
int MPI_Barrier(MPI_Comm a) { NEXT(MPI_Barrier); say("MPI_Barrier comm=%d\n", comm(a)); return next(a); }
int MPI_Allreduce(const void *x, void *y, int n, MPI_Datatype t, MPI_Op o, MPI_Comm a)
{
    NEXT(MPI_Allreduce);
    say("MPI_Allreduce op=%s bytes=%d comm=%d\n", o == MPI_SUM ? "SUM" : "?", size(n, t), comm(a));
    return next(x, y, n, t, o, a);
}
int MPI_Reduce(const void *x, void *y, int n, MPI_Datatype t, MPI_Op o, int r, MPI_Comm a)
{
    NEXT(MPI_Reduce);
    say("MPI_Reduce root=%d op=%s bytes=%d comm=%d\n", r, o == MPI_MAX ? "MAX" : "?", size(n, t), comm(a));
    return next(x, y, n, t, o, r, a);
}
int MPI_Alltoall(const void *x, int n, MPI_Datatype t, void *y, int m, MPI_Datatype u, MPI_Comm a)
{
    NEXT(MPI_Alltoall);
    say("MPI_Alltoall bytes=%d comm=%d\n", size(n, t), comm(a));
    return next(x, n, t, y, m, u, a);
}
int MPI_Send(const void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a)
{
    NEXT(MPI_Send);
    say("MPI_Send dest=%s tag=%d bytes=%d comm=%d\n", rank(p), g, size(n, t), comm(a));
    return next(x, n, t, p, g, a);
}
int MPI_Recv(void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a, MPI_Status *s)
{
    NEXT(MPI_Recv);
    MPI_Status own;
    s = s == MPI_STATUS_IGNORE ? &own : s;
    const int result = next(x, n, t, p, g, a, s);
    say("MPI_Recv src=%s tag=%d bytes=%d comm=%d", rank(s->MPI_SOURCE), s->MPI_TAG, size(n, t), comm(a));
    const int any = (p == MPI_ANY_SOURCE) + 2 * (g == MPI_ANY_TAG);
    say("%s\n", any == 3 ? " any=src,tag" : any == 2 ? " any=tag" : any ? " any=src" : "");
    return result;
}
int MPI_Sendrecv(const void *x, int n, MPI_Datatype t, int p, int g, void *y, int m, MPI_Datatype u, int q, int h, MPI_Comm a, MPI_Status *s)
{
    NEXT(MPI_Sendrecv);
    say("MPI_Sendrecv dest=%s src=%s tag=%d recvtag=%d bytes=%d recvbytes=%d comm=%d\n", rank(p), rank(q), g, h, size(n, t), size(m, u), comm(a));
    return next(x, n, t, p, g, y, m, u, q, h, a, s);
}
int MPI_Isend(const void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a, MPI_Request *r)
{
    NEXT(MPI_Isend);
    const int result = next(x, n, t, p, g, a, r);
    say("MPI_Isend dest=%s tag=%d bytes=%d comm=%d\n", rank(p), g, size(n, t), comm(a));
    pending[posted++] = *r;
    return result;
}
int MPI_Irecv(void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a, MPI_Request *r)
{
    NEXT(MPI_Irecv);
    const int result = next(x, n, t, p, g, a, r);
    say("MPI_Irecv src=%s tag=%d bytes=%d comm=%d\n", rank(p), g, size(n, t), comm(a));
    pending[posted++] = *r;
    return result;
}
int MPI_Waitall(int n, MPI_Request *r, MPI_Status *s)
{
    NEXT(MPI_Waitall);
    int oldest = n <= posted;
    for (int i = 0; i < n && oldest; i++)
        oldest = r[i] == pending[i];
    say(oldest ? "MPI_Waitall n=%d\n" : "MPI_Waitall n=%d done=?\n", n);
    memmove(pending, pending + n, sizeof *pending * (size_t)(posted - n));
    posted -= n;
    return next(n, r, s);
}
static void keep(MPI_Request handle, int send, int peer, int tag, int bytes)
{
    say("MPI_%s_init tag=%d bytes=%d comm=0\n", send ? "Send" : "Recv", tag, bytes);
    persistent[persistents].handle = handle;
    persistent[persistents].send = send;
    persistent[persistents].peer = peer;
    persistent[persistents].tag = tag;
    persistent[persistents++].bytes = bytes;
}
int MPI_Send_init(const void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a, MPI_Request *r)
{
    NEXT(MPI_Send_init);
    const int result = next(x, n, t, p, g, a, r);
    keep(*r, 1, p, g, size(n, t));
    return result;
}
int MPI_Recv_init(void *x, int n, MPI_Datatype t, int p, int g, MPI_Comm a, MPI_Request *r)
{
    NEXT(MPI_Recv_init);
    const int result = next(x, n, t, p, g, a, r);
    keep(*r, 0, p, g, size(n, t));
    return result;
}
int MPI_Startall(int n, MPI_Request *r)
{
    NEXT(MPI_Startall);
    char lists[4][256] = {""};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < persistents; k++)
            if (persistent[k].handle == r[i]) {
                char *peers = lists[!persistent[k].send], *tags = lists[2 + !persistent[k].send];
                sprintf(peers + strlen(peers), "%s%s", *peers ? "," : "", rank(persistent[k].peer));
                sprintf(tags + strlen(tags), "%s%d", *tags ? "," : "", persistent[k].tag);
                pending[posted++] = r[i];
            }
    say("MPI_Startall dest=%s src=%s tag=%s recvtag=%s bytes=8 recvbytes=8 comm=0\n", lists[0], lists[1], lists[2], lists[3]);
    return next(n, r);
}
int MPI_Request_free(MPI_Request *r) { NEXT(MPI_Request_free); say("MPI_Request_free\n"); return next(r); }
