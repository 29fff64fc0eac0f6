// SPDX-License-Identifier: GPL-2.0
/* Which locks are waited for, by whom and where, and who holds them.
 * Hook: raw tracepoints contention_begin and contention_end (kernel locks, 5.19); sched_switch and sched_exit_tp for locks of user space
 * (shared/user_lock.h).
 * State: a start for each wait under way; rows in two buffers; all bounded, see bpf/README.md.
 * Needs: Linux 5.10 for locks of user space, 5.19 for those of the kernel. Cost: two map operations a wait, and a stack when it was long
 * enough; see bpf/README.md for the measured figure. */
#include "shared/lock_rows.h"
#include "shared/user_lock.h"

/* include/trace/events/lock.h */
enum {
	KERNEL_LOCK_SPIN = 1 << 0,
	KERNEL_LOCK_READ = 1 << 1,
	KERNEL_LOCK_WRITE = 1 << 2,
	KERNEL_LOCK_RT = 1 << 3,
	KERNEL_LOCK_PERCPU = 1 << 4,
	KERNEL_LOCK_MUTEX = 1 << 5,
	KERNEL_LOCK_FLAGS = (1 << 6) - 1,
};

enum {
	CONTENTION_ENTRIES = 16384,
	OWNER_FLAGS = 7, /* low bits of `owner`: kernel/locking/mutex.h, kernel/locking/rwsem.c */
};

/* A task waits for several locks at once when an interrupt does; idle tasks are told apart by their CPU. */
struct contention_key {
	u64 lock;
	u32 tid;
	u32 cpu;
};

struct contention {
	u64 start_ns;
	u64 flags;
	struct holder holder;
};

/* Bound: CONTENTION_ENTRIES; when full the wait is not measured (starts_full). The collector removes what began before it attached. */
BPF_TABLE("hash", struct contention_key, struct contention, contentions, CONTENTION_ENTRIES);
/* Key: 0. */
BPF_PERCPU_ARRAY(contention_wait, struct lock_wait, 1);

static __always_inline void fill_contention_key(struct contention_key *key, u64 lock)
{
	key->lock = lock;
	key->tid = bpf_get_current_pid_tgid();
	key->cpu = key->tid ? 0 : bpf_get_smp_processor_id();
}

/* The task that a mutex or a semaphore says holds it; 0 when the kind of lock does not say. */
static __always_inline struct task_struct *owner_of(u64 lock, u64 flags)
{
	u64 owner = 0;

	if (flags & KERNEL_LOCK_MUTEX)
		bpf_probe_read_kernel(&owner, sizeof(owner), &((struct mutex *)lock)->owner);
	else if (flags == KERNEL_LOCK_READ || flags == KERNEL_LOCK_WRITE)
		bpf_probe_read_kernel(&owner, sizeof(owner), &((struct rw_semaphore *)lock)->owner);
	return (struct task_struct *)(owner & ~(u64)OWNER_FLAGS);
}

int on_contention_begin(struct bpf_raw_tracepoint_args *ctx)
{
	int zero = 0;
	struct lock_counts *counts = lock_counts.lookup(&zero);
	struct contention_key key = {};
	struct contention begun = {};
	struct task_struct *owner;

	if (!counts)
		return 0;
	counts->events++;
	fill_contention_key(&key, ctx->args[0]);
	begun.flags = ctx->args[1] & KERNEL_LOCK_FLAGS;
	owner = owner_of(key.lock, begun.flags);
	if (owner)
		name_holder(&begun.holder, owner);
	begun.start_ns = bpf_ktime_get_ns();
	/* A mutex begins more than once: it spins, sleeps, spins. Of all others what is there is a wait whose end was missed. */
	if ((begun.flags & KERNEL_LOCK_MUTEX ? contentions.insert(&key, &begun) : contentions.update(&key, &begun)) == ERROR_TOO_BIG)
		counts->starts_full++;
	return 0;
}

/* What is known of a kernel lock without its stack: one of the process, or one with a symbol. */
static __always_inline void describe_lock(struct lock_key *key, u64 lock, u64 flags, struct lock_settings *setting)
{
	struct task_struct *task = running_task();
	u64 mm = load_u64(&task->mm), signals = load_u64(&task->sighand);

	key->type = flags;
	if (mm && lock == (u64)&((struct mm_struct *)mm)->mmap_lock)
		key->type |= LOCK_MMAP;
	else if (signals && lock == (u64)&((struct sighand_struct *)signals)->siglock)
		key->type |= LOCK_SIGNAL;
	else if (lock >= setting->named_start && lock < setting->named_end)
		key->lock = lock;
}

int on_contention_end(struct bpf_raw_tracepoint_args *ctx)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 scratch = SCRATCH_LOCK;
	int zero = 0;
	struct lock_counts *counts = lock_counts.lookup(&zero);
	struct lock_settings *setting = lock_settings.lookup(&zero);
	struct lock_wait *wait = contention_wait.lookup(&zero);
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct current_task current = {};
	struct contention_key key = {};
	struct contention *begun;

	if (!counts || !setting || !wait || !walk)
		return 0;
	counts->events++;
	fill_contention_key(&key, ctx->args[0]);
	begun = contentions.lookup(&key);
	if (!begun) {
		counts->unpaired++;
		return 0;
	}
	if (begun->start_ns < setting->on_since_ns || walk->is_busy) {
		/* Begun before we looked; or in an interrupt of the walk of another wait, whose row is still in the making. */
		counts->unpaired += !walk->is_busy;
		counts->rows_busy += walk->is_busy;
		contentions.delete(&key);
		return 0;
	}
	counts->waits++;
	__builtin_memset(wait, 0, sizeof(*wait));
	wait->ns = now_ns > begun->start_ns ? now_ns - begun->start_ns : 0;
	if (!fill_own_side(&wait->key.own, &current)) {
		contentions.delete(&key);
		counts->filtered++;
		return 0;
	}
	owe_row(&wait->buffer, counts);
	describe_lock(&wait->key, key.lock, begun->flags, setting);
	if (wait->ns >= setting->stack_ns) {
		give_latest_stack(&begun->holder, begun->start_ns);
		wait->key.holder = begun->holder.side;
	}
	contentions.delete(&key);
	if (wait->ns >= setting->stack_ns) {
		if (!current.is_kernel_thread)
			signal_once(&current.process);
		walk_event(ctx, SCRATCH_LOCK, &current, wait->buffer);
	}
	put_lock_row(wait, counts);
	return 0;
}

/* Finisher of SCRATCH_LOCK. */
int on_contention_walked(struct bpf_raw_tracepoint_args *ctx)
{
	u32 scratch = SCRATCH_LOCK;
	int zero = 0;
	struct event_walk *walk = event_walks.lookup(&scratch);
	struct lock_wait *wait = contention_wait.lookup(&zero);
	struct lock_counts *counts = lock_counts.lookup(&zero);

	if (!walk || !wait || !counts)
		return 0;
	take_lock_stacks(&wait->key.own, walk);
	put_lock_row(wait, counts);
	end_walk(walk);
	return 0;
}
