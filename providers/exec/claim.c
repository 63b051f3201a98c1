/* SPDX-License-Identifier: MIT */
#include "providers/exec/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/real_path.h"
#include "base/text.h"

enum { NOTE_VERSION = 1, RANDOM_DIGITS = 8 };

static const double retry_seconds = 0.1;

enum claim_order { CLAIM_TAKE, CLAIM_SHARE, CLAIM_ALONE, CLAIM_WRITE, CLAIM_FORGET };

/* The work for the pool. It outlives a claim that is destroyed meanwhile. */
struct claim_work {
	struct pool_job job;
	struct exec_claim *claim;
	enum claim_order order;
	struct notes notes;                            // its state_folder is owned; may be NULL
	char *profile;                                 // owned
	char *variant, *reach, *directory, *reference; // owned; each may be NULL
	bool is_new, is_transient;
	char name[NOTE_NAME_SIZE];
	struct exec_note note;
	int lock_fd;
	bool is_ok;
	struct error err;
};

struct exec_claim {
	struct claim_work *work; // owned
	const struct provider_context *context;
	ev_timer retry;
	long long deadline_ms, timeout_ms;
	exec_claim_done *done;
	void *data;
};

/* ---- notes ---- */

void exec_note_finish(struct exec_note *note)
{
	free(note->profile);
	free(note->workspace);
	free(note->instance);
	free(note->reach);
	*note = (struct exec_note){0};
}

struct notes exec_notes(
	const struct provider_context *context, const struct exec_platform *platform)
{
	return (struct notes){.state_folder = context->state_folder,
		.folder = platform->name,
		.writing = "exec.noting"};
}

static bool write_note(struct claim_work *work)
{
	const struct exec_note *note = &work->note;
	struct json_writer writer;
	struct buf json;
	buf_init(&json, NOTE_MAX);
	json_write_begin(&writer, &json);
	json_write_object(&writer);
	json_write_member_int(&writer, "version", NOTE_VERSION);
	json_write_member(&writer, "name", work->name);
	json_write_member(&writer, "profile", note->profile);
	json_write_member(&writer, "workspace", note->workspace);
	json_write_member(&writer, "instance", note->instance);
	json_write_member(&writer, "born", note->born);
	json_write_member(&writer, "reach", note->reach);
	json_write_member_bool(&writer, "transient", note->is_transient);
	json_write_object_end(&writer);
	bool ok = json_write_end(&writer, &work->err) &&
	          notes_write(&work->notes, work->name, buf_span(&json), &work->err);
	buf_finish(&json);
	return ok;
}

static bool read_json(struct span text, struct exec_note *out_note, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		return false;
	}
	struct exec_note note = {.profile = json_string(doc, json_get(doc, 0, "profile")),
		.workspace = json_string(doc, json_get(doc, 0, "workspace")),
		.instance = json_string(doc, json_get(doc, 0, "instance")),
		.reach = json_string(doc, json_get(doc, 0, "reach")),
		.is_transient = json_bool(doc, json_get(doc, 0, "transient"), false)};
	char *born = json_string(doc, json_get(doc, 0, "born"));
	bool ok = note.profile && born && text_whole(note.born, sizeof(note.born), "%s", born) &&
	          json_int(doc, json_get(doc, 0, "version"), 0) == NOTE_VERSION;
	free(born);
	json_doc_destroy(doc);
	if (!ok) {
		exec_note_finish(&note);
		return error_set(err, ERROR_PROTOCOL, "a broker of another version wrote it");
	}
	*out_note = note;
	return true;
}

bool exec_note_read(
	const struct notes *notes, const char *name, struct exec_note *out_note, struct error *err)
{
	char text[NOTE_MAX];
	size_t len;
	return notes_read(notes, name, text, &len, err) &&
	       (read_json((struct span){text, len}, out_note, err) ||
		       error_prefix(err, "the note %s.json", name));
}

/* ---- on the pool ---- */

