/* The run-time library of programs that `loopfold-cc` compiles: takes the tokens that the compiler
 * pass emits and hands them to the recorder through shared memory, a ring of chunks for each thread.
 *
 * It is linked into programs that must not notice it. So it makes system calls itself (system.h),
 * allocates nothing with malloc, keeps no file descriptor open (but for a counter), and catches no
 * signals. Without a recorder, and when the recorder has ended, tokens are thrown away in a small
 * private buffer, and counted.
 *
 * layout.h has the shared memory, state.h what is known of threads and of other run-time libraries
 * of the process, recorder.h the connection, lanes.h the rings, levels.h how tokens are appended and
 * what handlers of signals do, processes.h copies. Here is what programs call.
 *
 * A token costs two instructions and a comparison in the program; a chunk of 16,384 of them 64 KiB
 * of zeros and one system call.
 */
#define _GNU_SOURCE
#include "layout.h"
#include "system.h"
#include "state.h"
#include "recorder.h"
#include "lanes.h"
#include "levels.h"
#include "processes.h"

/* ---- the leader begins ---- */

/* Not in programs that are linked statically: these preload nothing. */
extern void *dlsym(void *, const char *) __attribute__((weak));

/* Where the recorder listens, or NULL. For an MPI program, the library that is preloaded starts it
 * now. */
static const char *lf_find_recorder(void)
{
    const char *const address = lf_variable("LOOPFOLD_PATHS");
    if (address || !lf_variable("LOOPFOLD_RECORD") || !dlsym)
        return address;
    const char *(*start)(void);
    *(void **)&start = dlsym(NULL, "loopfold_record_paths");
    return start ? start() : NULL;
}

/* Two numbers with a colon between: which counter of which kind. */
static void lf_choose_counter(const char *text)
{
    uint32_t numbers[2] = {0, 0};
    for (int place = 0; text && *text; text++) {
        if (*text == ':')
            place = 1;
        else
            numbers[place] = numbers[place] * 10 + (uint32_t)(*text - '0');
    }
    lf_has_counter = text != NULL;
    lf_counter.size = PERF_ATTR_SIZE_VER0;
    lf_counter.type = numbers[0];
    lf_counter.config = numbers[1];
    lf_counter.exclude_kernel = numbers[0] == PERF_TYPE_HARDWARE;
    lf_counter.exclude_hv = lf_counter.exclude_kernel;
}

/* The recorder is given the reason why there is no counter. */
static void lf_check_counter(int connection)
{
    const int file = lf_open_counter();
    const struct lf_message missing = {LF_MAGIC, LF_NO_COUNTER, lf_owner, 0, (uint32_t)-file, 0, 0};
    if (file < 0)
        lf_send(connection, &missing, sizeof missing, -1);
    else
        lf_call(SYS_close, file, 0, 0);
}

static void lf_set_address(const char *address)
{
    size_t length = 0;
    lf_address.sun_family = AF_UNIX;
    for (; length + 1 < sizeof lf_address.sun_path && address[length]; length++)
        lf_address.sun_path[length] = address[length];
    /* A name that is not one of a file. */
    if (*address == '@')
        lf_address.sun_path[0] = 0;
    lf_address_bytes = offsetof(struct sockaddr_un, sun_path) + length;
}

/* The beginning of this module. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* Whether copies of this process are not announced: a static program has a C library of its own, and
 * what it opens has another one, which does not see the forks of the program. */
static int lf_is_apart(void)
{
    const uintptr_t program = getauxval(AT_PHDR);
    return !getauxval(AT_BASE) && program - (uintptr_t)__ehdr_start >= 4096;
}

