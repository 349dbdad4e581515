
/* ---- communicators ----
 *
 * A communicator has the smallest number that is free in all of its processes, so that it is the
 * same for all, and loops that make and free communicators are loops of equal events. The processes
 * agree on it by reductions over the new communicator. For that, every process that has this library
 * takes part, whether or not it records and even inside of a callback; where some of the members
 * were not started together with this process, nobody asks them, and the number is local.
 *
 * A duplicate that is not ready yet cannot be asked. Its number follows from that of its parent and
 * from how many such duplicates of it there are: all processes make them in the same order.
 *
 * Handles are looked up without a lock, and changed under one. */

enum { LF_COMMS = 1 << 16, LF_DUPLICATES = 1 << 10, LF_DUPLICATES_OF_ONE = 1 << 8 };

/* By number; behind them, duplicates, which have numbers of their own. */
static _Atomic(MPI_Comm) lf_comms[LF_COMMS + LF_DUPLICATES];
static unsigned char lf_comm_taken[LF_COMMS];
/* Whether what is made of it may have members that were not started together with this process. */
static unsigned char lf_comm_outside[LF_COMMS + LF_DUPLICATES];
/* While there are duplicates of a communicator its number is not given to another. */
static int lf_comm_duplicates[LF_COMMS];
static struct {
    /* 0 if this place is free. */
    int64_t number;
    int root;
} lf_duplicates[LF_DUPLICATES];
static _Atomic int lf_comms_used, lf_duplicates_used;
static pthread_mutex_t lf_comms_lock = PTHREAD_MUTEX_INITIALIZER;

/* Made by a wrapper that another one, of the same call in another language, has called. */
static __thread MPI_Comm lf_made_inside __attribute__((tls_model("initial-exec")));

static inline MPI_Comm lf_comm_at(int place)
{
    return atomic_load_explicit(&lf_comms[place], memory_order_relaxed);
}

static inline int64_t lf_number_at(int place)
{
    return place < LF_COMMS ? place : lf_duplicates[place - LF_COMMS].number;
}

/* Where a communicator is, or -1. */
static inline int lf_place(MPI_Comm comm)
{
    static __thread int last __attribute__((tls_model("initial-exec")));
    if (comm == MPI_COMM_NULL)
        return -1;
    if (lf_comm_at(last) == comm)
        return last;
    const int used = atomic_load_explicit(&lf_comms_used, memory_order_acquire);
    for (int place = 0; place < used; place++)
        if (lf_comm_at(place) == comm)
            return last = place;
    const int duplicates = LF_COMMS + atomic_load_explicit(&lf_duplicates_used, memory_order_acquire);
    for (int place = LF_COMMS; place < duplicates; place++)
        if (lf_comm_at(place) == comm)
            return last = place;
    return -1;
}

/* The number of a communicator that may not be known; -1 then. */
static int64_t lf_known_comm(MPI_Comm comm)
{
    const int place = lf_place(comm);
    return place < 0 ? -1 : lf_number_at(place);
}

/* The functions that end in _locked are called with the lock. */

static int lf_take_number_locked(int from)
{
    while (from < LF_COMMS - 1 && lf_comm_taken[from])
        from++;
    lf_comm_taken[from] = 1;
    if (from >= atomic_load(&lf_comms_used))
        atomic_store(&lf_comms_used, from + 1);
    return from;
}

static void lf_drop_locked(int place)
{
    atomic_store(&lf_comms[place], MPI_COMM_NULL);
    if (place < LF_COMMS) {
        lf_comm_taken[place] = lf_comm_duplicates[place] > 0;
        return;
    }
    const int root = lf_duplicates[place - LF_COMMS].root;
    lf_duplicates[place - LF_COMMS].number = 0;
    if (--lf_comm_duplicates[root] == 0 && lf_comm_at(root) == MPI_COMM_NULL)
        lf_comm_taken[root] = 0;
}

/* A handle that is known already is one that was freed by a call that is not wrapped. */
static void lf_keep_locked(MPI_Comm comm, int place, int is_outside)
{
    const int ends[2][2] = {{0, atomic_load(&lf_comms_used)}, {LF_COMMS, LF_COMMS + atomic_load(&lf_duplicates_used)}};
    for (int part = 0; part < 2; part++)
        for (int other = ends[part][0]; other < ends[part][1]; other++)
            if (lf_comm_at(other) == comm && other != place)
                lf_drop_locked(other);
    lf_comm_outside[place] = (unsigned char)is_outside;
    atomic_store(&lf_comms[place], comm);
}

