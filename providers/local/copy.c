/* SPDX-License-Identifier: MIT */
#include "providers/local/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/real_path.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/agent_login.h"
#include "providers/local/allowed_sockets.h"
#include "providers/local/cell_ways.h"
#include "providers/local/copy_cell.h"
#include "providers/local/copy_lock.h"
#include "providers/local/copy_paths.h"
#include "providers/local/copy_place.h"
#include "providers/local/copy_tree.h"
#include "base/file_io.h"
#include "providers/local/host.h"
#include "providers/local/owner.h"
#include "providers/local/pinned.h"
#include "providers/local/write_hint.h"

enum { MAKE_TRIES = 16 };

struct copy_sandbox {
	struct host_sandbox host;
	const struct sandbox_listener *listener;
	void *data;
	struct copy_home home;
	uint64_t profile;          // a hash of its name
	int start_home_fd;         // holds the lock of the folder before copy_take_over; or -1
	bool must_exist;           // the wanted copy was made before
	int timeout_ms;            // prepare-timeout
	struct owner owner;        // owner of the copies; root itself unless confined
	bool must_confine;         // because of confine = required, or the network
	struct cell *cell;         // NULL: not confined
	struct cell_ways ways;     // ways out of the cell
	struct agent_home agent;   // its files in the cell's home
	struct agent_login *login; // NULL: no login is copied back
	const struct settings *settings; // borrowed until the sandbox is ready
	int start_fd;                    // folder in which the agent starts; -1: none
	struct copy_place start;         // of that folder
	struct list jobs;                // of struct copy_job
	char **notices;                  // owned; for the end of the next turn
	bool is_in_place;                // without copies: `pinned` has the roots
	struct pinned pinned;
	struct write_hint hint; // for the cell
};

/* A folder that is being made or removed. The job outlives a sandbox that is closed. */
struct copy_job {
	struct list link; // copy_sandbox.jobs
	struct pool_job job;
	struct copy_sandbox *sandbox;
	char *local;     // owned; NULL: the job removes the sandbox's folders
	char *user_home; // owned; may be NULL
	char home[PATH_MAX];
	bool must_exist;
	struct copy_place place;
	struct sandbox_root *copies; // owned, as are their runtime names; the copies to remove
	size_t copy_count;
	int held; // the descriptor of copy_start, if the agent started in `place`; or -1
	struct owner owner;
	struct owner_left left;
	size_t forbidden; // ignored files that the workspace's owner may not read
	int timeout_ms;   // how long to wait while another session copies
	atomic_bool is_cancelled;
	bool failed;
	bool is_showing; // the job has left the pool and waits for the cell
	struct error err;
	sandbox_done *done;
	void *done_data;
};

static struct copy_sandbox *from_sandbox(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct copy_sandbox, host.sandbox);
}

/* ---- names ---- */

static bool make_folder(const char *path, struct error *err)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s", path);
	}
	return true;
}

/* ---- making a copy ---- */

/*
 * Tries again, because whoever removes the profile's last copy also removes this folder, at any
 * moment.
 */
static bool make_copy_folder(const struct copy_job *job, struct error *err)
{
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		if (!make_folder(job->home, err)) {
			return false;
		}
		if (make_folder(job->place.folder, err)) {
			return true;
		}
		if (access(job->home, F_OK) == 0) {
			return false;
		}
	}
	return false;
}

static bool fill_copy(struct copy_job *job, const char *real, struct error *err)
{
	char own[PATH_MAX];
	if (!copy_place_make(&job->place, job->home, real, err)) {
		return false;
	}
	struct stat made;
	if (lstat(job->place.made, &made) ==
		0) { // the first copy is complete; later removals are the sync's
		return (S_ISREG(made.st_mode) && made.st_size > 0) ||
		       copy_mark_made(&job->place, real, err);
	}
	struct ignored_copy copy = {.from = real,
		.to = job->place.runtime,
		.own = own,
		.home = job->user_home,
		.out_forbidden = &job->forbidden,
		.is_cancelled = &job->is_cancelled};
	if (job->owner.is_other) {
		copy.owner = owner_of_workspace(real);
	}
	/* Not beside the copy, where a confined agent of another session can write. */
	const char *name = strrchr(job->place.folder, '/') + 1;
	return copy_put_path(own, err, "%s/.%s.rules", job->home, name) &&
	       copy_ignored(&copy, err) && copy_mark_made(&job->place, real, err);
}

