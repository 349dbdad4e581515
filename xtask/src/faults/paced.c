/* A program whose calls depend on nothing, and which takes its time: about so many milliseconds. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) int work(int number)
{
    int sum = 0;
    for (int step = 0; step < number % 7; step++)
        sum += step;
    return sum;
}

int main(int count, char **arguments)
{
    const long time = count > 1 ? atol(arguments[1]) : 1000;
    int sum = 0;
    for (long round = 0; round < time * 2; round++) {
        for (int call = 0; call < 10; call++)
            sum += work((int)((round * 10 + call) * 2654435761u >> 20));
        usleep(400);
    }
    return sum == 1;
}
