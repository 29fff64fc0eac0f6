// SPDX-License-Identifier: Apache-2.0
/* Work whose speed tells what watching it costs. Each line of input is a number; the answer is CPU nanoseconds for each of so many:
 *	calls		getppid, which does nothing else
 *	locks		two threads that hand a lock to and fro, so that each of them waits for it each time
 *	connections	over loopback, opened and closed
 *	mebibytes	over one connection on loopback, in pieces of 64 KiB */
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in where;
static int listener;
static char piece[1 << 16];

/* Of all threads; what the kernel does for loopback in softirq is in it. */
static double cpu_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return at.tv_sec * 1e9 + at.tv_nsec;
}

static void call(long count)
{
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
}

static void connect_often(long count)
{
	for (long i = 0; i < count; i++) {
		int caller = socket(AF_INET, SOCK_STREAM, 0), peer;

		if (connect(caller, (struct sockaddr *)&where, sizeof(where)))
			abort();
		peer = accept(listener, 0, 0);
		close(caller);
		if (read(peer, piece, 1))
			abort();
		close(peer);
	}
}

/* As pthread_mutex_t begins in glibc: the word, a count and the owner. */
struct lock {
	_Atomic int word; /* 0 free, 2 taken and somebody waits */
	int count;
	int owner;
};

static struct lock first = {2}, second = {2};

static void wait_for(struct lock *lock)
{
	int free = 0;

	while (!__atomic_compare_exchange_n((int *)&lock->word, &free, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
		free = 0;
	}
}

static void release(struct lock *lock)
{
	lock->word = 0;
	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void *hand_back(void *count)
{
	first.owner = syscall(SYS_gettid);
	for (long i = 0; i < (long)count; i++) {
		wait_for(&second);
		release(&first);
	}
	return 0;
}

static void hand_over(long count)
{
	pthread_t other;

	second.owner = syscall(SYS_gettid);
	pthread_create(&other, 0, hand_back, (void *)count);
	for (long i = 0; i < count; i++) {
		release(&second);
		wait_for(&first);
	}
	pthread_join(other, 0);
}

static void *take(void *unused)
{
	int peer = accept(listener, 0, 0);

	while (read(peer, piece, sizeof(piece)) > 0)
		;
	close(peer);
	return unused;
}

static void stream(long count)
{
	static char sent[1 << 16];
	pthread_t taker;
	int caller = socket(AF_INET, SOCK_STREAM, 0);

	pthread_create(&taker, 0, take, 0);
	if (connect(caller, (struct sockaddr *)&where, sizeof(where)))
		abort();
	for (long i = 0; i < count * 16; i++)
		for (long done = 0; done < (long)sizeof(sent);) {
			long part = write(caller, sent + done, sizeof(sent) - done);

			if (part <= 0)
				abort();
			done += part;
		}
	close(caller);
	pthread_join(taker, 0);
}

int main(int argc, char **argv)
{
	socklen_t size = sizeof(where);
	char line[64];

	where.sin_family = AF_INET;
	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (argc < 2 || bind(listener, (struct sockaddr *)&where, sizeof(where)) || listen(listener, 16))
		return 1;
	getsockname(listener, (struct sockaddr *)&where, &size);
	while (fgets(line, sizeof(line), stdin)) {
		long count = atol(line);
		double from = cpu_ns();

		if (!strcmp(argv[1], "calls"))
			call(count);
		else if (!strcmp(argv[1], "locks"))
			hand_over(count);
		else if (!strcmp(argv[1], "connections"))
			connect_often(count);
		else
			stream(count);
		printf("%.2f\n", (cpu_ns() - from) / count);
		fflush(stdout);
	}
	return 0;
}
