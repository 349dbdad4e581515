/* Threads that run at the same time. Each has started before the next one is created, so that they
   have the same numbers in every execution. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t started;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

__attribute__((noinline)) static long work(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i % 3 ? i : work(i / 4);
    return sum;
}

static void *run(void *argument)
{
    sem_post(&started);
    long sum = work((long)argument);
    pthread_mutex_lock(&lock);
    total += sum;
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void)
{
    pthread_t threads[4];
    sem_init(&started, 0, 0);
    for (long i = 0; i < 4; i++) {
        pthread_create(&threads[i], 0, run, (void *)(i * 40 + 10));
        sem_wait(&started);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("%ld\n", total);
    return 0;
}
