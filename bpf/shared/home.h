// SPDX-License-Identifier: GPL-2.0
/* The stacks of a window, of all kinds together: what is seen on the CPU and in a wait is kept once. */
#ifndef EMBERWATCH_HOME_H
#define EMBERWATCH_HOME_H

#include "shared/window.h"
#include "shared/limit.h"
#include "shared/stack.h"

/* Shape of the inner maps; the real ones are made by the collector, as large as it needs. When they are full an event is kept
 * without its stack (STACK_MAP_FULL). */
BPF_HASH(stacks_shape, u64, stack_words, 1);
BPF_ARRAY_OF_MAPS(stacks, "stacks_shape", BUFFERS);

static __always_inline bool find_home(struct stack_home *home, int buffer, u32 scratch)
{
	int zero = 0;
	struct settings *setting = settings.lookup(&zero);

	home->stacks = stacks.lookup(&buffer);
	home->seed = setting ? setting->stack_seed : 0;
	home->scratch = scratch;
	return setting && home->stacks;
}

#endif
