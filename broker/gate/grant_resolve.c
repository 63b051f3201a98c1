/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_resolve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/path_quote.h"
#include "base/pool.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/desk/parcel.h"
#include "broker/gate/grant_guard.h"
#include "broker/policy/policy_rule.h"
#include "broker/session/root_names.h"
#include "broker/session/serving.h"
#include "sync/withheld.h"

/*
 * Rules on paths concern the files that the paths lead to. So links are resolved before policy
 * decides: inside the sandbox if the broker serves the files; on this machine if the editor does;
 * and for tools of the agent, where the agent is. An agent's calls are resolved one after the
 * other, so that two writes of one file keep their order. If policy looks at no path, nothing is
 * resolved, with one exception: the editor serves its files to an agent with other files. Then the
 * agent may have made links among the editor's files, and they must not lead out of the
 * directories.
 */
struct resolving {
	struct waiting waiting; // the call
	struct peer *peer;
	char **paths;     // owned, NULL-terminated; resolved one by one
	char **roots;     // owned, NULL-terminated; the session's; may be NULL
	char *session_id; // owned; the editor's id; NULL: unknown
	grant_resume *resume;
	bool is_file;      // a read or write of a file; false: a tool that names paths
	bool is_elsewhere; // the agent has other files: paths and roots are named as on this
	                   // machine
	char *asked;       // owned; with is_elsewhere: its path as the agent names it
	char *granted;  // owned; with is_elsewhere: the file that the user allowed; NULL: none yet
	bool leads_out; // with is_elsewhere: a path leads out of the roots, or may do so
	bool is_write;
	bool is_git;        // a write elsewhere to a file in which git finds commands to run
	bool is_unresolved; // a tool's path that seems to lie in the roots does not
	size_t next;
	struct file_op *op;  // in the sandbox; may be NULL
	struct pool_job job; // on this machine
	struct ev_timer due; // file-timeout, from the start of its turn
	long long away_ms;   // sandbox_extend_timer
};

static_assert(sizeof(struct resolving) <= PARCEL_OVERHEAD / 2, "there may be many of them");

static void drop(struct pool_job *job)
{
	struct resolving *resolving = CONTAINER_OF(job, struct resolving, job);
	desk_drop(&resolving->waiting);
	words_free(resolving->paths);
	words_free(resolving->roots);
	free(resolving->session_id);
	free(resolving->asked);
	free(resolving->granted);
	free(resolving);
}

/* The call goes on as if it arrived now, with its resolved paths. */
static void go_on(struct resolving *resolving)
{
	struct peer *peer = resolving->peer;
	struct call call;
	ev_timer_stop(peer->relay->config.loop, &resolving->due);
	if (desk_open(&resolving->waiting, &call)) {
		call.resolved = resolving->paths;
		call.is_unresolved = resolving->is_unresolved;
		resolving->resume(peer, &call);
	}
	drop(&resolving->job);
	grant_resolve_next(peer);
}

static void fail(struct resolving *resolving, const struct error *failure)
{
	struct peer *peer = resolving->peer;
	desk_fail(&resolving->waiting, failure);
	grant_resolve_next(peer);
}

static void finish(struct resolving *resolving, const struct error *err)
{
	if (err) {
		struct error failure = *err;
		fail(resolving, error_at(&failure, "session"));
	} else {
		go_on(resolving);
	}
}

/* Nobody waits for the result any more. */
void grant_resolve_on_left(struct waiting *waiting, const struct error *failure)
{
	struct resolving *resolving = CONTAINER_OF(waiting, struct resolving, waiting);
	ev_timer_stop(resolving->peer->relay->config.loop, &resolving->due);
	desk_drop(waiting);
	if (resolving->op) {
		file_op_cancel(resolving->op);
	}
	pool_leave(&resolving->job);
}

/* A folder that does not respond delays the others no longer than this. */
static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct resolving *resolving = CONTAINER_OF(timer, struct resolving, due);
	struct error err;
	if (sandbox_extend_timer(
		    agent_sandbox(resolving->peer->agent), timer, &resolving->away_ms)) {
		return;
	}
	fail(resolving,
		failure_set(&err, "TIMEOUT_EXCEEDED", "session",
			"the links in its path were not resolved within %d ms "
			"(file-timeout)",
			resolving->peer->relay->config.profile->toolhost_limits.file_timeout_ms));
}

