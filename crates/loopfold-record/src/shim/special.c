
/* ---- calls with code of their own ---- */

#define LF_DEFINE_INIT(CALL, PROTOTYPE, PMPI)                   \
    LF_EXPORT int PROTOTYPE                                     \
    {                                                           \
        if (atomic_load(&lf_state) != LF_OFF || !lf_enter())    \
            return PMPI;                                        \
        const int takes_part = lf_prepare();                    \
        const uint64_t start = lf_start();                      \
        const int result = PMPI;                                \
        if (takes_part && result == MPI_SUCCESS)                \
            lf_started(CALL, start, LF_SITE);                   \
        lf_end();                                               \
        return result;                                          \
    }

LF_DEFINE_INIT(LF_MPI_Init, MPI_Init(int *argc, char ***argv), PMPI_Init(argc, argv))
LF_DEFINE_INIT(LF_MPI_Init_thread, MPI_Init_thread(int *argc, char ***argv, int required, int *provided),
               PMPI_Init_thread(argc, argv, required, provided))

static void lf_finalizing(const void *site)
{
    const uint64_t now = lf_now();
    /* It is merged before MPI ends, so how long that takes is not known. */
    lf_put(LF_MPI_Finalize, now, now - 1, site, NULL, 0);
    lf_merge();
}

/* Wherever it is called from: the other processes wait in it. */
LF_EXPORT int MPI_Finalize(void)
{
    if (lf_comm_own != MPI_COMM_NULL && atomic_load(&lf_state) >= LF_SILENT)
        lf_finalizing(LF_SITE);
    return PMPI_Finalize();
}

LF_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    if (lf_begin()) {
        const uint64_t now = lf_now();
        const int64_t words[1] = {lf_comm(comm)};
        lf_put(LF_MPI_Abort, now, now - 1, LF_SITE, words, 1);
        lf_flush();
        lf_end();
    }
    return PMPI_Abort(comm, code);
}

LF_EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    if (!lf_begin()) {
        lf_forget(comm ? *comm : MPI_COMM_NULL);
        return PMPI_Comm_free(comm);
    }
    const int64_t words[1] = {comm ? lf_comm(*comm) : -1};
    lf_forget(comm ? *comm : MPI_COMM_NULL);
    const uint64_t start = lf_start();
    const int result = PMPI_Comm_free(comm);
    lf_put(LF_MPI_Comm_free, start, lf_now(), LF_SITE, words, 1);
    lf_end();
    return result;
}

LF_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (!lf_begin()) {
        lf_forget(comm ? *comm : MPI_COMM_NULL);
        return PMPI_Comm_disconnect(comm);
    }
    const int64_t words[1] = {comm ? lf_comm(*comm) : -1};
    lf_forget(comm ? *comm : MPI_COMM_NULL);
    const uint64_t start = lf_start();
    const int result = PMPI_Comm_disconnect(comm);
    lf_put(LF_MPI_Comm_disconnect, start, lf_now(), LF_SITE, words, 1);
    lf_end();
    return result;
}

/* Requests and what completes them. A record has a handle and what was received for each. */

enum { LF_FEW = 64 };

struct lf_requests {
    MPI_Request few_requests[LF_FEW];
    MPI_Status few_statuses[LF_FEW];
    int64_t few_words[2 * LF_FEW];
    MPI_Request *before;
    MPI_Status *statuses;
    int64_t *words;
    size_t count;
};

static int lf_take(struct lf_requests *all, int count)
{
    all->before = all->few_requests;
    all->statuses = all->few_statuses;
    all->words = all->few_words;
    all->count = 0;
    if (count > LF_FEW) {
        all->before = malloc((size_t)count * sizeof *all->before);
        all->statuses = malloc((size_t)count * sizeof *all->statuses);
        all->words = malloc(2 * (size_t)count * sizeof *all->words);
    }
    return all->before && all->statuses && all->words;
}

static void lf_release(struct lf_requests *all)
{
    if (all->before != all->few_requests) {
        free(all->before);
        free(all->statuses);
        free(all->words);
    }
    all->before = all->few_requests;
}

/* Until something is cancelled, nobody needs to ask. */
static _Atomic int lf_may_be_cancelled;

static inline int64_t lf_outcome(const MPI_Status *status)
{
    int is_cancelled = 0;
    if (__builtin_expect(atomic_load_explicit(&lf_may_be_cancelled, memory_order_relaxed), 0))
        PMPI_Test_cancelled(status, &is_cancelled);
    return is_cancelled ? INT64_MIN : lf_received(status);
}

static inline void lf_completed(struct lf_requests *all, MPI_Request request, const MPI_Status *status)
{
    if (request == MPI_REQUEST_NULL)
        return;
    all->words[all->count++] = LF_HANDLE(request);
    all->words[all->count++] = lf_outcome(status);
}

/* After a call that failed: those that it has freed nevertheless, or that it says are complete.
 * Nothing else that it returns has a meaning. */
