/* SPDX-License-Identifier: MIT */
#include "providers/daytona/note.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "providers/notes.h"

enum { NOTE_VERSION = 1 };

static struct notes notes_of(const char *state_folder)
{
	return (struct notes){.state_folder = state_folder,
		.folder = "daytona",
		.more_lock = ".token",
		.writing = "daytona.noting"};
}

void daytona_note_finish(struct daytona_note *note)
{
	daytona_mark_finish(&note->mark);
	free(note->profile);
	free(note->workspace);
	*note = (struct daytona_note){0};
}

/* ---- locks ---- */

int daytona_note_lock(
	const char *state_folder, const char *name, enum daytona_lock lock, struct error *err)
{
	const struct notes notes = notes_of(state_folder);
	return notes_lock(&notes, name, lock == DAYTONA_LOCK_TOKEN,
		lock == DAYTONA_LOCK_SHARED ? LOCK_SHARED : LOCK_ALONE, err);
}

bool daytona_note_lock_alone(int lock_fd, const char *name, struct error *err)
{
	return notes_change_lock(lock_fd, name, LOCK_ALONE, err);
}

bool daytona_note_is_held(const char *state_folder, const char *name)
{
	const struct notes notes = notes_of(state_folder);
	return notes_is_held(&notes, name);
}

/* ---- content ---- */

static bool write_json(
	const char *name, const struct daytona_note *note, struct buf *out, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member_int(&writer, "version", NOTE_VERSION);
	json_write_member(&writer, "name", name);
	json_write_member(&writer, "api", note->mark.api);
	json_write_member(&writer, "organization", note->mark.organization);
	json_write_member(&writer, "keySalt", note->mark.salt);
	json_write_member(&writer, "keyPrint", note->mark.print);
	json_write_member(&writer, "profile", note->profile);
	json_write_member(&writer, "workspace", note->workspace);
	json_write_member_bool(&writer, "transient", note->is_transient);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

bool daytona_note_write(const char *state_folder, const char *name, const struct daytona_note *note,
	struct error *err)
{
	const struct notes notes = notes_of(state_folder);
	struct buf json;
	buf_init(&json, NOTE_MAX);
	bool ok = write_json(name, note, &json, err) &&
	          notes_write(&notes, name, buf_span(&json), err);
	buf_finish(&json);
	return ok;
}

/* "" if the member is missing, as in notes of earlier brokers. */
static void read_hex(char *text, size_t size, const struct json_doc *doc, const char *member)
{
	char *told = json_string(doc, json_get(doc, 0, member));
	text_format(text, size, "%s", told ? told : "");
	free(told);
}

static bool read_json(struct span text, struct daytona_note *out_note, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		return false;
	}
	struct daytona_note note = {
		.mark = {.api = json_string(doc, json_get(doc, 0, "api")),
			.organization = json_string(doc, json_get(doc, 0, "organization"))},
		.profile = json_string(doc, json_get(doc, 0, "profile")),
		.workspace = json_string(doc, json_get(doc, 0, "workspace")),
		.is_transient = json_bool(doc, json_get(doc, 0, "transient"), false)};
	read_hex(note.mark.salt, sizeof(note.mark.salt), doc, "keySalt");
	read_hex(note.mark.print, sizeof(note.mark.print), doc, "keyPrint");
	bool ok = note.mark.api && note.profile &&
	          json_int(doc, json_get(doc, 0, "version"), 0) == NOTE_VERSION;
	json_doc_destroy(doc);
	if (!ok) {
		daytona_note_finish(&note);
		return error_set(err, ERROR_PROTOCOL, "a broker of another version wrote it");
	}
	*out_note = note;
	return true;
}

bool daytona_note_read(const char *state_folder, const char *name, struct daytona_note *out_note,
	struct error *err)
{
	const struct notes notes = notes_of(state_folder);
	char text[NOTE_MAX];
	size_t len;
	return notes_read(&notes, name, text, &len, err) &&
	       (read_json((struct span){text, len}, out_note, err) ||
		       error_prefix(err, "the note %s.json", name));
}

void daytona_note_remove(const char *state_folder, const char *name)
{
	const struct notes notes = notes_of(state_folder);
	notes_remove(&notes, name);
}

bool daytona_note_visit(const char *state_folder, void (*visit)(void *data, const char *name),
	void *data, struct error *err)
{
	const struct notes notes = notes_of(state_folder);
	return notes_visit(&notes, visit, data, err);
}