/*
 * If the broker is root, it makes the copy as root, and another user may work in it. When the
 * profile is no longer confined, root gets the copy back.
 */
static bool give_copy(struct copy_job *job, struct error *err)
{
	struct stat status;
	bool is_given = !job->owner.is_other && lstat(job->place.folder, &status) == 0 &&
	                status.st_uid == job->owner.uid;
	return geteuid() != 0 || is_given ||
	       owner_give(job->place.folder, &job->owner, &job->is_cancelled, &job->left, err);
}

/* A job that waited for another session's copy finds it complete. */
static bool make_copy(struct copy_job *job, struct error *err)
{
	char real[PATH_MAX];
	if (!file_find_root(job->local, real, err) || !copy_check_outside(job->home, real, err) ||
		!copy_place_of(&job->place, job->home, real, err)) {
		return false;
	}
	if (job->must_exist && access(job->place.folder, F_OK) != 0) {
		return error_set_reason(err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"the copy of %s in %s no longer exists", real, job->place.folder);
	}
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		ATTR_CLEANUP(fd_cleanup) int lock = -1;
		if (!make_copy_folder(job, err)) {
			return false;
		}
		if (copy_lock(job->place.folder, job->timeout_ms, &job->is_cancelled, &lock, err)) {
			return fill_copy(job, real, err) && give_copy(job, err);
		}
		if (err->code != ERROR_NOT_FOUND) {
			return false;
		}
	}
	return false;
}

static bool remove_copies(struct copy_job *job, struct error *err)
{
	char side[PATH_MAX], aside[PATH_MAX];
	for (size_t i = 0; i < job->copy_count; i++) {
		bool is_held = strcmp(job->copies[i].runtime, job->place.runtime) == 0;
		if (!copy_place_remove(&job->copies[i], is_held ? job->held : -1, err)) {
			return false;
		}
	}
	/* With the last copy, also removes what syncs of older brokers kept beside the folders. */
	if (!copy_put_path(side, err, "%s/.acp-broker", job->home) ||
		!copy_put_path(aside, err, "%s.side", job->home)) {
		return false;
	}
	if (job->copy_count == 0) {
		return true;
	}
	if (rename(side, aside) != 0) {
		(void)!rmdir(job->home); // fails while other folders are in it
		return true;
	}
	if (rmdir(job->home) != 0) {
		return rename(aside, side) == 0 ||
		       error_set_errno(err, errno, "removing %s", job->home);
	}
	return remove_folder(aside, err);
}

static void on_run(struct pool_job *pool_job)
{
	struct copy_job *job = CONTAINER_OF(pool_job, struct copy_job, job);
	job->failed = !(job->local ? make_copy(job, &job->err) : remove_copies(job, &job->err));
}

static void job_drop(struct pool_job *pool_job)
{
	struct copy_job *job = CONTAINER_OF(pool_job, struct copy_job, job);
	list_remove(&job->link);
	for (size_t i = 0; i < job->copy_count; i++) {
		free((char *)job->copies[i].runtime);
	}
	free(job->copies);
	fd_close(&job->held);
	free(job->local);
	free(job->user_home);
	free(job);
}

