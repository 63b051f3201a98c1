/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_OLD_TEXT_H
#define BROKER_GATE_OLD_TEXT_H

#include <ev.h>
#include <stdbool.h>

#include "base/pool.h"
#include "base/span.h"
#include "providers/provider.h"

/*
 * Reads what a file holds before the user is asked whether it may be written: in the sandbox if the
 * broker serves the files, on this machine if the editor does. It reads only small text, with a
 * deadline, and opens only regular files. Loop thread only.
 */
enum {
	OLD_TEXT_MAX = 256 * 1024, // bytes of a file, and of the JSON string made from it
	OLD_TEXT_MS = 2000,        // deadline
};

enum old_text_kind {
	OLD_TEXT_NEW, // the file does not exist
	OLD_TEXT_KNOWN,
	OLD_TEXT_UNKNOWN,
};

/* Borrowed. */
struct old_text_answer {
	enum old_text_kind kind;
	struct span json;   // for OLD_TEXT_KNOWN: a JSON string
	const char *reason; // for OLD_TEXT_UNKNOWN: the reason, shown to the user
};

struct old_text_source {
	struct ev_loop *loop;
	struct sandbox *sandbox; // NULL: this machine
	bool is_resolved;        // the path came from sandbox_resolve_path: read exactly that file
	struct pool *pool;       // for this machine's files
};

/* Called once, from the loop; may destroy the object. */
typedef void old_text_done(void *data, const struct old_text_answer *answer);

struct old_text *old_text_load(
	const struct old_text_source *source, const char *path, old_text_done *done, void *data);

/* No callback follows. NULL is fine. Call it before the sandbox is closed. */
void old_text_destroy(struct old_text *old_text);

#endif
