/* SPDX-License-Identifier: MIT */
#include "providers/ssh/roots.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/user_repository.h"
#include "base/words.h"
#include "providers/script_run.h"

enum {
	NAME_SIZE = 49, // of a workspace's name; a longer one is shortened
	FOLDER_SIZE = NAME_SIZE + 18,
	ANSWER_MAX = 2 * FILE_PATH_MAX,
	ADD_MS = 60000,
	REMOVE_MS = 600000, // enough for a large tree on a slow disk
};

static const char add_script[] =
#include "providers/ssh/remote/root_add.sh.inc"
	;
static const char remove_script[] =
#include "providers/ssh/remote/root_remove.sh.inc"
	;

/* A folder that is being made, or the removal of all folders. */
struct root_job {
	struct list link; // roots.jobs
	struct pool_job job;
	struct ssh_roots *roots;
	struct script_run *run;           // owned; NULL before and after
	char *local;                      // owned; NULL: a removal
	char *state_folder;               // owned, for the worker; may be NULL
	char *apart;                      // the same
	char *real;                       // owned; by the worker
	char place[REPOSITORY_PLACE_MAX]; // by the worker; "" if it is not part of a repository
	char folder[FOLDER_SIZE];
	char machine[MACHINE_ID_SIZE]; // by the worker
	struct error err;              // by the worker; why `real` is missing
	sandbox_done *done;
	void *data;
};

static void job_drop(struct pool_job *pool_job)
{
	struct root_job *job = CONTAINER_OF(pool_job, struct root_job, job);
	script_run_destroy(job->run);
	list_remove(&job->link);
	free(job->local);
	free(job->state_folder);
	free(job->apart);
	free(job->real);
	free(job);
}

static void job_finish(struct root_job *job, const struct error *err)
{
	sandbox_done *done = job->done;
	void *data = job->data;
	struct error copy = err ? *err : (struct error){0};
	job_drop(&job->job);
	done(data, err ? &copy : NULL);
}

/* ---- names ---- */

/* Keeps only characters that are safe in every shell and clear to every user. */
static void put_name(char name[NAME_SIZE], const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = 0;
	for (const char *at = slash ? slash + 1 : path; *at && len + 1 < NAME_SIZE; at++) {
		bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		                (*at >= '0' && *at <= '9') ||
		                (len > 0 && (*at == '-' || *at == '.')) || *at == '_';
		name[len++] = is_plain ? *at : '_';
	}
	name[len] = '\0';
	if (len == 0) {
		snprintf(name, NAME_SIZE, "root");
	}
}

static void put_folder(const struct root_job *job, const char *name, char folder[FOLDER_SIZE])
{
	char user[32];
	snprintf(user, sizeof(user), "%lu", (unsigned long)getuid());
	uint64_t hash = HASH_START;
	hash = hash_text(hash, job->machine);
	hash = hash_text(hash, user);
	hash = hash_text(hash, job->roots->profile);
	hash = hash_text(hash, job->real);
	hash = hash_text(hash, job->roots->token ? job->roots->token : "");
	text_whole(folder, FOLDER_SIZE, "%s-%016" PRIx64, name, hash);
}

/* ---- on the pool ---- */

static void on_run(struct pool_job *pool_job)
{
	struct root_job *job = CONTAINER_OF(pool_job, struct root_job, job);
	if (machine_id_read("", job->state_folder, job->machine, &job->err)) {
		job->real = real_path(job->local);
	}
	char *apart = job->apart ? real_path(job->apart) : NULL;
	if (job->real && apart && paths_overlap(apart, job->real)) {
		error_set_reason(&job->err, ERROR_CONFIG, "DOCKERFILE_REFUSED",
			"%s cannot be a workspace of this profile: it contains %s or lies in it, "
			"from which the image is built, and an agent could change that "
			"(dockerfile)",
			job->local, job->apart);
		free(job->real);
		job->real = NULL;
	}
	free(apart);
	if (job->real) {
		user_repository_place(job->real, job->place);
	}
}

/* ---- answers ---- */

/*
 * The second word of the answer, whose first word must be `what`. NULL if the answer is another one
 * or incomplete.
 */
