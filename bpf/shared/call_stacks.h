// SPDX-License-Identifier: GPL-2.0
/* Stacks of system calls, sampled by the time that calls take. */
#ifndef EMBERWATCH_CALL_STACKS_H
#define EMBERWATCH_CALL_STACKS_H

#include "shared/events.h"
#include "shared/calls.h"

enum { WAITING_WORDS = 1024 }; /* CALL_COMPAT | NUMBER_MASK, in bits */

struct call_settings {
	u64 since_ns;	/* starts before it are not believed: their return was not seen */
	u64 stack_period_ns; /* one stack for so much time in calls, on each CPU; 0: none */
	u32 place_mask;	     /* of tids, to a place in `starts` */
	u32 most_stacks;     /* of one CPU in one window */
	u32 is_counting;     /* times are taken of a few calls only: not of those that find their place taken */
	u32 padding;
};

/* Key: 0. */
BPF_ARRAY(call_settings, struct call_settings, 1);

/* Key: (CALL_COMPAT | number) / 64. Bits of calls that wait for something to happen: no stacks of them, off-CPU profiles have these. */
BPF_ARRAY(waiting_calls, u64, WAITING_WORDS);

/* Key: 0. Time in calls since the last stack of this CPU. */
BPF_PERCPU_ARRAY(call_debts, u64, 1);

/* As CALL_STACK_KEY in agent/profilers/syscall_stacks.py. */
struct call_stack_key {
	u64 start_boot_ns;
	u64 user_stack;
	u32 pid;
	u32 exec_id;
	u32 call; /* without its error */
	s16 user_error;
	u16 padding;
};

/* As CALL_STACK_SUMS there. */
struct call_stack_sums {
	u64 count;
	u64 ns;
	u64 observed;
};

typedef u64 call_stack_words[sizeof(struct call_stack_sums) / sizeof(u64)];

/* Made by the collector; when full the calls a stack stands for are counted as stacks_lost. */
BPF_HASH(call_stacks_shape, struct call_stack_key, call_stack_words, 1);
BPF_ARRAY_OF_MAPS(call_stacks, "call_stacks_shape", BUFFERS);

/* The call whose stack is walked. */
struct pending_call {
	struct call_stack_sums sums;
	u32 call;
	u32 padding;
};

/* Key: 0. */
BPF_PERCPU_ARRAY(pending_calls, struct pending_call, 1);

static __always_inline bool is_waiting(u32 call)
{
	u32 word = (call & (CALL_COMPAT | NUMBER_MASK)) >> 6;
	u64 *bits = waiting_calls.lookup(&word);

	return bits && *bits >> (call & 63) & 1;
}

/* Take a stack whenever another period of time in calls is full: each call with the chance that its time has in a period, or surely when
 * it is longer. It then stands for the periods that were filled, and for as many calls of its length as fill them. */
static __always_inline void sample_call(struct bpf_raw_tracepoint_args *ctx, struct call_settings *setting, struct call_counts *counts,
					struct call_key *key, u64 ns)
{
	int zero = 0;
	u64 period_ns = setting->stack_period_ns, *debt_ns = call_debts.lookup(&zero);
	struct pending_call *pending = pending_calls.lookup(&zero);
	struct current_task current = {};

	if (!period_ns || !debt_ns || !pending || is_waiting(key->call))
		return;
	*debt_ns += ns;
	if (*debt_ns < period_ns)
		return;
	pending->sums.ns = *debt_ns / period_ns * period_ns;
	*debt_ns -= pending->sums.ns;
	pending->sums.count = ns >= period_ns ? 1 : (pending->sums.ns + ns / 2) / ns;
	pending->sums.observed = 1;
	pending->call = key->call & (CALL_COMPAT | NUMBER_MASK);
	if (counts->stacks_taken < setting->most_stacks) {
		counts->stacks_taken++;
		read_current_task(&current, key->pid);
		walk_event(ctx, SCRATCH_SYSCALL, &current, active_buffer());
	}
	counts->stacks_lost += pending->sums.count; /* too many, or no walk began */
}

static __always_inline int keep_call_stack(struct event_walk *walk, struct pending_call *pending)
{
	struct call_stack_key key = {};
	int buffer = walk->buffer;
	void *inner = call_stacks.lookup(&buffer);
	struct call_stack_sums *sums;
	int refusal;

	if (!inner)
		return ERROR_TOO_BIG;
	key.start_boot_ns = walk->process.start_boot_ns;
	key.pid = walk->process.pid;
	key.exec_id = walk->process.exec_id;
	key.user_stack = walk->user_stack;
	key.user_error = walk->user_error;
	key.call = pending->call;
	sums = bpf_map_lookup_elem(inner, &key);
	if (!sums) {
		refusal = bpf_map_update_elem(inner, &key, &pending->sums, BPF_NOEXIST);
		if (refusal != ERROR_EXISTS)
			return refusal;
		sums = bpf_map_lookup_elem(inner, &key); /* another CPU was first */
		if (!sums)
			return ERROR_TOO_BIG;
	}
	__sync_fetch_and_add(&sums->count, pending->sums.count);
	__sync_fetch_and_add(&sums->ns, pending->sums.ns);
	__sync_fetch_and_add(&sums->observed, 1);
	return 0;
}

#endif
