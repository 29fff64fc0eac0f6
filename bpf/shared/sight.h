// SPDX-License-Identifier: GPL-2.0
/* Tells the collector of a process at its first event, so that its mappings are read while it lives. */
#ifndef EMBERWATCH_SIGHT_H
#define EMBERWATCH_SIGHT_H

#include "shared/process.h"

enum {
	SEEN_ENTRIES = 16384,
	NEW_PROCESSES_PAGES = 16,
	ERROR_EXISTS = -17,
	ERROR_TOO_BIG = -7,
};

/* Processes that were signalled. Bound: SEEN_ENTRIES; when full they are not signalled and counted. The collector empties it. */
BPF_HASH(seen, struct process_key, u64, SEEN_ENTRIES);

/* A record of new_processes. */
struct sighting {
	struct process_key process;
	u32 is_exec; /* it began a moment ago and has no sample yet */
	u32 padding;
};

/* Records: struct sighting, at exec, at first sight, and when its mappings are not those it was unwound by any more. When full they are
 * lost; the process is looked at at the end of the window. */
BPF_RINGBUF_OUTPUT(new_processes, NEW_PROCESSES_PAGES);

static __always_inline void tell(struct process_key *process, u32 is_exec)
{
	struct sighting found = {};

	found.process = *process;
	found.is_exec = is_exec;
	new_processes.ringbuf_output(&found, sizeof(found), 0);
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
		tell(process, 0);
	return !refusal || refusal == ERROR_EXISTS;
}

#endif
