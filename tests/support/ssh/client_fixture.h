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
 * A client of providers/ssh/client.h on a real sshd, and the events that it raised. All cases of a
 * test program share one world; each case makes its own target and connection.
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

/* Runs the loop until *flag is set; fails the case after CLIENT_DEADLINE_MS. */
void client_run_until(const struct client_world *world, const bool *flag);

/* Runs the loop until the server has no connections. */
void client_expect_no_connection(const struct client_world *world);
void client_run_for(const struct client_world *world, int ms);

/* Starts sshd, and a target that fits it. NULL is all defaults. */
void client_world_start(struct client_world *world, const struct sshd_spec *spec);
void client_world_stop(struct client_world *world);

/* Fills in a target for this sshd; its texts are on the heap, for ssh_target_finish. */
void client_target_init(struct ssh_target *target, const struct sshd *sshd);
void client_set(char **text, const char *value);               // replaces an owned text
void client_set_list(char ***list, const char *value);         // by a list of one
void client_write_file(const char *path, const char *content); // 0600

/* One client and the events that it raised: r(eady), l(ost). */
struct connection {
	struct client_world *world;
	struct ssh_client *client;
	char told[TOLD_MAX];
	bool is_ready, is_lost, is_over; // over: either
	struct error err;
	char progress[1024];  // all lines, each with "\n"
	const char *close_at; // "ready", "lost", or words of a progress: closes the client then
	void (*on_progress)(struct connection *connection, const char *text); // may be NULL
};

void connection_open(struct connection *connection, struct client_world *world);
void connection_expect_ready(struct connection *connection, struct client_world *world);

/*
 * Opens a connection, and expects that it fails with one of these reasons ("A|B") and these words
 * in the text.
 */
void connection_expect_failure(struct connection *connection, struct client_world *world,
	const char *reasons, const char *words);
void connection_close(struct connection *connection);

/*
 * One channel and the events that it raised: o(pen), r(efused), 1, 2 (end of stream), c(losed),
 * l(ost).
 */
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

/* Opens a channel, sends the text and the half-close, and waits for the end. */
void flow_run(
	struct flow *flow, struct connection *connection, const char *command, const char *input);
/* Waits until the channel is closed, and expects this status; a status of 0 may be unknown. */
void flow_expect_end(struct flow *flow, int code);
const char *flow_text(struct flow *flow, enum ssh_stream stream);

/* Sends `count` bytes of a pattern as fast as the channel takes them, then the half-close. */
void flow_send_pattern(struct flow *flow, size_t count);
unsigned long long pattern_hash(size_t count);

#endif
