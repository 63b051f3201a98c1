/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SSH_CLIENT_FIXTURE_H
#define TESTS_SSH_CLIENT_FIXTURE_H

#include "tests/support/ssh/sshd.h"

#include <ev.h>

#include "base/buf.h"
#include "providers/provider.h"
#include "providers/ssh/client.h"

/* A client that connects to a real sshd, and channels that note what happens to them. */

/* What a client's user sees. */
struct client_record {
	struct ssh_client *client; // NULL once closed
	int ready_count;
	int lost_count;
	struct error err;
	char progress[4096];
};

/* What a channel's user sees. */
struct channel_record {
	struct ssh_channel *channel; // NULL once closed
	char events[64]; // o open, r refused, E eof of stdout, e of stderr, c closed, l lost, w
	                 // writable
	struct error err;
	struct ssh_channel_end end;
	size_t counts[2];      // bytes taken, by enum ssh_stream
	char heads[2][4096];   // the first of them, terminated
	unsigned long sums[2]; // of all of them, see sum_add
	size_t take_max[2];    // takes no more in one call
	bool holds[2];         // takes nothing
	size_t held_count[2];  // calls that were not taken whole
};

struct client_fixture {
	struct provider_context context;
	struct sshd sshd;
	struct ssh_target target;
};

/* Forks the spawner and makes loop and pool; call it first in main. Ends what they hold. */
void client_world_begin(void);
void client_world_end(void);
extern struct provider_context client_world;

/* Whether valgrind runs the test: then it is twenty times slower and uses more memory. */
bool is_under_valgrind(void);

/* Makes a target for this sshd, with its key and known hosts. Finish it. */
void target_for(struct ssh_target *target, const struct sshd *sshd);
/* Replaces a word or a list of one. */
void target_set(char **word, const char *value);
void target_set_list(char ***list, const char *const *values);

/* Connects with libssh2. */
void client_connect(struct client_record *record, const struct ssh_target *target);
/* And waits until it is ready. */
void client_connect_ready(struct client_record *record, const struct ssh_target *target);
/* Connects, and waits until it fails with this reason; err is in the record. Closes it. */
void client_connect_fails(
	struct client_record *record, const struct ssh_target *target, const char *reason);
void client_close(struct client_record *record);

/* Opens a channel that runs a command. */
void channel_open(
	struct channel_record *channel, struct client_record *client, const char *command);
void channel_close(struct channel_record *channel);
/* Opens it, ends its stdin, and waits until it was closed. */
void channel_run(struct channel_record *channel, struct client_record *client, const char *command);
bool channel_has(const struct channel_record *channel, char event);

/* Runs the loop until `is_true`; the test fails after 90 seconds. */
void loop_until(bool (*is_true)(void *data), void *data);
/* Runs the loop for so long. */
void loop_for_ms(long long ms);
void wait_event(struct channel_record *channel, char event);
void wait_outcome(struct client_record *record);
void wait_ready(struct client_record *record);
void wait_lost(struct client_record *record);

unsigned long sum_add(unsigned long sum, struct span bytes);

#endif
