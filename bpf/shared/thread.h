// SPDX-License-Identifier: GPL-2.0
/* Where the time of each thread went: one entry a thread, its sums only grow. The collector reads them and takes differences, so nothing
 * is lost between a read and a reset, and nothing is copied in a switch.
 *
 *	RUNNING --switched out--> BLOCKED --woken--> RUNNABLE --switched in--> RUNNING
 *	   \------preempted------------------------------/             NEW --switched in--/
 *
 * Programs may be detached for a while (agent/profilers/breaker.py): what began before `on_since_ns` is counted from there. What threads
 * do as they are attached is looked up where the kernel can be asked (shared/open_waits.h); else the first event tells it. */
#ifndef EMBERWATCH_THREAD_H
#define EMBERWATCH_THREAD_H

#include "shared/process.h"
#include "shared/limit.h"
#include "shared/sight.h"
#include "shared/window.h"
#include "shared/buckets.h"

#ifndef THREAD_ENTRIES
#define THREAD_ENTRIES 16384
#endif

enum {
	DEPARTED_ENTRIES = 8192,
	COMM_BYTES = 16,
};

enum thread_state { THREAD_NEW, THREAD_RUNNING, THREAD_RUNNABLE, THREAD_BLOCKED, THREAD_DEAD };

/* As WaitClass in agent/profilers/wait_classes.py. */
enum wait_class { WAIT_OTHER, WAIT_LOCK, WAIT_DISK, WAIT_NET, WAIT_PIPE, WAIT_POLL, WAIT_SLEEP, WAIT_PAGE, WAIT_CHILD, WAIT_CLASSES, WAIT_BY_FILE };

/* As THREAD_SUMS in agent/profilers/thread_rows.py: 248 bytes. */
struct thread_sums {
	u64 switches;
	u64 cpu_ns;
	u64 runnable_ns;
	u64 class_ns[WAIT_CLASSES];
	u64 short_runnable_ns; /* of waits for a CPU below the threshold: those above are rows of their own */
	u64 short_max_ns;      /* the longest of them in window `max_window` */
	u64 max_window;
	u32 short_buckets[BUCKETS_OF_TIME];
};

/* A stack and whose it is. */
struct wait_stack {
	struct process_key process;
	u64 user_stack;
	u64 kernel_stack;
	s16 user_error;
	s16 kernel_error;
	u32 is_kernel_thread;
};

/* As THREAD in agent/profilers/thread_rows.py: 480 bytes. */
struct thread {
	struct process_key process;
	char comm[COMM_BYTES];
	u32 is_kernel_thread;
	u32 state; /* enum thread_state */
	u64 since_ns;
	u64 born_window; /* window in which the entry was made */
	u32 wait_class;
	u32 is_uninterruptible;
	u64 blocked_ns; /* how long the last wait was until the wakeup, as far as it is not reported yet */
	u64 blocked_whole_ns;
	u64 blocked_stands_ns; /* what that wait stands for (shared/sampling.h), 0 when its stack is not taken */
	u64 crossed_at_ns; /* these four: the last end of a report that a wait has reached beyond, and that wait */
	u64 crossed_since_ns;
	u32 crossed_class;
	u32 crossed_uninterruptible;
	u64 voluntary_switches; /* of the task as it began to wait: when there are more, it is not that wait any more */
	u64 stack_since_ns; /* since_ns of the wait that `own` is of */
	u64 is_class_unknown; /* that it began to wait was not seen */
	u64 is_provisional; /* `own` was walked without tables and should be walked again */
	u64 met_window; /* window in which the task was met by an iterator */
	struct wait_stack own;
	struct wait_stack waker;
	struct thread_sums sums;
};

/* Threads that began and ended within a window. */
struct departed_key {
	struct process_key process;
	char comm[COMM_BYTES];
};

/* As WAIT_SETTINGS in agent/profilers/waits.py. */
struct wait_settings {
	u64 threshold_ns;
	u64 on_since_ns;    /* since when the programs have been attached */
	u64 reported_ns;    /* until when open waits are reported */
	u64 window;	    /* counts the collector's looks at the sums: one a window, more in duty cycles */
	u64 walks_left;	    /* of open waits, until the collector writes here again */
	u64 is_beginning;   /* the iterator takes down what threads do */
};

/* As WAIT_GATE in agent/profilers/waits.py. */
struct wait_gate {
	u64 period;	 /* number of the breaker's period */
	u64 most_events; /* events of a CPU in a period, after which all programs look away; 0 for no limit */
	u64 shut_ns;	 /* since when they do, 0 while they look */
};

/* Key: 0. Written by the collector. */
BPF_ARRAY(wait_settings, struct wait_settings, 1);
/* Key: 0. Opened by the collector with each period, shut by the first CPU that has seen enough: a program that is attached and looks away
 * costs its dispatch, until the collector detaches it. */
BPF_ARRAY(wait_gate, struct wait_gate, 1);
/* Key: tid. Bound: THREAD_ENTRIES, four times the threads there were at the start; when full a thread is not measured and counted. The
 * collector removes the dead. */
BPF_TABLE("hash", u32, struct thread, threads, THREAD_ENTRIES);
/* As the value of an inner map they are words, see stack_words in stack.h. */
typedef u64 thread_words[sizeof(struct thread_sums) / sizeof(u64)];

/* Shape of the inner maps, made by the collector. When full, what a short-lived thread did is lost and counted. */
BPF_HASH(departed_shape, struct departed_key, thread_words, 1);
BPF_ARRAY_OF_MAPS(departed, "departed_shape", BUFFERS);

