/* SPDX-License-Identifier: MIT */
#include "providers/exec/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/confine.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/file_io.h"
#include "base/owner.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell/plan.h"
#include "providers/local/pin_news.h"
#include "providers/local/pin_place.h"

/*
 * Something that start mounts, as a walk without links has found it. An agent of another session
 * may put a link in its place before the engine follows the path, and then the instance would show
 * a folder from outside of the workspace. So we compare what the instance has there.
 */
struct shown_mark {
	char *path; // owned
	dev_t device;
	ino_t inode;
	bool is_pinned; // read-only there
};

struct shown_marks {
	struct shown_mark *marks; // owned
	size_t count;
};

struct exec_shown {
	struct exec_shown_config config;
	struct shown_marks marks;
	struct pin_places places;
	struct pin_news news;
	char *path;         // owned; the workspace
	struct stat status; // of the workspace
	struct list jobs;   // struct shown_job
	bool is_looked_at;  //
	bool looks_again;   //
	sandbox_done *done; // of exec_shown_create
};

enum shown_kind { SHOWN_FIRST, SHOWN_CHECK, SHOWN_ROOT, SHOWN_LOOK };

/* It may outlive its owner while the pool has it. */
struct shown_job {
	struct list link; // shown.jobs
	struct pool_job job;
	struct exec_shown *shown;
	enum shown_kind kind;
	bool is_inside; // the runner has it, not the pool
	char *local;    // owned
	struct pin_places places;
	struct pin_rules rules;
	bool is_failed;
	struct error err;
	char path[PATH_MAX];
	struct pin_repository repository; // of a worktree
	struct stat status;
	struct owner owner;
	struct pin_list list;
	bool writes_git;
	struct cell_entry *entries; // owned, with `texts`
	size_t entry_count;
	char **texts;
	struct shown_marks marks;
	struct remote *remote; // of a root or a check
	size_t next;           // of the marks of `shown`
	sandbox_done *done;
	void *data;
};

/* ---- jobs ---- */

static void marks_finish(struct shown_marks *marks)
{
	for (size_t i = 0; i < marks->count; i++) {
		free(marks->marks[i].path);
	}
	free(marks->marks);
	*marks = (struct shown_marks){.marks = NULL};
}

static void job_drop(struct pool_job *pool_job)
{
	struct shown_job *job = CONTAINER_OF(pool_job, struct shown_job, job);
	list_remove(&job->link);
	pin_list_finish(&job->list);
	pin_places_finish(&job->places);
	marks_finish(&job->marks);
	free(job->entries);
	words_free(job->texts);
	free(job->local);
	free(job);
}

/* The instance has the folder at one path alone, so the path may not lead through a link. */
static bool check_place(struct shown_job *job)
{
	if (job->local[0] != '/') {
		return confine_refuse(&job->err, job->local, "it is not absolute");
	}
	if (!file_find_root(job->local, job->path, &job->err) ||
		!pin_places_check(&job->places, job->local, job->path, &job->err)) {
		return false;
	}
	if (strcmp(job->local, job->path) != 0) {
		return error_set(&job->err, ERROR_CONFIG,
			"the path %s contains a symbolic link, and the container has the folder "
			"only at its own path: open %s",
			job->local, job->path);
	}
	if (stat(job->path, &job->status) != 0) {
		int errnum = errno;
		return error_set_errno(&job->err, errnum, "%s", job->path);
	}
	return true;
}

static void add_mark(
	struct shown_job *job, const struct cell_entry *entry, dev_t device, ino_t inode)
{
	job->marks.marks[job->marks.count++] = (struct shown_mark){.path = mem_strdup(entry->path),
		.device = device,
		.inode = inode,
		.is_pinned = entry->rule == CELL_READ};
}

static bool mark(struct shown_job *job, int root, const struct cell_entry *entry)
{
	struct stat status;
	const char *path = entry->path;
	size_t len = strlen(job->path);
	const char *name = path[len] == '/' ? path + len + 1 : ".";
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open(root, name, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &status) != 0) {
		int errnum = errno;
		return error_set_errno(&job->err, errnum, "%s", path);
	}
	add_mark(job, entry, status.st_dev, status.st_ino);
	return true;
}

