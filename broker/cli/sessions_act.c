/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path_quote.h"
#include "broker/cli/sessions.h"
#include "broker/cli/sessions_into.h"
#include "broker/cli/stderr_line.h"
#include "broker/ledger/collect.h"
#include "broker/ledger/plain_record.h"

enum { STOP_WAIT_MS = 120 * 1000, STOP_LOOK_MS = 50 };

/* Acts on one record; the loop runs until that is done. */
struct acting {
	const struct sessions_means *means;
	int folder_fd;
	int plain_fd; // the same folder for sessions in the workspace itself
	struct session_entries entries;
	bool ends_all; // ends sandboxes of any persistence
	enum collect_outcome outcome;
	struct error err; // of the outcome
};

/* ---- collect and discard ---- */

static void on_collected(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err)
{
	struct acting *acting = data;
	acting->outcome = outcome;
	if (err) {
		acting->err = *err;
	}
	ev_break(acting->means->loop, EVBREAK_ALL);
}

static bool finish(struct acting *acting, const struct config *config, struct provider *provider,
	const char *id, struct error *err)
{
	const struct sessions_means *means = acting->means;
	struct collect *collect = collect_start(
		&(struct collect_config){
			.loop = means->loop,
			.pool = means->pool,
			.provider = provider,
			.profile = &config->profile,
			.state_folder = means->state_folder,
			.home = environment_get(means->environment, "HOME"),
			.tools = means->tools,
			.is_discarded = means->options->command == COMMAND_SESSIONS_DISCARD,
			.ends = acting->ends_all,
			.done = on_collected,
			.data = acting,
		},
		id);
	ev_run(means->loop, 0);
	collect_destroy(collect);
	if (acting->outcome != COLLECT_DONE) {
		*err = acting->err;
	}
	return acting->outcome == COLLECT_DONE;
}

static bool finish_configured(
	struct acting *acting, const struct session_entry *entry, struct error *err)
{
	const struct sessions_means *means = acting->means;
	struct options options = *means->options;
	struct config config;
	options.profile = entry->record.profile;
	if (!config_load(&config, &options, means->registry, means->environment, err)) {
		return false;
	}
	config_set_log(&config);
	struct provider *provider = registry_get(means->registry, config.profile.backend, err);
	bool ok = provider && finish(acting, &config, provider, entry->id, err);
	config_finish(&config);
	return ok;
}

/* Checks that a record can be finished; the error says why not. */
static bool check(const struct session_entry *entry, struct error *err)
{
	if (!entry->is_readable) {
		*err = entry->problem;
		return error_prefix(err, "it cannot be read, so it is not changed");
	}
	if (entry->is_plain) {
		return error_set(err, ERROR_CONFIG,
			"it works in the workspace itself, so there is nothing to collect or "
			"discard: acp-broker sessions stop %s ends it",
			entry->id);
	}
	if (!entry->owner.is_held) {
		return true;
	}
	if (entry->owner.pid == 0) {
		return error_set(err, ERROR_UNAVAILABLE, "a running broker has it");
	}
	return error_set(err, ERROR_UNAVAILABLE, "%s (process %d) has it%s",
		entry->owner.is_session ? "a running broker" : "another acp-broker",
		(int)entry->owner.pid,
		entry->owner.is_session ? ": end that broker first with acp-broker sessions stop"
					: "");
}

static void say(const char *id, const struct record *record, const char *what)
{
	char *quoted = path_quote(span_of(record->local_root));
	printf("session %s of %s: %s\n", id, quoted, what);
	free(quoted);
}

static bool collect_one(struct acting *acting, const struct session_entry *entry, struct error *err)
{
	if (!check(entry, err) || !finish_configured(acting, entry, err)) {
		return error_prefix(err, "session %s", entry->id);
	}
	say(entry->id, &entry->record, "collected");
	return true;
}

/* ---- collect ---- */

