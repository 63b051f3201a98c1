/* SPDX-License-Identifier: MIT */
#include "broker/relay/root_check.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/words.h"
#include "sync/snapshot.h"

struct root_check {
	struct pool_job job;
	char **directories; // owned
	char *home;         // owned; may be NULL
	char *state_folder; // owned; may be NULL
	char **own_files;   // owned; may be NULL
	bool is_refused;
	struct error err;
	root_check_done *done;
	void *data;
};

static void check_drop(struct pool_job *job)
{
	struct root_check *check = CONTAINER_OF(job, struct root_check, job);
	words_free(check->directories);
	free(check->home);
	free(check->state_folder);
	words_free(check->own_files);
	free(check);
}

static bool holds_no_state(const char *root, const char *state_folder, struct error *err)
{
	if (!state_folder || !*state_folder) {
		return true;
	}
	char *state = real_path(state_folder);
	bool is_below = path_is_at_or_below(state, root);
	if (is_below) {
		error_set(err, ERROR_DENIED,
			"%s contains the broker's own state (%s), so it is not synced: open a "
			"project's own directory, or set XDG_STATE_HOME to another folder",
			root, state);
	}
	free(state);
	return !is_below;
}

static bool holds_no_file(const char *root, char *const *own_files, struct error *err)
{
	for (; own_files && *own_files; own_files++) {
		if (path_is_at_or_below(*own_files, root)) {
			return error_set(err, ERROR_DENIED,
				"%s contains the broker's own file %s, which the agent could "
				"change: open another folder, or move the file and name its new "
				"place (--config, audit)",
				root, *own_files);
		}
	}
	return true;
}

static void on_run(struct pool_job *job)
{
	struct root_check *check = CONTAINER_OF(job, struct root_check, job);
	for (size_t i = 0; check->directories[i] && !check->is_refused; i++) {
		const char *directory = check->directories[i];
		char *root = real_path(directory);
		check->is_refused = !snapshot_root_check(directory, check->home, &check->err) ||
		                    !holds_no_state(root, check->state_folder, &check->err) ||
		                    !holds_no_file(root, check->own_files, &check->err);
		free(root);
	}
}

static void on_done(struct pool_job *job)
{
	struct root_check *check = CONTAINER_OF(job, struct root_check, job);
	check->done(check->data, check->is_refused ? &check->err : NULL);
	check_drop(job);
}

struct root_check *root_check_create(struct pool *pool, char *const *directories,
	const struct root_check_own *own, root_check_done *done, void *data, struct error *err)
{
	struct root_check *check = mem_alloc_zero(sizeof(*check));
	check->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = check_drop};
	for (size_t i = 0; directories[i]; i++) {
		words_append(&check->directories, directories[i]);
	}
	check->home = mem_strdup_or_null(own->home);
	check->state_folder = mem_strdup_or_null(own->state_folder);
	if (own->files) {
		words_append_all(&check->own_files, own->files);
	}
	check->done = done;
	check->data = data;
	if (!pool_submit(pool, &check->job, err)) {
		check_drop(&check->job);
		return NULL;
	}
	return check;
}

void root_check_destroy(struct root_check *check)
{
	if (check) {
		pool_leave(&check->job);
	}
}
