/* SPDX-License-Identifier: MIT */
#include "providers/local/net/flow.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/netfilter_ipv4.h> // after netinet/in.h

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/list.h"
#include "base/tcp.h"
#include "base/text.h"
#include "providers/local/net/hello.h"
#include "providers/local/net/pair.h"
#include "providers/local/net/target.h"

static_assert((int)UPSTREAM_PLACES_MAX <= (int)LOOKUP_AVOID_MAX, "all of them can be avoided");

enum flow_state { READING, DECIDING, RESOLVING, CONNECTING, ASKING, RELAYING };

struct flow {
	struct list link; // flows.list
	struct flows *flows;
	uint32_t id;
	enum flow_state state;
	enum network_target target;
	enum network_way way;
	struct pair pair;  // its server from connecting on; `up` keeps the first bytes for hello.h
	ev_timer deadline; // for the state
	struct proxy proxy;
	struct proxy_target wanted;
	uint32_t lookup_id;
	bool is_proxied; // from now on the addresses are those of this machine's proxy
	bool is_checked; // the name, which is for the proxy, was looked up here
	bool is_barred;  // a proxy on this machine must not be asked for the name
	struct address addresses[LOOKUP_ADDRESSES_MAX]; // checked
	uint32_t address_count;
	uint32_t address_at; // the current one
	size_t head_size;    // size of the request to the proxy
};

struct flows {
	struct ev_loop *loop;
	struct host_names *names;
	const struct wire_start *start;
	const struct flows_listener *listener;
	void *data;
	struct list list; // of struct flow
	size_t count;
	uint32_t last_id;
	uint32_t last_lookup_id;
	bool was_full; // we have reported the limit to the broker
};

static void send_message(const struct flows *flows, const struct wire_message *message)
{
	flows->listener->on_message(flows->data, message);
}

/* ---- the end ---- */

/* Frees the connection; call it after pair_close or pair_reset. */
static void forget(struct flow *flow)
{
	struct flows *flows = flow->flows;
	ev_timer_stop(flows->loop, &flow->deadline);
	proxy_finish(&flow->proxy);
	list_remove(&flow->link);
	flows->count--;
	free(flow);
}

static void end(struct flow *flow)
{
	pair_close(&flow->pair);
	forget(flow);
}

static void reset(struct flow *flow)
{
	pair_reset(&flow->pair);
	forget(flow);
}