/* Finds what start mounts. */
static bool find_entries(struct shown_job *job)
{
	job->entries = pin_list_entries(
		&job->list, job->path, job->writes_git, &job->entry_count, &job->texts);
	job->marks.marks = mem_alloc_zero((job->entry_count + 1) * sizeof(*job->marks.marks));
	ATTR_CLEANUP(fd_cleanup)
	int root = open(job->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; i < job->entry_count; i++) {
		if (!mark(job, root, &job->entries[i])) {
			return false;
		}
	}
	const struct pin_repository *repository = &job->repository;
	if (pin_list_repository(job->path, &job->places, &job->repository)) {
		size_t size = (job->entry_count + 1) * sizeof(*job->entries);
		job->entries = mem_realloc(job->entries, size);
		job->entries[job->entry_count] = (struct cell_entry){
			.rule = job->writes_git ? CELL_WRITE : CELL_READ, .path = repository->path};
		add_mark(job, &job->entries[job->entry_count++], repository->device,
			repository->inode);
	}
	return true;
}

static void on_run(struct pool_job *pool_job)
{
	struct shown_job *job = CONTAINER_OF(pool_job, struct shown_job, job);
	job->is_failed = !check_place(job) ||
	                 (job->kind != SHOWN_ROOT &&
				 !pin_list_find(&job->list, job->path, &job->rules, &job->err));
	if (!job->is_failed && job->kind == SHOWN_FIRST) {
		job->owner = owner_of_workspace(job->path);
		job->is_failed = !find_entries(job);
	}
}

static void on_done(struct pool_job *pool_job);

static struct shown_job *job_create(
	struct exec_shown *shown, enum shown_kind kind, const char *local)
{
	struct shown_job *job = mem_alloc_zero(sizeof(*job));
	job->shown = shown;
	job->kind = kind;
	job->local = mem_strdup(local);
	pin_places_copy(&job->places, &shown->places);
	job->rules = shown->config.rules;
	job->rules.home = job->places.home;
	job->writes_git = shown->config.profile->writes_git;
	job->is_failed = true;
	error_set(&job->err, ERROR_UNAVAILABLE, "%s: the broker is ending", local);
	job->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = job_drop};
	list_append(&shown->jobs, &job->link);
	return job;
}

/* ---- the workspace, before the instance is made ---- */

static bool take_workspace(struct shown_job *job, struct error *err)
{
	struct exec_shown *self = job->shown;
	const struct exec_profile *profile = self->config.profile;
	const struct exec_show show = {.entries = job->entries,
		.count = job->entry_count,
		.uid = job->owner.is_other ? job->owner.uid : geteuid(),
		.gid = job->owner.is_other ? job->owner.gid : getegid()};
	if (!profile->platform->show(self->config.profile, &show, err)) {
		return false;
	}
	self->marks = job->marks;
	job->marks = (struct shown_marks){.marks = NULL};
	self->path = mem_strdup(job->path);
	self->status = job->status;
	self->news.writes_git = profile->writes_git;
	pin_news_begin(&self->news, &job->list);
	return true;
}

static void finish_first(struct shown_job *job)
{
	struct exec_shown *self = job->shown;
	struct error err = job->err;
	bool is_failed = job->is_failed || !take_workspace(job, &err);
	if (is_failed && !err.reason && err.code == ERROR_CONFIG) {
		err.reason = "CONFIG_INVALID"; // trying again does not help
	}
	job_drop(&job->job);
	self->done(self->config.data, is_failed ? &err : NULL);
}

/* ---- what the instance has ---- */

static void finish_inside(struct shown_job *job, const struct error *failure)
{
	sandbox_done *done = job->done;
	void *data = job->data;
	struct error err = failure ? *failure : job->err;
	job_drop(&job->job);
	done(data, failure ? &err : NULL);
}

static bool has_root(const struct sandbox *sandbox, const char *path)
{
	for (size_t i = 0; i < sandbox->root_count; i++) {
		if (strcmp(sandbox->roots[i].local, path) == 0) {
			return true;
		}
	}
	return false;
}

static void keep_root(struct sandbox *sandbox, const char *path)
{
	if (has_root(sandbox, path)) {
		return;
	}
	size_t count = sandbox->root_count + 1;
	sandbox->roots = mem_realloc(sandbox->roots, count * sizeof(*sandbox->roots));
	sandbox->roots[count - 1] =
		(struct sandbox_root){.local = mem_strdup(path), .runtime = mem_strdup(path)};
	sandbox->root_count = count;
}

