// SPDX-License-Identifier: GPL-2.0
/* Who uses the CPUs: samples by process, thread name, user stack and kernel stack.
 * Hook: perf event, software cpu-clock, one per CPU (on_tick); for process trees raw tracepoint sched_process_fork (on_fork).
 * State: two buffers of counts and stacks, counters of ticks per CPU and buffer, processes seen; all bounded, see below.
 * Needs: Linux 5.10. Cost: two stack walks and four map operations per tick; see bpf/README.md for the measured figure. */
#include "shared/process.h"
#include "shared/window.h"
#include "shared/limit.h"
#include "shared/stack.h"

enum {
	SEEN_ENTRIES = 16384,
	NEW_PROCESSES_PAGES = 16,
	ERROR_TOO_BIG = -7,
	USER_MODE_MASK = 3, /* privilege level in the code segment selector */
};

/* As CPU_KEY in agent/records/drain.py: 56 bytes, no holes. */
struct cpu_key {
	u64 start_boot_ns;
	u64 user_stack;
	u64 kernel_stack;
	u32 pid;
	u32 exec_id;
	s16 user_error;
	s16 kernel_error;
	u32 is_kernel_thread;
	char comm[16];
};

/* As TICK_COUNTS in agent/profilers/ticks.py. Of all ticks: seen = stored + idle + filtered + map_full + map_busy. */
struct tick_counts {
	u64 first_ns;
	u64 last_ns;
	u64 stored;
	u64 idle;
	u64 filtered;
	u64 map_full;
	u64 map_busy;
	u64 stack_map_full; /* stacks, not ticks: a tick may lose two */
	u64 seen_full;	    /* processes not signalled */
};

/* Shapes of the inner maps; the real ones are made by the collector, as large as it needs. When counts are full the tick is
 * counted as map_full; when stacks are full the sample is kept without its stack. */
BPF_HASH(counts_shape, struct cpu_key, u64, 1);
BPF_ARRAY_OF_MAPS(counts, "counts_shape", BUFFERS);
BPF_HASH(stacks_shape, u64, struct stack, 1);
BPF_ARRAY_OF_MAPS(stacks, "stacks_shape", BUFFERS);

/* Key: buffer. */
BPF_PERCPU_ARRAY(ticks, struct tick_counts, BUFFERS);

/* Processes that were signalled. Bound: SEEN_ENTRIES; when full they are not signalled and counted. The collector empties it. */
BPF_HASH(seen, struct process_key, u64, SEEN_ENTRIES);

/* Records: struct process_key, at first sight. When full they are lost; the process is found at the end of the window. */
BPF_RINGBUF_OUTPUT(new_processes, NEW_PROCESSES_PAGES);

static __always_inline bool is_user_mode(struct bpf_perf_event_data *ctx)
{
#ifdef EMBERWATCH_REGS_CSX
	return (ctx->regs.csx & USER_MODE_MASK) != 0;
#else
	return (ctx->regs.cs & USER_MODE_MASK) != 0;
#endif
}

static __always_inline void signal_once(struct process_key *process, struct tick_counts *tick)
{
	u64 yes = 1;
	int refusal;

	if (seen.lookup(process))
		return;
	refusal = seen.insert(process, &yes);
	if (!refusal)
		new_processes.ringbuf_output(process, sizeof(*process), 0);
	else if (refusal != ERROR_EXISTS)
		tick->seen_full++;
}

static __always_inline void count(void *inner, struct cpu_key *key, struct tick_counts *tick)
{
	u64 one = 1;
	u64 *samples = bpf_map_lookup_elem(inner, key);
	int refusal = 0;

	if (!samples) {
		refusal = bpf_map_update_elem(inner, key, &one, BPF_NOEXIST);
		if (refusal == ERROR_EXISTS) /* another CPU was first */
			samples = bpf_map_lookup_elem(inner, key);
	}
	if (samples)
		__sync_fetch_and_add(samples, 1);
	if (samples || !refusal)
		tick->stored++;
	else if (refusal == ERROR_TOO_BIG)
		tick->map_full++;
	else
		tick->map_busy++;
}

static __always_inline void walk(struct bpf_perf_event_data *ctx, void *inner, u64 seed, struct cpu_key *key,
				 struct tick_counts *tick)
{
	if (!key->is_kernel_thread)
		key->user_stack = store_stack(ctx, BPF_F_USER_STACK, inner, seed, &key->user_error);
	if (!is_user_mode(ctx))
		key->kernel_stack = store_stack(ctx, 0, inner, seed, &key->kernel_error);
	tick->stack_map_full += (key->user_error == STACK_MAP_FULL) + (key->kernel_error == STACK_MAP_FULL);
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, int buffer, struct tick_counts *tick, u32 pid)
{
	struct current_task current = {};
	struct cpu_key key = {};
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);
	void *counts_inner = counts.lookup(&buffer);
	void *stacks_inner = stacks.lookup(&buffer);

	read_current_task(&current, pid);
	if (!setting || !counts_inner || !stacks_inner) {
		tick->map_busy++;
		return;
	}
	if (setting->limits && !is_wanted(&current.process, setting->limits)) {
		tick->filtered++;
		return;
	}
	if (!current.is_kernel_thread)
		signal_once(&current.process, tick);
	key.start_boot_ns = current.process.start_boot_ns;
	key.pid = current.process.pid;
	key.exec_id = current.process.exec_id;
	key.is_kernel_thread = current.is_kernel_thread;
	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	walk(ctx, stacks_inner, setting->stack_seed, &key, tick);
	count(counts_inner, &key, tick);
}

int on_tick(struct bpf_perf_event_data *ctx)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 pid = bpf_get_current_pid_tgid() >> 32;
	int buffer = active_buffer();
	struct tick_counts *tick = ticks.lookup(&buffer);

	if (!tick)
		return 0;
	if (!tick->first_ns)
		tick->first_ns = now_ns;
	tick->last_ns = now_ns;
	if (!pid)
		tick->idle++;
	else
		sample(ctx, buffer, tick, pid);
	return 0;
}
