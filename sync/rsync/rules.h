/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_RULES_H
#define SYNC_RSYNC_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * Filter rules of rsync(1), and the translation of git's ignore rules (gitignore(5)) into
 * them. In rsync the first rule that matches decides, in git the last: so files deeper in
 * the tree are added before those above them, and each is added from its end on. Both
 * leave out what is below a folder that is left out.
 *
 * A rule that has no equal here is left away where it would exclude, and made wider where it
 * would include: too much may travel, and the snapshot leaves it out, but never too little.
 */
struct rule {
	char *pattern;   // owned; "/..." from the root, otherwise a name at any depth
	bool is_include; // else it excludes
	bool is_folder_only;
};

struct rules {
	struct rule *items; // owned
	size_t count, capacity;
	bool has_negation;   // a "!" rule of git's is among them
	bool closes_folders; // set by the caller: excluded folders also exclude what is below
};

enum rule_verdict { RULE_NONE, RULE_INCLUDE, RULE_EXCLUDE };

void rules_init(struct rules *rules);
void rules_finish(struct rules *rules);

/* A rule as rsync reads it. */
void rules_add(struct rules *rules, bool is_include, const char *pattern, bool is_folder_only);

/*
 * Includes or excludes this very path, which is from the root; with `rest` put behind it as it
 * is ("/" and wildcards).
 */
void rules_add_path(struct rules *rules, bool is_include, const char *path, const char *rest,
	bool is_folder_only);

/* The rules of a .gitignore in `folder`, a path from the root, "" for the root itself. */
void rules_add_ignore_file(struct rules *rules, const char *folder, struct span text);

/* A pathspec as the profile's include and exclude have it; "*" matches slashes, too. */
void rules_add_pathspec(struct rules *rules, bool is_include, const char *pathspec);

/* Adds all of `more` at the end. */
void rules_copy(struct rules *rules, const struct rules *more);
/* Moves all of `more` to the end. */
void rules_append(struct rules *rules, struct rules *more);

/* What rsync does with the path itself, its folders not being asked. */
enum rule_verdict rules_match(const struct rules *rules, const char *path, bool is_folder);
/* Whether rsync leaves the path out, for itself or for a folder that it is in. */
bool rules_exclude(const struct rules *rules, const char *path, bool is_folder);

/* As a merge file for --from0: each rule ends in NUL. ERROR_LIMIT. */
bool rules_write(const struct rules *rules, struct buf *out, struct error *err) ATTR_NODISCARD;

/* rsync's wildmatch: "*" and "?" stop at slashes, "**" does not. */
bool rules_glob(const char *pattern, const char *text);

#endif