static void lf_begin(void)
{
    const char *const address = lf_find_recorder();
    /* Whoever executes a program with more rights does not decide who sees what it does. */
    if (!address || !*address || getauxval(AT_SECURE))
        return;
    lf_set_address(address);
    /* Not in MPI programs. */
    lf_is_timed = lf_variable("LOOPFOLD_PATHS") && lf_variable("LOOPFOLD_PATHS_CYCLES");
    lf_is_slow = lf_is_timed || lf_is_apart();
    lf_choose_counter(lf_variable("LOOPFOLD_PATHS_COUNTER"));
    /* Before there are lanes that threads must end. */
    lf_has_key = pthread_key_create(&lf_key, lf_thread_ends) == 0;
    const int connection = lf_introduce(-1, 0, 0, 0);
    if (connection < 0)
        return;
    if (lf_has_counter)
        lf_check_counter(connection);
    lf_call(SYS_close, connection, 0, 0);
    pthread_atfork(lf_before_fork, lf_in_parent, lf_in_forked_child);
}

/* What the thread that ends the program has written is counted, as far as it has come: what runs after
 * this may add to it. Other threads that still run, and programs that end otherwise, count complete
 * chunks alone. */
__attribute__((destructor(101))) static void lf_count_at_exit(void)
{
    const struct lf_thread *const self = lf_me;
    if (!self || self == &lf_over || !lf_is_on() || lf_is_copy())
        return;
    const uint64_t mask = lf_block_signals();
    lf_count_open_chunk(self);
    lf_restore_signals(mask);
}

/* ---- modules ---- */

static int lf_send_module(int connection, const uint8_t *description, uint64_t bytes)
{
    const struct lf_message module = {LF_MAGIC, LF_MODULE, lf_owner, lf_tag(), lf_next_id, lf_program(), bytes};
    return lf_send(connection, &module, sizeof module, -1) && lf_send(connection, description, bytes, -1);
}

static void lf_register(uint32_t *ids, uint32_t functions, const uint8_t *description, uint64_t bytes)
{
    if (lf_is_on() && lf_is_copy())
        lf_become_copy();
    const uint64_t mask = lf_enter();
    const int connection = lf_is_on() && functions < 0x3fffffffu - lf_next_id ? lf_connect(0) : -1;
    if (connection >= 0 && lf_send_module(connection, description, bytes)) {
        for (uint32_t index = 0; index < functions; index++)
            ids[index] = lf_next_id + index;
        lf_next_id += functions;
    } else if (lf_is_on()) {
        atomic_fetch_add_explicit(&lf_memory->unnamed, 1, memory_order_relaxed);
    }
    if (connection >= 0)
        lf_call(SYS_close, connection, 0, 0);
    lf_leave(mask);
}

/* ---- signals ---- */

enum { LF_SIGNALS = 65 };
static void (*_Atomic lf_handlers[LF_SIGNALS])(int);

static void lf_return_from_level(struct lf_thread *self)
{
    if (!self)
        return;
    const uint64_t mask = lf_block_signals();
    lf_end_level(self);
    lf_restore_signals(mask);
}

static void lf_on_signal(int signal)
{
    struct lf_thread *const self = lf_begin_level();
    atomic_load(&lf_handlers[signal])(signal);
    lf_return_from_level(self);
}

static void lf_on_siginfo(int signal, siginfo_t *info, void *context)
{
    struct lf_thread *const self = lf_begin_level();
    const struct sigaction action = {.sa_handler = atomic_load(&lf_handlers[signal])};
    action.sa_sigaction(signal, info, context);
    lf_return_from_level(self);
}

static int lf_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (signal < 1 || signal >= LF_SIGNALS)
        return sigaction(signal, action, old);
    struct sigaction wrapped, before;
    const uint64_t mask = lf_block_signals();
    void (*const previous)(int) = atomic_load(&lf_handlers[signal]);
    if (action) {
        wrapped = *action;
        if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
            atomic_store(&lf_handlers[signal], action->sa_handler);
            if (action->sa_flags & SA_SIGINFO)
                wrapped.sa_sigaction = lf_on_siginfo;
            else
                wrapped.sa_handler = lf_on_signal;
        }
    }
    const int result = sigaction(signal, action ? &wrapped : NULL, &before);
    if (result < 0)
        atomic_store(&lf_handlers[signal], previous);
    if (result == 0 && old) {
        if (before.sa_handler == lf_on_signal || before.sa_sigaction == lf_on_siginfo)
            before.sa_handler = previous;
        *old = before;
    }
    lf_restore_signals(mask);
    return result;
}

