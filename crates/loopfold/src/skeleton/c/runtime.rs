//! The parts of the C program that do not depend on what is replayed. Each is written only if
//! something uses it, so that a compiler has nothing to warn of.

/// A part: what has to be in the program for it to be needed, and its text.
pub(super) struct Part {
    pub(super) needed_by: &'static [&'static str],
    pub(super) text: &'static str,
}

/// All parts, each before those that it uses: they are looked at from the last to the first.
pub(super) const PARTS: &[Part] = &[
    Part {
        needed_by: &["world", "self", "comm_"],
        text: "\
/* A communicator: the process in it, and its grid if it has one. */
struct place {
    MPI_Comm comm;
    int rank, size, dims, sides[8], periods[8], coordinates[8];
};
static struct place world;
",
    },
    Part { needed_by: &["&self", "self."], text: "static struct place self;\n" },
    Part {
        needed_by: &["enter("],
        text: "
static void enter(struct place *at)
{
    at->rank = at->size = 0;
    if (at->comm != MPI_COMM_NULL) {
        PMPI_Comm_rank(at->comm, &at->rank);
        PMPI_Comm_size(at->comm, &at->size);
    }
}
",
    },
    Part {
        needed_by: &["grid("],
        text: "
/* A grid of processes, and where the process is in it; the last coordinate varies fastest. */
static void grid(struct place *at, int dims, const int *sides, const int *periods)
{
    at->dims = dims;
    for (int dimension = dims - 1, before = at->rank; dimension >= 0; dimension--) {
        at->sides[dimension] = sides[dimension];
        at->periods[dimension] = periods[dimension];
        at->coordinates[dimension] = before % sides[dimension];
        before /= sides[dimension];
    }
}
",
    },
    Part {
        needed_by: &["coordinate("],
        text: "
static int coordinate(const struct place *at, int dimension)
{
    return at->coordinates[dimension];
}
",
    },
    Part {
        needed_by: &[" step(", "(step("],
        text: "
/* The process some steps away in the grid, or nobody outside of it. */
static int step(const struct place *at, const int *steps)
{
    int peer = 0;
    for (int dimension = 0; dimension < at->dims; dimension++) {
        const int side = at->sides[dimension];
        int to = at->coordinates[dimension] + steps[dimension];
        if (to < 0 || to >= side) {
            if (!at->periods[dimension])
                return MPI_PROC_NULL;
            to = (to % side + side) % side;
        }
        peer = peer * side + to;
    }
    return peer;
}
",
    },
    Part {
        needed_by: &["ring(&"],
        text: "
static int ring(const struct place *at, int distance)
{
    const int peer = (at->rank + distance) % at->size;
    return peer < 0 ? peer + at->size : peer;
}
",
    },
    Part {
        needed_by: &["line(&"],
        text: "
static int line(const struct place *at, int distance)
{
    const int peer = at->rank + distance;
    return peer >= 0 && peer < at->size ? peer : MPI_PROC_NULL;
}
",
    },
    Part {
        needed_by: &["transposed(&"],
        text: "
/* Row and column exchanged, in a square of processes. */
static int transposed(const struct place *at)
{
    int side = 1;
    while ((side + 1) * (side + 1) <= at->size)
        side++;
    return at->rank % side * side + at->rank / side;
}
",
    },
    Part {
        needed_by: &["request()", "oldest(", "chosen("],
        text: "
/* Requests that are pending, the oldest first. */
static MPI_Request pending[MOST_PENDING];
static int pending_count;
",
    },
    Part {
        needed_by: &["request()"],
        text: "
static MPI_Request *request(void)
{
    if (pending_count == MOST_PENDING)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return &pending[pending_count++];
}
",
    },
    Part {
        needed_by: &["oldest("],
        text: "
/* How many there are, but not more than so many. */
static int oldest(int count)
{
    return count < pending_count ? count : pending_count;
}
",
    },
    Part {
        needed_by: &["chosen("],
        text: "
/* Puts some requests before the others. */
static int chosen(int count, const int *places)
{
    static MPI_Request others[MOST_PENDING], first[MOST_PENDING];
    const int all = pending_count < MOST_PENDING ? pending_count : MOST_PENDING;
    int moved = 0, left = 0;
    for (int place = 0; place < all; place++) {
        int is_chosen = 0;
        for (int nth = 0; nth < count; nth++)
            is_chosen = is_chosen || places[nth] == place;
        if (is_chosen)
            first[moved++] = pending[place];
        else
            others[left++] = pending[place];
    }
    for (int place = 0; place < all; place++)
        pending[place] = place < moved ? first[place] : others[place - moved];
    return moved;
}
",
    },
    Part {
        needed_by: &["completed("],
        text: "
static void completed(int count)
{
    pending_count -= count;
    for (int place = 0; place < pending_count; place++)
        pending[place] = pending[place + count];
}
",
    },
    Part {
        needed_by: &["counts(", "shares("],
        text: "
static int *send_counts, *receive_counts, *send_places, *receive_places;

/* Room for what calls with a count for each process need. */
static void make_counts(void)
{
    if (!send_counts) {
        send_counts = calloc((size_t)size, sizeof(int));
        receive_counts = calloc((size_t)size, sizeof(int));
        send_places = calloc((size_t)size, sizeof(int));
        receive_places = calloc((size_t)size, sizeof(int));
    }
    if (!send_counts || !receive_counts || !send_places || !receive_places)
        MPI_Abort(MPI_COMM_WORLD, 3);
}
",
    },
    Part {
        needed_by: &[" counts(", "\tcounts("],
        text: "
/* What every process has, if that is the same, or as they say. */
static void counts(int bytes, const struct place *at, int is_same)
{
    make_counts();
    for (int peer = 0; peer < at->size; peer++)
        receive_counts[peer] = bytes;
    if (!is_same)
        PMPI_Allgather(&bytes, 1, MPI_INT, receive_counts, 1, MPI_INT, at->comm);
    for (int peer = 1; peer < at->size; peer++)
        receive_places[peer] = receive_places[peer - 1] + receive_counts[peer - 1];
}
",
    },
    Part {
        needed_by: &[" shares("],
        text: "
/* What every process has, divided among all. */
static void shares(int bytes, const struct place *at, int is_same)
{
    make_counts();
    for (int peer = 0; peer < at->size; peer++)
        receive_counts[peer] = bytes;
    if (!is_same)
        PMPI_Allgather(&bytes, 1, MPI_INT, receive_counts, 1, MPI_INT, at->comm);
    for (int peer = 0; peer < at->size; peer++) {
        send_counts[peer] = bytes / at->size + (peer < bytes % at->size);
        receive_counts[peer] = receive_counts[peer] / at->size + (at->rank < receive_counts[peer] % at->size);
    }
    for (int peer = 1; peer < at->size; peer++) {
        send_places[peer] = send_places[peer - 1] + send_counts[peer - 1];
        receive_places[peer] = receive_places[peer - 1] + receive_counts[peer - 1];
    }
}
",
    },
];