static void lf_completed_despite(struct lf_requests *all, int result, int count, const MPI_Request after[], const MPI_Status statuses[])
{
    int kind = MPI_SUCCESS;
    PMPI_Error_class(result, &kind);
    for (int index = 0; index < count && all->count < 2 * (size_t)count; index++) {
        const int is_said = kind == MPI_ERR_IN_STATUS && statuses && statuses[index].MPI_ERROR != MPI_ERR_PENDING;
        if (all->before[index] == MPI_REQUEST_NULL || (after[index] != MPI_REQUEST_NULL && !is_said))
            continue;
        all->words[all->count++] = LF_HANDLE(all->before[index]);
        all->words[all->count++] = is_said && statuses[index].MPI_ERROR == MPI_SUCCESS ? lf_outcome(statuses + index) : LF_NOT_KNOWN;
    }
}

static inline void lf_record(struct lf_requests *all, unsigned call, uint64_t start, uint64_t end, const void *site)
{
    lf_put(call, start, end, site, all->words, all->count);
    lf_release(all);
    lf_end();
}

/* The requests as they are before the call. Returns whether there is room for them; if there is
 * not, which ones complete is not recorded. This is a part of the call, not of what comes before: it may
 * wait until stores of the last call have reached other cores, as the call itself would. */
static int lf_before(struct lf_requests *all, int count, const MPI_Request requests[])
{
    if (!lf_take(all, count) || !requests) {
        lf_release(all);
        return 0;
    }
    if (count > 0)
        memcpy(all->before, requests, (size_t)count * sizeof *requests);
    return 1;
}

LF_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (!lf_begin())
        return PMPI_Wait(request, status);
    struct lf_requests all;
    const uint64_t start = lf_start();
    const int is_known = lf_before(&all, 1, request);
    MPI_Status *const received = status == MPI_STATUS_IGNORE ? all.statuses : status;
    const int result = PMPI_Wait(request, received);
    const uint64_t end = lf_now();
    if (is_known && result == MPI_SUCCESS)
        lf_completed(&all, all.before[0], received);
    else if (is_known)
        lf_completed_despite(&all, result, 1, request, NULL);
    lf_record(&all, LF_MPI_Wait, start, end, LF_SITE);
    return result;
}

LF_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!lf_begin())
        return PMPI_Test(request, flag, status);
    struct lf_requests all;
    const uint64_t start = lf_start();
    const int is_known = lf_before(&all, 1, request);
    MPI_Status *const received = status == MPI_STATUS_IGNORE ? all.statuses : status;
    const int result = PMPI_Test(request, flag, received);
    const uint64_t end = lf_now();
    if (is_known && result == MPI_SUCCESS && *flag)
        lf_completed(&all, all.before[0], received);
    else if (is_known && result != MPI_SUCCESS)
        lf_completed_despite(&all, result, 1, request, NULL);
    lf_record(&all, LF_MPI_Test, start, end, LF_SITE);
    return result;
}

/* A call that completes some of many requests: `done` says what, if it succeeds. Statuses are of all
 * requests, or of those in the order in which the call names them. */
#define LF_MANY(NAME, PARAMETERS, PLAIN, PASSED, STATUSES, IGNORED, ARE_OF_ALL, DONE)                          \
    LF_EXPORT int MPI_##NAME PARAMETERS                                                                        \
    {                                                                                                          \
        struct lf_requests all;                                                                                \
        if (!lf_begin())                                                                                       \
            return PMPI_##NAME PLAIN;                                                                          \
        const uint64_t start = lf_start();                                                                     \
        const int is_known = lf_before(&all, count, requests);                                                 \
        MPI_Status *const received = is_known && STATUSES == IGNORED ? all.statuses : STATUSES;                \
        const int result = PMPI_##NAME PASSED;                                                                 \
        const uint64_t end = lf_now();                                                                         \
        if (is_known && result == MPI_SUCCESS) {                                                               \
            DONE                                                                                               \
        } else if (is_known) {                                                                                 \
            lf_completed_despite(&all, result, count, requests, ARE_OF_ALL ? received : NULL);                 \
        }                                                                                                      \
        lf_record(&all, LF_MPI_##NAME, start, end, LF_SITE);                                                   \
        return result;                                                                                         \
    }

LF_MANY(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses),
        (count, requests, received), statuses, MPI_STATUSES_IGNORE, 1,
        for (int index = 0; index < count; index++) lf_completed(&all, all.before[index], received + index);)

LF_MANY(Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]), (count, requests, flag, statuses),
        (count, requests, flag, received), statuses, MPI_STATUSES_IGNORE, 1,
        for (int index = 0; *flag && index < count; index++) lf_completed(&all, all.before[index], received + index);)

LF_MANY(Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status), (count, requests, index, status),
        (count, requests, index, received), status, MPI_STATUS_IGNORE, 0,
        if (*index != MPI_UNDEFINED) lf_completed(&all, all.before[*index], received);)

