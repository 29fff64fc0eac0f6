// SPDX-License-Identifier: GPL-2.0
/* Code that the collector has not told of (yet): a program in its first milliseconds, a library that was opened a moment ago. Its mapping is
 * looked up in the kernel's own tree of the process, and its table by the file behind it, for the tables of files that run already are here.
 *
 *	address -> maple tree of the process -> mapping -> inode, size, time of change -> unwind_files -> table
 *
 * Read without locks by the process itself, which keeps its memory alive; what another of its threads changes meanwhile is found out by
 * reading the range again. A name never comes from here: places are found by the collector, from /proc/PID/maps.
 * Needs: Linux 6.1, where mappings lie in a maple tree (include/linux/maple_tree.h, lib/maple_tree.c, mtree_lookup_walk); before, code is
 * walked once the collector has told of it. Cost: half a microsecond a look-up, for what is not known only. */
#ifndef EMBERWATCH_LOOK_H
#define EMBERWATCH_LOOK_H

#include "shared/unwind.h"

#ifdef EMBERWATCH_MAPLE_TREE

enum {
	LOOK_STEPS = 64,   /* slots that are tried on the way down: five levels, which hold 100,000 mappings */
	TAG_MASK = 3,
	ROOT_TAG = 2,	 /* MAPLE_ROOT_NODE: the root is a node */
	NODE_MASK = 255, /* MAPLE_NODE_MASK */
	NODE_TYPE_SHIFT = 3,
	NODE_TYPE_MASK = 15,
	NODE_LEAF = 1,		/* enum maple_type */
	NODE_RANGE = 2,
	NODE_RANGE_WITH_GAPS = 3,
	PARENT_BYTES = 8, /* before the pivots */
	PIVOTS = sizeof(((struct maple_range_64 *)0)->pivot) / sizeof(u64),
	PIVOTS_WITH_GAPS = sizeof(((struct maple_arange_64 *)0)->pivot) / sizeof(u64),
	MAY_EXECUTE = 4, /* VM_EXEC */
	LOOK_PAGE_SHIFT = 12,
	CTIME_NS_MASK = 0x3fffffff, /* I_CTIME_QUERIED lies above (6.13) */
};

/* The mapping that may hold `addr`; 0 when there is none. The caller makes sure. */
static __always_inline struct vm_area_struct *mapping_near(struct mm_struct *memory, u64 addr)
{
	u64 node = kernel_u64(&memory->mm_mt.ma_root);
	u32 slot = 0;

	if ((node & TAG_MASK) != ROOT_TAG) /* a single mapping is no program */
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < LOOK_STEPS; i++) {
		u32 type = node >> NODE_TYPE_SHIFT & NODE_TYPE_MASK;
		u32 pivots = type == NODE_RANGE_WITH_GAPS ? PIVOTS_WITH_GAPS : PIVOTS;
		u64 at = (node & ~(u64)NODE_MASK) + PARENT_BYTES, pivot;

		if (type < NODE_LEAF || type > NODE_RANGE_WITH_GAPS)
			return 0;
		if (slot < pivots) {
			pivot = kernel_u64((void *)(at + slot * sizeof(u64)));
			if (pivot < addr && (pivot || !slot)) { /* 0 behind the first: the last slot in use, up to the end of the node */
				slot++;
				continue;
			}
		}
		node = kernel_u64((void *)(at + (pivots + slot) * sizeof(u64)));
		slot = 0;
		if (type == NODE_LEAF)
			return node & TAG_MASK ? 0 : (struct vm_area_struct *)node;
	}
	return 0;
}

static __always_inline void read_file_key(struct file_key *key, struct file *file)
{
	struct inode *inode = (struct inode *)kernel_u64(&file->f_inode);

	key->inode = kernel_u64(&inode->i_ino);
	key->size_bytes = kernel_u64(&inode->i_size);
	key->changed_s = kernel_u64((void *)inode + EMBERWATCH_CTIME_S_AT);
	key->changed_ns = (u32)kernel_u64((void *)inode + EMBERWATCH_CTIME_NS_AT) & CTIME_NS_MASK;
}

/* How code of a file is walked, into at->mapping. False when the file is not known. */
static __always_inline bool take_table(struct unwinding *at, struct file_key *key, u64 offset)
{
	struct unwind_file *file = unwind_files.lookup(key);

	if (!file)
		return false;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < FILE_SEGMENTS; i++) {
		struct file_segment *segment = &file->segments[i];

		if (offset - segment->start < segment->size) {
			at->mapping.bias = at->mapping.start - offset + segment->shift;
			at->mapping.first_page = file->first_page;
			at->mapping.low_page = file->low_page;
			at->mapping.page_count = file->page_count;
			at->mapping.kind = file->kind;
			return true;
		}
	}
	return false;
}

/* Find the mapping of `addr` and how it is walked, into at->mapping. False when it is no code, or of a file that is not known; then
 * at->mapping is empty. */
static __always_inline bool look(struct unwinding *at, u64 addr)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct mm_struct *memory = (struct mm_struct *)kernel_u64(&task->mm);
	struct vm_area_struct *found = mapping_near(memory, addr);
	u64 start, end, offset, file;
	struct file_key key = {};
	bool is_known = true;

	at->mapping.start = at->mapping.end = 0;
	if (!found)
		return false;
	start = kernel_u64(&found->vm_start);
	end = kernel_u64(&found->vm_end);
	if (addr < start || addr >= end || kernel_u64(&found->vm_mm) != (u64)memory || !(kernel_u64(&found->vm_flags) & MAY_EXECUTE))
		return false;
	file = kernel_u64(&found->vm_file);
	offset = kernel_u64(&found->vm_pgoff) << LOOK_PAGE_SHIFT;
	if (file)
		read_file_key(&key, (struct file *)file);
	else
		offset = 0;
	at->mapping.start = start;
	at->mapping.kind = MAPPING_JIT;
	if (file || start == kernel_u64(&memory->context.vdso)) /* the vDSO is the file whose key is all zeros */
		is_known = take_table(at, &key, offset);
	if (!is_known || kernel_u64(&found->vm_start) != start || kernel_u64(&found->vm_end) != end) {
		at->mapping.start = 0;
		return false;
	}
	at->mapping.end = end;
	return true;
}

/* Whether a walk that stands at code it does not know may go on, for a program that entered it with STOP_LOOK. */
static __always_inline bool look_for_frame(struct unwinding *at, struct stack *stack)
{
	at->is_looked = 1;
	at->looks_left--;
	return look(at, at->ip - 1 + at->is_exact) || stack->length || at->process.count;
}

#endif
#endif
