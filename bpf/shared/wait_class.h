// SPDX-License-Identifier: GPL-2.0
/* What a task waits for, as it leaves the CPU or later: from the system call it is in, the kind of file that one is about, and whether
 * the kernel calls it a wait for I/O. The table of calls is filled by the collector (agent/profilers/wait_classes.py). */
#ifndef EMBERWATCH_WAIT_CLASS_H
#define EMBERWATCH_WAIT_CLASS_H

#include "shared/futex.h"
#include "shared/thread.h"
#include "shared/unwind_begin.h"

enum {
	CALLS = 512,
	CALL_READ = 0,
	CALL_PREAD = 17,
	CALL_READV = 19,
	CALL_PREADV = 295,
	CALL_PREADV2 = 327,
	FILE_TYPE_MASK = 0170000, /* S_IFMT and what follows: include/uapi/linux/stat.h */
	FILE_PIPE = 0010000,
	FILE_CHARACTER = 0020000,
	FILE_REGULAR = 0100000,
	FILE_BLOCK = 0060000,
	FILE_DIRECTORY = 0040000,
	FILE_SOCKET = 0140000,
	NO_TYPE = 0, /* eventfd, timerfd, epoll: anonymous inodes */
	TASK_IS_UNINTERRUPTIBLE = 0x2, /* include/linux/sched.h */
	TASK_IS_DEAD = 0x80,
	TASK_IS_WAKING = 0x200,
	TASK_HAS_NO_LOAD = 0x400, /* idle kernel threads */
	TASK_IS_NEW = 0x800,
};

/* Key: number of a system call. Value: enum wait_class, or WAIT_BY_FILE. */
BPF_ARRAY(call_classes, u32, CALLS);

static __always_inline bool is_uninterruptible(u64 state)
{
	return (state & (TASK_IS_UNINTERRUPTIBLE | TASK_HAS_NO_LOAD)) == TASK_IS_UNINTERRUPTIBLE;
}

/* Calls that take what somebody else has to bring: numbers of arch/x86/entry/syscalls/syscall_64.tbl. */
static __always_inline bool is_read(u64 call)
{
	return call == CALL_READ || call == CALL_PREAD || call == CALL_READV || call == CALL_PREADV || call == CALL_PREADV2;
}

static __always_inline u32 class_of_file(struct task_struct *task, u64 call, u32 descriptor)
{
	struct files_struct *files = (struct files_struct *)load_u64(&task->files);
	struct fdtable *table = (struct fdtable *)load_u64(&files->fdt);
	struct file **slots = (struct file **)load_u64(&table->fd), *file = 0;
	struct inode *inode = 0;
	u16 mode = 0;

	if (descriptor >= load_u32(&table->max_fds))
		return WAIT_OTHER;
	bpf_probe_read_kernel(&file, sizeof(file), slots + descriptor);
	bpf_probe_read_kernel(&inode, sizeof(inode), &file->f_inode);
	if (bpf_probe_read_kernel(&mode, sizeof(mode), &inode->i_mode))
		return WAIT_OTHER;
	switch (mode & FILE_TYPE_MASK) {
	case FILE_PIPE:
		return WAIT_PIPE;
	case FILE_SOCKET:
		return WAIT_NET;
	case FILE_REGULAR:
	case FILE_BLOCK:
	case FILE_DIRECTORY:
		return WAIT_DISK;
	case FILE_CHARACTER: /* a terminal, or a device that gives work, such as /dev/fuse */
		return is_read(call) ? WAIT_POLL : WAIT_OTHER;
	case NO_TYPE:
		return WAIT_POLL;
	default:
		return WAIT_OTHER;
	}
}

/* A lock, or somebody's work. The memory of another task is not read: its waits for several futexes are for work. */
static __always_inline u32 class_of_futex(u64 call, struct pt_regs *regs, bool is_current)
{
	u64 arguments[] = {load_u64(&regs->di), load_u64(&regs->si), load_u64(&regs->dx)};
	struct futex_waited waited = {};

	if (is_priority_lock(call, arguments[1]))
		return WAIT_LOCK;
	if (is_current || call != CALL_FUTEX_WAITV)
		read_waited(&waited, call, arguments);
	return waited.value == FUTEX_CONTENDED ? WAIT_LOCK : WAIT_POLL;
}

static __always_inline bool is_waiting_for_io(struct task_struct *task)
{
	return load_u32((void *)task + EMBERWATCH_IN_IOWAIT_BIT / 32 * 4) >> EMBERWATCH_IN_IOWAIT_BIT % 32 & 1;
}

static __always_inline u32 class_of_task(struct task_struct *task, struct pt_regs *regs, bool is_current, bool is_uninterruptible)
{
	u64 call;
	u32 number, *known;

	if (!load_u64(&task->mm))
		return is_uninterruptible ? WAIT_OTHER : WAIT_POLL; /* a kernel thread, or one that is almost gone */
	call = load_u64(&regs->orig_ax);
	if ((s64)call < 0)
		return WAIT_PAGE; /* no system call: user code touched a page that is not there */
	if (is_waiting_for_io(task))
		return WAIT_DISK;
	if (is_in_32_bit_call(task))
		return WAIT_OTHER; /* its number is of another table */
	if (is_futex_wait(call))
		return class_of_futex(call, regs, is_current);
	number = call;
	known = call < CALLS ? call_classes.lookup(&number) : 0;
	if (!known)
		return WAIT_OTHER;
	return *known == WAIT_BY_FILE ? class_of_file(task, call, load_u64(&regs->di)) : *known;
}

#endif