/* An engine on another machine has mounted a folder of that machine. */
static bool is_same_folder(
	const struct shown_job *job, const struct stat *inside, struct error *err)
{
	const struct stat *here = &job->status;
	if (inside->st_dev != here->st_dev || inside->st_ino != here->st_ino) {
		return error_set_reason(err, ERROR_CONFIG, "EXEC_MADE_OTHERWISE",
			"the folder %s of the container is not the one on this machine: mount = "
			"same-path needs an engine that runs here, and the workspace must not be "
			"moved while it runs",
			job->path);
	}
	return inside->st_uid == here->st_uid ||
	       error_set_reason(err, ERROR_CONFIG, "EXEC_MADE_OTHERWISE",
		       "the folder %s belongs to user %u here and to user %u in the container: "
		       "mount = same-path needs an engine that keeps the numbers of users",
		       job->path, (unsigned)here->st_uid, (unsigned)inside->st_uid);
}

static void on_inside_seen(void *data, const struct stat *status, const struct error *err)
{
	struct shown_job *job = data;
	struct error failure;
	if (err || !is_same_folder(job, status, &failure)) {
		finish_inside(job, err ? err : &failure);
		return;
	}
	if (job->kind == SHOWN_ROOT) {
		keep_root(job->shown->config.sandbox, job->path);
	}
	finish_inside(job, NULL);
}

static void on_mark_seen(
	void *data, const struct stat *status, bool is_read_only, const struct error *err);

static void check_next(struct shown_job *job)
{
	const struct shown_marks *marks = &job->shown->marks;
	if (job->next < marks->count) {
		remote_stat_mount(job->remote, marks->marks[job->next].path, on_mark_seen, job);
	} else {
		remote_stat(job->remote, job->path, on_inside_seen, job);
	}
}

/* Nothing is there, or a link that leads elsewhere. */
static bool says_other(const struct error *err)
{
	return err->code == ERROR_NOT_FOUND || err->code == ERROR_DENIED;
}

/*
 * The file is the right one, but can be written: in a running container another broker's session
 * has lost the pin. The user is told so at the first turn, as if it were lost then.
 */
static bool take_loose(struct shown_job *job, const struct shown_mark *mark, struct error *err)
{
	struct exec_shown *self = job->shown;
	if (path_is_at_or_below(mark->path, self->path)) {
		pin_news_lose(&self->news, self->path, mark->path);
		return true;
	}
	return error_set_reason(err, ERROR_CONFIG, "EXEC_MADE_OTHERWISE",
		"the container can write the repository %s, which it may only read", mark->path);
}

static void on_mark_seen(
	void *data, const struct stat *status, bool is_read_only, const struct error *err)
{
	struct shown_job *job = data;
	const struct shown_mark *wanted = &job->shown->marks.marks[job->next];
	struct error failure;
	if (err && !says_other(err)) {
		finish_inside(job, err);
		return;
	}
	if (err || status->st_dev != wanted->device || status->st_ino != wanted->inode) {
		error_set_reason(&failure, ERROR_CONFIG, "EXEC_MADE_OTHERWISE",
			"the container has another file than this machine at %s%s%s: mount = "
			"same-path needs an engine that runs here, and nobody may replace the file "
			"while a container starts",
			wanted->path, err ? ": " : "", err ? err->text : "");
		finish_inside(job, &failure);
		return;
	}
	if (wanted->is_pinned && !is_read_only && !take_loose(job, wanted, &failure)) {
		finish_inside(job, &failure);
		return;
	}
	job->next++;
	check_next(job);
}

static void on_inside_added(void *data, const struct error *err)
{
	if (err) {
		finish_inside(data, err);
	} else {
		check_next(data);
	}
}

/* It is the only thing outside of the workspace that start mounts, and the last one. */
static const char *find_repository(const struct exec_shown *shown)
{
	const struct shown_marks *marks = &shown->marks;
	const char *last = marks->marks[marks->count - 1].path;
	return path_is_at_or_below(last, shown->path) ? NULL : last;
}

static void on_repository_added(void *data, const struct error *err)
{
	struct shown_job *job = data;
	if (err && !says_other(err)) {
		finish_inside(job, err);
	} else {
		remote_add_root(job->remote, job->path, on_inside_added, job);
	}
}

void exec_shown_check(
	struct exec_shown *shown, struct remote *remote, sandbox_done *done, void *data)
{
	const char *repository = find_repository(shown);
	struct shown_job *job = job_create(shown, SHOWN_CHECK, shown->path);
	job->remote = remote;
	job->done = done;
	job->data = data;
	job->status = shown->status;
	text_format(job->path, sizeof(job->path), "%s", shown->path);
	job->is_inside = true;
	/* The runner looks only below its roots. The agent has both folders anyway. */
	if (repository) {
		remote_add_root(remote, repository, on_repository_added, job);
	} else {
		remote_add_root(remote, shown->path, on_inside_added, job);
	}
}

/* ---- roots ---- */

