// SPDX-License-Identifier: GPL-2.0
/* Who is at work: the current task, or an interrupt in the middle of what it did. */
#ifndef EMBERWATCH_INTERRUPT_H
#define EMBERWATCH_INTERRUPT_H

#include "shared/unwind_begin.h"

enum {
	IN_INTERRUPT = 0xff0100, /* non-maskable, hard, and soft being served: include/linux/preempt.h */
};

/* Whether an interrupt wakes, in the middle of whatever the current task did: then that task is no waker. The preempt count tells; it lies in
 * the memory of this CPU, as does the run queue, to which the task leads. */
static __always_inline bool is_interrupt(struct task_struct *task)
{
#ifdef EMBERWATCH_PREEMPT_COUNT_AT
	struct cfs_rq *queue = (struct cfs_rq *)load_u64(&task->se.cfs_rq);
	u64 runqueue = 0;
	u32 preempt_count = 0;

	bpf_probe_read_kernel(&runqueue, sizeof(runqueue), &queue->rq);
	runqueue += (u64)EMBERWATCH_PREEMPT_COUNT_AT - EMBERWATCH_RUNQUEUES_AT;
	if (bpf_probe_read_kernel(&preempt_count, sizeof(preempt_count), (void *)runqueue))
		return true;
	return preempt_count & IN_INTERRUPT;
#else
	return load_u64(&task->mm) && (s64)load_u64(&user_registers(task)->orig_ax) < 0; /* user code was interrupted; kernel code is not told */
#endif
}

#endif
