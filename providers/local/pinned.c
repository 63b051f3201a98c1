/* SPDX-License-Identifier: MIT */
#include "providers/local/pinned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file_io.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/pin_news.h"

/* What a root contained when it was shown, and what was reported since. */
struct pinned_root {
	struct list link; // pinned.roots
	char *path;       // owned; without links
	char *local;      // owned; its name in the session
	struct pin_news news;
	bool is_looked_at;
	bool looks_again;
};

/* A walk through a workspace. It outlives a sandbox that is closed. */
struct pin_job {
	struct list link; // pinned.jobs
	struct pool_job job;
	struct pinned *pinned;
	char *local;              // owned
	struct pin_places places; // owned
	struct pin_rules rules;   // with the home of `places`
	struct owner owner;
	bool is_look;
	bool is_showing; // the job has left the pool and waits for the cell
	bool is_failed;
	struct error err;
	char path[PATH_MAX];
	struct pin_repository repository; // of a worktree
	struct pin_list list;
	sandbox_done *done;
	void *done_data;
};

void pinned_init(struct pinned *pinned, struct host_sandbox *host, const struct settings *settings,
	const char *home_name, const char *state)
{
	static const struct setting_key git = {
		.name = "git-write", .type = SETTING_BOOL, .fallback = "false"};
	*pinned = (struct pinned){.host = host, .writes_git = settings_bool(settings, &git)};
	pin_places_init(
		&pinned->places, host->context, settings, home_name, state, "isolation = copy");
	list_init(&pinned->jobs);
	list_init(&pinned->roots);
}

/*
 * Otherwise a broker that is root would give the agent a folder that it cannot write, without an
 * explanation.
 */
static bool check_owner(const struct pin_job *job, struct error *err)
{
	struct stat status;
	return !job->owner.is_other || stat(job->path, &status) != 0 ||
	       status.st_uid == job->owner.uid ||
	       error_set(err, ERROR_CONFIG,
		       "%s belongs to user %u, and the confined agent runs as user %u, because a "
		       "confined process never runs as root: %s, or let the agent work in a copy "
		       "(isolation = copy)",
		       job->path, (unsigned)status.st_uid, (unsigned)job->owner.uid,
		       status.st_uid == 0 ? "give the folder to an ordinary user"
					  : "start the broker in this folder");
}

/* ---- jobs ---- */

static void job_drop(struct pool_job *pool_job)
{
	struct pin_job *job = CONTAINER_OF(pool_job, struct pin_job, job);
	list_remove(&job->link);
	pin_list_finish(&job->list);
	pin_places_finish(&job->places);
	free(job->local);
	free(job);
}

static void on_run(struct pool_job *pool_job)
{
	struct pin_job *job = CONTAINER_OF(pool_job, struct pin_job, job);
	job->is_failed = !file_find_root(job->local, job->path, &job->err) ||
	                 !pin_places_check(&job->places, job->local, job->path, &job->err) ||
	                 !check_owner(job, &job->err) ||
	                 !pin_list_find(&job->list, job->path, &job->rules, &job->err);
	if (!job->is_failed && !job->is_look) {
		(void)pin_list_repository(job->path, &job->places, &job->repository);
	}
}

static void on_done(struct pool_job *pool_job);

static struct pin_job *job_create(struct pinned *pinned, const char *local)
{
	struct pin_job *job = mem_alloc_zero(sizeof(*job));
	job->pinned = pinned;
	job->local = mem_strdup(local);
	pin_places_copy(&job->places, &pinned->places);
	job->rules = pinned->rules;
	job->rules.home = job->places.home;
	job->owner = pinned->owner;
	job->is_failed = true;
	error_set(&job->err, ERROR_UNAVAILABLE, "%s: the broker is ending", local);
	job->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = job_drop};
	list_append(&pinned->jobs, &job->link);
	return job;
}

void pinned_finish(struct pinned *pinned)
{
	LIST_FOR_EACH(job, &pinned->jobs, struct pin_job, link) {
		if (job->is_showing) {
			job_drop(&job->job);
			continue;
		}
		list_remove(&job->link);
		list_init(&job->link);
		pool_leave(&job->job);
	}
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		list_remove(&root->link);
		pin_news_finish(&root->news);
		free(root->path);
		free(root->local);
		free(root);
	}
	pin_places_finish(&pinned->places);
}

/* ---- a root ---- */

static struct pinned_root *find_root(const struct pinned *pinned, const char *path)
{
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		if (strcmp(root->path, path) == 0) {
			return root;
		}
	}
	return NULL;
}

static void tell_news(struct pinned *pinned, struct pinned_root *root, const struct pin_list *list)
{
	struct buf text;
	buf_init(&text, PIN_NEWS_MAX);
	if (pin_news_write(&root->news, root->local, list, &text) && pinned->tell) {
		pinned->tell(pinned->data, text.data);
	}
	buf_finish(&text);
}

