/* A program whose calls depend on nothing, and which takes its time: about so many milliseconds. It counts
 * them itself, in a file that outlives it. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long unused, *counted = &unused;

__attribute__((noinline)) int work(int number)
{
    int sum = 0;
    *counted = *counted + 1;
    for (int step = 0; step < number % 7; step++)
        sum += step;
    return sum;
}

/* The counter in a file. */
__attribute__((noinline, no_profile_instrument_function)) static void count_in(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *counted) < 0)
        exit(9);
    counted = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
}

int main(int count, char **arguments)
{
    const long time = count > 1 ? atol(arguments[1]) : 1000;
    int sum = 0;
    if (count > 2)
        count_in(arguments[2]);
    for (long round = 0; round < time * 2; round++) {
        for (int call = 0; call < 10; call++)
            sum += work((int)((round * 10 + call) * 2654435761u >> 20));
        usleep(400);
    }
    return sum == 1;
}
