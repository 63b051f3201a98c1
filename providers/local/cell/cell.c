/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/cell.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/guard.h"
#include "base/io.h"
#include "base/list.h"
#include "base/text.h"
#include "providers/local/cell/inside.h"
#include "providers/local/cell/limits.h"
#include "providers/local/cell/probe.h"
#include "providers/local/cell/program.h"
#include "providers/local/cell/wire.h"

struct showing {
	struct list link; // cell.showings, in the order of the cell's answers
	cell_shown *done;
	void *data;
};

struct cell {
	struct ev_loop *loop;
	const struct cell_listener *listener;
	void *data;
	struct process *process; // the cell's keeper, or NULL
	struct spawner *spawner; // the cell's
	ev_io control;
	ev_timer deadline;        // for the start
	uid_t uid;                // from the plan
	gid_t gid;                // from the plan
	int home_fd;              // the cell's home
	int ports[PORTS_MAX];     // its sockets, until cell_take_ports
	size_t port_count;        // from the plan
	int keys[PORTS_KEYS_MAX]; // its sockets for keys, until cell_take_keys
	size_t key_count;         // from the plan
	int connector;            // its end outside, until cell_take_connector; or -1
	bool has_connector;       // from the plan
	bool has_network;         // shares this machine's network
	int landlock;             // limits_landlock
	int landlock_errnum;
	bool is_ready;
	bool has_ended;       // on_ended was raised
	struct list showings; // of struct showing
};

static void raise_ended(struct cell *cell, const struct error *err)
{
	if (cell->has_ended) {
		return;
	}
	cell->has_ended = true;
	ev_timer_stop(cell->loop, &cell->deadline);
	cell->listener->on_ended(cell->data, err);
}

/* ---- messages of the cell ---- */

static void take_answer(struct cell *cell, const struct cell_answer *answer)
{
	struct error err;
	if (answer->is_notice) {
		if (cell->listener->on_notice && !cell->has_ended) {
			cell->listener->on_notice(cell->data, answer->text);
		}
		return;
	}
	const char *reason = answer->is_unavailable ? "CELL_UNAVAILABLE" : NULL;
	bool is_done = answer->code == ERROR_NONE ||
	               error_set_reason(&err, answer->code, reason, "%s", answer->text);
	if (!cell->is_ready) {
		cell->is_ready = is_done;
		cell->landlock = answer->landlock;
		cell->landlock_errnum = answer->landlock_errnum;
		ev_timer_stop(cell->loop, &cell->deadline);
		if (is_done) {
			cell->listener->on_ready(cell->data);
		} else {
			raise_ended(cell, &err);
		}
		return;
	}
	if (list_is_empty(&cell->showings)) {
		return;
	}
	struct showing *showing = LIST_FIRST(&cell->showings, struct showing, link);
	struct showing told = *showing;
	list_remove(&showing->link);
	free(showing);
	told.done(told.data, is_done ? NULL : &err);
}

/* Every process in the cell has ended, or ends now. */
static void lose(struct cell *cell)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "the cell has ended%s",
		cell->is_ready ? "" : " before it was ready");
	io_close(cell->loop, &cell->control);
	raise_ended(cell, &err);
}

static void take_descriptors(struct cell *cell, int *fds, size_t count)
{
	const size_t keys_at = 1 + cell->port_count;
	const size_t connector_at = keys_at + cell->key_count;
	bool is_expected = cell->home_fd < 0 && count == connector_at + cell->has_connector;
	for (size_t i = 0; i < count; i++) {
		if (!is_expected) {
			fd_close(&fds[i]);
		} else if (i == 0) {
			cell->home_fd = fds[i];
		} else if (i <= cell->port_count) {
			cell->ports[i - 1] = fds[i];
		} else if (i < connector_at) {
			cell->keys[i - keys_at] = fds[i];
		} else {
			cell->connector = fds[i];
		}
	}
}

/* recv(2), with the descriptors of the first answer. */
static ssize_t receive(struct cell *cell, struct cell_answer *answer)
{
	int fds[CELL_ANSWER_FDS_MAX];
	size_t count;
	ssize_t size = fd_take(
		cell->control.fd, answer, sizeof(*answer), fds, CELL_ANSWER_FDS_MAX, &count);
	take_descriptors(cell, fds, count);
	return size;
}

