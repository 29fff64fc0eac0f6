// SPDX-License-Identifier: GPL-2.0
/* What is kept of TCP: sessions of open sockets, sums of endpoints, owners of listeners; and how a socket is read. */
#ifndef EMBERWATCH_TCP_RECORDS_H
#define EMBERWATCH_TCP_RECORDS_H

#include "shared/process.h"
#include "shared/sight.h"
#include "shared/window.h"
#include "shared/limit.h"
#include "shared/buckets.h"

#ifndef TCP_SESSION_ENTRIES
#define TCP_SESSION_ENTRIES 16384
#endif

/* enum in include/net/tcp_states.h. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_SYN_SENT = 2,
	STATE_SYN_RECV = 3,
	STATE_FIN_WAIT1 = 4,
	STATE_CLOSE = 7,
	STATE_CLOSE_WAIT = 8,
	STATE_LAST_ACK = 9,
	STATE_LISTEN = 10,
};

enum {
	FAMILY_INET = 2,
	FAMILY_INET6 = 10,
	PROTOCOL_TCP = 6,
	MAPPED_PREFIX = 0xffff0000, /* ::ffff:a.b.c.d, its third word as it lies in memory */
	SOCKET_DONE = 1 << 1,	    /* SOCK_DONE, include/net/sock.h: a FIN has come */
	LISTENER_ENTRIES = 4096,
	CLOSED_ENTRIES = 4096,
	INIT_PID = 1,
};

enum { DIRECTION_OUT = 1, DIRECTION_IN, DIRECTION_LISTEN };

enum {
	SESSION_OWNED = 1,
	SESSION_WANTED = 2,
	SESSION_ESTABLISHED = 4,
	SESSION_CLOSED = 8,
	SESSION_LEFT = 16, /* with its totals in `last` */
	SESSION_OLD = 32,  /* opened before we came: no lifetime */
	SESSION_RESET = 64,
};

/* As COLUMNS in agent/profilers/tcp_rows.py. */
enum tcp_column {
	TCP_EVENTS,
	TCP_CONNECTS,
	TCP_ACCEPTS,
	TCP_REFUSED,
	TCP_TIMEOUTS,
	TCP_FAILED,
	TCP_RESETS,
	TCP_CLOSES,
	TCP_BYTES_OUT,
	TCP_BYTES_IN,
	TCP_SEGMENTS_OUT,
	TCP_SEGMENTS_IN,
	TCP_RETRANSMITS,
	TCP_SYN_RETRANSMITS,
	TCP_CONNECT_NS,
	TCP_LIFETIME_NS,
	TCP_RTT_NS,
	TCP_RTTS,
	TCP_DROPS,
	TCP_LISTEN_DROPS,
	TCP_OBSERVED,
	TCP_RTT_NS_MAX,
	TCP_BACKLOG_MAX,
	TCP_COLUMNS,
};

/* As TCP_KEY there. IPv4 addresses are mapped into IPv6. An endpoint of DIRECTION_IN has our port and no address. */
struct tcp_key {
	u64 start_boot_ns;
	u32 address[4];
	u32 pid;
	u32 exec_id;
	u16 port;
	u8 direction;
	u8 is_kernel_thread;
	u32 padding;
};

/* As TCP_SUMS there. */
struct tcp_sums {
	u64 values[TCP_COLUMNS];
	u32 rtts[BUCKETS_OF_TIME];
	u32 connects[BUCKETS_OF_TIME];
};

/* What the kernel counts of a socket. */
struct tcp_totals {
	u64 bytes_out; /* handed to the network, each byte once */
	u64 bytes_in;
	u32 segments_out;
	u32 segments_in;
	u32 retransmits;
	u32 drops;
	u32 rtt_us; /* smoothed */
	u32 backlog;
};

struct tcp_session {
	struct tcp_key key;
	u64 start_ns;
	u64 established_ns;
	struct tcp_totals counted;
	struct tcp_totals last;
	u64 net;
	u32 local_address[4];
	u16 local_port;
	u16 remote_port;
	u32 flags;
	u32 direction;
	u32 weight; /* so many connections, of which one is followed */
	u64 fences;
};

struct tcp_listener_key {
	u64 net;
	u32 address[4]; /* zeros: any */
	u32 port;
	u32 padding;
};

struct tcp_owner {
	struct process_key process;
	u64 sk;
	u32 is_kernel_thread;
	u32 flags; /* SESSION_OWNED, SESSION_WANTED */
};

/* As TCP_COUNTS there, of one CPU. Counted by atomic additions: a softirq may come in the middle of a call's program. */
struct tcp_counts {
	u64 events;	   /* that the programs were called for */
	u64 observed;	   /* that were stored */
	u64 stored;	   /* what these stand for */
	u64 filtered;
	u64 map_full;
	u64 map_busy;
	u64 sessions_full; /* sockets that are not followed */
	u64 unowned;	   /* events of sockets whose owner never showed */
	u64 others;	   /* endpoints that were put together for want of room */
	u64 stacks_taken;
	u64 stacks_lost;   /* connects whose stack was not taken, or found no room */
};

