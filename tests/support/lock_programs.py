# SPDX-License-Identifier: Apache-2.0
"""Programs that wait for locks in a known way."""

_WAITS_FOR = """
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
static int waits_for(int tid, void *word) /* as /proc says of a thread of this process */
{
	char path[64], wanted[64], call[64] = "";
	int file;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	snprintf(wanted, sizeof(wanted), "%d %p ", SYS_futex, word);
	file = open(path, O_RDONLY);
	if (read(file, call, sizeof(call) - 1) < 0)
		abort();
	close(file);
	return !strncmp(call, wanted, strlen(wanted));
}
"""

LOCK_SOURCES = {
    # Spins until it is told to begin. Then 23 times: thread "keeper7" takes a mutex and holds it for 80 ms in hold_asleep(), or with an
    # argument 60 ms of CPU in hold_busy(), longer if need be until thread "waiter3" waits for it in want_lock(). They take turns by
    # semaphores, which are futexes and no locks. Prints the ns that the waiter measured itself. A hundred threads that do nothing came
    # before them.
    "mutex": """
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t go, done;
static long long waited_ns;
static int is_busy;
static long long now_ns(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return at.tv_sec * 1000000000ll + at.tv_nsec;
}
static int is_wanted(void) /* as glibc says it: the waiter came late on a busy host */
{
	return __atomic_load_n(&lock.__data.__lock, __ATOMIC_RELAXED) == 2;
}
__attribute__((noinline)) void hold_asleep(void)
{
	struct timespec nap = {0, 60000000}, rest = {0, 20000000};
	sem_post(&go);
	do
		nanosleep(&nap, 0);
	while (!is_wanted());
	nanosleep(&rest, 0);
	asm volatile("");
}
__attribute__((noinline)) void hold_busy(void)
{
	long long until_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + 60000000;
	sem_post(&go);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns || !is_wanted())
		work(1000);
	asm volatile("");
}
__attribute__((noinline)) void want_lock(void)
{
	long long from_ns = now_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&lock);
	waited_ns += now_ns(CLOCK_MONOTONIC) - from_ns;
	pthread_mutex_unlock(&lock);
}
static void *keep(void *unused)
{
	prctl(PR_SET_NAME, "keeper7");
	for (int i = 0; i < 23; i++) {
		pthread_mutex_lock(&lock);
		if (is_busy)
			hold_busy();
		else
			hold_asleep();
		pthread_mutex_unlock(&lock);
		sem_wait(&done);
	}
	return unused;
}
static void *wait_for_it(void *unused)
{
	prctl(PR_SET_NAME, "waiter3");
	for (int i = 0; i < 23; i++) {
		struct timespec nap = {0, 10000000};
		sem_wait(&go);
		nanosleep(&nap, 0); /* the keeper is asleep, or at work, by then */
		want_lock();
		sem_post(&done);
	}
	return unused;
}
static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t keeper, waiter;
	struct pollfd input = {0, POLLIN};
	is_busy = argc > 1;
	sem_init(&go, 0, 0), sem_init(&done, 0, 0);
	while (poll(&input, 1, 0) == 0)
		work(100000);
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 100; i++)
		pthread_create(&waiter, 0, idle, 0);
	pthread_create(&waiter, 0, wait_for_it, 0);
	pthread_create(&keeper, 0, keep, 0);
	pthread_join(keeper, 0), pthread_join(waiter, 0);
	printf("%lld\\n", waited_ns), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # Spins until it is told to begin. Then threads "left" and "right" hold a mutex 23 times each in keep_lock(), in turn: each until the
    # other is seen to wait for it, and 20 ms more. Prints for all holds but the first, which began without a wait, the ns that a holder
    # had the lock for sure, and those from the moment the one before it let go until it had let go itself.
    "holders": _WAITS_FOR
    + """
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct side { sem_t go; int tid; long long inner_ns, outer_ns; } sides[2];
static long long let_go_ns;
static int turns;
static long long now_ns(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ll + at.tv_nsec;
}
__attribute__((noinline)) void keep_lock(struct side *me, struct side *other)
{
	long long from_ns = now_ns(), before_ns = let_go_ns;
	struct timespec nap = {0, 20000000};
	int turn = turns++;
	if (turn < 45) {
		sem_post(&other->go);
		while (!waits_for(other->tid, &lock))
			usleep(1000);
	}
	nanosleep(&nap, 0);
	me->inner_ns += turn ? now_ns() - from_ns : 0;
	let_go_ns = now_ns();
	pthread_mutex_unlock(&lock);
	me->outer_ns += turn ? now_ns() - before_ns : 0;
}
static void *take_turns(void *number)
{
	struct side *me = &sides[(long)number], *other = &sides[1 - (long)number];
	me->tid = syscall(SYS_gettid);
	for (int i = 0; i < 23; i++) {
		sem_wait(&me->go);
		pthread_mutex_lock(&lock);
		keep_lock(me, other);
	}
	return number;
}
int main(void)
{
	pthread_t threads[2];
	struct pollfd input = {0, POLLIN};
	while (poll(&input, 1, 0) == 0)
		work(100000);
	if (getchar() == EOF)
		return 1;
	for (long i = 0; i < 2; i++) {
		sem_init(&sides[i].go, 0, 0);
		pthread_create(&threads[i], 0, take_turns, (void *)i);
	}
	while (!sides[0].tid || !sides[1].tid)
		usleep(1000);
	sem_post(&sides[0].go);
	pthread_join(threads[0], 0), pthread_join(threads[1], 0);
	printf("%lld %lld\\n", sides[0].inner_ns + sides[1].inner_ns, sides[0].outer_ns + sides[1].outer_ns), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # 23 threads get a mutex each after a wait and end with it. Prints the addresses of the first lock and the last when they are gone.
    "leavers": _WAITS_FOR
    + """
#include <pthread.h>
static pthread_mutex_t locks[23];
static volatile int tid;
static void *take_and_leave(void *lock)
{
	tid = syscall(SYS_gettid);
	pthread_mutex_lock(lock);
	return lock;
}
int main(void)
{
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 23; i++) {
		pthread_t thread;
		tid = 0;
		pthread_mutex_lock(&locks[i]);
		pthread_create(&thread, 0, take_and_leave, &locks[i]);
		while (!tid || !waits_for(tid, &locks[i]))
			usleep(1000);
		pthread_mutex_unlock(&locks[i]);
		pthread_join(thread, 0);
	}
	printf("%ld %ld\\n", (long)&locks[0], (long)&locks[22]), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # Three threads map, touch and unmap 4 MiB of one process; two make and remove files in the directory that is the argument, and two
    # list what it holds: 4,000 files, so that they hold its lock for long.
    "kernel_locks": """
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
static const char *directory;
static char *path_of(char *path, long number)
{
	snprintf(path, 4096, "%s/%ld", directory, number);
	return path;
}
static void *map(void *unused)
{
	for (;;)
		munmap(mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), 1 << 22);
	return unused;
}
static void *list(void *unused)
{
	for (;;) {
		DIR *open = opendir(directory);
		while (readdir(open))
			;
		closedir(open);
	}
	return unused;
}
static void *make(void *number)
{
	char path[4096];
	for (;;) {
		close(open(path_of(path, (long)number), O_CREAT | O_RDWR, 0600));
		unlink(path);
	}
	return number;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	char path[4096];
	directory = argv[1];
	for (long i = 7; i < 4007; i++)
		close(open(path_of(path, i), O_CREAT | O_RDWR, 0600));
	for (long i = 0; i < 3; i++)
		pthread_create(&thread, 0, map, 0);
	for (long i = 0; i < 2; i++) {
		pthread_create(&thread, 0, list, 0);
		pthread_create(&thread, 0, make, (void *)i);
	}
	while (getchar() != EOF)
		;
	exit(0);
}
""",
}