static void answer_client(const struct flow *flow, struct span text)
{
	/* It is short and the first message on this socket, so there is room for it. */
	(void)!send(flow->pair.client.fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void refuse(struct flow *flow, enum proxy_end how)
{
	if (flow->way == NETWORK_BY_SOCKET) {
		reset(flow);
		return;
	}
	answer_client(flow, proxy_answer(&flow->proxy, how));
	end(flow);
}

/* ---- messages to the broker ---- */

static uint32_t client_port(const struct flow *flow)
{
	struct sockaddr_in name = {.sin_port = 0};
	socklen_t size = sizeof(name);
	return getpeername(flow->pair.client.fd, (struct sockaddr *)&name, &size) == 0
	               ? ntohs(name.sin_port)
	               : 0;
}

static void describe(const struct flow *flow, enum wire_kind kind, struct wire_message *out)
{
	*out = (struct wire_message){.kind = kind,
		.id = flow->id,
		.target = flow->target,
		.way = flow->way,
		.port = flow->wanted.port,
		.client_port = client_port(flow)};
	proxy_print_host(&flow->wanted, out->name);
}

/* `status` is for NETWORK_PROXY_REFUSED. */
static void tell(const struct flow *flow, enum network_result result, unsigned status)
{
	struct wire_message message;
	describe(flow, WIRE_TELL, &message);
	message.result = result;
	message.status = status;
	send_message(flow->flows, &message);
}

/* Tells the broker that nobody waits for its answer any more. */
static void tell_gone(const struct flow *flow)
{
	const struct wire_message message = {.kind = WIRE_GONE, .id = flow->id};
	if (flow->state == DECIDING) {
		send_message(flow->flows, &message);
	}
}

static void tell_server_name(const struct flow *flow, const char *name)
{
	struct wire_message message = {.kind = WIRE_SERVER_NAME, .id = flow->id};
	text_whole(message.name, sizeof(message.name), "%s", name);
	send_message(flow->flows, &message);
}

static void fail_with(struct flow *flow, enum network_result result, unsigned status)
{
	static const enum proxy_end ends[] = {[NETWORK_NOT_FOUND] = PROXY_NOT_FOUND,
		[NETWORK_FORBIDDEN] = PROXY_REFUSED,
		[NETWORK_UNREACHABLE] = PROXY_UNREACHABLE,
		[NETWORK_PROXY_REFUSED] = PROXY_UNREACHABLE,
		[NETWORK_PROXY_UNREACHABLE] = PROXY_UNREACHABLE};
	tell(flow, result, status);
	refuse(flow, ends[result]);
}

static void fail(struct flow *flow, enum network_result result)
{
	fail_with(flow, result, 0);
}

static void enter(struct flow *flow, enum flow_state state, int deadline_ms)
{
	struct ev_loop *loop = flow->flows->loop;
	flow->state = state;
	ev_timer_stop(loop, &flow->deadline);
	if (deadline_ms > 0) {
		ev_timer_set(&flow->deadline, (double)deadline_ms / 1000., 0.);
		ev_timer_start(loop, &flow->deadline);
	}
}

/* ---- relaying ---- */

/* Only for the audit log: the broker bases no decision on the name. */
static void look_for_server_name(struct flow *flow)
{
	char name[NAME_SIZE];
	struct pipe *up = &flow->pair.up;
	if (!up->keeps || !up->data) {
		return;
	}
	struct span said = {up->data + flow->head_size, up->len - flow->head_size};
	enum hello_step step = hello_read(said, name);
	if (step == HELLO_NAME) {
		tell_server_name(flow, name);
	}
	up->keeps = step == HELLO_MORE && up->len < PIPE_SIZE;
}

static void relay(struct flow *flow, int moves)
{
	enum pair_state state = pair_relay(&flow->pair, moves);
	if (state == PAIR_BROKEN) {
		reset(flow);
		return;
	}
	look_for_server_name(flow);
	if (state == PAIR_DONE) {
		end(flow);
	}
}

static void begin_relaying(struct flow *flow)
{
	enter(flow, RELAYING, 0);
	pair_begin(&flow->pair);
	if (flow->way != NETWORK_BY_SOCKET) {
		answer_client(flow, proxy_answer(&flow->proxy, PROXY_CONNECTED));
	}
	tell(flow, NETWORK_CONNECTED, 0);
	look_for_server_name(flow);
	relay(flow, PAIR_UP);
}

/* ---- this machine's proxy ---- */

static const struct upstream *upstream_of(const struct flow *flow)
{
	return &flow->flows->start->upstream;
}

static void ask_upstream(struct flow *flow)
{
	char head[UPSTREAM_HEAD_SIZE];
	size_t len = upstream_write(upstream_of(flow), &flow->wanted, head);
	/* It is short and the first message on this socket, so there is room for it. */
	ssize_t sent = send(flow->pair.server.fd, head, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	explicit_bzero(head, sizeof(head));
	if (sent != (ssize_t)len) {
		fail(flow, NETWORK_PROXY_UNREACHABLE);
		return;
	}
	enter(flow, ASKING, FLOW_ASK_MS);
	pair_watch(&flow->pair, &flow->pair.server, EV_READ);
}

/* A gateway's errors mean that the proxy is willing, but cannot reach the host. */
static enum network_result result_of(unsigned status)
{
	bool is_gateway_error = status >= 502 && status <= 504;
	return is_gateway_error ? NETWORK_UNREACHABLE : NETWORK_PROXY_REFUSED;
}

static void read_upstream(struct flow *flow)
{
	struct pipe *down = &flow->pair.down;
	size_t used;
	unsigned status;
	if (!pipe_fill(down, flow->pair.server.fd, UPSTREAM_ANSWER_MAX)) {
		fail(flow, NETWORK_PROXY_UNREACHABLE);
		return;
	}
	switch (upstream_read_answer(pipe_span(down), &used, &status)) {
	case UPSTREAM_MORE:
		if (down->has_ended) {
			fail(flow, NETWORK_PROXY_UNREACHABLE);
		}
		break;
	case UPSTREAM_WRONG:
		fail_with(flow, NETWORK_PROXY_REFUSED, 0);
		break;
	case UPSTREAM_ANSWERED:
		if (status / 100 != 2) {
			fail_with(flow, result_of(status), status);
			break;
		}
		pipe_skip(down, used);
		begin_relaying(flow);
		break;
	}
}

/* ---- connecting ---- */

static void connect_next(struct flow *flow);

static void take_connection(struct flow *flow)
{
	int errnum = 0;
	socklen_t size = sizeof(errnum);
	if (getsockopt(flow->pair.server.fd, SOL_SOCKET, SO_ERROR, &errnum, &size) == 0 &&
		errnum == 0) {
		if (flow->is_proxied) {
			ask_upstream(flow);
		} else {
			begin_relaying(flow);
		}
		return;
	}
	flow->address_at++;
	connect_next(flow);
}

/* Connects to exactly the address that was checked. */
static bool connect_to(struct flow *flow, const struct address *address)
{
	struct sockaddr_storage name;
	uint16_t port = flow->is_proxied ? upstream_of(flow)->place.port : flow->wanted.port;
	socklen_t size = address_name(address, port, &name);
	int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return false;
	}
	if (connect(fd, (const struct sockaddr *)&name, size) != 0 && errno != EINPROGRESS) {
		fd_close(&fd);
		return false;
	}
	ev_io_set(&flow->pair.server, fd, EV_WRITE);
	ev_io_start(flow->flows->loop, &flow->pair.server);
	return true;
}

static void connect_next(struct flow *flow)
{
	if (flow->pair.server.fd >= 0) {
		io_close(flow->flows->loop, &flow->pair.server);
	}
	for (; flow->address_at < flow->address_count; flow->address_at++) {
		if (connect_to(flow, &flow->addresses[flow->address_at])) {
			bool is_last = flow->address_at + 1 == flow->address_count;
			enter(flow, CONNECTING, is_last ? FLOW_CONNECT_MS : FLOW_NEXT_MS);
			return;
		}
	}
	fail(flow, flow->is_proxied ? NETWORK_PROXY_UNREACHABLE : NETWORK_UNREACHABLE);
}

/* ---- choosing an address ---- */

/* Asks for the addresses of a host, and which of them are those of the hosts in `avoid`. */
static void look_up(struct flow *flow, const struct proxy_target *host,
	const struct proxy_target *const *avoid, size_t avoid_count, int deadline_ms)
{
	struct lookup_request request = {.id = ++flow->flows->last_lookup_id};
	flow->lookup_id = request.id;
	proxy_print_host(host, request.name);
	for (size_t i = 0; i < avoid_count; i++) {
		proxy_print_host(avoid[i], request.avoid[i]);
	}
	enter(flow, RESOLVING, deadline_ms);
	if (!flow->flows->listener->on_lookup(flow->flows->data, &request)) {
		fail(flow, NETWORK_UNREACHABLE);
	}
}

/* A proxy of this machine could connect to every host, so nothing else may lead to it. */
static void look_up_target(struct flow *flow)
{
	const struct proxy_target *avoid[UPSTREAM_PLACES_MAX];
	size_t count = upstream_list(upstream_of(flow), flow->wanted.port, avoid);
	look_up(flow, &flow->wanted, avoid, count, FLOW_LOOKUP_MS);
}

/*
 * Where no proxy is to be avoided, the answer is only for a proxy of this machine. Many machines
 * behind a proxy know no names of the Internet, and some wait long for an answer.
 */
static void check_name(struct flow *flow)
{
	const struct proxy_target *avoid[UPSTREAM_PLACES_MAX];
	size_t count = upstream_list(upstream_of(flow), flow->wanted.port, avoid);
	flow->is_proxied = false;
	look_up(flow, &flow->wanted, avoid, count, count > 0 ? FLOW_LOOKUP_MS : FLOW_CHECK_MS);
}

static bool is_name_for_proxy(const struct flow *flow)
{
	return !flow->wanted.is_address && upstream_takes(upstream_of(flow), &flow->wanted);
}

/* Whether check_name waits only for what a proxy of this machine must not be asked for. */
static bool needs_no_answer(const struct flow *flow)
{
	const struct proxy_target *avoid[UPSTREAM_PLACES_MAX];
	return !flow->is_proxied && is_name_for_proxy(flow) &&
	       upstream_list(upstream_of(flow), flow->wanted.port, avoid) == 0;
}

static void connect_here(struct flow *flow, const struct proxy_target *host)
{
	flow->addresses[0] = host->is_address ? host->address : address_from_ipv4(INADDR_LOOPBACK);
	flow->addresses[1] = (struct address){.family = AF_INET6, .bytes = {[15] = 1}};
	flow->address_count = host->is_address ? 1 : 2;
	connect_next(flow);
}

/*
 * An address of this machine needs no lookup process, which may still be busy with the names of
 * other connections.
 */
static void look_up_upstream(struct flow *flow)
{
	const struct proxy_target *place = &upstream_of(flow)->place;
	flow->is_proxied = true;
	flow->address_count = 0;
	if (!proxy_target_is_loopback(place)) {
		look_up(flow, place, NULL, 0, FLOW_LOOKUP_MS);
	} else if (flow->is_barred) {
		fail(flow, NETWORK_FORBIDDEN);
	} else {
		connect_here(flow, place);
	}
}

/* Its addresses are not checked: this machine's user has named it. */
static void take_upstream(struct flow *flow, const struct lookup_answer *answer)
{
	bool is_own = false;
	for (uint32_t i = 0; i < answer->count; i++) {
		flow->addresses[flow->address_count++] = answer->found[i].address;
		is_own = is_own || answer->found[i].is_own;
	}
	if (is_own && is_name_for_proxy(flow) && !flow->is_checked) {
		check_name(flow);
	} else if (is_own && flow->is_barred) {
		fail(flow, NETWORK_FORBIDDEN);
	} else {
		connect_next(flow);
	}
}

static bool has_avoided(const struct lookup_answer *answer)
{
	for (uint32_t i = 0; i < answer->count; i++) {
		if (answer->found[i].is_avoided) {
			return true;
		}
	}
	return false;
}

static void take_addresses(struct flow *flow, const struct lookup_answer *answer)
{
	bool is_proxied = upstream_takes(upstream_of(flow), &flow->wanted);
	bool is_own = false;
	if (is_name_for_proxy(flow)) {
		flow->is_checked = true;
		flow->is_barred = !target_may_be_asked_for(flow->flows->start, answer);
		if (has_avoided(answer)) {
			fail(flow, NETWORK_FORBIDDEN);
		} else {
			look_up_upstream(flow);
		}
		return;
	}
	for (uint32_t i = 0; i < answer->count; i++) {
		if (target_is_reached(flow->flows->start, &answer->found[i])) {
			flow->addresses[flow->address_count++] = answer->found[i].address;
			is_own = is_own || answer->found[i].is_own;
		}
	}
	if (flow->address_count == 0) {
		fail(flow, answer->count == 0 ? NETWORK_NOT_FOUND : NETWORK_FORBIDDEN);
	} else if (is_proxied && !is_own) {
		look_up_upstream(flow); // an address without a name, which is checked now
	} else {
		connect_next(flow);
	}
}

void flows_found(struct flows *flows, const struct lookup_answer *answer)
{
	struct flow *flow = NULL;
	LIST_FOR_EACH(at, &flows->list, struct flow, link) {
		flow = at->lookup_id == answer->id && at->state == RESOLVING ? at : flow;
	}
	if (!flow) {
		return;
	}
	if (flow->is_proxied) {
		take_upstream(flow, answer);
	} else {
		take_addresses(flow, answer);
	}
}

/* ---- the decision ---- */

/*
 * At the port of a proxy, the name may be another name of this proxy. By a proxy on this machine,
 * it may lead to what only this machine reaches.
 */
static void connect_to_host(struct flow *flow)
{
	const struct upstream *upstream = upstream_of(flow);
	const struct proxy_target *wanted = &flow->wanted;
	const struct proxy_target *avoid[UPSTREAM_PLACES_MAX];
	bool is_proxied = upstream_takes(upstream, wanted);
	bool may_be_avoided = upstream_list(upstream, wanted->port, avoid) > 0;
	if (is_proxied && target_is_local_name(wanted)) {
		fail(flow, NETWORK_FORBIDDEN);
	} else if (!is_proxied || wanted->is_address) {
		look_up_target(flow);
	} else if (may_be_avoided || proxy_target_is_loopback(&upstream->place)) {
		check_name(flow);
	} else {
		look_up_upstream(flow);
	}
}

void flows_decide(struct flows *flows, uint32_t id, bool is_allowed)
{
	struct flow *flow = NULL;
	LIST_FOR_EACH(at, &flows->list, struct flow, link) {
		flow = at->id == id && at->state == DECIDING ? at : flow;
	}
	if (!flow) {
		return;
	}
	if (!is_allowed) {
		refuse(flow, PROXY_REFUSED);
	} else if (flow->target == NETWORK_TO_SERVICE) {
		connect_here(flow, &flow->wanted);
	} else {
		connect_to_host(flow);
	}
}

static void ask(struct flow *flow)
{
	struct wire_message message;
	describe(flow, WIRE_ASK, &message);
	enter(flow, DECIDING, NETWORK_DECISION_MS);
	flow->pair.up.keeps = true;
	pair_watch(&flow->pair, &flow->pair.client, EV_READ);
	send_message(flow->flows, &message);
}

static void take_target(struct flow *flow, const struct proxy_target *target)
{
	const struct flows *flows = flow->flows;
	flow->wanted = *target;
	switch (target_settle(flows->start, flows->names, &flow->wanted, &flow->target)) {
	case TARGET_SETTLED:
		ask(flow);
		break;
	case TARGET_UNKNOWN:
		refuse(flow, PROXY_NOT_FOUND);
		break;
	case TARGET_REFUSED:
		refuse(flow, PROXY_REFUSED);
		break;
	}
}

/* ---- the request to the proxy ---- */

/* Sends the head to the server as proxy.c wrote it. False: more than one request has come. */
static bool replace_head(struct flow *flow)
{
	struct proxy *proxy = &flow->proxy;
	struct pipe *up = &flow->pair.up;
	if (!pipe_limit(up, &proxy->body)) {
		return false;
	}
	pipe_insert(up, (struct span){proxy->head, proxy->head_len});
	return true;
}

static void take_head(struct flow *flow, const struct proxy_target *target)
{
	if (flow->way == NETWORK_BY_REQUEST && !replace_head(flow)) {
		reset(flow);
		return;
	}
	flow->head_size = flow->pair.up.at;
	take_target(flow, target);
}

static void read_head(struct flow *flow)
{
	static const enum network_way ways[] = {[PROXY_UNKNOWN] = NETWORK_BY_CONNECT,
		[PROXY_CONNECT] = NETWORK_BY_CONNECT,
		[PROXY_SOCKS] = NETWORK_BY_SOCKS,
		[PROXY_REQUEST] = NETWORK_BY_REQUEST};
	enum proxy_step step;
	do {
		struct proxy_target target;
		struct span answer;
		size_t used;
		step = proxy_read(&flow->proxy, pipe_span(&flow->pair.up), &used, &target, &answer);
		pipe_skip(&flow->pair.up, used);
		flow->way = ways[flow->proxy.kind];
		answer_client(flow, answer);
		if (step == PROXY_WRONG) {
			end(flow);
			return;
		}
		if (step == PROXY_TARGET) {
			take_head(flow, &target);
			return;
		}
	} while (step == PROXY_ANSWER);
}

static void read_early(struct flow *flow)
{
	bool is_head = flow->state == READING;
	size_t most = is_head ? PROXY_HEAD_MAX : PIPE_SIZE;
	if (!pipe_fill(&flow->pair.up, flow->pair.client.fd, most) ||
		(is_head && flow->pair.up.has_ended)) {
		tell_gone(flow);
		reset(flow);
		return;
	}
	if (is_head) {
		read_head(flow);
	} else if (!pipe_wants_read(&flow->pair.up)) {
		pair_watch(&flow->pair, &flow->pair.client, 0);
	}
}

/* ---- events ---- */

static void on_client(struct ev_loop *loop, ev_io *io, int events)
{
	struct flow *flow = CONTAINER_OF(io, struct flow, pair.client);
	if (flow->state == RELAYING) {
		relay(flow, pair_client_moves(events));
	} else {
		read_early(flow);
	}
}

static void on_server(struct ev_loop *loop, ev_io *io, int events)
{
	struct flow *flow = CONTAINER_OF(io, struct flow, pair.server);
	if (flow->state == RELAYING) {
		relay(flow, pair_server_moves(events));
	} else if (flow->state == ASKING) {
		read_upstream(flow);
	} else {
		take_connection(flow);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct flow *flow = CONTAINER_OF(timer, struct flow, deadline);
	if (flow->state == CONNECTING) {
		flow->address_at++;
		connect_next(flow);
	} else if (flow->state == RESOLVING && needs_no_answer(flow)) {
		flow->is_checked = true;
		look_up_upstream(flow);
	} else if (flow->state == RESOLVING) {
		fail(flow, flow->is_proxied ? NETWORK_PROXY_UNREACHABLE : NETWORK_NOT_FOUND);
	} else if (flow->state == ASKING) {
		fail(flow, NETWORK_UNREACHABLE);
	} else {
		tell_gone(flow);
		refuse(flow, PROXY_REFUSED);
	}
}

/* ---- beginning ---- */

static void refuse_one_more(struct flows *flows, int client)
{
	const struct wire_message message = {
		.kind = WIRE_LIMIT, .limit = NETWORK_LIMIT_CONNECTIONS};
	tcp_make_abrupt(client);
	fd_close(&client);
	if (!flows->was_full) {
		flows->was_full = true;
		send_message(flows, &message);
	}
}

/* NULL: there are too many connections; the descriptor is closed. */
static struct flow *create(struct flows *flows, int client)
{
	if (flows->count >= NETWORK_CONNECTIONS_MAX) {
		refuse_one_more(flows, client);
		return NULL;
	}
	struct flow *flow = mem_alloc_zero(sizeof(*flow));
	flow->flows = flows;
	flow->pair.loop = flows->loop;
	flow->id = ++flows->last_id;
	ev_io_init(&flow->pair.client, on_client, client, EV_READ);
	ev_io_init(&flow->pair.server, on_server, -1, EV_WRITE);
	ev_timer_init(&flow->deadline, on_deadline, 0., 0.);
	list_append(&flows->list, &flow->link);
	flows->count++;
	return flow;
}

/* Reads the address to which the program in the cell connected. */
static bool read_original(int fd, struct proxy_target *target)
{
	struct sockaddr_in name = {.sin_port = 0};
	socklen_t size = sizeof(name);
	*target = (struct proxy_target){.is_address = true};
	if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &name, &size) != 0 || name.sin_port == 0) {
		return false;
	}
	target->address = address_from_ipv4(ntohl(name.sin_addr.s_addr));
	target->port = ntohs(name.sin_port);
	return target->address.bytes[0] != IN_LOOPBACKNET;
}

void flows_add(struct flows *flows, int client)
{
	struct proxy_target target;
	if (read_original(client, &target)) {
		flows_add_to(flows, client, &target);
	} else {
		tcp_make_abrupt(
			client); // a program connected to our port directly: there is no target
		fd_close(&client);
	}
}

static void begin_reading(struct flow *flow)
{
	enter(flow, READING, FLOW_HEAD_MS);
	pair_watch(&flow->pair, &flow->pair.client, EV_READ);
}

void flows_add_to(struct flows *flows, int client, const struct proxy_target *target)
{
	struct flow *flow = create(flows, client);
	if (!flow) {
		return;
	}
	if (target_is_gate(flows->start, flows->names, target)) {
		begin_reading(flow);
	} else {
		take_target(flow, target);
	}
}

void flows_add_service(struct flows *flows, int client, uint16_t port)
{
	struct flow *flow = create(flows, client);
	if (!flow) {
		return;
	}
	flow->wanted.port = port;
	text_whole(flow->wanted.name, sizeof(flow->wanted.name), "localhost");
	if (upstream_is(&flows->start->upstream, &flow->wanted)) {
		begin_reading(flow);
	} else {
		flow->target = NETWORK_TO_SERVICE;
		ask(flow);
	}
}

struct flows *flows_create(struct ev_loop *loop, struct host_names *names,
	const struct wire_start *start, const struct flows_listener *listener, void *data)
{
	struct flows *flows = mem_alloc_zero(sizeof(*flows));
	flows->loop = loop;
	flows->names = names;
	flows->start = start;
	flows->listener = listener;
	flows->data = data;
	list_init(&flows->list);
	return flows;
}

size_t flows_count(const struct flows *flows)
{
	return flows->count;
}

void flows_destroy(struct flows *flows)
{
	if (!flows) {
		return;
	}
	LIST_FOR_EACH(flow, &flows->list, struct flow, link) {
		end(flow);
	}
	free(flows);
}
