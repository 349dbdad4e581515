
/* ---- starting the helper ----
 *
 * The program keeps its own children, signals, descriptors and environment: the helper is no child
 * of it, has none of its open files, and what the program starts is not recorded. */

/* Set if the program has another MPI than the one that this was compiled for. */
static int lf_is_other_mpi;
/* Whether there are a ring and a helper. */
static int lf_is_ready;
/* Whether MPI was about to start. */
static int lf_is_prepared;

/* Takes this library out of those that are preloaded into what the program starts. Returns whether
 * it was there. */
static int lf_leave_preload(void)
{
    const char *all = getenv("LD_PRELOAD"), *shim = getenv("LOOPFOLD_RECORD_SHIM");
    Dl_info own;
    if (!all || !dladdr((void *)&lf_leave_preload, &own) || !own.dli_fname)
        return 0;
    char *list = strdup(all), *kept = calloc(strlen(all) + 2, 1), *rest = NULL;
    int is_found = 0;
    for (char *entry = list && kept ? strtok_r(list, ": ", &rest) : NULL; entry; entry = strtok_r(NULL, ": ", &rest)) {
        if (strcmp(entry, own.dli_fname) == 0 || (shim && strcmp(entry, shim) == 0)) {
            is_found = 1;
            continue;
        }
        if (*kept)
            strcat(kept, ":");
        strcat(kept, entry);
    }
    if (is_found && *kept)
        setenv("LD_PRELOAD", kept, 1);
    else if (is_found)
        unsetenv("LD_PRELOAD");
    free(list);
    free(kept);
    return is_found;
}

/* The environment without what is preloaded. */
static char **lf_clean_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **clean = calloc(count + 1, sizeof *clean);
    if (!clean)
        return environ;
    size_t kept = 0;
    for (size_t index = 0; index < count; index++)
        if (strncmp(environ[index], "LD_PRELOAD=", 11) != 0)
            clean[kept++] = environ[index];
    return clean;
}

/* The helper would keep pipes and sockets of the program open. */
static void lf_close_others(posix_spawn_file_actions_t *actions)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(actions, 4);
#else
    DIR *open_files = opendir("/proc/self/fd");
    for (struct dirent *entry; open_files && (entry = readdir(open_files));)
        if (atoi(entry->d_name) > 3)
            posix_spawn_file_actions_addclose(actions, atoi(entry->d_name));
    if (open_files)
        closedir(open_files);
#endif
}

static int lf_spawn(const char *helper, int socket, int memory, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, memory, 3);
    lf_close_others(&actions);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    /* Who ignores that a file may not grow does so for the helper, too. */
    sigdelset(&defaults, SIGXFSZ);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *const arguments[] = {(char *)helper, "record-helper", NULL};
    char **environment = lf_clean_environment();
    const int failed = posix_spawn(child, helper, &actions, &attributes, arguments, environment);
    if (environment != environ)
        free(environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

/* Starts the helper. It starts itself once more and ends, so that the program never has a child
 * that it does not know; nor does it see the signal of its end. */
static int lf_spawn_helper(const char *helper, int socket, int memory)
{
    sigset_t signal, before, pending;
    sigemptyset(&signal);
    sigaddset(&signal, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signal, &before);
    sigpending(&pending);
    pid_t child = 0;
    const int failed = lf_spawn(helper, socket, memory, &child);
    int status;
    while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const struct timespec at_once = {0, 0};
    siginfo_t about;
    if (!sigismember(&pending, SIGCHLD) && sigtimedwait(&signal, &about, &at_once) == SIGCHLD && about.si_pid != child)
        raise(SIGCHLD);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* A child that starts MPI itself still takes part, as the others would wait for it. */
static void lf_in_child(void)
{
    if (lf_is_prepared)
        atomic_store(&lf_state, LF_OVER);
    lf_is_ready = lf_is_counted = lf_are_missing = 0;
    lf_mark_paths = NULL;
    lf_hang_up();
}

/* The descriptor under a number that the program hardly uses, and that is none of the helper's. */
static int lf_move_up(int file)
{
    int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 512);
    if (moved < 0 && file >= 0)
        moved = fcntl(file, F_DUPFD_CLOEXEC, 4);
    const int failure = errno;
    if (file >= 0)
        close(file);
    errno = failure;
    return moved;
}

/* Creates and maps it, as large as this process may, and returns its file, or -1. */
static int lf_create_memory(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) < 0)
        most.rlim_cur = RLIM_INFINITY;
    for (lf_lanes_most = LF_LANES; lf_lanes_most > 0; lf_lanes_most /= 2) {
        const size_t bytes = LF_DATA + (size_t)lf_lanes_most * LF_WORDS * sizeof(int64_t);
        /* A file beyond the limit would be a signal. */
        if (most.rlim_cur != RLIM_INFINITY && bytes > most.rlim_cur)
            continue;
        const int memory = lf_move_up(memfd_create("loopfold", MFD_CLOEXEC));
        if (memory < 0)
            return -1;
        void *const mapped = ftruncate(memory, (off_t)bytes) < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
        if (mapped != MAP_FAILED) {
            lf_memory = mapped;
            return memory;
        }
        const int failure = errno;
        close(memory);
        errno = failure;
        if (failure != ENOMEM)
            return -1;
    }
    errno = EFBIG;
    return -1;
}

