# SPDX-License-Identifier: Apache-2.0
"""Small C programs to be profiled, built with gcc when a test needs them."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.lock_programs import LOCK_SOURCES
from tests.support.wait_program import ASLEEP, WAITS

_SPIN = """
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile uint64_t sink;
/* About a microsecond for each hundred rounds. */
static inline __attribute__((always_inline)) void work(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink = sink * 6364136223846793005u + 1442695040888963407u;
}
"""

SOURCES = {
    "waits": WAITS,
    "asleep": ASLEEP,
    # Work split 70/20/10 by rounds of one loop, in pieces of some microseconds and in random order: not in phase with any clock.
    "shares": """
__attribute__((noinline)) void busy_seventy(unsigned n) { work(n); asm volatile(""); }
__attribute__((noinline)) void busy_twenty(unsigned n) { work(n); asm volatile(""); }
__attribute__((noinline)) void busy_ten(unsigned n) { work(n); asm volatile(""); }
int main(void)
{
	for (;;) {
		unsigned n = 2000 + rand() % 4000;
		switch (rand() % 3) { /* each gets the same share of calls, and rounds by its name */
		case 0: busy_seventy(n * 7); break;
		case 1: busy_twenty(n * 2); break;
		default: busy_ten(n); break;
		}
	}
}
""",
    # Computes for 10 ms and is gone.
    "brief": """
#include <time.h>
int main(void)
{
	struct timespec used;
	do {
		work(1000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_nsec < 10 * 1000 * 1000);
}
""",
    # A recursion as deep as the argument says that spins at its bottom; the frames above are main and what the C library calls it from.
    "recursion": """
__attribute__((noinline)) unsigned descend(unsigned depth)
{
	if (depth <= 1)
		for (;;)
			work(1000);
	return descend(depth - 1) + 1;
}
int main(int argc, char **argv) { return (int)descend((unsigned)atoi(argv[argc - 1])); }
""",
    # A new depth, thus a new stack, every few milliseconds.
    "many_stacks": """
__attribute__((noinline)) unsigned descend(unsigned depth)
{
	if (depth <= 1) {
		work(100000);
		return 1;
	}
	return descend(depth - 1) + 1;
}
int main(void) { for (;;) descend(1 + (unsigned)rand() % 90); }
""",
    # A line on standard input makes it fork a child that forks another; all spin. Prints the pids of both.
    "forks": """
int main(void)
{
	if (getchar() == EOF)
		return 1;
	if (!fork()) {
		int grandchild = fork();
		if (grandchild)
			printf("%d %d\\n", getpid(), grandchild), fflush(stdout);
	}
	for (;;)
		work(1000);
}
""",
    # 23,000 getpid, 230 openat that fail with ENOENT, 23 fsync, 46 getpid by the table of 32-bit programs, 7 naps of 20 ms; then prints
    # how many ns the naps took by its own clock. Waits for a line on standard input before, and for its end after it.
    "calls": """
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
static long long now_ns(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ll + at.tv_nsec;
}
int main(int argc, char **argv)
{
	int file = open(argv[1], O_CREAT | O_RDWR, 0600);
	struct timespec nap = {0, 20000000};
	long long naps_ns = 0;
	if (file < 0 || getchar() == EOF)
		return 1;
	for (int i = 0; i < 23000; i++)
		syscall(SYS_getpid);
	for (int i = 0; i < 230; i++)
		openat(AT_FDCWD, "/no/such/file", O_RDONLY);
	for (int i = 0; i < 23; i++)
		fsync(file);
	for (int i = 0; i < 46; i++) {
		long answer;
		asm volatile("int $0x80" : "=a"(answer) : "a"(20) : "memory");
	}
	for (int i = 0; i < 7; i++) {
		long long from_ns = now_ns();
		syscall(SYS_nanosleep, &nap, 0);
		naps_ns += now_ns() - from_ns;
	}
	printf("%lld\\n", naps_ns), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # 200 calls that no kernel has, 7 times each, in turn: more different ones than any cache of them holds.
    "strange_calls": """
#include <sys/syscall.h>
int main(void)
{
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 7; i++)
		for (int number = 600; number < 800; number++)
			syscall(number);
	puts("done"), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # Two threads at once: 2,300 naps each of some microseconds. Then 7 children that end at once; then 23 getuid after exec.
    "threads_and_children": """
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
static void *nap(void *unused)
{
	struct timespec at = {0, 1000};
	for (int i = 0; i < 2300; i++)
		syscall(SYS_nanosleep, &at, 0);
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t threads[2];
	if (argc > 1) {
		for (int i = 0; i < 23; i++)
			syscall(SYS_getuid);
		puts("done"), fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, nap, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 7; i++) {
		if (!syscall(SYS_fork))
			syscall(SYS_exit_group, 0);
		wait(0);
	}
	execl(argv[0], argv[0], "again", (char *)0);
}
""",
    # Two functions that only make system calls: getpid and getppid, the former three times as often. Prints how many of each.
    "callers": """
#include <sys/syscall.h>
static __attribute__((noinline)) long call_often(long rounds)
{
	long answer = 0;
	for (long i = 0; i < rounds; i++)
		asm volatile("syscall" : "=a"(answer) : "a"(SYS_getpid) : "rcx", "r11", "memory");
	return answer;
}
static __attribute__((noinline)) long call_seldom(long rounds)
{
	long answer = 0;
	for (long i = 0; i < rounds; i++)
		asm volatile("syscall" : "=a"(answer) : "a"(SYS_getppid) : "rcx", "r11", "memory");
	return answer;
}
int main(void)
{
	for (;;) {
		call_often(3000);
		call_seldom(1000);
	}
}
""",
    # Listens on loopback and connects to itself 23 times in call_peer(); prints its port.
    "connector": """
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/syscall.h>
static struct sockaddr_in where;
static __attribute__((noinline)) long call_peer(long socket)
{
	register long answer asm("rax") = SYS_connect;
	asm volatile("syscall" : "+a"(answer) : "D"(socket), "S"(&where), "d"(sizeof(where)) : "rcx", "r11", "memory");
	return answer;
}
int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(where);
	where.sin_family = AF_INET;
	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&where, size) || listen(listener, 64) || getsockname(listener, (struct sockaddr *)&where, &size))
		return 1;
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 23; i++) {
		int caller = socket(AF_INET, SOCK_STREAM, 0);
		if (call_peer(caller))
			abort();
		close(accept(listener, 0, 0));
		close(caller);
	}
	printf("%d\\n", ntohs(where.sin_port)), fflush(stdout);
	while (getchar() != EOF)
		;
}
""",
    # Spins; with an argument it first becomes itself again (exec) after some milliseconds of work.
    "spin": """