static void tell_done(struct copy_job *job)
{
	struct sandbox *sandbox = &job->sandbox->host.sandbox;
	sandbox_done *done = job->done;
	void *data = job->done_data;
	if (!job->failed && job->local) {
		struct sandbox_root root = {
			.local = job->local, .runtime = job->place.runtime, .top = job->place.top};
		host_add_mapped_root(sandbox, &root, done, data);
		job_drop(&job->job);
		return;
	}
	struct error err = job->err;
	bool failed = job->failed;
	job_drop(&job->job);
	done(data, failed ? &err : NULL);
}

static void on_shown(void *data, const struct error *err)
{
	struct copy_job *job = data;
	job->is_showing = false;
	job->failed = err != NULL;
	if (err) {
		job->err = *err;
	}
	tell_done(job);
}

/* Kept for later, because there is no session yet that could show it. */
static void note_left(const struct copy_job *job)
{
	char text[PATH_MAX + 256];
	if (job->failed) {
		return;
	}
	if (job->forbidden > 0) {
		text_format(text, sizeof(text),
			"%zu ignored files and folders of %s are not in the copy, because the "
			"owner of the workspace may not read them",
			job->forbidden, job->local);
		words_append(&job->sandbox->notices, text);
	}
	if (job->left.linked == 0 && job->left.deep == 0) {
		return;
	}
	text_format(text, sizeof(text),
		"In %s, %zu files have more than one name (hard links), and %zu folders are too "
		"deep: they were not given to user %u, who runs the confined agent, and still "
		"belong to another user",
		job->place.runtime, job->left.linked, job->left.deep, (unsigned)job->owner.uid);
	words_append(&job->sandbox->notices, text);
}

/*
 * Shows the copy together with the folder beside it from which the sync renames files, because both
 * must be on one mount.
 */
static void on_done(struct pool_job *pool_job)
{
	struct copy_job *job = CONTAINER_OF(pool_job, struct copy_job, job);
	struct cell *cell = job->sandbox->cell;
	note_left(job);
	if (job->failed || !job->local || !cell) {
		tell_done(job);
	} else if (cell_show(cell, job->place.folder, on_shown, job, &job->err)) {
		job->is_showing = true;
	} else {
		job->failed = true;
		tell_done(job);
	}
}

static struct copy_job *job_create(struct copy_sandbox *self, sandbox_done *done, void *data)
{
	struct copy_job *job = mem_alloc_zero(sizeof(*job));
	job->sandbox = self;
	job->done = done;
	job->done_data = data;
	job->failed = true;
	job->held = -1;
	job->timeout_ms = self->timeout_ms;
	job->owner = self->cell ? self->owner : (struct owner){.uid = geteuid(), .gid = getegid()};
	error_set(&job->err, ERROR_UNAVAILABLE, "copying the workspace: the broker is ending");
	job->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = job_drop};
	text_whole(job->home, sizeof(job->home), "%s", self->home.path);
	job->must_exist = self->must_exist;
	list_append(&self->jobs, &job->link);
	return job;
}

static void submit(struct copy_job *job)
{
	struct error err;
	struct sandbox *sandbox = &job->sandbox->host.sandbox;
	if (!pool_submit(job->sandbox->host.context->pool, &job->job, &err)) {
		sandbox_raise_later(sandbox, job->done, job->done_data, &err);
		job_drop(&job->job);
	}
}

static const char *find_home(const char *const *environment)
{
	for (; environment && *environment; environment++) {
		if (strncmp(*environment, "HOME=", 5) == 0) {
			return *environment + 5;
		}
	}
	return NULL;
}

/* ---- the sandbox ---- */

static void copy_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct copy_sandbox *self = from_sandbox(sandbox);
	struct copy_job *job = job_create(self, done, data);
	const char *user_home = find_home(self->host.context->environment);
	job->local = mem_strdup(local_root);
	job->user_home = user_home ? mem_strdup(user_home) : NULL;
	submit(job);
}

