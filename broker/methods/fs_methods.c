/* SPDX-License-Identifier: MIT */
#include "broker/methods/fs_methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_utf8.h"
#include "base/real_path.h"
#include "broker/methods/run.h"
#include "broker/methods/sandbox_call.h"
#include "broker/session/serving.h"

/*
 * Lists the names in the working directory, each with a letter for its kind before it and a NUL
 * after it. Only uses commands that are built into every sh.
 */
static const char list_script[] = "for name in .[!.]* ..?* *; do\n"
				  "\tif [ -L \"$name\" ]; then kind=l\n"
				  "\telif [ -d \"$name\" ]; then kind=d\n"
				  "\telif [ -f \"$name\" ]; then kind=f\n"
				  "\telif [ -e \"$name\" ]; then kind=o\n"
				  "\telse continue; fi\n"
				  "\tprintf '%s%s\\000' \"$kind\" \"$name\"\n"
				  "done\n";

enum { LIST_BYTES_MAX = 4 << 20, LIST_TIMEOUT_MS = 60 * 1000 };

/* One request. */
struct fs_call {
	struct sandbox_call call;
	struct file_op *op;     // the current operation; or NULL
	struct run *listing;    // owned; or NULL
	char *path;             // owned; in the sandbox; without links once it is resolved
	struct shared *content; // a reference; for a write
	size_t most;            // limit for a read, in bytes
	void (*first)(struct fs_call *self); // called when the path is in a root
	void (*go_on)(struct fs_call *self); // called with the resolved path
	struct adding *adding;               // while a root is being added; or NULL
};

/* The sandbox adds a root. This outlives a call that has ended. */
struct adding {
	struct fs_call *self; // NULL: the call has ended
};

static struct fs_call *from_call(struct sandbox_call *call)
{
	return CONTAINER_OF(call, struct fs_call, call);
}

static void destroy(struct sandbox_call *call)
{
	struct fs_call *self = from_call(call);
	if (self->op) {
		file_op_cancel(self->op);
	}
	if (self->adding) {
		self->adding->self = NULL;
	}
	run_destroy(self->listing);
	free(self->path);
	shared_release(self->content);
	sandbox_call_finish(call);
	free(self);
}

/* ---- the path ---- */

/* A missing file has an error code of its own. */
static void fail(struct fs_call *self, const struct error *err)
{
	struct error failure = *err;
	if (!err->reason && err->code == ERROR_NOT_FOUND) {
		failure.reason = "RESOURCE_NOT_FOUND";
	}
	sandbox_call_fail(&self->call, &failure);
}

static void on_resolved(void *data, const char *path, const struct error *err)
{
	struct fs_call *self = data;
	self->op = NULL;
	if (err) {
		fail(self, err);
		return;
	}
	mem_set_text(&self->path, path);
	self->go_on(self);
}

/* NULL if the request was answered. */
static struct fs_call *begin(struct relay *relay, const struct call *call, const char *operation)
{
	struct fs_call *self = sandbox_call_begin(relay, call, sizeof(*self), destroy);
	if (!self) {
		return NULL;
	}
	if (!sandbox_call_has_room(&self->call)) {
		return NULL;
	}
	char *path = sandbox_call_path(&self->call, "path", false);
	if (!path) {
		return NULL; // and the call is freed
	}
	self->path = path;
	sandbox_call_audit(&self->call, operation, self->path);
	return self;
}

static void resolve_it(struct fs_call *self)
{
	self->op = sandbox_resolve_path(self->call.sandbox, self->path, on_resolved, self);
}

static void on_root_added(void *data, const struct error *err)
{
	struct adding *adding = data;
	struct fs_call *self = adding->self;
	free(adding);
	if (!self) {
		return;
	}
	self->adding = NULL;
	if (err) {
		fail(self, err);
	} else {
		self->first(self);
	}
}

/*
 * The session's directory that contains the path, if it is not a root yet because the editor serves
 * its files.
 */
