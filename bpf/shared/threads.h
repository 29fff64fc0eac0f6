// SPDX-License-Identifier: GPL-2.0
/* The thread with a tid, as its process knows it: in the pid namespace it lives in.
 *
 *	task -> thread_pid -> numbers[level].ns -> idr: a tree by tid, up to 6 bits a node -> struct pid -> task
 *
 * It is read without a lock: what is found is believed when it says itself that it is the one. */
#ifndef EMBERWATCH_THREADS_H
#define EMBERWATCH_THREADS_H

enum {
	IDR_LEVELS = 6,	    /* enough for 32 bits */
	IDR_NODE = 2,	    /* in the low bits of a node's address: include/linux/xarray.h */
	IDR_NODE_MASK = 3,
	IDR_LEAST_NODE = 4096,
	IDR_SLOTS = sizeof(((struct xa_node *)0)->slots) / sizeof(u64),
};

static __always_inline u64 read_address(const void *field)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}

/* What a tree of the kernel holds at `index`; 0 for nothing. A tree that is lower than the index reaches gives what stands elsewhere. */
static __always_inline u64 find_in_idr(u64 entry, u32 index)
{
#pragma clang loop unroll(disable)
	for (int level = 0; level < IDR_LEVELS; level++) {
		struct xa_node *node = (struct xa_node *)(entry - IDR_NODE);
		u8 shift = 0;

		if ((entry & IDR_NODE_MASK) != IDR_NODE || entry < IDR_LEAST_NODE)
			break;
		bpf_probe_read_kernel(&shift, sizeof(shift), &node->shift);
		entry = read_address(&node->slots[index >> (shift & 31) & (IDR_SLOTS - 1)]);
	}
	return entry & IDR_NODE_MASK ? 0 : entry;
}

/* A thread of the current process; 0 when it has none with this tid. */
static __always_inline struct task_struct *thread_of_process(u32 tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task(), *found;
	struct pid *own = (struct pid *)read_address(&task->thread_pid), *pid;
	struct pid_namespace *space;
	struct upid *numbers;
	u32 level = 0, number = 0;
	u64 link;

	bpf_probe_read_kernel(&level, sizeof(level), &own->level);
	numbers = (struct upid *)((void *)own + __builtin_offsetof(struct pid, numbers));
	space = (struct pid_namespace *)read_address(&numbers[level].ns);
	pid = (struct pid *)find_in_idr(read_address(&space->idr.idr_rt.xa_head), tid);
	if (!pid)
		return 0;
	numbers = (struct upid *)((void *)pid + __builtin_offsetof(struct pid, numbers));
	bpf_probe_read_kernel(&number, sizeof(number), &numbers[level].nr);
	link = read_address(&pid->tasks[0].first); /* PIDTYPE_PID */
	if (number != tid || !link)
		return 0;
	found = (struct task_struct *)(link - __builtin_offsetof(struct task_struct, pid_links));
	return read_address(&found->signal) == read_address(&task->signal) ? found : 0;
}

#endif
