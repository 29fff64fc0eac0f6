// SPDX-License-Identifier: GPL-2.0
/* Where the time of threads goes: on a CPU, waiting for one, waiting for something else; who woke them, and the stacks of long waits.
 * Hook: raw tracepoints sched_switch, sched_waking, sched_wakeup_new, and sched_exit_tp (6.15), where a thread that came back is current:
 * there its stack is taken, and only when it waited for longer than the threshold. Older kernels take it as it leaves.
 * State: an entry a thread (shared/thread.h); rows of long waits in two buffers; all bounded, see bpf/README.md.
 * Needs: Linux 5.10. Cost: a switch costs two look-ups and no stack while waits are short; see bpf/README.md for the measured figure. */
#include "shared/events.h"
#include "shared/interrupt.h"
#include "shared/latest.h"
#include "shared/thread.h"
#include "shared/sampling.h"
#include "shared/wait_class.h"
#include "shared/wait_rows.h"
#include "shared/open_waits.h"
#include "shared/turns.h"

/* The thread that was switched in. */
struct returning {
	u32 tid; /* when its waits are worth a stack, else 0 */
	struct occupant occupant;
	struct measured_wait runnable;
	struct wait_key key;
};

/* Key: 0. */
BPF_PERCPU_ARRAY(returning, struct returning, 1);
/* Key: 0. Value: tid of the thread that is being woken, while the stack of its waker is walked. */
BPF_PERCPU_ARRAY(wakee, u32, 1);

/* How the current task leaves. Answers whether its stack is wanted. */
static __always_inline bool switch_out(struct bpf_raw_tracepoint_args *ctx, u32 tid, u64 now_ns, struct wait_settings *setting,
				       struct wait_counts *counts)
{
	struct task_struct *task = running_task();
	struct thread *thread = threads.lookup(&tid);

	if (!thread) {
		int zero = 0;
		struct settings *limits = settings.lookup(&zero);

		if (!limits)
			return false;
		if (limits->limits & LIMIT_CGROUP && cgroups.check_current_task(0) != 1)
			return false;
		thread = new_thread((struct task_struct *)bpf_get_current_task(), tid, THREAD_RUNNING,
				    limits->limits & LIMIT_CGROUP ? now_ns : setting->on_since_ns, setting->window, counts);
	}
	if (!thread)
		return false;
	leave(thread, task, now_ns, state_of(ctx), setting, counts);
	if (thread->state == THREAD_DEAD && thread->born_window == setting->window) {
		depart(thread, counts);
		threads.delete(&tid);
		return false;
	}
	return thread->state != THREAD_DEAD;
}

/* The next task comes in; its waits that are long enough are left for on_back. */
static __always_inline void switch_in(struct task_struct *task, u32 tid, u64 now_ns, struct wait_settings *setting, struct wait_counts *counts)
{
	struct thread *thread = threads.lookup(&tid);
	struct returning *back;
	u64 runnable_ns, stands_ns = 0;
	int zero = 0;
	bool is_first;

	if (!thread) {
		struct settings *limits = settings.lookup(&zero);

		if (!limits || limits->limits & LIMIT_CGROUP)
			return;
		thread = new_thread(task, tid, THREAD_NEW, setting->on_since_ns, setting->window, counts);
		if (!thread)
			return;
	}
	is_first = thread->state == THREAD_NEW; /* does not pass sched_exit_tp */
	runnable_ns = enter(thread, now_ns, setting, counts, is_first);
	if (is_first)
		return;
	if (runnable_ns >= setting->threshold_ns)
		stands_ns = stands_for(runnable_ns, now_ns, counts);
	if (!stands_ns && !(thread->blocked_stands_ns && thread->blocked_ns))
		return;
	back = returning.lookup(&zero);
	if (!back)
		return;
	back->runnable.ns = back->runnable.whole_ns = runnable_ns;
	back->runnable.stands_ns = stands_ns;
	back->runnable.is_uninterruptible = 0;
#if STACK_AS_IT_LEAVES
	__builtin_memset(&back->key, 0, sizeof(back->key));
	back->key.own = thread->own;
	put_rows(thread, &back->key, &back->runnable, counts);
#else
	back->tid = tid;
#endif
}

int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 tid = bpf_get_current_pid_tgid(), next_tid = 0;
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	int zero = 0;
	struct wait_settings *setting = wait_settings.lookup(&zero);
	struct wait_counts *counts = wait_counts.lookup(&zero);
	struct returning *back = returning.lookup(&zero);
	bool is_stack_wanted = false;

	if (!setting || !counts || !back || !is_gate_open(counts, now_ns))
		return 0;
	if (tid)
		is_stack_wanted = switch_out(ctx, tid, now_ns, setting, counts);
	bpf_probe_read_kernel(&next_tid, sizeof(next_tid), &next->pid);
	occupy(&back->occupant, next, next_tid, now_ns);
	if (next_tid)
		switch_in(next, next_tid, now_ns, setting, counts);
#if STACK_AS_IT_LEAVES
	if (is_stack_wanted) {
		struct current_task current = {};

		read_current_task(&current, bpf_get_current_pid_tgid() >> 32);
		walk_event(ctx, SCRATCH_BACK, &current, active_buffer());
	}
#endif
	return 0;
}

