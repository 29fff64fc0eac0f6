// SPDX-License-Identifier: GPL-2.0
/* TCP sockets that are open, and the sums of their endpoints.
 *
 *	session (by socket): owner, endpoint, what was counted --- settle() ---> sums (by owner and endpoint) of a window
 *
 * settle() adds what the kernel counted for the socket since the last time, so that nothing counts twice. It runs when a socket
 * closes, and for all open ones at the end of a window, and these two must not meet in one session. Each says first what it is about
 * and then looks at what the other is about, with a full fence between: of two that meet, at least one sees the other.
 *
 *	the end of a window: settling = key, fence, session closed? then leave it		   ... settling = 0
 *	a socket that closes: session closed, fence, settling == key? then leave the totals in it, for the end of the next window */
#ifndef EMBERWATCH_TCP_SESSIONS_H
#define EMBERWATCH_TCP_SESSIONS_H

#include "shared/tcp_records.h"

/* What is written before is written first: x86 keeps the order that the compiler leaves. */
static __always_inline void write_first(void)
{
	asm volatile("" ::: "memory");
}

/* What is written before is seen by all before anything is read after it: an atomic addition is what BPF has for that. */
static __always_inline void fence(u64 *fences)
{
	__sync_fetch_and_add(fences, 1);
}

static __always_inline struct tcp_counts *counts_of(int buffer)
{
	return tcp_counts.lookup(&buffer);
}

static __always_inline struct tcp_sums *find_sums(void *inner, struct tcp_key *key, int *refusal)
{
	int zero = 0;
	struct tcp_sums *sums = bpf_map_lookup_elem(inner, key), *zeros;

	if (sums)
		return sums;
	zeros = tcp_zeros.lookup(&zero);
	if (zeros)
		*refusal = bpf_map_update_elem(inner, key, zeros, BPF_NOEXIST);
	return bpf_map_lookup_elem(inner, key);
}

/* Where a session counts an event now; 0 when it does not, and then that is counted. */
static __always_inline struct tcp_sums *sums_of(struct tcp_session *session, int buffer)
{
	void *inner = tcp_sums.lookup(&buffer);
	struct tcp_counts *counts = counts_of(buffer);
	struct tcp_key key = {};
	struct tcp_sums *sums;
	u32 events = session->weight;
	int refusal = 0;

	if (!inner || !counts)
		return 0;
	if (!(session->flags & SESSION_OWNED)) {
		__sync_fetch_and_add(&counts->unowned, events);
		return 0;
	}
	if (!(session->flags & SESSION_WANTED)) {
		__sync_fetch_and_add(&counts->filtered, events);
		return 0;
	}
	key = session->key;
	sums = find_sums(inner, &key, &refusal);
	if (!sums && refusal == ERROR_TOO_BIG) {
		__builtin_memset(key.address, 0, sizeof(key.address));
		key.port = 0;
		__sync_fetch_and_add(&counts->others, events);
		sums = find_sums(inner, &key, &refusal);
	}
	if (!sums) {
		if (refusal == ERROR_TOO_BIG)
			__sync_fetch_and_add(&counts->map_full, events);
		else
			__sync_fetch_and_add(&counts->map_busy, events);
		return 0;
	}
	__sync_fetch_and_add(&counts->observed, 1);
	__sync_fetch_and_add(&counts->stored, events);
	__sync_fetch_and_add(&sums->values[TCP_EVENTS], events);
	__sync_fetch_and_add(&sums->values[TCP_OBSERVED], 1);
	return sums;
}

/* With what the session stands for. */
static __always_inline void add_to(struct tcp_sums *sums, struct tcp_session *session, u32 column, u64 value)
{
	if (value)
		__sync_fetch_and_add(&sums->values[column & 31], value * session->weight);
}

static __always_inline void add_to_bucket(u32 *buckets, struct tcp_session *session, u64 ns)
{
	__sync_fetch_and_add(&buckets[bucket_of_ns(ns) & (BUCKETS_OF_TIME - 1)], session->weight);
}

static __always_inline void count_event(void)
{
	struct tcp_counts *counts = counts_of(active_buffer());

	if (counts)
		__sync_fetch_and_add(&counts->events, 1);
}

/* Two CPUs at once may leave the smaller one; sums are not concerned. */
static __always_inline void raise_to(struct tcp_sums *sums, u32 column, u64 value)
{
	if (sums->values[column & 31] < value)
		sums->values[column & 31] = value;
}

static __always_inline bool is_settled(struct tcp_totals *counted, struct tcp_totals *totals)
{
	return counted->segments_out == totals->segments_out && counted->segments_in == totals->segments_in &&
	       counted->bytes_out == totals->bytes_out && counted->bytes_in == totals->bytes_in && counted->drops == totals->drops;
}

