/* SPDX-License-Identifier: MIT */
#include "broker/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/mask.h"
#include "base/path_quote.h"
#include "broker/cli/stderr_line.h"
#include "broker/ledger/state_folder.h"
#include "sync/store_lock.h"

/* ---- printing ---- */

/* Whether printing has failed so far. The errno of a failed printf is lost, so it becomes EIO. */
static bool note_failure(struct command_context *context)
{
	if (ferror(stdout) && !context->print_errno) {
		context->print_errno = errno ? errno : EIO;
	}
	return context->print_errno != 0;
}

bool command_print(void *data, struct span text)
{
	struct command_context *context = data;
	errno = 0;
	if (!context->is_terminal) {
		fwrite(text.data, 1, text.len, stdout);
		text.len = 0;
	}
	while (text.len > 0) {
		char room[MASK_SIZE];
		struct span shown = mask_next(&text, room);
		fwrite(shown.data, 1, shown.len, stdout);
	}
	return !note_failure(context);
}

bool command_print_json(void (*write)(struct json_writer *writer, const void *data),
	const void *data, struct error *err)
{
	struct buf out;
	struct json_writer writer;
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	write(&writer, data);
	json_write_object_end(&writer);
	bool ok = json_write_end(&writer, err);
	if (ok) {
		fwrite(buf_span(&out).data, 1, out.len, stdout);
		putchar('\n');
	}
	buf_finish(&out);
	return ok;
}

const char *command_time(char text[COMMAND_TIME_SIZE], long long seconds)
{
	struct tm local;
	time_t time = (time_t)seconds;
	if (!localtime_r(&time, &local) ||
		strftime(text, COMMAND_TIME_SIZE, "%Y-%m-%d %H:%M:%S", &local) == 0) {
		snprintf(text, COMMAND_TIME_SIZE, "%lld", seconds);
	}
	return text;
}

void command_print_path(const char *path)
{
	char *quoted = path_quote(span_of(path));
	fputs(quoted, stdout);
	free(quoted);
}

/* ---- the store ---- */

static void on_wait(void)
{
	stderr_note("waiting for another acp-broker that is syncing this workspace");
}

bool command_lock(struct command_context *context, struct error *err)
{
	int timeout_ms = context->config.profile.sync.lock_timeout_ms;
	context->lock_fd = store_lock_open(&context->store, err);
	if (context->lock_fd < 0) {
		return false;
	}
	if (store_lock_wait(context->lock_fd, clock_now_ms() + timeout_ms, on_wait, err)) {
		return true;
	}
	command_unlock(context);
	if (err->code != ERROR_TIMEOUT) {
		return error_prefix(err, "%s", context->place.root);
	}
	return error_set(err, ERROR_TIMEOUT,
		"%s: another acp-broker has been syncing it for %d s (sync-lock-timeout); nothing "
		"was changed: try again when that sync has ended",
		context->place.root, timeout_ms / 1000);
}

bool command_lock_turns(struct command_context *context, struct error *err)
{
	struct turn_search search = {
		.state_folder = context->state_folder,
		.root = context->place.root,
		.real_root = context->place.real_root,
		.timeout_ms = context->config.profile.pause_drain_timeout_ms,
	};
	return turn_locks_take(&context->turns, &search, err);
}

void command_unlock(struct command_context *context)
{
	turn_locks_finish(&context->turns);
	fd_close(&context->lock_fd);
}

bool command_snapshot(struct command_context *context, git_oid *out_tree, struct error *err)
{
	const struct sync_settings *sync = &context->config.profile.sync;
	struct checkpoint *list;
	struct checkpoint_damage damage;
	struct snapshot snapshot;
	size_t count;
	if (!checkpoint_list(&context->store, &list, &count, &damage, err)) {
		return false;
	}
	git_oid newest = count > 0 ? list[count - 1].tree : store_empty_tree;
	free(list);
	struct snapshot_request request = {
		.root = context->place.root,
		.base = count > 0 ? &newest : NULL,
		.include = (const char *const *)sync->include,
		.exclude = (const char *const *)sync->exclude,
		.limits = sync->limits,
		.home = context->home,
		.cache = "local",
	};
	if (!snapshot_take(&context->store, &request, &snapshot, err)) {
		return error_prefix(err, "reading %s", context->place.root);
	}
	char warning[SNAPSHOT_WARNING_MAX];
	snapshot_warning(&snapshot, snapshot.excess, warning);
	if (*snapshot.note) {
		stderr_note("%s", snapshot.note);
	}
	if (*warning) {
		stderr_note("%s", warning);
	}
	*out_tree = snapshot.tree;
	return true;
}

/* ---- running a command ---- */

static command_action *const actions[COMMAND_COUNT] = {
	[COMMAND_CHECKPOINTS_LIST] = command_checkpoints_list,
	[COMMAND_CHECKPOINTS_SHOW] = command_checkpoints_show,
	[COMMAND_CHECKPOINTS_DIFF] = command_checkpoints_diff,
	[COMMAND_CHECKPOINTS_ROLLBACK] = command_checkpoints_rollback,
	[COMMAND_CHECKPOINTS_RESTORE] = command_checkpoints_restore,
	[COMMAND_CHECKPOINTS_UNDELETE] = command_checkpoints_undelete,
	[COMMAND_CONFLICTS_LIST] = command_conflicts_list,
	[COMMAND_CONFLICTS_SHOW] = command_conflicts_show,
	[COMMAND_CONFLICTS_TAKE] = command_conflicts_take,
	[COMMAND_CONFLICTS_EDIT] = command_conflicts_edit,
	[COMMAND_COMMITS_LIST] = command_commits_list,
	[COMMAND_COMMITS_TAKE] = command_commits_take,
};

/* Tells the user if the workspace is another directory than the present one. */
static void say_where(const struct store_place *place)
{
	if (*place->below) {
		char *quoted = path_quote(span_of(place->root));
		stderr_note("the workspace is %s", quoted);
		free(quoted);
	}
}

static bool act(struct command_context *context, struct error *err)
{
	const struct sync_settings *sync = &context->config.profile.sync;
	if (!store_open(&context->store, context->place.store_folder, sync->big_file_bytes, err)) {
		return false;
	}
	say_where(&context->place);
	bool ok = actions[context->options->command](context, err);
	command_unlock(context);
	store_close(&context->store);
	errno = 0;
	fflush(stdout);
	if (note_failure(context)) {
		return error_set_errno(err, context->print_errno, "writing to stdout");
	}
	return ok;
}

static bool find_and_act(
	struct command_context *context, const char *const *environment, struct error *err)
{
	char *state_folder = state_folder_name(environment);
	context->state_folder = state_folder;
	context->environment = environment;
	bool ok = store_place_find(&context->place, state_folder, context->options->workspace,
		environment_get(environment, "PWD"), err);
	if (ok) {
		ok = act(context, err);
		store_place_finish(&context->place);
	}
	free(state_folder);
	return ok;
}

bool command_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err)
{
	struct command_context context = {
		.options = options,
		.home = environment_get(environment, "HOME"),
		.environment = environment,
		.lock_fd = -1,
		.is_terminal = isatty(STDOUT_FILENO) == 1,
	};
	if (!config_load(&context.config, options, registry, environment, err)) {
		return false;
	}
	bool ok = find_and_act(&context, environment, err);
	config_finish(&context.config);
	return ok;
}
