// SPDX-License-Identifier: GPL-2.0
/* Waits for locks as rows: who waited where, for which lock, and who held it. */
#ifndef EMBERWATCH_LOCK_ROWS_H
#define EMBERWATCH_LOCK_ROWS_H

#include "shared/buckets.h"
#include "shared/events.h"
#include "shared/latest.h"

enum {
	LOCK_COMM_BYTES = 16,
	LOCK_USER = 1 << 16,  /* in `type`: a lock of user space, `lock` is its address there */
	LOCK_PRIORITY = 1 << 17, /* one that hands its holder the priority of those who wait */
	LOCK_MMAP = 1 << 18,  /* mmap_lock of the process */
	LOCK_SIGNAL = 1 << 19, /* siglock of the process */
};

/* As CPU_KEY in agent/records/drain.py: 56 bytes, no holes. */
struct lock_side {
	u64 start_boot_ns;
	u64 user_stack;
	u64 kernel_stack;
	u32 pid;
	u32 exec_id;
	s16 user_error;
	s16 kernel_error;
	u32 is_kernel_thread;
	char comm[LOCK_COMM_BYTES];
};

/* As LOCK_KEY in agent/profilers/lock_rows.py: 128 bytes, no holes. */
struct lock_key {
	struct lock_side own;
	struct lock_side holder; /* all 0 when it is not known */
	u64 lock;		 /* address of a lock with a name or in user space, else 0 */
	u32 type;		 /* LCB_F_* of include/trace/events/lock.h, and LOCK_* */
	u32 padding;
};

/* As LOCK_VALUE in agent/profilers/lock_rows.py: 152 bytes. */
struct lock_value {
	u64 count;
	u64 ns;
	u64 max_ns;
	u32 buckets[BUCKETS_OF_TIME];
};

/* As the value of an inner map it is words, see stack_words in stack.h. */
typedef u64 lock_words[sizeof(struct lock_value) / sizeof(u64)];

/* Shape of the inner maps, made by the collector. When full the wait is counted as rows_full. */
BPF_HASH(locks_shape, struct lock_key, lock_words, 1);
BPF_ARRAY_OF_MAPS(locks, "locks_shape", BUFFERS);

/* As LOCK_SETTINGS in agent/profilers/locks.py. */
struct lock_settings {
	u64 on_since_ns; /* since when the programs have been attached: what began before has no start */
	u64 stack_ns;	 /* waits from here on have their stack */
	u64 named_start; /* addresses of kernel locks that have a symbol */
	u64 named_end;
};

/* Key: 0. Written by the collector. */
BPF_ARRAY(lock_settings, struct lock_settings, 1);

/* As LOCK_COUNTS in agent/profilers/locks.py; only grow. */
struct lock_counts {
	u64 events;	 /* of all hooks, for the breaker: no part of the account */
	u64 waits;	 /* that ended */
	u64 filtered;	 /* of processes that are not wanted, and of CPUs that were idle */
	u64 unpaired;	 /* ends without a start that was seen */
	u64 starts_full; /* starts that found no room */
	u64 rows_full;
	u64 rows_busy;
	u64 due[BUFFERS]; /* rows that began to be made for a buffer and were not refused: as many waits have to be in it */
};

/* Key: 0. */
BPF_PERCPU_ARRAY(lock_counts, struct lock_counts, 1);

/* Who holds a lock. */
struct holder {
	struct lock_side side;
	u32 tid; /* 0 for nobody that is known */
	u32 padding;
};

/* A row in the making, while stacks are walked. */
struct lock_wait {
	struct lock_key key;
	u64 ns;
	u64 buffer; /* that it began to be made for: it goes there, whatever is active by then */
};

/* From here on a row is owed. `buffer` is where it is kept. */
static __always_inline void owe_row(u64 *buffer, struct lock_counts *counts)
{
	*buffer = active_buffer();
	__sync_fetch_and_add(&counts->due[*buffer & (BUFFERS - 1)], 1);
}

/* A row found no room, and is not owed any more. */
static __always_inline void refuse_row(u64 buffer, int refusal, struct lock_counts *counts)
{
	counts->rows_full += refusal == ERROR_TOO_BIG;
	counts->rows_busy += refusal != ERROR_TOO_BIG;
	__sync_fetch_and_add(&counts->due[buffer & (BUFFERS - 1)], -1);
}

static __always_inline void put_lock_row(struct lock_wait *wait, struct lock_counts *counts)
{
	int buffer = wait->buffer;
	void *inner = locks.lookup(&buffer);
	struct lock_value fresh = {};
	struct lock_value *value;
	int refusal = 0;

	if (!inner)
		return;
	value = bpf_map_lookup_elem(inner, &wait->key);
	if (!value) {
		refusal = bpf_map_update_elem(inner, &wait->key, &fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(inner, &wait->key);
	}
	if (!value) {
		refuse_row(wait->buffer, refusal, counts);
		return;
	}
	__sync_fetch_and_add(&value->count, 1);
	__sync_fetch_and_add(&value->ns, wait->ns);
	__sync_fetch_and_add(&value->buckets[bucket_of_ns(wait->ns) & (BUCKETS_OF_TIME - 1)], 1);
	if (wait->ns > value->max_ns)
		value->max_ns = wait->ns;
}

/* Whose wait it is. False when it is not wanted. */
static __always_inline bool fill_own_side(struct lock_side *own, struct current_task *current)
{
	u64 pid_tid = bpf_get_current_pid_tgid();
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);

	if (!pid_tid || !setting)
		return false;
	read_current_task(current, pid_tid >> 32);
	if (setting->limits && !is_wanted(&current->process, setting->limits))
		return false;
	own->start_boot_ns = current->process.start_boot_ns;
	own->pid = current->process.pid;
	own->exec_id = current->process.exec_id;
	own->is_kernel_thread = current->is_kernel_thread;
	bpf_get_current_comm(&own->comm, sizeof(own->comm));
	return true;
}

static __always_inline void take_lock_stacks(struct lock_side *side, struct event_walk *walk)
{
	side->user_stack = walk->user_stack;
	side->kernel_stack = walk->kernel_stack;
	side->user_error = walk->user_error;
	side->kernel_error = walk->kernel_error;
}

/* Name a task as the holder; its stacks come later, or never. */
static __always_inline void name_holder(struct holder *holder, struct task_struct *task)
{
	u32 flags = 0;

	bpf_probe_read_kernel(&holder->tid, sizeof(u32), &task->pid);
	if (!holder->tid)
		return;
	bpf_probe_read_kernel(&holder->side.pid, sizeof(u32), &task->tgid);
	bpf_probe_read_kernel(&holder->side.exec_id, sizeof(u32), &task->self_exec_id);
	bpf_probe_read_kernel(&holder->side.comm, sizeof(holder->side.comm), &task->comm);
	bpf_probe_read_kernel(&flags, sizeof(flags), &task->flags);
	holder->side.start_boot_ns = start_of(task);
	holder->side.is_kernel_thread = flags & TASK_KERNEL_THREAD ? 1 : 0;
}

/* A holder that was not blocked when the wait began, or is of another process: what it was last seen doing since then. */
static __always_inline void give_latest_stack(struct holder *holder, u64 since_ns)
{
	struct latest *seen;

	if (!holder->tid || holder->side.user_stack)
		return;
	seen = latest_of(holder->tid, since_ns, active_buffer());
	if (!seen || seen->process.start_boot_ns != holder->side.start_boot_ns || seen->process.pid != holder->side.pid)
		return;
	holder->side.user_stack = seen->user_stack;
	holder->side.kernel_stack = seen->kernel_stack;
}

#endif
