/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_RULES_H
#define SYNC_RSYNC_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * Filter rules of rsync(1), translated from git's ignore rules (gitignore(5)). In rsync the first
 * matching rule decides, in git the last one. So files deeper in the tree are added before those
 * above them, and each file is added from its end. Both leave out everything below an excluded
 * folder.
 *
 * If a rule has no equivalent, it is omitted if it excludes, and widened if it includes. So rsync
 * may transfer too many files, which the snapshot then leaves out, but never too few.
 */
struct rule {
	char *pattern;   // owned; "/..." from the root, otherwise a name at any depth
	bool is_include; // otherwise it excludes
	bool is_folder_only;
};

struct rules {
	struct rule *items; // owned
	size_t count, capacity;
	bool has_negation;   // one of git's "!" rules is among them
	bool closes_folders; // set by the caller: excluded folders exclude everything below them
};

enum rule_verdict { RULE_NONE, RULE_INCLUDE, RULE_EXCLUDE };

void rules_init(struct rules *rules);
void rules_finish(struct rules *rules);

/* Adds a rule in rsync's syntax. */
void rules_add(struct rules *rules, bool is_include, const char *pattern, bool is_folder_only);

/*
 * Includes or excludes exactly this path from the root. `rest` is appended unescaped ("/" and
 * wildcards).
 */
void rules_add_path(struct rules *rules, bool is_include, const char *path, const char *rest,
	bool is_folder_only);

/* Adds the rules of a .gitignore in `folder`, a path from the root; "" is the root itself. */
void rules_add_ignore_file(struct rules *rules, const char *folder, struct span text);

/* Adds a pathspec of the profile's include or exclude; "*" matches slashes too. */
void rules_add_pathspec(struct rules *rules, bool is_include, const char *pathspec);

/* Adds all of `more` at the end. */
void rules_copy(struct rules *rules, const struct rules *more);
/* Moves all of `more` to the end. */
void rules_append(struct rules *rules, struct rules *more);

/* What rsync decides about the path itself, without its folders. */
enum rule_verdict rules_match(const struct rules *rules, const char *path, bool is_folder);
/* Whether rsync leaves the path out, because of itself or of a folder above it. */
bool rules_exclude(const struct rules *rules, const char *path, bool is_folder);

/* Writes a merge file for --from0: each rule ends in NUL. ERROR_LIMIT. */
bool rules_write(const struct rules *rules, struct buf *out, struct error *err) ATTR_NODISCARD;

/* rsync's wildmatch: "*" and "?" stop at slashes, "**" does not. */
bool rules_glob(const char *pattern, const char *text);

#endif
