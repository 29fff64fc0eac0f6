// SPDX-License-Identifier: GPL-2.0
/* Rows of long waits: by the stack they were in, the stack that ended them, their class. */
#ifndef EMBERWATCH_WAIT_ROWS_H
#define EMBERWATCH_WAIT_ROWS_H

#include "shared/thread.h"

enum wait_kind { KIND_OFFCPU, KIND_RUNQUEUE };

/* As WAIT_KEY in agent/profilers/wait_rows.py: 104 bytes, no holes. */
struct wait_key {
	struct wait_stack own;
	char comm[COMM_BYTES];
	struct wait_stack waker;
	u32 kind; /* enum wait_kind */
	u16 wait_class;
	u16 bucket; /* of KIND_RUNQUEUE */
};

struct wait_value {
	u64 count;
	u64 ns;
	u64 max_ns;
	u64 uninterruptible_ns;
};

/* As the value of an inner map it is words, see stack_words in stack.h. */
typedef u64 wait_words[sizeof(struct wait_value) / sizeof(u64)];

/* Shape of the inner maps, made by the collector. When full the wait is counted as rows_full; its time is in the sums. */
BPF_HASH(waits_shape, struct wait_key, wait_words, 1);
BPF_ARRAY_OF_MAPS(waits, "waits_shape", BUFFERS);

static __always_inline void put_row(struct wait_key *key, u64 ns, u64 whole_ns, u64 uninterruptible_ns, struct wait_counts *counts)
{
	int buffer = active_buffer();
	void *inner = waits.lookup(&buffer);
	struct wait_value fresh = {};
	struct wait_value *value;
	int refusal = 0;

	if (!inner)
		return;
	value = bpf_map_lookup_elem(inner, key);
	if (!value) {
		refusal = bpf_map_update_elem(inner, key, &fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(inner, key);
	}
	if (!value) {
		counts->rows_full += refusal == ERROR_TOO_BIG;
		counts->rows_busy += refusal != ERROR_TOO_BIG;
		return;
	}
	__sync_fetch_and_add(&value->count, 1);
	__sync_fetch_and_add(&value->ns, ns);
	__sync_fetch_and_add(&value->uninterruptible_ns, uninterruptible_ns);
	if (whole_ns > value->max_ns)
		value->max_ns = whole_ns;
}

/* The rows of a thread that runs again; `key->own` says where it was. */
static __always_inline void put_rows(struct thread *thread, struct wait_key *key, u64 runnable_ns, u64 threshold_ns, struct wait_counts *counts)
{
	u64 blocked_ns = thread->blocked_ns;

	__builtin_memcpy(key->comm, thread->comm, sizeof(key->comm));
	if (!key->own.process.pid) { /* no stack was taken */
		key->own.process = thread->process;
		key->own.is_kernel_thread = thread->is_kernel_thread;
	}
	if (blocked_ns && thread->blocked_whole_ns >= threshold_ns) {
		key->kind = KIND_OFFCPU;
		key->wait_class = thread->wait_class;
		key->bucket = 0;
		key->waker = thread->waker;
		put_row(key, blocked_ns, thread->blocked_whole_ns, thread->is_uninterruptible ? blocked_ns : 0, counts);
	}
	if (runnable_ns && runnable_ns >= threshold_ns) {
		key->kind = KIND_RUNQUEUE;
		key->wait_class = 0;
		key->bucket = bucket_of_ns(runnable_ns);
		__builtin_memset(&key->waker, 0, sizeof(key->waker));
		put_row(key, runnable_ns, runnable_ns, 0, counts);
	}
}

#endif
