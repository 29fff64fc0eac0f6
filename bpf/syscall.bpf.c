// SPDX-License-Identifier: GPL-2.0
/* Which system calls a process makes, how long they take, how they fail and who makes the long ones: sums and log2 buckets by process,
 * call and error, and now and then a stack.
 * Hook: raw tracepoints sys_enter (on_call, the start) and sys_exit (on_return; when the stack was walked on_call_stack goes on).
 * State: a start per thread in a call; per CPU and buffer a cache of sums, and a map of what found no room in it; stacks by call; all
 * bounded, see below.
 * Needs: Linux 5.10. Cost: no map operation that hashes while a call stays in the cache; see bpf/README.md for the measured figure. */
#include "shared/calls.h"
#include "shared/call_stacks.h"

enum {
	START_ENTRIES = 65536,
	CROWDED_ENTRIES = 4096,
	MOST_ERROR = 4095, /* MAX_ERRNO, include/linux/err.h */
	NUMBER_CLONE = 56,
	NUMBER_VFORK = 58,
	NUMBER_EXIT = 60,
	NUMBER_EXIT_GROUP = 231,
	NUMBER_CLONE3 = 435, /* in both tables */
	COMPAT_EXIT = 1,
	COMPAT_FORK = 2,
	COMPAT_CLONE = 120,
	COMPAT_VFORK = 190,
	COMPAT_EXIT_GROUP = 252,
};

struct call_start {
	u64 start_ns;
	u32 tid; /* 0: the place is free */
	u32 call;
};

/* Key: tid & place_mask. Threads that find their place taken go to `crowded`; when that is full too the call is not measured (starts_full).
 * The collector removes starts whose end it did not look for.
 * Two threads that take a place at once leave the tid of one and a start that is some nanoseconds off. */
BPF_ARRAY(starts, struct call_start, START_ENTRIES);
BPF_HASH(crowded, u32, struct call_start, CROWDED_ENTRIES);

static __always_inline u32 is_compat(struct task_struct *task)
{
	return is_in_32_bit_call(task) ? CALL_COMPAT : 0;
}

/* Calls that never return. */
static __always_inline bool is_last(u32 call)
{
	return call == NUMBER_EXIT || call == NUMBER_EXIT_GROUP || call == (CALL_COMPAT | COMPAT_EXIT) ||
	       call == (CALL_COMPAT | COMPAT_EXIT_GROUP);
}

/* The new thread returns from the call its parent made. */
static __always_inline bool is_birth(u32 call)
{
	u32 number = call & NUMBER_MASK;

	if (number == NUMBER_CLONE3)
		return true;
	if (call & CALL_COMPAT)
		return number == COMPAT_FORK || number == COMPAT_CLONE || number == COMPAT_VFORK;
	return number >= NUMBER_CLONE && number <= NUMBER_VFORK;
}

static __always_inline u32 call_of_registers(struct bpf_raw_tracepoint_args *ctx, struct task_struct *task)
{
#if defined(EMBERWATCH_TYPED_TASK) && defined(EMBERWATCH_TASK_PT_REGS)
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 number = load_u64(&regs->orig_ax);
#else
	struct pt_regs *regs = (struct pt_regs *)ctx->args[0];
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
#endif
	return (number & NUMBER_MASK) | is_compat(task);
}

/* When the call of this thread began, and which it is; 0 when it is not known. */
static __always_inline u64 take_start(u32 tid, struct call_settings *setting, u32 *call)
{
	u32 place = tid & setting->place_mask;
	struct call_start *start = starts.lookup(&place);
	u64 start_ns;

	if (!start)
		return 0;
	if (start->tid == tid) {
		start_ns = start->start_ns;
		*call = start->call;
		start->tid = 0;
	} else {
		if (setting->is_counting)
			return 0;
		start = crowded.lookup(&tid);
		if (!start)
			return 0;
		start_ns = start->start_ns;
		*call = start->call;
		crowded.delete(&tid);
	}
	return start_ns < setting->since_ns ? 0 : start_ns;
}

static __always_inline void count_untimed(void)
{
	int buffer = active_buffer();
	struct call_counts *counts = call_counts.lookup(&buffer);

	if (counts)
		counts->starts_full++;
}

/* Hook: raw tracepoint sys_enter(regs, number). */
int on_call(struct bpf_raw_tracepoint_args *ctx)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct task_struct *task = running_task();
	u32 call = (ctx->args[1] & NUMBER_MASK) | is_compat(task);
	int zero = 0;
	struct call_settings *setting = call_settings.lookup(&zero);
	struct call_start *start, fresh = {};
	u32 place;

	if (!setting || is_last(call))
		return 0;
	place = tid & setting->place_mask;
	start = starts.lookup(&place);
	if (!start)
		return 0;
	if (start->tid && start->tid != tid) {
		if (setting->is_counting)
			return 0;
		fresh.tid = tid;
		fresh.call = call;
		fresh.start_ns = bpf_ktime_get_ns();
		if (crowded.update(&tid, &fresh))
			count_untimed();
		return 0;
	}
	start->tid = tid;
	start->call = call;
	start->start_ns = bpf_ktime_get_ns();
	return 0;
}

/* Hook: raw tracepoint sys_exit(regs, return value). */
int on_return(struct bpf_raw_tracepoint_args *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct task_struct *task = running_task();
	s64 value = ctx->args[1];
	int zero = 0, buffer = active_buffer();
	struct call_settings *setting = call_settings.lookup(&zero);
	struct settings *limiting = settings.lookup(&zero);
	struct call_counts *counts = call_counts.lookup(&buffer);
	struct current_task current = {};
	struct call_key key = {};
	struct call_slot *slot;
	u64 start_ns, ns;

	if (!setting || !limiting || !counts)
		return 0;
	start_ns = take_start(id, setting, &key.call);
	if (!start_ns) {
		key.call = call_of_registers(ctx, task);
		if (!value && is_birth(key.call))
			return 0;
	}
	if (value < 0 && value >= -MOST_ERROR)
		key.call |= (u32)-value << ERROR_SHIFT;
	counts->seen++;
	read_current_task(&current, id >> 32);
	key.start_boot_ns = current.process.start_boot_ns;
	key.pid = current.process.pid;
	key.exec_id = current.process.exec_id;
	if (limiting->limits && !is_wanted(&current.process, limiting->limits)) {
		counts->filtered++;
		return 0;
	}
	slot = find_call_slot(counts, &key, &current.process, buffer);
	if (!slot) {
		counts->map_busy++;
		return 0;
	}
	slot->sums.count++;
	if (!start_ns) {
		slot->sums.unmeasured++;
		return 0;
	}
	ns = bpf_ktime_get_ns() - start_ns;
	add_time(&slot->sums, ns);
	sample_call(ctx, setting, counts, &key, ns);
	return 0;
}

/* The finisher of SCRATCH_SYSCALL. What the kernel does at the end of a call is the same for all: only the user part is kept. */
int on_call_stack(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_SYSCALL;
	int zero = 0, buffer;
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct pending_call *pending = pending_calls.lookup(&zero);
	struct call_counts *counts;

	if (!walk || !pending)
		return 0;
	buffer = walk->buffer;
	counts = call_counts.lookup(&buffer);
	if (keep_call_stack(walk, pending) && counts)
		counts->stacks_lost += pending->sums.count;
	end_walk(walk);
	return 0;
}