static const char *unserved_root(const struct fs_call *self)
{
	const struct session *session =
		session_find(&self->call.relay->sessions, self->call.session_id);
	if (!relay_shares_files(self->call.peer) ||
		sandbox_root_length(self->call.sandbox, self->path) > 0) {
		return NULL;
	}
	for (char **root = session ? session->roots : NULL; root && *root; root++) {
		if (path_is_at_or_below(self->path, *root)) {
			return *root;
		}
	}
	return NULL;
}

/* Calls `first` once the path is in a root of the sandbox. */
static void begin_at(struct fs_call *self, void (*first)(struct fs_call *self))
{
	const char *root = unserved_root(self);
	self->first = first;
	if (!root) {
		first(self);
		return;
	}
	self->adding = mem_alloc_zero(sizeof(*self->adding));
	self->adding->self = self;
	sandbox_add_root(self->call.sandbox, root, on_root_added, self->adding);
}

static void resolve(struct fs_call *self, void (*go_on)(struct fs_call *self))
{
	self->go_on = go_on;
	begin_at(self, resolve_it);
}

/* ---- the answer ---- */

struct answer {
	struct buf text;
	struct json_writer writer;
};

static struct json_writer *answer_begin(struct answer *answer)
{
	buf_init(&answer->text, SIZE_MAX / 2);
	json_write_begin(&answer->writer, &answer->text);
	json_write_object(&answer->writer);
	return &answer->writer;
}

static void answer_end(struct answer *answer, struct fs_call *self)
{
	struct error err;
	json_write_object_end(&answer->writer);
	if (json_write_end(&answer->writer, &err)) {
		sandbox_call_answer(&self->call, &answer->text);
	} else {
		sandbox_call_fail(&self->call, &err);
	}
	buf_finish(&answer->text);
}

/* ---- _broker/fs/stat ---- */

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : "other";
}

static void on_status(void *data, const struct stat *status, const struct error *err)
{
	struct fs_call *self = data;
	struct answer answer;
	self->op = NULL;
	if (err) {
		fail(self, err);
		return;
	}
	struct json_writer *writer = answer_begin(&answer);
	json_write_member(writer, "type", kind_of(status->st_mode));
	json_write_member_int(writer, "sizeBytes", (long long)status->st_size);
	json_write_member_int(writer, "mode", status->st_mode & 07777);
	json_write_member_int(writer, "modified", (long long)status->st_mtime);
	answer_end(&answer, self);
}

static void look_at_it(struct fs_call *self)
{
	self->op = sandbox_stat_file(self->call.sandbox, self->path, on_status, self);
}

void fs_methods_stat(struct relay *relay, const struct call *call)
{
	struct fs_call *self = begin(relay, call, "_broker/fs/stat");
	if (self) {
		begin_at(self, look_at_it);
	}
}

/* ---- _broker/fs/read ---- */

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct fs_call *self = data;
	struct answer answer;
	self->op = NULL;
	if (err) {
		fail(self, err);
		return;
	}
	struct span bytes = buf_span(content);
	if (!self->call.is_base64 && utf8_valid_length(bytes.data, bytes.len) < bytes.len) {
		sandbox_call_refuse(&self->call, "FILE_NOT_TEXT",
			"%s is not UTF-8: request it with the encoding base64", self->path);
		return;
	}
	struct json_writer *writer = answer_begin(&answer);
	sandbox_call_write(&self->call, writer, "content", bytes);
	answer_end(&answer, self);
}

static void read_it(struct fs_call *self)
{
	self->op = sandbox_read_resolved(self->call.sandbox, self->path, self->most, on_read, self);
}

void fs_methods_read(struct relay *relay, const struct call *call)
{
	static const long long sizes[2] = {0, SANDBOX_BYTES_MAX};
	struct fs_call *self = begin(relay, call, "_broker/fs/read");
	long long most;
	if (self && sandbox_call_number(&self->call, "limit", sizes, SANDBOX_BYTES_MAX, &most)) {
		self->most = (size_t)most;
		resolve(self, read_it);
	}
}

/* ---- _broker/fs/write ---- */