/* Add what the kernel counted since the last time. Totals that went back are those of another socket at the same address, or a FIN that
 * was half done: nothing is added. */
static __always_inline void settle(struct tcp_session *session, struct tcp_totals *totals, int buffer)
{
	struct tcp_totals *counted = &session->counted;
	struct tcp_sums *sums;
	u64 rtt_ns = (u64)totals->rtt_us * NS_OF_US;

	if (is_settled(counted, totals) || totals->bytes_out < counted->bytes_out || totals->bytes_in < counted->bytes_in ||
	    (s32)(totals->segments_out - counted->segments_out) < 0 || (s32)(totals->segments_in - counted->segments_in) < 0)
		return;
	sums = sums_of(session, buffer);
	if (sums) {
		add_to(sums, session, TCP_BYTES_OUT, totals->bytes_out - counted->bytes_out);
		add_to(sums, session, TCP_BYTES_IN, totals->bytes_in - counted->bytes_in);
		add_to(sums, session, TCP_SEGMENTS_OUT, totals->segments_out - counted->segments_out);
		add_to(sums, session, TCP_SEGMENTS_IN, totals->segments_in - counted->segments_in);
		add_to(sums, session, TCP_RETRANSMITS, totals->retransmits - counted->retransmits);
		add_to(sums, session, TCP_DROPS, totals->drops - counted->drops);
		if (rtt_ns) {
			add_to(sums, session, TCP_RTT_NS, rtt_ns);
			add_to(sums, session, TCP_RTTS, 1);
			raise_to(sums, TCP_RTT_NS_MAX, rtt_ns);
			add_to_bucket(sums->rtts, session, rtt_ns);
		}
	}
	session->counted = *totals;
}

static __always_inline void settle_listener(struct tcp_session *session, struct tcp_totals *totals, int buffer)
{
	u32 drops = totals->drops - session->counted.drops;
	struct tcp_sums *sums;

	if (!drops && !totals->backlog)
		return;
	sums = sums_of(session, buffer);
	if (sums) {
		add_to(sums, session, TCP_LISTEN_DROPS, drops);
		raise_to(sums, TCP_BACKLOG_MAX, totals->backlog);
	}
	session->counted.drops = totals->drops;
}

/* The session of a socket that is open. */
static __always_inline struct tcp_session *find_session(u64 sk)
{
	u64 key = sk;
	struct tcp_session *session = tcp_sessions.lookup(&key);

	if (session && !(session->flags & SESSION_CLOSED))
		return session;
	key |= 1;
	session = tcp_sessions.lookup(&key);
	return session && !(session->flags & SESSION_CLOSED) ? session : 0;
}

static __always_inline void keep_session(u64 sk, struct tcp_session *session)
{
	struct tcp_counts *counts = counts_of(active_buffer());
	u64 key = sk;
	int refusal = tcp_sessions.insert(&key, session);

	if (refusal == ERROR_EXISTS) {
		key |= 1;
		refusal = tcp_sessions.insert(&key, session);
	}
	if (refusal && counts)
		__sync_fetch_and_add(&counts->sessions_full, 1);
}

/* One that was there before us, unless it is known. */
static __always_inline void keep_old_session(u64 sk, struct tcp_session *session)
{
	struct tcp_counts *counts = counts_of(active_buffer());
	int refusal = tcp_sessions.insert(&sk, session);

	if (refusal && refusal != ERROR_EXISTS && counts)
		__sync_fetch_and_add(&counts->sessions_full, 1);
}

static __always_inline u64 key_of(u64 sk, struct tcp_session *session)
{
	u64 key = sk;

	return tcp_sessions.lookup(&key) == session ? sk : sk | 1;
}

/* True when the end of a window is not at this session, and will leave it alone until SESSION_CLOSED is taken back. */
static __always_inline bool claim(struct tcp_session *session, u64 key, struct tcp_settings *setting)
{
	session->flags |= SESSION_CLOSED;
	fence(&session->fences);
	return *(volatile u64 *)&setting->settling != key;
}

static __always_inline void end_session(u64 sk, struct tcp_session *session, struct tcp_settings *setting)
{
	u64 key = key_of(sk, session), yes = 1;
	struct tcp_totals totals = {};

	if (session->flags & SESSION_ESTABLISHED)
		read_totals((struct sock *)sk, &totals);
	if (claim(session, key, setting)) {
		if (session->flags & SESSION_ESTABLISHED)
			settle(session, &totals, active_buffer());
		tcp_sessions.delete(&key);
		return;
	}
	session->last = totals;
	write_first();
	session->flags |= SESSION_LEFT;
	closed_sessions.update(&key, &yes);
}

#endif
