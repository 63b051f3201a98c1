/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/client_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/words.h"

enum { TICK_MS = 5, PIECE = 40000 };

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

static void run_while(const struct client_world *world, const bool *flag, int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, TICK_MS / 1000., TICK_MS / 1000.);
	ev_timer_start(world->loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	while (!(flag && *flag) && clock_now_ms() < deadline_ms) {
		ev_run(world->loop, EVRUN_ONCE);
	}
	ev_timer_stop(world->loop, &tick);
}

void client_expect_no_connection(const struct client_world *world)
{
	long long deadline_ms = clock_now_ms() + CLIENT_DEADLINE_MS;
	while (sshd_count_connections(&world->sshd) > 0 && clock_now_ms() < deadline_ms) {
		client_run_for(world, 20);
	}
	assert_int_equal(sshd_count_connections(&world->sshd), 0);
}

void client_run_until(const struct client_world *world, const bool *flag)
{
	run_while(world, flag, CLIENT_DEADLINE_MS);
	if (!*flag) {
		sshd_print_log(&world->sshd);
		fail_msg("nothing has come");
	}
}

void client_run_for(const struct client_world *world, int ms)
{
	run_while(world, NULL, ms);
}

/* ---- targets ---- */

void client_set(char **text, const char *value)
{
	free(*text);
	*text = mem_strdup_or_null(value);
}

void client_set_list(char ***list, const char *value)
{
	words_free(*list);
	*list = NULL;
	words_append(list, value);
}

void client_write_file(const char *path, const char *content)
{
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), NULL));
}

void client_target_init(struct ssh_target *target, const struct sshd *sshd)
{
	*target = (struct ssh_target){.port = sshd->port,
		.identities_only = true,
		.connect_timeout_ms = 20000,
		.auth_timeout_ms = 20000,
		.alive_interval_ms = 15000,
		.alive_count_max = 4};
	client_set(&target->alias, SSHD_ALIAS);
	client_set(&target->host, "127.0.0.1");
	client_set(&target->user, sshd->user);
	client_set(&target->ssh_program, "/usr/bin/ssh");
	client_set(&target->config_file, sshd->config);
	client_set_list(&target->identity_files, sshd->key);
	client_set_list(&target->user_known_hosts_files, sshd->known_hosts);
	client_set_list(&target->global_known_hosts_files, "/dev/null");
}

void client_world_start(struct client_world *world, const struct sshd_spec *spec)
{
	sshd_start(&world->sshd, spec);
	client_target_init(&world->target, &world->sshd);
}

void client_world_stop(struct client_world *world)
{
	ssh_target_finish(&world->target);
	world->target = (struct ssh_target){0};
	sshd_stop(&world->sshd);
}

/* ---- the client ---- */

static void note(char told[TOLD_MAX], char event)
{
	size_t len = strlen(told);
	assert_true(len + 1 < TOLD_MAX);
	told[len] = event;
}

static void close_if(struct connection *connection, const char *event)
{
	if (connection->close_at && strstr(event, connection->close_at)) {
		ssh_client_close(connection->client);
		connection->client = NULL;
		connection->is_over = true;
	}
}

static void on_progress(void *data, const char *text)
{
	struct connection *connection = data;
	assert_non_null(connection->client); // it is not raised from inside
	size_t len = strlen(connection->progress);
	snprintf(connection->progress + len, sizeof(connection->progress) - len, "%s\n", text);
	if (connection->on_progress) {
		connection->on_progress(connection, text);
	}
	close_if(connection, text);
}

static void on_ready(void *data)
{
	struct connection *connection = data;
	assert_non_null(connection->client);
	note(connection->told, 'r');
	connection->is_ready = connection->is_over = true;
	close_if(connection, "ready");
}

static void on_lost(void *data, const struct error *err)
{
	struct connection *connection = data;
	assert_non_null(connection->client);
	note(connection->told, 'l');
	connection->err = *err;
	connection->is_lost = connection->is_over = true;
	close_if(connection, "lost");
}

static const struct ssh_client_listener client_listener = {
	.on_progress = on_progress, .on_ready = on_ready, .on_lost = on_lost};

void connection_open(struct connection *connection, struct client_world *world)
{
	struct error err;
	connection->world = world;
	connection->client =
		world->connect(&world->context, &world->target, &client_listener, connection, &err);
	if (!connection->client) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(connection->told, "");
}

void connection_expect_ready(struct connection *connection, struct client_world *world)
{
	connection_open(connection, world);
	client_run_until(world, &connection->is_over);
	if (!connection->is_ready) {
		sshd_print_log(&world->sshd);
		fail_msg("%s", connection->err.text);
	}
	assert_string_equal(connection->told, "r");
}

static bool is_one_of(const char *reasons, const char *reason)
{
	const char *found = reason ? strstr(reasons, reason) : NULL;
	size_t len = reason ? strlen(reason) : 0;
	return found && (found[len] == '\0' || found[len] == '|');
}

void connection_expect_failure(struct connection *connection, struct client_world *world,
	const char *reasons, const char *words)
{
	if (!connection->client) {
		connection_open(connection, world);
	}
	client_run_until(world, &connection->is_lost);
	if (!is_one_of(reasons, connection->err.reason) || !strstr(connection->err.text, words)) {
		fail_msg("%s \"%s\", expected %s with \"%s\"",
			connection->err.reason ? connection->err.reason : "no reason",
			connection->err.text, reasons, words);
	}
	assert_true(connection->err.code != ERROR_NONE);
}