static const char *read_answer(struct span text, const char *what, struct error *err)
{
	const char *words[3] = {"", "", ""};
	size_t count = 0;
	while (text.len > 0 && count < ARRAY_LENGTH(words)) {
		size_t len = strnlen(text.data, text.len);
		if (len == text.len) {
			break;
		}
		words[count++] = text.data;
		text.data += len + 1;
		text.len -= len + 1;
	}
	bool is_whole = count > 1 && text.len == 0 && strcmp(words[count - 1], "end") == 0;
	if (is_whole && strcmp(words[0], what) == 0) {
		return words[1];
	}
	if (is_whole && strcmp(words[0], "gone") == 0) {
		error_set_reason(
			err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND", "%s no longer exists", words[1]);
	} else if (is_whole) {
		error_set(err, ERROR_SYSTEM, "%s", words[1]);
	} else {
		error_set(err, ERROR_UNAVAILABLE, "the sandbox's answer is incomplete");
	}
	return NULL;
}

static bool has_root(const struct sandbox *sandbox, const char *local, const char *runtime)
{
	for (size_t i = 0; i < sandbox->root_count; i++) {
		if (strcmp(sandbox->roots[i].local, local) == 0 &&
			strcmp(sandbox->roots[i].runtime, runtime) == 0) {
			return true;
		}
	}
	return false;
}

/* The length up to the first name below the workspace's folder; 0 if the path has another form. */
static size_t find_top(const struct root_job *job, const char *runtime)
{
	char folder[FOLDER_SIZE + 16];
	text_whole(folder, sizeof(folder), "/workspaces/%s/", job->folder);
	const char *found = strstr(runtime, folder);
	if (!found) {
		return 0;
	}
	const char *name = found + strlen(folder);
	return (size_t)(name - runtime) + strcspn(name, "/");
}

static void take_root(struct root_job *job, const char *runtime)
{
	struct sandbox *sandbox = job->roots->sandbox;
	if (has_root(sandbox, job->local, runtime)) {
		return;
	}
	size_t count = sandbox->root_count + 1;
	sandbox->roots = mem_realloc(sandbox->roots, count * sizeof(*sandbox->roots));
	sandbox->roots[count - 1] = (struct sandbox_root){.local = mem_strdup(job->local),
		.runtime = mem_strdup(runtime),
		.top = find_top(job, runtime)};
	sandbox->root_count = count;
}

static void on_told(void *data, const struct error *err)
{
	job_finish(data, err);
}

static void on_script_end(
	void *data, struct buf *output, const char *words, const struct error *err)
{
	struct root_job *job = data;
	struct error failure = {0};
	const char *answer = NULL;
	if (err) {
		failure = *err;
	} else {
		answer = read_answer(buf_span(output), job->local ? "root" : "removed", &failure);
	}
	if (answer && job->local) {
		take_root(job, answer);
	} else if (!answer && *words) {
		error_set_reason(
			&failure, failure.code, failure.reason, "%s (%s)", failure.text, words);
	}
	if (!answer) {
		error_prefix(&failure, "%s %s",
			job->local ? "a directory for" : "removing the content of",
			job->local ? job->local : job->roots->base);
	}
	struct remote *remote = job->roots->remote;
	if (answer && job->local && remote) {
		remote_add_root(remote, answer, on_told, job);
	} else if (!answer && !job->local) { // so that a loss of the link is reported first
		sandbox_raise_later(job->roots->sandbox, job->done, job->data, &failure);
		job_drop(&job->job);
	} else {
		job_finish(job, answer ? NULL : &failure);
	}
}

/* ---- the scripts ---- */

static void start_script(struct root_job *job, const char *const *argv, long long deadline_ms)
{
	static const struct script_listener listener = {.on_end = on_script_end};
	struct error err;
	struct sandbox *sandbox = job->roots->sandbox;
	struct script_order order = {
		.argv = argv, .output_max = ANSWER_MAX, .deadline_ms = deadline_ms};
	job->run = script_run_start(sandbox->loop, sandbox, &order, &listener, job, &err);
	if (!job->run) {
		sandbox_raise_later(sandbox, job->done, job->data, &err);
		job_drop(&job->job);
	}
}

static void on_named(struct pool_job *pool_job)
{
	struct root_job *job = CONTAINER_OF(pool_job, struct root_job, job);
	char name[NAME_SIZE];
	if (!job->real) {
		job_finish(job, &job->err);
		return;
	}
	put_name(name, job->real);
	put_folder(job, name, job->folder);
	const char *const program[] = {job->roots->program, "root", NULL};
	const char *const script[] = {"sh", "-c", add_script, "acp-broker-root", NULL};
	const char *const words[] = {job->roots->base, job->folder, name,
		job->roots->is_there ? "there" : "any", job->place, NULL};
	char **argv = NULL;
	words_append_all(&argv, job->roots->program ? program : script);
	words_append_all(&argv, words);
	start_script(job, (const char *const *)argv, ADD_MS);
	words_free(argv);
}

static struct root_job *job_create(
	struct ssh_roots *roots, const char *local, sandbox_done *done, void *data)
{
	struct root_job *job = mem_alloc_zero(sizeof(*job));
	job->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_named, .drop = job_drop};
	job->roots = roots;
	job->local = mem_strdup_or_null(local);
	job->state_folder = mem_strdup_or_null(roots->state_folder);
	job->apart = mem_strdup_or_null(roots->apart);
	error_set(&job->err, ERROR_UNAVAILABLE, "%s: the broker is ending", local ? local : "");
	job->done = done;
	job->data = data;
	list_append(&roots->jobs, &job->link);
	return job;
}