int main(int argc, char **argv)
{
	if (argc > 1) {
		work(30000000);
		execl(argv[0], argv[0], (char *)0);
	}
	for (;;)
		work(1000);
}
""",
} | LOCK_SOURCES


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program: its addresses in the process, as the program is not position independent."""

    name: str
    start: int
    end: int


class Programs:
    """Builds programs into a directory, each once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @staticmethod
    def can_build() -> bool:
        return shutil.which("gcc") is not None

    def path(self, name: str) -> Path:
        """The program of SOURCES with this name, with frame pointers and fixed addresses."""
        built = self._directory / name
        if not built.exists():
            source = self._directory / f"{name}.c"
            source.write_text(_SPIN + SOURCES[name])
            flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-shrink-wrap", "-fno-optimize-sibling-calls", "-no-pie", "-w"]
            subprocess.run(["gcc", *flags, "-o", str(built), str(source)], check=True, capture_output=True)
        return built

    def functions(self, name: str) -> dict[str, Function]:
        """Functions of a program by name, from its symbol table."""
        listed = subprocess.run(["nm", "-S", "--defined-only", str(self.path(name))], check=True, capture_output=True, text=True).stdout
        found = {}
        for line in listed.splitlines():
            fields = line.split()
            if len(fields) == 4 and fields[2] in "tT":
                start = int(fields[0], 16)
                found[fields[3]] = Function(fields[3], start, start + int(fields[1], 16))
        return found

    @contextmanager
    def running(self, name: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """The program at work until the block ends. What it forked ends by itself only if its parent kills it."""
        pipe = subprocess.PIPE
        process = subprocess.Popen([str(self.path(name)), *arguments], stdin=pipe, stdout=pipe, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
