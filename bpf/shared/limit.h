// SPDX-License-Identifier: GPL-2.0
/* Which processes are wanted: all, those of some process trees, those of a cgroup. Enforced here, so that what is not wanted
 * costs a look-up and leaves no trace but a count. */
#ifndef EMBERWATCH_LIMIT_H
#define EMBERWATCH_LIMIT_H

enum {
	LIMIT_TREE = 1,
	LIMIT_CGROUP = 2,
	TREE_ENTRIES = 16384,
};

/* How user stacks are walked: by frame pointers, by the kernel, so that user memory is read by nobody else; by tables; by tables, also of
 * code that the collector has not told of yet. As Walking in agent/profilers/cpu.py. */
enum { UNWINDING_OFF, UNWINDING_ON, UNWINDING_LOOKS };

struct settings {
	u64 stack_seed; /* start of every stack hash: nobody can make a stack that is taken for another */
	u32 limits;	/* LIMIT_*, or 0 for all processes */
	u32 is_unwinding; /* UNWINDING_* */
};

/* Key: 0. Written once before the first event. */
BPF_ARRAY(settings, struct settings, 1);

/* Key: pid. Value: start_boot_ns of the process, 0 until its first event for those the collector put here.
 * Bound: TREE_ENTRIES; when full, a child is not followed and counted.
 * The collector removes the dead. */
BPF_HASH(tree, u32, u64, TREE_ENTRIES);

/* Key: 0. Value: children that found no room in `tree`. */
BPF_ARRAY(tree_lost, u64, 1);

/* Key: 0. A cgroup of the unified hierarchy; those below it are in it. */
BPF_CGROUP_ARRAY(cgroups, 1);

static __always_inline bool is_in_tree(struct process_key *process)
{
	u64 *start_boot_ns = tree.lookup(&process->pid);

	if (!start_boot_ns)
		return false;
	if (!*start_boot_ns)
		*start_boot_ns = process->start_boot_ns;
	return *start_boot_ns == process->start_boot_ns;
}

static __always_inline bool is_wanted(struct process_key *process, u32 limits)
{
	if (limits & LIMIT_TREE && !is_in_tree(process))
		return false;
	if (limits & LIMIT_CGROUP && cgroups.check_current_task(0) != 1)
		return false;
	return true;
}

/* A process that is in a tree has forked. */
static __always_inline void follow(struct process_key *child)
{
	int zero = 0;
	u64 *lost;

	if (!tree.update(&child->pid, &child->start_boot_ns))
		return;
	lost = tree_lost.lookup(&zero);
	if (lost)
		__sync_fetch_and_add(lost, 1);
}

#endif
