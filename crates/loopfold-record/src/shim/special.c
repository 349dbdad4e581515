
/* ---- calls with code of their own ---- */

#define LF_DEFINE_INIT(CALL, PROTOTYPE, PMPI)                   \
    LF_EXPORT int PROTOTYPE                                     \
    {                                                           \
        if (lf_depth > 0 || atomic_load(&lf_state) != LF_OFF)   \
            return PMPI;                                        \
        lf_depth++;                                             \
        const int is_ready = lf_prepare();                      \
        const uint64_t start = lf_now();                        \
        const int result = PMPI;                                \
        if (is_ready && result == MPI_SUCCESS)                  \
            lf_started(CALL, start, LF_SITE);                   \
        lf_depth--;                                             \
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

LF_EXPORT int MPI_Finalize(void)
{
    lf_depth++;
    if (lf_depth == 1 && lf_comm_own != MPI_COMM_NULL)
        lf_finalizing(LF_SITE);
    const int result = PMPI_Finalize();
    lf_depth--;
    return result;
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
    if (!lf_begin())
        return PMPI_Comm_free(comm);
    const int64_t words[1] = {lf_forget(*comm)};
    const uint64_t start = lf_now();
    const int result = PMPI_Comm_free(comm);
    lf_put(LF_MPI_Comm_free, start, lf_now(), LF_SITE, words, 1);
    lf_end();
    return result;
}

LF_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (!lf_begin())
        return PMPI_Comm_disconnect(comm);
    const int64_t words[1] = {lf_forget(*comm)};
    const uint64_t start = lf_now();
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

static inline void lf_record(struct lf_requests *all, unsigned call, uint64_t start, uint64_t end, const void *site)
{
    lf_put(call, start, end, site, all->words, all->count);
    lf_release(all);
    lf_end();
}

LF_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (!lf_begin())
        return PMPI_Wait(request, status);
    struct lf_requests all;
    lf_take(&all, 1);
    all.before[0] = *request;
    MPI_Status *const received = status == MPI_STATUS_IGNORE ? all.statuses : status;
    const uint64_t start = lf_now();
    const int result = PMPI_Wait(request, received);
    const uint64_t end = lf_now();
    lf_completed(&all, all.before[0], received);
    lf_record(&all, LF_MPI_Wait, start, end, LF_SITE);
    return result;
}

LF_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!lf_begin())
        return PMPI_Test(request, flag, status);
    struct lf_requests all;
    lf_take(&all, 1);
    all.before[0] = *request;
    MPI_Status *const received = status == MPI_STATUS_IGNORE ? all.statuses : status;
    const uint64_t start = lf_now();
    const int result = PMPI_Test(request, flag, received);
    const uint64_t end = lf_now();
    if (*flag)
        lf_completed(&all, all.before[0], received);
    lf_record(&all, LF_MPI_Test, start, end, LF_SITE);
    return result;
}

static MPI_Status *lf_before_many(struct lf_requests *all, int count, MPI_Request requests[], MPI_Status *statuses, int ignored)
{
    if (!lf_take(all, count)) {
        lf_release(all);
        return NULL;
    }
    if (count > 0)
        memcpy(all->before, requests, (size_t)count * sizeof *requests);
    return ignored ? all->statuses : statuses;
}

LF_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct lf_requests all;
    if (!lf_begin())
        return PMPI_Waitall(count, requests, statuses);
    MPI_Status *const received = lf_before_many(&all, count, requests, statuses, statuses == MPI_STATUSES_IGNORE);
    const uint64_t start = lf_now();
    const int result = PMPI_Waitall(count, requests, received ? received : statuses);
    const uint64_t end = lf_now();
    for (int index = 0; received && index < count; index++)
        lf_completed(&all, all.before[index], received + index);
    lf_record(&all, LF_MPI_Waitall, start, end, LF_SITE);
    return result;
}

LF_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct lf_requests all;
    if (!lf_begin())
        return PMPI_Testall(count, requests, flag, statuses);
    MPI_Status *const received = lf_before_many(&all, count, requests, statuses, statuses == MPI_STATUSES_IGNORE);
    const uint64_t start = lf_now();
    const int result = PMPI_Testall(count, requests, flag, received ? received : statuses);
    const uint64_t end = lf_now();
    for (int index = 0; received && *flag && index < count; index++)
        lf_completed(&all, all.before[index], received + index);
    lf_record(&all, LF_MPI_Testall, start, end, LF_SITE);
    return result;
}

LF_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct lf_requests all;
    if (!lf_begin())
        return PMPI_Waitany(count, requests, index, status);
    MPI_Status *const received = lf_before_many(&all, count, requests, status, status == MPI_STATUS_IGNORE);
    const uint64_t start = lf_now();
    const int result = PMPI_Waitany(count, requests, index, received ? received : status);
    const uint64_t end = lf_now();
    if (received && *index != MPI_UNDEFINED)
        lf_completed(&all, all.before[*index], received);
    lf_record(&all, LF_MPI_Waitany, start, end, LF_SITE);
    return result;
}

