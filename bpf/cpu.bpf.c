// SPDX-License-Identifier: GPL-2.0
/* Who uses the CPUs: samples by process, thread name, user stack and kernel stack.
 * Hook: perf event, software cpu-clock, one per CPU (on_tick, which goes on as on_tick_unwind when the process has unwind tables).
 * State: two buffers of counts and stacks, counters of ticks per CPU and buffer, processes seen; all bounded, see below.
 * Needs: Linux 5.10. Cost: two stack walks and four map operations per tick; see bpf/README.md for the measured figure. */
#include "shared/process.h"
#include "shared/window.h"
#include "shared/limit.h"
#include "shared/sight.h"
#include "shared/births.h"
#include "shared/latest.h"
#include "shared/stack.h"
#include "shared/home.h"
#include "shared/registers.h"
#include "shared/unwind_begin.h"
#include "shared/look.h"

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

/* Shape of the inner maps; the real ones are made by the collector, as large as it needs. When they are full the tick is counted
 * as map_full. */
BPF_HASH(counts_shape, struct cpu_key, u64, 1);
BPF_ARRAY_OF_MAPS(counts, "counts_shape", BUFFERS);

/* Key: buffer. */
BPF_PERCPU_ARRAY(ticks, struct tick_counts, BUFFERS);

/* The sample under way, for the program that goes on with it. */
struct pending {
	struct cpu_key key;
	u32 buffer;
	u32 padding;
};

/* Key: 0. */
BPF_PERCPU_ARRAY(pending, struct pending, 1);

/* Key: enum walker. Filled by the collector, which holds it: it empties when its last descriptor closes. */
BPF_PROG_ARRAY(unwinders, WALKERS);

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

static __always_inline void process_of(struct process_key *process, struct cpu_key *key)
{
	process->start_boot_ns = key->start_boot_ns;
	process->pid = key->pid;
	process->exec_id = key->exec_id;
}

/* The stack is as it is: count the sample. */
static __always_inline void store(struct pending *sample, struct tick_counts *tick)
{
	int buffer = sample->buffer;
	void *counts_inner = counts.lookup(&buffer);
	struct process_key process = {};

	tick->stack_map_full += (sample->key.user_error == STACK_MAP_FULL) + (sample->key.kernel_error == STACK_MAP_FULL);
	if (counts_inner)
		count(counts_inner, &sample->key, tick);
	else
		tick->map_busy++;
	process_of(&process, &sample->key);
	keep_latest(&process, sample->key.user_stack, sample->key.kernel_stack, buffer);
}

/* Begin a walk at the registers of `ctx`, or at those of user space when the CPU is in the kernel. False when it cannot be. */
static __always_inline bool begin_at_registers(struct bpf_perf_event_data *ctx, struct process_key *process, u32 how, u64 code_segment)
{
	struct unwinding *at = begin_unwinding(SCRATCH_TICK, process, how);

	if (!at)
		return false;
	if (is_user_mode(code_segment)) {
		at->ip = ctx->regs.ip;
		at->sp = ctx->regs.sp;
		at->bp = ctx->regs.bp;
		at->ax = ctx->regs.ax;
		at->r10 = ctx->regs.r10;
		at->r11 = ctx->regs.r11;
	} else {
		saved_registers(at, &code_segment);
	}
	return is_64_bit(code_segment);
}

/* Kernel part, then user part if there is any; the latter may end in on_tick_unwind, and then this does not return. */
static __always_inline void walk(struct bpf_perf_event_data *ctx, struct pending *sample, struct stack_home *home,
				 struct current_task *current, u32 how)
{
	struct cpu_key *key = &sample->key;
	u64 code_segment = code_segment_of(ctx);