/* ---- libraries ---- */

/* Called by a follower. */
static uint32_t lf_let_join(void (*variables)(struct lf_variables *))
{
    const uint64_t mask = lf_take_lock(&lf_lock);
    const uint32_t number = atomic_load(&lf_libraries);
    if (number < LF_LIBRARIES) {
        lf_variables_of[number] = variables;
        atomic_store_explicit(&lf_libraries, number + 1, memory_order_release);
    }
    lf_give_lock(&lf_lock, mask);
    return number < LF_LIBRARIES ? number : 0;
}

static const struct lf_leader lf_as_leader = {
    .version = LF_VERSION,
    .c_library = &environ,
    .join = lf_let_join,
    .slow = lf_slow,
    .unwind = lf_unwind,
    .event = lf_event,
    .register_module = lf_register,
    .sigaction = lf_sigaction,
    .before_fork = lf_before_fork,
    .in_parent = lf_in_parent,
    .in_child = lf_in_forked_child,
};

static void lf_ask_before_fork(void)
{
    atomic_load(&lf_leader)->before_fork();
}

static void lf_ask_in_parent(void)
{
    atomic_load(&lf_leader)->in_parent();
}

static void lf_ask_in_child(void)
{
    atomic_load(&lf_leader)->in_child();
}

/* A leader that is linked with another C library (a static program that opens libraries) does not learn
 * of the forks of this one. */
static void lf_follow(const struct lf_leader *leader)
{
    atomic_store(&lf_leader, leader);
    if (leader->c_library != &environ)
        pthread_atfork(lf_ask_before_fork, lf_ask_in_parent, lf_ask_in_child);
}

static void lf_lead(void)
{
    atomic_store(&lf_leader, &lf_as_leader);
    lf_begin();
}

/* Finds the leader, or becomes it. */
static LF_COLD const struct lf_leader *lf_join(void)
{
    const uint64_t mask = lf_take_lock(&lf_join_lock);
    if (!atomic_load(&lf_leader)) {
        const int is_recorded = lf_variable("LOOPFOLD_PATHS") || lf_variable("LOOPFOLD_RECORD");
        const struct lf_leader *const found = is_recorded ? lf_find_leader() : NULL;
        lf_library = found ? found->join(lf_own_variables) : 0;
        if (lf_library)
            lf_follow(found);
        else
            lf_lead();
    }
    lf_give_lock(&lf_join_lock, mask);
    return atomic_load(&lf_leader);
}

static inline const struct lf_leader *lf_ask(void)
{
    const struct lf_leader *const leader = atomic_load_explicit(&lf_leader, memory_order_acquire);
    return leader ? leader : lf_join();
}

/* ---- what programs call ---- */

/* Every module with instrumented functions calls this before any of them runs. */
LF_PUBLIC void loopfold_rt_register(uint32_t *ids, uint32_t functions, const uint8_t *description, uint64_t bytes)
{
    lf_ask()->register_module(ids, functions, description, bytes);
}

/* A token, where there is no room for it. */
LF_PUBLIC LF_COLD void loopfold_rt_slow(uint32_t token)
{
    lf_ask()->slow(lf_library, token);
}

/* Control has arrived in a frame by a jump or an exception: the frames inside of it are gone. */
LF_PUBLIC void loopfold_rt_unwind(uint32_t depth)
{
    lf_ask()->unwind(lf_library, depth);
}

/* An event of another recorder. */
LF_PUBLIC uint32_t loopfold_rt_event(void)
{
    return lf_ask()->event();
}

LF_PUBLIC int loopfold_rt_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    return lf_ask()->sigaction(signal, action, old);
}

LF_PUBLIC void (*loopfold_rt_signal(int signal, void (*handler)(int)))(int)
{
    struct sigaction action = {.sa_flags = SA_RESTART}, old;
    action.sa_handler = handler;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return loopfold_rt_sigaction(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}