LF_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct lf_requests all;
    if (!lf_begin())
        return PMPI_Testany(count, requests, index, flag, status);
    MPI_Status *const received = lf_before_many(&all, count, requests, status, status == MPI_STATUS_IGNORE);
    const uint64_t start = lf_now();
    const int result = PMPI_Testany(count, requests, index, flag, received ? received : status);
    const uint64_t end = lf_now();
    if (received && *flag && *index != MPI_UNDEFINED)
        lf_completed(&all, all.before[*index], received);
    lf_record(&all, LF_MPI_Testany, start, end, LF_SITE);
    return result;
}

#define LF_DEFINE_SOME(NAME)                                                                                        \
    LF_EXPORT int MPI_##NAME(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[]) \
    {                                                                                                               \
        struct lf_requests all;                                                                                     \
        if (!lf_begin())                                                                                            \
            return PMPI_##NAME(count, requests, completed, indices, statuses);                                      \
        MPI_Status *const received = lf_before_many(&all, count, requests, statuses, statuses == MPI_STATUSES_IGNORE); \
        const uint64_t start = lf_now();                                                                            \
        const int result = PMPI_##NAME(count, requests, completed, indices, received ? received : statuses);        \
        const uint64_t end = lf_now();                                                                              \
        for (int index = 0; received && *completed != MPI_UNDEFINED && index < *completed; index++)                 \
            lf_completed(&all, all.before[indices[index]], received + index);                                       \
        lf_record(&all, LF_MPI_##NAME, start, end, LF_SITE);                                                        \
        return result;                                                                                              \
    }

LF_DEFINE_SOME(Waitsome)
LF_DEFINE_SOME(Testsome)

LF_EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (!lf_begin())
        return PMPI_Request_free(request);
    const int64_t words[1] = {LF_HANDLE(*request)};
    const uint64_t start = lf_now();
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
    const uint64_t start = lf_now();
    const int result = PMPI_Cancel(request);
    lf_put(LF_MPI_Cancel, start, lf_now(), LF_SITE, NULL, 0);
    lf_end();
    return result;
}

LF_EXPORT int MPI_Start(MPI_Request *request)
{
    if (!lf_begin())
        return PMPI_Start(request);
    const uint64_t start = lf_now();
    const int result = PMPI_Start(request);
    const uint64_t end = lf_now();
    const int64_t words[1] = {LF_HANDLE(*request)};
    lf_put(LF_MPI_Start, start, end, LF_SITE, words, 1);
    lf_end();
    return result;
}

static void lf_put_handles(unsigned call, uint64_t start, uint64_t end, const void *site, int count, const MPI_Request requests[])
{
    int64_t *words = malloc(((size_t)count + 1) * sizeof *words);
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
    const uint64_t start = lf_now();
    const int result = PMPI_Startall(count, requests);
    lf_put_handles(LF_MPI_Startall, start, lf_now(), LF_SITE, count, requests);
    lf_end();
    return result;
}

#ifdef LF_HAS_SESSIONS
/* A program with sessions has no moment at which all processes end, so each keeps its part. */
static int lf_sessions;

LF_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    if (lf_depth > 0)
        return PMPI_Session_init(info, handler, session);
    lf_depth++;
    const int is_ready = atomic_load(&lf_state) == LF_OFF && lf_prepare();
    const uint64_t start = lf_now();
    const int result = PMPI_Session_init(info, handler, session);
    MPI_Group world;
    char answer[600] = "";
    if (is_ready && result == MPI_SUCCESS && PMPI_Group_from_session_pset(*session, "mpi://WORLD", &world) == MPI_SUCCESS) {
        int size = 0;
        PMPI_Group_rank(world, &lf_rank);
        PMPI_Group_size(world, &size);
        PMPI_Group_free(&world);
        if (lf_ask(answer, sizeof answer, "I %d %d %d %lld 0 0\n", lf_rank, size, (int)getpid(), (long long)start) == 0 && strcmp(answer, "ok") == 0) {
            lf_comm_taken[0] = lf_comm_taken[1] = 1;
            atomic_store(&lf_comms_used, 2);
            atomic_store(&lf_state, LF_ON);
        }
    }
    if (atomic_load(&lf_state) == LF_ON) {
        lf_sessions++;
        lf_put(LF_MPI_Session_init, start, lf_now(), LF_SITE, NULL, 0);
    }
    lf_depth--;
    return result;
}

LF_EXPORT int MPI_Session_finalize(MPI_Session *session)
{
    if (!lf_begin())
        return PMPI_Session_finalize(session);
    const uint64_t start = lf_now();
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