static int lf_start_helper(void)
{
    const char *helper = getenv("LOOPFOLD_RECORD_HELPER");
    const int memory = lf_create_memory();
    int sockets[2] = {-1, -1};
    if (memory < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0) {
        lf_complain("no shared memory for recording: %s", strerror(errno));
        if (memory >= 0)
            close(memory);
        return 0;
    }
    lf_socket = lf_move_up(sockets[0]);
    const int other = lf_move_up(sockets[1]);
    const int failed = !helper ? ENOENT : lf_spawn_helper(helper, other, memory);
    close(other);
    close(memory);
    char answer[64];
    if (!failed && lf_ask(answer, sizeof answer, "?\n") == 0 && sscanf(answer, "ok %d", &lf_helper) == 1)
        return 1;
    lf_complain("%s cannot be started, so nothing is recorded%s%s", helper ? helper : "the process that folds", failed ? ": " : "", failed ? strerror(failed) : "");
    lf_hang_up();
    return 0;
}

/* The ring and the helper, once. */
static void lf_start_once(void)
{
    static int was_here;
    if (was_here)
        return;
    was_here = 1;
    lf_with_sites = getenv("LOOPFOLD_RECORD_SITES") != NULL;
    lf_is_ready = pthread_key_create(&lf_lane_key, lf_return_lane) == 0 && lf_start_helper();
    pthread_atfork(NULL, NULL, lf_in_child);
}

/* Before MPI starts: the ring and the helper. Returns whether this process takes part, which it
 * also does if it has neither. */
static int lf_prepare(void)
{
    if (lf_is_prepared || lf_is_other_mpi || !getenv("LOOPFOLD_RECORD"))
        return 0;
    lf_is_prepared = 1;
    lf_start_once();
    lf_leave_preload();
    return 1;
}

/* ---- paths ---- */

static int lf_is_this_mpi(char *version);

/* As long as that of any MPI. */
static char lf_version[1 << 14];

/* The run-time library of `loopfold-cc` asks where paths are to be sent: before MPI starts, and maybe
 * before the constructor of this library. Returns NULL if they are not recorded. */
LF_EXPORT const char *loopfold_record_paths(void)
{
    static char address[108];
    if (!getenv("LOOPFOLD_RECORD") || !lf_is_this_mpi(lf_version))
        return NULL;
    lf_start_once();
    if (!lf_is_ready || lf_ask(address, sizeof address, "P\n") < 0 || *address != '@')
        return NULL;
    *(void **)&lf_mark_paths = dlsym(RTLD_DEFAULT, "loopfold_rt_event");
    return address;
}
