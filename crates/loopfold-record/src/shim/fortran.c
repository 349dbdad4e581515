
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

/* The error is optional in mpi_f08; whether the call succeeds must be known. */
#define LF_OWN_ERROR                \
    MPI_Fint lf_error = MPI_SUCCESS; \
    error = error ? error : &lf_error

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
    if (atomic_load(&lf_state) != LF_OFF || !lf_enter())
        return original(error);
    LF_OWN_ERROR;
    const int takes_part = lf_prepare();
    const uint64_t start = lf_start();
    original(error);
    if (takes_part && *error == MPI_SUCCESS)
        lf_started(LF_MPI_Init, start, site);
    lf_end();
}
LF_FORTRAN_CALL(init, INIT, (MPI_Fint * error), error)

static void lf_f_init_thread(void (*original)(void *, void *, MPI_Fint *), const void *site, void *required, void *provided, MPI_Fint *error)
{
    if (atomic_load(&lf_state) != LF_OFF || !lf_enter())
        return original(required, provided, error);
    LF_OWN_ERROR;
    const int takes_part = lf_prepare();
    const uint64_t start = lf_start();
    original(required, provided, error);
    if (takes_part && *error == MPI_SUCCESS)
        lf_started(LF_MPI_Init_thread, start, site);
    lf_end();
}
LF_FORTRAN_CALL(init_thread, INIT_THREAD, (void *required, void *provided, MPI_Fint *error), required, provided, error)

static void lf_f_finalize(void (*original)(MPI_Fint *), const void *site, MPI_Fint *error)
{
    if (lf_comm_own != MPI_COMM_NULL && atomic_load(&lf_state) >= LF_SILENT)
        lf_finalizing(site);
    original(error);
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
        const MPI_Comm freed = PMPI_Comm_f2c(*(MPI_Fint *)comm);                                           \
        if (!lf_begin()) {                                                                                 \
            lf_forget(freed);                                                                              \
            return original(comm, error);                                                                  \
        }                                                                                                  \
        const int64_t words[1] = {lf_comm(freed)};                                                         \
        lf_forget(freed);                                                                                  \
        const uint64_t start = lf_start();                                                                   \
        original(comm, error);                                                                             \
        lf_put(CALL, start, lf_now(), site, words, 1);                                                     \
        lf_end();                                                                                          \
    }                                                                                                      \
    LF_FORTRAN_CALL(NAME, UPPER, (void *comm, MPI_Fint *error), comm, error)

LF_FORTRAN_FREE(comm_free, COMM_FREE, LF_MPI_Comm_free)
LF_FORTRAN_FREE(comm_disconnect, COMM_DISCONNECT, LF_MPI_Comm_disconnect)

/* Requests as C has them, from before the call; statuses as Fortran has them. Returns NULL if there
 * is no room for them. */
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

/* As in C; one after the other. */
static void lf_f_completed_despite(struct lf_requests *all, int result, int count, const MPI_Fint *requests, const MPI_Fint *statuses)
{
    const MPI_Request *const before = all->before;
    for (int index = 0; index < count; index++) {
        const MPI_Request after = PMPI_Request_f2c(requests[index]);
        struct lf_requests one;
        MPI_Status status;
        lf_take(&one, 1);
        one.before[0] = before[index];
        if (statuses)
            PMPI_Status_f2c((MPI_Fint *)statuses + (size_t)index * LF_STATUS_INTS, &status);
        lf_completed_despite(&one, result, 1, &after, statuses ? &status : NULL);
        for (size_t word = 0; word < one.count; word++)
            all->words[all->count++] = one.words[word];
    }
}

/* A call that completes some of `count` requests: what is done if it succeeds. */
#define LF_F_MANY(NAME, UPPER, CALL, TYPES, PARAMETERS, PLAIN, PASSED, COUNT, REQUESTS, STATUSES, OF_ALL, DONE) \
    static void lf_f_##NAME(void(*original) TYPES, const void *site, LF_UNPACK PARAMETERS)               \
    {                                                                                                    \
        if (!lf_begin())                                                                                 \
            return original PLAIN;                                                                       \
        LF_OWN_ERROR;                                                                                    \
        struct lf_requests all;                                                                          \
        const int many = (int)(COUNT);                                                                   \
        const uint64_t start = lf_start();                                                               \
        MPI_Fint *const known = lf_f_before(&all, many, REQUESTS, STATUSES);                             \
        void *const received = known ? known : STATUSES;                                                 \
        original PASSED;                                                                                 \
        const uint64_t end = lf_now();                                                                   \
        if (known && *error == MPI_SUCCESS) {                                                            \
            DONE                                                                                         \
        } else if (known) {                                                                              \
            lf_f_completed_despite(&all, *error, many, REQUESTS, OF_ALL ? known : NULL);                 \
        }                                                                                                \
        lf_record(&all, CALL, start, end, site);                                                         \
    }                                                                                                    \
    LF_FORTRAN_CALL(NAME, UPPER, PARAMETERS, LF_UNPACK PLAIN)