static void copy_destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct copy_sandbox *self = from_sandbox(sandbox);
	struct copy_job *job = job_create(self, done, data);
	job->copies = mem_alloc_zero((sandbox->root_count + 1) * sizeof(*job->copies));
	for (size_t i = 0; i < sandbox->root_count; i++) {
		struct sandbox_root *copy = &job->copies[job->copy_count++];
		*copy = sandbox->roots[i];
		copy->runtime = mem_strdup(copy->runtime);
	}
	if (self->start_fd >= 0) {
		job->held = fcntl(self->start_fd, F_DUPFD_CLOEXEC, 0);
		job->place = self->start;
	}
	submit(job);
}

/* copy_take_over may have changed the folder of the copies. */
static void leave_start(struct copy_sandbox *self)
{
	char home[PATH_MAX];
	if (self->start_fd >= 0) {
		text_whole(home, sizeof(home), "%s", self->start.folder);
		*strrchr(home, '/') = '\0';
		copy_start_end(self->start_fd, home, &self->start);
		self->start_fd = -1;
	}
	fd_close(&self->start_home_fd);
}

static void copy_close(struct sandbox *sandbox)
{
	struct copy_sandbox *self = from_sandbox(sandbox);
	LIST_FOR_EACH(job, &self->jobs, struct copy_job, link) {
		if (job->is_showing) {
			job_drop(&job->job);
			continue;
		}
		atomic_store(&job->is_cancelled, true);
		list_remove(&job->link);
		pool_leave(&job->job);
	}
	leave_start(self);
	copy_home_leave(&self->home);
	for (size_t i = 0; i < sandbox->known_count; i++) {
		free((char *)sandbox->known[i].local);
		free((char *)sandbox->known[i].runtime);
	}
	free(sandbox->known);
	if (self->is_in_place) {
		pinned_finish(&self->pinned);
	}
	host_sandbox_finish(&self->host);
	agent_login_end(self->login);
	cell_ways_finish(&self->ways);
	cell_destroy(self->cell);
	agent_home_finish(&self->agent);
	words_free(self->notices);
	write_hint_finish(&self->hint);
	free(self);
}

/* ---- processes and files ---- */

static void on_told(void *data, const char *text)
{
	struct copy_sandbox *self = data;
	if (self->listener->on_notice) {
		self->listener->on_notice(self->data, text);
	}
}

static void copy_look(struct sandbox *sandbox)
{
	struct copy_sandbox *self = from_sandbox(sandbox);
	char **notices = self->notices;
	self->notices = NULL;
	for (char **notice = notices; notice && *notice; notice++) {
		on_told(self, *notice);
	}
	words_free(notices);
}

/*
 * The agent has already started in the folder that its own copies would have had; that folder stays
 * empty.
 */
static bool copy_take_over(struct sandbox *sandbox, const char *reference)
{
	struct copy_sandbox *self = from_sandbox(sandbox);
	struct copy_home old;
	if (sandbox->root_count > 0 || !list_is_empty(&self->jobs) ||
		!copy_home_take_over(&self->home, reference, &old)) {
		return false;
	}
	if (self->start_fd >= 0 && self->start_home_fd < 0) {
		self->start_home_fd = old.fd; // keeps others from removing the agent's folder
	} else {
		copy_home_leave(&old);
	}
	return true;
}

static void copy_decide(struct sandbox *sandbox, uint32_t id, const struct sandbox_verdict *verdict)
{
	cell_network_decide(from_sandbox(sandbox)->ways.network, id, verdict);
}

static void copy_look_for_program(struct sandbox *sandbox, uint32_t id)
{
	cell_network_look_for_program(from_sandbox(sandbox)->ways.network, id);
}

static bool find_write_hint(
	const struct sandbox *sandbox, const char *path, char out_folder[FILE_PATH_MAX])
{
	const struct copy_sandbox *self = CONTAINER_OF(sandbox, struct copy_sandbox, host.sandbox);
	return self->cell && write_hint_find(&self->hint, sandbox, path, out_folder);
}

