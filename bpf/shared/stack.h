// SPDX-License-Identifier: GPL-2.0
/* Stacks by hash of their addresses, in a hash map of our own: BPF's map type for stacks throws one away whose slot is taken. */
#ifndef EMBERWATCH_STACK_H
#define EMBERWATCH_STACK_H

#include "shared/scratch.h"
#include "shared/sight.h"

enum {
	STACK_FRAMES = 127, /* PERF_MAX_STACK_DEPTH: the kernel walks no further */
	STACK_MAP_FULL = -1000,
};

/* Why a walk ended, as StackStop in agent/records/drain.py. All but BOTTOM are incomplete stacks; NONE says nothing. */
enum stack_stop {
	STOP_NONE,
	STOP_BOTTOM,
	STOP_CAP,
	STOP_NO_MAPPING,
	STOP_NO_ROW,
	STOP_UNSUPPORTED,
	STOP_UNREADABLE,
	STOP_ZERO_RETURN,
	STOP_NOT_GROWING,
	STOP_NO_TABLE,
};

struct stack {
	u32 length; /* frames; what lies behind them in `addresses` is left from others */
	u32 stop;   /* enum stack_stop */
	u64 addresses[STACK_FRAMES];
};

/* A stack as the value of an inner map. Up to 6.2 the kernel takes no map for an inner one that was made without BTF, as the collector's
 * are, when the shape's BTF says struct: bpf_map_meta_equal() compares where a timer lies, and there are two ways to have none. */
typedef u64 stack_words[sizeof(struct stack) / sizeof(u64)];

/* Key: enum scratch. The stack being walked. */
BPF_PERCPU_ARRAY(walked, struct stack, SCRATCHES);

/* A word at a time; odd multiplier of 2^64 / golden ratio, its high bits folded back so that every bit of an address counts. */
static __always_inline u64 hash_of(struct stack *stack, u64 seed)
{
	u64 hash = seed ^ stack->length ^ (u64)stack->stop << 32;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < STACK_FRAMES; i++) {
		u32 frame = i;

		/* Out of the compiler's sight: it would count down and move a pointer, which the verifier of 6.1 cannot bound. */
		asm volatile("" : "+r"(frame));
		if (frame >= STACK_FRAMES || frame >= stack->length)
			break;
		hash = (hash ^ stack->addresses[frame]) * 0x9E3779B97F4A7C15ULL;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

/* Where stacks are kept: a map of hash to struct stack, the seed of its hashes; and whose scratch memory they are walked in. */
struct stack_home {
	void *stacks;
	u64 seed;
	u32 scratch;
	u32 padding;
};

/* Keep a stack. Returns its hash; 0 and *error = STACK_MAP_FULL when it is lost. */
static __always_inline u64 keep_stack(struct stack *stack, struct stack_home *home, s16 *error)
{
	u64 hash = hash_of(stack, home->seed);
	int refusal;

	if (bpf_map_lookup_elem(home->stacks, &hash))
		return hash;
	refusal = bpf_map_update_elem(home->stacks, &hash, stack, BPF_NOEXIST);
	if (!refusal || refusal == ERROR_EXISTS)
		return hash;
	*error = STACK_MAP_FULL;
	return 0;
}

/* Have the kernel walk a stack by frame pointers, and keep it with `stop`. Returns its hash; 0 when it has no frames or is lost,
 * and then *error tells which: what bpf_get_stack answered, or STACK_MAP_FULL. */
static __always_inline u64 store_stack(void *ctx, u64 flags, u32 stop, struct stack_home *home, s16 *error)
{
	u32 scratch = home->scratch;
	struct stack *stack = walked.lookup(&scratch);
	long bytes;

	if (!stack)
		return 0;
	bytes = bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses), flags);
	if (bytes <= 0) {
		*error = bytes;
		return 0;
	}
	stack->length = (u64)bytes / sizeof(u64);
	stack->stop = stop;
	return keep_stack(stack, home, error);
}

#endif
