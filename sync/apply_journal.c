/* SPDX-License-Identifier: MIT */
#include "sync/apply_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum { PRIVATE_MODE = 0600 };

/* FNV-1a, 64 bits: a name for a root. */
static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *text; text++) {
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	}
	return hash;
}

void journal_init(struct journal *journal, struct store *store, const char *root)
{
	*journal = (struct journal){.store = store, .fd = -1};
	snprintf(journal->name, sizeof(journal->name), "apply-%016" PRIx64, hash_text(root));
}

static bool fail(struct journal *journal, int errnum, struct error *err)
{
	return error_set_errno(err, errnum, "store %s: %s", journal->store->path, journal->name);
}

/* What a killed one wrote of its last line has no end and names nothing. */
static bool visit_all(FILE *notes, bool (*visit)(void *data, const char *folder, struct error *err),
	void *data, struct error *err)
{
	char *folder = NULL;
	size_t size = 0;
	bool visited = true;
	ssize_t len;
	while (visited && (len = getdelim(&folder, &size, '\0', notes)) > 0) {
		visited = feof(notes) || len > PATH_MAX || visit(data, folder, err);
	}
	free(folder);
	return visited;
}

bool journal_replay(struct journal *journal,
	bool (*visit)(void *data, const char *folder, struct error *err), void *data,
	struct error *err)
{
	int fd =
		openat(journal->store->folder_fd, journal->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		return errno == ENOENT || fail(journal, errno, err);
	}
	FILE *notes = fdopen(fd, "r");
	if (!notes) {
		int errnum = errno;
		fd_close(&fd);
		return fail(journal, errnum, err);
	}
	bool visited = visit_all(notes, visit, data, err);
	if (visited && ferror(notes)) {
		visited = fail(journal, EIO, err);
	}
	fclose(notes);
	return visited;
}

bool journal_note(struct journal *journal, const char *folder, struct error *err)
{
	if (journal->fd < 0) {
		journal->fd = openat(journal->store->folder_fd, journal->name,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, PRIVATE_MODE);
		if (journal->fd < 0) {
			return fail(journal, errno, err);
		}
	}
	return fd_write_all(journal->fd, (struct span){folder, strlen(folder) + 1}, err) ||
	       error_prefix(err, "store %s: %s", journal->store->path, journal->name);
}

void journal_forget(struct journal *journal)
{
	unlinkat(journal->store->folder_fd, journal->name, 0);
}

void journal_finish(struct journal *journal)
{
	fd_close(&journal->fd);
}
