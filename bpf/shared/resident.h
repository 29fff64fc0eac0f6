// SPDX-License-Identifier: GPL-2.0
/* Memory of another task, read by way of its page tables. What is not there is not fetched: bpf_copy_from_user_task would, and with that
 * wait for whoever backs the page, for good when that is a FUSE server or userfaultfd of an unprivileged user; or bring it in from swap.
 *
 *	address -> mm->pgd -> ... -> entry of the page -> the same page in the kernel's direct map of all memory
 *
 * Where the direct map begins is chosen at boot and not told by BTF. It is found by trial: a start is right when it leads to the code that
 * the current task runs, which can be read either way. That is tried anew in every window, so that where page tables are kept in some
 * other manner (Xen PV) nothing is read.
 *
 * Only for programs that do not sleep: tables are freed by RCU (MMU_GATHER_RCU_TABLE_FREE, always on from 6.15). A task that went on may have
 * let go of them all: the caller drops the walk then. No read can fault, whatever the tables hold. */
#ifndef EMBERWATCH_RESIDENT_H
#define EMBERWATCH_RESIDENT_H

#include "shared/process.h"

#ifndef PAGE_LEVELS
#define PAGE_LEVELS 4
#endif

/* Intel SDM 3A, 4.5; arch/x86/include/asm/pgtable_types.h */
enum {
	ENTRY_PRESENT_USER = 1 | 4,
	ENTRY_UNCACHED = 8 | 16, /* of devices */
	ENTRY_LARGE = 1 << 7,
	ENTRY_SPECIAL = 1 << 9, /* _PAGE_BIT_SPECIAL: not memory of the kernel's */
	ENTRY_INDEX_BITS = 9,
	ENTRY_INDEX_MASK = 511,
	PAGE_BITS = 12,
	LARGEST_PAGE_BITS = 30,
	ADDRESS_BITS = 46, /* of memory with four levels; above lies the bit that says encrypted */
	ENTRY_ADDRESS_BITS = 52,
	GIB_BITS = 30, /* the direct map begins at a multiple */
	STARTS_A_CALL = 32,
	MOST_STARTS = 1 << 16, /* 64 TiB */
};

struct direct_map {
	u64 start; /* 0 when it is not known */
	u64 tried; /* GiB below the page table of the current task */
	u64 window; /* in which it was found to be right */
};

/* What read_user() reads when it is not the memory of the current task. */
struct other_memory {
	struct mm_struct *memory;
	u64 direct_map; /* where it begins */
};

/* Key: 0. */
BPF_ARRAY(direct_map, struct direct_map, 1);

static __always_inline u64 bits(u32 from, u32 to)
{
	return (1ULL << to) - (1ULL << from);
}

/* Where in the direct map, which begins at `start`, the byte at `addr` lies; 0 when it is not in memory. */
static __always_inline u64 find_resident(struct mm_struct *memory, u64 addr, u64 start)
{
	u32 shift = PAGE_BITS + ENTRY_INDEX_BITS * PAGE_LEVELS;
	u64 table = 0, entry = 0, high = 0;

	if (addr >> (shift - 1) || bpf_probe_read_kernel(&table, sizeof(table), &memory->pgd))
		return 0;
#pragma clang loop unroll(disable)
	for (u32 level = 0; level < PAGE_LEVELS; level++) {
		shift -= ENTRY_INDEX_BITS;
		if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(table + (addr >> shift & ENTRY_INDEX_MASK) * sizeof(entry))))
			return 0;
		if ((entry & ENTRY_PRESENT_USER) != ENTRY_PRESENT_USER || entry & ENTRY_UNCACHED)
			return 0;
		if (shift == PAGE_BITS || (entry & ENTRY_LARGE && shift <= LARGEST_PAGE_BITS))
			break;
		high = entry & bits(ADDRESS_BITS, ENTRY_ADDRESS_BITS); /* as every entry of memory has it */
		table = start + (entry & bits(PAGE_BITS, ADDRESS_BITS));
	}
	if (entry & ENTRY_SPECIAL || (entry & bits(ADDRESS_BITS, ENTRY_ADDRESS_BITS)) != high)
		return 0;
	return start + (entry & bits(shift, ADDRESS_BITS)) + (addr & bits(0, shift));
}

/* Read a word; false when it is not in memory, or not in one page. */
static __always_inline bool read_resident(u64 *value, u64 addr, struct mm_struct *memory, u64 start)
{
	u64 found;

	if ((addr & bits(0, PAGE_BITS)) > bits(0, PAGE_BITS) + 1 - sizeof(*value))
		return false;
	found = find_resident(memory, addr, start);
	return found && !bpf_probe_read_kernel(value, sizeof(*value), (void *)found);
}

/* Find out where the direct map begins, a few trials a call. False as long as it is not known. */
static __always_inline bool has_direct_map(struct direct_map *map)
{
	struct task_struct *task = running_task();
	struct mm_struct *memory = (struct mm_struct *)load_u64(&task->mm);
	u64 code_at = 0, code = 0, found = 0, table = 0, start;

	bpf_probe_read_kernel(&code_at, sizeof(code_at), &((struct pt_regs *)bpf_task_pt_regs(task))->ip);
	code_at &= ~(sizeof(code) - 1);
	if (!memory || bpf_probe_read_user(&code, sizeof(code), (void *)code_at) || bpf_probe_read_kernel(&table, sizeof(table), &memory->pgd))
		return false;
	if (map->start && read_resident(&found, code_at, memory, map->start) && found == code)
		return true;
	map->start = 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < STARTS_A_CALL; i++) {
		if (map->tried >= MOST_STARTS)
			return false;
		start = ((table >> GIB_BITS) - map->tried) << GIB_BITS;
		map->tried++;
		if (read_resident(&found, code_at, memory, start) && found == code) {
			map->start = start;
			map->tried = 0;
			return true;
		}
	}
	return false;
}

#endif