#define LF_UNPACK(...) __VA_ARGS__

LF_F_MANY(wait, WAIT, LF_MPI_Wait, (void *, void *, MPI_Fint *), (void *request, void *status, MPI_Fint *error),
          (request, status, error), (request, received, error), 1, request, status, 0,
          lf_f_completed(&all, 0, known, 0);)

LF_F_MANY(test, TEST, LF_MPI_Test, (void *, void *, void *, MPI_Fint *),
          (void *request, void *flag, void *status, MPI_Fint *error), (request, flag, status, error),
          (request, flag, received, error), 1, request, status, 0,
          if (LF_INT(flag)) lf_f_completed(&all, 0, known, 0);)

LF_F_MANY(waitall, WAITALL, LF_MPI_Waitall, (void *, void *, void *, MPI_Fint *),
          (void *count, void *requests, void *statuses, MPI_Fint *error), (count, requests, statuses, error),
          (count, requests, received, error), LF_INT(count), requests, statuses, 1,
          for (int index = 0; index < many; index++) lf_f_completed(&all, index, known, index);)

LF_F_MANY(testall, TESTALL, LF_MPI_Testall, (void *, void *, void *, void *, MPI_Fint *),
          (void *count, void *requests, void *flag, void *statuses, MPI_Fint *error), (count, requests, flag, statuses, error),
          (count, requests, flag, received, error), LF_INT(count), requests, statuses, 1,
          for (int index = 0; LF_INT(flag) && index < many; index++) lf_f_completed(&all, index, known, index);)

LF_F_MANY(waitany, WAITANY, LF_MPI_Waitany, (void *, void *, void *, void *, MPI_Fint *),
          (void *count, void *requests, void *index, void *status, MPI_Fint *error), (count, requests, index, status, error),
          (count, requests, index, received, error), LF_INT(count), requests, status, 0,
          if (LF_INT(index) != MPI_UNDEFINED && LF_INT(index) >= 1) lf_f_completed(&all, (int)LF_INT(index) - 1, known, 0);)

LF_F_MANY(testany, TESTANY, LF_MPI_Testany, (void *, void *, void *, void *, void *, MPI_Fint *),
          (void *count, void *requests, void *index, void *flag, void *status, MPI_Fint *error),
          (count, requests, index, flag, status, error), (count, requests, index, flag, received, error), LF_INT(count), requests, status, 0,
          if (LF_INT(flag) && LF_INT(index) != MPI_UNDEFINED && LF_INT(index) >= 1) lf_f_completed(&all, (int)LF_INT(index) - 1, known, 0);)

#define LF_F_SOME(NAME, UPPER, CALL)                                                                                \
    LF_F_MANY(NAME, UPPER, CALL, (void *, void *, void *, void *, void *, MPI_Fint *),                              \
              (void *count, void *requests, void *completed, void *indices, void *statuses, MPI_Fint *error),       \
              (count, requests, completed, indices, statuses, error),                                               \
              (count, requests, completed, indices, received, error), LF_INT(count), requests, statuses, 0,         \
              for (int index = 0; LF_INT(completed) != MPI_UNDEFINED && index < LF_INT(completed); index++)         \
                  lf_f_completed(&all, ((MPI_Fint *)indices)[index] - 1, known, index);)

LF_F_SOME(waitsome, WAITSOME, LF_MPI_Waitsome)
LF_F_SOME(testsome, TESTSOME, LF_MPI_Testsome)

static void lf_f_request_free(void (*original)(void *, MPI_Fint *), const void *site, void *request, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, error);
    const int64_t words[1] = {LF_HANDLE(PMPI_Request_f2c(*(MPI_Fint *)request))};
    const uint64_t start = lf_start();
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
    const uint64_t start = lf_start();
    original(request, error);
    lf_put(LF_MPI_Cancel, start, lf_now(), site, NULL, 0);
    lf_end();
}
LF_FORTRAN_CALL(cancel, CANCEL, (void *request, MPI_Fint *error), request, error)

static void lf_f_start(void (*original)(void *, MPI_Fint *), const void *site, void *request, MPI_Fint *error)
{
    if (!lf_begin())
        return original(request, error);
    LF_OWN_ERROR;
    const uint64_t start = lf_start();
    original(request, error);
    const uint64_t end = lf_now();
    const int64_t words[1] = {LF_HANDLE(PMPI_Request_f2c(*(MPI_Fint *)request))};
    lf_put(LF_MPI_Start, start, end, site, words, *error == MPI_SUCCESS);
    lf_end();
}
LF_FORTRAN_CALL(start, START, (void *request, MPI_Fint *error), request, error)

static void lf_f_startall(void (*original)(void *, void *, MPI_Fint *), const void *site, void *count, void *requests, MPI_Fint *error)
{
    if (!lf_begin())
        return original(count, requests, error);
    LF_OWN_ERROR;
    const uint64_t start = lf_start();
    original(count, requests, error);
    const uint64_t end = lf_now();
    const int all = *error == MPI_SUCCESS ? (int)LF_INT(count) : 0;
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
