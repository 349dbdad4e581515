
/* ---- Fortran ----
 *
 * Open MPI's Fortran calls PMPI_* itself, so its entry points are wrapped too: those of mpif.h and
 * `use mpi` under each mangling of the name, and those of `use mpi_f08`. MPICH's calls MPI_*, but
 * for those of `use mpi_f08` without a buffer. Arguments are addresses; lengths of texts come
 * behind them, and are passed on. */
#if defined(OPEN_MPI) || defined(MPICH_VERSION)
#define LF_FORTRAN

#define LF_INT(argument) ((int64_t) * (const MPI_Fint *)(argument))
#define LF_STATUS_INTS (sizeof(MPI_Status) / sizeof(MPI_Fint))

#ifdef MPICH_VERSION
/* They are in the library for Fortran. */
#pragma weak MPIR_F08_MPI_STATUS_IGNORE_OBJ
#pragma weak MPIR_F08_MPI_STATUSES_IGNORE_OBJ
#endif

static inline int lf_fortran_ignored(const void *status)
{
#ifdef MPICH_VERSION
    if (status && (status == (void *)&MPIR_F08_MPI_STATUS_IGNORE_OBJ || status == (void *)&MPIR_F08_MPI_STATUSES_IGNORE_OBJ || status == (void *)MPI_F08_STATUS_IGNORE || status == (void *)MPI_F08_STATUSES_IGNORE))
        return 1;
#endif
    return status == (void *)MPI_F_STATUS_IGNORE || status == (void *)MPI_F_STATUSES_IGNORE;
}

static inline MPI_Fint *lf_fortran_status(void *status, MPI_Fint *own)
{
    return lf_fortran_ignored(status) ? own : status;
}

#define LF_NAMES(NAME, UPPER, PARAMETERS)                                            \
    LF_EXPORT void mpi_##NAME PARAMETERS __attribute__((alias("mpi_" #NAME "_")));   \
    LF_EXPORT void mpi_##NAME##__ PARAMETERS __attribute__((alias("mpi_" #NAME "_"))); \
    LF_EXPORT void MPI_##UPPER PARAMETERS __attribute__((alias("mpi_" #NAME "_")));

