/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOST_H
#define PROVIDERS_SSH_HOST_H

#include "providers/impl.h"
#include "providers/ssh/admission.h"
#include "providers/ssh/client.h"
#include "providers/ssh/runs.h"

/*
 * A host that runs things: one SSH connection, or a few where the server limits the
 * channels of one, and a shell script of ours at the other end of every channel
 * (providers/ssh/remote). Needs there: Linux, a POSIX sh and its utilities.
 *
 * The first channel is the control's: it runs as long as the host is used, kills on
 * order, tells how processes ended, and ends everything of this run when its input
 * ends or no heartbeat came for `grace_ms`. A channel for a process begins with
 * a fixed command; directory, environment and words come through its stdin. Whatever a login
 * shell prints before our own marker is dropped.
 *
 * Status is told in-band, by the control: a lost connection is on_lost, never a status.
 *
 * Loop thread.
 */
struct ssh_host;

/* How a client is made; ssh_connect, or a test's. */
typedef struct ssh_client *ssh_connect_fn(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err);

struct ssh_host_request {
	const struct provider_context *context; // borrowed, as the target
	const struct ssh_target *target;
	ssh_connect_fn *connect;
	const char *sh;               // the shell there that runs our scripts; NULL: /bin/sh
	long long grace_ms;           // link-grace: no heartbeat for so long ends what runs there
	long long channel_timeout_ms; // the wait for a free channel, and for one to open
	long long login_timeout_ms;   // the login shell's answer
	long long first_timeout_ms;   // for the first channel of all; 0: channel_timeout_ms
	size_t max_connections;       // further ones are made where MaxSessions is met
	size_t warm_channels; // kept open for the next exec, so that it costs one round trip
	/* NULL: the target's user logs in. Else there is one connection. */
	const struct ssh_admission *admission;
	void *admission_data;
	bool stderr_apart;     // nothing may be written to a channel's stderr: it has its own
	size_t max_channels;   // of a connection; 0: as many as the server opens
	struct ssh_runs *runs; // borrowed; those of the place are ended first; NULL: none
	const char *place;     // borrowed; who names the same one works in the same folders
	const char *const *login_env; // borrowed; the values of login-env; NULL: none
};

struct ssh_host_listener {
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_ready)(void *data);
	/* Not reached, or lost; every exec has been told. Nothing follows; close it. */
	void (*on_failed)(void *data, const struct error *err);
};

/* Measured there; valid once ready. The texts are the host's. */
struct ssh_host_facts {
	const char *home, *user, *shell;
	const char *directory;   // home, or "/" where that is no directory
	const char *path;        // of the login shell
	const char *system;      // uname -s
	const char *machine;     // uname -m
	const char *git_version; // "" where there is none
	const char *rsync_version;
	unsigned ended; // processes of lost connections that were still running, and were ended
	const char *const
		*environment; // NULL-terminated: the allowlist of the login shell and set_env
	const char *const *agent_environment; // the same, and what login-env says
	const char *const *login_missing;     // names of login-env that are not exported; or NULL
	const char *const *login_too_big;     // variables that meet its limits; or NULL
	bool login_is_unknown;                // the login shell did not tell its environment
};

struct ssh_host *ssh_host_open(const struct ssh_host_request *request,
	const struct ssh_host_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
const struct ssh_host_facts *ssh_host_facts(const struct ssh_host *host);

/* What was said there before our script began; borrowed, until it is ready. */
struct span ssh_host_said(const struct ssh_host *host);

/*
 * sandbox_exec: all of its contract. `spec` is complete (env, cwd). argv[0] is looked up in the
 * PATH of env. A foreground process is refused (ERROR_UNAVAILABLE).
 */
struct exec *ssh_host_exec(struct ssh_host *host, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* It is frozen with the others of the suspension from now on. */
struct suspension;
void ssh_exec_join(struct exec *exec, struct suspension *suspension);

/*
 * Ends what runs there and the connections; raises nothing more. Handles of execs remain,
 * silent, until exec_destroy. NULL is fine.
 */
void ssh_host_close(struct ssh_host *host);

#endif
