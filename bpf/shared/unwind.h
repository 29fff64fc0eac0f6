// SPDX-License-Identifier: GPL-2.0
/* User stacks by tables made of .eh_frame: no frame pointers needed. One program, entered by a tail call, walks UNWIND_STEP frames
 * and calls itself until the stack ends: on_tick_unwind of samples (cpu.bpf.c), on_event_unwind of all other events (events.h).
 *
 *	process -> range of `unwind_mappings`, sorted -> pages of 1 KiB of the file -> rows -> rule
 *
 * The collector fills the tables through shared memory. It writes a range before it names it and takes it back only after it has
 * waited for the handlers (window.h), so a walk never meets half a table, nor that of another file. */
#ifndef EMBERWATCH_UNWIND_H
#define EMBERWATCH_UNWIND_H

#include "shared/home.h"
#include "shared/resident.h"

enum {
	UNWIND_STEP = 32,
	UNWIND_ROWS = 1 << 22,
	UNWIND_PAGES = 1 << 19,
	UNWIND_RULES = 1 << 16,
	UNWIND_MAPPINGS = 1 << 16,
	UNWIND_PROCESSES = 1 << 14,
	PAGE_SHIFT = 10,
	ROW_SEARCH_STEPS = 11,	   /* a page has 1,024 addresses */
	MAPPING_SEARCH_STEPS = 13, /* 4,096 mappings a process */
	NEAR_BYTES = 1 << 20,	   /* a frame pointer further up than this is none */
	COMPAT_CODE_SEGMENT = 0x23, /* __USER32_CS: a 32-bit program */
	START_SLACK_BYTES = 128,
	UNWIND_FILES = 1 << 13,
	FILE_SEGMENTS = 2,
	/* Of a walk. Each costs two tail calls of the 33 that the kernel allows; frames and finisher take six. */
	MOST_LOOKS = 12,
	STOP_LOOK = 255, /* no reason why a walk ends: it stands at code that is to be looked up (look.h) */
	TELL_AGAIN_NS = 50000000,
};

/* As RuleKind in agent/records/unwind.py, which says what each means and how a rule is packed. */
enum rule_kind { RULE_NONE, RULE_SP, RULE_BP, RULE_PLT, RULE_SIGNAL, RULE_DEREF, RULE_END, RULE_UNSUPPORTED };

enum {
	RULE_KIND_MASK = 7,
	RULE_OFFSET_SHIFT = 3,
	RULE_OFFSET_MASK = 0xffff,
	RULE_SP_BASE = 1 << 19,
	RULE_BP_SHIFT = 20,
	RULE_REGISTER_SHIFT = 12, /* within the offset of RULE_UNSUPPORTED */
	RULE_REGISTER_OFFSET_MASK = 0xfff,
	DWARF_RAX = 0,
	DWARF_R10 = 10,
	DWARF_R11 = 11,
	RULE_FRAME_POINTER = RULE_BP | 2 << RULE_OFFSET_SHIFT | 2 << RULE_BP_SHIFT,
	SIGNAL_BP = 120, /* in struct ucontext, as the kernel lays it out for rt_sigreturn */
	SIGNAL_SP = 160,
	SIGNAL_IP = 168,
};

/* As MappingKind in agent/kernel/unwind_maps.py. */
enum mapping_kind { MAPPING_NO_TABLE, MAPPING_TABLE, MAPPING_FRAME_POINTERS, MAPPING_JIT };

struct unwind_mapping {
	u64 start;
	u64 end;
	u64 bias; /* address in the process - address in the file */
	u32 first_page;
	u32 low_page; /* number of the table's first page in the file's addresses */
	u32 page_count;
	u32 kind;
};

/* A range of unwind_mappings. */
struct unwind_process {
	u32 first;
	u32 count;
	u64 told_ns; /* when the collector was told last that it does not hold */
};

/* One content of one file, as BinaryCache tells files apart, but for the device: on overlays that is another one here than in stat(). */
struct file_key {
	u64 inode;
	u64 size_bytes;
	u64 changed_s; /* ctime: whoever replaces what is in a file changes it */
	u32 changed_ns;
	u32 padding;
};

