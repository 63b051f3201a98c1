/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_PIPE_CLIENT_H
#define TESTS_SSH_PIPE_CLIENT_H

#include <sys/types.h>

#include "providers/ssh/client.h"

/*
 * An SSH client without SSH. A channel is a process of this machine, connected by pipes. The login
 * shell starts it, as with sshd, in a session of its own; or in the server's session, as some
 * servers do. Closing a channel kills no process.
 */
struct pipe_client_options {
	const char *shell;       // the login shell
	const char *home;        // HOME of its processes; NULL: /root
	const char *const *env;  // more of its environment; NULL-terminated; may be NULL
	size_t max_sessions;     // channels of one connection; 0: no limit
	size_t refusals;         // this many of the next channels are refused
	bool second_is_refused;  // every second one of the next channels is
	enum error_code refusal; // the code of these refusals
	double open_delay_s;     // until a channel is opened or refused
	bool has_no_session;     // its processes are in the test's group
	bool hides_end;          // the server does not say how a command ended
	size_t connection_count; // number of connections so far
	size_t max_connections;  // no further one is made; 0: no limit
	size_t stderr_bytes;     // received on all channels
	size_t channel_count;    // the most channels that were open at once on a connection
	size_t drops;            // this many of the next are lost after the login
	size_t login_failures;   // this many of the next logins fail
	const char *login_reason;
	char users[128]; // all that connected, with a space after each and '?' before one
	                 // that is not secret
};
extern struct pipe_client_options pipe_client_options;

struct provider_context;
struct ssh_client *pipe_client_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err);

/* For all connections: loses them; stops all bytes; lets bytes pass again. */
void pipe_clients_cut(void);
void pipe_clients_cut_last(void); // only the youngest one
void pipe_clients_freeze(bool is_frozen);
void pipe_clients_freeze_control(bool is_frozen); // only the first channel, which is the control's

#endif
