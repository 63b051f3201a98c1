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

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/words.h"
#include "sync/store_impl.h"

enum { PRIVATE_MODE = 0600 };

void journal_init(struct journal *journal, struct store *store, const char *root)
{
	*journal = (struct journal){.store = store, .fd = -1};
	snprintf(journal->name, sizeof(journal->name), "apply-%016" PRIx64,
		hash_bytes(HASH_START, span_of(root)));
}

static bool fail(struct journal *journal, int errnum, struct error *err)
{
	return error_set_errno(err, errnum, "store %s: %s", journal->store->path, journal->name);
}

/* The noted folders, each once. */
struct notes {
	char **folders; // owned, sorted from journal_replay on
	size_t count;
};

static void notes_finish(struct notes *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		free(notes->folders[i]);
	}
	free(notes->folders);
}

/* If a killed process wrote only a part of its last line, that line has no end and is ignored. */
static void notes_read(struct notes *notes, FILE *file)
{
	char *folder = NULL;
	size_t size = 0;
	ssize_t len;
	while ((len = getdelim(&folder, &size, '\0', file)) > 0) {
		if (feof(file) || len > PATH_MAX) {
			continue;
		}
		if ((notes->count & (notes->count - 1)) == 0) { // 0, and each power of two
			size_t room = notes->count > 0 ? 2 * notes->count : 1;
			notes->folders =
				mem_realloc(notes->folders, room * sizeof(*notes->folders));
		}
		notes->folders[notes->count++] = mem_strdup(folder);
	}
	free(folder);
	if (notes->count > 0) {
		qsort(notes->folders, notes->count, sizeof(*notes->folders), words_compare);
	}
}

static bool load(struct journal *journal, struct notes *out_notes, struct error *err)
{
	int fd =
		openat(journal->store->folder_fd, journal->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		return errno == ENOENT || fail(journal, errno, err);
	}
	FILE *file = fdopen(fd, "r");
	if (!file) {
		int errnum = errno;
		fd_close(&fd);
		return fail(journal, errnum, err);
	}
	notes_read(out_notes, file);
	bool is_read = !ferror(file);
	fclose(file);
	return is_read || fail(journal, EIO, err);
}

/* Replaces the file as a whole: a folder that is lost from it would never be visited again. */
static bool replace(struct journal *journal, const struct buf *kept, struct error *err)
{
	struct temp temp = {.fd = -1};
	if (kept->len == 0) {
		journal_forget(journal);
		return true;
	}
	bool replaced = temp_create(journal->store, &temp, err) &&
	                fd_write_all(temp.fd, buf_span(kept), err) &&
	                temp_publish(journal->store, &temp, journal->name, err);
	temp_discard(journal->store, &temp);
	return replaced;
}

bool journal_replay(struct journal *journal,
	bool (*visit)(void *data, const char *folder, bool *out_keep, struct error *err),
	void *data, struct error *err)
{
	struct notes notes = {.count = 0};
	struct buf kept;
	buf_init(&kept, SIZE_MAX);
	bool ok = load(journal, &notes, err);
	for (size_t i = 0; ok && i < notes.count; i++) {
		const char *folder = notes.folders[i];
		bool keep = false;
		if (i == 0 || strcmp(folder, notes.folders[i - 1]) != 0) {
			ok = visit(data, folder, &keep, err);
		}
		ok = ok &&
		     (!keep || buf_append(&kept, (struct span){folder, strlen(folder) + 1}, err));
	}
	ok = ok && replace(journal, &kept, err);
	buf_finish(&kept);
	notes_finish(&notes);
	return ok;
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