/* Under this number, which is taken already or one of the first. */
static void lf_keep(MPI_Comm comm, int place, int is_outside)
{
    pthread_mutex_lock(&lf_comms_lock);
    lf_comm_taken[place] = 1;
    if (place >= atomic_load(&lf_comms_used))
        atomic_store(&lf_comms_used, place + 1);
    lf_keep_locked(comm, place, is_outside);
    pthread_mutex_unlock(&lf_comms_lock);
}

/* Takes a number from here on, in place of another that was taken, if any. */
static int lf_take_number(int from, int instead_of)
{
    pthread_mutex_lock(&lf_comms_lock);
    if (instead_of >= 0)
        lf_comm_taken[instead_of] = 0;
    const int number = lf_take_number_locked(from);
    atomic_store(&lf_comms[number], MPI_COMM_NULL);
    pthread_mutex_unlock(&lf_comms_lock);
    return number;
}

/* The members as ranks of the world. Returns how many, which is 0 if it is the world itself, or if
 * not all of them are in it. */
static int64_t lf_world_ranks(MPI_Comm comm, int size, int64_t *out)
{
    int *ranks = calloc(2 * (size_t)size + 2, sizeof *ranks);
    if (!ranks)
        return 0;
    MPI_Group group, world;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int index = 0; index < size; index++)
        ranks[index] = index;
    PMPI_Group_translate_ranks(group, size, ranks, world, ranks + size);
    int is_world = size == lf_size, is_inside = 1;
    for (int index = 0; index < size; index++) {
        out[index] = ranks[size + index];
        is_world &= ranks[size + index] == index;
        is_inside &= ranks[size + index] != MPI_UNDEFINED;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(ranks);
    return is_world || !is_inside ? 0 : size;
}

/* The helper learns the own rank and the size, and the members unless they follow from the call. */
static void lf_announce(MPI_Comm comm, int64_t number, int with_members)
{
    if (atomic_load(&lf_state) != LF_ON)
        return;
    int is_inter = 0, rank = 0, size = 0;
    PMPI_Comm_test_inter(comm, &is_inter);
    if (!is_inter) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_size(comm, &size);
    }
    int64_t *words = calloc((size_t)size + 4, sizeof *words);
    if (!words)
        return;
    words[0] = number;
    words[1] = rank;
    words[2] = size;
    words[3] = with_members && !is_inter && lf_size > 0 ? lf_world_ranks(comm, size, words + 4) : 0;
    lf_put_communicator(words, (size_t)(4 + words[3]));
    free(words);
}

/* One that was made by a call that is not wrapped. */
static int64_t lf_adopt(MPI_Comm comm)
{
    pthread_mutex_lock(&lf_comms_lock);
    const int known = lf_place(comm), place = known >= 0 ? known : lf_take_number_locked(2);
    if (known < 0)
        lf_keep_locked(comm, place, 1);
    pthread_mutex_unlock(&lf_comms_lock);
    if (known < 0)
        lf_announce(comm, place, 1);
    return lf_number_at(place);
}

static inline int64_t lf_comm(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return -1;
    const int place = lf_place(comm);
    return __builtin_expect(place >= 0, 1) ? lf_number_at(place) : lf_adopt(comm);
}

static int lf_is_group_outside(MPI_Group group)
{
    enum { SOME = 256 };
    MPI_Group world;
    int size = 0, ranks[SOME], translated[SOME], is_outside = 0;
    PMPI_Comm_group(lf_comm_own, &world);
    PMPI_Group_size(group, &size);
    for (int first = 0; first < size && !is_outside; first += SOME) {
        const int count = size - first < SOME ? size - first : SOME;
        for (int index = 0; index < count; index++)
            ranks[index] = first + index;
        PMPI_Group_translate_ranks(group, count, ranks, world, translated);
        for (int index = 0; index < count; index++)
            is_outside |= translated[index] == MPI_UNDEFINED;
    }
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return is_outside;
}

/* Whether a new communicator has members that were not started together with this process. */
static int lf_is_outside(MPI_Comm parent, MPI_Comm comm, int is_inter)
{
    if (lf_comm_own == MPI_COMM_NULL)
        return 0;
    int is_parent_inter = 0;
    const int place = lf_place(parent);
    if (place >= 0 && !is_inter && !lf_comm_outside[place]) {
        PMPI_Comm_test_inter(parent, &is_parent_inter);
        if (!is_parent_inter)
            return 0;
    }
    MPI_Group group;
    PMPI_Comm_group(comm, &group);
    if (lf_is_group_outside(group))
        return 1;
    if (!is_inter)
        return 0;
    PMPI_Comm_remote_group(comm, &group);
    return lf_is_group_outside(group);
}

