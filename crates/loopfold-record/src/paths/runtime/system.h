/* System calls, made without the C library: no function of the program is called by accident, none
 * is a point of cancellation, and errno stays.
 */
#ifndef LF_SYSTEM_H
#define LF_SYSTEM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static inline long lf_call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
    const int kept = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result < 0)
        result = -errno;
    errno = kept;
    return result;
#endif
}
#define lf_call(number, a, b, c) lf_call6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* Whether the result of mmap is an address. */
static inline int lf_is_address(long result)
{
    return result > 0 || result < -4095;
}

static inline uint64_t lf_clock(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now = {0, 0};
    lf_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static inline void lf_zero(void *memory, size_t bytes)
{
#if defined(__x86_64__)
    size_t words = bytes / 8;
    __asm__ volatile("rep stosq" : "+D"(memory), "+c"(words) : "a"(0L) : "memory");
#else
    for (volatile uint64_t *word = memory, *end = word + bytes / 8; word < end; word++)
        *word = 0;
#endif
}

static inline uint32_t lf_pid(void)
{
    return (uint32_t)lf_call(SYS_getpid, 0, 0, 0);
}

static inline uint64_t lf_block_signals(void)
{
    const uint64_t all = ~(uint64_t)0;
    uint64_t before = 0;
    lf_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
    return before;
}

static inline void lf_restore_signals(uint64_t mask)
{
    lf_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
}

static inline void lf_sleep(long nanoseconds)
{
    const struct timespec time = {0, nanoseconds};
    lf_call(SYS_nanosleep, &time, 0, 0);
}

/* A lock is held with signals blocked, so that no handler waits for its own thread. */
static inline uint64_t lf_take_lock(_Atomic int *lock)
{
    const uint64_t mask = lf_block_signals();
    while (atomic_exchange_explicit(lock, 1, memory_order_acquire))
        lf_sleep(10000);
    return mask;
}

static inline void lf_give_lock(_Atomic int *lock, uint64_t mask)
{
    atomic_store_explicit(lock, 0, memory_order_release);
    lf_restore_signals(mask);
}

extern char **environ;

/* What follows the name in `NAME=value`, if it is this name. */
static inline const char *lf_value(const char *entry, const char *name)
{
    while (*name && *entry == *name)
        entry++, name++;
    return !*name && *entry == '=' ? entry + 1 : NULL;
}

/* The environment as the kernel has it, for what runs before the C library has its own. It is kept. */
static inline const char *lf_early_variable(const char *name)
{
    enum { LF_MOST_BYTES = 1 << 21 };
    static char *environment;
    static size_t filled;
    const int file = environment ? -1 : (int)lf_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file >= 0) {
        const long at = lf_call6(SYS_mmap, 0, LF_MOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        environment = lf_is_address(at) ? (char *)at : NULL;
        long length = 1;
        while (environment && length > 0 && filled < LF_MOST_BYTES - 1) {
            length = lf_call(SYS_read, file, environment + filled, LF_MOST_BYTES - 1 - filled);
            filled += length > 0 ? (size_t)length : 0;
        }
        lf_call(SYS_close, file, 0, 0);
    }
    for (size_t at = 0; environment && at < filled; at++) {
        const char *const value = lf_value(environment + at, name);
        if (value)
            return value;
        while (environment[at])
            at++;
    }
    return NULL;
}

static inline const char *lf_variable(const char *name)
{
    if (!environ)
        return lf_early_variable(name);
    for (char **entry = environ; *entry; entry++) {
        const char *const value = lf_value(*entry, name);
        if (value)
            return value;
    }
    return NULL;
}

#endif
