/* Programs that emit tokens as instrumented ones do, chosen by the first argument. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

enum { MAIN, WORK, HANDLER, DEEP };

/* So many paths in a function. */
static void work(int count)
{
    enter(WORK);
    for (int number = 0; number < count; number++)
        path((uint32_t)number % 3);
    leave();
}

/* With a pause after so many steps, if this is set. */
static long pace;

/* A tree of calls and paths that depends on the seed alone. */
static void wander(uint32_t seed, long steps)
{
    enter(MAIN);
    int depth = 1;
    for (long step = 0; step < steps; step++) {
        if (pace > 0 && step % pace == 0)
            usleep(100);
        seed = seed * 1664525u + 1013904223u;
        const uint32_t choice = seed >> 24;
        if (choice < 20 && depth < 50) {
            enter(choice % 4);
            depth++;
        } else if (choice < 40 && depth > 1) {
            leave();
            depth--;
        } else {
            path(choice % 5);
        }
    }
    while (depth-- > 0)
        leave();
}

static long steps = 100000;

static void *wandering_thread(void *seed)
{
    wander((uint32_t)(uintptr_t)seed, steps);
    return NULL;
}

/* ---- threads ---- */

static pthread_key_t last_words;

static void say_last_words(void *count)
{
    work((int)(intptr_t)count);
}

static void *thread(void *count)
{
    work((int)(intptr_t)count);
    pthread_setspecific(last_words, count);
    return NULL;
}

static int threads(int rounds, int at_once)
{
    pthread_key_create(&last_words, say_last_words);
    enter(MAIN);
    for (int round = 0; round < rounds; round++) {
        pthread_t all[64];
        for (int number = 0; number < at_once; number++)
            pthread_create(&all[number], NULL, thread, (void *)(intptr_t)(round * at_once + number + 1));
        for (int number = 0; number < at_once; number++)
            pthread_join(all[number], NULL);
        path(0);
    }
    leave();
    return 0;
}

/* ---- processes ---- */

static void wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
}

static int processes(const char *program)
{
    enter(MAIN);
    path(0);
    enter(DEEP);
    pid_t child = fork();
    if (child == 0) {
        work(4);
        leave();
        path(1);
        leave();
        _exit(3);
    }
    wait_for(child);
    path(1);
    child = fork();
    if (child == 0) {
        path(2);
        /* Files that are not its own are closed, as daemons do. */
        for (int file = 3; file < 1024; file++)
            close(file);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            path(0);
            kill(getpid(), SIGKILL);
        }
        wait_for(grandchild);
        execl(program, program, "once", (char *)NULL);
    }
    wait_for(child);
    /* Neither of these is a process of its own. */
    child = vfork();
    if (child == 0)
        _exit(0);
    wait_for(child);
    leave();
    leave();
    return 0;
}

static int storm(int forks)
{
    enter(MAIN);
    for (int number = 1; number <= forks; number++) {
        if (fork() == 0) {
            work(2);
            _exit(0);
        }
        if (number % 50 == 0)
            while (waitpid(-1, NULL, WNOHANG) > 0) {
            }
    }
    while (wait(NULL) > 0) {
    }
    leave();
    return 0;
}

/* ---- signals ---- */

/* Goes on whatever it is asked to do, for a minute. */
static int stubborn(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    alarm(60);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        work(3);
        usleep(50);
    }
}

static sigjmp_buf before;
static volatile sig_atomic_t signals, jumps;

static void handler(int signal)
{
    (void)signal;
    enter(HANDLER);
    path(0);
    signals = signals + 1;
    if (signals % 4 == 0) {
        jumps = jumps + 1;
        siglongjmp(before, 1);
    }
    leave();
}

static int raised(void)
{
    enter(MAIN);
    volatile uint32_t depth = loopfold_rt_depth;
    loopfold_rt_signal(SIGUSR1, handler);
    struct sigaction now;
    if (loopfold_rt_sigaction(SIGUSR1, NULL, &now) != 0 || now.sa_handler != handler)
        return 9;
    sigsetjmp(before, 1);
    loopfold_rt_unwind(depth);
    path(0);
    while (jumps < 2) {
        enter(WORK);
        path(1);
        raise(SIGUSR1);
        leave();
    }
    leave();
    return 0;
}

/* A timer interrupts at any instruction. */
static int interrupted(int most)
{
    enter(MAIN);
    volatile uint32_t depth = loopfold_rt_depth;
    loopfold_rt_signal(SIGALRM, handler);
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    sigsetjmp(before, 1);
    loopfold_rt_unwind(depth);
    setitimer(ITIMER_REAL, &often, NULL);
    while (jumps < most) {
        enter(WORK);
        enter(DEEP);
        path(1);
        leave();
        leave();
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    leave();
    return 0;
}

/* ---- others ---- */

static int load(const char *library)
{
    enter(MAIN);
    void *const loaded = dlopen(library, RTLD_NOW);
    if (!loaded)
        return 9;
    path(0);
    ((void (*)(void))dlsym(loaded, "plugin"))();
    path(1);
    leave();
    return 0;
}

static void *copy_of(void *unused)
{
    (void)unused;
    work(1);
    return NULL;
}

int main(int count, char **arguments)
{
    const char *const mode = count > 1 ? arguments[1] : "";
    const int number = count > 2 ? atoi(arguments[2]) : 0;
    errno = 77;
    if (!strcmp(mode, "threads"))
        return threads(number, atoi(arguments[3]));
    if (!strcmp(mode, "processes"))
        return processes(arguments[0]);
    if (!strcmp(mode, "storm"))
        return storm(number);
    if (!strcmp(mode, "stubborn"))
        return stubborn();
    if (!strcmp(mode, "raised"))
        return raised();
    if (!strcmp(mode, "interrupted"))
        return interrupted(number);
    if (!strcmp(mode, "load"))
        return load(arguments[2]);
    if (!strcmp(mode, "pages")) {
        enter(0);
        path(0);
        char *const pages = mmap(NULL, (size_t)number * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < number; page++)
            ((volatile char *)pages)[(size_t)page * 4096] = 1;
        path(1);
        path(2);
        leave();
        return 0;
    }
    if (!strcmp(mode, "errno")) {
        for (int round = 0; round < 100000; round++)
            work(5);
        return errno == 77 ? 0 : 9;
    }
    if (!strcmp(mode, "first file")) {
        work(1);
        return dup(0);
    }
    if (!strcmp(mode, "wander")) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        steps = count > 3 ? atol(arguments[3]) : steps;
        pace = count > 4 ? atol(arguments[4]) : 0;
        pthread_t other;
        pthread_create(&other, NULL, wandering_thread, (void *)7);
        wander(3, steps);
        pthread_join(other, NULL);
        puts("the end");
        return number;
    }
    if (!strcmp(mode, "gap")) {
        /* As if something else had been written to the chunk: the reader takes a 0 for its end. */
        work(2);
        emit(0);
        work(3);
        return 0;
    }
    if (!strcmp(mode, "left behind")) {
        if (fork() == 0) {
            usleep(200000);
            work(7);
            _exit(0);
        }
        work(2);
        return 0;
    }
    if (!strcmp(mode, "cancelled")) {
        pthread_t other;
        pthread_create(&other, NULL, copy_of, NULL);
        pthread_cancel(other);
        pthread_join(other, NULL);
        return 0;
    }
    if (!strcmp(mode, "die")) {
        work(5);
        kill(getpid(), number);
    }
    work(2);
    return 0;
}