/* The largest of the numbers that the members of a communicator give; and whether they are equal. */
static int lf_largest(MPI_Comm comm, int is_inter, int number, int *are_equal)
{
    int mine[2] = {number, -number}, all[2] = {number, -number}, own[2] = {number, -number};
    int failed = PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS;
    /* Between two groups each has received what the other gives: now it is given back. */
    if (is_inter && !failed)
        failed = PMPI_Allreduce(all, own, 2, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS;
    for (int index = 0; is_inter && index < 2; index++)
        all[index] = all[index] > own[index] ? all[index] : own[index];
    *are_equal = failed || all[0] == -all[1];
    return all[0];
}

static int64_t lf_new_comm(MPI_Comm parent, MPI_Comm comm, int with_members)
{
    if (comm == MPI_COMM_NULL)
        return -1;
    if (lf_made_inside == comm && lf_place(comm) >= 0)
        return lf_known_comm(comm);
    int is_inter = 0, number = lf_take_number(2, -1);
    PMPI_Comm_test_inter(comm, &is_inter);
    const int is_outside = lf_is_outside(parent, comm, is_inter);
    for (int are_equal = is_outside; !are_equal;) {
        const int largest = lf_largest(comm, is_inter, number, &are_equal);
        if (number < largest)
            number = lf_take_number(largest, number);
    }
    lf_keep(comm, number, is_outside);
    lf_announce(comm, number, with_members || is_inter);
    return number;
}

static int64_t lf_duplicate_number_locked(int64_t parent)
{
    for (int64_t nth = 0; nth < LF_DUPLICATES_OF_ONE; nth++) {
        const int64_t number = LF_COMMS + parent * LF_DUPLICATES_OF_ONE + nth;
        int is_free = 1;
        for (int place = 0; place < LF_DUPLICATES; place++)
            is_free &= lf_duplicates[place].number != number;
        if (is_free)
            return number;
    }
    return 0;
}

/* The place of a new duplicate, or -1 if there are too many. */
static int lf_duplicate_place_locked(int parent)
{
    const int64_t of = lf_number_at(parent);
    const int64_t number = of < (int64_t)1 << 48 ? lf_duplicate_number_locked(of) : 0;
    for (int place = 0; place < LF_DUPLICATES && number > 0; place++)
        if (lf_duplicates[place].number == 0) {
            const int root = parent < LF_COMMS ? parent : lf_duplicates[parent - LF_COMMS].root;
            lf_duplicates[place].number = number;
            lf_duplicates[place].root = root;
            lf_comm_duplicates[root]++;
            if (place >= atomic_load(&lf_duplicates_used))
                atomic_store(&lf_duplicates_used, place + 1);
            return LF_COMMS + place;
        }
    return -1;
}

/* One that is not ready yet has the members of its parent. */
static int64_t lf_duplicate(MPI_Comm parent, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return -1;
    if (lf_made_inside == comm && lf_place(comm) >= 0)
        return lf_known_comm(comm);
    lf_comm(parent);
    pthread_mutex_lock(&lf_comms_lock);
    const int from = lf_place(parent);
    int place = from >= 0 ? lf_duplicate_place_locked(from) : -1;
    if (place < 0)
        place = lf_take_number_locked(2);
    lf_keep_locked(comm, place, from < 0 || lf_comm_outside[from]);
    const int64_t number = lf_number_at(place);
    pthread_mutex_unlock(&lf_comms_lock);
    lf_announce(parent, number, 1);
    return number;
}

/* One that a call made inside of another call. */
#define LF_MADE_INSIDE(comm, make)                                                                \
    do {                                                                                          \
        if (atomic_load_explicit(&lf_state, memory_order_relaxed) >= LF_SILENT && (make) >= 0)    \
            lf_made_inside = (comm);                                                              \
    } while (0)

/* It is about to be freed. Also by a call inside of another, such as the one that deletes an
 * attribute. */
static int64_t lf_forget(MPI_Comm comm)
{
    if (atomic_load_explicit(&lf_state, memory_order_relaxed) < LF_SILENT)
        return -1;
    pthread_mutex_lock(&lf_comms_lock);
    const int place = lf_place(comm);
    const int64_t number = place < 0 ? -1 : lf_number_at(place);
    if (place >= 2)
        lf_drop_locked(place);
    pthread_mutex_unlock(&lf_comms_lock);
    return number;
}