/* ---- in the sandbox ---- */

static void resolve_next(struct resolving *resolving);

/* Compares only the names. */
static bool seems_inside(const struct resolving *resolving, const char *path)
{
	const char *const paths[] = {path, NULL};
	const struct policy_query query = {
		.roots = (const char *const *)resolving->roots, .paths = paths};
	return policy_is_inside_roots(&query);
}

/*
 * A tool of the agent may name paths outside of the sandbox's roots. If a path only seems to be
 * inside, it leads out by a link, or cannot be resolved.
 */
static void on_resolved(void *data, const char *path, const struct error *err)
{
	struct resolving *resolving = data;
	resolving->op = NULL;
	if (err && err->code != ERROR_NOT_FOUND && resolving->is_file) {
		finish(resolving, err);
		return;
	}
	if (err && err->code != ERROR_NOT_FOUND &&
		seems_inside(resolving, resolving->paths[resolving->next])) {
		resolving->is_unresolved = true;
	}
	if (!err) {
		mem_set_text(&resolving->paths[resolving->next], path);
	}
	resolving->next++;
	resolve_next(resolving);
}

static void resolve_next(struct resolving *resolving)
{
	const char *path = resolving->paths[resolving->next];
	if (!path) {
		finish(resolving, NULL);
		return;
	}
	struct sandbox *sandbox = agent_sandbox(resolving->peer->agent);
	resolving->op = sandbox_resolve_path(sandbox, path, on_resolved, resolving);
}

/* ---- on this machine ---- */

/*
 * If a root is reached by a link, the paths below it keep the root's own name. False if the path is
 * below no root.
 */
static bool name_by_root(char *const *roots, char **path)
{
	for (; roots && *roots; roots++) {
		char *real = real_path(*roots);
		size_t len = strlen(real);
		bool is_below = path_is_at_or_below(*path, real);
		free(real);
		if (is_below) {
			size_t size = strlen(*roots) + strlen(*path + len) + 1;
			char *named = mem_alloc(size);
			text_whole(named, size, "%s%s", *roots, *path + len);
			free(*path);
			*path = named;
			return true;
		}
	}
	return false;
}

static void run_job(struct pool_job *job)
{
	struct resolving *resolving = CONTAINER_OF(job, struct resolving, job);
	for (char **path = resolving->paths; *path; path++) {
		char *resolved = real_path_find(*path);
		bool is_known = resolved != NULL;
		if (is_known) {
			free(*path);
			*path = resolved;
		}
		if (!name_by_root(resolving->roots, path) || !is_known) {
			resolving->leads_out = true;
		}
		resolving->is_git =
			resolving->is_git ||
			(resolving->is_elsewhere && resolving->is_write && withheld_has(*path));
	}
}

static void refuse_elsewhere(struct resolving *resolving, const char *why)
{
	struct error err;
	char *path = path_quote(span_of(resolving->asked));
	error_set_reason(&err, ERROR_DENIED, "SECURITY_VIOLATION",
		"%s: refused: %s (toolhost = editor)", path, why);
	free(path);
	finish(resolving, &err);
}

/* Gives the paths the agent's own names. Fails if the editor would serve another file. */
static void finish_elsewhere(struct resolving *resolving)
{
	if (resolving->leads_out) {
		refuse_elsewhere(resolving, "it is outside of the session's directories, or a link "
					    "leads there, or it cannot be followed; the "
					    "editor would act on a file that is not the agent's");
		return;
	}
	if (resolving->is_git) {
		refuse_elsewhere(resolving, "it belongs to a git repository on this machine, and "
					    "git runs commands that it names");
		return;
	}
	for (char **path = resolving->paths; *path; path++) {
		char *mapped = relay_map_path(resolving->peer, PATH_TO_RUNTIME, *path);
		free(*path);
		*path = mapped;
	}
	if (resolving->granted && strcmp(resolving->granted, resolving->paths[0]) != 0) {
		refuse_elsewhere(resolving, "a link appeared in the path while the question was "
					    "open: the editor would act "
					    "on another file than the one in the question");
		return;
	}
	finish(resolving, NULL);
}