	if (!is_user_mode(code_segment))
		key->kernel_stack = store_stack(ctx, 0, STOP_NONE, home, &key->kernel_error);
	if (!current->has_memory)
		return;
	if (how && begin_at_registers(ctx, &current->process, how, code_segment))
		unwinders.call(ctx, WALKER_UNWIND);
	key->user_stack = store_stack(ctx, BPF_F_USER_STACK, STOP_NO_TABLE, home, &key->user_error);
}

static __always_inline void begin_sample(struct pending *sample, struct current_task *current, int buffer)
{
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->buffer = buffer;
	sample->key.start_boot_ns = current->process.start_boot_ns;
	sample->key.pid = current->process.pid;
	sample->key.exec_id = current->process.exec_id;
	sample->key.is_kernel_thread = current->is_kernel_thread;
	bpf_get_current_comm(&sample->key.comm, sizeof(sample->key.comm));
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, int buffer, struct tick_counts *tick, u32 pid)
{
	struct current_task current = {};
	struct stack_home home = {};
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);
	struct pending *sample = pending.lookup(&zero);

	read_current_task(&current, pid);
	if (!setting || !sample || !find_home(&home, buffer, SCRATCH_TICK)) {
		tick->map_busy++;
		return;
	}
	if (setting->limits && !is_wanted(&current.process, setting->limits)) {
		tick->filtered++;
		return;
	}
	if (!current.is_kernel_thread)
		tick->seen_full += !signal_once(&current.process);
	begin_sample(sample, &current, buffer);
	walk(ctx, sample, &home, &current, setting->is_unwinding);
	store(sample, tick);
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

/* The sample that goes on in a program entered by a tail call. */
struct sample_under_way {
	struct pending *sample;
	struct unwinding *at;
	struct stack *stack;
	struct tick_counts *tick;
};

static __always_inline bool find_sample(struct sample_under_way *found)
{
	int zero = 0, buffer;
	u32 scratch = SCRATCH_TICK;

	found->sample = pending.lookup(&zero);
	found->at = unwinding.lookup(&scratch);
	found->stack = walked.lookup(&scratch);
	if (!found->sample || !found->at || !found->stack)
		return false;
	buffer = found->sample->buffer;
	found->tick = ticks.lookup(&buffer);
	return found->tick;
}

/* Walks the user stack of the pending sample on, and counts the sample when it has ended. Entered from on_tick, itself, and on_tick_look. */
int on_tick_unwind(struct bpf_perf_event_data *ctx)
{
	struct sample_under_way on = {};
	struct stack_home home = {};
	struct process_key process = {};
	u32 stop;

	if (!find_sample(&on))
		return 0;
	stop = walk_frames(on.at, on.stack, 0);
	if (stop == STOP_LOOK) {
		unwinders.call(ctx, WALKER_LOOK);
		stop = STOP_NO_MAPPING;
	} else if (!stop) {
		unwinders.call(ctx, WALKER_UNWIND);
		stop = STOP_CAP; /* more calls than the kernel allows */
	}
	if (!find_home(&home, on.sample->buffer, SCRATCH_TICK))
		return 0;
	process_of(&process, &on.sample->key);
	on.sample->key.user_stack = end_unwinding(on.at, on.stack, stop, &process, &home, &on.sample->key.user_error);
	store(on.sample, on.tick);
	return 0;
}

#ifdef EMBERWATCH_MAPLE_TREE

/* Looks up code that on_tick_unwind does not know, and goes on there; where nothing of a process is known, its stack is the kernel's. */
int on_tick_look(struct bpf_perf_event_data *ctx)
{
	struct sample_under_way on = {};
	struct stack_home home = {};

	if (!find_sample(&on))
		return 0;
	if (look_for_frame(on.at, on.stack))
		unwinders.call(ctx, WALKER_UNWIND);
	if (!find_home(&home, on.sample->buffer, SCRATCH_TICK))
		return 0;
	on.sample->key.user_stack = store_stack(ctx, BPF_F_USER_STACK, STOP_NO_TABLE, &home, &on.sample->key.user_error);
	store(on.sample, on.tick);
	return 0;
}

#endif
