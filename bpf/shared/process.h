// SPDX-License-Identifier: GPL-2.0
/* Identity of the current process: the same pid is another process after reuse (start) and another program after exec (exec_id). */
#ifndef EMBERWATCH_PROCESS_H
#define EMBERWATCH_PROCESS_H

enum {
	TASK_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD, include/linux/sched.h */
	TASK_IN_32_BIT_CALL = 2, /* TS_COMPAT, arch/x86/include/asm/thread_info.h */
};

struct process_key {
	u64 start_boot_ns; /* group_leader->start_boottime */
	u32 pid;
	u32 exec_id; /* self_exec_id, its low half */
};

struct current_task {
	struct process_key process;
	u32 is_kernel_thread;
	u32 has_memory; /* 0 for kernel threads, and at the end of an exit, when the stack is gone */
};

/* The running task. From 5.11 the verifier knows its type, and what it points to is read without a call: five times as fast. */
#ifdef EMBERWATCH_TYPED_TASK
static __always_inline struct task_struct *running_task(void)
{
	return (struct task_struct *)bpf_get_current_task_btf();
}

static __always_inline u64 load_u64(const void *field)
{
	u64 value;

	asm volatile("%0 = *(u64 *)(%1 + 0)" : "=r"(value) : "r"(field));
	return value;
}

static __always_inline u32 load_u32(const void *field)
{
	u32 value;

	asm volatile("%0 = *(u32 *)(%1 + 0)" : "=r"(value) : "r"(field));
	return value;
}
#else
static __always_inline struct task_struct *running_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline u64 load_u64(const void *field)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}

static __always_inline u32 load_u32(const void *field)
{
	u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}
#endif

/* Whether the task's system call has the numbers and arguments of 32-bit programs. */
static __always_inline bool is_in_32_bit_call(struct task_struct *task)
{
	return load_u32(&task->thread_info.status) & TASK_IN_32_BIT_CALL;
}

static __always_inline u64 kernel_u64(const void *addr)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), addr);
	return value;
}

static __always_inline u64 start_of(struct task_struct *task)
{
	struct task_struct *leader = 0;
	u64 start_boot_ns = 0;

	bpf_probe_read_kernel(&leader, sizeof(leader), &task->group_leader);
	bpf_probe_read_kernel(&start_boot_ns, sizeof(start_boot_ns), &leader->start_boottime);
	return start_boot_ns;
}

static __always_inline void read_current_task(struct current_task *current, u32 pid)
{
	struct task_struct *task = running_task();
	struct task_struct *leader = (struct task_struct *)load_u64(&task->group_leader);

	current->process.exec_id = load_u32(&task->self_exec_id);
	current->process.start_boot_ns = load_u64(&leader->start_boottime);
	current->process.pid = pid;
	current->is_kernel_thread = load_u32(&task->flags) & TASK_KERNEL_THREAD ? 1 : 0;
	current->has_memory = load_u64(&task->mm) ? 1 : 0;
}

#endif