static void on_job_done(struct pool_job *job)
{
	struct resolving *resolving = CONTAINER_OF(job, struct resolving, job);
	if (resolving->is_elsewhere) {
		finish_elsewhere(resolving);
	} else {
		finish(resolving, NULL);
	}
}

/* ---- one after the other ---- */

/*
 * Whether paths are resolved in the sandbox: if the broker serves the files, and for tools of the
 * agent.
 */
static bool is_resolved_there(const struct peer *peer, bool is_file)
{
	return relay_uses_toolhost(peer) || (!is_file && !relay_shares_files(peer));
}

static struct desk_pick waiting_of(const struct peer *peer)
{
	return (struct desk_pick){STAGE_LINKS, peer, NULL};
}

/* False if no worker can take it. */
static bool begin(struct resolving *resolving, struct error *err)
{
	struct peer *peer = resolving->peer;
	int timeout_ms = peer->relay->config.profile->toolhost_limits.file_timeout_ms;
	ev_timer_init(&resolving->due, on_due, timeout_ms / 1000., 0.);
	resolving->away_ms = sandbox_away_ms(agent_sandbox(peer->agent));
	if (timeout_ms > 0) {
		ev_timer_start(peer->relay->config.loop, &resolving->due);
	}
	if (is_resolved_there(peer, resolving->is_file)) {
		resolve_next(resolving);
		return true;
	}
	assert(peer->relay->config.pool);
	return pool_submit(peer->relay->config.pool, &resolving->job, err) ||
	       error_prefix(err, "resolving a path");
}

static struct resolving *first_of(struct peer *peer)
{
	struct waiting *waiting = desk_first(&peer->relay->desk, waiting_of(peer));
	return waiting ? CONTAINER_OF(waiting, struct resolving, waiting) : NULL;
}

void grant_resolve_next(struct peer *peer)
{
	struct error err;
	struct resolving *resolving = first_of(peer);
	while (resolving && !resolving->op && !pool_has(&resolving->job) &&
		!begin(resolving, &err)) {
		desk_fail(&resolving->waiting, error_at(&err, "session"));
		resolving = first_of(peer);
	}
}

static bool is_needed(const struct peer *peer, enum policy_operation operation)
{
	const struct relay *relay = peer->relay;
	bool is_file = operation != POLICY_GRANT;
	bool decides_by_path =
		policy_looks_at_paths(relay->config.profile->policy) ||
		(relay->config.profile->sync.guard_paths && grant_guards_write(peer, operation));
	return (is_file && relay_editor_serves_elsewhere(peer)) ||
	       (decides_by_path && (is_resolved_there(peer, is_file) || relay->config.pool));
}

/*
 * The editor's own directories, for an agent with other files. A directory below another does not
 * count, because the agent may have put a link there.
 */
static char **roots_here(const struct path_map *map)
{
	char **roots = NULL;
	for (size_t i = 0; i < map->count; i++) {
		const char *root = map->roots[i].sides[PATH_TO_LOCAL];
		bool is_inner = false;
		for (size_t k = 0; k < map->count && !is_inner; k++) {
			const char *outer = map->roots[k].sides[PATH_TO_LOCAL];
			is_inner = strcmp(outer, root) != 0 && path_is_at_or_below(root, outer);
		}
		if (!is_inner) {
			words_append(&roots, root);
		}
	}
	return roots;
}