static bool find_name(struct claim_work *work, char **out_real)
{
	char machine[MACHINE_ID_SIZE], folder[MACHINE_ID_SIZE] = "", user[32];
	char random[RANDOM_DIGITS + 1];
	const char *state_folder = work->notes.state_folder;
	if (!machine_id_read("", state_folder, machine, &work->err) ||
		(state_folder && !folder_id_read(state_folder, folder, &work->err))) {
		return false;
	}
	*out_real = work->directory ? real_path(work->directory) : NULL;
	if (*work->name) {
		return true; // a second try
	}
	if (work->reference) {
		return (notes_name_is_valid(work->reference) &&
			       text_whole(work->name, sizeof(work->name), "%s", work->reference)) ||
		       error_set(&work->err, ERROR_CONFIG, "%s is not a sandbox's name",
			       work->reference);
	}
	snprintf(user, sizeof(user), "%lu", (unsigned long)getuid());
	uint64_t hash =
		hash_text(hash_text(hash_text(HASH_START, work->notes.folder), machine), user);
	hash = hash_text(hash_text(hash, *out_real ? *out_real : ""), work->profile);
	hash = work->variant ? hash_text(hash, work->variant) : hash;
	hash = hash_text(hash, folder); // two state folders do not share an instance
	random_fill_hex(random, RANDOM_DIGITS);
	text_whole(work->name, sizeof(work->name), "acp-broker-%016" PRIx64 "%s%s", hash,
		work->is_new ? "-" : "", work->is_new ? random : "");
	return true;
}

static bool is_in_reach(struct claim_work *work)
{
	const char *was = work->note.reach ? work->note.reach : "";
	const char *is = work->reach ? work->reach : "";
	return strcmp(was, is) == 0 ||
	       error_set_reason(&work->err, ERROR_CONFIG, "SANDBOX_ELSEWHERE",
		       "sandbox %s was made with %s, and profile \"%s\" now has %s, where it is "
		       "not found: change that back, or remove the sandbox there and its note "
		       "%s/%s/%s.json",
		       work->name, was, work->profile, is, work->notes.state_folder,
		       work->notes.folder, work->name);
}

/* A note that cannot be read stays: nobody knows which instance it describes. */
static bool read_note(struct claim_work *work, char **real)
{
	struct error err;
	exec_note_finish(&work->note);
	if (exec_note_read(&work->notes, work->name, &work->note, &err)) {
		return is_in_reach(work);
	}
	if (err.code != ERROR_NOT_FOUND) {
		work->err = err;
		return false;
	}
	if (work->reference) {
		return error_set_reason(&work->err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"sandbox %s no longer exists: this machine has no note of it", work->name);
	}
	work->note = (struct exec_note){.profile = mem_strdup(work->profile),
		.workspace = *real,
		.reach = mem_strdup_or_null(work->reach),
		.is_transient = work->is_transient};
	*real = NULL;
	return true;
}

static bool take(struct claim_work *work)
{
	char *real = NULL;
	fd_close(&work->lock_fd);
	bool ok = find_name(work, &real);
	if (ok) {
		work->lock_fd = notes_lock(&work->notes, work->name, false, LOCK_ALONE, &work->err);
		if (work->lock_fd < 0 && work->err.code == ERROR_UNAVAILABLE) {
			work->lock_fd = notes_lock(
				&work->notes, work->name, false, LOCK_SHARED, &work->err);
		}
		ok = work->lock_fd >= 0 && read_note(work, &real);
	}
	free(real);
	return ok;
}

static void on_run(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	switch (work->order) {
	case CLAIM_TAKE:
		work->is_ok = take(work);
		break;
	case CLAIM_SHARE:
	case CLAIM_ALONE:
		work->is_ok = notes_change_lock(work->lock_fd, work->name,
			work->order == CLAIM_SHARE ? LOCK_SHARED : LOCK_ALONE, &work->err);
		break;
	case CLAIM_WRITE:
		work->is_ok = write_note(work);
		break;
	case CLAIM_FORGET:
		notes_remove(&work->notes, work->name);
		fd_close(&work->lock_fd);
		work->is_ok = true;
		break;
	}
	if (!work->is_ok && work->order != CLAIM_WRITE && work->order != CLAIM_SHARE) {
		fd_close(&work->lock_fd);
	}
}

static void work_drop(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	exec_note_finish(&work->note);
	fd_close(&work->lock_fd);
	free((char *)work->notes.state_folder);
	free(work->profile);
	free(work->variant);
	free(work->reach);
	free(work->directory);
	free(work->reference);
	free(work);
}

/* ---- on the loop ---- */

