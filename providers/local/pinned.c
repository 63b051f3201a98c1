/* SPDX-License-Identifier: MIT */
#include "providers/local/pinned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/path_quote.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "base/file_io.h"

enum {
	NAMED_MAX = 8,        // files that one notice names for each program
	NEWS_MAX = 64 * 1024, // bytes of a notice
};

/* What a root contained when it was shown, and what was reported since. */
struct pinned_root {
	struct list link; // pinned.roots
	char *path;       // owned; without links
	char *local;      // owned; its name in the session
	struct pin_list known;
	size_t known_first; // the first known_first are pinned
	bool is_looked_at;
	bool looks_again;
};

/* A walk through a workspace. It outlives a sandbox that is closed. */
struct pin_job {
	struct list link; // pinned.jobs
	struct pool_job job;
	struct pinned *pinned;
	char *local;    // owned
	char *expected; // owned; `local` must be this once its links are resolved
	char *home;     // owned; of rules
	char **refused; // owned
	char **above;   // owned
	struct pin_rules rules;
	struct owner owner;
	bool is_look;
	bool is_showing; // the job has left the pool and waits for the cell
	bool is_failed;
	struct error err;
	char path[PATH_MAX];
	char repository[PATH_MAX]; // of a worktree; "": none
	struct pin_list list;
	sandbox_done *done;
	void *done_data;
};

/* ---- folders that cannot be shown ---- */

static void refuse_folder(char ***folders, const char *folder, const char *name)
{
	char *path = *name ? path_join(folder, name) : mem_strdup(folder);
	char *real = real_path(path);
	words_append(folders, real);
	free(real);
	free(path);
}

void pinned_init(struct pinned *pinned, struct host_sandbox *host, const struct settings *settings,
	const char *home_name, const char *state)
{
	static const char *const own[] = {
		"/tmp", "/var/tmp", "/run", "/home", "/root", "/dev", "/proc", "/sys"};
	static const struct setting_key git = {
		.name = "git-write", .type = SETTING_BOOL, .fallback = "false"};
	const char *config = environment_get(host->context->environment, "XDG_CONFIG_HOME");
	*pinned = (struct pinned){.host = host,
		.home_name = home_name,
		.home = real_path(home_name),
		.writes_git = settings_bool(settings, &git)};
	list_init(&pinned->jobs);
	list_init(&pinned->roots);
	words_append(&pinned->refused, state);
	refuse_folder(&pinned->refused, pinned->home, ".config/acp-broker");
	if (config && config[0] == '/') {
		refuse_folder(&pinned->refused, config, "acp-broker");
	}
	if (host->context->own_files) {
		words_append_all(&pinned->refused, host->context->own_files);
	}
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, "allow-write") == 0) {
			bool is_in_home = strncmp(setting->value, "~/", 2) == 0;
			refuse_folder(&pinned->refused, is_in_home ? pinned->home : setting->value,
				is_in_home ? setting->value + 2 : "");
		}
	}
	words_append(&pinned->above, pinned->home);
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		words_append(&pinned->above, own[i]);
	}
}

static bool contains(const char *folder, const char *path)
{
	return strcmp(folder, "/") == 0 || path_is_at_or_below(path, folder);
}

static bool refuse(const char *path, const char *other, const char *why, struct error *err)
{
	return error_set(err, ERROR_CONFIG,
		"%s cannot be the workspace of a confined agent: it %s %s. Open another folder, or "
		"let the agent work in a copy (isolation = copy)",
		path, why, other);
}

