// SPDX-License-Identifier: GPL-2.0
/* How long locks of user space are held that others wait for, and where they are let go. Only while somebody asks.
 *
 *	sys_exit of a futex wait -> the thread has the lock: holds[thread, lock] = now
 *	sys_enter of a futex wake on it -> it has let go: a row with its stack
 *
 * A thread that got a mutex after a wait must wake somebody when it lets go, for it cannot know that nobody waits. That is true of mutexes
 * only: other locks are waited for with the same value (a rwlock by its writers) and may be let go of without a wake, or with one elsewhere.
 * Their start stays, as does that of a thread that ends with the lock, until the collector takes it away (agent/profilers/hold_starts.py).
 * One that got it without a wait makes no call then: when its hold began is not known, and it has no row.
 * Hook: raw tracepoints sys_enter (on_release) and sys_exit (on_acquire).
 * State: a start for each lock that is held after a wait; rows in two buffers; all bounded, see bpf/README.md.
 * Needs: Linux 5.10. Cost: two dispatches for every system call of the host, which are what is counted against the limit of events; two map
 * operations a hold. */
#include "shared/futex.h"
#include "shared/lock_rows.h"

enum {
	HOLD_ENTRIES = 16384,
	CALL_FUTEX_WAKE = 454, /* arch/x86/entry/syscalls/syscall_64.tbl */
	FUTEX_COMMAND_WAKE = 1, /* include/uapi/linux/futex.h */
	FUTEX_COMMAND_UNLOCK_PI = 7,
	FUTEX_COMMAND_WAKE_BITSET = 10,
	CALL_AGAIN = -11, /* EAGAIN: the lock was let go before the wait began */
};

/* As HOLD_START_KEY in agent/profilers/hold_starts.py: 24 bytes, no holes. */
struct hold_start_key {
	u64 thread_start_ns; /* the same tid is another thread after reuse */
	u64 lock;
	u32 tid;
	u32 padding;
};

/* As HOLD_KEY in agent/profilers/holds.py. */
struct hold_key {
	struct lock_side own;
	u64 lock;
	u32 type; /* LOCK_* */
	u32 padding;
};

/* A row in the making, while the stack is walked. */
struct hold {
	struct hold_key key;
	u64 ns;
	u64 buffer; /* as in struct lock_wait */
};

/* As HOLD_SETTINGS there. */
struct hold_settings {
	u64 on_since_ns; /* what began before has no start */
	u64 stack_ns;	 /* holds from here on have their stack */
};

/* Bound: HOLD_ENTRIES; when full the hold is not measured (starts_full). The collector takes out what nobody ends. */
BPF_TABLE("hash", struct hold_start_key, u64, holds, HOLD_ENTRIES);
/* Key: 0. */
BPF_ARRAY(hold_settings, struct hold_settings, 1);
BPF_PERCPU_ARRAY(hold_counts, struct lock_counts, 1);
BPF_PERCPU_ARRAY(pending_hold, struct hold, 1);
/* As the value of an inner map it is words, see stack_words in stack.h. */
typedef u64 hold_words[sizeof(struct lock_value) / sizeof(u64)];

/* Made by the collector. When full the hold is counted as rows_full. */
BPF_HASH(hold_rows_shape, struct hold_key, hold_words, 1);
BPF_ARRAY_OF_MAPS(hold_rows, "hold_rows_shape", BUFFERS);

static __always_inline void name_start(struct hold_start_key *key, u64 lock)
{
	key->thread_start_ns = load_u64(&running_task()->start_boottime);
	key->lock = lock;
	key->tid = bpf_get_current_pid_tgid();
}