/* Takes the paths to resolve, under the names that they have where they are resolved. */
static void take_names(
	struct resolving *resolving, const struct subject *subject, const struct session *session)
{
	struct peer *peer = resolving->peer;
	resolving->is_file = subject->operation != POLICY_GRANT;
	resolving->is_write = subject->operation == POLICY_WRITE;
	resolving->is_elsewhere = resolving->is_file && relay_editor_serves_elsewhere(peer);
	resolving->paths = subject_words_copy(subject->paths);
	if (!resolving->is_elsewhere) {
		resolving->roots = session ? subject_words_copy(session->roots) : NULL;
		return;
	}
	resolving->asked = mem_strdup(resolving->paths[0]);
	resolving->roots = roots_here(&peer->map);
	for (char **path = resolving->paths; *path; path++) {
		char *mapped = relay_map_path(peer, PATH_TO_LOCAL, *path);
		free(*path);
		*path = mapped;
	}
}

/* Counts the waiting requests of the agent; the caller counts the editor's. */
static int count_asked(const struct peer *peer)
{
	int count = 0;
	LIST_FOR_EACH(waiting, &peer->relay->desk.stages[STAGE_LINKS], struct waiting, link) {
		count += waiting->sender == peer;
	}
	return count;
}

static bool has_room(const struct peer *peer, const struct call *call, struct error *err)
{
	int most = peer->relay->config.profile->max_requests;
	if (call->sender && count_asked(peer) >= most) {
		return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
			"the paths of %d requests are already being resolved (max-requests)", most);
	}
	return desk_has_room(&peer->relay->desk, STAGE_LINKS, call) ||
	       error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		       "%d MiB of requests are already waiting", RELAY_WAITING_MAX >> 20);
}

static void set_aside(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct session *session, const char *granted, grant_resume *resume)
{
	struct desk *desk = &peer->relay->desk;
	struct error err;
	if (!has_room(peer, call, &err)) {
		desk_refuse(desk, call, error_at(&err, "session"));
		return;
	}
	struct resolving *resolving = mem_alloc_zero(sizeof(*resolving));
	resolving->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run_job, .done = on_job_done, .drop = drop};
	resolving->peer = peer;
	resolving->resume = resume;
	take_names(resolving, subject, session);
	resolving->granted = mem_strdup_or_null(granted);
	resolving->session_id = session ? mem_strdup(session->id) : NULL;
	desk_hold(desk, &resolving->waiting, STAGE_LINKS, peer, call);
	grant_resolve_next(peer);
}

bool grant_resolve(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct session *session, grant_resume *resume)
{
	if (call->resolved || !subject->paths || !is_needed(peer, subject->operation)) {
		return false;
	}
	set_aside(peer, call, subject, session, NULL, resume);
	return true;
}

bool grant_resolve_again(struct peer *peer, const struct call *call, const struct session *session,
	grant_resume *resume)
{
	struct subject subject;
	struct error err;
	if (!call->resolved || !relay_editor_serves_elsewhere(peer)) {
		return false;
	}
	bool is_read = subject_read(&subject, call->method->operation, &call->message, &err);
	assert(is_read && subject.paths); // it was read successfully before the question
	set_aside(peer, call, &subject, session, call->resolved[0], resume);
	subject_finish(&subject);
	return true;
}

void grant_take_paths(struct subject *subject, const struct call *call)
{
	if (call->resolved) {
		subject_set_paths(subject, call->resolved);
	}
	if (call->is_unresolved) {
		subject->unknown |= POLICY_UNKNOWN_PATHS;
	}
}

void grant_resolve_fail(struct peer *peer, const struct error *failure)
{
	desk_fail_all(&peer->relay->desk, waiting_of(peer), failure);
}

void grant_resolve_count(const struct relay *relay, int *count, size_t *bytes)
{
	LIST_FOR_EACH(waiting, &relay->desk.stages[STAGE_LINKS], struct waiting, link) {
		if (!waiting->sender) {
			++*count;
			*bytes += waiting->size;
		}
	}
}

void grant_resolve_cancel(struct relay *relay, const char *session_id, const struct error *failure)
{
	LIST_FOR_EACH(waiting, &relay->desk.stages[STAGE_LINKS], struct waiting, link) {
		const struct resolving *resolving =
			CONTAINER_OF(waiting, struct resolving, waiting);
		if (waiting->sender && resolving->session_id &&
			strcmp(resolving->session_id, session_id) == 0) {
			desk_fail(waiting, failure);
		}
	}
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		grant_resolve_next(peer);
	}
}