static void end(struct exec_claim *claim, const struct error *err)
{
	exec_claim_done *done = claim->done;
	struct error copy;
	if (err) {
		copy = *err;
	}
	claim->done = NULL;
	done(claim->data, err ? &copy : NULL);
}

static void on_done(struct pool_job *job)
{
	struct claim_work *work = CONTAINER_OF(job, struct claim_work, job);
	struct exec_claim *claim = work->claim;
	bool waits = work->order == CLAIM_TAKE || work->order == CLAIM_SHARE;
	bool is_held = !work->is_ok && work->err.code == ERROR_UNAVAILABLE && waits;
	if (is_held && clock_now_ms() < claim->deadline_ms) {
		ev_timer_set(&claim->retry, retry_seconds, 0.);
		ev_timer_start(claim->context->loop, &claim->retry);
		return;
	}
	if (is_held) {
		error_set_reason(&work->err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another broker starts or ends sandbox %s, for longer than %lld s",
			work->name, claim->timeout_ms / 1000);
	}
	end(claim, work->is_ok ? NULL : &work->err);
}

static void submit(struct exec_claim *claim)
{
	struct claim_work *work = claim->work;
	struct error err;
	if (!pool_submit(claim->context->pool, &work->job, &err)) {
		work->is_ok = false;
		work->err = err;
		work->err.code = ERROR_SYSTEM; // on_done does not try this again
		on_done(&work->job);
	}
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
	submit(CONTAINER_OF(timer, struct exec_claim, retry));
}

static void order(struct exec_claim *claim, enum claim_order what, exec_claim_done *done)
{
	claim->work->order = what;
	claim->done = done;
	claim->deadline_ms = clock_now_ms() + claim->timeout_ms;
	ev_timer_set(&claim->retry, 0., 0.);
	ev_timer_start(claim->context->loop, &claim->retry);
}

/* ---- for the caller ---- */

struct exec_claim *exec_claim_create(const struct exec_claim_config *config)
{
	struct exec_claim *claim = mem_alloc_zero(sizeof(*claim));
	struct claim_work *work = mem_alloc_zero(sizeof(*work));
	claim->context = config->context;
	claim->timeout_ms = config->timeout_ms;
	claim->data = config->data;
	claim->work = work;
	ev_timer_init(&claim->retry, on_retry, 0., 0.);
	work->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = work_drop};
	work->claim = claim;
	work->notes = exec_notes(config->context, config->profile->platform);
	work->notes.state_folder = mem_strdup_or_null(work->notes.state_folder);
	work->profile = mem_strdup(config->profile->name);
	work->variant = mem_strdup_or_null(config->profile->variant);
	work->reach = mem_strdup_or_null(config->profile->reach);
	work->directory = mem_strdup_or_null(config->directory);
	work->reference = mem_strdup_or_null(config->reference);
	work->is_new = config->is_new;
	work->is_transient = config->is_transient;
	work->lock_fd = -1;
	return claim;
}

void exec_claim_destroy(struct exec_claim *claim)
{
	if (!claim) {
		return;
	}
	ev_timer_stop(claim->context->loop, &claim->retry);
	pool_leave(&claim->work->job);
	free(claim);
}

void exec_claim_take(struct exec_claim *claim, exec_claim_done *done)
{
	order(claim, CLAIM_TAKE, done);
}

void exec_claim_share(struct exec_claim *claim, exec_claim_done *done)
{
	order(claim, CLAIM_SHARE, done);
}

void exec_claim_take_alone(struct exec_claim *claim, exec_claim_done *done)
{
	order(claim, CLAIM_ALONE, done);
}

void exec_claim_write(struct exec_claim *claim, const char *instance, exec_claim_done *done)
{
	struct exec_note *note = &claim->work->note;
	free(note->instance);
	note->instance = mem_strdup_or_null(instance);
	if (!instance) {
		random_fill_hex(note->born, EXEC_BORN_SIZE - 1);
	}
	order(claim, CLAIM_WRITE, done);
}

void exec_claim_forget(struct exec_claim *claim, exec_claim_done *done)
{
	order(claim, CLAIM_FORGET, done);
}

bool exec_claim_is_busy(const struct exec_claim *claim)
{
	return claim->done != NULL;
}

const char *exec_claim_name(const struct exec_claim *claim)
{
	return claim->work->name;
}

const struct exec_note *exec_claim_note(const struct exec_claim *claim)
{
	return &claim->work->note;
}
