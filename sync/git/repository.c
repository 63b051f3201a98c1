/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/ignore_rules.h"
#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/git.h"

static void prepare_end(struct git_transport *git, const struct error *err)
{
	git->done.prepare(git->done_data, err);
}

/* The session can do without the runtime's history: why it has none is told once. */
static void end_with_note(struct git_transport *git, const char *note)
{
	if (strcmp(git->history.told, note) != 0) {
		text_format(git->history.told, sizeof(git->history.told), "%s", note);
		text_format(git->note, sizeof(git->note), "%s", note);
	}
	git_end(git, NULL);
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

/* Once, while they are the same. */
static void tell_filtered(struct git_transport *git)
{
	struct filtered *filtered = &git->filtered;
	char text[sizeof(filtered->paths) + 300];
	uint64_t hash = hash_text(HASH_START, filtered->paths);
	if (filtered->count == 0 || hash == filtered->told) {
		return;
	}
	filtered->told = hash;
	text_format(text, sizeof(text),
		"%" PRIu64 " files have filters of your git that do not run in the sandbox: its "
		"git shows them as unchanged, and what the agent does to them is here, but in none "
		"of its commits: %s",
		filtered->count, filtered->paths);
	transport_note_add(git->note, text);
}

/* ---- repositories below the root ---- */

enum { NESTED_TOLD = 5 };

/* Some of the paths, for people; how many there are. */
static size_t list_nested(struct span lines, char *text, size_t size)
{
	size_t count = 0, length = 0;
	text[0] = '\0';
	for (size_t at = 0; at < lines.len; count++) {
		const char *end = memchr(lines.data + at, '\n', lines.len - at);
		size_t next = (size_t)(end - lines.data) + 1;
		char *line = mem_strndup((struct span){lines.data + at, next - 1 - at});
		char *path = path_quote(span_of(line));
		if (count < NESTED_TOLD && length + strlen(path) + 3 < size) {
			length += (size_t)snprintf(
				text + length, size - length, "%s%s", length > 0 ? ", " : "", path);
		}
		free(path);
		free(line);
		at = next;
	}
	return count;
}

/* Once, while they are the same. */
static void tell_nested(struct git_transport *git)
{
	char text[700], paths[320];
	struct history *history = &git->history;
	uint64_t hash = hash_bytes(HASH_START, buf_span(&history->nested));
	if (history->nested.len == 0 || hash == history->nested_told) {
		return;
	}
	history->nested_told = hash;
	size_t count = list_nested(buf_span(&history->nested), paths, sizeof(paths));
	text_format(text, sizeof(text),
		"repositories in the workspace (submodules, or others) have their files in the "
		"sandbox, and no history: git fails in them there, and what the agent does in them "
		"is yours to commit: %s%s",
		paths, count > NESTED_TOLD ? ", ..." : "");
	transport_note_add(git->note, text);
}

/* ---- trying again ---- */

/*
 * What fails for good - an object that is damaged, a disk there that is full - is packed and sent
 * up to that point each time: after a few times there is a pause.
 */
static void note_failure(struct history *history)
{
	if (history->failed_print != history->print) {
		history->failures = 0;
	}
	history->failed_print = history->print;
	history->failed_ms = clock_now_ms();
	history->failures++;
}

static bool is_pausing(const struct history *history)
{
	return history->failures >= HISTORY_TRIES && history->failed_print == history->print &&
	       clock_now_ms() - history->failed_ms < HISTORY_PAUSE_MS;
}

/* ---- updating it ---- */

static bool take_update(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	if (line->kind == LINE_SHARED) {
		history_list_head(&git->history, &git->shared);
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
	return error_set(err, ERROR_PROTOCOL, "the sandbox sent what was not asked for");
}

static bool send_filters(const struct filters *filters, int fd, struct error *err)
{
	return fd_write_all(fd, buf_span(&filters->rules), err) &&
	       fd_write_all(fd, buf_span(&filters->attributes), err) &&
	       fd_write_all(fd, buf_span(&filters->further), err);
}

/*
 * That it fails is none of the sync's, but for an end of the link. Who does not even read the refs
 * says why.
 */
static bool work_update(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct error send_err, answer_err;
	struct history *history = &git->history;
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

static void updated(struct git_transport *git)
{
	if (git->history.note[0]) {
		note_failure(&git->history);
		end_with_note(git, git->history.note); // the next sync tries again, or a later one
		return;
	}
	git->history.told[0] = '\0';
	git->history.failures = 0;
	git->has_lost_repository = false;
	if (git->is_locked) {
		snprintf(git->note, sizeof(git->note),
			"HEAD in the sandbox did not follow yours: its git is locked, by one that "
			"is at work or left .git/index.lock; the next sync tries again");
	} else {
		git->history.sent_print = git->history.print;
	}
	tell_filtered(git);
	tell_nested(git);
	git_end(git, NULL);
}

/* What the runtime keeps, and tells the next time. */
static void print_text(const struct history *history, char text[GIT_OID_HEXSZ + 1])
{
	snprintf(text, GIT_OID_HEXSZ + 1, "%016" PRIx64, history->print);
}

static void update(struct git_transport *git)
{
	char print[GIT_OID_HEXSZ + 1], refs[24], shallow[24], sparse[32] = "", filters[80] = "";
	char remotes[24], nested[24];
	struct history *history = &git->history;
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
	print_text(history, print);
	git->sends_pack = history_is_new(history);
	git->is_locked = false;
	git_run(git, &(struct git_step){.script = SCRIPT_REPO_UPDATE,
			     .args = {history->is_detached ? "detached" : "branch", history->branch,
				     history->id, history->name, history->email, refs, shallow,
				     git->sends_pack ? "pack" : "none", print, sparse, filters,
				     remotes, nested, history->promisor},
			     .work = work_update,
			     .then = updated});
}

/* ---- what is there ---- */

static bool take_state(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	char hex[GIT_OID_HEXSZ + 1];
	switch (line->kind) {
	case LINE_REPOSITORY:
		git->has_lost_repository = strcmp(line->text, "other") != 0;
		return true;
	case LINE_HAVE:
		git->store.git->oid_tostr(hex, sizeof(hex), &line->id);
		return buf_append_format(&git->history.have, err, "%s\n", hex);
	case LINE_PRINT:
		print_text(&git->history, hex);
		git->has_current_repository = strcmp(line->text, hex) == 0;
		return true;
	default:
		return error_set(err, ERROR_PROTOCOL, "the sandbox sent what was not asked for");
	}
}

static bool work_state(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	fd_close(&ends->out);
	git->has_current_repository = false;
	buf_clear(&git->history.have);
	return git_read_answer(git, ends, take_state, err);
}

static void state_known(struct git_transport *git)
{
	bool is_current = git->has_current_repository && !history_is_new(&git->history);
	bool is_agents = !git->has_lost_repository;
	if (is_current || is_agents) {
		git->has_lost_repository = false;
		git->history.sent_print = git->history.print;
		git_end(git, NULL);
		return;
	}
	update(git);
}

void git_update_repository(struct git_transport *git)
{
	struct history *history = &git->history;
	bool is_current = history->print == history->sent_print && !git->has_lost_repository;
	if (!history->exists) {
		if (history->note[0] && history->sent_print != 1) {
			history->print = 1;
			history->sent_print = 1;
			end_with_note(git, history->note);
			return;
		}
		git_end(git, NULL);
		return;
	}
	if (is_current || is_pausing(history)) {
		git_end(git, NULL);
		return;
	}
	git_run(git, &(struct git_step){
			     .script = SCRIPT_REPO_OPEN, .work = work_state, .then = state_known});
}

/* ---- preparing ---- */

static bool work_open(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct buf excludes;
	buf_init(&excludes, IGNORE_RULES_MAX);
	bool read = git_open_store(git, err) && git_read_history(git, err);
	if (read) {
		ignore_rules_read(git->request.local_root, git->request.home, &excludes);
	}
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

static void opened(struct git_transport *git)
{
	if (git->history.exists) {
		state_known(git);
	} else {
		git_update_repository(git);
	}
}

static void prepare_begin(struct git_transport *git)
{
	git->has_lost_repository = true; // until it is known
	git->has_current_repository = false;
	buf_clear(&git->history.have);
	git_run(git, &(struct git_step){.script = SCRIPT_OPEN, .work = work_open, .then = opened});
}

void git_prepare(struct transport *transport, sandbox_done *done, void *data)
{
	struct git_transport *git = git_from(transport);
	git->done.prepare = done;
	git_begin(git, prepare_begin, prepare_end, data);
}