static const struct sandbox_impl copy_impl = {
	.add_root = copy_add_root,
	.exec = copy_exec,
	.read_file = copy_read_file,
	.write_file = copy_write_file,
	.stat_file = copy_stat_file,
	.resolve_path = copy_resolve_path,
	.file_op_cancel = local_files_cancel,
	.close = copy_close,
	.destroy = copy_destroy,
	.suspend = host_suspend,
	.resume = host_resume,
	.by_signals = host_by_signals,
	.usage = host_usage,
	.look = copy_look,
	.take_over = copy_take_over,
	.decide = copy_decide,
	.look_for_program = copy_look_for_program,
	.find_write_hint = find_write_hint,
};

/* ---- the workspaces themselves ---- */

static void in_place_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	pinned_add_root(&from_sandbox(sandbox)->pinned, local_root, done, data);
}

static void in_place_look(struct sandbox *sandbox)
{
	pinned_look(&from_sandbox(sandbox)->pinned);
}

static bool in_place_is_pinned(const struct sandbox *sandbox, const char *path)
{
	const struct copy_sandbox *self = CONTAINER_OF(sandbox, struct copy_sandbox, host.sandbox);
	return pinned_has(&self->pinned, path);
}

/* Removes nothing, because the workspaces are the user's. */
static void in_place_destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	sandbox_raise_later(sandbox, done, data, NULL);
}

static const struct sandbox_impl in_place_impl = {
	.add_root = in_place_add_root,
	.exec = copy_exec,
	.read_file = host_read_file,
	.write_file = host_write_file,
	.stat_file = host_stat_file,
	.resolve_path = host_resolve_path,
	.file_op_cancel = local_files_cancel,
	.close = copy_close,
	.destroy = in_place_destroy,
	.suspend = host_suspend,
	.resume = host_resume,
	.by_signals = host_by_signals,
	.usage = host_usage,
	.look = in_place_look,
	.is_pinned = in_place_is_pinned,
	.decide = copy_decide,
	.look_for_program = copy_look_for_program,
	.find_write_hint = find_write_hint,
};

static void on_prepared(void *data, const struct error *err)
{
	struct copy_sandbox *self = data;
	self->host.sandbox.was_ready = true;
	self->listener->on_ready(self->data);
}

/*
 * If the broker is root, the confined user gets separate copies: those in which root works may
 * contain files that only root can read.
 */
static uint64_t name_copies(const struct copy_sandbox *self, bool is_confined)
{
	char user[32];
	text_whole(user, sizeof(user), "\nuser %u", (unsigned)self->owner.uid);
	return is_confined && self->owner.is_other ? hash_bytes(self->profile, span_of(user))
	                                           : self->profile;
}

/* ---- the cell ---- */

static void on_start_shown(void *data, const struct error *err)
{
	struct copy_sandbox *self = data;
	if (err) {
		self->listener->on_failed(self->data, err);
	} else {
		on_prepared(self, NULL);
	}
}

static void show_start(void *data)
{
	struct copy_sandbox *self = data;
	struct error err;
	if (self->start_fd < 0) {
		on_prepared(self, NULL);
	} else if (!cell_show(self->cell, self->start.folder, on_start_shown, self, &err)) {
		self->listener->on_failed(self->data, &err);
	}
}

static void on_ways_ready(void *data)
{
	struct copy_sandbox *self = data;
	cell_keys_set_variables(self->ways.keys, &self->host.environment);
	self->host.sandbox.environment = (const char *const *)self->host.environment;
	show_start(self);
}

