/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path_quote.h"
#include "base/words.h"
#include "broker/cli/sandboxes.h"
#include "broker/cli/stderr_line.h"

struct acting {
	const struct sessions_means *means;
	struct config config;
	int folder_fd;
	struct session_entries sessions;
	struct sandbox_entries sandboxes;
};

/* ---- list ---- */

static void find_sessions(struct acting *acting)
{
	for (size_t i = 0; i < acting->sandboxes.count; i++) {
		struct sandbox_entry *sandbox = &acting->sandboxes.entries[i];
		for (size_t j = 0; j < acting->sessions.count; j++) {
			const struct session_entry *session = &acting->sessions.entries[j];
			if (session->is_readable && sandboxes_is_of(&session->record, sandbox)) {
				words_append(&sandbox->sessions, session->id);
			}
		}
	}
}

/* Prints the problems; the other sandboxes are listed nevertheless. */
static bool tell_problems(const struct sandbox_entries *sandboxes, struct error *err)
{
	for (size_t i = 0; i < sandboxes->problem_count; i++) {
		const struct sandbox_problem *problem = &sandboxes->problems[i];
		stderr_note("profile \"%s\": %s", problem->profile->name, problem->err.text);
	}
	return sandboxes->problem_count == 0 ||
	       error_set(err, sandboxes->problems[0].err.code,
		       "the sandboxes of %zu of %zu profiles could not be listed",
		       sandboxes->problem_count, sandboxes->asked);
}

static bool list(struct acting *acting, struct error *err)
{
	const struct options *options = acting->means->options;
	const struct sandbox_entries *sandboxes = &acting->sandboxes;
	if (options->flags & OPTION_JSON) {
		if (!sandboxes_print_json(sandboxes, err)) {
			return false;
		}
	} else if (sandboxes->count > 0) {
		sandboxes_print(options, sandboxes);
	} else if (sandboxes->problem_count == 0) {
		fputs(sandboxes->asked > 0 ? "acp-broker: there are no sandboxes\n"
					   : "acp-broker: no profile has a backend that makes "
					     "sandboxes elsewhere\n",
			stderr);
	}
	fflush(stdout);
	return tell_problems(sandboxes, err);
}

/* ---- finding the sandbox ---- */

static const struct sandbox_entry *find_one(struct acting *acting, struct error *err)
{
	const char *word = acting->means->options->words[0];
	const struct sandbox_entry *found = NULL;
	for (size_t i = 0; i < acting->sandboxes.count; i++) {
		const struct sandbox_entry *entry = &acting->sandboxes.entries[i];
		if (strcmp(entry->name, word) != 0 && strcmp(entry->id, word) != 0) {
			continue;
		}
		if (found) {
			error_set(err, ERROR_CONFIG,
				"several sandboxes have this name, for example one of profile "
				"\"%s\" and one of profile \"%s\": choose one with --profile, or "
				"give its id",
				found->found_by->name, entry->found_by->name);
			return NULL;
		}
		found = entry;
	}
	if (!found && tell_problems(&acting->sandboxes, err)) {
		error_set(err, ERROR_NOT_FOUND,
			"no sandbox has this name: acp-broker sandboxes list prints all sandboxes");
	}
	return found;
}

/* The provider checks again, and takes its own lock for that. */
static bool check_unused(const struct sandbox_entry *sandbox, struct error *err)
{
	return !sandbox->is_in_use || error_set(err, ERROR_DENIED,
					      "a running broker uses it: end that broker first "
					      "(see acp-broker sessions list)");
}

static void say(const struct sandbox_entry *sandbox, const char *what)
{
	printf("sandbox %s of profile \"%s\": %s\n", sandbox->name,
		*sandbox->profile ? sandbox->profile : sandbox->found_by->name, what);
}

static bool stop(struct acting *acting, const struct sandbox_entry *sandbox, struct error *err)
{
	if (!check_unused(sandbox, err) || !sandboxes_order(acting->means, sandbox->found_by,
						   INVENTORY_STOP, sandbox->name, NULL, err)) {
		return false;
	}
	say(sandbox, "stopped; its files stay");
	return true;
}

/* ---- delete ---- */

