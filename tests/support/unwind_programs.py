# SPDX-License-Identifier: Apache-2.0
"""Programs without frame pointers whose stacks are known: one C source, a mode for each thing that makes unwinding hard."""

import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define OUTLINE __attribute__((noinline, noclone))
static volatile unsigned long sink;

OUTLINE void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * i;
}

/* Every level has another frame: saved registers, locals, arguments. */
OUTLINE int fourth(int x)
{
	char room[200];
	memset(room, x, sizeof room);
	spin(20000);
	return room[x & 127] + x;
}
OUTLINE int third(int x, int y)
{
	long v[5] = {x, y, x * y, x + y, 3};
	int r = fourth(x);
	for (int i = 0; i < 5; i++)
		r += v[(i + r) & 3];
	return r + y;
}
OUTLINE int second(int x) { int r = third(x, x + 1); sink += r; return r * 3 + x; }
OUTLINE int first(int x) { int r = second(x); sink += r; return r + x; }

/* The C library between our frames. */
OUTLINE int compare(const void *a, const void *b)
{
	spin(300);
	return *(int *)a - *(int *)b;
}
OUTLINE int sorter(int n)
{
	int *v = malloc(n * sizeof *v);
	for (int i = 0; i < n; i++)
		v[i] = i * 7919 % n;
	qsort(v, n, sizeof *v, compare);
	int r = v[n / 2];
	free(v);
	return r;
}

/* The kernel between our frames. */
OUTLINE void in_handler(unsigned long n) { spin(n); sink++; }
static void handler(int number) { in_handler(300000); sink += number; }
OUTLINE int raiser(int x) { kill(getpid(), SIGUSR1); sink += x; return x + 2; }

OUTLINE int descend(int n)
{
	int r;
	if (!n) {
		spin(20000);
		return 1;
	}
	r = descend(n - 1);
	sink += r;
	return r + n;
}

/* A stack realigned to 64 bytes, with a variable part above: gcc keeps the CFA in memory. */
OUTLINE int realigned(int n, ...)
{
	__attribute__((aligned(64))) char room[64 + n];
	memset(room, n, 64);
	spin(20000);
	sink += room[n & 63];
	return room[1] + n;
}
OUTLINE int variable(int n)
{
	char *room = alloca(n);
	memset(room, 1, n);
	int r = third(n & 7, 1);
	sink += room[n / 2];
	return r + n;
}

/* Code of the kernel below ours. */
OUTLINE void ticker(void)
{
	struct timespec now;
	for (int i = 0; i < 10000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink += now.tv_nsec;
	}
}

static void *in_thread(void *unused)
{
	for (;;)
		sink += first(3);
	return unused;
}

