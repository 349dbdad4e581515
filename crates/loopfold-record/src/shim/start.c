/* ---- clocks ---- */

/* How far the clock of rank 0 is ahead of this one: half of the fastest of some round trips, and
 * when that was measured, by the own clock. Only one process of each node measures, as the others
 * have the same clock. */
static int64_t lf_clock_offset(int64_t *measured)
{
    enum { ROUNDS = 20, TAG = 77 };
    MPI_Comm node = MPI_COMM_NULL;
    int node_rank = 0, *leaders = calloc((size_t)lf_size, sizeof *leaders);
    if (!leaders)
        return 0;
    if (!lf_is_skewed) {
        PMPI_Comm_split_type(lf_comm_own, MPI_COMM_TYPE_SHARED, lf_rank, MPI_INFO_NULL, &node);
        PMPI_Comm_rank(node, &node_rank);
    }
    const int leads = node_rank == 0;
    PMPI_Allgather(&leads, 1, MPI_INT, leaders, 1, MPI_INT, lf_comm_own);
    int64_t offset = 0;
    *measured = (int64_t)lf_now();
    for (int leader = 1; leader < lf_size; leader++) {
        if (!leaders[leader] || (lf_rank != 0 && lf_rank != leader))
            continue;
        uint64_t fastest = UINT64_MAX;
        for (int round = 0; round < ROUNDS; round++) {
            if (lf_rank == 0) {
                int64_t time = 0;
                PMPI_Recv(&time, 1, MPI_INT64_T, leader, TAG, lf_comm_own, MPI_STATUS_IGNORE);
                time = (int64_t)lf_now();
                PMPI_Send(&time, 1, MPI_INT64_T, leader, TAG, lf_comm_own);
            } else {
                const uint64_t before = lf_now();
                int64_t time = 0;
                PMPI_Send(&time, 1, MPI_INT64_T, 0, TAG, lf_comm_own);
                PMPI_Recv(&time, 1, MPI_INT64_T, 0, TAG, lf_comm_own, MPI_STATUS_IGNORE);
                const uint64_t after = lf_now();
                if (after - before < fastest) {
                    fastest = after - before;
                    *measured = (int64_t)(before + fastest / 2);
                    offset = time - *measured;
                }
            }
        }
    }
    if (node != MPI_COMM_NULL) {
        int64_t both[2] = {offset, *measured};
        PMPI_Bcast(both, 2, MPI_INT64_T, 0, node);
        offset = both[0];
        *measured = both[1];
        PMPI_Comm_free(&node);
    }
    free(leaders);
    return offset;
}

/* ---- start and end ---- */

/* Asked before anything else: with another MPI, not even handles have the same size. */
static int lf_is_this_mpi(char *version)
{
#if defined(OPEN_MPI)
    char expected[64];
    snprintf(expected, sizeof expected, "Open MPI v%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
    const char *expected = MPICH_VERSION;
#else
    const char *expected = "";
#endif
    int length = 0;
    PMPI_Get_library_version(version, &length);
    return strstr(version, expected) != NULL;
}

/* For the tests: clocks that differ, as those of nodes do. */
static uint64_t lf_skew_clock(uint64_t start)
{
    const char *skew = getenv("LOOPFOLD_RECORD_CLOCK_SKEW");
    if (!skew)
        return start;
    long long by_rank = 0, by_second = 0;
    sscanf(skew, "%lld,%lld", &by_rank, &by_second);
    lf_is_skewed = 1;
    lf_skew_since = (int64_t)start;
    lf_skew_by_second = by_second * lf_rank;
    lf_skew = by_rank * lf_rank;
    return start + (uint64_t)lf_skew;
}

/* A number that no other job has. */
static int64_t lf_new_job(void)
{
    int64_t job = 0;
    if (getrandom(&job, sizeof job, GRND_NONBLOCK) != sizeof job)
        job = (int64_t)(lf_now() * 0x9e3779b97f4a7c15u) ^ getpid();
    return job & INT64_MAX;
}

/* Where the events of this process are until all are merged. */
static char lf_folder[4200];

enum lf_begun {
    LF_NOT_RECORDED,
    LF_RECORDED,
    /* The output is that of another job. */
    LF_TAKEN
};

/* Introduces the process to the helper, with the time that is 0, how far its clock was behind and
 * when, and its job. */
static enum lf_begun lf_introduce(int64_t base, int64_t offset, int64_t measured, int64_t job)
{
    char *const answer = lf_folder;
    if (!lf_is_ready)
        return LF_NOT_RECORDED;
    if (lf_ask(answer, sizeof lf_folder, "I %d %d %lld %lld %lld %lld\n", lf_rank, (int)getpid(), (long long)base, (long long)offset, (long long)measured, (long long)job) == 0 && strncmp(answer, "ok ", 3) == 0) {
        memmove(answer, answer + 3, strlen(answer + 3) + 1);
        return LF_RECORDED;
    }
    const int is_taken = strncmp(answer, "taken ", 6) == 0;
    lf_complain("rank %d is not recorded: %s", lf_rank, is_taken ? answer + 6 : *answer ? answer : lf_no_answer());
    *answer = 0;
    lf_hang_up();
    return is_taken ? LF_TAKEN : LF_NOT_RECORDED;
}

/* Begins recording in all processes: rank 0 first, which claims the output for the job. */
static enum lf_begun lf_begin_recording(int64_t base, int64_t offset, int64_t measured)
{
    enum lf_begun begun = LF_NOT_RECORDED;
    int64_t job[2] = {0, 0};
    if (lf_rank == 0) {
        job[0] = lf_new_job();
        begun = lf_introduce(base, offset, measured, job[0]);
        job[1] = begun;
    }
    PMPI_Bcast(job, 2, MPI_INT64_T, 0, lf_comm_own);
    if (lf_rank == 0)
        return begun;
    if (job[1] != LF_TAKEN)
        return lf_introduce(base, offset, measured, job[0]);
    lf_hang_up();
    return LF_TAKEN;
}

/* Set if the output is that of another job, so that this one has none. */
static int lf_is_taken;

/* All processes take part in this, also those that cannot be recorded. */
static void lf_started(unsigned call, uint64_t start, const void *site)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &lf_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &lf_size);
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (lf_rank == 0)
            lf_complain("processes that MPI_Comm_spawn starts are not recorded");
        return lf_hang_up();
    }
    start = lf_skew_clock(start);
    PMPI_Comm_dup(MPI_COMM_WORLD, &lf_comm_own);
    int64_t measured = 0;
    const int64_t offset = lf_clock_offset(&measured);
    int64_t own = (int64_t)start + offset, base = 0;
    PMPI_Allreduce(&own, &base, 1, MPI_INT64_T, MPI_MIN, lf_comm_own);
    lf_keep(MPI_COMM_WORLD, 0, 0);
    lf_keep(MPI_COMM_SELF, 1, 0);
    const enum lf_begun begun = lf_begin_recording(base, offset, measured);
    lf_is_taken = begun == LF_TAKEN;
    lf_is_counted = begun == LF_RECORDED;
    atomic_store(&lf_state, begun == LF_RECORDED ? LF_ON : LF_SILENT);
    lf_announce(MPI_COMM_WORLD, 0, 0);
    lf_announce(MPI_COMM_SELF, 1, 1);
    lf_put(call, start, lf_now(), site, NULL, 0);
}

