/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CLIENT_FIXTURE_H
#define TESTS_SSH_CLIENT_FIXTURE_H

#include "base/soon.h"
#include "tests/support/ssh/sshd.h"

#include <ev.h>

#include "base/buf.h"
#include "providers/provider.h"
#include "providers/ssh/client.h"

/*
 * A client of providers/ssh/client.h on a real sshd, and what it has raised. The world is
 * one for all cases of a test program; each case makes its target and its connection.
 */
enum { CLIENT_DEADLINE_MS = 60000, TOLD_MAX = 16, KEPT_MAX = 64 * 1024 };

typedef struct ssh_client *client_connect_fn(const struct provider_context *context,
	const struct ssh_target *target, const struct ssh_client_listener *listener, void *data,
	struct error *err);

struct client_world {
	const char *name; // of the client
	client_connect_fn *connect;
	struct ev_loop *loop;
	struct provider_context context;
	struct sshd sshd;
	struct ssh_target target;
};

/* Turns the loop until *flag, failing the case after CLIENT_DEADLINE_MS. */
void client_run_until(const struct client_world *world, const bool *flag);

/* Turns it until the server has no connection any more. */
void client_expect_no_connection(const struct client_world *world);
void client_run_for(const struct client_world *world, int ms);

/* Starts sshd, and a target that fits it. NULL is all defaults. */
void client_world_start(struct client_world *world, const struct sshd_spec *spec);
void client_world_stop(struct client_world *world);

/* What a target has to have for this sshd; heap texts, as ssh_target_finish wants. */
void client_target_init(struct ssh_target *target, const struct sshd *sshd);
void client_set(char **text, const char *value);               // replaces an owned text
void client_set_list(char ***list, const char *value);         // by a list of one
void client_write_file(const char *path, const char *content); // 0600

/* One client and what was raised: r(eady), l(ost). */
struct connection {
	struct client_world *world;
	struct ssh_client *client;
	char told[TOLD_MAX];
	bool is_ready, is_lost, is_over; // over: either
	struct error err;
	char progress[1024];  // all of it, "\n" after each
	const char *close_at; // "ready", "lost", or words of a progress: closes the client then
	void (*on_progress)(struct connection *connection, const char *text); // may be NULL
};

void connection_open(struct connection *connection, struct client_world *world);
void connection_expect_ready(struct connection *connection, struct client_world *world);

/* Opens, and expects that it fails with one of these reasons ("A|B") and words in the text. */
void connection_expect_failure(struct connection *connection, struct client_world *world,
	const char *reasons, const char *words);
void connection_close(struct connection *connection);

/* One channel and what was raised: o(pen), r(efused), 1, 2 (end of stream), c(losed), l(ost). */
struct flow {
	struct connection *connection;
	struct ssh_channel *channel;
	char told[TOLD_MAX];
	bool is_open, is_over; // over: refused, closed or lost
	struct error err;
	struct ssh_channel_end end;
	struct buf kept[2];          // the first KEPT_MAX bytes of each stream
	unsigned long long total[2]; // bytes
	unsigned long long hash[2];  // of all bytes in order
	size_t take_max;             // bytes taken at a time; 0: all
	bool takes_nothing;
	struct soon later; // takes the rest
	enum ssh_stream held;
	char close_at; // closes the channel in the handler of this event; 'b': bytes
	bool is_writable;
	bool has_bytes;
};

void flow_open(struct flow *flow, struct connection *connection, const char *command);
void flow_close(struct flow *flow);

/* Opens, sends the text and the half-close, and waits for the end. */
void flow_run(
	struct flow *flow, struct connection *connection, const char *command, const char *input);
/* Waits until it is closed, with this status; one of 0 may be unknown. */
void flow_expect_end(struct flow *flow, int code);
const char *flow_text(struct flow *flow, enum ssh_stream stream);

/* Sends that many bytes of a pattern as fast as they are taken, then the half-close. */
void flow_send_pattern(struct flow *flow, size_t count);
unsigned long long pattern_hash(size_t count);

#endif
