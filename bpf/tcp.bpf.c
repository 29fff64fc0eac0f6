// SPDX-License-Identifier: GPL-2.0
/* Who talks TCP with whom, how much and how well: sums by process and endpoint.
 * Hook: raw tracepoints inet_sock_set_state (on_tcp_state), tcp_receive_reset and tcp_send_reset (on_tcp_reset), tcp_retransmit_synack
 * (on_tcp_synack), tcp_destroy_sock (on_tcp_destroy). bpf_iter programs find the sockets that are there at the start
 * (bpf_iter__task_file) and count what went through the open ones at the end of a window (bpf_iter__bpf_map_elem).
 * Who connects is walked there, and on_tcp_connect goes on; retransmissions come in softirq, where there is no stack of anybody's.
 * State: a session for each socket that is open, with what was counted of it; sums by endpoint in two buffers; all bounded, see below.
 * The owner is the process that called connect or listen. Most events come in softirq, on top of any task: `current` is asked where a
 * call is sure to lie below, and nowhere else.
 * Needs: Linux 5.10. Cost: nothing for data that flows; see bpf/README.md for the measured figures of a change of state. */
#include "shared/tcp_connects.h"

enum {
	ERROR_TIMED_OUT = 110, /* ETIMEDOUT */
	ERROR_REFUSED = 111,   /* ECONNREFUSED */
	FILE_KIND_MASK = 0170000,
	FILE_KIND_SOCKET = 0140000,
};

static __always_inline void own(struct tcp_session *session, struct current_task *current)
{
	int zero = 0;
	struct settings *limiting = settings.lookup(&zero);

	session->key.start_boot_ns = current->process.start_boot_ns;
	session->key.pid = current->process.pid;
	session->key.exec_id = current->process.exec_id;
	session->key.is_kernel_thread = current->is_kernel_thread;
	session->flags |= SESSION_OWNED;
	if (limiting && (!limiting->limits || is_wanted(&current->process, limiting->limits)))
		session->flags |= SESSION_WANTED;
	if (!current->is_kernel_thread)
		signal_once(&current->process);
}

static __always_inline void listener_key_of(struct tcp_session *session, struct tcp_listener_key *key)
{
	__builtin_memcpy(key->address, session->local_address, sizeof(key->address));
	key->net = session->net;
	key->port = session->local_port;
}

static __always_inline void keep_listener(u64 sk, struct tcp_session *session)
{
	struct tcp_listener_key key = {};
	struct tcp_owner owner = {};

	listener_key_of(session, &key);
	owner.process.start_boot_ns = session->key.start_boot_ns;
	owner.process.pid = session->key.pid;
	owner.process.exec_id = session->key.exec_id;
	owner.is_kernel_thread = session->key.is_kernel_thread;
	owner.flags = session->flags & (SESSION_OWNED | SESSION_WANTED);
	owner.sk = sk;
	tcp_listeners.update(&key, &owner);
}

/* The listener of a session: at its address, or at any. */
static __always_inline struct tcp_owner *find_listener(struct tcp_session *session)
{
	struct tcp_listener_key key = {};
	struct tcp_owner *owner;

	listener_key_of(session, &key);
	owner = tcp_listeners.lookup(&key);
	if (owner)
		return owner;
	__builtin_memset(key.address, 0, sizeof(key.address));
	return tcp_listeners.lookup(&key);
}

static __always_inline void forget_listener(u64 sk, struct tcp_session *session)
{
	struct tcp_listener_key key = {};
	struct tcp_owner *owner;

	listener_key_of(session, &key);
	owner = tcp_listeners.lookup(&key);
	if (owner && owner->sk == sk)
		tcp_listeners.delete(&key);
}

static __always_inline void begin_session(struct sock *sk, struct tcp_session *session, u32 direction)
{
	read_ends(sk, session);
	name_endpoint(session, direction);
	session->direction = direction;
	session->start_ns = bpf_ktime_get_ns();
	session->weight = 1;
}

