/* SPDX-License-Identifier: MIT */
#include "providers/ssh/run_note.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "providers/notes.h"

enum {
	NOTE_VERSION = 1,
	MACHINE_SIZE = 256, // the host's name
	TIME_SIZE = 24,
	MORE_S = 60, // the watch on the host checks every 20 s
	GRACE_MAX_MS = 7 * 24 * 3600 * 1000,
	LOCK_TRIES = 20,
	FOUND_MAX = 64, // each one holds a descriptor
};
static const struct timespec lock_pause = {.tv_nsec = 10000000L};

static struct notes notes_of(const char *state_folder)
{
	return (struct notes){
		.state_folder = state_folder, .folder = "runs", .writing = "run.noting"};
}

static void read_machine(char machine[MACHINE_SIZE])
{
	memset(machine, 0, MACHINE_SIZE);
	(void)!gethostname(machine, MACHINE_SIZE - 1);
}

/* What no copy of the file has, too. Zeros if that is unknown. */
struct identity {
	long long device, inode;
};

static struct identity identity_of(int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return (struct identity){0};
	}
	return (struct identity){(long long)status.st_dev, (long long)status.st_ino};
}

void ssh_run_note_finish(struct ssh_run_note *note)
{
	fd_close(&note->lock_fd);
	free(note->place);
	free(note->folder);
	free(note->node);
	*note = (struct ssh_run_note){.lock_fd = -1};
}

bool ssh_run_is_named(const char *folder, const char *token)
{
	const char *slash = strrchr(folder, '/');
	const char *name = slash ? slash + 1 : folder;
	size_t len = strlen(token);
	name += strcspn(name, ".");
	return len > 0 && name[0] == '.' && strncmp(name + 1, token, len) == 0 &&
	       name[1 + len] == '.';
}

/* ---- writing ---- */

static bool write_json(
	const struct notes *notes, const struct ssh_run_note *note, struct error *err)
{
	struct json_writer writer;
	struct buf json;
	char machine[MACHINE_SIZE], boot[BOOT_ID_SIZE];
	struct identity lock = identity_of(note->lock_fd);
	read_machine(machine);
	boot_id_read(boot);
	buf_init(&json, NOTE_MAX);
	json_write_begin(&writer, &json);
	json_write_object(&writer);
	json_write_member_int(&writer, "version", NOTE_VERSION);
	json_write_member(&writer, "token", note->token);
	json_write_member(&writer, "place", note->place);
	json_write_member(&writer, "folder", note->folder);
	json_write_member(&writer, "node", note->node);
	json_write_member_int(&writer, "graceMs", note->grace_ms);
	json_write_member(&writer, "machine", machine);
	json_write_member(&writer, "boot", boot);
	json_write_member_int(&writer, "lock", lock.inode);
	json_write_member_int(&writer, "device", lock.device);
	json_write_object_end(&writer);
	bool ok = json_write_end(&writer, err) &&
	          notes_write(notes, note->token, buf_span(&json), err);
	buf_finish(&json);
	return ok;
}

bool ssh_run_note_write(const char *state_folder, struct ssh_run_note *note, struct error *err)
{
	struct notes notes = notes_of(state_folder);
	note->lock_fd = notes_lock(&notes, note->token, false, LOCK_ALONE, err);
	for (int i = 0; note->lock_fd < 0 && err->code == ERROR_UNAVAILABLE && i < LOCK_TRIES;
		i++) {
		/* Another broker has taken our new lock for one that was left, and removes it. */
		nanosleep(&lock_pause, NULL);
		note->lock_fd = notes_lock(&notes, note->token, false, LOCK_ALONE, err);
	}
	if (note->lock_fd >= 0 && !write_json(&notes, note, err)) {
		fd_close(&note->lock_fd);
	}
	return note->lock_fd >= 0 || error_prefix(err, "noting the run on the host");
}

void ssh_run_note_remove(const char *state_folder, struct ssh_run_note *note)
{
	struct notes notes = notes_of(state_folder);
	struct error ignored;
	if (note->lock_fd >= 0 &&
		notes_change_lock(note->lock_fd, note->token, LOCK_ALONE, &ignored)) {
		notes_remove(&notes, note->token);
	}
	ssh_run_note_finish(note);
}

/* ---- notes that are kept: the lock file has the time when that was decided first ---- */

