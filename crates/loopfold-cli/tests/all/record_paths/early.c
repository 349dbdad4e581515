/* A program that emits tokens before its constructor registers it, as code does that a sanitizer
 * calls. */
#include "emit.h"

static void early(void)
{
    for (int round = 0; round < 2000; round++) {
        enter(0);
        path(0);
        leave();
    }
}

__attribute__((section(".preinit_array"), used)) static void (*const begin)(void) = early;

int main(void)
{
    enter(1);
    path(0);
    path(1);
    leave();
    return 0;
}