static bool lies_in_git(const char *path)
{
	const char *at = strstr(path, "/.git");
	while (at && at[5] != '/' && at[5] != '\0') {
		at = strstr(at + 1, "/.git");
	}
	return at != NULL;
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

static bool check(const struct pin_job *job, struct error *err)
{
	const char *path = job->path;
	if (strcmp(path, job->expected) != 0) {
		return error_set(err, ERROR_CONFIG,
			"the path %s contains a symbolic link, which an agent could have made: "
			"open %s",
			job->local, path);
	}
	for (char **folder = job->refused; *folder; folder++) {
		if (contains(path, *folder) || contains(*folder, path)) {
			return refuse(path, *folder,
				contains(path, *folder) ? "contains" : "lies in", err);
		}
	}
	for (char **folder = job->above; *folder; folder++) {
		if (contains(path, *folder)) {
			return refuse(path, *folder, "contains", err);
		}
	}
	return !lies_in_git(path) || refuse(path, "a git repository's own files", "lies in", err);
}

/* ---- jobs ---- */

static void job_drop(struct pool_job *pool_job)
{
	struct pin_job *job = CONTAINER_OF(pool_job, struct pin_job, job);
	list_remove(&job->link);
	pin_list_finish(&job->list);
	words_free(job->refused);
	words_free(job->above);
	free(job->local);
	free(job->home);
	free(job->expected);
	free(job);
}

static void on_run(struct pool_job *pool_job)
{
	struct pin_job *job = CONTAINER_OF(pool_job, struct pin_job, job);
	job->is_failed = !file_find_root(job->local, job->path, &job->err) ||
	                 !check(job, &job->err) || !check_owner(job, &job->err) ||
	                 !pin_list_find(&job->list, job->path, &job->rules, &job->err);
	if (!job->is_failed && !job->is_look && !pin_list_repository(job->path, job->repository)) {
		job->repository[0] = '\0';
	}
}

static void on_done(struct pool_job *pool_job);

static struct pin_job *job_create(struct pinned *pinned, const char *local)
{
	struct pin_job *job = mem_alloc_zero(sizeof(*job));
	size_t len = strlen(pinned->home_name);
	bool is_in_home = path_is_at_or_below(local, pinned->home_name);
	char expected[PATH_MAX];
	text_whole(expected, sizeof(expected), "%s%s", is_in_home ? pinned->home : "",
		is_in_home ? local + len : local);
	job->pinned = pinned;
	job->local = mem_strdup(local);
	job->expected = mem_strdup(expected);
	words_append_all(&job->refused, (const char *const *)pinned->refused);
	words_append_all(&job->above, (const char *const *)pinned->above);
	job->rules = pinned->rules;
	job->home = mem_strdup(pinned->home);
	job->rules.home = job->home;
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
		pin_list_finish(&root->known);
		free(root->path);
		free(root->local);
		free(root);
	}
	words_free(pinned->refused);
	words_free(pinned->above);
	free(pinned->home);
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

/* Links are not pinned; like later files, they are reported. */
static void take_known(struct pinned_root *root, struct pin_list *list)
{
	root->known = *list;
	*list = (struct pin_list){.found = NULL};
	size_t kept = 0;
	for (size_t i = 0; i < root->known.count; i++) {
		struct pin_found *found = &root->known.found[i];
		if (found->kind == PIN_LINK) {
			free(found->path);
		} else {
			root->known.found[kept++] = *found;
		}
	}
	root->known.count = kept;
	root->known_first = kept;
}

static void tell_news(struct pinned *pinned, struct pinned_root *root, const struct pin_list *list);

/* Reports what has appeared since the root was shown, as at the end of a turn, and pins it now. */
static void take_late(struct pin_job *job, struct pinned_root *root)
{
	tell_news(job->pinned, root, &job->list);
	for (size_t i = root->known_first; i < root->known.count; i++) {
		struct pin_found *known = root->known.found;
		const struct pin_found late = known[i];
		if (late.kind != PIN_LINK && pin_list_has(&job->list, late.path)) {
			known[i] = known[root->known_first];
			known[root->known_first++] = late;
		}
	}
}

static void keep_root(struct pin_job *job)
{
	struct pinned_root *root = find_root(job->pinned, job->path);
	if (root) {
		take_late(job, root);
		return;
	}
	root = mem_alloc_zero(sizeof(*root));
	root->path = mem_strdup(job->path);
	root->local = mem_strdup(job->local);
	take_known(root, &job->list);
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
	const struct cell_entry entry = {.rule = CELL_READ, .path = job->repository};
	struct cell *cell = job->pinned->cell;
	if (err || !job->repository[0]) {
		fail_showing(job, err);
		return;
	}
	bool is_asked =
		job->pinned->writes_git
			? cell_show(cell, job->repository, on_repository_shown, job, &failure)
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

static const struct pin_found *find_known(const struct pinned_root *root, const char *path)
{
	for (size_t i = 0; i < root->known.count; i++) {
		if (strcmp(root->known.found[i].path, path) == 0) {
			return &root->known.found[i];
		}
	}
	return NULL;
}

/*
 * Pinned files are not reported, because they cannot change. Repositories are not either, because
 * every git command changes them.
 */
static bool is_news(const struct pinned_root *root, const struct pin_found *found)
{
	const struct pin_found *known = find_known(root, found->path);
	if (!known) {
		return true;
	}
	bool is_pinned = known < root->known.found + root->known_first;
	bool is_same = known->inode == found->inode && known->kind == found->kind &&
	               known->changed.tv_sec == found->changed.tv_sec &&
	               known->changed.tv_nsec == found->changed.tv_nsec;
	return !is_pinned && !is_same && found->kind != PIN_REPOSITORY;
}

static void remember(struct pinned_root *root, const struct pin_found *found)
{
	struct pin_found *known = (struct pin_found *)find_known(root, found->path);
	if (!known && root->known.count < PINS_MAX) {
		size_t size = (root->known.count + 1) * sizeof(*known);
		root->known.found = mem_realloc(root->known.found, size);
		known = &root->known.found[root->known.count++];
		known->path = mem_strdup(found->path);
	}
	if (known) {
		known->kind = found->kind;
		known->inode = found->inode;
		known->changed = found->changed;
	}
}

static bool say(struct buf *text, struct error *err, const struct pin_found *found)
{
	char *path = path_quote(span_of(found->path));
	bool is_said = buf_append_format(text, err, "\n%s: %s", path,
		found->kind == PIN_LINK ? "a symbolic link, which cannot be protected from changes"
					: pin_reader(found));
	free(path);
	return is_said;
}

/*
 * Counts the earlier files that the same program reads. A limit for each program ensures that many
 * decoys of one kind do not hide a file of another kind.
 */
static size_t count_same(const struct pin_found *const *news, size_t index)
{
	size_t count = 0;
	for (size_t i = 0; i < index; i++) {
		count += strcmp(pin_reader(news[i]), pin_reader(news[index])) == 0;
	}
	return count;
}

static void tell_news(struct pinned *pinned, struct pinned_root *root, const struct pin_list *list)
{
	struct buf text;
	struct error err;
	const struct pin_found **news = mem_alloc((list->count + 1) * sizeof(const void *));
	size_t count = 0, told = 0;
	buf_init(&text, NEWS_MAX);
	bool is_said = buf_append_format(&text, &err,
		"The agent can write files in %s from which tools outside of the confinement run "
		"commands. Look at these files before you use the tools:",
		root->local);
	for (size_t i = 0; i < list->count; i++) {
		if (is_news(root, &list->found[i])) {
			news[count++] = &list->found[i];
			remember(root, &list->found[i]);
		}
	}
	for (size_t i = 0; i < count && is_said; i++) {
		if (count_same(news, i) < NAMED_MAX) {
			told++;
			is_said = say(&text, &err, news[i]);
		}
	}
	if (count > told) {
		is_said =
			is_said && buf_append_format(&text, &err,
					   "\nand %zu more that these programs read", count - told);
	}
	if (count > 0 && is_said && buf_append(&text, (struct span){"", 1}, &err) && pinned->tell) {
		pinned->tell(pinned->data, text.data);
	}
	free(news);
	buf_finish(&text);
}

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

static bool is_at_or_below(const char *path, const char *root, const char *below)
{
	char pinned[PATH_MAX];
	return text_whole(pinned, sizeof(pinned), "%s/%s", root, below) &&
	       path_is_at_or_below(path, pinned);
}

bool pinned_has(const struct pinned *pinned, const char *path)
{
	LIST_FOR_EACH(root, &pinned->roots, struct pinned_root, link) {
		for (size_t i = 0; i < root->known_first; i++) {
			const struct pin_found *found = &root->known.found[i];
			bool is_pinned = found->kind != PIN_REPOSITORY || !pinned->writes_git;
			if (is_pinned && (is_at_or_below(path, root->local, found->path) ||
						 is_at_or_below(path, root->path, found->path))) {
				return true;
			}
		}
	}
	return false;
}
