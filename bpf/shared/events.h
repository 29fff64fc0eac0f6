// SPDX-License-Identifier: GPL-2.0
/* Stacks of events (waits, locks, system calls): of the current task, in a raw tracepoint.
 *
 *	on_<event> -> walk_event(): kernel part -> on_event_unwind, every 32 frames -> finishers[scratch]: stores the event
 *	                                              <-> on_event_look, at code that is not known
 *
 * A program that walks has an entry of enum scratch and a finisher, which is a program of its own: after a tail call nothing comes
 * back. What the event is waits in a per-CPU map of its own meanwhile; where the walk stands, in `event_walks`. */
#ifndef EMBERWATCH_EVENTS_H
#define EMBERWATCH_EVENTS_H

#include "shared/process.h"
#include "shared/sight.h"
#include "shared/home.h"
#include "shared/unwind_begin.h"
#include "shared/look.h"

/* Whether a thread that waits has to be walked as it leaves its CPU: before 6.15 nothing is called when it is back. */
#ifndef STACK_AS_IT_LEAVES
#ifdef EMBERWATCH_SCHED_EXIT
#define STACK_AS_IT_LEAVES 0
#else
#define STACK_AS_IT_LEAVES 1
#endif
#endif

enum {
	OWN_FRAMES = 2, /* innermost in the kernel part: the program, and what calls programs (bpf_trace_run) */
};

struct event_walk {
	struct process_key process;
	u64 user_stack;
	u64 kernel_stack;
	s16 user_error;
	s16 kernel_error;
	u32 buffer;
	u32 scratch_below; /* whose walk this one interrupted */
	u32 is_busy;
};

/* Key: enum scratch. */
BPF_PERCPU_ARRAY(event_walks, struct event_walk, SCRATCHES);
/* Key: 0. Value: enum scratch of the innermost walk of this CPU. */
BPF_PERCPU_ARRAY(innermost_walk, u32, 1);
/* Key: enum walker. Filled and held by the collector. */
BPF_PROG_ARRAY(event_unwinders, WALKERS);
/* Key: enum scratch. Filled and held by the collector. */
BPF_PROG_ARRAY(finishers, SCRATCHES);

static __always_inline void end_walk(struct event_walk *walk)
{
	int zero = 0;
	u32 *innermost = innermost_walk.lookup(&zero);

	if (innermost)
		*innermost = walk->scratch_below;
	walk->is_busy = 0;
}

static __always_inline struct event_walk *begin_walk(u32 scratch, struct process_key *process, int buffer)
{
	struct event_walk *walk = event_walks.lookup(&scratch);
	int zero = 0;
	u32 *innermost = innermost_walk.lookup(&zero);

	if (!walk || !innermost || walk->is_busy)
		return 0;
	walk->scratch_below = *innermost;
	walk->is_busy = 1;
	*innermost = scratch;
	walk->process = *process;
	walk->buffer = buffer;
	walk->user_stack = walk->kernel_stack = 0;
	walk->user_error = walk->kernel_error = 0;
	return walk;
}

/* Walk both stacks of the current task and go on in finishers[scratch], which must call end_walk(). Returns only when there is no
 * finisher, or the program interrupted itself: then the event is the caller's to count as lost. */
static __always_inline void walk_event(struct bpf_raw_tracepoint_args *ctx, u32 scratch, struct current_task *current, int buffer)
{
	struct stack_home home = {};
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);
	struct event_walk *walk;
	struct unwinding *at = 0;
	u64 code_segment = 0;

	if (!setting || !find_home(&home, buffer, scratch))
		return;
	walk = begin_walk(scratch, &current->process, buffer);
	if (!walk)
		return;
	walk->kernel_stack = store_stack(ctx, OWN_FRAMES, STOP_NONE, &home, &walk->kernel_error);
	if (current->has_memory) {
		if (setting->is_unwinding)
			at = begin_unwinding(scratch, &current->process, setting->is_unwinding);
		if (at) {
			saved_registers(at, &code_segment);
			if (is_64_bit(code_segment))
				event_unwinders.call(ctx, WALKER_UNWIND);
		}
		walk->user_stack = store_stack(ctx, BPF_F_USER_STACK, STOP_NO_TABLE, &home, &walk->user_error);
	}
	finishers.call(ctx, scratch);
	end_walk(walk);
}

/* The walk that goes on in a program entered by a tail call. False when there is none. */
struct walk_under_way {
	struct event_walk *walk;
	struct unwinding *at;
	struct stack *stack;
	u32 scratch;
};

static __always_inline bool find_walk(struct walk_under_way *found)
{
	int zero = 0;
	u32 *innermost = innermost_walk.lookup(&zero);

	if (!innermost)
		return false;
	found->scratch = *innermost;
	found->walk = event_walks.lookup(&found->scratch);
	found->at = unwinding.lookup(&found->scratch);
	found->stack = walked.lookup(&found->scratch);
	return found->walk && found->at && found->stack;
}

/* Walks the user stack of the innermost walk on. Entered from walk_event(), from itself and from on_event_look. */
int on_event_unwind(struct bpf_raw_tracepoint_args *ctx)
{
	struct walk_under_way on = {};
	struct stack_home home = {};
	u32 stop;

	if (!find_walk(&on))
		return 0;
	stop = walk_frames(on.at, on.stack, 0);
	if (stop == STOP_LOOK) {
		event_unwinders.call(ctx, WALKER_LOOK);
		stop = STOP_NO_MAPPING;
	} else if (!stop) {
		event_unwinders.call(ctx, WALKER_UNWIND);
		stop = STOP_CAP; /* more calls than the kernel allows */
	}
	if (find_home(&home, on.walk->buffer, on.scratch))
		on.walk->user_stack = end_unwinding(on.at, on.stack, stop, &on.walk->process, &home, &on.walk->user_error);
	finishers.call(ctx, on.scratch);
	end_walk(on.walk);
	return 0;
}

#ifdef EMBERWATCH_MAPLE_TREE

/* Looks up code that on_event_unwind does not know, and goes on there; where nothing of a process is known, its stack is the kernel's. */
int on_event_look(struct bpf_raw_tracepoint_args *ctx)
{
	struct walk_under_way on = {};
	struct stack_home home = {};

	if (!find_walk(&on))
		return 0;
	if (look_for_frame(on.at, on.stack))
		event_unwinders.call(ctx, WALKER_UNWIND);
	if (find_home(&home, on.walk->buffer, on.scratch))
		on.walk->user_stack = store_stack(ctx, BPF_F_USER_STACK, STOP_NO_TABLE, &home, &on.walk->user_error);
	finishers.call(ctx, on.scratch);
	end_walk(on.walk);
	return 0;
}

#endif
#endif
