/* A program with a run-time library, which calls libraries that have their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

enum { MAIN, WORK, HANDLER, DEEP };

static void (*call_back)(void (*)(void)), (*only_work)(void), (*leave_with_path)(void);
static jmp_buf before;

static void deep(void)
{
    enter(DEEP);
    path(1);
    only_work();
    leave();
}

static void jump(void)
{
    enter(DEEP);
    longjmp(before, 1);
}

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    (void)signal;
    handled = handled + 1;
    only_work();
    enter(HANDLER);
    path(0);
    only_work();
    leave();
}

static void rounds(long count)
{
    enter(MAIN);
    for (volatile long round = 0; round < count; round = round + 1) {
        only_work();
        path(0);
        call_back(deep);
        leave_with_path();
        path(2);
    }
    leave();
}

static void jumps(long count)
{
    enter(MAIN);
    path(0);
    volatile uint32_t depth = loopfold_rt_depth;
    for (volatile long round = 0; round < count; round = round + 1) {
        if (!setjmp(before))
            call_back(jump);
        loopfold_rt_unwind(depth);
        path(1);
    }
    leave();
}

static void forks(void)
{
    enter(MAIN);
    path(0);
    for (int round = 0; round < 3; round++) {
        const pid_t child = fork();
        if (child == 0) {
            only_work();
            path(1);
            leave();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    only_work();
    leave();
}

int main(int count, char **arguments)
{
    void *const library = count > 2 ? dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 9;
    *(void **)&call_back = dlsym(library, "call_back");
    *(void **)&only_work = dlsym(library, "only_work");
    *(void **)&leave_with_path = dlsym(library, "leave_with_path");
    const long number = count > 3 ? atol(arguments[3]) : 1;
    if (!strcmp(arguments[1], "rounds"))
        rounds(number);
    if (!strcmp(arguments[1], "jumps"))
        jumps(number);
    if (!strcmp(arguments[1], "forks"))
        forks();
    if (!strcmp(arguments[1], "signals")) {
        loopfold_rt_signal(SIGALRM, handler);
        const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &often, NULL);
        while (handled < number)
            rounds(100);
        setitimer(ITIMER_REAL, &never, NULL);
        signal(SIGALRM, SIG_IGN);
        printf("%d\n", (int)handled);
    }
    return 0;
}