static void on_cell_ready(void *data)
{
	struct copy_sandbox *self = data;
	struct sandbox *sandbox = &self->host.sandbox;
	struct error err;
	self->host.spawner = cell_spawner(self->cell);
	local_files_set_owner(&self->host.files, &self->owner);
	local_limits_enter_cell(&self->host.limits);
	self->pinned.cell = self->cell;
	sandbox->home = copy_cell_home(self->host.context);
	sandbox->capabilities.confined = true;
	self->login = agent_login_start(self->host.context->loop, self->host.context->pool,
		&self->agent, cell_home(self->cell));
	sandbox->capabilities.shares_loopback = copy_cell_has_network(self->settings);
	allowed_sockets_tell(sandbox, self->settings, self->host.context->environment);
	if (!cell_keeps_abstract_sockets(self->cell, &err)) {
		if (self->must_confine) {
			self->listener->on_failed(self->data, &err);
			return;
		}
		sandbox_warn(sandbox, err.text);
	}
	cell_ways_start(&self->ways, self->cell);
}

/*
 * With `confine = yes` the agent starts unconfined if this machine forbids cells, and the user sees
 * why. Any other failure of the cell fails the start, because a confined agent could cause one for
 * the next agent.
 */
static void on_cell_ended(void *data, const struct error *err)
{
	struct copy_sandbox *self = data;
	struct sandbox *sandbox = &self->host.sandbox;
	char text[ERROR_TEXT_MAX + 32];
	if (sandbox->capabilities.confined || self->must_confine ||
		!error_has_reason(err, copy_cell_reason.name)) {
		cell_ways_finish(&self->ways); // otherwise they would report that they are ready
		self->host.sandbox.keys = NULL;
		self->listener->on_failed(self->data, err);
		return;
	}
	text_format(text, sizeof(text), "the agent is not confined: %s", err->text);
	sandbox_warn(sandbox, text);
	cell_destroy(self->cell);
	self->cell = NULL;
	if (self->is_in_place && getcwd(self->home.path, sizeof(self->home.path)) == NULL) {
		text_whole(self->home.path, sizeof(self->home.path), "/");
	}
	host_drop_variables(&self->host, self->settings, copy_cell_hides_anyway);
	on_prepared(self, NULL);
}

static const struct cell_listener cell_listener = {
	.on_ready = on_cell_ready,
	.on_ended = on_cell_ended,
	.on_notice = on_told,
};

/* One for each profile and each user that owns the files in it. */
static bool make_agent_home(struct copy_sandbox *self, const char *state, struct error *err)
{
	char folder[PATH_MAX];
	const char *home = copy_cell_home(self->host.context);
	bool fits = self->owner.is_other ? copy_put_path(folder, err, "%s/homes/%016" PRIx64 ".%u",
						   state, self->profile, (unsigned)self->owner.uid)
	                                 : copy_put_path(folder, err, "%s/homes/%016" PRIx64, state,
						   self->profile);
	bool is_made = fits && agent_home_init(&self->agent, self->settings, home ? home : "/",
				       folder, &self->owner, err);
	self->agent.keys = self->ways.keys;
	return is_made;
}

/* The state folder contains the folder of all copies. */
static bool make_cell(struct copy_sandbox *self, struct error *err)
{
	char state[PATH_MAX];
	text_whole(state, sizeof(state), "%s", self->home.path);
	for (int i = 0; i < 2; i++) {
		*strrchr(state, '/') = '\0';
	}
	self->must_confine = copy_cell_is_required(self->settings);
	write_hint_init(&self->hint, self->settings, copy_cell_home(self->host.context), state,
		&self->owner);
	if (!make_agent_home(self, state, err)) {
		return false;
	}
	const struct copy_cell_config config = {.context = self->host.context,
		.settings = self->settings,
		.state = state,
		.agent = &self->agent,
		.ways = &self->ways,
		.owner = &self->owner,
		.group = &self->host.limits.group,
		.sandbox = &self->host.sandbox};
	if (self->is_in_place) {
		const char *home = copy_cell_home(self->host.context);
		pinned_init(&self->pinned, &self->host, self->settings, home ? home : "/", state);
		self->pinned.owner = self->owner;
		self->pinned.tell = on_told;
		self->pinned.data = self;
	}
	const struct cell_network_config ways = {.context = self->host.context,
		.settings = self->settings,
		.uid = self->owner.uid,
		.gid = self->owner.gid,
		.on_ready = on_ways_ready,
		.data = self,
		.listener = self->listener,
		.listener_data = self->data};
	self->cell = copy_cell_create(&config, &cell_listener, self, err);
	return self->cell && cell_ways_prepare(&self->ways, &ways, err);
}

