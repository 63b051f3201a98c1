/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/ignore_rules.h"
#include "base/owner.h"
#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/git.h"

static void prepare_end(struct git_transport *git, const struct error *err)
{
	git->done.prepare(git->done_data, err);
}

/*
 * The session works without the runtime's history. Tells the user the reason, but not the same
 * reason again.
 */
static void tell_note(struct git_transport *git)
{
	struct history *history = git->history;
	char text[sizeof(history->told) + 320], shown[TEXT_SHORT_SIZE];
	if (strcmp(history->told, history->note) == 0) {
		return;
	}
	text_format(history->told, sizeof(history->told), "%s", history->note);
	char *path = path_quote(span_of(history->path));
	text_format(text, sizeof(text), "%s%s%s", *path ? text_short(shown, path) : "",
		*path ? ": " : "", history->note);
	free(path);
	transport_note_add(git->note, text);
}

/* ---- files whose filters do not run there ---- */

static void add_filtered(struct filtered *filtered, const struct line *line)
{
	char shown[204];
	char *path = path_quote(span_of(line->text));
	text_format(shown, sizeof(shown), "%s", path);
	filtered->count = line->number;
	text_append(filtered->paths, sizeof(filtered->paths), "%s%s",
		filtered->paths[0] ? ", " : "", shown);
	free(path);
}

/* Tells the user of these files, but not of the same files again. */
static void tell_filtered(struct git_transport *git)
{
	struct filtered *filtered = &git->filtered;
	char text[sizeof(filtered->paths) + 300];
	uint64_t hash = hash_text(HASH_START, filtered->paths);
	if (filtered->count == 0 || hash == git->history->filters_told) {
		return;
	}
	git->history->filters_told = hash;
	text_format(text, sizeof(text),
		"%" PRIu64 " files have git filters that do not run in the sandbox. Git there "
		"shows them as unchanged. The agent's changes to them come here, but are not in "
		"its commits: %s",
		filtered->count, filtered->paths);
	transport_note_add(git->note, text);
}

/* ---- repositories below the root ---- */

enum { NESTED_TOLD = 5 };

static bool has_own_history(const struct git_transport *git, const char *path)
{
	for (size_t i = 1; i < git->history_count; i++) {
		if (strcmp(git->histories[i]->path, path) == 0) {
			return git->histories[i]->is_made;
		}
	}
	return false;
}

/* Repositories without a history in the sandbox. */
struct untold {
	char paths[320]; // some paths, for people
	size_t count;
	uint64_t hash; // hash of all of them
};

static void list_untold(const struct git_transport *git, struct untold *out)
{
	struct span lines = buf_span(&git->histories[0]->nested);
	*out = (struct untold){.hash = HASH_START};
	for (size_t at = 0; at < lines.len;) {
		const char *end = memchr(lines.data + at, '\n', lines.len - at);
		size_t next = (size_t)(end - lines.data) + 1;
		char *line = mem_strndup((struct span){lines.data + at, next - 1 - at});
		if (!has_own_history(git, line)) {
			char *path = path_quote(span_of(line));
			out->hash = hash_text(out->hash, line);
			if (out->count++ < NESTED_TOLD &&
				strlen(out->paths) + strlen(path) + 3 < sizeof(out->paths)) {
				text_append(out->paths, sizeof(out->paths), "%s%s",
					out->paths[0] ? ", " : "", path);
			}
			free(path);
		}
		free(line);
		at = next;
	}
}

/* Tells the user of these repositories, but not of the same ones again. */
static void tell_nested(struct git_transport *git)
{
	char text[700];
	struct untold untold;
	list_untold(git, &untold);
	if (untold.count == 0 || untold.hash == git->histories[0]->nested_told ||
		!git->histories[0]->exists) {
		return;
	}
	git->histories[0]->nested_told = untold.hash;
	text_format(text, sizeof(text),
		"repositories in the workspace (submodules, or others) have only their files in "
		"the sandbox, without history: git fails in them there, and you have to commit the "
		"agent's changes in them: %s%s",
		untold.paths, untold.count > NESTED_TOLD ? ", ..." : "");
	transport_note_add(git->note, text);
}

