/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_REMOTE_REMOTE_H
#define PROVIDERS_REMOTE_REMOTE_H

#include "providers/impl.h"
#include "providers/remote/carrier.h"
#include "providers/runner/image.h"

/*
 * A machine that a carrier reaches, with our runner on it: processes and files as in struct
 * sandbox_impl, all over one stream. It uploads the runner if it is missing (start.sh). If that is
 * impossible, on_unfit gives the reason, and the caller must use another way.
 *
 *    remote ── start         the first lines: where is the runner?
 *           ├─ link          its streams and messages (providers/mux)
 *           ├─ processes     one for each exec; its handle may outlive the remote
 *           ├─ file requests
 *           └─ forwarded ports, and their connections
 *
 * Trust the runner no more than the agent, because it runs as the same user.
 *
 * A run may outlive the stream and the carrier (`outlives`). Then nobody is notified of their end:
 * the streams of processes and the requests wait until another stream takes its place (attach.c),
 * or until the run is given up. Loop thread. Nothing is raised before a function returns.
 */
struct remote;
struct suspension;

struct remote_request {
	struct ev_loop *loop;
	struct carrier *carrier; // borrowed
	const char *name;        // the machine, for messages; borrowed
	/*
	 * The runner's file there, borrowed, if the machine shows it at a fixed path: it starts by
	 * itself (runner/begin.c). NULL: start.sh finds or takes it.
	 */
	const char *program;
	const char *sh;       // shell on that machine for start.sh; borrowed
	const char *token;    // ACP_BROKER_RUN of every process there; borrowed
	long long grace_ms;   // the runner ends after this time without a byte
	bool outlives;        // the run continues without the stream: on_detached
	long long orphan_ms;  // how long it continues if the stream ended while in use
	uint64_t agent_bytes; // bytes of an agent's input, or output, under way; 0: see mux.h
	long long timeout_ms; // for each answer until the remote is ready
	long long first_ms;   // for the first answer; 0: timeout_ms
	/*
	 * For start.sh: defines acp_before; ends in ";". For `program`: lines "earlier FOLDER".
	 * Borrowed; may be NULL.
	 */
	const char *before;
	const char *variables; // names for acp_more of variables.sh; borrowed; may be NULL
	/* Program to upload, borrowed; NULL: the one in this program, if it fits the machine. */
	const struct runner_image *image;
};

struct remote_listener {
	/* A fact about the machine, as a line of start.sh or of `before`; only before on_ready. */
	void (*on_fact)(void *data, const char *line);
	void (*on_progress)(void *data, const char *text); // may be NULL
	/* Something that the user should know; after on_ready; may be NULL. */
	void (*on_notice)(void *data, const char *text);
	void (*on_ready)(void *data);
	/*
	 * No runner can work there; `why` is for people. The carrier is unchanged. Close the
	 * remote.
	 */
	void (*on_unfit)(void *data, const char *why);
	/*
	 * After on_ready: the runner or the stream is gone, and every exec was notified. Close the
	 * remote.
	 */
	void (*on_lost)(void *data, const struct error *err);
	/*
	 * With `outlives`, after on_ready: the stream is lost, and the run goes on there. Call
	 * remote_attach, now or later, or give the run up (remote_cut). Raised again when a
	 * remote_attach fails.
	 */
	void (*on_detached)(void *data, const struct error *err);
	void (*on_attached)(void *data); // after that: everything goes on
};

