/* SPDX-License-Identifier: MIT */
#include "broker/methods/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/ledger/keeper.h"
#include "broker/ledger/store_weight.h"
#include "broker/methods/pause.h"
#include "broker/methods/probe.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"

/* A request that is answered once every sandbox has answered, or will not. */
struct health {
	struct list link; // healths_of
	struct relay *relay;
	char *id;                    // owned, raw
	struct list checks;          // of struct check
	struct store_weight *stores; // owned; NULL if there are none
	bool is_weighed;
};

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

/* The unanswered struct health. */
static struct list *healths_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

/* One agent, and the probe of its sandbox. */
struct check {
	struct list link; // health.checks
	struct health *health;
	struct peer *peer;   // NULL once it has ended
	struct probe *probe; // owned; NULL if there is no sandbox to probe
	bool is_done;
};

static void check_destroy(struct check *check)
{
	list_remove(&check->link);
	probe_destroy(check->probe);
	free(check);
}

static void health_destroy(struct health *health)
{
	LIST_FOR_EACH(check, &health->checks, struct check, link) {
		check_destroy(check);
	}
	list_remove(&health->link);
	store_weight_destroy(health->stores);
	free(health->id);
	free(health);
}

/* ---- the answer ---- */

static void write_null(struct json_writer *writer, const char *key)
{
	json_write_key(writer, key);
	json_write_null(writer);
}

static const char *state_of(const struct peer *peer)
{
	if (peer->is_down) {
		return "ended";
	}
	if (pause_holds_agent(peer)) {
		return "paused";
	}
	return !peer->is_ready ? "preparing" : peer->was_greeted ? "running" : "starting";
}

static void count_session(void *data, struct session *session)
{
	++*(long long *)data;
}

static void write_process(struct json_writer *writer, const struct peer *peer)
{
	pid_t pid = peer->is_down ? 0 : agent_process(peer->agent);
	if (pid > 0) {
		json_write_member_int(writer, "process", pid);
	} else {
		write_null(writer, "process");
	}
}

static void write_sandbox(struct json_writer *writer, const struct check *check)
{
	const struct probe_result *result = check->probe ? probe_result(check->probe) : NULL;
	if (result && result->has_answered) {
		json_write_member_int(writer, "roundTripUs", result->round_trip_us);
		json_write_member_int(writer, "startUs", result->start_us);
	} else {
		write_null(writer, "roundTripUs");
		write_null(writer, "startUs");
	}
	if (result && result->has_disk) {
		json_write_member_int(writer, "diskFreeBytes", (long long)result->disk_free_bytes);
		json_write_member_int(writer, "diskSizeBytes", (long long)result->disk_size_bytes);
	} else {
		write_null(writer, "diskFreeBytes");
		write_null(writer, "diskSizeBytes");
	}
	json_write_member(
		writer, "problem", result && !result->has_answered ? result->err.text : NULL);
}

static void write_store(
	struct json_writer *writer, const struct health *health, const struct kept *kept)
{
	long long bytes = health->stores && kept->store_folder
	                          ? store_weight_bytes(health->stores, kept->store_folder)
	                          : -1;
	if (bytes >= 0) {
		json_write_member_int(writer, "storeBytes", bytes);
	} else {
		write_null(writer, "storeBytes");
	}
}

/* Writes the state of an agent's workspaces. True if no last sync has failed. */
static bool write_workspaces(struct json_writer *writer, const struct check *check)
{
	const struct peer *peer = check->peer;
	struct kept kept;
	bool is_well = true;
	json_write_key(writer, "workspaces");
	json_write_array(writer);
	for (size_t i = 0; peer->keeper && keeper_at(peer->keeper, i, &kept); i++) {
		bool has_failed = kept.last->happened && *kept.last->error;
		json_write_object(writer);
		json_write_member(writer, "record", kept.id);
		json_write_member(writer, "localRoot", kept.local_root);
		json_write_member(writer, "state", kept.state);
		json_write_member(writer, "lastSync", kept.last->happened ? kept.last->time : NULL);
		json_write_member(writer, "lastSyncError", has_failed ? kept.last->error : NULL);
		write_store(writer, check->health, &kept);
		json_write_object_end(writer);
		is_well = is_well && !has_failed;
	}
	json_write_array_end(writer);
	return is_well;
}

static bool write_agent(struct json_writer *writer, const struct check *check)
{
	struct peer *peer = check->peer;
	long long sessions = 0;
	session_table_visit(&peer->relay->sessions, peer, count_session, &sessions);
	json_write_object(writer);
	json_write_member_int(writer, "agent", peer->number);
	json_write_member(writer, "name", *peer->agent_name ? peer->agent_name : NULL);
	json_write_member(writer, "state", state_of(peer));
	write_process(writer, peer);
	json_write_member_int(writer, "sessions", sessions);
	write_sandbox(writer, check);
	bool is_well = write_workspaces(writer, check);
	json_write_object_end(writer);
	bool has_answered = !check->probe || probe_result(check->probe)->has_answered;
	return is_well && has_answered && !peer->is_down;
}