/* The current thread has a CPU, which sched_switch did not tell: on Linux 6.18 in a virtual machine a switch in some hundred passed it by. */
static __always_inline void come_unseen(struct occupant *occupant, u32 tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 now_ns = bpf_ktime_get_ns();
	int zero = 0;
	struct wait_settings *setting = wait_settings.lookup(&zero);
	struct wait_counts *counts = wait_counts.lookup(&zero);
	struct thread *thread;
	u64 since_ns = now_ns;

	if (setting && counts && is_gate_open(counts, now_ns)) {
		leave_unseen(occupant, now_ns, setting, counts);
		thread = tid ? threads.lookup(&tid) : 0;
		if (thread && thread->state == THREAD_RUNNING)
			since_ns = thread->since_ns; /* it has run since before the programs were attached */
		else if (thread)
			switch_in(task, tid, now_ns, setting, counts);
	}
	occupy(occupant, task, tid, since_ns);
}

/* The thread that came back is current: take its stack if its waits were long enough. */
int on_back(struct bpf_raw_tracepoint_args *ctx)
{
#if !STACK_AS_IT_LEAVES
	u64 pid_tid = bpf_get_current_pid_tgid();
	u32 tid = pid_tid;
	int zero = 0;
	struct returning *back = returning.lookup(&zero);
	struct current_task current = {};

	if (!back)
		return 0;
	if (back->occupant.tid != tid)
		come_unseen(&back->occupant, tid);
	if (!tid || back->tid != tid)
		return 0;
	read_current_task(&current, pid_tid >> 32);
	if (!current.is_kernel_thread)
		signal_once(&current.process);
	walk_event(ctx, SCRATCH_BACK, &current, active_buffer());
#endif
	return 0;
}

static __always_inline void take_stack(struct wait_stack *stack, struct event_walk *walk)
{
	stack->process = walk->process;
	stack->user_stack = walk->user_stack;
	stack->kernel_stack = walk->kernel_stack;
	stack->user_error = walk->user_error;
	stack->kernel_error = walk->kernel_error;
	stack->is_kernel_thread = load_u32(&running_task()->flags) & TASK_KERNEL_THREAD ? 1 : 0;
}

/* Finisher of SCRATCH_BACK. */
int on_back_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_BACK, tid = bpf_get_current_pid_tgid();
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct returning *back = returning.lookup(&zero);
	struct thread *thread = threads.lookup(&tid);
	struct wait_counts *counts = wait_counts.lookup(&zero);

	if (!walk || !back || !counts)
		return 0;
	if (thread)
		bpf_get_current_comm(&thread->comm, sizeof(thread->comm));
#if STACK_AS_IT_LEAVES
	if (thread) {
		take_stack(&thread->own, walk);
		thread->stack_since_ns = thread->since_ns;
		thread->is_provisional = 0;
	}
#else
	back->tid = 0;
	__builtin_memset(&back->key, 0, sizeof(back->key));
	take_stack(&back->key.own, walk);
	keep_latest(&walk->process, walk->user_stack, walk->kernel_stack, walk->buffer); /* it may have slept with a lock in hand */
	if (thread)
		put_rows(thread, &back->key, &back->runnable, counts);
#endif
	end_walk(walk);
	return 0;
}

int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	int zero = 0;
	struct wait_settings *setting = wait_settings.lookup(&zero);
	struct wait_counts *counts = wait_counts.lookup(&zero);
	struct current_task current = {};
	struct thread *thread;
	u64 pid_tid;
	u32 tid = 0, *woken;

	if (!setting || !counts || !is_gate_open(counts, now_ns))
		return 0;
	bpf_probe_read_kernel(&tid, sizeof(tid), &task->pid);
	thread = threads.lookup(&tid);
	if (!thread) {
		struct settings *limits = settings.lookup(&zero);

		if (!limits || limits->limits & LIMIT_CGROUP)
			return 0;
		thread = new_thread(task, tid, THREAD_BLOCKED, setting->on_since_ns, setting->window, counts);
	}
	if (!thread || (thread->state != THREAD_BLOCKED && thread->since_ns >= setting->on_since_ns))
		return 0;
	end_wait(thread, now_ns, setting, counts);
	if (!thread->blocked_stands_ns)
		return 0;
	pid_tid = bpf_get_current_pid_tgid();
	woken = wakee.lookup(&zero);
	if (!pid_tid || !woken || is_interrupt(running_task()))
		return 0;
	read_current_task(&current, pid_tid >> 32);
	if (!current.is_kernel_thread)
		signal_once(&current.process);
	*woken = tid;
	walk_event(ctx, SCRATCH_WAKER, &current, active_buffer());
	return 0;
}

/* Finisher of SCRATCH_WAKER: the thread that is woken cannot run before this ends. */
int on_waker_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_WAKER;
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
	u32 *woken = wakee.lookup(&zero);
	struct thread *thread;

	if (!walk || !woken)
		return 0;
	thread = threads.lookup(woken);
	if (thread)
		take_stack(&thread->waker, walk);
	end_walk(walk);
	return 0;
}

/* A new thread begins by waiting for a CPU. */
int on_wakeup_new(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	int zero = 0;
	struct wait_settings *setting = wait_settings.lookup(&zero);
	struct wait_counts *counts = wait_counts.lookup(&zero);
	struct settings *limits = settings.lookup(&zero);
	u64 now_ns = bpf_ktime_get_ns();
	u32 tid = 0;

	if (!setting || !counts || !limits || !is_gate_open(counts, now_ns) || (limits->limits & LIMIT_CGROUP && cgroups.check_current_task(0) != 1))
		return 0;
	bpf_probe_read_kernel(&tid, sizeof(tid), &task->pid);
	new_thread(task, tid, THREAD_NEW, now_ns, setting->window, counts);
	return 0;
}