/* ---- trying again ---- */

/*
 * If a failure is permanent (a damaged object, or a full disk there), each attempt packs and sends
 * everything up to that point in vain. So we pause after a few attempts.
 */
static void note_failure(struct history *history, uint64_t print)
{
	if (history->failed_print != print) {
		history->failures = 0;
	}
	history->failed_print = print;
	history->failed_ms = clock_now_ms();
	history->failures++;
}

static bool is_pausing(const struct history *history, uint64_t print)
{
	return history->failures >= HISTORY_TRIES && history->failed_print == print &&
	       clock_now_ms() - history->failed_ms < HISTORY_PAUSE_MS;
}

/*
 * For the repository at the root, the repositories below it count too: its git treats their folders
 * as ordinary folders until we have made repositories there.
 */
static uint64_t print_of(const struct git_transport *git, const struct history *history)
{
	uint64_t print = history->print;
	for (size_t i = 1; i < git->history_count && !*history->path; i++) {
		const struct history *inner = git->histories[i];
		print = inner->is_made ? hash_text(print, inner->path) : print;
	}
	return print;
}

/* ---- updating ---- */

static bool take_update(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	if (line->kind == LINE_SHARED) {
		history_list_head(git->history, &git->shared);
		return true;
	}
	if (line->kind == LINE_FILTERED) {
		add_filtered(&git->filtered, line);
		return true;
	}
	if (line->kind == LINE_KEPT) {
		git->is_locked = strcmp(line->text, "locked") == 0;
		return true;
	}
	return error_set(err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
}

static bool send_filters(const struct filters *filters, int fd, struct error *err)
{
	return fd_write_all(fd, buf_span(&filters->rules), err) &&
	       fd_write_all(fd, buf_span(&filters->attributes), err) &&
	       fd_write_all(fd, buf_span(&filters->further), err);
}

/*
 * A failure here does not fail the sync, unless the link has broken. If the script did not even
 * read the refs, its own answer gives the reason.
 */
static bool work_update(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct error send_err, answer_err;
	struct history *history = git->history;
	bool told = fd_write_all(ends->out, buf_span(&history->refs), &send_err) &&
	            fd_write_all(ends->out, buf_span(&history->shallow), &send_err) &&
	            fd_write_all(ends->out, buf_span(&history->sparse), &send_err) &&
	            send_filters(&history->filters, ends->out, &send_err) &&
	            fd_write_all(ends->out, buf_span(&history->remotes), &send_err) &&
	            fd_write_all(ends->out, buf_span(&history->nested), &send_err);
	bool sent = told &&
	            (!git->sends_pack || history_send(history, git->is_near, ends->out, &send_err));
	point("history.sent");
	fd_close(&ends->out);
	bool answered = git_read_answer(git, ends, take_update, &answer_err);
	if (!sent || !answered) {
		bool is_answer = !answered && (sent || !told);
		const char *why = is_answer ? answer_err.text : send_err.text;
		const char *partial =
			*history->promisor ? "; it is a partial clone, which `git fetch --refetch "
					     "--no-filter` makes whole"
					   : "";
		char shown[204];
		text_format(shown, *partial ? 114 : sizeof(shown), "%s", why);
		text_format(history->note, sizeof(history->note),
			"the workspace's git history was not sent: %s%s", shown, partial);
	}
	return true;
}

static void update_next(struct git_transport *git);

static void updated(struct git_transport *git)
{
	struct history *history = git->history;
	uint64_t print = print_of(git, history);
	git->turn--;
	if (history->note[0]) {
		note_failure(history, print);
		tell_note(git);
		update_next(git); // the next sync tries again, or a later one
		return;
	}
	history->told[0] = '\0';
	history->failures = 0;
	history->is_lost = false;
	history->is_made = true;
	if (git->is_locked) {
		char text[TEXT_SHORT_SIZE + 200], shown[TEXT_SHORT_SIZE];
		char *path = path_quote(span_of(history->path));
		text_format(text, sizeof(text),
			"HEAD in the sandbox%s%s did not follow yours: its git is locked, because "
			"another git is running or has left .git/index.lock; the next sync tries "
			"again",
			*path ? ", at " : "", text_short(shown, path));
		free(path);
		transport_note_add(git->note, text);
	} else {
		history->sent_print = print;
	}
	tell_filtered(git);
	update_next(git);
}

/* The print as text: the runtime stores it, and returns it at the next sync. */
static void print_text(uint64_t print, char text[GIT_OID_HEXSZ + 1])
{
	text_whole(text, GIT_OID_HEXSZ + 1, "%016" PRIx64, print);
}

static void update(struct git_transport *git)
{
	char print[GIT_OID_HEXSZ + 1], refs[24], shallow[24], sparse[32] = "", filters[80] = "";
	char remotes[24], nested[24];
	struct history *history = git->history;
	if (history->sparse.len > 0) {
		text_whole(sparse, sizeof(sparse), "%s %zu", history->is_cone ? "true" : "false",
			history->sparse.len);
	}
	if (!filters_are_none(&history->filters)) {
		snprintf(filters, sizeof(filters), "%zu %zu %zu", history->filters.rules.len,
			history->filters.attributes.len, history->filters.further.len);
	}
	git->filtered.count = 0;
	git->filtered.paths[0] = '\0';
	snprintf(refs, sizeof(refs), "%zu", history->refs.len);
	snprintf(shallow, sizeof(shallow), "%zu", history->shallow.len);
	snprintf(remotes, sizeof(remotes), "%zu", history->remotes.len);
	snprintf(nested, sizeof(nested), "%zu", history->nested.len);
	print_text(print_of(git, history), print);
	git->sends_pack = history_is_new(history);
	git->is_locked = false;
	git_run(git, &(struct git_step){.script = SCRIPT_REPO_UPDATE,
			     .args = {history->is_detached ? "detached" : "branch", history->branch,
				     history->id, history->name, history->email, refs, shallow,
				     git->sends_pack ? "pack" : "none", print, sparse, filters,
				     remotes, nested, history->promisor, history->path},
			     .work = work_update,
			     .then = updated});
}

/* ---- what the runtime has ---- */

/* Whether the runtime's history may differ from the user's. */
static bool is_due(const struct git_transport *git, const struct history *history)
{
	uint64_t print = print_of(git, history);
	return history->exists && (history->is_lost || history->sent_print != print) &&
	       !is_pausing(history, print);
}

static void forget_state(struct git_transport *git)
{
	for (size_t i = 0; i < git->history_count; i++) {
		struct history *history = git->histories[i];
		history->is_lost = true;
		history->print_there[0] = '\0';
		buf_clear(&history->have);
	}
}

static bool take_state(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	char hex[GIT_OID_HEXSZ + 1];
	switch (line->kind) {
	case LINE_WITHIN:
		for (size_t i = 1; i < git->history_count; i++) {
			git->history = git->histories[i];
			if (strcmp(git->history->path, line->text) == 0) {
				return true;
			}
		}
		break;
	case LINE_REPOSITORY:
		git->history->is_lost = strcmp(line->text, "other") != 0;
		return true;
	case LINE_HAVE:
		git->store.git->oid_tostr(hex, sizeof(hex), &line->id);
		return buf_append_format(&git->history->have, err, "%s\n", hex);
	case LINE_PRINT:
		text_format(git->history->print_there, sizeof(git->history->print_there), "%s",
			line->text);
		return true;
	default:
		break;
	}
	return error_set(err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
}

static bool work_state(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	fd_close(&ends->out);
	forget_state(git);
	git->history = git->histories[0];
	return git_read_answer(git, ends, take_state, err);
}

/* Whether there is nothing to send: it has everything, or it is a repository of the agent. */
static bool is_settled(struct git_transport *git, struct history *history)
{
	char print[GIT_OID_HEXSZ + 1];
	print_text(print_of(git, history), print);
	bool is_current = strcmp(print, history->print_there) == 0 && !history_is_new(history);
	bool is_agents = !history->is_lost;
	history->is_made = history->exists && !is_agents && history->print_there[0] != '\0';
	if (is_current || is_agents) {
		history->is_lost = false;
		history->sent_print = print_of(git, history);
	}
	return is_current || is_agents;
}

/* Tells why it cannot be read, if the user should know. */
static void tell_unread(struct git_transport *git)
{
	struct history *history = git->history;
	if (!history->exists && history->note[0] && history->sent_print != 1) {
		history->print = 1;
		history->sent_print = 1;
		tell_note(git);
	}
}

/* Updates the innermost first: the outer ones must know whether there is a repository. */
static void update_next(struct git_transport *git)
{
	for (; git->turn > 0; git->turn--) {
		git->history = git->histories[git->turn - 1];
		tell_unread(git);
		if (is_due(git, git->history) && !is_settled(git, git->history)) {
			update(git);
			return;
		}
	}
	tell_nested(git);
	git_end(git, NULL);
}

static void state_known(struct git_transport *git)
{
	git->turn = git->history_count;
	update_next(git);
}

void git_update_repository(struct git_transport *git)
{
	bool is_any_due = false;
	for (size_t i = 0; i < git->history_count; i++) {
		is_any_due = is_any_due || is_due(git, git->histories[i]);
	}
	if (!is_any_due) {
		state_known(git);
		return;
	}
	char *inner = git_list_inner(git);
	git_run(git, &(struct git_step){.script = SCRIPT_REPO_OPEN,
			     .args = {inner},
			     .work = work_state,
			     .then = state_known});
	free(inner);
}

/* ---- preparing ---- */

/* The workspace names the files with ignore rules; the sandbox gets their content. */
static bool read_excludes(const struct git_transport *git, struct buf *out, struct error *err)
{
	const struct transport_request *request = &git->request;
	struct owner owner = {.is_other = false};
	if (git->is_confined) {
		owner = owner_of_workspace(request->local_root);
	}
	if (!owner_enter(&owner, err)) {
		return false;
	}
	ignore_rules_read(request->local_root, request->home, out);
	owner_leave(&owner);
	return true;
}

static bool work_open(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct buf excludes;
	buf_init(&excludes, IGNORE_RULES_MAX);
	bool read = git_open_store(git, err) && git_read_history(git, err) &&
	            read_excludes(git, &excludes, err);
	struct error send_err;
	bool sent = read && fd_write_all(ends->out, buf_span(&excludes), &send_err) &&
	            fd_write_all(ends->out, SPAN_LITERAL("\n"), &send_err);
	point("open.sent");
	fd_close(&ends->out);
	buf_finish(&excludes);
	if (!read || !git_read_answer(git, ends, take_state, err)) {
		return false;
	}
	if (!sent) {
		*err = send_err;
	}
	return sent;
}

/* The script has reported on the workspace's own repository. */
static void opened(struct git_transport *git)
{
	const struct history *history = git->histories[0];
	/* The script could not know yet which place the repository has. */
	bool is_elsewhere = history->exists && strcmp(history->part, history->room) != 0;
	if (git->history_count > 1 || is_elsewhere) {
		git_update_repository(git);
	} else {
		state_known(git);
	}
}

static void prepare_begin(struct git_transport *git)
{
	forget_state(git);
	git->history = git->histories[0];
	git_run(git, &(struct git_step){.script = SCRIPT_OPEN, .work = work_open, .then = opened});
}

void git_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	struct git_transport *git = git_from(transport);
	git->done.prepare = done;
	git_begin(git, prepare_begin, prepare_end, data);
}