/* A segment with code: offsets of the file that it holds, and what bias() in agent/kernel/unwind_files.py adds. */
struct file_segment {
	u64 start;
	u64 size;
	u64 shift; /* offset in the file - address in the file */
};

/* How code of a file is walked. */
struct unwind_file {
	u32 first_page;
	u32 low_page;
	u32 page_count;
	u32 kind;
	struct file_segment segments[FILE_SEGMENTS];
};

/* The frame being left, and the mapping its code lies in. */
struct unwinding {
	u64 ip;
	u64 sp;
	u64 bp;
	u64 ax; /* these three of the innermost frame only */
	u64 r10;
	u64 r11;
	struct unwind_mapping mapping;
	struct unwind_process process;
	u32 is_exact; /* ip is where the CPU was, no return address: the innermost frame, or one that a signal interrupted */
	u32 has_registers;
	u32 looks_left; /* 0 where nothing can be looked up: another task, an old kernel */
	u32 is_looked;	/* this frame was */
};

/* Two rows an element: offset in the page << 16 | index of the rule. Mapped by the collector. */
BPF_F_TABLE("array", u32, u64, unwind_rows, UNWIND_ROWS / 2, BPF_F_MMAPABLE);
/* First row | number of rows << 32. Mapped by the collector. */
BPF_F_TABLE("array", u32, u64, unwind_pages, UNWIND_PAGES, BPF_F_MMAPABLE);
/* Distinct rules of all tables. Mapped by the collector. */
BPF_F_TABLE("array", u32, u64, unwind_rules, UNWIND_RULES, BPF_F_MMAPABLE);
/* Mappings of processes; ranges never overlap. Mapped by the collector. */
BPF_F_TABLE("array", u32, struct unwind_mapping, unwind_mappings, UNWIND_MAPPINGS, BPF_F_MMAPABLE);
/* Processes whose stacks are walked here. When full, the others are walked by frame pointers. */
BPF_HASH(unwind_processes, struct process_key, struct unwind_process, UNWIND_PROCESSES);
/* Files whose tables are here. When full, or for files with more segments of code, new processes are walked once they were told of. */
BPF_HASH(unwind_files, struct file_key, struct unwind_file, UNWIND_FILES);
/* Key: enum scratch. The walk under way. */
BPF_PERCPU_ARRAY(unwinding, struct unwinding, SCRATCHES);

/* Of the current task, or of the memory of another one (resident.h). */
static __always_inline bool read_user(u64 *value, u64 addr, struct other_memory *other)
{
	if (other)
		return read_resident(value, addr, other->memory, other->direct_map);
	return !bpf_probe_read_user(value, sizeof(*value), (void *)addr);
}

/* The mapping that holds `addr`, into at->mapping. */
static __always_inline bool find_mapping(struct unwinding *at, u64 addr)
{
	u32 low = at->process.first, high = low + at->process.count;

	if (addr >= at->mapping.start && addr < at->mapping.end)
		return true;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MAPPING_SEARCH_STEPS; i++) {
		u32 middle = low + ((high - low) >> 1);
		struct unwind_mapping *mapping;

		if (low >= high)
			break;
		mapping = unwind_mappings.lookup(&middle);
		if (!mapping)
			break;
		if (addr < mapping->start) {
			high = middle;
		} else if (addr >= mapping->end) {
			low = middle + 1;
		} else {
			at->mapping = *mapping;
			return true;
		}
	}
	return false;
}

