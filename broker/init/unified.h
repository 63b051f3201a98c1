/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_UNIFIED_H
#define BROKER_INIT_UNIFIED_H

#include "base/buf.h"
#include "base/span.h"

/*
 * Lines of context around a change. There are few, because a neighbouring line of a settings file
 * may be a secret.
 */
enum { UNIFIED_CONTEXT = 1 };

/*
 * Appends the difference of two texts as diff -u prints it, in one hunk; nothing if they are equal.
 * `name` is a path, for people. If the old text is NULL, there was no file. Control characters are
 * shown as letters (base/mask.h). The buffer must have room.
 */
void unified_write(
	const char *name, const struct span *old_text, struct span new_text, struct buf *out);

#endif
