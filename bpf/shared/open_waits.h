// SPDX-License-Identifier: GPL-2.0
/* What no event tells of, asked by an iterator over all threads.
 *
 * When the gate has opened: what every thread does of which no event has told since. Else one that sleeps already would not be known until
 * it is woken, and one whose entry is of an earlier time would count as what it did then.
 *
 * At the end of a window: stacks of waits that are still open, for nobody comes back to be asked. They are read from memory as far as they are
 * in it (shared/resident.h). Each wait is visited once, or until there are tables for its process; at most as many in a row as the collector
 * allows. The kernel calls the program again for the same task when it answers 1: UNWIND_STEP frames at a time, like the tail calls elsewhere.
 *
 * Needs: Linux 6.15 (before, a thread's stack is taken as it leaves). Cost: under a microsecond a thread, ten for each walk. */
#ifndef EMBERWATCH_OPEN_WAITS_H
#define EMBERWATCH_OPEN_WAITS_H

#include "shared/wait_class.h"

/* The walk under way, for one iterator at a time, wherever it runs. */
struct open_walk {
	u64 since_ns;
	u64 kernel_stack;
	u32 tid; /* 0 for none */
	s16 kernel_error;
	u16 padding;
	struct thread fresh;
	struct unwinding at;
	struct stack stack;
};

/* Key: 0. */
BPF_ARRAY(open_walk, struct open_walk, 1);

#ifdef EMBERWATCH_SCHED_EXIT

static __always_inline bool is_wait_without_stack(struct thread *thread, struct task_struct *task, struct wait_settings *setting)
{
	u64 from_ns = later(thread->since_ns, setting->on_since_ns);

	if (load_u64(&task->nvcsw) != thread->voluntary_switches)
		return false; /* nobody looked as it went on */
	return thread->state == THREAD_BLOCKED && (thread->stack_since_ns != thread->since_ns || thread->is_provisional) &&
	       past(bpf_ktime_get_ns(), from_ns) >= setting->threshold_ns;
}

/* Whether the task has been asleep since the walk began: what was read is what is there, and its memory too. */
static __always_inline bool sleeps_on(struct task_struct *task, struct thread *thread, struct open_walk *walk)
{
	return thread->state == THREAD_BLOCKED && thread->since_ns == walk->since_ns && load_u32(&task->__state) &&
	       load_u64(&task->nvcsw) == thread->voluntary_switches;
}

static __always_inline u32 state_of_task(struct task_struct *task, u64 state)
{
	if (load_u32(&task->on_cpu))
		return THREAD_RUNNING;
	if (state & TASK_IS_NEW)
		return THREAD_NEW;
	return !state || state & TASK_IS_WAKING ? THREAD_RUNNABLE : THREAD_BLOCKED;
}

/* What a thread does, by the scheduler's own word; as if it had begun to when the gate opened. A wait that goes on is left alone, with its
 * stack, and so is what a handler wrote since. A handler that writes at this very moment makes it good with the next event. */
static __always_inline void begin_thread(struct task_struct *task, u32 tid, struct thread *fresh, struct wait_settings *setting,
					 struct wait_counts *counts)
{
	struct thread *thread = threads.lookup(&tid);
	u64 state = load_u32(&task->__state), switches = load_u64(&task->nvcsw);
	bool is_same = thread && thread->process.pid == load_u32(&task->tgid) && thread->process.start_boot_ns == start_of(task);

	if (is_same) {
		thread->met_window = setting->window;
		if (thread->since_ns >= setting->on_since_ns)
			return;
		if (thread->state == THREAD_BLOCKED && state && thread->voluntary_switches == switches)
			return;
	} else {
		fresh->met_window = fresh->born_window = setting->window;
		fresh->state = THREAD_RUNNABLE;
		fresh->since_ns = setting->on_since_ns;
		thread = put_thread(fresh, task, tid, thread, counts);
		if (!thread)
			return;
	}
	thread->blocked_ns = thread->blocked_whole_ns = thread->blocked_stands_ns = 0;
	thread->since_ns = setting->on_since_ns;
	thread->state = state_of_task(task, state);
	if (thread->state == THREAD_BLOCKED) {
		thread->voluntary_switches = switches;
		thread->is_uninterruptible = is_uninterruptible(state);
		thread->wait_class = class_of_task(task, (struct pt_regs *)bpf_task_pt_regs(task), false, thread->is_uninterruptible);
		thread->is_class_unknown = 0;
	}
}