struct tcp_settings {
	u64 settling; /* the session that the end of a window is at */
	u32 buffer;   /* of the window that ends */
	u32 finding;  /* DIRECTION_LISTEN: listeners; else the other sockets that are there at the start */
	u64 fences;
	u32 one_in; /* of so many new connections one is followed: a power of two */
	u32 most_stacks; /* of one CPU in one window */
};

/* Key: 0. */
BPF_ARRAY(tcp_settings, struct tcp_settings, 1);

/* Key: address of the socket; with its lowest bit set when another of that address was left. When full, a socket is not followed
 * (sessions_full). */
BPF_HASH(tcp_sessions, u64, struct tcp_session, TCP_SESSION_ENTRIES);

/* Keys of sessions that were left. When full they stay in tcp_sessions. */
BPF_HASH(closed_sessions, u64, u64, CLOSED_ENTRIES);

/* Owners of listening sockets. When full a connection that comes in is owned by who closes it. */
BPF_HASH(tcp_listeners, struct tcp_listener_key, struct tcp_owner, LISTENER_ENTRIES);

typedef u64 tcp_words[sizeof(struct tcp_sums) / sizeof(u64)];

/* Made by the collector. When full, an endpoint is counted with others of its process (address and port 0), and when that finds no room
 * either as map_full. */
BPF_HASH(tcp_sums_shape, struct tcp_key, tcp_words, 1);
BPF_ARRAY_OF_MAPS(tcp_sums, "tcp_sums_shape", BUFFERS);

/* Key: buffer. */
BPF_PERCPU_ARRAY(tcp_counts, struct tcp_counts, BUFFERS);

/* Key: 0. Never written. */
BPF_ARRAY(tcp_zeros, struct tcp_sums, 1);

/* Kernel memory whose type the verifier does not know. */
static __always_inline u64 peek_u64(const void *field)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}

static __always_inline u32 peek_u32(const void *field)
{
	u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}

static __always_inline u16 peek_u16(const void *field)
{
	u16 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), field);
	return value;
}

static __always_inline u16 swapped(u16 port)
{
	return port >> 8 | port << 8;
}

/* `any` stays zeros. */
static __always_inline void map_address(u32 *address, const void *field)
{
	address[3] = peek_u32(field);
	address[2] = address[3] ? MAPPED_PREFIX : 0;
}

/* Both ends of a socket. A socket of IPv6 keeps mapped addresses as they are. */
static __always_inline void read_ends(struct sock *sk, struct tcp_session *session)
{
	u16 family = peek_u16(&sk->__sk_common.skc_family);

	session->net = peek_u64(&sk->__sk_common.skc_net);
	session->local_port = peek_u16(&sk->__sk_common.skc_num);
	session->remote_port = swapped(peek_u16(&sk->__sk_common.skc_dport));
	if (family == FAMILY_INET6) {
		bpf_probe_read_kernel(session->key.address, sizeof(session->key.address), &sk->__sk_common.skc_v6_daddr);
		bpf_probe_read_kernel(session->local_address, sizeof(session->local_address), &sk->__sk_common.skc_v6_rcv_saddr);
	} else {
		map_address(session->key.address, &sk->__sk_common.skc_daddr);
		map_address(session->local_address, &sk->__sk_common.skc_rcv_saddr);
	}
}

/* The endpoint that a session counts for. */
static __always_inline void name_endpoint(struct tcp_session *session, u32 direction)
{
	session->key.direction = direction == DIRECTION_OUT ? DIRECTION_OUT : DIRECTION_IN;
	session->key.port = direction == DIRECTION_OUT ? session->remote_port : session->local_port;
	if (direction != DIRECTION_OUT)
		__builtin_memset(session->key.address, 0, sizeof(session->key.address));
}

static __always_inline void read_totals(struct sock *sk, struct tcp_totals *totals)
{
	struct tcp_sock *tcp = (struct tcp_sock *)sk;

	totals->bytes_out = peek_u64(&tcp->bytes_sent) - peek_u64(&tcp->bytes_retrans);
	/* A FIN counts as a byte that was received. */
	totals->bytes_in = peek_u64(&tcp->bytes_received) - (peek_u64(&sk->__sk_common.skc_flags) & SOCKET_DONE ? 1 : 0);
	totals->segments_out = peek_u32(&tcp->segs_out);
	totals->segments_in = peek_u32(&tcp->segs_in);
	totals->retransmits = peek_u32(&tcp->total_retrans);
	totals->drops = peek_u32(&sk->sk_drops);
	totals->rtt_us = peek_u32(&tcp->srtt_us) >> 3;
	totals->backlog = peek_u32(&sk->sk_ack_backlog);
}

#endif
