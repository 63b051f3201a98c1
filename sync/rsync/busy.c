/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sync/rsync/rsync.h"

static const char error_start[] = "ERROR: ", discarded[] = " failed verification -- update ";

/*
 * Lines that rsync prints if the other side has written to a file meanwhile, and lines that
 * accompany them.
 */
static bool is_of_busy(struct span line)
{
	static const char *const known[] = {discarded, "read errors mapping \"",
		"file has vanished: ", "IO error encountered -- skipping file deletion",
		"rsync error: some files/attrs were not transferred ",
		"rsync warning: some files vanished "};
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (memmem(line.data, line.len, known[i], strlen(known[i]))) {
			return true;
		}
	}
	return line.len == 0;
}

static void add_left(struct span line, struct transport_left *left)
{
	size_t start = sizeof(error_start) - 1;
	const char *end = memmem(line.data, line.len, discarded, sizeof(discarded) - 1);
	if (!end || !span_starts_with(line, SPAN_LITERAL(error_start))) {
		return;
	}
	struct span name = {line.data + start, (size_t)(end - line.data) - start};
	char *path = mem_strndup(name);
	transport_left_add(left, path);
	free(path);
}

bool rsync_left_busy(const char *said, struct transport_left *left)
{
	struct transport_left found = *left;
	while (*said) {
		struct span line = {said, strcspn(said, "\n")};
		if (!is_of_busy(line)) {
			return false;
		}
		add_left(line, &found);
		said += line.len + (said[line.len] == '\n');
	}
	bool is_busy = found.count > left->count;
	*left = is_busy ? found : *left;
	return is_busy;
}