/* The lock on the record of its content, so that nobody else can finish that meanwhile. */
struct claim {
	const struct session_entry *session;
	int lock_fd;
	bool is_lost; // not collected, and about to be lost
};

struct claims {
	struct claim *claims; // owned
	size_t count;
};

static void claims_finish(struct claims *claims)
{
	for (size_t i = 0; i < claims->count; i++) {
		fd_close(&claims->claims[i].lock_fd);
	}
	free(claims->claims);
}

static bool fail_uncollected(const struct session_entry *session, struct error *err)
{
	const struct record *record = &session->record;
	char *quoted = path_quote(span_of(record->local_root));
	if (strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0) {
		error_set_reason(err, ERROR_DENIED, "SYNC_INCOMPLETE",
			"the changes of session %s, of %s, were never brought here (sync = none); "
			"--discard deletes the sandbox nevertheless",
			session->id, quoted);
	} else {
		error_set_reason(err, ERROR_DENIED, "SYNC_INCOMPLETE",
			"its changes for %s are not collected: acp-broker sessions collect %s "
			"brings them here; --discard deletes the sandbox nevertheless",
			quoted, session->id);
	}
	free(quoted);
	return false;
}

static bool claim(struct acting *acting, struct claims *claims, const struct session_entry *session,
	const struct sandbox_entry *sandbox, struct error *err)
{
	struct record now;
	int lock_fd = record_lock(acting->folder_fd, session->id, err);
	if (lock_fd < 0) {
		return error_prefix(err, "its session %s", session->id);
	}
	record_owner_note(lock_fd, false);
	size_t size = (claims->count + 1) * sizeof(*claims->claims);
	claims->claims = mem_realloc(claims->claims, size);
	struct claim *claim = &claims->claims[claims->count++];
	*claim = (struct claim){session, lock_fd, false};
	if (!record_load(acting->folder_fd, session->id, &now, err)) {
		return err->code == ERROR_NOT_FOUND; // finished and removed meanwhile
	}
	claim->is_lost = sandboxes_is_of(&now, sandbox); // false: finished meanwhile
	record_finish(&now);
	return !claim->is_lost || (acting->means->options->flags & OPTION_DISCARD) ||
	       fail_uncollected(session, err);
}

/* An unreadable record may belong to it; nobody removes such a record. */
static bool claim_all(struct acting *acting, const struct sandbox_entry *sandbox,
	struct claims *claims, struct error *err)
{
	for (size_t i = 0; i < acting->sessions.count; i++) {
		const struct session_entry *session = &acting->sessions.entries[i];
		bool is_discarded = acting->means->options->flags & OPTION_DISCARD;
		if (!session->is_readable && !is_discarded) {
			return error_set(err, ERROR_DENIED,
				"session %s cannot be read and may belong to it (%s); --discard "
				"deletes the sandbox nevertheless",
				session->id, session->problem.text);
		}
		if (session->is_readable && sandboxes_is_of(&session->record, sandbox) &&
			!claim(acting, claims, session, sandbox, err)) {
			return false;
		}
	}
	return true;
}

static bool forget(struct acting *acting, const struct claims *claims, struct error *err)
{
	for (size_t i = 0; i < claims->count; i++) {
		const struct record *record = &claims->claims[i].session->record;
		if (!claims->claims[i].is_lost) {
			continue;
		}
		char *quoted = path_quote(span_of(record->local_root));
		if (strcmp(record->sync, sync_mode_name(SYNC_MODE_NONE)) == 0) {
			printf("session %s of %s: its changes there are lost, because they were "
			       "never brought here (sync = none)\n",
				record->id, quoted);
		} else {
			printf("session %s of %s: its changes there since its last sync are lost "
			       "(the record is of %s)\n",
				record->id, quoted, record->updated);
		}
		free(quoted);
		if (!record_remove(acting->folder_fd, record->id, err)) {
			return false;
		}
	}
	return true;
}

/* A record whose changes were collected from this sandbox. */
static bool led_to(const struct record *record, const struct sandbox_entry *sandbox)
{
	return sessions_is_collected(record) && record->reference &&
	       strcmp(record->backend, sandbox->found_by->backend) == 0 &&
	       strcmp(record->reference, sandbox->name) == 0;
}