void ssh_roots_add(struct ssh_roots *roots, const char *local_root, sandbox_done *done, void *data)
{
	struct error err;
	struct root_job *job = job_create(roots, local_root, done, data);
	if (!pool_submit(roots->pool, &job->job, &err)) {
		sandbox_raise_later(roots->sandbox, done, data, &err);
		job_drop(&job->job);
	}
}

/* The folder that contains the root: the parent of its top. */
static void append_folder(char ***argv, const struct sandbox_root *root)
{
	size_t length = root->top > 0 ? root->top : strlen(root->runtime);
	char *path = mem_strndup((struct span){root->runtime, length});
	*strrchr(path, '/') = '\0';
	words_append(argv, strrchr(path, '/') + 1);
	free(path);
}

void ssh_roots_remove(struct ssh_roots *roots, sandbox_done *done, void *data)
{
	const char *const begin[] = {
		"sh", "-c", remove_script, "acp-broker-root", roots->base, NULL};
	char **argv = NULL;
	words_append_all(&argv, begin);
	for (size_t i = 0; i < roots->sandbox->root_count; i++) {
		append_folder(&argv, &roots->sandbox->roots[i]);
	}
	start_script(job_create(roots, NULL, done, data), (const char *const *)argv, REMOVE_MS);
	words_free(argv);
}

/* ---- life ---- */

static char *place_base(const char *setting, const char *home)
{
	const char *rest = setting;
	if (strcmp(rest, "~") == 0 || strncmp(rest, "~/", 2) == 0) {
		rest++;
	}
	if (setting[0] == '/') {
		home = "";
	}
	size_t size = strlen(home) + strlen(rest) + 2;
	char *base = mem_alloc(size);
	text_whole(base, size, "%s%s%s", home, rest[0] == '/' || !rest[0] ? "" : "/", rest);
	return base;
}

void ssh_roots_init(struct ssh_roots *roots, const struct ssh_roots_config *config)
{
	*roots = (struct ssh_roots){.sandbox = config->sandbox,
		.pool = config->pool,
		.base = place_base(config->setting, config->home),
		.profile = mem_strdup(config->profile),
		.state_folder = mem_strdup_or_null(config->state_folder),
		.token = mem_strdup_or_null(config->token),
		.program = config->program,
		.apart = config->apart,
		.is_there = config->is_there,
		.remote = config->remote};
	list_init(&roots->jobs);
}

void ssh_roots_finish(struct ssh_roots *roots)
{
	LIST_FOR_EACH(job, &roots->jobs, struct root_job, link) {
		list_remove(&job->link);
		pool_leave(&job->job);
	}
	struct sandbox *sandbox = roots->sandbox;
	for (size_t i = 0; i < sandbox->root_count; i++) {
		free((char *)sandbox->roots[i].local);
		free((char *)sandbox->roots[i].runtime);
	}
	free(sandbox->roots);
	sandbox->roots = NULL;
	sandbox->root_count = 0;
	free(roots->base);
	free(roots->profile);
	free(roots->state_folder);
	free(roots->token);
}
