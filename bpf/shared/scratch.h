// SPDX-License-Identifier: GPL-2.0
/* Whose per-CPU scratch memory: a timer may interrupt a handler of a tracepoint, and tracepoints lie inside one another, so each program
 * that walks stacks has an entry of its own. With itself it does not nest: events.h looks after that. */
#ifndef EMBERWATCH_SCRATCH_H
#define EMBERWATCH_SCRATCH_H

/* As Scratch in agent/profilers/event_host.py. */
enum scratch {
	SCRATCH_TICK,
	SCRATCH_BACK,
	SCRATCH_WAKER,
	SCRATCH_SYSCALL,
	SCRATCH_LOCK,
	SCRATCH_FUTEX,
	SCRATCH_HOLDER,
	SCRATCH_TCP,
	SCRATCH_HOLD,
	SCRATCHES,
};

/* Programs that a walk goes on in, as Walker in agent/kernel/unwind_maps.py. */
enum walker { WALKER_UNWIND, WALKER_LOOK, WALKERS };

#endif
