/* SPDX-License-Identifier: MIT */
#include <sys/socket.h>
#include <time.h>

#include "providers/ssh/libssh2_client.h"

/*
 * Checks that the other side still exists, like ssh's ServerAliveInterval and ServerAliveCountMax:
 * asks it after each interval of silence, and gives up after this many intervals. An interval in
 * which this program or machine slept proves nothing.
 */

/*
 * The time that this machine was suspended: CLOCK_BOOTTIME counts it and CLOCK_MONOTONIC does not.
 */
static double slept_s(void)
{
	struct timespec all;
	struct timespec awake;
	clock_gettime(CLOCK_BOOTTIME, &all);
	clock_gettime(CLOCK_MONOTONIC, &awake);
	return (double)(all.tv_sec - awake.tv_sec) + (double)(all.tv_nsec - awake.tv_nsec) / 1e9;
}

/* The interval begins at `from`, a time of ev_now. */
static void alive_set(struct ssh2_client *client, double interval_s, double from)
{
	struct ev_loop *loop = client->context->loop;
	client->alive_from = from;
	client->alive_due = from + interval_s;
	double after = client->alive_due - ev_now(loop);
	ev_timer_stop(loop, &client->alive);
	ev_timer_set(&client->alive, after > 0 ? after : 0, 0);
	ev_timer_start(loop, &client->alive);
}

/* Whether the machine slept while the timer ran; a small difference is normal. */
static bool has_slept(struct ssh2_client *client, double interval_s)
{
	double slept = slept_s();
	bool has = slept - client->sleep_total > interval_s / 2 ||
	           ev_now(client->context->loop) - client->alive_due > interval_s / 2;
	client->sleep_total = slept;
	return has;
}

/* Bytes that came while the loop was busy count, too. */
static bool has_heard(struct ssh2_client *client)
{
	char byte;
	if (recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
		client->received_at = ev_now(client->context->loop);
	}
	return client->received_at > client->alive_from;
}

static void alive_tick(struct ssh2_client *client)
{
	double interval_s = (double)client->target->alive_interval_ms / 1000;
	double now = ev_now(client->context->loop);
	int max = client->target->alive_count_max > 1 ? client->target->alive_count_max : 2;
	bool was_asleep = has_slept(client, interval_s);
	if (has_heard(client)) {
		client->silent_intervals = 0;
		alive_set(client, interval_s, client->received_at);
		return;
	}
	client->silent_intervals = was_asleep ? 1 : client->silent_intervals + 1;
	if (client->silent_intervals >= max) {
		client_set_lost(client,
			"the server has not answered for %g s (alive-interval, alive-count)",
			interval_s * client->silent_intervals);
	} else {
		open_probe(client);
		alive_set(client, interval_s, now);
	}
	client_ask_turn(client);
}

static void on_alive(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	alive_tick(CONTAINER_OF(watcher, struct ssh2_client, alive));
}

void alive_begin(struct ssh2_client *client)
{
	double interval_s = (double)client->target->alive_interval_ms / 1000;
	ev_timer_init(&client->alive, on_alive, 0, 0);
	if (interval_s > 0) {
		client->sleep_total = slept_s();
		alive_set(client, interval_s, ev_now(client->context->loop));
	}
}

void alive_end(struct ssh2_client *client)
{
	ev_timer_stop(client->context->loop, &client->alive);
}