/* The call as mpif.h and as mpi_f08 name it; both end in a function that is given the original. */
#ifdef MPICH_VERSION
#define LF_FORTRAN_CALL(NAME, UPPER, PARAMETERS, ...)                              \
    LF_EXPORT void mpi_##NAME##_f08_ PARAMETERS                                    \
    {                                                                              \
        static void(*original) PARAMETERS;                                         \
        if (!original)                                                             \
            *(void **)&original = dlsym(RTLD_NEXT, "mpi_" #NAME "_f08_");          \
        lf_f_##NAME(original, LF_SITE, __VA_ARGS__);                               \
    }
#else
#define LF_FORTRAN_CALL(NAME, UPPER, PARAMETERS, ...)            \
    extern void pmpi_##NAME##_ PARAMETERS LF_WEAK;               \
    extern void pmpi_##NAME##_f08_ PARAMETERS LF_WEAK;           \
    LF_EXPORT void mpi_##NAME##_ PARAMETERS { lf_f_##NAME(pmpi_##NAME##_, LF_SITE, __VA_ARGS__); } \
    LF_EXPORT void mpi_##NAME##_f08_ PARAMETERS { lf_f_##NAME(pmpi_##NAME##_f08_, LF_SITE, __VA_ARGS__); } \
    LF_NAMES(NAME, UPPER, PARAMETERS)
#endif

static void lf_f_init(void (*original)(MPI_Fint *), const void *site, MPI_Fint *error)
{
    const int is_ready = lf_depth++ == 0 && atomic_load(&lf_state) == LF_OFF && lf_prepare();
    const uint64_t start = lf_now();
    original(error);
    if (is_ready)
        lf_started(LF_MPI_Init, start, site);
    lf_depth--;
}
LF_FORTRAN_CALL(init, INIT, (MPI_Fint * error), error)

static void lf_f_init_thread(void (*original)(void *, void *, MPI_Fint *), const void *site, void *required, void *provided, MPI_Fint *error)
{
    const int is_ready = lf_depth++ == 0 && atomic_load(&lf_state) == LF_OFF && lf_prepare();
    const uint64_t start = lf_now();
    original(required, provided, error);
    if (is_ready)
        lf_started(LF_MPI_Init_thread, start, site);
    lf_depth--;
}
LF_FORTRAN_CALL(init_thread, INIT_THREAD, (void *required, void *provided, MPI_Fint *error), required, provided, error)

static void lf_f_finalize(void (*original)(MPI_Fint *), const void *site, MPI_Fint *error)
{
    if (lf_depth++ == 0 && lf_comm_own != MPI_COMM_NULL)
        lf_finalizing(site);
    original(error);
    lf_depth--;
}
LF_FORTRAN_CALL(finalize, FINALIZE, (MPI_Fint * error), error)

static void lf_f_abort(void (*original)(void *, void *, MPI_Fint *), const void *site, void *comm, void *code, MPI_Fint *error)
{
    if (lf_begin()) {
        const uint64_t now = lf_now();
        const int64_t words[1] = {lf_comm(PMPI_Comm_f2c(*(MPI_Fint *)comm))};
        lf_put(LF_MPI_Abort, now, now - 1, site, words, 1);
        lf_flush();
        lf_end();
    }
    original(comm, code, error);
}
LF_FORTRAN_CALL(abort, ABORT, (void *comm, void *code, MPI_Fint *error), comm, code, error)

#define LF_FORTRAN_FREE(NAME, UPPER, CALL)                                                                 \
    static void lf_f_##NAME(void (*original)(void *, MPI_Fint *), const void *site, void *comm, MPI_Fint *error) \
    {                                                                                                      \
        if (!lf_begin())                                                                                   \
            return original(comm, error);                                                                  \
        const int64_t words[1] = {lf_forget(PMPI_Comm_f2c(*(MPI_Fint *)comm))};                            \
        const uint64_t start = lf_now();                                                                   \
        original(comm, error);                                                                             \
        lf_put(CALL, start, lf_now(), site, words, 1);                                                     \
        lf_end();                                                                                          \
    }                                                                                                      \
    LF_FORTRAN_CALL(NAME, UPPER, (void *comm, MPI_Fint *error), comm, error)

LF_FORTRAN_FREE(comm_free, COMM_FREE, LF_MPI_Comm_free)
LF_FORTRAN_FREE(comm_disconnect, COMM_DISCONNECT, LF_MPI_Comm_disconnect)

/* Requests as C has them, from before the call; statuses as Fortran has them. */
static MPI_Fint *lf_f_before(struct lf_requests *all, int count, const MPI_Fint *requests, void *statuses)
{
    if (!lf_take(all, count)) {
        lf_release(all);
        return NULL;
    }
    for (int index = 0; index < count; index++)
        all->before[index] = PMPI_Request_f2c(requests[index]);
    return lf_fortran_ignored(statuses) ? (MPI_Fint *)all->statuses : statuses;
}

static void lf_f_completed(struct lf_requests *all, int request, const MPI_Fint *statuses, int nth)
{
    MPI_Status status;
    PMPI_Status_f2c((MPI_Fint *)statuses + (size_t)nth * LF_STATUS_INTS, &status);
    lf_completed(all, all->before[request], &status);
}

static void lf_f_wait(void (*original)(void *, void *, MPI_Fint *), const void *site, void *request, void *status, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, status, error);
    struct lf_requests all;
    MPI_Fint *const received = lf_f_before(&all, 1, request, status);
    const uint64_t start = lf_now();
    original(request, received, error);
    const uint64_t end = lf_now();
    lf_f_completed(&all, 0, received, 0);
    lf_record(&all, LF_MPI_Wait, start, end, site);
}
LF_FORTRAN_CALL(wait, WAIT, (void *request, void *status, MPI_Fint *error), request, status, error)