static bool save(const struct acting *acting, const struct record *record, struct error *err)
{
	struct buf json;
	buf_init(&json, RECORD_FILE_MAX);
	bool ok = record_write_json(record, &json, err) &&
	          record_save(acting->folder_fd, record->id, buf_span(&json), err);
	buf_finish(&json);
	return ok;
}

/*
 * The record stays, for those who ask for its sessions. A record that another broker is taking over
 * is left alone.
 */
static void lead_nowhere(
	const struct acting *acting, const char *id, const struct sandbox_entry *sandbox)
{
	struct record record;
	struct error err;
	ATTR_CLEANUP(fd_cleanup) int lock_fd = record_lock(acting->folder_fd, id, &err);
	if (lock_fd < 0 || !record_load(acting->folder_fd, id, &record, &err)) {
		return;
	}
	record_owner_note(lock_fd, false);
	if (led_to(&record, sandbox)) {
		free(record.reference);
		record.reference = NULL;
		if (!save(acting, &record, &err)) {
			log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
		}
	}
	record_finish(&record);
}

/* session/list shows sessions whose record leads to a sandbox (broker/relay/listing_records.h). */
static void leave_nothing_listed(const struct acting *acting, const struct sandbox_entry *sandbox)
{
	for (size_t i = 0; i < acting->sessions.count; i++) {
		const struct session_entry *session = &acting->sessions.entries[i];
		if (session->is_readable && led_to(&session->record, sandbox)) {
			lead_nowhere(acting, session->id, sandbox);
		}
	}
}

static bool delete (struct acting *acting, const struct sandbox_entry *sandbox, struct error *err)
{
	struct claims claims = {NULL, 0};
	enum inventory_act act = acting->means->options->flags & OPTION_DISCARD ? INVENTORY_DISCARD
	                                                                        : INVENTORY_DELETE;
	bool ok = check_unused(sandbox, err) && claim_all(acting, sandbox, &claims, err) &&
	          sandboxes_order(acting->means, sandbox->found_by, act, sandbox->name, NULL, err);
	if (ok) {
		say(sandbox, "deleted");
		leave_nothing_listed(acting, sandbox);
		ok = forget(acting, &claims, err);
	}
	claims_finish(&claims);
	return ok;
}

/* ---- the command ---- */

static bool act(struct acting *acting, struct error *err)
{
	const struct options *options = acting->means->options;
	if (options->command == COMMAND_SANDBOXES_LIST) {
		return list(acting, err);
	}
	const struct sandbox_entry *sandbox = find_one(acting, err);
	bool ok = sandbox && (options->command == COMMAND_SANDBOXES_STOP ? stop : delete)(
				     acting, sandbox, err);
	return ok || error_prefix(err, "sandbox %s", options->words[0]);
}

static bool check_profile(const struct acting *acting, struct error *err)
{
	const char *profile = acting->means->options->profile;
	return !profile || acting->sandboxes.asked > 0 ||
	       error_set(err, ERROR_CONFIG,
		       "--profile %s: expected a backend that makes sandboxes elsewhere, got %s",
		       profile, acting->config.profile.backend);
}

static bool act_on_all(struct acting *acting, struct error *err)
{
	const struct sessions_means *means = acting->means;
	const char *state_folder = means->state_folder ? means->state_folder : "";
	ATTR_CLEANUP(fd_cleanup) int folder_fd = record_folder_open(state_folder, err);
	acting->folder_fd = folder_fd;
	if (folder_fd < 0 || !sessions_load(folder_fd, &acting->sessions, err)) {
		return false;
	}
	sandboxes_load(means, &acting->config, &acting->sandboxes);
	find_sessions(acting);
	bool ok = check_profile(acting, err) && act(acting, err);
	sandboxes_finish(&acting->sandboxes);
	sessions_finish(&acting->sessions);
	return ok;
}

bool sandboxes_act(const struct sessions_means *means, struct error *err)
{
	struct acting acting = {.means = means};
	if (!config_load(
		    &acting.config, means->options, means->registry, means->environment, err)) {
		return false;
	}
	config_set_log(&acting.config);
	bool ok = act_on_all(&acting, err);
	config_finish(&acting.config);
	return ok;
}