/* Whether a new connection is the one of so many that is followed. */
static __always_inline bool is_followed(u32 one_in)
{
	return one_in == 1 || !(bpf_get_prandom_u32() & (one_in - 1));
}

/* connect or listen lies below: its process is the owner. What is left to do for a connection is to walk the stack of who connects. */
static __always_inline void open_by_call(struct bpf_raw_tracepoint_args *ctx, struct tcp_settings *setting, u32 direction, u32 weight)
{
	struct sock *sk = (struct sock *)ctx->args[0];
	struct tcp_session session = {};
	struct current_task current = {};

	begin_session(sk, &session, direction);
	session.weight = weight;
	read_current_task(&current, bpf_get_current_pid_tgid() >> 32);
	own(&session, &current);
	if (direction == DIRECTION_LISTEN)
		keep_listener((u64)sk, &session);
	keep_session((u64)sk, &session);
	if (direction == DIRECTION_OUT && session.flags & SESSION_WANTED)
		walk_connect(ctx, setting, &session, &current);
}

/* A connection came in: the listener's owner is its owner. */
static __always_inline void open_by_peer(struct sock *sk, u32 weight)
{
	struct tcp_session session = {};
	struct tcp_owner *owner;
	struct tcp_sums *sums;

	begin_session(sk, &session, DIRECTION_IN);
	session.weight = weight;
	owner = find_listener(&session);
	if (owner) {
		session.key.start_boot_ns = owner->process.start_boot_ns;
		session.key.pid = owner->process.pid;
		session.key.exec_id = owner->process.exec_id;
		session.key.is_kernel_thread = owner->is_kernel_thread;
		session.flags = owner->flags;
	}
	session.established_ns = session.start_ns;
	session.flags |= SESSION_ESTABLISHED;
	sums = sums_of(&session, active_buffer());
	if (sums)
		add_to(sums, &session, TCP_ACCEPTS, 1);
	keep_session((u64)sk, &session);
}

static __always_inline void on_connected(struct sock *sk, struct tcp_session *session)
{
	struct tcp_sums *sums = sums_of(session, active_buffer());
	u64 now_ns = bpf_ktime_get_ns(), ns = now_ns - session->start_ns;
	u32 syn_retransmits = peek_u32(&((struct tcp_sock *)sk)->total_retrans);

	session->local_port = peek_u16(&sk->__sk_common.skc_num); /* connect chose it after SYN_SENT */
	session->counted.retransmits = syn_retransmits;
	session->established_ns = now_ns;
	write_first();
	session->flags |= SESSION_ESTABLISHED;
	if (!sums)
		return;
	add_to(sums, session, TCP_CONNECTS, 1);
	add_to(sums, session, TCP_CONNECT_NS, ns);
	add_to(sums, session, TCP_SYN_RETRANSMITS, syn_retransmits);
	add_to_bucket(sums->connects, session, ns);
}

static __always_inline void on_failed(struct sock *sk, struct tcp_session *session)
{
	struct tcp_sums *sums = sums_of(session, active_buffer());
	u32 error = peek_u32(&sk->sk_err);

	if (!sums)
		return;
	add_to(sums, session, error == ERROR_REFUSED ? TCP_REFUSED : error == ERROR_TIMED_OUT ? TCP_TIMEOUTS : TCP_FAILED, 1);
	add_to(sums, session, TCP_SYN_RETRANSMITS, peek_u32(&((struct tcp_sock *)sk)->total_retrans));
}

/* A connection that ends without a FIN of its own was reset: by the peer, which was counted when the reset came, or by us, which will be
 * told when the session is gone. */
static __always_inline void count_end(struct sock *sk, struct tcp_session *session, u32 old)
{
	struct tcp_sums *sums = sums_of(session, active_buffer());

	if (!sums)
		return;
	add_to(sums, session, TCP_CLOSES, 1);
	if (!(session->flags & SESSION_OLD))
		add_to(sums, session, TCP_LIFETIME_NS, bpf_ktime_get_ns() - session->established_ns);
	if (session->flags & SESSION_RESET || (old != STATE_ESTABLISHED && old != STATE_CLOSE_WAIT))
		return;
	add_to(sums, session, peek_u32(&sk->sk_err) == ERROR_TIMED_OUT ? TCP_TIMEOUTS : TCP_RESETS, 1);
}