/* The agent starts in this folder before a session gives it the rest of the copy. */
static void give_start(struct copy_sandbox *self)
{
	struct error err;
	if (self->start_fd >= 0 && self->cell && self->owner.is_other &&
		!copy_place_give(&self->start, &self->owner, &err)) {
		leave_start(self); // a session in it will report the failure
	}
}

struct sandbox *copy_prepare(const struct provider_context *context,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	struct copy_sandbox *self = mem_alloc_zero(sizeof(*self));
	self->is_in_place = !copy_is_wanted(request->settings);
	host_sandbox_init(&self->host, self->is_in_place ? &in_place_impl : &copy_impl, context);
	list_init(&self->jobs);
	self->start_fd = -1;
	bool is_confined = copy_confinement(request->settings) != CONFINEMENT_NO;
	self->settings = request->settings;
	self->listener = listener;
	self->data = data;
	self->owner = owner_find(request->directory);
	self->start_home_fd = -1;
	self->must_exist = request->reference != NULL;
	self->profile = hash_bytes(HASH_START, span_of(request->profile));
	if (!copy_home_open(&self->home, context->state_folder, name_copies(self, is_confined),
		    request, err) ||
		!local_limits_read(
			&self->host.limits, &self->host.sandbox, request->settings, err) ||
		!cell_ways_init(&self->ways, context, request->settings, err) ||
		(is_confined && !make_cell(self, err))) {
		cell_ways_finish(&self->ways);
		cell_destroy(self->cell);
		agent_home_finish(&self->agent);
		write_hint_finish(&self->hint);
		if (self->pinned.host) {
			pinned_finish(&self->pinned);
		}
		copy_home_leave(&self->home);
		host_sandbox_finish(&self->host);
		free(self);
		return NULL;
	}
	host_drop_variables(&self->host, request->settings,
		is_confined ? copy_cell_hides : copy_cell_hides_anyway);
	if (is_confined) {
		agent_home_set_variables(
			&self->agent, &self->host.environment, &self->host.sandbox);
		if (self->owner.is_other) {
			copy_cell_name_user(context, &self->host.environment);
		}
		cell_ways_set_variables(&self->ways, &self->host.environment, &self->host.sandbox);
		self->host.sandbox.keys = cell_keys_names(self->ways.keys);
		self->host.sandbox.environment = (const char *const *)self->host.environment;
	}
	self->host.sandbox.home = self->home.path;
	self->host.sandbox.reference = self->home.key[0] ? self->home.key : NULL;
	self->pinned.rules =
		(struct pin_rules){.is_guarded = request->is_guarded, .guard = request->guard};
	if (!self->is_in_place) {
		self->host.sandbox.known = copy_known(&self->home, &self->host.sandbox.known_count);
	}
	if (request->directory && !self->is_in_place && !self->must_exist) {
		self->start_fd = copy_start(self->home.path, request->directory, &self->start);
		give_start(self);
		self->host.sandbox.start = self->start_fd >= 0 ? self->start.runtime : NULL;
	}
	self->host.sandbox.capabilities =
		(struct sandbox_capabilities){.isolated = !self->is_in_place,
			.many_roots = true,
			.maps_paths = !self->is_in_place,
			.shares_loopback = true,
			.is_near = true,
			.can_suspend = true};
	self->timeout_ms = request->prepare_timeout_ms;
	if (!is_confined) {
		sandbox_raise_later(&self->host.sandbox, on_prepared, self, NULL);
	}
	return &self->host.sandbox;
}
