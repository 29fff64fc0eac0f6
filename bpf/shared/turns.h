// SPDX-License-Identifier: GPL-2.0
/* How a thread goes from one state to the next (shared/thread.h), as it is told by an event, or found out afterwards. */
#ifndef EMBERWATCH_TURNS_H
#define EMBERWATCH_TURNS_H

#include "shared/thread.h"
#include "shared/sampling.h"
#include "shared/wait_class.h"

/* Who has a CPU, as far as it is known. It outlives the time that programs are attached for. */
struct occupant {
	u64 task; /* struct task_struct, of which nothing is sure but that it was one */
	u64 since_ns; /* as its entry has it */
	u32 tid; /* 0 when it is idle */
};

static __always_inline void occupy(struct occupant *occupant, struct task_struct *task, u32 tid, u64 since_ns)
{
	occupant->task = (u64)task;
	occupant->since_ns = since_ns;
	occupant->tid = tid;
}

/* The wait of a thread is over. What was reported at the end of a window before is not reported again. */
static __always_inline void end_wait(struct thread *thread, u64 now_ns, struct wait_settings *setting, struct wait_counts *counts)
{
	u64 from_ns = later(thread->since_ns, setting->on_since_ns);
	u64 whole_ns = past(now_ns, from_ns);
	u32 class = thread->wait_class;

	if (class < WAIT_CLASSES)
		thread->sums.class_ns[class] += whole_ns;
	thread->blocked_whole_ns = whole_ns;
	if (setting->reported_ns > from_ns) {
		thread->crossed_at_ns = setting->reported_ns;
		thread->crossed_since_ns = thread->since_ns;
		thread->crossed_class = class;
		thread->crossed_uninterruptible = thread->is_uninterruptible;
	}
	if (past(setting->reported_ns, from_ns) >= setting->threshold_ns && setting->reported_ns > from_ns)
		thread->blocked_ns = past(now_ns, setting->reported_ns);
	else
		thread->blocked_ns = whole_ns;
	thread->blocked_stands_ns = whole_ns < setting->threshold_ns ? 0 : stands_for(whole_ns, now_ns, counts);
	__builtin_memset(&thread->waker, 0, sizeof(thread->waker));
	thread->since_ns = now_ns;
	thread->state = THREAD_RUNNABLE;
}

/* A thread gets a CPU: `task` is on its way in. Answers how long it waited for it. */
static __always_inline u64 enter(struct thread *thread, u64 now_ns, struct wait_settings *setting, struct wait_counts *counts, bool is_first)
{
	u64 runnable_ns;

	if (thread->state == THREAD_BLOCKED && thread->since_ns >= setting->on_since_ns)
		end_wait(thread, now_ns, setting, counts); /* its wakeup was not seen */
	if (thread->state == THREAD_RUNNING && thread->since_ns >= setting->on_since_ns) {
		/* That it left was not seen: it ran for a part of that time, and waited for what is not known. Its row is lost. */
		thread->sums.class_ns[WAIT_OTHER] += past(now_ns, thread->since_ns);
		thread->blocked_ns = thread->blocked_whole_ns = thread->blocked_stands_ns = 0;
		thread->since_ns = now_ns;
		counts->unseen++;
	}
	runnable_ns = past(now_ns, later(thread->since_ns, setting->on_since_ns));
	thread->sums.switches++;
	thread->sums.runnable_ns += runnable_ns;
	/* Sums before the state: what a reader in between has too much it finds out, what it had too little it would not. */
	asm volatile("" : : : "memory");
	thread->state = THREAD_RUNNING;
	thread->since_ns = now_ns;
	if (runnable_ns < setting->threshold_ns || is_first) {
		u32 bucket = bucket_of_ns(runnable_ns);

		thread->sums.short_runnable_ns += runnable_ns;
		thread->sums.short_buckets[bucket & (BUCKETS_OF_TIME - 1)]++;
		if (thread->sums.max_window != setting->window || runnable_ns > thread->sums.short_max_ns)
			thread->sums.short_max_ns = runnable_ns;
		thread->sums.max_window = setting->window;
	}
	return runnable_ns;
}

