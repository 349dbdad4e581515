/* Control flow of all kinds in C. */
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN __attribute__((noinline))

OWN static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

/* Two entries into one loop. */
OWN static int irreducible(int n, int second)
{
    int k = 0;
    if (second)
        goto b;
a:
    k += n;
    if (--n <= 0)
        return k;
b:
    k ^= 3;
    if (--n > 0)
        goto a;
    return k;
}

/* Several cases lead to one block, some fall through. */
OWN static int cases(int x)
{
    int y = 1;
    switch (x) {
    case 0: case 1: case 4: case 9: case 16:
        y = 7;
        break;
    case 2:
        y += x;
    case 3:
        y ^= x;
        break;
    case 5: case 25:
        return -1;
    default:
        for (int i = 0; i < x % 4; i++)
            y += i & 1 ? 3 : x;
    }
    return y * 2;
}

OWN static int computed(const unsigned char *code)
{
    static const void *const table[] = { &&push, &&add, &&jump, &&stop };
    int stack[16], top = 0, loops = 0;
    goto *table[*code++];
push:
    stack[top++] = *code++;
    goto *table[*code++];
add:
    if (top > 1) {
        top--;
        stack[top - 1] += stack[top];
    }
    goto *table[*code++];
jump:
    if (loops++ < 5)
        code -= *code;
    else
        code++;
    goto *table[*code++];
stop:
    return top ? stack[top - 1] : -1;
}

static jmp_buf outer;
static sigjmp_buf inner;

OWN static void dive(int n)
{
    if (n == 0)
        longjmp(outer, 5);
    dive(n - 1);
    puts("not reached");
}

OWN static int caught(int times)
{
    volatile int count = 0;
    int value = setjmp(outer);
    if (value)
        count += value;
    if (count < 5 * times)
        dive(count);
    return count;
}

OWN static int nested(int n)
{
    volatile int sum = 0;
    for (volatile int i = 0; i < n; i++) {
        if (sigsetjmp(inner, 1) == 0) {
            sum += caught(i % 3);
            if (i % 2)
                siglongjmp(inner, 1);
        } else {
            sum += 100;
        }
    }
    return sum;
}

OWN static int even(int n);
OWN static int odd(int n)
{
    if (n == 0)
        return 0;
    __attribute__((musttail)) return even(n - 1);
}
OWN static int even(int n)
{
    if (n == 0)
        return 1;
    __attribute__((musttail)) return odd(n - 1);
}

/* A loop whose back edge is critical, with a value that PHI nodes carry around. */
OWN static unsigned collatz(unsigned n)
{
    unsigned steps = 0;
    do {
        n = n % 2 ? 3 * n + 1 : n / 2;
        if (n > 100 && steps % 3 == 0)
            continue;
        steps++;
    } while (n != 1);
    return steps;
}

/* 2^24 paths, more than a function may have. */
OWN static unsigned ladder(unsigned bits)
{
    volatile unsigned sum = 1;
#define RUNG(n) if (bits & 1u << n) sum += n; else sum ^= n;
#define RUNGS(n) RUNG(n) RUNG(n + 1) RUNG(n + 2) RUNG(n + 3) RUNG(n + 4) RUNG(n + 5)
    RUNGS(0) RUNGS(6) RUNGS(12) RUNGS(18)
    return sum;
}

OWN static int assembler(int x)
{
    __asm__ goto("" : : : : elsewhere);
    if (x > 3)
        return x * 2;
elsewhere:
    return x - 1;
}

OWN static int frames(int n)
{
    int sum = 0;
    for (int i = 1; i < n; i++) {
        char text[i];
        char *more = alloca(i + 1);
        memset(text, i, sizeof text);
        more[i] = text[i / 2];
        sum += more[i];
    }
    return sum;
}

/* A library that is not instrumented calls back. */
static int compare(const void *one, const void *other)
{
    int a = *(const int *)one, b = *(const int *)other;
    return a < b ? -1 : a > b;
}

static volatile int handled;
static void handler(int number)
{
    if (number == SIGUSR1)
        handled++;
    else
        handled += 10;
}

/* A function that the compiler knows to compute its result from its argument alone. */
OWN __attribute__((const)) static int pure(int x) { return x % 3 ? x * x : x + 1; }

OWN static int stops(int x)
{
    if (x > 1000)
        abort();
    if (x > 900)
        __builtin_trap();
    if (x > 800)
        __builtin_unreachable();
    return x;
}

int main(int count, char **arguments)
{
    int sum = count;
    for (int i = 0; i < 30; i++)
        sum += cases(i) + irreducible(i, i & 1) + (int)collatz(i + 1) + pure(i) + pure(i);
    sum += fibonacci(9) + nested(6) + odd(7) + even(4) + frames(9) + stops(sum % 7);
    const unsigned char code[] = { 0, 1, 0, 2, 1, 2, 5, 3, 3, 3, 3 };
    sum += computed(code) + assembler(2) + assembler(8);
    for (unsigned bits = 1; bits < 1u << 24; bits = bits * 3 + 1)
        sum += (int)ladder(bits);
    int numbers[] = { 5, 3, 9, 1, 1, 8 };
    qsort(numbers, 6, sizeof(int), compare);
    signal(SIGUSR1, handler);
    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGUSR2, &action, 0);
    raise(SIGUSR1);
    raise(SIGUSR2);
    printf("%d %d %d %s\n", sum, numbers[2], handled, arguments[count] ? "?" : "end");
    if (sum == 12345)
        return 1;
    exit(0);
}