static void on_written(void *data, const struct error *err)
{
	struct fs_call *self = data;
	struct answer answer;
	self->op = NULL;
	if (err) {
		fail(self, err);
		return;
	}
	answer_begin(&answer);
	answer_end(&answer, self);
}

static void write_it(struct fs_call *self)
{
	self->op = sandbox_write_resolved(
		self->call.sandbox, self->path, self->content, on_written, self);
}

/* False if the request was answered. */
static bool take_content(struct fs_call *self, struct buf *content)
{
	size_t most = self->call.relay->config.profile->toolhost_limits.max_file;
	if (!sandbox_call_bytes(&self->call, "content", content)) {
		return false;
	}
	if (json_get(self->call.params, 0, "content") == JSON_NODE_NONE) {
		sandbox_call_refuse(&self->call, "INVALID_PARAMS", "content: expected a string");
		return false;
	}
	if (content->len > most) {
		sandbox_call_refuse(&self->call, "RESOURCE_LIMIT_EXCEEDED",
			"%s: %zu bytes are more than %zu (max-file)", self->path, content->len,
			most);
		return false;
	}
	return true;
}

void fs_methods_write(struct relay *relay, const struct call *call)
{
	struct buf content;
	struct fs_call *self = begin(relay, call, "_broker/fs/write");
	buf_init(&content, SIZE_MAX / 2);
	if (self && take_content(self, &content)) {
		self->content = shared_take(&content);
		resolve(self, write_it);
	}
	buf_finish(&content);
}

/* ---- _broker/fs/list ---- */

static const char *kind_of_letter(char letter)
{
	return letter == 'f' ? "file" : letter == 'd' ? "folder" : letter == 'l' ? "link" : "other";
}

static void write_entries(struct fs_call *self, struct json_writer *writer, struct span listed)
{
	json_write_key(writer, "entries");
	json_write_array(writer);
	while (listed.len > 0) {
		const char *end = memchr(listed.data, '\0', listed.len);
		size_t length = end ? (size_t)(end - listed.data) : 0;
		if (length < 2) {
			break;
		}
		json_write_object(writer);
		sandbox_call_write(
			&self->call, writer, "name", (struct span){listed.data + 1, length - 1});
		json_write_member(writer, "type", kind_of_letter(listed.data[0]));
		json_write_object_end(writer);
		listed = (struct span){end + 1, listed.len - length - 1};
	}
	json_write_array_end(writer);
}

static void on_listed(void *data)
{
	struct fs_call *self = data;
	const struct run_result result = run_result(self->listing);
	struct answer answer;
	if (result.has_failed) {
		struct error err = result.err;
		fail(self, &err);
	} else if (result.timed_out || result.status.signal || result.status.code) {
		sandbox_call_refuse(&self->call, "SYSTEM_ERROR", "%s cannot be listed: %.*s",
			self->path, (int)result.errors.len, result.errors.data);
	} else if (result.out_total > result.out.len) {
		sandbox_call_refuse(&self->call, "RESOURCE_LIMIT_EXCEEDED",
			"%s has more names than fit into %d bytes", self->path, LIST_BYTES_MAX);
	} else {
		struct json_writer *writer = answer_begin(&answer);
		write_entries(self, writer, result.out);
		answer_end(&answer, self);
	}
}

static void list_it(struct fs_call *self)
{
	static const char *const argv[] = {"sh", "-c", list_script, NULL};
	struct error err;
	const struct run_config config = {.loop = self->call.relay->config.loop,
		.sandbox = self->call.sandbox,
		.argv = argv,
		.cwd = self->path,
		.cwd_root = sandbox_root_length(self->call.sandbox, self->path),
		.output_max = LIST_BYTES_MAX,
		.timeout_ms = LIST_TIMEOUT_MS,
		.is_ours = true,
		.done = on_listed,
		.data = self};
	self->listing = run_start(&config, &err);
	if (!self->listing) {
		fail(self, &err);
	}
}

void fs_methods_list(struct relay *relay, const struct call *call)
{
	struct fs_call *self = begin(relay, call, "_broker/fs/list");
	if (self) {
		resolve(self, list_it);
	}
}
