/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_OLD_TEXT_H
#define BROKER_GATE_OLD_TEXT_H

#include <ev.h>
#include <stdbool.h>

#include "base/pool.h"
#include "base/span.h"
#include "providers/provider.h"

/*
 * What a file holds before a user is asked whether it may be written: in the
 * sandbox where the broker serves the files, on this machine where the editor
 * does. Only small text is read, and only for a while; what is no regular file
 * is not opened. Loop thread only.
 */
enum {
	OLD_TEXT_MAX = 256 * 1024, // bytes of a file, and of the JSON string it becomes
	OLD_TEXT_MS = 2000,        // nobody waits longer for it
};

enum old_text_kind {
	OLD_TEXT_NEW, // there is no such file
	OLD_TEXT_KNOWN,
	OLD_TEXT_UNKNOWN,
};

/* Borrowed. */
struct old_text_answer {
	enum old_text_kind kind;
	struct span json;   // of OLD_TEXT_KNOWN: a JSON string
	const char *reason; // of OLD_TEXT_UNKNOWN: why, for a user
};

struct old_text_source {
	struct ev_loop *loop;
	struct sandbox *sandbox; // NULL: this machine
	bool is_resolved;        // the path came from sandbox_resolve_path: that file alone
	struct pool *pool;       // for this machine's files
};

/* Once, from the loop; may destroy it. */
typedef void old_text_done(void *data, const struct old_text_answer *answer);

struct old_text *old_text_load(
	const struct old_text_source *source, const char *path, old_text_done *done, void *data);

/* Raises nothing more. NULL is fine. Before the sandbox is closed. */
void old_text_destroy(struct old_text *old_text);

#endif
