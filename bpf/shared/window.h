// SPDX-License-Identifier: GPL-2.0
/* Two buffers: handlers write the active one, the collector drains the other.
 *
 * The collector writes the new index, then updates a slot of a map of maps: for that the kernel waits until every handler that
 * may have read the old index has ended (maybe_wait_bpf_programs, kernel/bpf/syscall.c). Then nobody writes what is drained. */
#ifndef EMBERWATCH_WINDOW_H
#define EMBERWATCH_WINDOW_H

enum { BUFFERS = 2 };

/* Key: 0. Value: index of the buffer in use, 0 or 1. */
BPF_ARRAY(active, u64, 1);

static __always_inline int active_buffer(void)
{
	int zero = 0;
	u64 *index = active.lookup(&zero);

	return index ? *index & (BUFFERS - 1) : 0;
}

#endif
