// SPDX-License-Identifier: GPL-2.0
/* Which waits on a futex are for a lock.
 *
 * Condition variables, semaphores and joins wait by the same call and are no locks: they wait for work. A lock waits for its word to leave
 * the value "taken, and somebody waits", which is 2 in glibc, in Rust's library and in Go's runtime, or has a call of its own
 * (FUTEX_LOCK_PI). */
#ifndef EMBERWATCH_FUTEX_H
#define EMBERWATCH_FUTEX_H

enum {
	CALL_FUTEX = 202, /* arch/x86/entry/syscalls/syscall_64.tbl */
	CALL_FUTEX_WAITV = 449,
	CALL_FUTEX_WAIT = 455,
	FUTEX_COMMAND_MASK = 0x7f, /* include/uapi/linux/futex.h */
	FUTEX_COMMAND_WAIT = 0,
	FUTEX_COMMAND_LOCK_PI = 6,
	FUTEX_COMMAND_WAIT_BITSET = 9,
	FUTEX_COMMAND_LOCK_PI2 = 13,
	FUTEX_CONTENDED = 2,
};

/* As in struct futex_waitv. */
struct futex_waited {
	u64 value;
	u64 address;
};

static __always_inline bool is_futex_wait(u64 call)
{
	return call == CALL_FUTEX || call == CALL_FUTEX_WAIT || call == CALL_FUTEX_WAITV;
}

static __always_inline bool is_priority_lock(u64 call, u64 second)
{
	u32 command = second & FUTEX_COMMAND_MASK;

	return call == CALL_FUTEX && (command == FUTEX_COMMAND_LOCK_PI || command == FUTEX_COMMAND_LOCK_PI2);
}

/* The value that is waited to go away, and where it stands; of several the first. `arguments` are those of the call. */
static __always_inline void read_waited(struct futex_waited *waited, u64 call, const u64 *arguments)
{
	u32 command = arguments[1] & FUTEX_COMMAND_MASK;

	waited->address = arguments[0];
	if (call == CALL_FUTEX_WAIT)
		waited->value = (u32)arguments[1];
	else if (call == CALL_FUTEX_WAITV)
		bpf_probe_read_user(waited, sizeof(*waited), (void *)arguments[0]);
	else if (command == FUTEX_COMMAND_WAIT || command == FUTEX_COMMAND_WAIT_BITSET)
		waited->value = (u32)arguments[2];
}

#endif