static void lf_f_test(void (*original)(void *, void *, void *, MPI_Fint *), const void *site, void *request, void *flag, void *status, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, flag, status, error);
    struct lf_requests all;
    MPI_Fint *const received = lf_f_before(&all, 1, request, status);
    const uint64_t start = lf_now();
    original(request, flag, received, error);
    const uint64_t end = lf_now();
    if (LF_INT(flag))
        lf_f_completed(&all, 0, received, 0);
    lf_record(&all, LF_MPI_Test, start, end, site);
}
LF_FORTRAN_CALL(test, TEST, (void *request, void *flag, void *status, MPI_Fint *error), request, flag, status, error)

static void lf_f_waitall(void (*original)(void *, void *, void *, MPI_Fint *), const void *site, void *count, void *requests, void *statuses, MPI_Fint *error)
{
    struct lf_requests all;
    if (!lf_begin())
        return original(count, requests, statuses, error);
    MPI_Fint *const received = lf_f_before(&all, (int)LF_INT(count), requests, statuses);
    const uint64_t start = lf_now();
    original(count, requests, received ? received : statuses, error);
    const uint64_t end = lf_now();
    for (int index = 0; received && index < LF_INT(count); index++)
        lf_f_completed(&all, index, received, index);
    lf_record(&all, LF_MPI_Waitall, start, end, site);
}
LF_FORTRAN_CALL(waitall, WAITALL, (void *count, void *requests, void *statuses, MPI_Fint *error), count, requests, statuses, error)

static void lf_f_testall(void (*original)(void *, void *, void *, void *, MPI_Fint *), const void *site, void *count, void *requests, void *flag, void *statuses, MPI_Fint *error)
{
    struct lf_requests all;
    if (!lf_begin())
        return original(count, requests, flag, statuses, error);
    MPI_Fint *const received = lf_f_before(&all, (int)LF_INT(count), requests, statuses);
    const uint64_t start = lf_now();
    original(count, requests, flag, received ? received : statuses, error);
    const uint64_t end = lf_now();
    for (int index = 0; received && LF_INT(flag) && index < LF_INT(count); index++)
        lf_f_completed(&all, index, received, index);
    lf_record(&all, LF_MPI_Testall, start, end, site);
}
LF_FORTRAN_CALL(testall, TESTALL, (void *count, void *requests, void *flag, void *statuses, MPI_Fint *error), count, requests, flag, statuses, error)

static void lf_f_waitany(void (*original)(void *, void *, void *, void *, MPI_Fint *), const void *site, void *count, void *requests, void *index, void *status, MPI_Fint *error)
{
    struct lf_requests all;
    if (!lf_begin())
        return original(count, requests, index, status, error);
    MPI_Fint *const received = lf_f_before(&all, (int)LF_INT(count), requests, status);
    const uint64_t start = lf_now();
    original(count, requests, index, received ? received : status, error);
    const uint64_t end = lf_now();
    if (received && LF_INT(index) != MPI_UNDEFINED && LF_INT(index) >= 1)
        lf_f_completed(&all, (int)LF_INT(index) - 1, received, 0);
    lf_record(&all, LF_MPI_Waitany, start, end, site);
}
LF_FORTRAN_CALL(waitany, WAITANY, (void *count, void *requests, void *index, void *status, MPI_Fint *error), count, requests, index, status, error)

static void lf_f_testany(void (*original)(void *, void *, void *, void *, void *, MPI_Fint *), const void *site, void *count, void *requests, void *index, void *flag, void *status, MPI_Fint *error)
{
    struct lf_requests all;
    if (!lf_begin())
        return original(count, requests, index, flag, status, error);
    MPI_Fint *const received = lf_f_before(&all, (int)LF_INT(count), requests, status);
    const uint64_t start = lf_now();
    original(count, requests, index, flag, received ? received : status, error);
    const uint64_t end = lf_now();
    if (received && LF_INT(flag) && LF_INT(index) != MPI_UNDEFINED && LF_INT(index) >= 1)
        lf_f_completed(&all, (int)LF_INT(index) - 1, received, 0);
    lf_record(&all, LF_MPI_Testany, start, end, site);
}
LF_FORTRAN_CALL(testany, TESTANY, (void *count, void *requests, void *index, void *flag, void *status, MPI_Fint *error), count, requests, index, flag, status, error)

