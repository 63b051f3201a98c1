/* SPDX-License-Identifier: MIT */
#include "sync/git/commits_note.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "base/text.h"
#include "base/utf8.h"

enum {
	BRANCHES_TOLD = 5,
	SUBJECTS_TOLD = 3,
	SUBJECT_TOLD = 60,  // bytes
	BRANCH_TOLD = 60,   // bytes
	ID_TOLD = 12,       // digits
	END_MAX = 160,      // bytes, for the end that is always written
	PIECE_MAX = 8 << 10 // bytes of one branch, if every byte is escaped
};

struct piece {
	char text[PIECE_MAX];
	size_t len;
};

static void say(struct piece *piece, const char *format, ...) ATTR_PRINTF(2, 3);
static void say(struct piece *piece, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	text_vappend(piece->text, sizeof(piece->text), format, args);
	va_end(args);
	piece->len = strlen(piece->text);
}

/* Appends text of the agent, quoted so that it misleads nobody; `mark` is put around it. */
static void say_quoted(struct piece *piece, const char *text, size_t max, const char *mark)
{
	struct span part = {text, strlen(text)};
	bool is_cut = part.len > max;
	if (is_cut) {
		part.len = max;
		part.len = utf8_whole_length(part);
	}
	char *quoted = path_quote(part);
	mark = quoted[0] == '"' ? "" : mark;
	say(piece, "%s%s%s%s", mark, quoted, mark, is_cut ? "..." : "");
	free(quoted);
}

/* ---- the commits of one branch ---- */

struct branch_walk {
	struct store *store;
	const struct id_set *made;
	struct id_set seen;
	git_oid *ids; // those in `made`, each at most once
	size_t at, count;
};

static void walk_add(struct branch_walk *walk, const git_oid *id)
{
	if (id_set_has(walk->made, id) && id_set_add(&walk->seen, id)) {
		walk->ids[walk->count++] = *id;
	}
}

static void say_subject(struct piece *piece, const struct branch_walk *walk, git_commit *commit)
{
	const char *subject = walk->store->git->commit_summary(commit);
	say(piece, "%s", walk->at == 1 ? "" : ", ");
	say_quoted(piece, subject ? subject : "", SUBJECT_TOLD, "\"");
}

static void walk_next(struct branch_walk *walk, struct piece *subjects)
{
	const struct git *git = walk->store->git;
	git_commit *commit = NULL;
	if (git->commit_lookup(&commit, walk->store->repository, &walk->ids[walk->at++]) < 0) {
		return;
	}
	if (walk->at <= SUBJECTS_TOLD) {
		say_subject(subjects, walk, commit);
	}
	for (unsigned i = 0; i < git->commit_parentcount(commit); i++) {
		walk_add(walk, git->commit_parent_id(commit, i));
	}
	git->commit_free(commit);
}

static void say_commits(struct piece *piece, struct branch_walk *walk)
{
	struct piece *subjects = mem_alloc_zero(sizeof(*subjects));
	char hex[GIT_OID_HEXSZ + 1];
	walk->store->git->oid_tostr(hex, sizeof(hex), &walk->ids[0]);
	while (walk->at < walk->count) {
		walk_next(walk, subjects);
	}
	say(piece, " at %.*s (%zu commit%s: %s", ID_TOLD, hex, walk->count,
		walk->count == 1 ? "" : "s", subjects->text);
	if (walk->count > SUBJECTS_TOLD) {
		say(piece, " and %zu more", walk->count - SUBJECTS_TOLD);
	}
	say(piece, ")");
	free(subjects);
}

/* ---- the note ---- */

static void append(struct commits_note *note, const char *text)
{
	text_append(note->text, sizeof(note->text), "%s", text);
}

void commits_note_add(struct commits_note *note, struct store *store, const struct id_set *made,
	const struct agent_branch *branch)
{
	static const char begin[] = "the agent has committed to ";
	if (note->branches++ >= BRANCHES_TOLD || note->untold > 0) {
		note->untold++;
		return;
	}
	struct branch_walk walk = {.store = store, .made = made};
	struct piece *piece = mem_alloc_zero(sizeof(*piece));
	walk.ids = mem_alloc((made->count + 1) * sizeof(*walk.ids));
	walk_add(&walk, &branch->tip);
	say(piece, "%s", note->branches == 1 ? begin : ", ");
	say_quoted(piece, branch->name, BRANCH_TOLD, "");
	if (*branch->repository) {
		say(piece, " of ");
		say_quoted(piece, branch->repository, BRANCH_TOLD, "");
	}
	if (walk.count > 0) {
		say_commits(piece, &walk);
	}
	if (strlen(note->text) + piece->len + END_MAX < sizeof(note->text)) {
		append(note, piece->text);
	} else {
		note->untold++;
	}
	id_set_finish(&walk.seen);
	free(walk.ids);
	free(piece);
}

void commits_note_end(struct commits_note *note, bool is_below)
{
	char more[END_MAX];
	if (note->branches == 0) {
		return;
	}
	if (note->untold > 0) {
		text_format(more, sizeof(more), " and %zu more branch%s", note->untold,
			note->untold == 1 ? "" : "es");
		append(note, more);
	}
	append(note, is_below
			     ? ": acp-broker commits take, run in that folder, moves its branch to "
			       "them, "
			     : ": acp-broker commits take moves your branch to them, ");
	append(note, "acp-broker commits list says how to fetch them");
}