/* What has appeared since the root was shown is reported as at the end of a turn; it is pinned. */
static void keep_root(struct pin_job *job)
{
	struct pinned_root *root = find_root(job->pinned, job->path);
	if (root) {
		tell_news(job->pinned, root, &job->list);
		pin_news_pin(&root->news, &job->list);
		return;
	}
	root = mem_alloc_zero(sizeof(*root));
	root->path = mem_strdup(job->path);
	root->local = mem_strdup(job->local);
	root->news.is_renewed = true; // by the cell
	root->news.writes_git = job->pinned->writes_git;
	pin_news_begin(&root->news, &job->list);
	list_append(&job->pinned->roots, &root->link);
}

static void finish_add(struct pin_job *job)
{
	struct host_sandbox *host = job->pinned->host;
	sandbox_done *done = job->done;
	void *data = job->done_data;
	struct error err = job->err;
	bool is_failed = job->is_failed;
	if (!is_failed && job->pinned->cell) {
		keep_root(job);
	}
	char *local = job->local;
	job->local = NULL;
	job_drop(&job->job);
	if (is_failed) {
		done(data, &err);
	} else {
		host_add_root(&host->sandbox, local, done, data);
	}
	free(local);
}

static void fail_showing(struct pin_job *job, const struct error *err)
{
	job->is_showing = false;
	job->is_failed = err != NULL;
	if (err) {
		job->err = *err;
	}
	finish_add(job);
}

static void on_repository_shown(void *data, const struct error *err)
{
	fail_showing(data, err);
}

static void on_shown(void *data, const struct error *err)
{
	struct pin_job *job = data;
	struct error failure;
	const struct cell_entry entry = {.rule = CELL_READ, .path = job->repository.path};
	struct cell *cell = job->pinned->cell;
	if (err || !job->repository.path[0]) {
		fail_showing(job, err);
		return;
	}
	bool is_asked =
		job->pinned->writes_git
			? cell_show(cell, job->repository.path, on_repository_shown, job, &failure)
			: cell_show_pinned(cell, &entry, 1, on_repository_shown, job, &failure);
	if (!is_asked) {
		fail_showing(job, &failure);
	}
}

static void show(struct pin_job *job)
{
	char **texts;
	size_t count;
	struct cell_entry *entries =
		pin_list_entries(&job->list, job->path, job->pinned->writes_git, &count, &texts);
	job->is_showing =
		cell_show_pinned(job->pinned->cell, entries, count, on_shown, job, &job->err);
	job->is_failed = !job->is_showing;
	free(entries);
	words_free(texts);
	if (job->is_failed) {
		finish_add(job);
	}
}

void pinned_add_root(struct pinned *pinned, const char *local_root, sandbox_done *done, void *data)
{
	struct error err;
	if (!pinned->cell) {
		host_add_root(&pinned->host->sandbox, local_root, done, data);
		return;
	}
	struct pin_job *job = job_create(pinned, local_root);
	job->done = done;
	job->done_data = data;
	if (!pool_submit(pinned->host->context->pool, &job->job, &err)) {
		sandbox_raise_later(&pinned->host->sandbox, done, data, &err);
		job_drop(&job->job);
	}
}

/* ---- new files ---- */

static void look_at(struct pinned *pinned, struct pinned_root *root)
{
	struct error err;
	root->looks_again = root->is_looked_at;
	if (root->is_looked_at) {
		return;
	}
	struct pin_job *job = job_create(pinned, root->local);
	job->is_look = true;
	root->is_looked_at = pool_submit(pinned->host->context->pool, &job->job, &err);
	if (!root->is_looked_at) {
		job_drop(&job->job); // the next turn looks again
	}
}

void pinned_look(struct pinned *pinned)
{
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		look_at(pinned, root);
	}
}

static void finish_look(struct pin_job *job)
{
	struct pinned *pinned = job->pinned;
	char text[ERROR_TEXT_MAX + PATH_MAX];
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		if (strcmp(root->local, job->local) != 0) {
			continue;
		}
		root->is_looked_at = false;
		tell_news(pinned, root, &job->list); // after a failure, what was found before it
		if (job->is_failed && pinned->tell) {
			text_format(text, sizeof(text),
				"cannot look in %s for files from which tools run commands: %s",
				root->local, job->err.text);
			pinned->tell(pinned->data, text);
		}
		if (root->looks_again) {
			look_at(pinned, root);
		}
	}
	job_drop(&job->job);
}

static void on_done(struct pool_job *pool_job)
{
	struct pin_job *job = CONTAINER_OF(pool_job, struct pin_job, job);
	if (job->is_look) {
		finish_look(job);
	} else if (job->is_failed) {
		finish_add(job);
	} else {
		show(job);
	}
}

/* ---- paths that the broker itself may not write either ---- */

bool pinned_has(const struct pinned *pinned, const char *path)
{
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		if (pin_news_has(&root->news, root->local, path) ||
			pin_news_has(&root->news, root->path, path)) {
			return true;
		}
	}
	return false;
}
