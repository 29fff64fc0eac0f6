# SPDX-License-Identifier: Apache-2.0
"""A C program that waits in ways that are known, and measures each wait by its own clock.

It prints one line, "waited_ns=... runnable_ns=... cpu_ns=... wall_ns=...": what its main thread saw of itself from start to there, where
waited_ns is the time around the calls it waits in (waits for a CPU included) and the next two are the kernel's own account of the thread
(/proc/thread-self/schedstat). Then it stays in pause(2). System calls are made in the functions that are to be seen in the stacks.
"""

WAITS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c, long d)
{
	long answer;
	register long r10 asm("r10") = d;
	asm volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return answer;
}
static long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}
static long waited_ns, begun_ns;
__attribute__((noinline)) void nap(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};
	call(SYS_nanosleep, (long)&time, 0, 0, 0);
	asm volatile("");
}
static void sleeps(void)
{
	for (int i = 0; i < 20; i++) {
		static const long naps_ns[] = {10000000, 20000000, 50000000};
		for (int j = 0; j < 3; j++) {
			long from_ns = now_ns();
			nap(naps_ns[j]);
			waited_ns += now_ns() - from_ns;
		}
	}
}
/* By the numbers and structures of 32-bit programs. */
static void old_sleeps(void)
{
	int *time = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long answer, from_ns = now_ns();
	time[1] = 100000000;
	asm volatile("int $0x80" : "=a"(answer) : "a"(162L), "b"(time), "c"(0L) : "memory");
	waited_ns += now_ns() - from_ns;
}
static int lock, turns; /* lock: 0 free, 2 held and perhaps waited for, as in glibc */
__attribute__((noinline)) void take(int *word)
{
	while (__atomic_exchange_n(word, 2, __ATOMIC_SEQ_CST))
		call(SYS_futex, (long)word, 128, 2, 0); /* FUTEX_WAIT_PRIVATE */
	asm volatile("");
}
__attribute__((noinline)) void let_go(int *word)
{
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	call(SYS_futex, (long)word, 129, 1, 0); /* FUTEX_WAKE_PRIVATE */
	asm volatile("");
}
static void *holder(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	while (turns < 25) {
		take(&lock);
		__atomic_fetch_add(&turns, 1, __ATOMIC_SEQ_CST);
		nap(30000000);
		let_go(&lock);
		nap(5000000);
	}
	return 0;
}
static void mutex(void)
{
	pthread_t thread;
	pthread_create(&thread, 0, holder, 0);
	for (int seen = 0; seen < 25;) {
		if (__atomic_load_n(&turns, __ATOMIC_SEQ_CST) == seen) {
			nap(1000000);
			continue;
		}
		seen = turns;
		long from_ns = now_ns();
		take(&lock);
		waited_ns += now_ns() - from_ns;
		let_go(&lock);
	}
	pthread_join(thread, 0);
}
static int ends[2];
__attribute__((noinline)) void feed(void)
{
	call(SYS_write, ends[1], (long)"x", 1, 0);
	asm volatile("");
}
static void *feeder(void *unused)
{
	prctl(PR_SET_NAME, "feeder");
	for (int i = 0; i < 30; i++) {
		nap(20000000);
		feed();
	}
	return 0;
}
__attribute__((noinline)) void drink(void)
{
	char byte;
	call(SYS_read, ends[0], (long)&byte, 1, 0);
	asm volatile("");
}
static void pipes(void)
{
	pthread_t thread;
	pipe(ends);
	pthread_create(&thread, 0, feeder, 0);
	for (int i = 0; i < 30; i++) {
		long from_ns = now_ns();
		drink();
		waited_ns += now_ns() - from_ns;
	}
	pthread_join(thread, 0);
}
__attribute__((noinline)) long swallow(int file, char *into, long bytes)
{
	long got = call(SYS_read, file, (long)into, bytes, 0);
	asm volatile("");
	return got;
}
static void cold(const char *path)
{
	static char block[1 << 16];
	int file = open(path, O_RDONLY);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	long from_ns = now_ns();
	while (swallow(file, block, sizeof(block)) > 0)
		;
	waited_ns += now_ns() - from_ns;
}
__attribute__((noinline)) void await(int pid)
{
	call(SYS_wait4, pid, 0, 0, 0);
	asm volatile("");
}
static void children(void)
{
	for (int i = 0; i < 10; i++) {
		int pid = fork();
		if (!pid) {
			prctl(PR_SET_NAME, "child");
			nap(50000000);
			_exit(0);
		}
		long from_ns = now_ns();
		await(pid);
		waited_ns += now_ns() - from_ns;
	}
}
/* Two processes on one CPU. */
static void hogs(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	int pid = fork();
	long until_ns = now_ns() + 1500000000;
	while (now_ns() < until_ns)
		work(1000);
	if (!pid)
		_exit(0);
	await(pid);
}
/* Many threads that sleep briefly, all the time. */
static long crowd_until_ns;
static void *sleeper(void *unused)
{
	prctl(PR_SET_NAME, "sleeper");
	while (now_ns() < crowd_until_ns)
		nap(2000000);
	return 0;
}
static void crowd(void)
{
	pthread_t threads[32];
	crowd_until_ns = now_ns() + 1500000000;
	for (int i = 0; i < 32; i++)
		pthread_create(&threads[i], 0, sleeper, 0);
	for (int i = 0; i < 32; i++)
		pthread_join(threads[i], 0);
}
/* Very many threads that wait for one word to change, and are all woken at once, three times. */
static int generation = 100, ready, rounds_waited; /* a wait for the value 2 would be one for a lock */
static long all_waited_ns;
static void *waiter(void *unused)
{
	long ns = 0;
	for (int round = 0; round < 3; round++) {
		long from_ns = now_ns();
		__atomic_fetch_add(&ready, 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&generation, __ATOMIC_SEQ_CST) == 100 + round)
			call(SYS_futex, (long)&generation, 128, 100 + round, 0);
		ns += now_ns() - from_ns;
	}
	__atomic_fetch_add(&all_waited_ns, ns, __ATOMIC_SEQ_CST);
	return 0;
}
static void multitude(int threads)
{
	pthread_t *all = calloc(threads, sizeof(*all));
	pthread_attr_t small;
	int begun = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	prctl(PR_SET_NAME, "multitude");
	while (begun < threads && !pthread_create(&all[begun], &small, waiter, 0))
		begun++;
	for (int round = 0; round < 3; round++) {
		while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < begun * (round + 1))
			nap(1000000);
		nap(200000000);
		__atomic_fetch_add(&generation, 1, __ATOMIC_SEQ_CST);
		call(SYS_futex, (long)&generation, 129, 1 << 30, 0);
	}
	for (int i = 0; i < begun; i++)
		pthread_join(all[i], 0);
	prctl(PR_SET_NAME, "waits");
	waited_ns = all_waited_ns;
	rounds_waited = begun;
}
static void schedstat(long *cpu_ns, long *runnable_ns)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	fscanf(file, "%ld %ld", cpu_ns, runnable_ns);
	fclose(file);
}
int main(int argc, char **argv)
{
	long cpu_before_ns, runnable_before_ns, cpu_ns, runnable_ns;
	getchar(); /* until the test has looked around */
	schedstat(&cpu_before_ns, &runnable_before_ns);
	begun_ns = now_ns();
	if (!strcmp(argv[1], "sleeps"))
		sleeps();
	else if (!strcmp(argv[1], "old_sleeps"))
		old_sleeps();
	else if (!strcmp(argv[1], "mutex"))
		mutex();
	else if (!strcmp(argv[1], "pipes"))
		pipes();
	else if (!strcmp(argv[1], "cold"))
		cold(argv[2]);
	else if (!strcmp(argv[1], "children"))
		children();
	else if (!strcmp(argv[1], "hogs"))
		hogs(atoi(argv[2]));
	else if (!strcmp(argv[1], "crowd"))
		crowd();
	else if (!strcmp(argv[1], "multitude"))
		multitude(atoi(argv[2]));
	long wall_ns = now_ns() - begun_ns;
	schedstat(&cpu_ns, &runnable_ns);
	runnable_ns -= runnable_before_ns;
	cpu_ns -= cpu_before_ns;
	printf("waited_ns=%ld runnable_ns=%ld cpu_ns=%ld wall_ns=%ld threads=%d\n", waited_ns, runnable_ns, cpu_ns, wall_ns, rounds_waited);
	fflush(stdout);
	for (;;)
		pause();
}
"""

# Sleeps in linger(), called by settle(), called by main(). With an argument the frame pointer leads into a page that is not there: of the
# file with that name, or, when it is "", one that somebody else is to serve (userfaultfd(2)), which nobody does.
ASLEEP = r"""
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
__attribute__((noinline)) void linger(void *frame)
{
	long answer = SYS_pause;
	frame = frame ? frame : __builtin_frame_address(0);
	asm volatile("xchg %%rdi, %%rbp\n\tsyscall\n\txchg %%rdi, %%rbp" : "+a"(answer), "+D"(frame) : : "rcx", "r11", "memory");
}
__attribute__((noinline)) void settle(void *frame)
{
	linger(frame);
	asm volatile("");
}
static void *trap(char *page, const char *file)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register missing = {.range = {(long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int faults;
	if (*file) {
		if (mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, open(file, O_RDONLY), 0) != page)
			abort();
		return page + 64;
	}
	faults = syscall(SYS_userfaultfd, 0);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || madvise(page, 4096, MADV_DONTNEED) || ioctl(faults, UFFDIO_REGISTER, &missing))
		abort();
	return page + 64;
}
int main(int argc, char **argv)
{
	char area[16384];
	printf("asleep\n"), fflush(stdout);
	settle(argc > 1 ? trap((char *)((long)area + 4096 & -4096L), argv[1]) : 0);
	asm volatile("" : : "r"(area) : "memory");
}
"""
