/* A run-time library for tests: writes tokens, checked blocks and covered blocks as text, by thread.

   Buffers are short and of changing length, so that every place of the program meets a full one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__thread uint32_t *loopfold_rt_cursor, *loopfold_rt_limit;
__thread uint32_t loopfold_rt_depth;

static __thread uint32_t buffer[16];
static __thread uint32_t thread, length;
static uint32_t threads, functions = 1;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;

static const char *prefix(void)
{
    const char *name = getenv("LOOPFOLD_TEST_OUT");
    return name ? name : "/dev/null";
}

static void flush(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (uint32_t *token = buffer; token < loopfold_rt_cursor; token++)
        fprintf(out, "T %u %u\n", thread, *token);
    pthread_mutex_unlock(&lock);
    loopfold_rt_cursor = loopfold_rt_limit = 0;
}

static void start(void)
{
    if (thread)
        return;
    pthread_mutex_lock(&lock);
    if (!out) {
        out = fopen(prefix(), "w");
        pthread_key_create(&key, flush);
    }
    thread = ++threads;
    pthread_mutex_unlock(&lock);
    pthread_setspecific(key, buffer);
}

void loopfold_rt_slow(uint32_t token)
{
    start();
    if (loopfold_rt_cursor)
        flush(0);
    length = length % 16 + 1;
    loopfold_rt_cursor = buffer;
    loopfold_rt_limit = buffer + length;
    *loopfold_rt_cursor++ = token;
}

void loopfold_rt_unwind(uint32_t depth)
{
    while (loopfold_rt_depth > depth) {
        loopfold_rt_depth--;
        if (loopfold_rt_cursor == loopfold_rt_limit)
            loopfold_rt_slow(0xffffffff);
        else
            *loopfold_rt_cursor++ = 0xffffffff;
    }
}

void loopfold_rt_register(uint32_t *ids, uint32_t count, const uint8_t *description, uint64_t bytes)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%u", prefix(), functions);
    FILE *file = fopen(name, "w");
    if (file) {
        fwrite(description, 1, bytes, file);
        fclose(file);
    }
    for (uint32_t k = 0; k < count; k++)
        ids[k] = functions++;
}

int loopfold_rt_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    return sigaction(number, new, old);
}

void (*loopfold_rt_signal(int number, void (*handler)(int)))(int)
{
    return signal(number, handler);
}

/* Blocks that the pass marks for tests. */
void loopfold_rt_check(uint32_t function, uint32_t block)
{
    start();
    pthread_mutex_lock(&lock);
    fprintf(out, "C %u %u.%u\n", thread, function, block);
    pthread_mutex_unlock(&lock);
}

/* Blocks that the sanitizer's coverage marks. */
void __sanitizer_cov_trace_pc_guard_init(uint32_t *begin, uint32_t *end)
{
    static uint32_t guards;
    for (; begin < end; begin++)
        *begin = ++guards;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    start();
    pthread_mutex_lock(&lock);
    fprintf(out, "C %u %u\n", thread, *guard);
    pthread_mutex_unlock(&lock);
}

/* Behind the destructors of the program. */
__attribute__((destructor(101))) static void end(void)
{
    if (loopfold_rt_cursor)
        flush(0);
    if (out)
        fclose(out);
}