struct remote *remote_open(const struct remote_request *request,
	const struct remote_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * Ends all processes there; raises nothing more. Handles of execs remain without events until
 * exec_destroy. File requests are freed. NULL is fine.
 */
void remote_close(struct remote *remote);

/*
 * Like remote_close, but first lets the order to end everything arrive. If it was sent and has to
 * be waited for, this returns true, and raises `parted` once: the other side has closed the stream,
 * or the carrier is lost. The caller also sets a deadline, and then closes the remote. Closing only
 * the carrier may lose the order, and then what runs there waits for another stream. False: there
 * is nothing to wait for, and the caller closes the remote at once.
 */
bool remote_part(struct remote *remote, void (*parted)(void *data), void *data);

/*
 * Call this if the carrier is lost: fails every exec and every file request; on_lost is not raised.
 * NULL is fine.
 */
void remote_cut(struct remote *remote, const struct error *err);

/*
 * Whether the run goes on without its carrier. When the carrier is lost, call remote_detach if so,
 * and remote_cut otherwise.
 */
bool remote_outlives(const struct remote *remote);

/* Why the run ends with its carrier although the request has `outlives`; NULL: it does not. */
const char *remote_tied(const struct remote *remote);

/* Tells the remote that its carrier is lost. Raises nothing. */
void remote_detach(struct remote *remote);

/*
 * Whether processes may be running there, as far as we know. After the loss: whether they may have
 * been running then.
 */
bool remote_is_busy(const struct remote *remote);

/*
 * Before the loss: whether the runner has said that every process there has ended, or that it ends
 * those which their callers have destroyed. Scripts of the broker do not count once they are
 * destroyed.
 */
bool remote_has_ended_all(const struct remote *remote);

/*
 * After ready: how long the run goes on without us from now on, and whether this machine is about
 * to be suspended (struct runner_grace).
 */
void remote_set_grace(struct remote *remote, long long grace_ms, bool is_suspend);

/* Asks for a sign of life at once, if there is a link. */
void remote_ping(struct remote *remote);

/* By the clock of remote_now_us: when the last bytes came over the link. After ready. */
uint64_t remote_heard_us(const struct remote *remote);
uint64_t remote_now_us(void); // microseconds of CLOCK_MONOTONIC

/* In on_unfit: whether it comes because nothing there began within first_ms. */
bool remote_start_was_late(const struct remote *remote);

/* Opens a new stream of this carrier to the run. Ends in on_attached, on_detached or on_lost. */
void remote_attach(struct remote *remote, struct carrier *carrier);

/*
 * Implements sandbox_exec. `spec` must be complete (env, cwd) and must not be for the foreground.
 */
struct exec *remote_exec(struct remote *remote, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* From now on the process is frozen together with the others of the suspension. */
void remote_exec_join(struct exec *exec, struct suspension *suspension);

/*
 * After ready: each connection to the port here goes to the port there, on its loopback. On success
 * takes over the descriptors of forward_port_listen; fails if the remote is over. When the remote
 * is lost or closed, the port is closed and its connections are reset; while a run without its
 * stream goes on, they wait, as processes do, and we reset new ones. At most REMOTE_CONNECTIONS_MAX
 * are open at once; we reset further ones, too.
 */
enum { REMOTE_CONNECTIONS_MAX = 128 };
bool remote_forward(struct remote *remote, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit,
	struct error *err) ATTR_NODISCARD; // visit is copied; may be NULL
void remote_forward_all(struct remote *remote, struct forward_listeners *listeners); // takes all

/* Closes the port here, if it is open; `resets` its connections too. */
void remote_forward_remove(struct remote *remote, uint16_t here, bool resets);

/* The sandbox of all file requests. Call it before the first of them. */
void remote_set_sandbox(struct remote *remote, struct sandbox *sandbox);

/*
 * Files below the folders that were added; like the functions of providers/impl.h.
 * remote_file_cancel implements file_op_cancel.
 */
struct file_op *remote_read(struct remote *remote, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *remote_write(struct remote *remote, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data);
struct file_op *remote_stat(
	struct remote *remote, const char *path, file_stat_done *done, void *data);
/* Also asks whether the mount on which the file is can only be read. */
typedef void remote_mount_done(
	void *data, const struct stat *status, bool is_read_only, const struct error *err);
struct file_op *remote_stat_mount(
	struct remote *remote, const char *path, remote_mount_done *done, void *data);
struct file_op *remote_resolve(
	struct remote *remote, const char *path, file_resolve_done *done, void *data);
void remote_file_cancel(struct file_op *op);

/* Adds a folder there below which files may be used. Its path must contain no links. */
struct file_op *remote_add_root(
	struct remote *remote, const char *path, sandbox_done *done, void *data);

#endif
