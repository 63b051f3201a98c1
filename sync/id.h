/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ID_H
#define SYNC_ID_H

#include <stdbool.h>
#include <string.h>

#include "base/git.h"

/* Object ids without libgit2, which may not be loaded. */
enum { ID_TEXT_SIZE = 41 };

static inline bool id_equal(const git_oid *a, const git_oid *b)
{
	return memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

/* Writes hexadecimal digits. Returns text. */
const char *id_text(char text[ID_TEXT_SIZE], const git_oid *id);

#endif