static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	struct cell *cell = CONTAINER_OF(io, struct cell, control);
	static struct cell_answer answer; // too large for a stack that is shared
	ssize_t size = receive(cell, &answer);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	if (size == (ssize_t)sizeof(answer)) {
		answer.text[sizeof(answer.text) - 1] = '\0';
		take_answer(cell, &answer);
	} else {
		lose(cell);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct cell *cell = CONTAINER_OF(timer, struct cell, deadline);
	struct error err;
	error_set(&err, ERROR_TIMEOUT, "confining an agent: the cell was not ready within %d s",
		CELL_START_MAX_MS / 1000);
	raise_ended(cell, &err);
}

/* ---- its process ---- */

static void on_failed(void *data, const struct error *err)
{
	struct error why = *err;
	error_prefix(&why, "confining an agent");
	raise_ended(data, &why);
}

/* There is no on_exited: the last messages are still read, and then the control socket ends. */
static const struct process_listener process_listener = {
	.on_failed = on_failed,
};

/* ---- making one ---- */

static bool send_plan(int control, int plan_fd, int spawner_fd, struct error *err)
{
	const int fds[CELL_FDS] = {[CELL_FD_PLAN] = plan_fd, [CELL_FD_SPAWNER] = spawner_fd};
	if (!fd_pass(control, (struct span){"", 1}, fds, CELL_FDS)) {
		int errnum = errno;
		return error_set_errno(err, errnum, "confining an agent: requesting a cell");
	}
	return true;
}

/* Starts the cell's keeper. It gets its end of `control` as its stdin. */
static bool start_keeper(struct cell *cell, struct spawner *outer, const struct cell_plan *plan,
	int control, struct error *err)
{
	static const char *const argv[] = {GUARD_NAME, CELL_ARGUMENT, NULL};
	static const char *const env[] = {NULL};
	static const struct process_limits none; // for its own processes
	struct cell_program program;
	struct process_spec spec = {.argv = argv,
		.env = env,
		.cwd = "/",
		.in = control,
		.out = -1,
		.err = -1,
		.has_program = true,
		.is_grouped = true,
		.limits = plan->has_limit_group ? &none : NULL,
		.has_limit_group = plan->has_limit_group,
		.limit_group = plan->limit_group,
		.stays_outside = true};
	bool is_started = cell_program_open(&program, err);
	if (is_started) {
		spec.program = program.fd;
		cell->process = process_start(outer, &spec, &process_listener, cell, err);
		is_started = cell->process && cell_program_fill(&program, err);
	}
	cell_program_finish(&program);
	return is_started;
}

static bool start(
	struct cell *cell, struct spawner *outer, const struct cell_plan *plan, struct error *err)
{
	int control[2] = {-1, -1};
	int inner[2] = {-1, -1};
	ATTR_CLEANUP(fd_cleanup) int plan_fd = cell_plan_pack(plan, err);
	if (plan_fd < 0) {
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, inner) != 0) {
		int errnum = errno;
		fd_close(&control[0]);
		fd_close(&control[1]);
		return error_set_errno(err, errnum, "confining an agent: making a socket");
	}
	ATTR_CLEANUP(fd_cleanup) int their_control = control[1];
	ATTR_CLEANUP(fd_cleanup) int their_inner = inner[1];
	ev_io_set(&cell->control, control[0], EV_READ);
	ev_io_start(cell->loop, &cell->control);
	cell->spawner = spawner_create_remote(cell->loop, inner[0]);
	return send_plan(control[0], plan_fd, their_inner, err) &&
	       start_keeper(cell, outer, plan, their_control, err);
}

struct cell *cell_create(struct ev_loop *loop, struct spawner *outer, const struct cell_plan *plan,
	const struct cell_listener *listener, void *data, struct error *err)
{
	struct cell *cell = mem_alloc_zero(sizeof(*cell));
	cell->loop = loop;
	cell->home_fd = -1;
	cell->listener = listener;
	cell->data = data;
	cell->has_network = plan->has_network;
	cell->uid = plan->uid;
	cell->gid = plan->gid;
	cell->port_count = plan->has_ports ? PORTS_SERVICES + plan->service_count : 0;
	for (size_t i = 0; i < PORTS_MAX; i++) {
		cell->ports[i] = -1;
	}
	cell->key_count = plan->key_count;
	cell->connector = -1;
	cell->has_connector = plan->forward_count > 0;
	for (size_t i = 0; i < PORTS_KEYS_MAX; i++) {
		cell->keys[i] = -1;
	}
	list_init(&cell->showings);
	ev_io_init(&cell->control, on_control, -1, EV_READ);
	ev_timer_init(&cell->deadline, on_deadline, (double)CELL_START_MAX_MS / 1000., 0.);
	if (!start(cell, outer, plan, err)) {
		cell_destroy(cell);
		return NULL;
	}
	ev_timer_start(loop, &cell->deadline);
	return cell;
}