static long long read_kept(int lock_fd)
{
	char text[TIME_SIZE];
	ssize_t len = pread(lock_fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	return strtoll(text, NULL, 10);
}

void ssh_run_note_keep(struct ssh_run_note *note)
{
	char text[TIME_SIZE];
	if (note->lock_fd >= 0 && read_kept(note->lock_fd) == 0) {
		int len = snprintf(text, sizeof(text), "%lld\n", (long long)time(NULL));
		(void)!pwrite(note->lock_fd, text, (size_t)len, 0);
	}
	ssh_run_note_finish(note);
}

static bool is_over(const struct ssh_run_note *note)
{
	long long kept = read_kept(note->lock_fd), now = (long long)time(NULL);
	return kept > 0 && kept <= now && now - kept > note->grace_ms / 1000 + MORE_S;
}

/* ---- finding ---- */

struct finding {
	struct notes notes;
	const char *state_folder;
	const char *place;
	struct ssh_run_note *list;
	size_t count;
	bool has_more;
};

static bool is_text(const struct json_doc *doc, const char *name, const char *text)
{
	char *found = json_string(doc, json_get(doc, 0, name));
	bool is_same = found && *text && strcmp(found, text) == 0;
	free(found);
	return is_same;
}

/* False: the note is damaged, or belongs to another machine or version. */
static bool read_doc(const struct json_doc *doc, struct ssh_run_note *note)
{
	char machine[MACHINE_SIZE], boot[BOOT_ID_SIZE];
	read_machine(machine);
	boot_id_read(boot);
	bool is_of_boot = is_text(doc, "boot", boot);
	struct identity lock = identity_of(note->lock_fd);
	note->place = json_string(doc, json_get(doc, 0, "place"));
	note->folder = json_string(doc, json_get(doc, 0, "folder"));
	note->node = json_string(doc, json_get(doc, 0, "node"));
	note->grace_ms = json_int(doc, json_get(doc, 0, "graceMs"), -1);
	note->is_certain = is_of_boot && lock.inode != 0 &&
	                   json_int(doc, json_get(doc, 0, "lock"), -1) == lock.inode &&
	                   json_int(doc, json_get(doc, 0, "device"), -1) == lock.device;
	return json_int(doc, json_get(doc, 0, "version"), 0) == NOTE_VERSION &&
	       is_text(doc, "token", note->token) && note->place && note->node && note->folder &&
	       ssh_run_is_named(note->folder, note->token) && !strchr(note->folder, '\n') &&
	       !strchr(note->node, '\n') && note->grace_ms >= 0 && note->grace_ms <= GRACE_MAX_MS &&
	       (is_of_boot || is_text(doc, "machine", machine));
}

static bool read_note(const struct finding *finding, struct ssh_run_note *note)
{
	char text[NOTE_MAX];
	size_t len;
	struct error ignored;
	struct json_doc *doc = NULL;
	if (notes_read(&finding->notes, note->token, text, &len, &ignored)) {
		doc = json_doc_parse((struct span){text, len}, &ignored);
	}
	bool is_fine = doc && read_doc(doc, note);
	json_doc_destroy(doc);
	return is_fine;
}

static void visit(void *data, const char *name)
{
	struct finding *finding = data;
	struct error ignored;
	struct ssh_run_note note = {.lock_fd = -1};
	if (!hex_is_written(name, SSH_TOKEN_SIZE - 1)) {
		return;
	}
	text_whole(note.token, sizeof(note.token), "%s", name);
	note.lock_fd = notes_lock(&finding->notes, name, false, LOCK_SHARED, &ignored);
	if (note.lock_fd < 0 || !read_note(finding, &note)) {
		ssh_run_note_finish(&note);
	} else if (is_over(&note)) {
		ssh_run_note_remove(finding->state_folder, &note);
	} else if (strcmp(note.place, finding->place) != 0) {
		ssh_run_note_keep(&note); // maybe nobody ever comes to that place again
	} else if (finding->count == FOUND_MAX) {
		ssh_run_note_finish(&note);
		finding->has_more = true;
	} else {
		size_t size = (finding->count + 1) * sizeof(note);
		finding->list = mem_realloc(finding->list, size);
		finding->list[finding->count++] = note;
	}
}

struct ssh_run_note *ssh_run_notes_find(
	const char *state_folder, const char *place, size_t *out_count)
{
	struct error err;
	char path[PATH_MAX];
	struct finding finding = {
		.notes = notes_of(state_folder), .state_folder = state_folder, .place = place};
	bool has_notes =
		text_whole(path, sizeof(path), "%s/runs", state_folder) && access(path, F_OK) == 0;
	if (has_notes && !notes_visit(&finding.notes, visit, &finding, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "looking for runs of earlier brokers: %s",
			err.text);
	}
	if (finding.has_more) {
		log_warning("%s: earlier brokers have left more than %d runs there: the others are "
			    "ended when the next broker starts",
			place, FOUND_MAX);
	}
	*out_count = finding.count;
	return finding.list;
}
