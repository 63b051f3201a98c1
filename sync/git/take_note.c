/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sync/git/commits.h"
#include "sync/git/take_impl.h"
#include "sync/store_impl.h"

enum { NOTE_MAX = 4096 };

const char *take_note_name(
	const struct take_request *request, enum take_state state, char name[TAKE_NOTE_NAME_SIZE])
{
	char path[AGENT_COMMITS_PATH_MAX + 1];
	bool is_below = agent_commits_path(request->repository, path);
	text_whole(name, TAKE_NOTE_NAME_SIZE, "take.%s%s%s", state == TAKE_BEGUN ? "begun" : "done",
		is_below ? "-" : "", path);
	return name;
}

struct member {
	const char *key;
	size_t offset, size;
};

#define MEMBER(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct take_note, name), sizeof(((struct take_note *)0)->name)     \
	}
static const struct member members[] = {
	MEMBER(ref), MEMBER(taken), MEMBER(old), MEMBER(now), MEMBER(before), MEMBER(after)};

/* Reads lines of "KEY VALUE", in this order. */
static bool parse(struct take_note *note, const char *text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
		size_t skip = strlen(members[i].key);
		size_t length = strcspn(text, "\n");
		if (text[length] != '\n' || length <= skip || text[skip] != ' ' ||
			strncmp(text, members[i].key, skip) != 0 ||
			length - skip - 1 >= members[i].size) {
			return false;
		}
		char *to = (char *)note + members[i].offset;
		memcpy(to, text + skip + 1, length - skip - 1);
		to[length - skip - 1] = '\0';
		text += length + 1;
	}
	return true;
}

static bool read_state(
	const struct take_request *request, struct take_note *note, enum take_state state)
{
	char text[NOTE_MAX], name[TAKE_NOTE_NAME_SIZE];
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(request->store->folder_fd, take_note_name(request, state, name),
		O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (count <= 0) {
		return false;
	}
	text[count] = '\0';
	note->state = state;
	return parse(note, text);
}

void take_note_read(const struct take_request *request, struct take_note *out_note)
{
	*out_note = (struct take_note){.state = TAKE_NONE};
	if (!read_state(request, out_note, TAKE_BEGUN) &&
		!read_state(request, out_note, TAKE_DONE)) {
		*out_note = (struct take_note){.state = TAKE_NONE};
	}
}

/* Leaves a note of exactly one state. */
static bool write_note(
	const struct take_request *request, const struct take_note *note, struct error *err)
{
	struct store *store = request->store;
	char name[TAKE_NOTE_NAME_SIZE];
	struct temp temp;
	struct buf text;
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	buf_init(&text, NOTE_MAX - 1);
	bool ok = true;
	for (size_t i = 0; ok && i < ARRAY_LENGTH(members); i++) {
		ok = buf_append_format(&text, err, "%s %s\n", members[i].key,
			(const char *)note + members[i].offset);
	}
	ok = ok && fd_write_all(temp.fd, buf_span(&text), err) &&
	     temp_publish(store, &temp, take_note_name(request, TAKE_BEGUN, name), err);
	buf_finish(&text);
	temp_discard(store, &temp);
	return ok;
}

bool take_note_begin(struct take *take, struct error *err)
{
	struct take_note note = {.state = TAKE_BEGUN};
	memcpy(note.ref, take->ref, sizeof(note.ref));
	memcpy(note.taken, take->taken, sizeof(note.taken));
	memcpy(note.old, take->head, sizeof(note.old));
	memcpy(note.now, take->tip, sizeof(note.now));
	memcpy(note.before, take->before, sizeof(note.before));
	memcpy(note.after, take->after, sizeof(note.after));
	return write_note(take->request, &note, err);
}

bool take_note_set(const struct take_request *request, const struct take_note *note,
	enum take_state state, struct error *err)
{
	char now[TAKE_NOTE_NAME_SIZE], next[TAKE_NOTE_NAME_SIZE];
	struct store *store = request->store;
	int folder = store->folder_fd;
	if (note->state == state) {
		return true;
	}
	const char *name = take_note_name(request, note->state, now);
	bool ok = state == TAKE_NONE ? unlinkat(folder, name, 0) == 0
	                             : renameat(folder, name, folder,
					       take_note_name(request, state, next)) == 0;
	return ok || error_set_errno(err, errno, "%s/%s", store->path, name);
}