struct spawner *cell_spawner(const struct cell *cell)
{
	assert(cell->is_ready);
	return cell->spawner;
}

int cell_home(const struct cell *cell)
{
	assert(cell->is_ready);
	return cell->home_fd;
}

void cell_user(const struct cell *cell, uid_t *out_uid, gid_t *out_gid)
{
	*out_uid = cell->uid;
	*out_gid = cell->gid;
}

void cell_take_ports(struct cell *cell, int out_fds[PORTS_MAX])
{
	assert(cell->is_ready && cell->port_count > 0);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		out_fds[i] = cell->ports[i];
		cell->ports[i] = -1;
	}
}

void cell_take_keys(struct cell *cell, int out_fds[PORTS_KEYS_MAX])
{
	assert(cell->is_ready && cell->key_count > 0);
	for (size_t i = 0; i < PORTS_KEYS_MAX; i++) {
		out_fds[i] = cell->keys[i];
		cell->keys[i] = -1;
	}
}

int cell_take_connector(struct cell *cell)
{
	assert(cell->is_ready && cell->has_connector);
	int fd = cell->connector;
	cell->connector = -1;
	return fd;
}

bool cell_keeps_abstract_sockets(const struct cell *cell, struct error *err)
{
	struct probe_facts facts;
	assert(cell->is_ready);
	if (!cell->has_network || cell->landlock >= LIMITS_SCOPES_SINCE) {
		return true;
	}
	probe_read(&facts);
	return probe_explain_landlock(err, cell->landlock, cell->landlock_errnum, &facts);
}

static bool await_shown(struct cell *cell, bool is_sent, const char *path, cell_shown *done,
	void *data, struct error *err)
{
	int errnum = cell->control.fd < 0 ? EPIPE : errno;
	if (!is_sent) {
		return error_set_errno(err, errnum, "asking the cell to show %s", path);
	}
	struct showing *showing = mem_alloc_zero(sizeof(*showing));
	showing->done = done;
	showing->data = data;
	list_append(&cell->showings, &showing->link);
	return true;
}

bool cell_show(struct cell *cell, const char *path, cell_shown *done, void *data, struct error *err)
{
	struct cell_order order;
	assert(cell->is_ready && path[0] == '/');
	if (!text_whole(order.path, sizeof(order.path), "%s", path)) {
		return error_set(err, ERROR_LIMIT, "%s: the path is too long", path);
	}
	size_t size = strlen(order.path) + 1;
	int fd = cell->control.fd;
	bool is_sent =
		fd >= 0 && send(fd, &order, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
	return await_shown(cell, is_sent, path, done, data, err);
}

bool cell_show_pinned(struct cell *cell, const struct cell_entry *list, size_t count,
	cell_shown *done, void *data, struct error *err)
{
	const struct cell_plan plan = {
		.user = "", .home = "", .entries = list, .entry_count = count};
	assert(cell->is_ready && count > 0);
	ATTR_CLEANUP(fd_cleanup) int list_fd = cell_plan_pack(&plan, err);
	if (list_fd < 0) {
		return false;
	}
	int fd = cell->control.fd;
	bool is_sent = fd >= 0 && fd_pass(fd, (struct span){"", 1}, &list_fd, 1);
	return await_shown(cell, is_sent, list[0].path, done, data, err);
}

void cell_destroy(struct cell *cell)
{
	if (!cell) {
		return;
	}
	LIST_FOR_EACH(showing, &cell->showings, struct showing, link) {
		list_remove(&showing->link);
		free(showing);
	}
	ev_timer_stop(cell->loop, &cell->deadline);
	if (cell->control.fd >= 0) {
		io_close(cell->loop, &cell->control);
	}
	spawner_destroy(cell->spawner);
	process_destroy(cell->process);
	fd_close(&cell->home_fd);
	fd_close(&cell->connector);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&cell->ports[i]);
	}
	for (size_t i = 0; i < PORTS_KEYS_MAX; i++) {
		fd_close(&cell->keys[i]);
	}
	free(cell);
}