static __always_inline void put_hold(struct hold *hold, struct lock_counts *counts)
{
	int buffer = hold->buffer;
	void *inner = hold_rows.lookup(&buffer);
	struct lock_value fresh = {};
	struct lock_value *value;
	int refusal = 0;

	if (!inner)
		return;
	value = bpf_map_lookup_elem(inner, &hold->key);
	if (!value) {
		refusal = bpf_map_update_elem(inner, &hold->key, &fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(inner, &hold->key);
	}
	if (!value) {
		refuse_row(hold->buffer, refusal, counts);
		return;
	}
	__sync_fetch_and_add(&value->count, 1);
	__sync_fetch_and_add(&value->ns, hold->ns);
	__sync_fetch_and_add(&value->buckets[bucket_of_ns(hold->ns) & (BUCKETS_OF_TIME - 1)], 1);
	if (hold->ns > value->max_ns)
		value->max_ns = hold->ns;
}

/* Hook: raw tracepoint sys_exit(regs, return value). */
int on_acquire(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *saved = (struct pt_regs *)ctx->args[0], regs;
	s64 value = ctx->args[1];
	int zero = 0;
	struct lock_counts *counts = hold_counts.lookup(&zero);
	struct hold_start_key key = {};
	struct futex_waited waited = {};
	u64 call = 0, now_ns;

	if (!counts)
		return 0;
	counts->events++;
	bpf_probe_read_kernel(&call, sizeof(call), &saved->orig_ax);
	if (!is_futex_wait(call) || is_in_32_bit_call(running_task()))
		return 0;
	bpf_probe_read_kernel(&regs, sizeof(regs), saved);
	if (is_priority_lock(call, regs.si)) {
		waited.address = regs.di;
	} else {
		u64 arguments[] = {regs.di, regs.si, regs.dx};

		read_waited(&waited, call, arguments);
		if (waited.value != FUTEX_CONTENDED)
			return 0;
	}
	name_start(&key, waited.address);
	if (value < 0 && value != CALL_AGAIN) {
		holds.delete(&key); /* it gave up, or will wait again */
		return 0;
	}
	now_ns = bpf_ktime_get_ns();
	counts->starts_full += holds.update(&key, &now_ns) == ERROR_TOO_BIG;
	return 0;
}

/* What the call lets go of; 0 for none. */
static __always_inline u64 released_by(struct pt_regs *saved, u64 call, u32 *type)
{
	u64 address = 0, operation = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &saved->di);
	*type = LOCK_USER;
	if (call == CALL_FUTEX_WAKE)
		return address;
	bpf_probe_read_kernel(&operation, sizeof(operation), &saved->si);
	operation &= FUTEX_COMMAND_MASK;
	if (operation == FUTEX_COMMAND_UNLOCK_PI)
		*type |= LOCK_PRIORITY;
	else if (operation != FUTEX_COMMAND_WAKE && operation != FUTEX_COMMAND_WAKE_BITSET)
		return 0;
	return address;
}

/* Hook: raw tracepoint sys_enter(regs, number). */
int on_release(struct bpf_raw_tracepoint_args *ctx)
{
	u64 call = ctx->args[1], *start_ns, began_ns;
	int zero = 0;
	struct lock_counts *counts = hold_counts.lookup(&zero);
	struct hold_settings *setting;
	struct hold *hold;
	struct current_task current = {};
	struct hold_start_key key = {};
	u32 type;

	if (!counts)
		return 0;
	counts->events++;
	if (call != CALL_FUTEX && call != CALL_FUTEX_WAKE)
		return 0;
	setting = hold_settings.lookup(&zero);
	hold = pending_hold.lookup(&zero);
	if (!setting || !hold || is_in_32_bit_call(running_task()))
		return 0;
	name_start(&key, released_by((struct pt_regs *)ctx->args[0], call, &type));
	start_ns = holds.lookup(&key);
	if (!start_ns)
		return 0;
	began_ns = *start_ns;
	holds.delete(&key);
	if (began_ns < setting->on_since_ns) {
		counts->unpaired++;
		return 0;
	}
	counts->waits++;
	__builtin_memset(hold, 0, sizeof(*hold));
	hold->ns = bpf_ktime_get_ns() - began_ns;
	hold->key.lock = key.lock;
	hold->key.type = type;
	if (!fill_own_side(&hold->key.own, &current)) {
		counts->filtered++;
		return 0;
	}
	owe_row(&hold->buffer, counts);
	signal_once(&current.process);
	if (hold->ns >= setting->stack_ns)
		walk_event(ctx, SCRATCH_HOLD, &current, hold->buffer);
	put_hold(hold, counts);
	return 0;
}

/* Finisher of SCRATCH_HOLD. What the kernel does is the same for all: only the user part is kept. */
int on_hold_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_HOLD;
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct hold *hold = pending_hold.lookup(&zero);
	struct lock_counts *counts = hold_counts.lookup(&zero);

	if (!walk || !hold || !counts)
		return 0;
	hold->key.own.user_stack = walk->user_stack;
	hold->key.own.user_error = walk->user_error;
	put_hold(hold, counts);
	end_walk(walk);
	return 0;
}
