/* Regions of a program, for `loopfold record`.
 *
 *     loopfold_enter("solve");
 *     ...
 *     loopfold_mark("residual below 1e-6");
 *     loopfold_leave("solve");
 *
 * There is nothing to link, but for -ldl where the C library is older than glibc 2.34. When the program is not recorded, a call is a test of one variable.
 */
#ifndef LOOPFOLD_H
#define LOOPFOLD_H

#include <dlfcn.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LOOPFOLD_UNUSED __attribute__((unused))
#else
#define LOOPFOLD_UNUSED
#endif

typedef void (*loopfold_function)(const char *);

/* Which of the three, looked up once: the recorder is preloaded, so it is there from the start. */
LOOPFOLD_UNUSED static void loopfold_call(loopfold_function *function, const char *symbol, const char *name)
{
    static int is_recorded = -1;
    if (is_recorded < 0)
        is_recorded = dlsym((void *)0, "loopfold_enter_region") != (void *)0;
    if (!is_recorded)
        return;
    if (!*function)
        *(void **)function = dlsym((void *)0, symbol);
    if (*function)
        (*function)(name);
}

/* A region begins. */
LOOPFOLD_UNUSED static void loopfold_enter(const char *name)
{
    static loopfold_function function;
    loopfold_call(&function, "loopfold_enter_region", name);
}

/* It ends. */
LOOPFOLD_UNUSED static void loopfold_leave(const char *name)
{
    static loopfold_function function;
    loopfold_call(&function, "loopfold_leave_region", name);
}

/* Something happens. */
LOOPFOLD_UNUSED static void loopfold_mark(const char *name)
{
    static loopfold_function function;
    loopfold_call(&function, "loopfold_mark_place", name);
}

#ifdef __cplusplus
}
#endif

#endif
