// SPDX-License-Identifier: GPL-2.0
/* Log2 histograms of time, as BUCKETS in agent/records/event_drain.py: bucket 0 holds what is under 1 us, bucket i what is in
 * [2^(i-1), 2^i) us, the last all that is longer. */
#ifndef EMBERWATCH_BUCKETS_H
#define EMBERWATCH_BUCKETS_H

enum {
	BUCKETS_OF_TIME = 32,
	NS_OF_US = 1000,
	LEAST_BITS = 10, /* of 1,000 */
};

/* Bits of a number that is not 0. */
static __always_inline u32 bits_of(u64 value)
{
	u32 bits = 1;

	if (value >> 32) {
		value >>= 32;
		bits += 32;
	}
	if (value >> 16) {
		value >>= 16;
		bits += 16;
	}
	if (value >> 8) {
		value >>= 8;
		bits += 8;
	}
	if (value >> 4) {
		value >>= 4;
		bits += 4;
	}
	if (value >> 2) {
		value >>= 2;
		bits += 2;
	}
	return bits + (value >> 1);
}

/* Without a division: a time of b bits lies in bucket b - 10 or the next one, for 1,000 is little less than 2^10. */
static __always_inline u32 bucket_of_ns(u64 ns)
{
	u32 bucket;

	if (ns < NS_OF_US)
		return 0;
	bucket = bits_of(ns) - LEAST_BITS;
	if (ns >= (u64)NS_OF_US << (bucket & (BUCKETS_OF_TIME - 1)))
		bucket++;
	if (bucket >= BUCKETS_OF_TIME)
		bucket = BUCKETS_OF_TIME - 1;
	/* The verifier of Linux 6.1 takes bounds from a mask only, which the compiler leaves out when it knows that it changes nothing. */
	asm volatile("" : "+r"(bucket));
	return bucket & (BUCKETS_OF_TIME - 1);
}

#endif
