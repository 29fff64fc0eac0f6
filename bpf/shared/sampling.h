// SPDX-License-Identifier: GPL-2.0
/* Which long waits have their stacks taken, where there are many: a wait of d ns is taken with the probability d / sample_ns and stands for
 * sample_ns, so that sums of time stay true whatever is left out; all that last longer are taken and stand for themselves.
 *
 * sample_ns is of a CPU: it doubles with every MOST_WALKS waits taken in a slot of 17 ms, and is halved for each slot with less than half of
 * them. A walk and that of its waker cost 10 us together: a quarter of a percent of a CPU, and more stacks than samples have. */
#ifndef EMBERWATCH_SAMPLING_H
#define EMBERWATCH_SAMPLING_H

#include "shared/thread.h"

enum {
	SLOT_BITS = 24,
	MOST_WALKS = 4,
	LEAST_SAMPLE_NS = 1 << 17,
	MOST_SAMPLE_NS = 1 << 30, /* times a random number of 32 bits it still is a u64 */
	LONGEST_DECAY = 31,
	PARTS = 256, /* of a count */
};

/* How much time a wait of `ns` stands for; 0 when it is left out. */
static __always_inline u64 stands_for(u64 ns, u64 now_ns, struct wait_counts *counts)
{
	u64 slot = now_ns >> SLOT_BITS, gone = slot - counts->slot, sample_ns;
	int zero = 0;
	struct wait_gate *gate = wait_gate.lookup(&zero);

	if (!gate || !gate->most_events)
		return ns;
	if (gone) {
		if (counts->slot_walks * 2 >= MOST_WALKS)
			gone--;
		counts->sample_ns >>= gone < LONGEST_DECAY ? gone : LONGEST_DECAY;
		if (counts->sample_ns < LEAST_SAMPLE_NS)
			counts->sample_ns = 0;
		counts->slot = slot;
		counts->slot_walks = 0;
	}
	sample_ns = counts->sample_ns;
	if (ns < sample_ns && (bpf_get_prandom_u32() * sample_ns) >> 32 >= ns)
		return 0;
	if (++counts->slot_walks % MOST_WALKS == 0 && sample_ns < MOST_SAMPLE_NS)
		counts->sample_ns = later(2 * sample_ns, LEAST_SAMPLE_NS);
	return later(ns, sample_ns);
}

#endif
