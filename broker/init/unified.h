/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_UNIFIED_H
#define BROKER_INIT_UNIFIED_H

#include "base/buf.h"
#include "base/span.h"

/* Lines around a change. Few: what stands beside it in a file of settings may be a secret. */
enum { UNIFIED_CONTEXT = 1 };

/*
 * Appends how one text becomes the other, as diff -u prints it, in one hunk; nothing where they
 * are equal. `name` is a path, for people. An old text that is NULL is no file. What could drive a
 * terminal is spelled out (base/mask.h). The buffer has no maximum that matters.
 */
void unified_write(
	const char *name, const struct span *old_text, struct span new_text, struct buf *out);

#endif
