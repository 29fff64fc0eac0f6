// SPDX-License-Identifier: GPL-2.0
/* Identity of the current process: the same pid is another process after reuse (start) and another program after exec (exec_id). */
#ifndef EMBERWATCH_PROCESS_H
#define EMBERWATCH_PROCESS_H

enum { TASK_KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD, include/linux/sched.h */

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
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct mm_struct *memory = 0;
	u32 flags = 0;

	bpf_probe_read_kernel(&memory, sizeof(memory), &task->mm);
	bpf_probe_read_kernel(&flags, sizeof(flags), &task->flags);
	bpf_probe_read_kernel(&current->process.exec_id, sizeof(u32), &task->self_exec_id);
	current->process.start_boot_ns = start_of(task);
	current->process.pid = pid;
	current->is_kernel_thread = flags & TASK_KERNEL_THREAD ? 1 : 0;
	current->has_memory = memory ? 1 : 0;
}

#endif
