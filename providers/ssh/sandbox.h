/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_SANDBOX_H
#define PROVIDERS_SSH_SANDBOX_H

#include "providers/impl.h"
#include "providers/ssh/host.h"

/* What a profile says besides where and how to connect. */
struct ssh_sandbox_settings {
	const char *runtime_root; // borrowed until ssh_sandbox_open returns
	long long grace_ms;
	long long channel_timeout_ms;
	long long login_timeout_ms;
	long long first_timeout_ms; // for the first channel; 0: channel_timeout_ms
	size_t max_connections;
	const char *const *login_env; // borrowed as runtime_root; NULL: none
	ssh_connect_fn *connect;
	/*
	 * For a gateway; all may be zero. With an admission there is one connection, the target's
	 * user is of no use, and the client has to be libssh2: the ssh program's command line
	 * would show the name.
	 */
	const struct ssh_admission *admission; // borrowed, with its data
	void *admission_data;
	bool stderr_apart;   // the stderr of processes comes over channels of its own
	size_t max_channels; // of a connection; 0: as many as the server opens
	/*
	 * SSH_FOLDERS_TOKEN_SIZE bytes, borrowed: where the folders are of this run alone, whose
	 * they are. The first sandbox fills it in, so that a later one finds them; once they are
	 * being removed it is "" again. NULL: they are found by the profile.
	 */
	char *token;
	struct ssh_runs *runs; // borrowed; the provider's; may be NULL
	const char *place;     // borrowed until ssh_sandbox_open returns; NULL: the profile
};

enum { SSH_FOLDERS_TOKEN_SIZE = 33 };

/*
 * A sandbox on a host that a client reaches, from resolving its name on. Whoever finds the
 * host in another way than by the profile's keys gives a resolved target, which is taken over;
 * NULL: by the keys of the request. The request's reference is a token that was filled in before.
 */
struct sandbox *ssh_sandbox_open(const struct provider_context *context,
	const struct sandbox_request *request, const struct ssh_sandbox_settings *settings,
	struct ssh_target *target, const struct sandbox_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
