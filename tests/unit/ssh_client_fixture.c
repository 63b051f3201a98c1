/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_client_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

enum { WAIT_MAX_MS = 90 * 1000, TICK_MS = 5 };

struct provider_context client_world;
extern char **environ;

void client_world_begin(void)
{
	struct error err;
	struct spawner *spawner = spawner_create(&err);
	if (!spawner) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	client_world.loop = ev_loop_new(0);
	client_world.spawner = spawner;
	client_world.pool = pool_create(client_world.loop);
	client_world.environment = (const char *const *)environ;
	spawner_attach(spawner, client_world.loop);
}

void client_world_end(void)
{
	pool_destroy(client_world.pool);
	spawner_destroy(client_world.spawner);
	ev_loop_destroy(client_world.loop);
}

bool is_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");
	return preload && strstr(preload, "vgpreload");
}

/* ---- time ---- */

static void on_tick(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
}

void loop_until(bool (*is_true)(void *data), void *data)
{
	struct ev_timer tick;
	long long end_ms = clock_now_ms() + WAIT_MAX_MS;
	ev_timer_init(&tick, on_tick, TICK_MS / 1000.0, TICK_MS / 1000.0);
	ev_timer_start(client_world.loop, &tick);
	while (!is_true(data) && clock_now_ms() < end_ms) {
		ev_run(client_world.loop, EVRUN_ONCE);
	}
	ev_timer_stop(client_world.loop, &tick);
	assert_true(is_true(data));
}

static bool is_past(void *data)
{
	return clock_now_ms() >= *(long long *)data;
}

void loop_for_ms(long long ms)
{
	long long end_ms = clock_now_ms() + ms;
	loop_until(is_past, &end_ms);
}

/* ---- targets ---- */

void target_set(char **word, const char *value)
{
	free(*word);
	*word = mem_strdup_or_null(value);
}

void target_set_list(char ***list, const char *const *values)
{
	size_t count = 0;
	for (char **word = *list; word && *word; word++) {
		free(*word);
	}
	free(*list);
	while (values[count]) {
		count++;
	}
	*list = mem_alloc_zero((count + 1) * sizeof(**list));
	for (size_t i = 0; i < count; i++) {
		(*list)[i] = mem_strdup(values[i]);
	}
}

void target_for(struct ssh_target *target, const struct sshd *sshd)
{
	const char *const keys[] = {sshd->key, NULL};
	const char *const known[] = {sshd->known_hosts, NULL};
	const char *const none[] = {NULL};
	*target = (struct ssh_target){
		.port = sshd->port,
		.connect_timeout_ms = 20 * 1000,
		.auth_timeout_ms = 60 * 1000,
		.alive_interval_ms = 15 * 1000,
		.alive_count_max = 4,
	};
	target_set(&target->alias, SSHD_ALIAS);
	target_set(&target->host, "127.0.0.1");
	target_set(&target->user, sshd->user);
	target_set_list(&target->identity_files, keys);
	target_set_list(&target->user_known_hosts_files, known);
	target_set_list(&target->global_known_hosts_files, none);
}

/* ---- clients ---- */

static void on_progress(void *data, const char *text)
{
	struct client_record *record = data;
	size_t len = strlen(record->progress);
	snprintf(record->progress + len, sizeof(record->progress) - len, "%s\n", text);
}

static void on_ready(void *data)
{
	struct client_record *record = data;
	record->ready_count++;
}

static void on_client_lost(void *data, const struct error *err)
{
	struct client_record *record = data;
	record->lost_count++;
	record->err = *err;
}

static const struct ssh_client_listener client_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_lost = on_client_lost,
};

void client_connect(struct client_record *record, const struct ssh_target *target)
{
	struct error err;
	*record = (struct client_record){.client = NULL};
	record->client = ssh_libssh2_connect(&client_world, target, &client_listener, record, &err);
	if (!record->client) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(record->ready_count + record->lost_count, 0);
}

static bool has_outcome(void *data)
{
	const struct client_record *record = data;
	return record->ready_count + record->lost_count > 0;
}

void wait_outcome(struct client_record *record)
{
	loop_until(has_outcome, record);
}

static bool is_lost(void *data)
{
	return ((const struct client_record *)data)->lost_count > 0;
}

void wait_ready(struct client_record *record)
{
	loop_until(has_outcome, record);
	if (record->lost_count > 0) {
		fail_msg("%s", record->err.text);
	}
	assert_int_equal(record->ready_count, 1);
}