/* The class of a wait whose beginning was not seen, when it goes on and nothing was told of it yet. */
static __always_inline void find_class(struct task_struct *task, struct thread *thread, struct wait_settings *setting)
{
	if (!thread->is_class_unknown || thread->state != THREAD_BLOCKED || thread->since_ns <= setting->reported_ns ||
	    load_u64(&task->nvcsw) != thread->voluntary_switches)
		return;
	thread->wait_class = class_of_task(task, (struct pt_regs *)bpf_task_pt_regs(task), false, thread->is_uninterruptible);
	thread->is_class_unknown = 0;
}

static __always_inline void keep_own(struct thread *thread, struct open_walk *walk, u64 user_stack, s16 user_error,
				     bool is_provisional)
{
	thread->own.process = thread->process;
	thread->own.user_stack = user_stack;
	thread->own.user_error = user_error;
	thread->own.kernel_stack = walk->kernel_stack;
	thread->own.kernel_error = walk->kernel_error;
	thread->own.is_kernel_thread = thread->is_kernel_thread;
	thread->stack_since_ns = walk->since_ns;
	thread->is_provisional = is_provisional;
	walk->tid = 0;
}

/* The kernel's part, and the registers of user space. False when there is no user part to be walked. */
static __always_inline bool begin_open_walk(struct open_walk *walk, struct thread *thread, struct task_struct *task, struct stack_home *home)
{
	struct unwind_process *process = unwind_processes.lookup(&thread->process);
	u64 code_segment = 0;
	long bytes;

	walk->since_ns = thread->since_ns;
	walk->kernel_stack = 0;
	walk->kernel_error = 0;
	bytes = bpf_get_task_stack(task, walk->stack.addresses, sizeof(walk->stack.addresses), 0);
	if (bytes > 0) {
		walk->stack.length = (u64)bytes / sizeof(u64);
		walk->stack.stop = STOP_NONE;
		walk->kernel_stack = keep_stack(&walk->stack, home, &walk->kernel_error);
	} else {
		walk->kernel_error = bytes;
	}
	walk->stack.length = 0;
	if (!load_u64(&task->mm))
		return false;
	take_registers(&walk->at, (struct pt_regs *)bpf_task_pt_regs(task), &code_segment);
	walk->at.is_exact = walk->at.has_registers = 1;
	walk->at.mapping.start = walk->at.mapping.end = 0;
	walk->at.looks_left = 0;
	walk->at.process.count = 0;
	if (process)
		walk->at.process = *process;
	return is_64_bit(code_segment);
}

int bpf_iter__task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	int zero = 0;
	struct open_walk *walk = open_walk.lookup(&zero);
	struct wait_settings *setting = wait_settings.lookup(&zero);
	struct settings *limits = settings.lookup(&zero);
	struct wait_counts *counts = wait_counts.lookup(&zero);
	struct direct_map *map = direct_map.lookup(&zero);
	struct stack_home home = {};
	struct other_memory other = {};
	struct thread *thread;
	bool is_unwinding = limits && limits->is_unwinding;
	s16 error = 0;
	u64 hash;
	u32 tid, stop;

	if (!task || !walk || !setting || !counts || !limits || !map)
		return 0;
	if ((!map->start || map->window != setting->window) && has_direct_map(map))
		map->window = setting->window;
	tid = load_u32(&task->pid);
	if (setting->is_beginning) {
		/* Not the idle ones, nor those about to be gone; of a cgroup only the current task can be told. */
		if (tid && !(limits->limits & LIMIT_CGROUP) && !load_u32(&task->exit_state))
			begin_thread(task, tid, &walk->fresh, setting, counts);
		return 0;
	}
	thread = threads.lookup(&tid);
	if (thread) {
		thread->met_window = setting->window;
		find_class(task, thread, setting);
	}
	if (!setting->walks_left || !find_home(&home, active_buffer(), SCRATCH_BACK))
		return 0;
	if (!thread || !is_wait_without_stack(thread, task, setting)) {
		walk->tid = 0;
		return 0;
	}
	if (walk->tid != tid || walk->since_ns != thread->since_ns) {
		walk->tid = tid;
		setting->walks_left--;
		if (!begin_open_walk(walk, thread, task, &home)) {
			keep_own(thread, walk, 0, 0, false);
			return 0;
		}
	}
	other.memory = (struct mm_struct *)load_u64(&task->mm);
	other.direct_map = map->start;
	stop = walk_frames(&walk->at, &walk->stack, &other);
	if (!stop)
		return 1;
	walk->stack.stop = walk->at.process.count ? final_stop(&walk->at, stop, task) : STOP_NO_TABLE;
	hash = keep_stack(&walk->stack, &home, &error);
	if (sleeps_on(task, thread, walk))
		keep_own(thread, walk, hash, error, walk->stack.stop == STOP_NO_TABLE && is_unwinding);
	return 0;
}

#endif
#endif