/* As WAIT_COUNTS in agent/profilers/waits.py. */
struct wait_counts {
	u64 events;	   /* switches and wakeups, for the breaker */
	u64 threads_full;  /* threads without an entry, once for each try */
	u64 departed_full; /* short-lived threads whose sums were lost */
	u64 offcpu_full;   /* waits that found no room in the rows */
	u64 offcpu_busy;   /* waits whose row could not be written for another cause */
	u64 runqueue_full; /* these two: the same of waits for a CPU */
	u64 runqueue_busy;
	u64 unseen;	   /* waits without a row: that a thread got a CPU, or left it, was not seen */
	u64 period;	   /* of the gate, that `left` is of */
	u64 left;	   /* events until the gate is shut */
	u64 slot;	   /* these three: shared/sampling.h */
	u64 slot_walks;
	u64 sample_ns;
};

/* Key: 0. An entry in the making, which is too large for the stack; its sums stay 0. Its users run with interrupts off. */
BPF_PERCPU_ARRAY(blank_thread, struct thread, 1);

/* Key: 0. Only grow. */
BPF_PERCPU_ARRAY(wait_counts, struct wait_counts, 1);

static __always_inline u64 later(u64 a_ns, u64 b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/* Whether an event is to be looked at; it is counted. */
static __always_inline bool is_gate_open(struct wait_counts *counts, u64 now_ns)
{
	int zero = 0;
	struct wait_gate *gate = wait_gate.lookup(&zero);

	if (!gate || gate->shut_ns)
		return false;
	if (counts->period != gate->period) {
		counts->period = gate->period;
		counts->left = gate->most_events;
	}
	counts->events++;
	if (!--counts->left) /* from 0 it goes round, and is never reached */
		gate->shut_ns = now_ns;
	return true;
}

/* Time gone by, never below 0. */
static __always_inline u64 past(u64 now_ns, u64 from_ns)
{
	return now_ns > from_ns ? now_ns - from_ns : 0;
}

/* Make an entry for a task that is seen for the first time, whoever runs now, by way of `fresh`, whose sums are 0. 0 when it is not wanted or
 * there is no room. */
static __always_inline struct thread *put_thread(struct thread *fresh, struct task_struct *task, u32 tid, bool is_known,
						 struct wait_counts *counts)
{
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);
	u32 flags = 0;

	if (!setting)
		return 0;
	bpf_probe_read_kernel(&fresh->process.pid, sizeof(u32), &task->tgid);
	fresh->process.start_boot_ns = start_of(task);
	if (setting->limits & LIMIT_TREE && !is_in_tree(&fresh->process))
		return 0;
	bpf_probe_read_kernel(&fresh->process.exec_id, sizeof(u32), &task->self_exec_id);
	bpf_probe_read_kernel(&fresh->comm, sizeof(fresh->comm), &task->comm);
	bpf_probe_read_kernel(&flags, sizeof(flags), &task->flags);
	fresh->is_kernel_thread = flags & TASK_KERNEL_THREAD ? 1 : 0;
	/* One that is not known may have been met by a handler meanwhile, which knows better. */
	if ((is_known ? threads.update(&tid, fresh) : threads.insert(&tid, fresh)) == ERROR_TOO_BIG)
		counts->threads_full++;
	return threads.lookup(&tid);
}

static __always_inline struct thread *new_thread(struct task_struct *task, u32 tid, u32 state, u64 since_ns, u64 window, struct wait_counts *counts)
{
	int zero = 0;
	struct thread *fresh = blank_thread.lookup(&zero);

	if (!fresh)
		return 0;
	fresh->state = state;
	fresh->since_ns = since_ns;
	fresh->born_window = window;
	return put_thread(fresh, task, tid, true, counts);
}

/* Add the sums of a thread that is gone, or is another program now, to those of its process. */
static __always_inline void depart(struct thread *thread, struct wait_counts *counts)
{
	struct departed_key key = {};
	int buffer = active_buffer();
	void *inner = departed.lookup(&buffer);
	struct thread_sums *sums, *own = &thread->sums;

	if (!inner)
		return;
	key.process = thread->process;
	__builtin_memcpy(key.comm, thread->comm, sizeof(key.comm));
	sums = bpf_map_lookup_elem(inner, &key);
	if (!sums) {
		if (!bpf_map_update_elem(inner, &key, own, BPF_NOEXIST))
			return;
		sums = bpf_map_lookup_elem(inner, &key); /* another CPU was first */
	}
	if (!sums) {
		counts->departed_full++;
		return;
	}
	__sync_fetch_and_add(&sums->switches, own->switches);
	__sync_fetch_and_add(&sums->cpu_ns, own->cpu_ns);
	__sync_fetch_and_add(&sums->runnable_ns, own->runnable_ns);
	__sync_fetch_and_add(&sums->short_runnable_ns, own->short_runnable_ns);
#pragma unroll
	for (int i = 0; i < WAIT_CLASSES; i++)
		__sync_fetch_and_add(&sums->class_ns[i], own->class_ns[i]);
#pragma unroll
	for (int i = 0; i < BUCKETS_OF_TIME; i++)
		__sync_fetch_and_add(&sums->short_buckets[i], own->short_buckets[i]);
	if (own->short_max_ns > sums->short_max_ns)
		sums->short_max_ns = own->short_max_ns;
}

#endif