/* Collects every session whose broker is dead. Prints each failure; `err` says how many. */
static bool collect_all(struct acting *acting, struct error *err)
{
	size_t count = 0, failed = 0;
	for (size_t i = 0; i < acting->entries.count; i++) {
		const struct session_entry *entry = &acting->entries.entries[i];
		struct error failure;
		if (entry->is_plain) {
			continue;
		}
		bool is_wanted = !entry->is_readable ||
		                 (!entry->owner.is_held && !sessions_is_collected(&entry->record));
		if (is_wanted && !collect_one(acting, entry, &failure)) {
			stderr_failure(&failure);
			failed++;
		}
		count += is_wanted;
	}
	if (count == 0) {
		stderr_note("nothing is left to collect");
	}
	return failed == 0 || error_set(err, ERROR_UNAVAILABLE,
				      "%zu of %zu sessions were not collected; their "
				      "sandboxes still exist",
				      failed, count);
}

/* For a session whose workspace is gone. */
static bool collect_into(
	struct acting *acting, const struct session_entry *entry, struct error *err)
{
	struct sessions_into into;
	const struct sessions_means *means = acting->means;
	bool begun = check(entry, err) && sessions_into_begin(&into, means->state_folder,
						  &entry->record, means->options->into, err);
	if (!begun) {
		return error_prefix(err, "session %s", entry->id);
	}
	bool ok = collect_one(acting, entry, err);
	struct error ignored;
	return sessions_into_end(&into, ok, ok ? err : &ignored) && ok;
}

static bool collect(struct acting *acting, struct error *err)
{
	const struct options *options = acting->means->options;
	const struct session_entry *entry;
	if (options->word_count == 0 && options->into) {
		return error_set(err, ERROR_CONFIG,
			"sessions collect --into %s: expected the name of a session as well",
			options->into);
	}
	if (options->word_count == 0) {
		return collect_all(acting, err);
	}
	return sessions_find(&acting->entries, options->words[0], &entry, err) &&
	       (options->into ? collect_into : collect_one)(acting, entry, err);
}

/* ---- stop ---- */

/* Waits until the broker that was asked to end has released the record. */
static bool wait_for_end(
	struct acting *acting, const struct session_entry *entry, pid_t pid, struct error *err)
{
	for (int waited_ms = 0; waited_ms < STOP_WAIT_MS; waited_ms += STOP_LOOK_MS) {
		struct record_owner owner;
		record_owner_find(
			entry->is_plain ? acting->plain_fd : acting->folder_fd, entry->id, &owner);
		bool is_held = owner.is_held;
		record_owner_finish(&owner);
		if (!is_held) {
			return true;
		}
		nanosleep(&(struct timespec){.tv_nsec = STOP_LOOK_MS * 1000000L}, NULL);
	}
	return error_set(err, ERROR_TIMEOUT,
		"process %d was asked to end (SIGTERM), but has not ended within %d s. It may be "
		"collecting: check later with acp-broker sessions list",
		(int)pid, STOP_WAIT_MS / 1000);
}

static bool stop_living(struct acting *acting, const struct session_entry *entry, struct error *err)
{
	pid_t pid = entry->owner.pid;
	if (!record_owner_stop(&entry->owner, err)) {
		return false;
	}
	stderr_note("process %d was asked to end, with all its sessions", (int)pid);
	return wait_for_end(acting, entry, pid, err);
}

/* Collects what the broker could not collect before it ended. */
static bool collect_rest(
	struct acting *acting, const struct session_entry *entry, struct error *err)
{
	struct session_entry now = *entry;
	now.owner = (struct record_owner){.pid_fd = -1};
	if (!record_load(acting->folder_fd, entry->id, &now.record, err)) {
		return false;
	}
	bool is_collected = sessions_is_collected(&now.record);
	bool ok = is_collected || finish_configured(acting, &now, err);
	record_finish(&now.record);
	return ok;
}

static bool stop(struct acting *acting, struct error *err)
{
	const struct session_entry *entry;
	if (!sessions_find(&acting->entries, acting->means->options->words[0], &entry, err)) {
		return false;
	}
	bool is_living = entry->owner.is_held;
	bool ok = entry->is_readable || check(entry, err);
	ok = ok && (!is_living || stop_living(acting, entry, err)) &&
	     (entry->is_plain || collect_rest(acting, entry, err));
	if (!ok) {
		return error_prefix(err, "session %s", entry->id);
	}
	say(entry->id, &entry->record,
		entry->is_plain ? "stopped; the agent's changes are in the workspace"
				: "stopped and collected");
	return true;
}

/* ---- discard ---- */