static void go_inside(struct shown_job *job)
{
	const char *path = job->shown->path;
	struct error err;
	if (job->is_failed) {
		finish_inside(job, &job->err);
	} else if (!path_is_at_or_below(job->path, path)) {
		error_set(&err, ERROR_UNAVAILABLE,
			"%s is not in the container, which has only %s (mount = same-path): start "
			"the broker in that folder, or with --workspace",
			job->path, path);
		finish_inside(job, &err);
	} else {
		job->is_inside = true;
		remote_stat(job->remote, job->path, on_inside_seen, job);
	}
}

void exec_shown_add_root(struct exec_shown *shown, struct remote *remote, const char *local,
	sandbox_done *done, void *data)
{
	struct error err;
	struct shown_job *job = job_create(shown, SHOWN_ROOT, local);
	job->remote = remote;
	job->done = done;
	job->data = data;
	if (!pool_submit(shown->config.context->pool, &job->job, &err)) {
		sandbox_raise_later(shown->config.sandbox, done, data, &err);
		job_drop(&job->job);
	}
}

/* ---- files without a pin ---- */

void exec_shown_look(struct exec_shown *shown)
{
	struct error ignored;
	if (!shown || !shown->path) {
		return;
	}
	shown->looks_again = shown->is_looked_at;
	if (shown->is_looked_at) {
		return;
	}
	struct shown_job *job = job_create(shown, SHOWN_LOOK, shown->path);
	shown->is_looked_at = pool_submit(shown->config.context->pool, &job->job, &ignored);
	if (!shown->is_looked_at) {
		job_drop(&job->job); // the next turn looks again
	}
}

static void finish_look(struct shown_job *job)
{
	struct exec_shown *self = job->shown;
	char failure[ERROR_TEXT_MAX + PATH_MAX];
	struct buf text;
	self->is_looked_at = false;
	buf_init(&text, PIN_NEWS_MAX);
	/* After a failure the list has what was found before it. */
	if (pin_news_write(&self->news, self->path, &job->list, &text)) {
		self->config.tell(self->config.data, text.data);
	}
	buf_finish(&text);
	if (job->is_failed) {
		text_format(failure, sizeof(failure),
			"cannot look in %s for files from which tools run commands: %s", self->path,
			job->err.text);
		self->config.tell(self->config.data, failure);
	}
	job_drop(&job->job);
	if (self->looks_again) {
		exec_shown_look(self);
	}
}

bool exec_shown_is_pinned(const struct exec_shown *shown, const char *path)
{
	return shown && shown->path && pin_news_has(&shown->news, shown->path, path);
}

static void on_done(struct pool_job *pool_job)
{
	struct shown_job *job = CONTAINER_OF(pool_job, struct shown_job, job);
	if (job->kind == SHOWN_FIRST) {
		finish_first(job);
	} else if (job->kind == SHOWN_ROOT) {
		go_inside(job);
	} else {
		finish_look(job);
	}
}

/* ---- life ---- */

struct exec_shown *exec_shown_create(
	const struct exec_shown_config *config, sandbox_done *done, struct error *err)
{
	const struct provider_context *context = config->context;
	const char *home = environment_get(context->environment, "HOME");
	if (!config->directory) {
		error_set(err, ERROR_CONFIG,
			"mount = same-path needs a workspace: start the broker in it, or with "
			"--workspace");
		return NULL;
	}
	struct exec_shown *self = mem_alloc_zero(sizeof(*self));
	self->config = *config;
	self->done = done;
	list_init(&self->jobs);
	char *state = context->state_folder ? real_path(context->state_folder) : NULL;
	pin_places_init(&self->places, context, config->settings,
		home && home[0] == '/' ? home : "/root", state, "mount = none");
	free(state);
	struct shown_job *job = job_create(self, SHOWN_FIRST, config->directory);
	self->config.directory = NULL;
	self->config.settings = NULL;
	if (pool_submit(context->pool, &job->job, err)) {
		return self;
	}
	job_drop(&job->job);
	exec_shown_destroy(self);
	return NULL;
}

void exec_shown_destroy(struct exec_shown *shown)
{
	if (!shown) {
		return;
	}
	LIST_FOR_EACH(job, &shown->jobs, struct shown_job, link) {
		if (job->is_inside) {
			job_drop(&job->job);
			continue;
		}
		list_remove(&job->link);
		list_init(&job->link);
		pool_leave(&job->job);
	}
	pin_places_finish(&shown->places);
	pin_news_finish(&shown->news);
	marks_finish(&shown->marks);
	free(shown->path);
	free(shown);
}