/// Computation, which is calibrated when the program starts.
pub(super) const WORK: &str = "
static double steps_per_nanosecond;
static volatile double work_result;

/* Computes for some steps. */
static void compute(double steps)
{
    double value = work_result;
    for (long step = (long)steps; step > 0; step--)
        value = value * 0.999999 + 1e-6;
    work_result = value;
}
";

/// The same, touching memory.
pub(super) const WORK_IN_MEMORY: &str = "
static double steps_per_nanosecond;
static volatile double work_result;
static double *memory;
static size_t memory_at;

/* Computes for some steps, each of which touches another line of memory. */
static void compute(double steps)
{
    double value = work_result;
    for (long step = (long)steps; step > 0; step--) {
        memory[memory_at] = value = value * 0.999999 + memory[memory_at];
        memory_at += 8;
        if (memory_at >= TOUCHED / sizeof(double))
            memory_at = 0;
    }
    work_result = value;
}
";

/// How many steps a nanosecond has, by the time that this process really ran: the best of many
/// short attempts, so that others do not disturb.
pub(super) const CALIBRATE: &str = "
static double own_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void calibrate(void)
{
    compute(1e6);
    for (int attempt = 0; attempt < 40; attempt++) {
        const double start = own_time();
        compute(2e5);
        const double speed = 2e5 / (own_time() - start + 1);
        if (speed > steps_per_nanosecond)
            steps_per_nanosecond = speed;
    }
}

static void work(double nanoseconds)
{
    compute(nanoseconds * steps_per_nanosecond);
}
";

/// What a first message costs is no part of what is measured: the scale would multiply it.
pub(super) const CONNECT: &str = "
/* Every process sends a byte to all others, so that connections are there; of many processes to some. */
static void connect(void)
{
    for (int distance = 1; distance < size && distance < 1024; distance++)
        PMPI_Sendrecv(out, 1, MPI_BYTE, (rank + distance) % size, 0, in, 1, MPI_BYTE, (rank + size - distance) % size, 0,
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
";

/// Computation that varies as it was recorded.
pub(super) const NOISE: &str = "
static unsigned long noise_state;

/* Draws one of sixteen equally frequent lengths of computation. */
static void noisy_work(const float *lengths)
{
    noise_state = noise_state * 6364136223846793005ul + 1442695040888963407ul;
    work(lengths[noise_state >> 60 & 15]);
}
";

/// Regions and marks, if the skeleton is recorded. They are looked up once, as that takes longer than
/// many a call.
pub(super) const REGIONS: &str = "
/* Regions of the program, for `loopfold record`. */
static void not_recorded(const char *name)
{
    (void)name;
}
static void (*enter_region)(const char *) = not_recorded, (*leave_region)(const char *) = not_recorded,
            (*mark_place)(const char *) = not_recorded;

static void find_regions(void)
{
    void *enter = dlsym(NULL, \"loopfold_enter_region\"), *leave = dlsym(NULL, \"loopfold_leave_region\"),
         *mark = dlsym(NULL, \"loopfold_mark_place\");
    if (enter && leave && mark) {
        *(void **)&enter_region = enter;
        *(void **)&leave_region = leave;
        *(void **)&mark_place = mark;
    }
}
";
