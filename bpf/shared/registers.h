// SPDX-License-Identifier: GPL-2.0
/* Where the CPU was when the event came. */
#ifndef EMBERWATCH_REGISTERS_H
#define EMBERWATCH_REGISTERS_H

enum { USER_MODE_MASK = 3 }; /* privilege level in the code segment selector */

/* Read it once: the compiler may not keep a pointer into the context. */
static __always_inline u64 code_segment_of(struct bpf_perf_event_data *ctx)
{
#ifdef EMBERWATCH_REGS_CSX
	return ctx->regs.csx;
#else
	return ctx->regs.cs;
#endif
}

static __always_inline bool is_user_mode(u64 code_segment)
{
	return (code_segment & USER_MODE_MASK) != 0;
}

#endif
