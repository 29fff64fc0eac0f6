// SPDX-License-Identifier: GPL-2.0
/* Where a thread was last seen, on a CPU or back from a long wait: the stack of one that holds a lock. */
#ifndef EMBERWATCH_LATEST_H
#define EMBERWATCH_LATEST_H

#include "shared/process.h"

enum { LATEST_ENTRIES = 16384 };

struct latest {
	u64 when_ns;
	struct process_key process;
	u64 user_stack;
	u64 kernel_stack;
	u32 tid;
	u32 buffer; /* that holds the stacks */
};

/* Key: tid & (LATEST_ENTRIES - 1). Threads that share an entry leave the later one's. */
BPF_ARRAY(latest, struct latest, LATEST_ENTRIES);

/* Remember where the current thread is. */
static __always_inline void keep_latest(struct process_key *process, u64 user_stack, u64 kernel_stack, u32 buffer)
{
	u32 tid = bpf_get_current_pid_tgid(), place = tid & (LATEST_ENTRIES - 1);
	struct latest *entry = latest.lookup(&place);

	if (!entry)
		return;
	entry->when_ns = bpf_ktime_get_ns();
	entry->process = *process;
	entry->user_stack = user_stack;
	entry->kernel_stack = kernel_stack;
	entry->tid = tid;
	entry->buffer = buffer;
}

/* The sample of a thread since `since_ns`, when its stacks are in `buffer`; else 0. */
static __always_inline struct latest *latest_of(u32 tid, u64 since_ns, u32 buffer)
{
	u32 place = tid & (LATEST_ENTRIES - 1);
	struct latest *entry = latest.lookup(&place);

	return entry && entry->tid == tid && entry->when_ns >= since_ns && entry->buffer == buffer ? entry : 0;
}

#endif