#define LF_FORTRAN_SOME(NAME, UPPER, CALL)                                                                          \
    static void lf_f_##NAME(void (*original)(void *, void *, void *, void *, void *, MPI_Fint *), const void *site, \
                            void *count, void *requests, void *completed, void *indices, void *statuses, MPI_Fint *error) \
    {                                                                                                               \
        struct lf_requests all;                                                                                     \
        if (!lf_begin())                                                                                            \
            return original(count, requests, completed, indices, statuses, error);                                  \
        MPI_Fint *const received = lf_f_before(&all, (int)LF_INT(count), requests, statuses);                       \
        const uint64_t start = lf_now();                                                                            \
        original(count, requests, completed, indices, received ? received : statuses, error);                       \
        const uint64_t end = lf_now();                                                                              \
        const int64_t done = LF_INT(completed) == MPI_UNDEFINED ? 0 : LF_INT(completed);                            \
        for (int index = 0; received && index < done; index++)                                                      \
            lf_f_completed(&all, ((MPI_Fint *)indices)[index] - 1, received, index);                                \
        lf_record(&all, CALL, start, end, site);                                                                    \
    }                                                                                                               \
    LF_FORTRAN_CALL(NAME, UPPER, (void *count, void *requests, void *completed, void *indices, void *statuses, MPI_Fint *error), count, requests, completed, indices, statuses, error)

LF_FORTRAN_SOME(waitsome, WAITSOME, LF_MPI_Waitsome)
LF_FORTRAN_SOME(testsome, TESTSOME, LF_MPI_Testsome)

static void lf_f_request_free(void (*original)(void *, MPI_Fint *), const void *site, void *request, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, error);
    const int64_t words[1] = {LF_HANDLE(PMPI_Request_f2c(*(MPI_Fint *)request))};
    const uint64_t start = lf_now();
    original(request, error);
    lf_put(LF_MPI_Request_free, start, lf_now(), site, words, 1);
    lf_end();
}
LF_FORTRAN_CALL(request_free, REQUEST_FREE, (void *request, MPI_Fint *error), request, error)

static void lf_f_cancel(void (*original)(void *, MPI_Fint *), const void *site, void *request, MPI_Fint *error)
{
    atomic_store(&lf_may_be_cancelled, 1);
    if (!lf_begin())
        return original(request, error);
    const uint64_t start = lf_now();
    original(request, error);
    lf_put(LF_MPI_Cancel, start, lf_now(), site, NULL, 0);
    lf_end();
}
LF_FORTRAN_CALL(cancel, CANCEL, (void *request, MPI_Fint *error), request, error)

static void lf_f_start(void (*original)(void *, MPI_Fint *), const void *site, void *request, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, error);
    const uint64_t start = lf_now();
    original(request, error);
    const uint64_t end = lf_now();
    const int64_t words[1] = {LF_HANDLE(PMPI_Request_f2c(*(MPI_Fint *)request))};
    lf_put(LF_MPI_Start, start, end, site, words, 1);
    lf_end();
}
LF_FORTRAN_CALL(start, START, (void *request, MPI_Fint *error), request, error)

static void lf_f_startall(void (*original)(void *, void *, MPI_Fint *), const void *site, void *count, void *requests, MPI_Fint *error)
{
    if (!lf_begin())
        return original(count, requests, error);
    const uint64_t start = lf_now();
    original(count, requests, error);
    const uint64_t end = lf_now();
    const int all = (int)LF_INT(count);
    MPI_Request *handles = malloc(((size_t)all + 1) * sizeof *handles);
    for (int index = 0; handles && index < all; index++)
        handles[index] = PMPI_Request_f2c(((MPI_Fint *)requests)[index]);
    if (handles)
        lf_put_handles(LF_MPI_Startall, start, end, site, all, handles);
    free(handles);
    lf_end();
}
LF_FORTRAN_CALL(startall, STARTALL, (void *count, void *requests, MPI_Fint *error), count, requests, error)

#endif