void connection_close(struct connection *connection)
{
	ssh_client_close(connection->client);
	connection->client = NULL;
}

/* ---- channels ---- */

static void flow_note(struct flow *flow, char event)
{
	assert_non_null(flow->channel); // neither from inside nor after the close
	if (event != 'b') {
		note(flow->told, event);
	}
	flow->is_over = flow->is_over || strchr("rcl", event);
	if (flow->close_at == event) {
		flow_close(flow);
		flow->is_over = true;
	}
}

static void on_open(void *data)
{
	struct flow *flow = data;
	flow->is_open = true;
	flow_note(flow, 'o');
}

static void on_refused(void *data, const struct error *err)
{
	struct flow *flow = data;
	flow->err = *err;
	flow_note(flow, 'r');
}

static unsigned long long hash_more(unsigned long long hash, struct span bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		hash = (hash ^ (unsigned char)bytes.data[i]) * 1099511628211ULL;
	}
	return hash;
}

static void on_later(struct soon *soon)
{
	struct flow *flow = CONTAINER_OF(soon, struct flow, later);
	ssh_channel_resume(flow->channel, flow->held);
}

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct flow *flow = data;
	assert_true(bytes.len > 0);
	flow->has_bytes = true;
	size_t count =
		flow->take_max > 0 && flow->take_max < bytes.len ? flow->take_max : bytes.len;
	if (flow->takes_nothing) {
		return 0;
	}
	size_t room = KEPT_MAX - flow->kept[stream].len;
	assert_true(buf_append(
		&flow->kept[stream], (struct span){bytes.data, count < room ? count : room}, NULL));
	flow->total[stream] += count;
	flow->hash[stream] = hash_more(flow->hash[stream], (struct span){bytes.data, count});
	if (count < bytes.len) {
		flow->held = stream;
		soon_start(&flow->later);
	}
	flow_note(flow, 'b');
	return count;
}

static void on_eof(void *data, enum ssh_stream stream)
{
	flow_note(data, stream == SSH_STREAM_OUT ? '1' : '2');
}

static void on_writable(void *data)
{
	struct flow *flow = data;
	flow->is_writable = true;
}

static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct flow *flow = data;
	flow->end = *end;
	flow_note(flow, 'c');
}

static void on_flow_lost(void *data, const struct error *err)
{
	struct flow *flow = data;
	flow->err = *err;
	flow_note(flow, 'l');
}

static const struct ssh_channel_listener channel_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_writable,
	.on_closed = on_closed,
	.on_lost = on_flow_lost,
};

void flow_open(struct flow *flow, struct connection *connection, const char *command)
{
	struct error err;
	flow->connection = connection;
	soon_init(&flow->later, flow->connection->world->loop, on_later);
	buf_init(&flow->kept[0], KEPT_MAX + 1);
	buf_init(&flow->kept[1], KEPT_MAX + 1);
	flow->channel =
		ssh_channel_open(connection->client, command, &channel_listener, flow, &err);
	if (!flow->channel) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(flow->told, "");
}

void flow_close(struct flow *flow)
{
	ssh_channel_close(flow->channel);
	flow->channel = NULL;
	soon_stop(&flow->later);
	buf_finish(&flow->kept[0]);
	buf_finish(&flow->kept[1]);
}

void flow_run(
	struct flow *flow, struct connection *connection, const char *command, const char *input)
{
	flow_open(flow, connection, command);
	assert_int_equal(ssh_channel_write(flow->channel, span_of(input)), strlen(input));
	ssh_channel_send_eof(flow->channel);
	client_run_until(connection->world, &flow->is_over);
}

void flow_expect_end(struct flow *flow, int code)
{
	client_run_until(flow->connection->world, &flow->is_over);
	if (strcmp(flow->told, "o12c") != 0 && strcmp(flow->told, "o21c") != 0) {
		fail_msg("was told %s (%s)", flow->told, flow->err.text);
	}
	/* Not every client can tell a status of 0 from a missing one. */
	assert_true(flow->end.is_known || code == 0);
	assert_int_equal(flow->end.signal, 0);
	assert_int_equal(flow->end.code, code);
}

const char *flow_text(struct flow *flow, enum ssh_stream stream)
{
	assert_true(buf_append(&flow->kept[stream], (struct span){"", 1}, NULL));
	return buf_span(&flow->kept[stream]).data;
}

/* ---- a lot of bytes ---- */

static void fill_pattern(char *bytes, size_t start, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t place = start + i;
		bytes[i] = (char)(place ^ (place >> 8) * 7 ^ (place >> 16) * 13);
	}
}

unsigned long long pattern_hash(size_t count)
{
	char bytes[PIECE];
	unsigned long long hash = 0;
	for (size_t done = 0; done < count; done += PIECE) {
		size_t len = count - done < PIECE ? count - done : PIECE;
		fill_pattern(bytes, done, len);
		hash = hash_more(hash, (struct span){bytes, len});
	}
	return hash;
}

void flow_send_pattern(struct flow *flow, size_t count)
{
	char bytes[PIECE];
	for (size_t done = 0; done < count;) {
		size_t len = count - done < PIECE ? count - done : PIECE;
		fill_pattern(bytes, done, len);
		flow->is_writable = false;
		size_t taken = ssh_channel_write(flow->channel, (struct span){bytes, len});
		assert_true(taken <= len);
		done += taken;
		if (taken < len) {
			client_run_until(flow->connection->world, &flow->is_writable);
		}
	}
	ssh_channel_send_eof(flow->channel);
}