/* One thread finalizes. */
static char lf_part[1 << 20];

/* Sends the folded events of this rank and of those below it in the tree, as the helper gives them,
 * part by part; -1 says that there are none. */
static void lf_send_up(int is_complete, int to)
{
    char answer[64];
    long long size = -1;
    if (!is_complete || lf_ask(answer, sizeof answer, "X\n") < 0 || sscanf(answer, "%lld", &size) != 1 || size <= 0)
        size = -1;
    int64_t left = size;
    PMPI_Send(&left, 1, MPI_INT64_T, to, 78, lf_comm_own);
    while (left > 0) {
        const int length = left < (int64_t)sizeof lf_part ? (int)left : (int)sizeof lf_part;
        /* If the helper is gone, what is sent makes no archive, and the other side notices. */
        if (lf_receive_all(lf_part, (size_t)length) < 0)
            memset(lf_part, 0, (size_t)length);
        PMPI_Send(lf_part, length, MPI_BYTE, to, 78, lf_comm_own);
        left -= length;
    }
}

/* Receives what another rank sends up and passes it to the helper. Returns whether that merged it;
 * all of it is received in any case. */
static int lf_receive_up(int from, int is_complete, char *answer, size_t room)
{
    int64_t left = -1;
    PMPI_Recv(&left, 1, MPI_INT64_T, from, 78, lf_comm_own, MPI_STATUS_IGNORE);
    char head[64];
    const int head_length = snprintf(head, sizeof head, "M %lld\n", (long long)left);
    int is_passed = is_complete && left > 0 && lf_send_all(head, (size_t)head_length) == 0;
    while (left > 0) {
        const int length = left < (int64_t)sizeof lf_part ? (int)left : (int)sizeof lf_part;
        PMPI_Recv(lf_part, length, MPI_BYTE, from, 78, lf_comm_own, MPI_STATUS_IGNORE);
        is_passed = is_passed && lf_send_all(lf_part, (size_t)length) == 0;
        left -= length;
    }
    return is_passed && lf_receive_line(answer, room) == 0 && strcmp(answer, "ok") == 0;
}

/* Says why there is no archive, and where the events are. */
static void lf_complain_of_merge(const char *answer)
{
    struct stat about;
    const char *why = strcmp(answer, "ok") ? answer : "";
    if (!*lf_folder)
        snprintf(lf_folder, sizeof lf_folder, "%s.parts", getenv("LOOPFOLD_RECORD"));
    const int is_there = stat(lf_folder, &about) == 0;
    lf_complain("the ranks cannot be merged%s%s%s%s", *why ? ": " : "", why, is_there ? "; what was recorded is in the folder " : "", is_there ? lf_folder : "");
}

