// SPDX-License-Identifier: GPL-2.0
/* Stacks of connect: who calls whom, and from where. */
#ifndef EMBERWATCH_TCP_CONNECTS_H
#define EMBERWATCH_TCP_CONNECTS_H

#include "shared/events.h"
#include "shared/tcp_sessions.h"

/* As CONNECT_KEY in agent/profilers/tcp_connects.py. */
struct connect_key {
	struct tcp_key end;
	u64 user_stack;
	s16 user_error;
	u16 padding;
	u32 padding_too;
};

/* As CONNECT_SUMS there. */
struct connect_sums {
	u64 count;
	u64 observed;
};

/* The connection whose caller is walked. */
struct pending_connect {
	struct tcp_key end;
	u64 weight;
};

typedef u64 connect_words[sizeof(struct connect_sums) / sizeof(u64)];

/* Made by the collector. When full the connects of a stack are counted as stacks_lost. */
BPF_HASH(tcp_connects_shape, struct connect_key, connect_words, 1);
BPF_ARRAY_OF_MAPS(tcp_connects, "tcp_connects_shape", BUFFERS);

/* Key: 0. */
BPF_PERCPU_ARRAY(pending_connects, struct pending_connect, 1);

static __always_inline void walk_connect(struct bpf_raw_tracepoint_args *ctx, struct tcp_settings *setting, struct tcp_session *session,
					 struct current_task *current)
{
	int zero = 0, buffer = active_buffer();
	struct tcp_counts *counts = counts_of(buffer);
	struct pending_connect *pending = pending_connects.lookup(&zero);

	if (!counts || !pending)
		return;
	if (counts->stacks_taken < setting->most_stacks) {
		__sync_fetch_and_add(&counts->stacks_taken, 1);
		pending->end = session->key;
		pending->weight = session->weight;
		walk_event(ctx, SCRATCH_TCP, current, buffer);
	}
	__sync_fetch_and_add(&counts->stacks_lost, session->weight); /* too many, or no walk began */
}

static __always_inline int keep_connect(struct event_walk *walk, struct pending_connect *pending)
{
	struct connect_key key = {};
	struct connect_sums sums = {}, *found;
	int buffer = walk->buffer, refusal;
	void *inner = tcp_connects.lookup(&buffer);

	if (!inner)
		return ERROR_TOO_BIG;
	key.end = pending->end;
	key.user_stack = walk->user_stack;
	key.user_error = walk->user_error;
	found = bpf_map_lookup_elem(inner, &key);
	if (!found) {
		sums.count = pending->weight;
		sums.observed = 1;
		refusal = bpf_map_update_elem(inner, &key, &sums, BPF_NOEXIST);
		if (refusal != ERROR_EXISTS)
			return refusal;
		found = bpf_map_lookup_elem(inner, &key); /* another CPU was first */
		if (!found)
			return ERROR_TOO_BIG;
	}
	__sync_fetch_and_add(&found->count, pending->weight);
	__sync_fetch_and_add(&found->observed, 1);
	return 0;
}

/* The finisher of SCRATCH_TCP. What the kernel does to connect is the same for all: only the user part is kept. */
int on_tcp_connect(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_TCP;
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct pending_connect *pending = pending_connects.lookup(&zero);
	struct tcp_counts *counts;

	if (!walk || !pending)
		return 0;
	counts = counts_of(walk->buffer);
	if (keep_connect(walk, pending) && counts)
		__sync_fetch_and_add(&counts->stacks_lost, pending->weight);
	end_walk(walk);
	return 0;
}

#endif