void wait_lost(struct client_record *record)
{
	loop_until(is_lost, record);
	assert_int_equal(record->lost_count, 1);
}

void client_connect_ready(struct client_record *record, const struct ssh_target *target)
{
	client_connect(record, target);
	wait_ready(record);
}

void client_connect_fails(
	struct client_record *record, const struct ssh_target *target, const char *reason)
{
	client_connect(record, target);
	loop_until(has_outcome, record);
	assert_int_equal(record->ready_count, 0);
	assert_int_equal(record->lost_count, 1);
	if (!record->err.reason || strcmp(record->err.reason, reason) != 0) {
		fail_msg("%s: %s", record->err.reason ? record->err.reason : "(none)",
			record->err.text);
	}
	client_close(record);
}

void client_close(struct client_record *record)
{
	ssh_client_close(record->client);
	record->client = NULL;
}

/* ---- channels ---- */

static void add_event(struct channel_record *channel, char event)
{
	size_t len = strlen(channel->events);
	assert_true(len + 1 < sizeof(channel->events));
	channel->events[len] = event;
}

bool channel_has(const struct channel_record *channel, char event)
{
	return strchr(channel->events, event) != NULL;
}

unsigned long sum_add(unsigned long sum, struct span bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		sum = sum * 1099511628211UL + (unsigned char)bytes.data[i] + 1;
	}
	return sum;
}

static void on_open(void *data)
{
	add_event(data, 'o');
}

static void on_refused(void *data, const struct error *err)
{
	struct channel_record *channel = data;
	add_event(channel, 'r');
	channel->err = *err;
}

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct channel_record *channel = data;
	assert_true(bytes.len > 0);
	assert_true(channel_has(channel, 'o'));
	assert_false(channel_has(channel, stream == SSH_STREAM_OUT ? 'E' : 'e'));
	size_t taken = bytes.len;
	if (channel->holds[stream]) {
		taken = 0;
	} else if (channel->take_max[stream] > 0 && taken > channel->take_max[stream]) {
		taken = channel->take_max[stream];
	}
	channel->held_count[stream] += taken < bytes.len;
	size_t at = channel->counts[stream];
	for (size_t i = 0; i < taken && at + i + 1 < sizeof(channel->heads[stream]); i++) {
		channel->heads[stream][at + i] = bytes.data[i];
	}
	channel->counts[stream] += taken;
	channel->sums[stream] = sum_add(channel->sums[stream], (struct span){bytes.data, taken});
	return taken;
}

static void on_eof(void *data, enum ssh_stream stream)
{
	add_event(data, stream == SSH_STREAM_OUT ? 'E' : 'e');
}

static void on_writable(void *data)
{
	struct channel_record *channel = data;
	if (!channel_has(channel, 'w')) {
		add_event(channel, 'w');
	}
}

static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct channel_record *channel = data;
	assert_true(channel_has(channel, 'E'));
	assert_true(channel_has(channel, 'e'));
	add_event(channel, 'c');
	channel->end = *end;
}

static void on_lost(void *data, const struct error *err)
{
	struct channel_record *channel = data;
	add_event(channel, 'l');
	channel->err = *err;
}

static const struct ssh_channel_listener channel_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_writable,
	.on_closed = on_closed,
	.on_lost = on_lost,
};

void channel_open(struct channel_record *channel, struct client_record *client, const char *command)
{
	struct error err;
	*channel = (struct channel_record){.channel = NULL};
	channel->channel =
		ssh_channel_open(client->client, command, &channel_listener, channel, &err);
	if (!channel->channel) {
		fail_msg("%s", err.text);
	}
}

void channel_close(struct channel_record *channel)
{
	ssh_channel_close(channel->channel);
	channel->channel = NULL;
}

struct event_wait {
	struct channel_record *channel;
	char event;
};

/* Whether the event has come, or something that prevents it. */
static bool has_event(void *data)
{
	const struct event_wait *wait = data;
	return channel_has(wait->channel, wait->event) || channel_has(wait->channel, 'l') ||
	       channel_has(wait->channel, 'r');
}

void wait_event(struct channel_record *channel, char event)
{
	struct event_wait wait = {channel, event};
	loop_until(has_event, &wait);
	if (!channel_has(channel, event)) {
		fail_msg("%s: %s", channel->events, channel->err.text);
	}
}

void channel_run(struct channel_record *channel, struct client_record *client, const char *command)
{
	channel_open(channel, client, command);
	ssh_channel_send_eof(channel->channel);
	wait_event(channel, 'c');
	channel_close(channel);
}
