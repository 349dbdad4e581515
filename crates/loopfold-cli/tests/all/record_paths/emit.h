/* What the compiler pass inserts, by hand. `description.h` has the description that the test made. */
#include <stdint.h>

extern __thread uint32_t *loopfold_rt_cursor, *loopfold_rt_limit;
extern __thread uint32_t loopfold_rt_depth;
void loopfold_rt_slow(uint32_t token);
void loopfold_rt_unwind(uint32_t depth);
void loopfold_rt_register(uint32_t *ids, uint32_t functions, const uint8_t *description, uint64_t bytes);
int loopfold_rt_sigaction();
void (*loopfold_rt_signal(int signal, void (*handler)(int)))(int);

#include "description.h"
static uint32_t ids[FUNCTIONS];

__attribute__((constructor(101))) static void register_module(void)
{
    loopfold_rt_register(ids, FUNCTIONS, description, sizeof description);
}

static inline void emit(uint32_t token)
{
    uint32_t *const place = loopfold_rt_cursor;
    if (place == loopfold_rt_limit) {
        loopfold_rt_slow(token);
    } else {
        *place = token;
        loopfold_rt_cursor = place + 1;
    }
}

static inline void enter(uint32_t function)
{
    loopfold_rt_depth++;
    emit(0x80000000u + ids[function]);
}

static inline void path(uint32_t number)
{
    emit(number + 1);
}

static inline void leave(void)
{
    loopfold_rt_depth--;
    emit(0xffffffffu);
}
