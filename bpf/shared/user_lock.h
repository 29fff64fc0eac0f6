// SPDX-License-Identifier: GPL-2.0
/* Locks of user space: a thread that leaves the CPU in a futex call waits for one; who holds it stands in the lock.
 *
 *	sched_switch (out) -> the address, the holder and, when it is blocked in the same process, its stack -> futex_waits[tid]
 *	sched_exit_tp, or sched_switch (in) before 6.15 -> the wait with the stack of who waited
 *
 * What is a lock, and what only waits by the same call: shared/futex.h. */
#ifndef EMBERWATCH_USER_LOCK_H
#define EMBERWATCH_USER_LOCK_H

#include "shared/futex.h"
#include "shared/lock_rows.h"
#include "shared/threads.h"

enum {
	FUTEX_OWNER_MASK = 0x3fffffff,
	GLIBC_OWNER_OFFSET = 8, /* struct __pthread_mutex_s: __lock, __count, __owner */
	FUTEX_ENTRIES = 16384,
	HOLDER_WALKS_A_SLOT = 8, /* stacks of holders, per CPU and slot of 17 ms */
	HOLDER_SLOT_SHIFT = 24,
};

/* A wait under way. */
struct futex_wait {
	u64 start_ns;
	u64 lock;
	u32 type;
	u32 buffer; /* that holds the stacks of the holder */
	u32 owner_tid; /* as its own pid namespace counts, and as it stands in the lock */
	u32 padding;
	struct holder holder;
	struct lock_side own; /* stacks as it left, before 6.15 */
};

/* Key: tid. Bound: FUTEX_ENTRIES; when full the wait is not measured (starts_full). The collector removes what began before it
 * attached. */
BPF_TABLE("hash", u32, struct futex_wait, futex_waits, FUTEX_ENTRIES);
/* Key: 0. */
BPF_PERCPU_ARRAY(futex_row, struct lock_wait, 1);

struct walk_slot {
	u64 slot;
	u64 count;
};

/* Key: 0. How many holders were walked lately. */
BPF_PERCPU_ARRAY(holder_slots, struct walk_slot, 1);

/* The call the task is in; when it is one of those above `regs` says with what. */
static __always_inline u64 futex_call_of(struct task_struct *task, struct pt_regs *regs)
{
	u64 call = 0;

	bpf_probe_read_kernel(&call, sizeof(call), &registers_of(task)->orig_ax);
	if (is_futex_wait(call))
		bpf_probe_read_kernel(regs, sizeof(*regs), registers_of(task));
	return call;
}

/* Which lock the current thread waits for; false when it is none. */
static __always_inline bool read_futex(struct futex_wait *wait, u64 call, struct pt_regs *regs)
{
	u64 arguments[] = {regs->di, regs->si, regs->dx};
	struct futex_waited waited = {};

	wait->type = LOCK_USER;
	wait->lock = regs->di;
	if (is_priority_lock(call, regs->si)) {
		wait->type |= LOCK_PRIORITY;
		return true;
	}
	read_waited(&waited, call, arguments);
	wait->lock = waited.address;
	return waited.value == FUTEX_CONTENDED;
}

static __always_inline u32 owner_in(struct futex_wait *wait)
{
	u32 owner = 0;

	if (wait->type & LOCK_PRIORITY)
		bpf_probe_read_user(&owner, sizeof(owner), (void *)wait->lock);
	else
		bpf_probe_read_user(&owner, sizeof(owner), (void *)wait->lock + GLIBC_OWNER_OFFSET);
	return owner & FUTEX_OWNER_MASK;
}

/* Neither running nor able to. */
static __always_inline bool is_blocked(struct task_struct *task)
{
	u32 state = 0, is_on_cpu = 1;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	bpf_probe_read_kernel(&state, sizeof(state), &task->__state);
#else
	bpf_probe_read_kernel(&state, sizeof(state), (void *)&task->state);
#endif
	bpf_probe_read_kernel(&is_on_cpu, sizeof(is_on_cpu), &task->on_cpu);
	return state && !is_on_cpu;
}

