/* Counts the calls of each function that says CALLED, and prints the counts when the program ends. The
   name is that in an archive. Each source has counts of its own, so libraries may hide whatever they like. */
#include <stdio.h>

struct counter {
	const char *name;
	unsigned long calls;
	struct counter *next;
};

static struct counter *counters;

#define CALLED(text) \
	do { \
		static struct counter own = {text, 0, 0}; \
		if (own.calls++ == 0) { \
			own.next = counters; \
			counters = &own; \
		} \
	} while (0)

/* A call is an event only where the function is not inlined. */
#define FUNCTION __attribute__((noinline))

__attribute__((destructor, no_profile_instrument_function)) static void print_counts(void)
{
	for (struct counter *counter = counters; counter; counter = counter->next)
		printf("%lu %s\n", counter->calls, counter->name);
}