/* The rule of an address of the file, 0 where there is none. */
static __always_inline u32 find_rule(struct unwind_mapping *mapping, u64 addr)
{
	u32 page = (u32)(addr >> PAGE_SHIFT) - mapping->low_page;
	u32 wanted = addr & ((1 << PAGE_SHIFT) - 1);
	u32 low, high, found = 0;
	u64 *rows_of_page, *rule;

	if (page >= mapping->page_count)
		return 0;
	page += mapping->first_page;
	rows_of_page = unwind_pages.lookup(&page);
	if (!rows_of_page)
		return 0;
	low = (u32)*rows_of_page;
	high = low + (u32)(*rows_of_page >> 32);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < ROW_SEARCH_STEPS; i++) {
		u32 middle = low + ((high - low) >> 1), element = middle >> 1, row;
		u64 *two_rows;

		if (low >= high)
			break;
		two_rows = unwind_rows.lookup(&element);
		if (!two_rows)
			break;
		row = middle & 1 ? *two_rows >> 32 : *two_rows;
		if (row >> 16 <= wanted) {
			found = row;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	found &= 0xffff;
	rule = unwind_rules.lookup(&found);
	return rule ? *rule : 0;
}

/* What leads from the current frame to its caller; without one *stop tells why. Frame pointers serve where there is no rule (code made
 * at run time, assembly) and rbp looks like one: the caller must still lie in a mapping. */
static __always_inline u32 choose_rule(struct unwinding *at, u32 *stop)
{
	u32 kind = at->mapping.kind, rule = 0;

	if (kind == MAPPING_NO_TABLE) {
		*stop = STOP_NO_TABLE;
		return 0;
	}
	if (kind == MAPPING_TABLE)
		rule = find_rule(&at->mapping, at->ip - 1 + at->is_exact - at->mapping.bias);
	if (rule)
		return rule;
	if (kind == MAPPING_FRAME_POINTERS && !at->bp) { /* System V ABI, x86-64, 3.4.1: it marks the outermost frame */
		*stop = STOP_BOTTOM;
		return 0;
	}
	if (kind != MAPPING_FRAME_POINTERS && at->bp - at->sp >= NEAR_BYTES) {
		*stop = at->mapping.end ? STOP_NO_ROW : STOP_NO_MAPPING;
		return 0;
	}
	return RULE_FRAME_POINTER;
}

static __always_inline u32 leave_signal_frame(struct unwinding *at, struct other_memory *other)
{
	u64 sp = at->sp;

	if (!read_user(&at->ip, sp + SIGNAL_IP, other) || !read_user(&at->bp, sp + SIGNAL_BP, other) || !read_user(&at->sp, sp + SIGNAL_SP, other))
		return STOP_UNREADABLE;
	at->is_exact = 1;
	at->has_registers = 0;
	return STOP_NONE;
}

/* The CFA in another register than rsp and rbp, as compilers (r10) and assembly (rax, r11) keep it for some instructions: 0 unless it is
 * known. */
static __always_inline u64 frame_in_register(struct unwinding *at, u64 offset)
{
	u64 number = offset >> RULE_REGISTER_SHIFT, words = offset & RULE_REGISTER_OFFSET_MASK;

	if (!at->has_registers || !offset)
		return 0;
	if (number == DWARF_R11)
		return at->r11 + words * 8;
	if (number == DWARF_R10)
		return at->r10 + words * 8;
	return number == DWARF_RAX ? at->ax + words * 8 : 0;
}

/* From a frame to its caller. Returns 0 to go on, or why there is none. */
static __always_inline u32 leave_frame(struct unwinding *at, struct other_memory *other)
{
	u32 stop = STOP_NONE, rule = choose_rule(at, &stop);
	u32 kind = rule & RULE_KIND_MASK, bp_words = rule >> RULE_BP_SHIFT;
	u64 offset = rule >> RULE_OFFSET_SHIFT & RULE_OFFSET_MASK, deref_offset = (u64)(s64)(s16)offset * 8;
	u64 frame_addr, bp = at->bp, ip = 0;

	if (stop)
		return stop;
	if (kind == RULE_SP) {
		frame_addr = at->sp + offset * 8;
	} else if (kind == RULE_BP) {
		frame_addr = at->bp + offset * 8;
	} else if (kind == RULE_PLT) {
		frame_addr = at->sp + 8 + ((at->ip & 15) >= offset ? 8 : 0);
	} else if (kind == RULE_SIGNAL) {
		return leave_signal_frame(at, other);
	} else if (kind == RULE_DEREF && rule & RULE_SP_BASE) {
		if (!read_user(&frame_addr, at->sp + deref_offset, other))
			return STOP_UNREADABLE;
		frame_addr += 8;
	} else if (kind == RULE_DEREF) {
		if (!read_user(&frame_addr, at->bp + deref_offset, other) || !read_user(&bp, at->bp, other))
			return STOP_UNREADABLE;
		bp_words = 0;
	} else if (kind == RULE_UNSUPPORTED) {
		frame_addr = frame_in_register(at, offset);
		if (!frame_addr)
			return STOP_UNSUPPORTED;
	} else {
		return STOP_BOTTOM;
	}
	if (!read_user(&ip, frame_addr - 8, other) || (bp_words && !read_user(&bp, frame_addr - 8 * (u64)bp_words, other)))
		return STOP_UNREADABLE;
	if (!ip)
		return STOP_ZERO_RETURN;
	/* Go changes stacks by its own frame pointers; that it cannot go in circles is the cap's affair. */
	if (frame_addr <= at->sp && at->mapping.kind != MAPPING_FRAME_POINTERS)
		return STOP_NOT_GROWING;
	at->ip = ip;
	at->sp = frame_addr;
	at->bp = bp;
	at->is_exact = at->has_registers = 0;
	return STOP_NONE;
}

/* Walk UNWIND_STEP frames at most. A caller is kept when its code lies in a mapping: what does not is no frame. The innermost one is
 * kept in any case; code that was mapped a moment ago may well be left by frame pointers.
 * After a signal the interrupted address is kept one higher, like a return address, so that all but the first are alike.
 * Returns 0 when there is more, STOP_LOOK where code is to be looked up first, or why the walk ended. */
static __always_inline u32 walk_frames(struct unwinding *at, struct stack *stack, struct other_memory *other)
{
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < UNWIND_STEP; i++) {
		u32 length = stack->length, stop;
		u64 place, kept;

		if (length >= STACK_FRAMES)
			return STOP_CAP;
		if (!find_mapping(at, at->ip - 1 + at->is_exact)) {
			if (at->looks_left && !at->is_looked)
				return STOP_LOOK;
			if (length)
				return STOP_NO_MAPPING;
			at->mapping.kind = MAPPING_JIT;
		}
		place = length;
		kept = at->ip + (length && at->is_exact);
		/* Out of the compiler's sight: it would leave the comparison out, which the verifier of 6.1 has forgotten by now. */
		asm volatile("" : "+r"(place));
		if (place >= STACK_FRAMES)
			return STOP_CAP;
		stack->addresses[place] = kept;
		stack->length = place + 1;
		stop = leave_frame(at, other);
		if (stop)
			return stop;
		at->is_looked = 0;
	}
	return STOP_NONE;
}

/* Whether the stack pointer is where the kernel set it when the program began: start-up code of a C library without rules. */
static __always_inline bool is_at_start(struct unwinding *at, struct task_struct *task)
{
	struct mm_struct *mm = 0;
	u64 start = 0;

	bpf_probe_read_kernel(&mm, sizeof(mm), &task->mm);
	bpf_probe_read_kernel(&start, sizeof(start), &mm->start_stack);
	return start - at->sp <= START_SLACK_BYTES;
}

/* Whether to tell the collector that a process has mappings it does not know of: now and then at most, for a stray return address looks
 * the same. */
static __always_inline bool should_tell(struct process_key *key)
{
	struct unwind_process *process = unwind_processes.lookup(key);
	u64 now_ns = bpf_ktime_get_ns();

	if (!process || now_ns - process->told_ns < TELL_AGAIN_NS)
		return false;
	process->told_ns = now_ns;
	return true;
}

static __always_inline u32 final_stop(struct unwinding *at, u32 stop, struct task_struct *task)
{
	return stop != STOP_BOTTOM && stop != STOP_CAP && is_at_start(at, task) ? STOP_BOTTOM : stop;
}

#endif
