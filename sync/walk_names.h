/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WALK_NAMES_H
#define SYNC_WALK_NAMES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/* The names in one directory that may be members, in the order of git's trees. */
struct name {
	uint32_t at; // offset in the names' text, NUL-terminated
	uint16_t length;
	uint8_t type; // DT_REG, DT_DIR or DT_LNK, as in readdir(3)
};

struct names {
	struct name *items; // owned
	size_t count, capacity;
	struct buf text;
	bool has_git;               // there is a .git, which is not in the list
	char spelled[NAME_MAX + 1]; // another spelling of .git, also not in the list; "": none
};

void names_init(struct names *names);
void names_finish(struct names *names);

/* Replaces the list with the names in the directory; its file descriptor stays open. */
bool names_read(struct names *names, int folder_fd, struct error *err) ATTR_NODISCARD;

static inline const char *names_text(const struct names *names, const struct name *name)
{
	return names->text.data + names->text.head + name->at;
}

#endif
