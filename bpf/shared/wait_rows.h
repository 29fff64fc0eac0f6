// SPDX-License-Identifier: GPL-2.0
/* Rows of long waits: by the stack they were in, the stack that ended them, their class. */
#ifndef EMBERWATCH_WAIT_ROWS_H
#define EMBERWATCH_WAIT_ROWS_H

#include "shared/sampling.h"

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

/* As WAIT_VALUE in the same place. All but `observed` and `max_ns` are of the waits that these stand for (shared/sampling.h). */
struct wait_value {
	u64 observed;
	u64 count_parts; /* PARTS to one */
	u64 ns;
	u64 max_ns;
	u64 uninterruptible_ns;
};

/* As the value of an inner map it is words, see stack_words in stack.h. */
typedef u64 wait_words[sizeof(struct wait_value) / sizeof(u64)];

/* Shape of the inner maps, made by the collector. When full the wait is counted; its time is in the sums. */
BPF_HASH(waits_shape, struct wait_key, wait_words, 1);
BPF_ARRAY_OF_MAPS(waits, "waits_shape", BUFFERS);

/* What is put of a wait: `ns` of its `whole_ns`, which stands for `stands_ns`. */
struct measured_wait {
	u64 ns;
	u64 whole_ns;
	u64 stands_ns;
	u32 is_uninterruptible;
};

static __always_inline void put_row(struct wait_key *key, struct measured_wait *wait, struct wait_counts *counts)
{
	u64 whole_ns = wait->whole_ns, ns = wait->ns, parts = PARTS;
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
		if (key->kind == KIND_OFFCPU) {
			counts->offcpu_full += refusal == ERROR_TOO_BIG;
			counts->offcpu_busy += refusal != ERROR_TOO_BIG;
		} else {
			counts->runqueue_full += refusal == ERROR_TOO_BIG;
			counts->runqueue_busy += refusal != ERROR_TOO_BIG;
		}
		return;
	}
	if (wait->stands_ns > whole_ns && whole_ns) {
		ns = ns * wait->stands_ns / whole_ns;
		parts = PARTS * wait->stands_ns / whole_ns;
	}
	__sync_fetch_and_add(&value->observed, 1);
	__sync_fetch_and_add(&value->count_parts, parts);
	__sync_fetch_and_add(&value->ns, ns);
	if (wait->is_uninterruptible)
		__sync_fetch_and_add(&value->uninterruptible_ns, ns);
	if (whole_ns > value->max_ns)
		value->max_ns = whole_ns;
}

/* The rows of a thread that runs again; `key->own` says where it was, `runnable` how it waited for the CPU. */
static __always_inline void put_rows(struct thread *thread, struct wait_key *key, struct measured_wait *runnable, struct wait_counts *counts)
{
	struct measured_wait blocked = {};

	blocked.ns = thread->blocked_ns;
	blocked.whole_ns = thread->blocked_whole_ns;
	blocked.stands_ns = thread->blocked_stands_ns;
	blocked.is_uninterruptible = thread->is_uninterruptible;
	__builtin_memcpy(key->comm, thread->comm, sizeof(key->comm));
	if (!key->own.process.pid) { /* no stack was taken */
		key->own.process = thread->process;
		key->own.is_kernel_thread = thread->is_kernel_thread;
	}
	if (blocked.ns && blocked.stands_ns) {
		key->kind = KIND_OFFCPU;
		key->wait_class = thread->wait_class;
		key->bucket = 0;
		key->waker = thread->waker;
		put_row(key, &blocked, counts);
	}
	if (runnable->ns && runnable->stands_ns) {
		key->kind = KIND_RUNQUEUE;
		key->wait_class = 0;
		key->bucket = bucket_of_ns(runnable->ns);
		__builtin_memset(&key->waker, 0, sizeof(key->waker));
		put_row(key, runnable, counts);
	}
}

#endif
