// SPDX-License-Identifier: Apache-2.0
/* Keeps one CPU busy in stacks of 25 frames, with frame pointers or without, in thousands of variants of which a few are hot.
 *
 *     load COUNTERS CPU SECONDS
 *
 * Descends again and again and counts its descents in the file COUNTERS (64 bytes for each CPU), so that others can see how fast it
 * is. Ends by itself. What it does does not follow any clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
	COUNTER_WORDS = 8,
	LEAF_STEPS = 256,
	CHECK_DESCENTS = 4096,
};

typedef uint64_t (*level)(uint64_t random);

static inline __attribute__((always_inline)) uint64_t step(uint64_t random)
{
	random ^= random << 13;
	random ^= random >> 7;
	return random ^ random << 17;
}

static __attribute__((noinline)) uint64_t leaf(uint64_t random)
{
	for (int i = 0; i < LEAF_STEPS; i++)
		random = step(random);
	return random;
}

/* A function that calls the next one; the number keeps the compiler from making two of them one. */
#define PLAIN(name, next, number) \
	static __attribute__((noinline)) uint64_t name(uint64_t random) \
	{ \
		return next(random + (number)) ^ (number); \
	}
/* Four functions that call the same next one, and one that chooses among them: half go one way, an eighth the last. */
#define FORK(name, next, number) \
	PLAIN(name##_a, next, number) \
	PLAIN(name##_b, next, number + 1) \
	PLAIN(name##_c, next, number + 2) \
	PLAIN(name##_d, next, number + 3) \
	static __attribute__((noinline)) uint64_t name(uint64_t random) \
	{ \
		static const level ways[8] = { name##_a, name##_a, name##_a, name##_a, name##_b, name##_b, name##_c, name##_d }; \
		return ways[random >> 61](step(random)) ^ (number); \
	}

FORK(level_24, leaf, 2400)
PLAIN(level_22, level_24, 22)
FORK(level_21, level_22, 2100)
PLAIN(level_19, level_21, 19)
FORK(level_18, level_19, 1800)
PLAIN(level_16, level_18, 16)
FORK(level_15, level_16, 1500)
PLAIN(level_13, level_15, 13)
FORK(level_12, level_13, 1200)
PLAIN(level_10, level_12, 10)
FORK(level_9, level_10, 900)
PLAIN(level_7, level_9, 7)
PLAIN(level_6, level_7, 6)
PLAIN(level_5, level_6, 5)
PLAIN(level_4, level_5, 4)

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static volatile uint64_t *open_counter(const char *path, int cpu)
{
	int file = open(path, O_RDWR);
	size_t size = (cpu + 1) * COUNTER_WORDS * sizeof(uint64_t);
	void *counters = file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (counters == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	return (uint64_t *)counters + cpu * COUNTER_WORDS;
}

int main(int count, char **words)
{
	cpu_set_t cpus;

	if (count != 4)
		return 2;
	int cpu = atoi(words[2]);
	double end_s = now_s() + atof(words[3]);
	volatile uint64_t *descents = open_counter(words[1], cpu);
	uint64_t random = 0x9e3779b97f4a7c15 + cpu;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	while (now_s() < end_s)
		for (int i = 0; i < CHECK_DESCENTS; i++) {
			random = level_4(random) | 1;
			*descents += 1;
		}
	return 0;
}
