// SPDX-License-Identifier: GPL-2.0
/* Tells the collector of a process at its first event, so that its mappings are read while it lives; and what it is called by the kernel, for
 * when it is gone by then: many live for some milliseconds. */
#ifndef EMBERWATCH_SIGHT_H
#define EMBERWATCH_SIGHT_H

#include "shared/process.h"

enum {
	SEEN_ENTRIES = 16384,
	NEW_PROCESSES_PAGES = 64,
	EXE_BYTES = 64,
	WAKE_NOBODY = 1, /* BPF_RB_NO_WAKEUP */
	WAKE_ALWAYS = 2, /* BPF_RB_FORCE_WAKEUP: what was told quietly before must not keep the collector asleep */
	ERROR_EXISTS = -17,
	ERROR_TOO_BIG = -7,
};

/* Processes that were signalled. Bound: SEEN_ENTRIES; when full they are not signalled and counted. The collector empties it. */
BPF_HASH(seen, struct process_key, u64, SEEN_ENTRIES);

/* Why a process is told of. As Sight in agent/profilers/cpu.py. */
enum {
	SIGHT_SAMPLED, /* its first event, or mappings that are not those it was unwound by any more */
	SIGHT_BEGUN,   /* became another program a moment ago, and has no sample yet */
	SIGHT_NAMED,   /* nothing has to be done: this is what it is called */
};

/* A record of new_processes: 112 bytes. */
struct sighting {
	struct process_key process;
	struct process_key parent; /* of a fork: what it is a copy of; else all 0 */
	u64 cgroup;		   /* in the unified hierarchy */
	u32 why;
	u32 padding;
	char exe[EXE_BYTES]; /* name of the file it runs, without folders; cut */
};

/* Records: struct sighting. When full they are lost; the process is looked at at the end of the window. */
BPF_RINGBUF_OUTPUT(new_processes, NEW_PROCESSES_PAGES);

/* Tell of `process`, which is the current one, or was forked by it just now and is the same program yet. */
static __always_inline void tell(struct process_key *process, struct process_key *parent, u32 why)
{
	struct mm_struct *memory = (struct mm_struct *)load_u64(&running_task()->mm);
	struct sighting *found = new_processes.ringbuf_reserve(sizeof(struct sighting));
	struct file *file;
	struct dentry *entry;

	if (!found)
		return;
	found->process = *process;
	if (parent)
		found->parent = *parent;
	else
		__builtin_memset(&found->parent, 0, sizeof(found->parent));
	found->cgroup = bpf_get_current_cgroup_id();
	found->why = why;
	found->padding = 0;
	file = (struct file *)kernel_u64(&memory->exe_file);
	entry = (struct dentry *)kernel_u64(&file->f_path.dentry);
	bpf_probe_read_kernel_str(found->exe, sizeof(found->exe), (void *)kernel_u64(&entry->d_name.name));
	new_processes.ringbuf_submit(found, why == SIGHT_NAMED ? WAKE_NOBODY : WAKE_ALWAYS);
}

/* False when there was no room to remember the process, and it was not signalled for that. */
static __always_inline bool signal_once(struct process_key *process)
{
	u64 yes = 1;
	int refusal;

	if (seen.lookup(process))
		return true;
	refusal = seen.insert(process, &yes);
	if (!refusal)
		tell(process, 0, SIGHT_SAMPLED);
	return !refusal || refusal == ERROR_EXISTS;
}

#endif