/* A forked child works, becomes this program again, and there works in libraries that it opens one after another. */
OUTLINE void in_child(void) { spin(10000000); sink++; }
OUTLINE void in_library(const char *path)
{
	void (*work)(void) = (void (*)(void))dlsym(dlopen(path, RTLD_NOW), "library_work");
	work();
	sink++;
}
/* Code made at run time, between ours, at a place that is given up and taken again: push rbp; mov rbp, rsp; call rsi; pop rbp; ret */
OUTLINE void in_jit(void)
{
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
	void *place = mmap((void *)0x20000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(place, code, sizeof code);
	((void (*)(unsigned long, void (*)(unsigned long)))place)(5000000, spin);
	munmap(place, 4096);
	sink++;
}
OUTLINE void in_program(char **libraries)
{
	spin(10000000);
	in_library(libraries[0]);
	in_jit();
	in_library(libraries[1]);
	in_jit();
	sink++;
}
OUTLINE void churn(char **argv)
{
	int child = fork();
	if (!child) {
		in_child();
		execl(argv[0], argv[0], argv[1], argv[2], "program", (char *)0);
	}
	waitpid(child, 0, 0);
	sink++;
}

int main(int argc, char **argv)
{
	const char *mode = argv[argc - 1];
	pthread_t thread;

	signal(SIGUSR1, handler);
	if (!strcmp(mode, "thread")) {
		pthread_create(&thread, 0, in_thread, 0);
		pthread_join(thread, 0);
	}
	for (int i = 0;; i++) {
		if (!strcmp(mode, "chain")) sink += first(i);
		else if (!strcmp(mode, "callback")) sink += sorter(2000);
		else if (!strcmp(mode, "signal")) sink += raiser(i);
		else if (!strcmp(mode, "recursion")) sink += descend(60);
		else if (!strcmp(mode, "deep")) sink += descend(300);
		else if (!strcmp(mode, "realigned")) sink += realigned(70 + (i & 7));
		else if (!strcmp(mode, "vdso")) ticker();
		else if (!strcmp(mode, "variable")) sink += variable(1000 + (i & 255));
		else if (!strcmp(mode, "churn")) churn(argv);
		else if (!strcmp(mode, "program")) { in_program(argv + 1); return 0; }
	}
}
"""
"""Built with -O2 -fomit-frame-pointer."""

TRUTH = {
    "chain": "spin fourth third second first main * _start",
    "callback": "spin compare * sorter main * _start",
    "signal": "spin in_handler handler * raiser main * _start",
    "recursion": "spin " + "descend " * 61 + "main * _start",
    "realigned": "spin realigned main * _start",
    "variable": "spin fourth third variable main * _start",
    "vdso": "ticker main * _start",
    "thread": "spin fourth third second first in_thread *",
}
CHURN_TRUTH = {
    "loading": "*",
    "parent": "churn main * _start",
    "forked": "spin in_child churn main * _start",
    "opening": "* in_library in_program main * _start",
    "program": "spin in_program main * _start",
    "mapping": "* in_jit in_program main * _start",
    "run time": "spin * in_jit in_program main * _start",
    "one": "only_in_one library_work in_library in_program main * _start",
    "two": "only_in_two library_work in_library in_program main * _start",
}
"""Stacks by mode, leaf first; `*` stands for one or more frames of the C library, or of code made at run time. What runs is this, or an
end of it."""


def build(directory: Path, name: str, *flags: str, compiler: str = "gcc") -> Path:
    """The program with some more compiler flags."""
    built = directory / name
    if not built.exists():
        source = directory / "unwind_modes.c"
        source.write_text(SOURCE)
        everything = [compiler, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w", *flags, "-pthread"]
        subprocess.run([*everything, "-o", str(built), str(source)], check=True, capture_output=True)
    return built


def build_library(directory: Path, name: str) -> Path:
    """A library whose function library_work spends some milliseconds in only_in_NAME."""
    built, source = directory / f"lib{name}.so", directory / f"lib{name}.c"
    source.write_text(f"""
static volatile unsigned long sink;
__attribute__((noinline)) void only_in_{name}(void) {{ for (unsigned long i = 0; i < 10000000; i++) sink += i * i; }}
void library_work(void) {{ only_in_{name}(); sink++; }}
""")
    subprocess.run(
        ["gcc", "-O2", "-fomit-frame-pointer", "-shared", "-fPIC", "-o", str(built), str(source)], check=True, capture_output=True
    )
    return built


def is_true(frames: list[str], truth: str) -> bool:
    """Whether frames (leaf first; "*" for one of the C library, "?" for a jump into it) are a truth, or an end of it.

    A leaf in the C library, on its way from any of our functions, is of its own.
    """
    kept = [name for name in frames if name != "?"]
    collapsed = [name for at, name in enumerate(kept) if name != "*" or at == 0 or kept[at - 1] != "*"]
    if collapsed[:1] == ["*"] and len(collapsed) > 1:
        collapsed = collapsed[1:]
    words = truth.split()
    return words[len(words) - len(collapsed) :] == collapsed
