/* Counts the calls of each function that says CALLED, in all threads and copies of the process together,
   and prints the counts when the program ends. The name is that in an archive. Each source has counts of
   its own, so libraries may hide whatever they like. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counter {
	const char *name;
	unsigned long calls;
};

enum { COUNTERS = 64 };

/* In memory that copies share. */
static struct counter *counters;
static int counters_owner;

/* Before there are copies, and before the first call. */
__attribute__((constructor, no_profile_instrument_function)) static void make_counters(void)
{
	if (counters)
		return;
	counters_owner = getpid();
	counters = (struct counter *)mmap(NULL, COUNTERS * sizeof(struct counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

__attribute__((no_profile_instrument_function, noinline)) static struct counter *new_counter(const char *name)
{
	make_counters();
	for (struct counter *counter = counters;; counter++) {
		const char *known = NULL;
		if (__atomic_compare_exchange_n(&counter->name, &known, name, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || strcmp(known, name) == 0)
			return counter;
	}
}

#define CALLED(text) \
	do { \
		static struct counter *own; \
		struct counter *counter = __atomic_load_n(&own, __ATOMIC_ACQUIRE); \
		if (!counter) \
			__atomic_store_n(&own, counter = new_counter(text), __ATOMIC_RELEASE); \
		__atomic_fetch_add(&counter->calls, 1, __ATOMIC_RELAXED); \
	} while (0)

/* A call is an event only where the function is not inlined. */
#define FUNCTION __attribute__((noinline))

__attribute__((destructor, no_profile_instrument_function)) static void print_counts(void)
{
	if (counters && counters_owner == getpid())
		for (struct counter *counter = counters; counter->name; counter++)
			printf("%lu %s\n", counter->calls, counter->name);
}
