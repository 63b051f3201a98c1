/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_LINES_H
#define SYNC_GIT_LINES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "sync/store.h"

/*
 * Reads what a script in the sandbox tells (sync/git/remote): words that each end in
 * NUL. The first says how many others belong to it:
 *
 *     tree ID                  the root is this, big files apart
 *     big ID MODE SIZE PATH    a file over the limit
 *     over SIZE PATH           the big files are SIZE bytes together, more than is allowed; PATH
 *                              is the largest
 *     left PATH                could not be read, or has a name that git refuses
 *     stuck PATH               it stands in the way of a delivery; a "fail" says why
 *     objects COUNT            COUNT objects follow as `git cat-file --batch` writes them
 *     commits                  what follows is of commits that the agent made
 *     within PATH              what follows is of the repository in that folder below the root
 *     repository WHAT          none, ours or other
 *     have ID                  a commit, or what a tag is of, that is there
 *     print TEXT               the history's print when it was last sent
 *     kept TEXT                HEAD was not moved: "locked", or where the agent has it
 *     filtered COUNT PATH      one of COUNT files whose filters do not run there
 *     shared                   the history that was sent is in SIDE, too
 *     base ID                  a commit that those build upon, which the agent may not have made
 *     ref ID NAME              a branch of commits that the agent made
 *     untold WHY               the agent's commits cannot be told, or no more of them
 *     fail WHY                 the script cannot go on
 *     end STATUS               the last word, even if the script has died
 *
 * What comes is not trusted: a word, an object and the whole have limits, and every field
 * is checked before it is handed on.
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
	git_oid id;         // of tree, big, have, base, ref
	uint64_t number;    // size of big and over, count of objects and filtered, status of end
	bool is_executable; // of big
	const char *text;   // path, name, or why; NULL where the kind has none
};

struct lines {
	ssize_t (*read)(void *data, char *to, size_t size); // 0: the end; -1 with errno
	void *data;
	struct buf buf;
	uint64_t received;
	uint64_t received_max;
	size_t consume;   // what the last call handed out
	bool has_streams; // a blob over the limit of an object comes in pieces
};

/* An object; `content` is valid until the next call. */
struct line_object {
	git_oid id;
	git_object_t type; // tree, blob or commit
	struct span content;
	uint64_t left;    // bytes that lines_next_piece is to be asked for; 0: all is in `content`
	bool is_unwanted; // for who looks at it before it is kept
};

void lines_init(struct lines *lines, ssize_t (*read)(void *data, char *to, size_t size), void *data,
	uint64_t received_max, size_t object_max);
void lines_finish(struct lines *lines);

/*
 * The next line. ERROR_PROTOCOL for what is none; ERROR_UNAVAILABLE with reason LINK_LOST for an
 * end of the stream: a link that is cut ends it before anybody says so; ERROR_LIMIT over the
 * limits; ERROR_SYSTEM where the stream cannot be read. Blocks.
 */
bool lines_next(struct lines *lines, struct line *out, struct error *err) ATTR_NODISCARD;

/* The next of the objects that LINE_OBJECTS announced. The id is what the runtime says. */
bool lines_next_object(
	struct lines *lines, struct line_object *out, struct error *err) ATTR_NODISCARD;

/* The next piece of an object's content that was not read whole; until nothing is left. */
bool lines_next_piece(
	struct lines *lines, struct line_object *object, struct error *err) ATTR_NODISCARD;

#endif
