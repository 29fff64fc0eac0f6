// SPDX-License-Identifier: GPL-2.0
/* Where a walk by tables begins: the registers of user space, and the mappings of the process. */
#ifndef EMBERWATCH_UNWIND_BEGIN_H
#define EMBERWATCH_UNWIND_BEGIN_H

#include "shared/unwind.h"

enum {
	KERNEL_STACK_BYTES = 16384, /* THREAD_SIZE */
};

/* Where the running task keeps its registers of user space. */
static __always_inline struct pt_regs *user_registers(struct task_struct *running)
{
#ifdef EMBERWATCH_TASK_PT_REGS
	return (struct pt_regs *)bpf_task_pt_regs((struct task_struct *)bpf_get_current_task_btf());
#else
	/* task_pt_regs() of kernels without FRED: at the end of the kernel stack. */
	return (struct pt_regs *)((void *)load_u64(&running->stack) + KERNEL_STACK_BYTES) - 1;
#endif
}

/* The same of any task: as far from the start of its kernel stack as that of the running one. */
static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
	struct task_struct *running = running_task();
	void *known = user_registers(running), *kernel_stack = 0;
	u64 address = 0;

	/* Read as a number: the verifier of Linux 6.1 lets nobody subtract from a pointer whose type it knows. */
	bpf_probe_read_kernel(&address, sizeof(address), &known);
	bpf_probe_read_kernel(&kernel_stack, sizeof(kernel_stack), &task->stack);
	return (struct pt_regs *)(kernel_stack + (address - load_u64(&running->stack)));
}

/* Begin at registers that were saved. */
static __always_inline void take_registers(struct unwinding *at, struct pt_regs *regs, u64 *code_segment)
{
	bpf_probe_read_kernel(&at->ip, sizeof(at->ip), &regs->ip);
	bpf_probe_read_kernel(&at->sp, sizeof(at->sp), &regs->sp);
	bpf_probe_read_kernel(&at->bp, sizeof(at->bp), &regs->bp);
	bpf_probe_read_kernel(&at->ax, sizeof(at->ax), &regs->ax);
	bpf_probe_read_kernel(&at->r10, sizeof(at->r10), &regs->r10);
	bpf_probe_read_kernel(&at->r11, sizeof(at->r11), &regs->r11);
	bpf_probe_read_kernel(code_segment, sizeof(u16), &regs->cs);
}

/* Registers of user space while the CPU is in the kernel. */
static __always_inline void saved_registers(struct unwinding *at, u64 *code_segment)
{
	take_registers(at, user_registers(running_task()), code_segment);
}

/* The mappings of a process that was forked from a known one and has not been met yet: those of its parent, as long as both run the image
 * they were forked with, which shows by the places that an exec chooses anew. */
static __always_inline struct unwind_process *mappings_of_parent(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task(), *parent = 0;
	struct mm_struct *own = 0, *theirs = 0;
	u64 own_stack = 0, their_stack = 0;
	struct process_key key = {};

	bpf_probe_read_kernel(&parent, sizeof(parent), &task->real_parent);
	bpf_probe_read_kernel(&own, sizeof(own), &task->mm);
	bpf_probe_read_kernel(&theirs, sizeof(theirs), &parent->mm);
	bpf_probe_read_kernel(&own_stack, sizeof(own_stack), &own->start_stack);
	bpf_probe_read_kernel(&their_stack, sizeof(their_stack), &theirs->start_stack);
	if (!own_stack || own_stack != their_stack)
		return 0;
	key.start_boot_ns = start_of(parent);
	bpf_probe_read_kernel(&key.pid, sizeof(key.pid), &parent->tgid);
	bpf_probe_read_kernel(&key.exec_id, sizeof(key.exec_id), &parent->self_exec_id);
	return unwind_processes.lookup(&key);
}

/* Begin a walk of `process`, which may be 0 where code can be looked up; the caller fills in the registers. */
static __always_inline struct unwinding *begin_at(u32 scratch, struct unwind_process *process, u32 looks)
{
	struct unwinding *at = unwinding.lookup(&scratch);
	struct stack *stack = walked.lookup(&scratch);

	if (!at || !stack || (!process && !looks))
		return 0;
	at->process.first = at->process.count = 0;
	if (process)
		at->process = *process;
	at->mapping.start = at->mapping.end = 0;
	at->is_exact = at->has_registers = 1;
	at->looks_left = looks;
	at->is_looked = 0;
	stack->length = 0;
	return at;
}

/* Begin a walk of the current task; the caller fills in the registers. 0 when the process is not known and its code cannot be looked up. */
static __always_inline struct unwinding *begin_unwinding(u32 scratch, struct process_key *key, u32 how)
{
	struct unwind_process *process = unwind_processes.lookup(key);

	if (!process)
		process = mappings_of_parent();
	return begin_at(scratch, process, how == UNWINDING_LOOKS ? MOST_LOOKS : 0);
}

/* Tables are of programs of 64 bits. */
static __always_inline bool is_64_bit(u64 code_segment)
{
	return (u16)code_segment != COMPAT_CODE_SEGMENT;
}

/* The walk has ended: keep the stack, and tell the collector of code that it does not know. Returns the hash. */
static __always_inline u64 end_unwinding(struct unwinding *at, struct stack *stack, u32 stop, struct process_key *process,
					 struct stack_home *home, s16 *error)
{
	stack->stop = final_stop(at, stop, (struct task_struct *)bpf_get_current_task());
	if ((stack->stop == STOP_NO_MAPPING || (at->looks_left && at->looks_left < MOST_LOOKS)) && should_tell(process))
		tell(process, 0, SIGHT_SAMPLED);
	return keep_stack(stack, home, error);
}

#endif
