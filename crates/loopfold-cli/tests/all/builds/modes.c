/* What programs do besides calling functions, chosen by the first argument. */
#include "counted.h"
#include "shapes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

FUNCTION static int work(int rounds)
{
	CALLED("work");
	int sum = 0;
	for (int round = 0; round < rounds; round++)
		sum += round % 5 ? area(round) : edges(round);
	return sum;
}

FUNCTION static void *thread(void *rounds)
{
	CALLED("thread");
	return (void *)(long)work((int)(long)rounds);
}

FUNCTION static void threads(void)
{
	CALLED("threads");
	pthread_t all[8];
	for (int number = 0; number < 8; number++)
		pthread_create(&all[number], NULL, thread, (void *)(long)(number * 10));
	for (int number = 0; number < 8; number++)
		pthread_join(all[number], NULL);
}

/* A copy begins with the functions that are open: `main`, and this. */
FUNCTION static void forks(int count)
{
	CALLED("forks");
	for (int number = 0; number < count; number++) {
		if (fork() == 0) {
			CALLED("main");
			CALLED("forks");
			_exit(work(number % 7) < 0);
		}
		if (number % 50 == 49)
			while (waitpid(-1, NULL, WNOHANG) > 0) {
			}
	}
	while (wait(NULL) > 0) {
	}
}

FUNCTION static void becomes(char *program)
{
	CALLED("becomes");
	for (int round = 0; round < 3; round++) {
		const pid_t child = vfork();
		if (child == 0) {
			execl(program, program, "once", (char *)NULL);
			_exit(9);
		}
		waitpid(child, NULL, 0);
	}
}

static volatile sig_atomic_t handled;

FUNCTION static void handler(int signal)
{
	CALLED("handler");
	handled = handled + 1;
	work(signal % 3);
}

/* Handlers of a timer may begin at any instruction. */
FUNCTION static void signals(void)
{
	CALLED("signals");
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	signal(SIGUSR1, handler);
	for (int round = 0; round < 100; round++)
		raise(SIGUSR1);
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 140)
		work(5);
	setitimer(ITIMER_REAL, &never, NULL);
}

static jmp_buf place;

FUNCTION static int dive(int depth)
{
	CALLED("dive");
	if (depth == 0)
		longjmp(place, 1);
	return dive(depth - 1) + work(depth);
}

FUNCTION static void jumps(void)
{
	CALLED("jumps");
	volatile int round = 0;
	setjmp(place);
	if (round++ < 50)
		dive(round % 9);
}

FUNCTION static void opens(const char *library)
{
	CALLED("opens");
	void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*const measure)(int) = opened ? (int (*)(int))dlsym(opened, "measure") : NULL;
	for (int round = 0; measure && round < 100; round++)
		measure(round);
}

int main(int count, char **arguments)
{
	CALLED("main");
	const char *const mode = count > 1 ? arguments[1] : "";
	if (!strcmp(mode, "threads"))
		threads();
	else if (!strcmp(mode, "forks"))
		forks(atoi(arguments[2]));
	else if (!strcmp(mode, "becomes"))
		becomes(arguments[0]);
	else if (!strcmp(mode, "signals"))
		signals();
	else if (!strcmp(mode, "jumps"))
		jumps();
	else if (!strcmp(mode, "opens"))
		opens(arguments[2]);
	else
		work(20);
	return 0;
}