static __always_inline void on_closed(struct sock *sk, struct tcp_session *session, struct tcp_settings *setting, u32 old)
{

	if (session->direction == DIRECTION_LISTEN) {
		forget_listener((u64)sk, session);
	} else if (!(session->flags & SESSION_ESTABLISHED)) {
		on_failed(sk, session);
	} else {
		count_end(sk, session, old);
	}
	end_session((u64)sk, session, setting);
}

/* close or shutdown lies below. Who closes a connection that came in is its owner when no other is known, and when the listener was
 * handed over by init. */
static __always_inline void on_closing(u64 sk, struct tcp_session *session, struct tcp_settings *setting)
{
	struct current_task current = {};

	if (session->direction != DIRECTION_IN)
		return;
	if (session->flags & SESSION_OWNED && session->key.pid != INIT_PID)
		return;
	read_current_task(&current, bpf_get_current_pid_tgid() >> 32);
	if (claim(session, key_of(sk, session), setting) && !current.is_kernel_thread && current.process.pid)
		own(session, &current);
	write_first();
	session->flags &= ~SESSION_CLOSED;
}

/* Hook: raw tracepoint inet_sock_set_state(sk, old, new). */
int on_tcp_state(struct bpf_raw_tracepoint_args *ctx)
{
	struct sock *sk = (struct sock *)ctx->args[0];
	u32 old = ctx->args[1], new = ctx->args[2];
	int zero = 0;
	struct tcp_settings *setting = tcp_settings.lookup(&zero);
	struct tcp_session *session;
	u32 one_in;

	if (!setting || peek_u16(&sk->sk_protocol) != PROTOCOL_TCP)
		return 0;
	count_event();
	one_in = *(volatile u32 *)&setting->one_in;
	if (new == STATE_SYN_SENT) {
		if (is_followed(one_in))
			open_by_call(ctx, setting, DIRECTION_OUT, one_in);
		return 0;
	}
	if (new == STATE_LISTEN) {
		open_by_call(ctx, setting, DIRECTION_LISTEN, 1);
		return 0;
	}
	session = find_session((u64)sk);
	if (new == STATE_ESTABLISHED && session)
		on_connected(sk, session);
	else if (new == STATE_ESTABLISHED && old == STATE_SYN_RECV && is_followed(one_in))
		open_by_peer(sk, one_in);
	else if (session && new == STATE_CLOSE)
		on_closed(sk, session, setting, old);
	else if (session && (new == STATE_FIN_WAIT1 || new == STATE_LAST_ACK))
		on_closing((u64)sk, session, setting);
	return 0;
}

/* Hooks: raw tracepoints tcp_receive_reset(sk) and tcp_send_reset(sk, ...). A reset that answers a SYN is a refusal. */
int on_tcp_reset(struct bpf_raw_tracepoint_args *ctx)
{
	struct tcp_session *session = ctx->args[0] ? find_session(ctx->args[0]) : 0;
	struct tcp_sums *sums;

	count_event();
	if (!session || !(session->flags & SESSION_ESTABLISHED) || session->flags & SESSION_RESET)
		return 0;
	session->flags |= SESSION_RESET;
	sums = sums_of(session, active_buffer());
	if (sums)
		add_to(sums, session, TCP_RESETS, 1);
	return 0;
}

/* Hook: raw tracepoint tcp_retransmit_synack(listener, request). */
int on_tcp_synack(struct bpf_raw_tracepoint_args *ctx)
{
	struct tcp_session *session = find_session(ctx->args[0]);
	struct tcp_sums *sums;

	count_event();
	if (!session)
		return 0;
	sums = sums_of(session, active_buffer());
	if (sums)
		add_to(sums, session, TCP_SYN_RETRANSMITS, 1);
	return 0;
}