LF_MANY(Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
        (count, requests, index, flag, status), (count, requests, index, flag, received), status, MPI_STATUS_IGNORE, 0,
        if (*flag && *index != MPI_UNDEFINED) lf_completed(&all, all.before[*index], received);)

#define LF_SOME(NAME)                                                                                              \
    LF_MANY(NAME, (int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[]),       \
            (count, requests, completed, indices, statuses), (count, requests, completed, indices, received),      \
            statuses, MPI_STATUSES_IGNORE, 0,                                                                      \
            for (int index = 0; *completed != MPI_UNDEFINED && index < *completed; index++)                        \
                lf_completed(&all, all.before[indices[index]], received + index);)

LF_SOME(Waitsome)
LF_SOME(Testsome)

LF_EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (!lf_begin())
        return PMPI_Request_free(request);
    const int64_t words[1] = {LF_HANDLE(*request)};
    const uint64_t start = lf_start();
    const int result = PMPI_Request_free(request);
    lf_put(LF_MPI_Request_free, start, lf_now(), LF_SITE, words, 1);
    lf_end();
    return result;
}

LF_EXPORT int MPI_Cancel(MPI_Request *request)
{
    atomic_store(&lf_may_be_cancelled, 1);
    if (!lf_begin())
        return PMPI_Cancel(request);
    const uint64_t start = lf_start();
    const int result = PMPI_Cancel(request);
    lf_put(LF_MPI_Cancel, start, lf_now(), LF_SITE, NULL, 0);
    lf_end();
    return result;
}

LF_EXPORT int MPI_Start(MPI_Request *request)
{
    if (!lf_begin())
        return PMPI_Start(request);
    const uint64_t start = lf_start();
    const int result = PMPI_Start(request);
    const uint64_t end = lf_now();
    const int64_t words[1] = {result == MPI_SUCCESS ? LF_HANDLE(*request) : 0};
    lf_put(LF_MPI_Start, start, end, LF_SITE, words, result == MPI_SUCCESS);
    lf_end();
    return result;
}

static void lf_put_handles(unsigned call, uint64_t start, uint64_t end, const void *site, int count, const MPI_Request requests[])
{
    int64_t *words = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *words);
    for (int index = 0; words && index < count; index++)
        words[index] = LF_HANDLE(requests[index]);
    if (words)
        lf_put(call, start, end, site, words, (size_t)count);
    free(words);
}

LF_EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    if (!lf_begin())
        return PMPI_Startall(count, requests);
    const uint64_t start = lf_start();
    const int result = PMPI_Startall(count, requests);
    lf_put_handles(LF_MPI_Startall, start, lf_now(), LF_SITE, result == MPI_SUCCESS ? count : 0, requests);
    lf_end();
    return result;
}

#ifdef LF_HAS_SESSIONS
/* A program with sessions has no moment at which all processes end, so each keeps its part. */
static int lf_sessions;

static void lf_started_session(MPI_Session session, uint64_t start)
{
    MPI_Group world;
    int size = 0;
    if (PMPI_Group_from_session_pset(session, "mpi://WORLD", &world) != MPI_SUCCESS)
        lf_is_ready = 0;
    else {
        PMPI_Group_rank(world, &lf_rank);
        PMPI_Group_size(world, &size);
        PMPI_Group_free(&world);
    }
    lf_comm_taken[0] = lf_comm_taken[1] = 1;
    atomic_store(&lf_comms_used, 2);
    lf_is_counted = lf_introduce(size, (int64_t)start, 0, 0) == LF_RECORDED;
    atomic_store(&lf_state, lf_is_counted ? LF_ON : LF_SILENT);
}

LF_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    if (atomic_load(&lf_state) == LF_OVER || !lf_enter())
        return PMPI_Session_init(info, handler, session);
    const int takes_part = atomic_load(&lf_state) == LF_OFF && lf_prepare();
    const uint64_t start = lf_start();
    const int result = PMPI_Session_init(info, handler, session);
    if (takes_part && result == MPI_SUCCESS)
        lf_started_session(*session, start);
    if (atomic_load(&lf_state) >= LF_SILENT) {
        lf_sessions++;
        lf_put(LF_MPI_Session_init, start, lf_now(), LF_SITE, NULL, 0);
    }
    lf_end();
    return result;
}

LF_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
    if (!lf_begin())
        return PMPI_Session_finalize(session);
    const uint64_t start = lf_start();
    const int result = PMPI_Session_finalize(session);
    lf_put(LF_MPI_Session_finalize, start, lf_now(), LF_SITE, NULL, 0);
    if (--lf_sessions == 0 && lf_comm_own == MPI_COMM_NULL) {
        char answer[600];
        lf_ask(answer, sizeof answer, "S\n");
    }
    lf_end();
    return result;
}
#endif
