// SPDX-License-Identifier: GPL-2.0
/* Sums of system calls: a cache on each CPU, and a map for what does not stay there. */
#ifndef EMBERWATCH_CALLS_H
#define EMBERWATCH_CALLS_H

#include "shared/sight.h"
#include "shared/window.h"
#include "shared/buckets.h"

enum {
	CACHE_SETS = 64,
	CACHE_WAYS = 2,
	CACHE_SLOTS = CACHE_SETS * CACHE_WAYS,
	NUMBER_MASK = 0x7fff,
	CALL_COMPAT = 0x8000, /* by a 32-bit caller: numbers of another table */
	ERROR_SHIFT = 16,
};

/* As CALL_KEY in agent/profilers/syscall_rows.py. */
struct call_key {
	u64 start_boot_ns;
	u32 pid;
	u32 exec_id;
	u32 call; /* error << 16 | CALL_COMPAT | number */
	u32 cpu;
};

/* As CALL_SUMS there. The buckets add up to count - unmeasured. */
struct call_sums {
	u64 count;
	u64 ns;
	u64 max_ns;
	u64 unmeasured; /* calls whose start is not known */
	u32 buckets[BUCKETS_OF_TIME];
};

/* As CALL_SLOT there. */
struct call_slot {
	struct call_key key;
	struct call_sums sums;
};

/* As CALL_CACHE there. */
struct call_cache {
	struct call_slot slots[CACHE_SLOTS];
};

/* As CALL_COUNTS there. Of all returns: seen = in slots + spilled + filtered + map_full + map_busy. */
struct call_counts {
	u64 seen;
	u64 filtered;
	u64 map_full;
	u64 map_busy;
	u64 seen_full; /* processes not signalled */
	u64 stacks_taken;
	u64 stacks_lost; /* calls that stacks were to stand for, and none could be kept */
	u64 starts_full; /* calls that are not timed, for want of room */
};

/* Key: buffer. Sums of the calls this CPU made most, two places for each hash of a key. The one counted less gives way, to `spilled`.
 * A handler of one CPU is not interrupted by another of its kind, so that nothing here is atomic. */
BPF_PERCPU_ARRAY(caches, struct call_cache, BUFFERS);

/* Key: buffer. */
BPF_PERCPU_ARRAY(call_counts, struct call_counts, BUFFERS);

/* As the value of an inner map it is words, see stack_words in stack.h. */
typedef u64 call_words[sizeof(struct call_sums) / sizeof(u64)];

/* Key: with the CPU, for the same reason. Made by the collector; when full the calls of a slot are counted as map_full. */
BPF_HASH(spilled_shape, struct call_key, call_words, 1);
BPF_ARRAY_OF_MAPS(spilled, "spilled_shape", BUFFERS);

static __always_inline void add_sums(struct call_sums *to, struct call_sums *sums)
{
	to->count += sums->count;
	to->ns += sums->ns;
	to->unmeasured += sums->unmeasured;
	if (to->max_ns < sums->max_ns)
		to->max_ns = sums->max_ns;
#pragma clang loop unroll(disable)
	for (u32 bucket = 0; bucket < BUCKETS_OF_TIME; bucket++)
		to->buckets[bucket] += sums->buckets[bucket];
}

/* Make a slot free for another key. */
static __always_inline void spill_slot(struct call_counts *counts, struct call_slot *slot, int buffer)
{
	void *inner = spilled.lookup(&buffer);
	struct call_sums *sums;
	int refusal = 0;

	if (!inner) {
		counts->map_busy += slot->sums.count;
		return;
	}
	sums = bpf_map_lookup_elem(inner, &slot->key);
	if (sums)
		add_sums(sums, &slot->sums);
	else
		refusal = bpf_map_update_elem(inner, &slot->key, &slot->sums, BPF_NOEXIST);
	if (refusal == ERROR_TOO_BIG)
		counts->map_full += slot->sums.count;
	else if (refusal)
		counts->map_busy += slot->sums.count;
}

static __always_inline bool is_slot_of(struct call_slot *slot, struct call_key *key)
{
	return slot->key.call == key->call && slot->key.pid == key->pid && slot->key.start_boot_ns == key->start_boot_ns &&
	       slot->key.exec_id == key->exec_id;
}

static __always_inline struct call_slot *find_call_slot(struct call_counts *counts, struct call_key *key,
							struct process_key *process, int buffer)
{
	u32 hash = (key->pid * 0x9E3779B1 ^ key->call) * 0x85EBCA6B;
	u32 set = hash >> 26 & (CACHE_SETS - 1);
	struct call_cache *cache = caches.lookup(&buffer);
	struct call_slot *first, *second;

	if (!cache)
		return 0;
	first = &cache->slots[set * CACHE_WAYS];
	second = first + 1;

	if (is_slot_of(first, key))
		return first;
	if (is_slot_of(second, key))
		return second;
	if (second->sums.count < first->sums.count)
		first = second;
	if (first->sums.count)
		spill_slot(counts, first, buffer);
	if (!signal_once(process))
		counts->seen_full++;
	__builtin_memset(&first->sums, 0, sizeof(first->sums));
	key->cpu = bpf_get_smp_processor_id();
	first->key = *key;
	return first;
}

static __always_inline void add_time(struct call_sums *sums, u64 ns)
{
	sums->ns += ns;
	if (sums->max_ns < ns)
		sums->max_ns = ns;
	sums->buckets[bucket_of_ns(ns)]++;
}

#endif
