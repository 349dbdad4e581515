
/* ---- what was not recorded ----
 *
 * Both ends count: this library every event that the program has, the helper those that it has folded
 * or saved. They are compared when MPI ends, or when the program ends without that. A difference is
 * one line for each rank, and the status of a program that ends well is then 2. Nothing else in the
 * program learns of it. What is lost of paths is no call, and has a line of its own. */

enum { LF_STATUS_OF_LOSS = 2 };

/* How many events the helper has at the end, if it has answered; how many of paths it knows to be
 * lost, at least. */
static uint64_t lf_recorded = UINT64_MAX, lf_lost_paths;
static int lf_are_missing, lf_is_compared;

static void lf_flush(void);

/* Why there is no answer. */
static const char *lf_no_answer(void)
{
    return atomic_load(&lf_is_given_up) ? LF_NO_ANSWER : "the process that folds has ended";
}

static uint64_t lf_shared_number(size_t at)
{
    return atomic_load((_Atomic uint64_t *)(lf_memory + at));
}

/* The events of all threads. */
static uint64_t lf_produced(void)
{
    uint64_t events = lf_shared_number(LF_OTHERS);
    for (unsigned number = 0; number < lf_lanes_most; number++)
        events += atomic_load(&((struct lf_shared_lane *)lf_memory)[number].events);
    return events;
}

/* A number with a comma before each three digits. */
static const char *lf_digits(char room[32], uint64_t number)
{
    char plain[24];
    const int length = snprintf(plain, sizeof plain, "%llu", (unsigned long long)number);
    char *next = room;
    for (int index = 0; index < length; index++) {
        if (index > 0 && (length - index) % 3 == 0)
            *next++ = ',';
        *next++ = plain[index];
    }
    *next = 0;
    return room;
}

static void lf_complain_of_loss(uint64_t produced, uint64_t recorded)
{
    char some[32], all[32];
    const char *const why = *lf_why ? lf_why : lf_shared_number(LF_OTHERS) ? "more threads call MPI at once than can be recorded" : "the process that folds has received fewer than were sent";
    lf_complain("rank %d: %s of %s events were not recorded: %s", lf_rank, lf_digits(some, produced - recorded), lf_digits(all, produced), why);
}

/* Compares the calls that the program has counted so far with those that the helper has, once. If it
 * has not said how many these are, they are those in its file. */
static void lf_compare(uint64_t produced)
{
    if (!lf_is_counted || lf_is_compared)
        return;
    lf_is_compared = 1;
    const uint64_t recorded = lf_recorded != UINT64_MAX ? lf_recorded : lf_shared_number(LF_SAVED);
    if (lf_lost_paths > 0) {
        char lost[32];
        lf_are_missing = 1;
        lf_complain("rank %d: at least %s events of paths were not recorded", lf_rank, lf_digits(lost, lf_lost_paths));
    }
    if (recorded >= produced)
        return;
    lf_are_missing = 1;
    lf_complain_of_loss(produced, recorded);
}

/* A helper that lives takes what is in the rings when the program is gone. */
static int lf_is_helper_lost(void)
{
    struct pollfd helper = {lf_socket, POLLIN, 0};
    return atomic_load(&lf_state) == LF_SILENT || (lf_socket >= 0 && poll(&helper, 1, 0) > 0 && helper.revents & (POLLHUP | POLLERR));
}

/* The last thing that the program does in `exit`. */
static void lf_exiting(int status, void *nothing)
{
    (void)nothing;
    if (lf_is_counted && !lf_is_compared) {
        /* In this order: what is counted by now is in the file when the helper has answered. */
        const uint64_t produced = lf_produced();
        const int is_asked = atomic_load(&lf_state) == LF_OVER;
        lf_flush();
        if (lf_is_helper_lost()) {
            if (!*lf_why)
                snprintf(lf_why, sizeof lf_why, "%s", lf_no_answer());
        } else if (is_asked) {
            /* In the middle of MPI_Finalize there is no number of its own: it takes what is in the rings. */
            lf_recorded = produced - lf_shared_number(LF_OTHERS);
        }
        lf_compare(produced);
    }
    if (status != 0 || !lf_are_missing)
        return;
    fflush(NULL);
    _exit(LF_STATUS_OF_LOSS);
}

/* Before the program begins: what is registered first is called last. */
static void lf_watch_exit(void)
{
#ifdef __GLIBC__
    on_exit(lf_exiting, NULL);
#else
    (void)lf_exiting;
#endif
}
