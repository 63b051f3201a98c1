/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_PIPE_CLIENT_H
#define TESTS_SSH_PIPE_CLIENT_H

#include <sys/types.h>

#include "providers/ssh/client.h"

/*
 * An SSH client without SSH. A channel is a process of this machine, connected by pipes. The login
 * shell starts it, as with sshd, in a session of its own or, as some servers do, in the server's
 * session. Closing a channel kills no process.
 */
struct pipe_client_options {
	const char *shell;       // the login shell
	const char *home;        // HOME of what it runs; NULL: as here
	const char *const *env;  // more of its environment; NULL-terminated; may be NULL
	size_t max_sessions;     // channels of one connection; 0: no limit
	size_t refusals;         // so many of the next channels are refused
	bool second_is_refused;  // every second one of the next
	enum error_code refusal; // how
	double open_delay_s;     // until a channel is opened or refused
	bool has_no_session;     // what runs is in the group of the test
	bool hides_end;          // the server does not say how a command ended
	size_t connection_count; // made so far
	size_t max_connections;  // a further one is not made; 0: no limit
	size_t stderr_bytes;     // that came of all channels
	size_t channel_count;    // the highest number that was open at once on a connection
	size_t drops;            // so many of the next are lost right after the login
	size_t login_failures;   // so many of the next are not logged in
	const char *login_reason;
	char users[128]; // who has connected, each with a space; '?' before a name that is no
	                 // secret
};
extern struct pipe_client_options pipe_client_options;

struct provider_context;
struct ssh_client *pipe_client_connect(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err);

/* For all connections: loses them; lets no bytes pass any more; lets bytes pass again. */
void pipe_clients_cut(void);
void pipe_clients_cut_last(void); // the youngest alone
void pipe_clients_freeze(bool is_frozen);

#endif