/* A thread has become another program. */
static __always_inline void become(struct thread *thread, struct task_struct *task, u32 exec_id, struct wait_settings *setting,
				   struct wait_counts *counts)
{
	if (thread->born_window == setting->window) {
		depart(thread, counts);
		__builtin_memset(&thread->sums, 0, sizeof(thread->sums));
	}
	thread->process.exec_id = exec_id;
	bpf_probe_read_kernel(&thread->comm, sizeof(thread->comm), &task->comm);
}

/* The current thread leaves its CPU. */
static __always_inline void leave(struct thread *thread, struct task_struct *task, u64 now_ns, u64 state, struct wait_settings *setting,
				  struct wait_counts *counts)
{
	/* That it came was not seen: it ran for a part of that time, and its wait has no row. */
	if (thread->state != THREAD_RUNNING && thread->state != THREAD_NEW && thread->since_ns > setting->on_since_ns)
		counts->unseen++;
	thread->sums.cpu_ns += past(now_ns, later(thread->since_ns, setting->on_since_ns));
	thread->since_ns = now_ns;
	if (thread->process.exec_id != load_u32(&task->self_exec_id))
		become(thread, task, load_u32(&task->self_exec_id), setting, counts);
	thread->blocked_ns = thread->blocked_whole_ns = thread->blocked_stands_ns = 0;
#if STACK_AS_IT_LEAVES
	__builtin_memset(&thread->own, 0, sizeof(thread->own)); /* is of an earlier wait */
#endif
	if (!state) {
		thread->state = THREAD_RUNNABLE;
	} else if (state & TASK_IS_DEAD) {
		thread->state = THREAD_DEAD;
	} else {
		thread->state = THREAD_BLOCKED;
		thread->voluntary_switches = load_u64(&task->nvcsw);
		thread->is_uninterruptible = is_uninterruptible(state);
		thread->wait_class = class_of_task(task, user_registers(task), true, thread->is_uninterruptible);
		thread->is_class_unknown = 0;
	}
}

/* What sched_switch says of the state in which the current task leaves: 0 when it could go on. */
static __always_inline u64 state_of(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[0])
		return 0; /* preempted */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	return ctx->args[3] & 0xffffffff;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	return load_u32(&running_task()->__state);
#else
	return load_u64(&running_task()->state);
#endif
}

/* Who had the CPU has lost it a moment ago, and no event told. How it left is found in its task; what it waits for is looked up at the end
 * of the window, when it still does (shared/open_waits.h). */
static __always_inline void leave_unseen(struct occupant *occupant, u64 now_ns, struct wait_settings *setting, struct wait_counts *counts)
{
#if !STACK_AS_IT_LEAVES
	struct task_struct *task = (struct task_struct *)occupant->task;
	u32 tid = occupant->tid, found_tid = 0, on_cpu = 0, exec_id = 0, state = TASK_IS_DEAD;
	struct thread *thread = tid ? threads.lookup(&tid) : 0;

	/* Another moment: it came back elsewhere. One before programs were attached: its entry is of an earlier time. */
	if (!thread || thread->state != THREAD_RUNNING || thread->since_ns != later(occupant->since_ns, setting->on_since_ns))
		return;
	bpf_probe_read_kernel(&found_tid, sizeof(found_tid), &task->pid);
	if (found_tid == tid) {
		bpf_probe_read_kernel(&state, sizeof(state), &task->__state);
		bpf_probe_read_kernel(&on_cpu, sizeof(on_cpu), &task->on_cpu);
		bpf_probe_read_kernel(&exec_id, sizeof(exec_id), &task->self_exec_id);
	}
	if (on_cpu)
		return; /* it has another CPU */
	thread->sums.cpu_ns += past(now_ns, thread->since_ns);
	thread->since_ns = now_ns;
	if (found_tid == tid && thread->process.exec_id != exec_id)
		become(thread, task, exec_id, setting, counts);
	thread->blocked_ns = thread->blocked_whole_ns = thread->blocked_stands_ns = 0;
	if (state & TASK_IS_DEAD) {
		thread->state = THREAD_DEAD;
	} else if (!state || state & TASK_IS_WAKING) {
		thread->state = THREAD_RUNNABLE;
	} else {
		thread->state = THREAD_BLOCKED;
		thread->voluntary_switches = kernel_u64(&task->nvcsw);
		thread->is_uninterruptible = is_uninterruptible(state);
		thread->wait_class = WAIT_OTHER;
		thread->is_class_unknown = 1;
	}
#endif
}

#endif