static void say_lost(const struct record *record)
{
	bool is_synced = strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) != 0;
	if (is_synced && sessions_is_collected(record)) {
		say(record->id, record, "was collected; its sandbox is deleted");
		return;
	}
	char *quoted = path_quote(span_of(record->runtime_root ? record->runtime_root : "-"));
	if (!is_synced) {
		printf("session %s: its changes in %s are lost, because they were never brought "
		       "here (sync = none)\n",
			record->id, quoted);
		free(quoted);
		return;
	}
	printf("session %s: its changes in %s since its last sync are lost (the record is of %s)\n",
		record->id, quoted, record->updated);
	free(quoted);
}

static bool discard(struct acting *acting, struct error *err)
{
	const struct session_entry *entry;
	if (!sessions_find(&acting->entries, acting->means->options->words[0], &entry, err)) {
		return false;
	}
	if (!check(entry, err) || !finish_configured(acting, entry, err)) {
		return error_prefix(err, "session %s: nothing was discarded", entry->id);
	}
	say_lost(&entry->record);
	say(entry->id, &entry->record, "discarded");
	return true;
}

/* Calls `finish` with the record of a dead broker, if nobody else has it. */
static bool finish_one(struct acting *acting, const char *id,
	bool (*finish_it)(
		struct acting *acting, const struct session_entry *entry, struct error *err),
	struct error *err)
{
	struct session_entry entry = {.owner = {.pid_fd = -1}};
	ATTR_CLEANUP(fd_cleanup)
	int folder_fd = record_folder_open(acting->means->state_folder, err);
	if (folder_fd < 0 || !record_load(folder_fd, id, &entry.record, err)) {
		return false;
	}
	entry.is_readable = true;
	memcpy(entry.id, entry.record.id, sizeof(entry.id));
	record_owner_find(folder_fd, id, &entry.owner);
	bool ok = check(&entry, err) && finish_it(acting, &entry, err);
	record_owner_finish(&entry.owner);
	record_finish(&entry.record);
	return ok;
}

static bool end_or_leave(
	struct acting *acting, const struct session_entry *entry, struct error *err)
{
	if (finish_configured(acting, entry, err)) {
		return true;
	}
	struct error ignored; // the record stays, and is as collected as before
	acting->ends_all = false;
	(void)!finish_configured(acting, entry, &ignored);
	return false;
}

bool sessions_end_sandbox(const struct sessions_means *means, const char *id, struct error *err)
{
	struct acting acting = {.means = means, .ends_all = true};
	return finish_one(&acting, id, end_or_leave, err);
}

bool sessions_discard_one(const struct sessions_means *means, const char *id, struct error *err)
{
	struct options options = *means->options;
	struct sessions_means discarding = *means;
	struct acting acting = {.means = &discarding};
	options.command = COMMAND_SESSIONS_DISCARD;
	options.log_level = options.log_level ? options.log_level : "error";
	discarding.options = &options;
	return finish_one(&acting, id, finish_configured, err);
}

static const struct {
	enum command command;
	bool (*run)(struct acting *acting, struct error *err);
} acts[] = {
	{COMMAND_SESSIONS_COLLECT, collect},
	{COMMAND_SESSIONS_STOP, stop},
	{COMMAND_SESSIONS_DISCARD, discard},
};

bool sessions_act(const struct sessions_means *means, struct error *err)
{
	struct acting acting = {.means = means};
	const char *state_folder = means->state_folder ? means->state_folder : "";
	ATTR_CLEANUP(fd_cleanup) int folder_fd = record_folder_open(state_folder, err);
	acting.folder_fd = folder_fd;
	if (folder_fd < 0 || !sessions_load(folder_fd, &acting.entries, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int plain_fd = plain_folder_open(state_folder, err);
	acting.plain_fd = plain_fd;
	if (plain_fd < 0 || !sessions_add_plain(state_folder, &acting.entries, err)) {
		sessions_finish(&acting.entries);
		return false;
	}
	bool ok = false;
	for (size_t i = 0; i < ARRAY_LENGTH(acts); i++) {
		if (acts[i].command == means->options->command) {
			ok = acts[i].run(&acting, err);
		}
	}
	sessions_finish(&acting.entries);
	fflush(stdout);
	return ok;
}
