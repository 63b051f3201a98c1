/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_LINES_H
#define SYNC_GIT_LINES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "sync/store.h"

/*
 * Reads the answer of a script in the sandbox (sync/git/remote): words that each end in NUL. The
 * first word of a line says how many more belong to it:
 *
 *     tree ID                  the root is this tree, without big files
 *     big ID MODE SIZE PATH    a file over the limit
 *     over SIZE PATH           the big files have SIZE bytes together, more than allowed; PATH is
 *                              the largest
 *     left PATH                could not be read, or has a name that git refuses
 *     stuck PATH               is in the way of a delivery; a "fail" says why
 *     objects COUNT            COUNT objects follow, in the format of `git cat-file --batch`
 *     commits                  the agent's commits follow
 *     within PATH              the rest is about the repository in that folder below the root
 *     repository WHAT          none, ours or other
 *     have ID                  a commit, or the target of a tag, that exists there
 *     print TEXT               the history's print when it was last sent
 *     kept TEXT                HEAD was not moved: "locked", or where the agent has it
 *     filtered COUNT PATH      one of COUNT files whose filters do not run there
 *     shared                   SIDE also has the history that was sent
 *     base ID                  a parent of those commits that the agent may not have made
 *     ref ID NAME              a branch of commits that the agent made
 *     untold WHY               no agent's commits follow, or no more of them
 *     fail WHY                 the script cannot go on
 *     end STATUS               the last line, even if the script has died
 *
 * We do not trust the answer: words, objects and the whole answer have limits, and we check every
 * field before we hand it on.
 */
enum line_kind {
	LINE_TREE,
	LINE_BIG,
	LINE_OVER,
	LINE_LEFT,
	LINE_STUCK,
	LINE_OBJECTS,
	LINE_COMMITS,
	LINE_WITHIN,
	LINE_REPOSITORY,
	LINE_HAVE,
	LINE_PRINT,
	LINE_KEPT,
	LINE_SHARED,
	LINE_FILTERED,
	LINE_BASE,
	LINE_REF,
	LINE_UNTOLD,
	LINE_FAIL,
	LINE_END,
	LINE_KIND_COUNT,
};

enum { LINE_PATH_MAX = 4096, LINE_FIELDS_MAX = 4 };

/* The texts are terminated and valid until the next call. */
struct line {
	enum line_kind kind;
	git_oid id;         // for tree, big, have, base, ref
	uint64_t number;    // size for big and over, count for objects and filtered, status for end
	bool is_executable; // for big
	const char *text;   // path, name or why; NULL for kinds without one
};

struct lines {
	ssize_t (*read)(void *data, char *to, size_t size); // returns 0 at the end; -1 with errno
	void *data;
	struct buf buf;
	uint64_t received;
	uint64_t received_max;
	size_t consume;   // bytes that the last call returned, to be consumed
	bool has_streams; // a blob over the object limit is returned in pieces
};

/* An object; `content` is valid until the next call. */
struct line_object {
	git_oid id;
	git_object_t type; // tree, blob or commit
	struct span content;
	uint64_t left;    // bytes to fetch with lines_next_piece; 0: `content` has all
	bool is_unwanted; // set by the caller's check
};

void lines_init(struct lines *lines, ssize_t (*read)(void *data, char *to, size_t size), void *data,
	uint64_t received_max, size_t object_max);
void lines_finish(struct lines *lines);

/*
 * The next line. ERROR_PROTOCOL for a malformed line. ERROR_UNAVAILABLE with the reason LINK_LOST
 * at the end of the stream: a broken link shows there first. ERROR_LIMIT over the limits;
 * ERROR_SYSTEM if the stream cannot be read. Blocks.
 */
bool lines_next(struct lines *lines, struct line *out, struct error *err) ATTR_NODISCARD;

/* The next of the objects that LINE_OBJECTS announced. The id is the runtime's claim. */
bool lines_next_object(
	struct lines *lines, struct line_object *out, struct error *err) ATTR_NODISCARD;

/* The next piece of an object that was not read as a whole; repeat until nothing is left. */
bool lines_next_piece(
	struct lines *lines, struct line_object *object, struct error *err) ATTR_NODISCARD;

#endif