static void answer(struct health *health)
{
	struct buf out;
	struct error err;
	struct json_writer writer;
	struct relay *relay = health->relay;
	bool is_well = true;
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	json_write_key(&writer, "agents");
	json_write_array(&writer);
	LIST_FOR_EACH(check, &health->checks, struct check, link) {
		is_well = (!check->peer || write_agent(&writer, check)) && is_well;
	}
	json_write_array_end(&writer);
	json_write_member_bool(&writer, "isHealthy", is_well);
	json_write_object_end(&writer);
	if (json_write_end(&writer, &err)) {
		relay_answer(relay, span_of(health->id), buf_span(&out));
	} else {
		relay_fail(relay, span_of(health->id), error_at(&err, "session"));
	}
	buf_finish(&out);
	health_destroy(health);
}

static void answer_if_done(struct health *health)
{
	if (!health->is_weighed) {
		return;
	}
	LIST_FOR_EACH(check, &health->checks, struct check, link) {
		if (!check->is_done) {
			return;
		}
	}
	answer(health);
}

/* ---- the probes ---- */

static void on_probed(void *data)
{
	struct check *check = data;
	check->is_done = true;
	answer_if_done(check->health);
}

static void begin(struct health *health, struct peer *peer)
{
	struct check *check = mem_alloc_zero(sizeof(*check));
	const struct relay_config *config = &health->relay->config;
	struct sandbox *sandbox = peer->is_down ? NULL : agent_sandbox(peer->agent);
	check->health = health;
	check->peer = peer;
	check->is_done = !sandbox;
	list_append(&health->checks, &check->link);
	if (sandbox) {
		const char *folder = sandbox_root_count(sandbox) > 0
		                             ? sandbox_root_at(sandbox, 0)->runtime
		                             : sandbox_home(sandbox);
		check->probe = probe_start(&(struct probe_config){
			.loop = config->loop,
			.sandbox = sandbox,
			.folder = folder ? folder : "/",
			.timeout_ms = config->profile->health_timeout_ms,
			.timeout_key = "health-timeout",
			.done = on_probed,
			.data = check,
		});
	}
}

static void on_weighed(void *data)
{
	struct health *health = data;
	health->is_weighed = true;
	answer_if_done(health);
}

/* Measures the stores of all workspaces; several may be in one store. */
static void weigh(struct health *health)
{
	struct relay *relay = health->relay;
	const char **folders = NULL;
	size_t count = 0;
	struct kept kept;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		for (size_t i = 0; peer->keeper && keeper_at(peer->keeper, i, &kept); i++) {
			folders = mem_realloc(folders, (count + 2) * sizeof(*folders));
			folders[count] = kept.store_folder;
			count += kept.store_folder ? 1 : 0;
			folders[count] = NULL;
		}
	}
	health->is_weighed = count == 0;
	if (count > 0) {
		health->stores = store_weight_start(relay->config.loop, relay->config.pool, folders,
			relay->config.profile->health_timeout_ms, on_weighed, health);
	}
	free(folders);
}

void health_call(struct relay *relay, const struct call *call)
{
	struct health *health = mem_alloc_zero(sizeof(*health));
	health->relay = relay;
	health->id = mem_strndup(call->message.id);
	list_init(&health->checks);
	list_append(healths_of(relay), &health->link);
	weigh(health);
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		begin(health, peer);
	}
	answer_if_done(health);
}

int health_count(struct relay *relay)
{
	int count = 0;
	LIST_FOR_EACH(health, healths_of(relay), struct health, link) {
		count++;
	}
	return count;
}

void health_end(struct relay *relay)
{
	LIST_FOR_EACH(health, healths_of(relay), struct health, link) {
		store_weight_destroy(health->stores);
		health->stores = NULL;
		health->is_weighed = true;
		answer_if_done(health);
	}
}

void health_drop_peer(struct peer *peer)
{
	LIST_FOR_EACH(health, healths_of(peer->relay), struct health, link) {
		LIST_FOR_EACH(check, &health->checks, struct check, link) {
			if (check->peer == peer) {
				probe_destroy(check->probe);
				check->probe = NULL;
				check->peer = NULL;
				check->is_done = true;
			}
		}
		answer_if_done(health);
	}
}

void health_drop_all(struct relay *relay)
{
	LIST_FOR_EACH(health, healths_of(relay), struct health, link) {
		health_destroy(health);
	}
}
