/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_SANDBOX_H
#define PROVIDERS_SSH_SANDBOX_H

#include "providers/impl.h"
#include "providers/ssh/host.h"

/* The settings of a profile, except those for connecting. */
struct ssh_sandbox_settings {
	const char *runtime_root; // borrowed until ssh_sandbox_open returns
	long long grace_ms;
	long long channel_timeout_ms;
	long long login_timeout_ms;
	long long first_timeout_ms; // for the first channel; 0: channel_timeout_ms
	size_t max_connections;
	bool wants_runner;   // use the runner if the host can run it; otherwise scripts
	bool outlives;       // with the runner: processes go on when the connection is lost
	bool names_outlives; // the profile has the key: if it cannot be met, the user is warned
	long long orphan_ms;
	long long turn_grace_ms;        // with `outlives`: instead of grace_ms while a turn is open
	unsigned long long link_buffer; // bytes; 0: as for others
	const char *const *login_env;   // borrowed like runtime_root; NULL: none
	ssh_connect_fn *connect;
	/*
	 * For a gateway; all may be zero. With an admission there is only one connection, the
	 * target's user is not used, and the client must be libssh2, because the ssh program's
	 * command line would show the name.
	 */
	const struct ssh_admission *admission; // borrowed, with its data
	void *admission_data;
	bool stderr_apart;   // the stderr of processes has its own channels
	size_t max_channels; // of one connection; 0: as many as the server opens
	/*
	 * SSH_FOLDERS_TOKEN_SIZE bytes, borrowed: names the folders of this run, which no other run
	 * uses. The first sandbox fills it in, so that a later one finds the folders; it becomes ""
	 * again when the folders are removed. NULL: the profile finds them.
	 */
	char *token;
	struct ssh_runs *runs; // borrowed from the provider; may be NULL
	/* Borrowed until ssh_sandbox_open returns; NULL: the profile and its target. */
	const char *place;
};

enum { SSH_FOLDERS_TOKEN_SIZE = 33 };

/*
 * Opens a sandbox on a host. If the caller knows the host, `target` is already resolved, and the
 * sandbox takes it over. With NULL, the sandbox first resolves the keys of the request. The
 * request's reference is a token that an earlier sandbox filled in.
 */
struct sandbox *ssh_sandbox_open(const struct provider_context *context,
	const struct sandbox_request *request, const struct ssh_sandbox_settings *settings,
	struct ssh_target *target, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
