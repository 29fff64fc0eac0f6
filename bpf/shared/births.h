// SPDX-License-Identifier: GPL-2.0
/* Which processes begin: what they are called is told before they have a sample, for many are gone before anyone could read it; those of
 * trees are followed.
 * Hook: raw tracepoints sched_process_exec (on_exec) and sched_process_fork (on_fork). State: how many were told of in this second.
 * Needs: Linux 5.10. Cost: a record of a ring for each process that begins; a new thread costs two reads. */
#ifndef EMBERWATCH_BIRTHS_H
#define EMBERWATCH_BIRTHS_H

#include "shared/limit.h"
#include "shared/sight.h"

enum {
	BEGUN_A_SLOT = 50,
	NAMED_A_SLOT = 1000, /* 4 us each to the collector */
	SLOT_SHIFT = 30,     /* of nanoseconds: about a second */
};

/* Processes told of in the running second. CPUs may lose a count to each other. */
struct birth_slot {
	u64 slot;
	u64 named;
	u64 begun; /* of execs: those above BEGUN_A_SLOT are read when they are sampled */
};

/* Key: 0. Those beyond NAMED_A_SLOT are told of by their first event. */
BPF_ARRAY(birth_slots, struct birth_slot, 1);

static __always_inline struct birth_slot *running_slot(void)
{
	int zero = 0;
	struct birth_slot *now = birth_slots.lookup(&zero);
	u64 slot = bpf_ktime_get_ns() >> SLOT_SHIFT;

	if (now && now->slot != slot) {
		now->slot = slot;
		now->named = now->begun = 0;
	}
	return now;
}

static __always_inline bool is_told_of(struct process_key *process)
{
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);

	return setting && (!setting->limits || is_wanted(process, setting->limits));
}

/* The program has its identity by now, and its own mappings; its libraries come next. */
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct current_task current = {};
	struct birth_slot *now = running_slot();

	read_current_task(&current, bpf_get_current_pid_tgid() >> 32);
	if (!now || now->named++ >= NAMED_A_SLOT || !is_told_of(&current.process))
		return 0;
	tell(&current.process, 0, now->begun++ < BEGUN_A_SLOT ? SIGHT_BEGUN : SIGHT_NAMED);
	return 0;
}

/* Arguments: parent, child. The child is the same program until it becomes another. */
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[1];
	struct current_task parent = {};
	struct process_key child = {};
	struct birth_slot *now;

	bpf_probe_read_kernel(&child.pid, sizeof(child.pid), &task->tgid);
	read_current_task(&parent, bpf_get_current_pid_tgid() >> 32);
	if (child.pid == parent.process.pid || parent.is_kernel_thread)
		return 0;
	child.exec_id = parent.process.exec_id;
	child.start_boot_ns = start_of(task);
	if (is_in_tree(&parent.process))
		follow(&child);
	now = running_slot();
	if (now && now->named++ < NAMED_A_SLOT && is_told_of(&parent.process))
		tell(&child, &parent.process, SIGHT_NAMED);
	return 0;
}

#endif