/* Hook: raw tracepoint tcp_destroy_sock(sk). The address is free from here on: no session of it may stay. */
int on_tcp_destroy(struct bpf_raw_tracepoint_args *ctx)
{
	u64 sk = ctx->args[0];
	int zero = 0;
	struct tcp_settings *setting = tcp_settings.lookup(&zero);
	struct tcp_session *session = find_session(sk);

	count_event();
	if (session && setting)
		on_closed((struct sock *)sk, session, setting, STATE_CLOSE);
	return 0;
}

static __always_inline bool can_settle(struct tcp_session *session, u64 key, struct tcp_totals *totals)
{
	struct sock *sk = (struct sock *)(key & ~1ULL);
	u32 flags = *(volatile u32 *)&session->flags;

	if (flags & SESSION_LEFT) {
		*totals = session->last;
		return true;
	}
	if (flags & SESSION_CLOSED || peek_u16(&sk->__sk_common.skc_num) != session->local_port)
		return false;
	read_totals(sk, totals);
	return true;
}

/* For each session, at the end of a window. */
int bpf_iter__bpf_map_elem(struct bpf_iter__bpf_map_elem *ctx)
{
	u64 *place = ctx->key, key;
	struct tcp_session *session = ctx->value;
	int zero = 0;
	struct tcp_settings *setting = tcp_settings.lookup(&zero);
	struct tcp_totals totals = {};

	if (!place || !session || !setting)
		return 0;
	key = *place;
	*(volatile u64 *)&setting->settling = key;
	fence(&setting->fences);
	/* The entry may have become another session's meanwhile: then it is that one's key. */
	if (*(volatile u64 *)place == key && can_settle(session, key, &totals)) {
		if (session->direction == DIRECTION_LISTEN)
			settle_listener(session, &totals, setting->buffer);
		else if (session->flags & SESSION_ESTABLISHED)
			settle(session, &totals, setting->buffer);
	}
	write_first();
	*(volatile u64 *)&setting->settling = 0;
	return 0;
}

/* For each open file of each task, at the start: listeners in a first round, the other sockets in a second. */
int bpf_iter__task_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	int zero = 0;
	struct tcp_settings *setting = tcp_settings.lookup(&zero);
	struct tcp_session session = {};
	struct current_task owner = {};
	struct task_struct *leader;
	struct sock *sk;
	u32 state;

	if (!task || !file || !setting)
		return 0;
	if ((peek_u16((void *)&((struct inode *)peek_u64(&file->f_inode))->i_mode) & FILE_KIND_MASK) != FILE_KIND_SOCKET)
		return 0;
	sk = (struct sock *)peek_u64(&((struct socket *)peek_u64(&file->private_data))->sk);
	if (!sk || peek_u16(&sk->sk_protocol) != PROTOCOL_TCP)
		return 0;
	state = peek_u16(&sk->__sk_common.skc_state) & 0xff;
	if (state == STATE_CLOSE || state == STATE_SYN_SENT || (state == STATE_LISTEN) != (setting->finding == DIRECTION_LISTEN))
		return 0;
	begin_session(sk, &session, DIRECTION_LISTEN);
	leader = (struct task_struct *)peek_u64(&task->group_leader);
	owner.process.pid = peek_u32(&task->tgid);
	owner.process.exec_id = peek_u32(&task->self_exec_id);
	owner.process.start_boot_ns = peek_u64(&leader->start_boottime);
	own(&session, &owner);
	if (state == STATE_LISTEN) {
		keep_listener((u64)sk, &session);
	} else {
		begin_session(sk, &session, find_listener(&session) ? DIRECTION_IN : DIRECTION_OUT);
		session.flags |= SESSION_ESTABLISHED | SESSION_OLD;
	}
	read_totals(sk, &session.counted);
	keep_old_session((u64)sk, &session);
	return 0;
}