static __always_inline bool may_walk_holder(void)
{
	int zero = 0;
	struct walk_slot *now = holder_slots.lookup(&zero);
	u64 slot = bpf_ktime_get_ns() >> HOLDER_SLOT_SHIFT;

	if (!now)
		return false;
	if (now->slot != slot) {
		now->slot = slot;
		now->count = 0;
	}
	now->count++;
	return now->count <= HOLDER_WALKS_A_SLOT;
}

/* Walk the user stack of a blocked thread of the current process, by the registers it saved. Goes on in finishers[SCRATCH_HOLDER];
 * returns only when it cannot be walked. */
static __always_inline void walk_holder(struct bpf_raw_tracepoint_args *ctx, struct task_struct *task, struct process_key *process)
{
	struct pt_regs *regs = registers_of(task);
	struct event_walk *walk;
	struct unwinding *at;
	u64 code_segment = 0;

	walk = begin_walk(SCRATCH_HOLDER, process, active_buffer());
	if (!walk)
		return;
	at = begin_at(SCRATCH_HOLDER, unwind_processes.lookup(process), 0); /* of another task: no look-ups */
	if (at) {
		take_registers(at, regs, &code_segment);
		if (is_64_bit(code_segment))
			event_unwinders.call(ctx, WALKER_UNWIND);
	}
	end_walk(walk);
}

/* The same of whoever holds a lock, if it is such a thread and not many were walked lately. */
static __always_inline void look_at_holder(struct bpf_raw_tracepoint_args *ctx, struct task_struct *owner, struct process_key *process)
{
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);

	if (owner && setting && setting->is_unwinding && is_blocked(owner) && may_walk_holder())
		walk_holder(ctx, owner, process);
}

/* Whether the thread that leaves could go on: it was preempted, or gave way on its way back to user space. */
static __always_inline bool is_runnable_still(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[0])
		return true;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	return !(u32)ctx->args[3];
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)
	return !load_u32(&running_task()->__state);
#else
	return !load_u64(&running_task()->state);
#endif
}

/* The current thread leaves the CPU in a futex call. */
static __always_inline void begin_futex_wait(struct bpf_raw_tracepoint_args *ctx, struct lock_counts *counts)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task(), *owner = 0;
	u32 tid = bpf_get_current_pid_tgid();
	struct futex_wait wait = {};
	struct current_task current = {};
	struct pt_regs regs;
	u64 call = futex_call_of(task, &regs);

	if (!is_futex_wait(call) || !read_futex(&wait, call, &regs))
		return;
	counts->events++;
	if (!fill_own_side(&wait.own, &current)) {
		counts->waits++;
		counts->filtered++;
		return;
	}
	wait.owner_tid = owner_in(&wait);
	if (wait.owner_tid)
		owner = thread_of_process(wait.owner_tid);
	if (owner == task)
		owner = 0; /* a lock that was left: an owner does not wait for itself */
	if (owner)
		name_holder(&wait.holder, owner);
	wait.buffer = active_buffer();
	wait.start_ns = bpf_ktime_get_ns();
	if (futex_waits.lookup(&tid))
		counts->unpaired++; /* the end of the wait before was not seen */
	if (futex_waits.update(&tid, &wait)) {
		counts->starts_full++;
		return;
	}
#if STACK_AS_IT_LEAVES
	walk_event(ctx, SCRATCH_FUTEX, &current, active_buffer());
#else
	look_at_holder(ctx, owner, &current.process);
#endif
}

/* A wait is over and its thread runs again: its row, without the stack of who waited. False when it was none. */
static __always_inline bool end_futex_wait(u32 tid, struct lock_wait *row, struct lock_counts *counts)
{
	u64 now_ns = bpf_ktime_get_ns();
	struct futex_wait *wait = futex_waits.lookup(&tid);
	int zero = 0;
	struct lock_settings *setting = lock_settings.lookup(&zero);

	if (!wait || !setting)
		return false;
	if (wait->start_ns < setting->on_since_ns) {
		futex_waits.delete(&tid);
		counts->unpaired++;
		return false;
	}
	counts->waits++;
	__builtin_memset(row, 0, sizeof(*row));
	owe_row(&row->buffer, counts);
	row->ns = now_ns > wait->start_ns ? now_ns - wait->start_ns : 0;
	row->key.own = wait->own;
	row->key.lock = wait->lock;
	row->key.type = wait->type;
	if (wait->buffer != row->buffer) {
		wait->holder.side.user_stack = wait->holder.side.user_error = 0;
		row->key.own.user_stack = row->key.own.kernel_stack = 0;
	}
	give_latest_stack(&wait->holder, wait->start_ns);
	row->key.holder = wait->holder.side;
	futex_waits.delete(&tid);
	return true;
}