/* No more events come. Returns whether the helper has all that were sent, or why not. */
static int lf_end_events(int64_t offset, int64_t measured, char *answer, size_t room)
{
    unsigned long long recorded = 0, lost_paths = 0;
    if (lf_ask(answer, room, "O %lld %lld\n", (long long)offset, (long long)measured) < 0)
        snprintf(answer, room, "%s", lf_no_answer());
    const int is_complete = sscanf(answer, "ok %llu %llu", &recorded, &lost_paths) == 2;
    if (is_complete) {
        lf_recorded = recorded;
        lf_lost_paths = lost_paths;
        strcpy(answer, "ok");
    } else
        snprintf(lf_why, sizeof lf_why, "%s", answer);
    return is_complete;
}

/* Merges all ranks over a binomial tree; rank 0 writes the archive. */
static void lf_merge(void)
{
    char answer[600] = "";
    int is_complete = atomic_load(&lf_state) == LF_ON;
    atomic_store(&lf_state, LF_OVER);
    int64_t measured = 0;
    const int64_t offset = lf_clock_offset(&measured);
    is_complete = is_complete && lf_end_events(offset, measured, answer, sizeof answer);
    lf_compare(lf_produced());
    int step = 1;
    for (; step < lf_size && !(lf_rank & step); step *= 2) {
        if (lf_rank + step >= lf_size)
            continue;
        is_complete = lf_receive_up(lf_rank + step, is_complete, answer, sizeof answer);
    }
    int is_written = 0;
    if (lf_rank != 0) {
        lf_send_up(is_complete, lf_rank - step);
    } else if (is_complete) {
        is_written = lf_ask(answer, sizeof answer, "F\n") == 0 && strcmp(answer, "ok") == 0;
    }
    if (lf_rank == 0 && !is_written && !lf_is_taken)
        lf_complain_of_merge(answer);
    PMPI_Bcast(&is_written, 1, MPI_INT, 0, lf_comm_own);
    if (lf_socket >= 0)
        lf_ask(answer, sizeof answer, is_written ? "D\n" : "K\n");
    PMPI_Comm_free(&lf_comm_own);
    lf_hang_up();
}

/* What was recorded so far is written before the program is killed. */
static void lf_flush(void)
{
    char answer[64];
    if (atomic_load(&lf_state) == LF_ON)
        lf_ask(answer, sizeof answer, "S\n");
}

/* Leaves a mark beside the library, by which it is compiled anew, but not at once: other processes of
 * this execution still load it, and all must do the same. */
static void lf_mark_as_stale(void)
{
    const char *own = getenv("LOOPFOLD_RECORD_SHIM");
    char mark[4096];
    const size_t length = own ? strlen(own) : 0;
    if (length < 3 || length >= sizeof mark - 8 || strcmp(own + length - 3, ".so") != 0)
        return;
    memcpy(mark, own, length - 3);
    strcpy(mark + length - 3, ".stale");
    const int file = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
}

/* Of several processes the first says it. */
static int lf_is_first(void)
{
    const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (unsigned index = 0; index < sizeof names / sizeof *names; index++) {
        const char *rank = getenv(names[index]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return 1;
}

/* The program starts once more without this library, which was built for another MPI and would be
 * in its way. */
__attribute__((constructor)) static void lf_loaded(int argc, char **argv)
{
    char *const version = lf_version;
    if (!getenv("LOOPFOLD_RECORD"))
        return;
    if (lf_is_this_mpi(version))
        return lf_watch_exit();
    lf_is_other_mpi = 1;
    version[strcspn(version, "\n")] = 0;
    lf_mark_as_stale();
    if (lf_is_first())
        lf_complain("the recorder was built for another MPI than that of the program (%.60s), so nothing is recorded; a minute from now it is rebuilt, with the compiler that --mpicc names", version);
    if (argc > 0 && lf_leave_preload())
        execve("/proc/self/exe", argv, environ);
}

__attribute__((destructor)) static void lf_unloaded(void)
{
    const char *pid = getenv("LOOPFOLD_RECORD_PID"), *output = getenv("LOOPFOLD_RECORD");
    char folder[4096];
    struct stat about;
    if (!pid || !output || getpid() != atoi(pid) || lf_is_prepared)
        return;
    snprintf(folder, sizeof folder, "%s.parts", output);
    if (stat(folder, &about) < 0 && stat(output, &about) < 0)
        lf_complain("the program did not call MPI_Init, so nothing was recorded");
}

/* ---- regions ---- */

static void lf_region(unsigned kind, const char *name, const void *site)
{
    if (!lf_begin())
        return;
    int64_t words[34] = {0};
    const size_t length = strnlen(name, 256);
    words[0] = (int64_t)length;
    memcpy(words + 1, name, length);
    const uint64_t now = lf_start();
    lf_put(kind, now, now, site, words, 1 + (length + 7) / 8);
    lf_end();
}

LF_EXPORT void loopfold_enter_region(const char *name) { lf_region(LF_ENTER, name, LF_SITE); }
LF_EXPORT void loopfold_leave_region(const char *name) { lf_region(LF_LEAVE, name, LF_SITE); }
LF_EXPORT void loopfold_mark_place(const char *name) { lf_region(LF_MARK, name, LF_SITE); }
