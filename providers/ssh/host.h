/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOST_H
#define PROVIDERS_SSH_HOST_H

#include "providers/impl.h"
#include "providers/ssh/admission.h"
#include "providers/ssh/client.h"
#include "providers/ssh/runs.h"

/*
 * A host that runs processes: one SSH connection, or several if the server limits the channels of
 * one, and a shell script of ours at the other end of every channel (providers/ssh/remote). The
 * host needs Linux, a POSIX sh and its utilities.
 *
 * The first channel is the control's. It runs as long as the host is used, kills on request, and
 * reports how processes ended. It ends everything of this run when its input ends or no heartbeat
 * has come for `grace_ms`. A process's channel starts with a fixed command, which reads directory,
 * environment and words from stdin. Output of a login shell before our own marker is dropped.
 *
 * The control reports statuses in its channel: a lost connection raises on_lost, never a status.
 *
 * Loop thread.
 */
struct ssh_host;

/* Makes a client: ssh_connect, or a test's own function. */
typedef struct ssh_client *ssh_connect_fn(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err);

struct ssh_host_request {
	bool wants_runner;       // use the runner if the host can run it (providers/remote)
	bool outlives;           // with the runner: processes go on when the connection is lost
	long long orphan_ms;     // orphan-grace; with `outlives`
	long long turn_grace_ms; // turn-grace: with `outlives`, link-grace while a turn is open
	long long pause_ms;      // the least pause before we connect again; 0: as usual
	unsigned long long
		link_buffer; // bytes of an agent's input, or output, under way; 0: as for others
	const struct provider_context *context; // borrowed, like the target
	const struct ssh_target *target;
	ssh_connect_fn *connect;
	const char *sh;     // the shell there that runs our scripts; NULL: /bin/sh
	long long grace_ms; // link-grace: without a heartbeat for this long, everything there ends
	long long channel_timeout_ms; // for a free channel, and for one to open
	long long login_timeout_ms;   // for the login shell's answer
	long long first_timeout_ms;   // for the first channel; 0: channel_timeout_ms
	size_t max_connections;       // more connections are made when MaxSessions is reached
	size_t warm_channels; // channels kept open for the next exec, which then takes one round
	                      // trip
	/* NULL: the target's user logs in. Otherwise there is only one connection. */
	const struct ssh_admission *admission;
	void *admission_data;
	bool stderr_apart; // a channel's stderr must not be written to: stderr has channels of its
	                   // own
	size_t max_channels;   // of one connection; 0: as many as the server opens
	struct ssh_runs *runs; // borrowed; the host first ends those of its place; NULL: none
	const char *place;     // borrowed; hosts with the same place work in the same folders
	const char *profile;   // borrowed; its name, for the broker's heir; NULL: it ends nothing
	const char *const *login_env; // borrowed; the values of login-env; NULL: none
};

struct ssh_host_listener {
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_notice)(void *data, const char *text);   // the same
	void (*on_ready)(void *data);
	/* With `outlives`: like those of struct sandbox_listener; both or none. */
	void (*on_link_lost)(void *data, const struct error *why);
	void (*on_link_back)(void *data);
	/*
	 * We could not reach the host, or have lost it; every exec knows. Nothing follows; close
	 * it.
	 */
	void (*on_failed)(void *data, const struct error *err);
};

/* Facts measured on the host; valid once ready. The texts come from the host. */
struct ssh_host_facts {
	const char *home, *user, *shell;
	const char *directory;   // home, or "/" if that is not a folder
	const char *path;        // of the login shell
	const char *system;      // uname -s
	const char *machine;     // uname -m
	const char *git_version; // "": git is missing
	const char *rsync_version;
	unsigned ended;          // how many processes of lost connections we found there and ended
	const char *const *kept; // NULL-terminated, or NULL: sentences about others that still run
	const char *const
		*environment; // NULL-terminated: the allowlist of the login shell, and set_env
	const char *const *agent_environment; // the same with the variables of login-env
	const char *const *login_missing;     // names in login-env that are not exported; or NULL
	const char *const *login_too_big;     // variables over its limits; or NULL
	bool login_is_unknown;                // the login shell did not report its environment
};

struct ssh_host *ssh_host_open(const struct ssh_host_request *request,
	const struct ssh_host_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
const struct ssh_host_facts *ssh_host_facts(const struct ssh_host *host);

/* What the host printed before our script began; borrowed, until ready. */
struct span ssh_host_said(const struct ssh_host *host);

/*
 * Implements sandbox_exec completely. `spec` is complete (env, cwd). argv[0] is searched for in the
 * PATH of env. Fails with ERROR_UNAVAILABLE for a foreground process.
 */
struct exec *ssh_host_exec(struct ssh_host *host, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* The runner there; NULL: there is none, and the scripts do the work. Valid once ready. */
struct remote *ssh_host_remote(const struct ssh_host *host);

/* Why the host has no runner although the request wants one, for people; NULL: no reason. */
const char *ssh_host_no_runner(const struct ssh_host *host);

/* The suspension freezes the process with its other members from now on. */
struct suspension;
void ssh_exec_join(struct exec *exec, struct suspension *suspension);

/* With `outlives`: a turn has begun or ended. */
void ssh_host_note_turn(struct ssh_host *host, bool is_open);

/* With `outlives`: closes the connection as if it was lost. */
void ssh_host_drop_link(struct ssh_host *host);

/*
 * The same as ssh_host_close, but the order to end may need time to arrive. Then this returns true
 * and raises `parted` when the other side has carried it out, or can no longer be reached. The
 * caller sets a deadline, and then closes the host. False: there is nothing to wait for, and the
 * caller closes the host at once.
 */
bool ssh_host_part(struct ssh_host *host, void (*parted)(void *data), void *data);

/*
 * Ends what runs there and closes the connections; raises nothing more. Handles of execs stay,
 * without events, until exec_destroy. NULL is fine.
 */
void ssh_host_close(struct ssh_host *host);

#endif