/* Hook: raw tracepoint sched_switch(preempt, prev, next, ...). */
int on_lock_switch(struct bpf_raw_tracepoint_args *ctx)
{
	int zero = 0;
	struct lock_counts *counts = lock_counts.lookup(&zero);

	if (!counts)
		return 0;
#if STACK_AS_IT_LEAVES
	{
		struct task_struct *next = (struct task_struct *)ctx->args[2];
		struct lock_wait *row = futex_row.lookup(&zero);
		u64 call = 0;
		u32 tid = 0;

		bpf_probe_read_kernel(&call, sizeof(call), &registers_of(next)->orig_ax);
		if (row && is_futex_wait(call)) {
			bpf_probe_read_kernel(&tid, sizeof(tid), &next->pid);
			if (end_futex_wait(tid, row, counts))
				put_lock_row(row, counts);
		}
	}
#endif
	if (!is_runnable_still(ctx))
		begin_futex_wait(ctx, counts);
	return 0;
}

/* Hook: raw tracepoint sched_exit_tp: the thread that came back is current. */
int on_lock_return(struct bpf_raw_tracepoint_args *ctx)
{
#if !STACK_AS_IT_LEAVES
	int zero = 0;
	struct lock_counts *counts = lock_counts.lookup(&zero);
	struct lock_settings *setting = lock_settings.lookup(&zero);
	struct lock_wait *row = futex_row.lookup(&zero);
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct current_task current = {};
	u64 call = 0, pid_tid;

	bpf_probe_read_kernel(&call, sizeof(call), &registers_of(task)->orig_ax);
	if (!is_futex_wait(call) || !counts || !setting || !row)
		return 0;
	pid_tid = bpf_get_current_pid_tgid();
	if (!end_futex_wait(pid_tid, row, counts))
		return 0;
	if (row->ns >= setting->stack_ns) {
		read_current_task(&current, pid_tid >> 32);
		signal_once(&current.process);
		walk_event(ctx, SCRATCH_FUTEX, &current, row->buffer);
	}
	put_lock_row(row, counts);
#endif
	return 0;
}

/* Finisher of SCRATCH_FUTEX. */
int on_futex_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_FUTEX;
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
#if STACK_AS_IT_LEAVES
	u32 tid = bpf_get_current_pid_tgid();
	struct futex_wait *wait = futex_waits.lookup(&tid);
	struct process_key process;

	if (!walk)
		return 0;
	process = walk->process;
	end_walk(walk);
	if (wait) {
		take_lock_stacks(&wait->own, walk);
		if (wait->holder.tid)
			look_at_holder(ctx, thread_of_process(wait->owner_tid), &process);
	}
#else
	struct lock_wait *row = futex_row.lookup(&zero);
	struct lock_counts *counts = lock_counts.lookup(&zero);

	if (!walk || !row || !counts)
		return 0;
	take_lock_stacks(&row->key.own, walk);
	put_lock_row(row, counts);
	end_walk(walk);
#endif
	return 0;
}

/* Finisher of SCRATCH_HOLDER: the wait that it is of is that of the current thread. */
int on_holder_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_HOLDER, tid = bpf_get_current_pid_tgid();
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct futex_wait *wait = futex_waits.lookup(&tid);

	if (!walk)
		return 0;
	if (wait) {
		wait->holder.side.user_stack = walk->user_stack;
		wait->holder.side.user_error = walk->user_error;
		wait->buffer = walk->buffer;
	}
	end_walk(walk);
	return 0;
}

#endif
