/* SPDX-License-Identifier: MIT */
#include "broker/policy/kept_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/lock_file.h"
#include "base/text.h"

static const char file_name[] = "hosts.json";
static const char draft_name[] = "hosts.json.new";
static const char lock_name[] = "hosts.lock";

enum { LOCK_LOOK_MS = 5, READ_CHUNK = 16 * 1024 };

/* ---- the list ---- */

static void host_finish(struct kept_host *host)
{
	free(host->profile);
	free(host->host);
}

void kept_hosts_finish(struct kept_hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++) {
		host_finish(&hosts->items[i]);
	}
	free(hosts->items);
	*hosts = (struct kept_hosts){.count = 0};
}

static bool is_one(
	const struct kept_host *kept, const char *profile, const char *host, uint16_t port)
{
	return (!profile || strcmp(kept->profile, profile) == 0) && strcmp(kept->host, host) == 0 &&
	       (port == 0 || kept->port == port);
}

bool kept_hosts_have(
	const struct kept_hosts *hosts, const char *profile, const char *host, uint16_t port)
{
	for (size_t i = 0; i < hosts->count; i++) {
		if (is_one(&hosts->items[i], profile, host, port)) {
			return true;
		}
	}
	return false;
}

/* Takes over the two texts. */
static void append(
	struct kept_hosts *hosts, char *profile, char *host, uint16_t port, const char *since)
{
	hosts->items = mem_realloc(hosts->items, (hosts->count + 1) * sizeof(*hosts->items));
	struct kept_host *kept = &hosts->items[hosts->count++];
	*kept = (struct kept_host){.profile = profile, .host = host, .port = port};
	text_format(kept->since, sizeof(kept->since), "%s", since);
}

/* ---- the text ---- */

static bool read_item(struct kept_hosts *hosts, const struct json_doc *doc, json_node item)
{
	char *profile = json_string(doc, json_get(doc, item, "profile"));
	char *host = json_string(doc, json_get(doc, item, "host"));
	char *since = json_string(doc, json_get(doc, item, "since"));
	long long port = json_int(doc, json_get(doc, item, "port"), 0);
	bool is_good = profile && host && since && port > 0 && port <= UINT16_MAX &&
	               hosts->count < KEPT_HOSTS_MAX;
	if (is_good) {
		append(hosts, profile, host, (uint16_t)port, since);
	} else {
		free(profile);
		free(host);
	}
	free(since);
	return is_good;
}

static bool parse(struct kept_hosts *hosts, struct span text, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		return false;
	}
	json_node list = json_get(doc, 0, "hosts");
	bool is_good = json_is(doc, list, JSON_ARRAY);
	for (json_node item = json_first(doc, list); is_good && item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		is_good = read_item(hosts, doc, item);
	}
	json_doc_destroy(doc);
	return is_good || error_set(err, ERROR_CONFIG,
				  "it contains something other than hosts and their ports");
}

static bool write_text(const struct kept_hosts *hosts, struct buf *out, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_key(&writer, "hosts");
	json_write_array(&writer);
	for (size_t i = 0; i < hosts->count; i++) {
		const struct kept_host *kept = &hosts->items[i];
		json_write_object(&writer);
		json_write_member(&writer, "profile", kept->profile);
		json_write_member(&writer, "host", kept->host);
		json_write_member_int(&writer, "port", kept->port);
		json_write_member(&writer, "since", kept->since);
		json_write_object_end(&writer);
	}
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err) && buf_append(out, SPAN_LITERAL("\n"), err);
}

/* ---- the file ---- */

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	       one->st_size == other->st_size && timespec_equals(&one->st_mtim, &other->st_mtim) &&
	       timespec_equals(&one->st_ctim, &other->st_ctim);
}

static bool read_bytes(int fd, struct buf *out, struct error *err)
{
	for (;;) {
		char *room = buf_reserve(out, READ_CHUNK, err);
		ssize_t count = room ? read(fd, room, READ_CHUNK) : -1;
		if (count < 0 && room && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			return count == 0 || (room && error_set_errno(err, errno, "reading it"));
		}
		buf_commit(out, (size_t)count);
	}
}

static bool read_file(struct kept_hosts *hosts, int fd, struct error *err)
{
	struct buf text;
	buf_init(&text, KEPT_HOSTS_FILE_MAX);
	bool ok = read_bytes(fd, &text, err) && parse(hosts, buf_span(&text), err);
	buf_finish(&text);
	return ok;
}

static bool read_in(struct kept_hosts *hosts, int folder, struct error *err)
{
	struct stat status = {.st_ino = 0};
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int errnum = errno;
	bool ok = fd >= 0 ? fstat(fd, &status) == 0 || error_set_errno(err, errno, "reading it")
	                  : errnum == ENOENT || error_set_errno(err, errnum, "opening it");
	if (ok && is_same(&status, &hosts->status)) {
		return true;
	}
	kept_hosts_finish(hosts);
	ok = ok && (fd < 0 || read_file(hosts, fd, err));
	if (!ok) {
		kept_hosts_finish(hosts);
		err->code = ERROR_CONFIG;
		return false;
	}
	hosts->status = status;
	return true;
}

bool kept_hosts_read(struct kept_hosts *hosts, const char *state_folder, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int folder = open(state_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 && errno == ENOENT) {
		kept_hosts_finish(hosts);
		return true;
	}
	if (folder < 0) {
		return error_set_errno(err, errno, "opening %s", state_folder);
	}
	return read_in(hosts, folder, err) ||
	       error_prefix(err, "the allowed hosts in %s/%s", state_folder, file_name);
}

/*
 * Replaces the file atomically. Does not wait until it is on the disk, because that would block the
 * loop, and a crash of the machine loses one answer at most.
 */
static bool write_in(const struct kept_hosts *hosts, int folder, struct error *err)
{
	struct buf text;
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		folder, draft_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "making a draft");
	}
	buf_init(&text, KEPT_HOSTS_FILE_MAX);
	bool ok = write_text(hosts, &text, err) && fd_write_all(fd, buf_span(&text), err);
	buf_finish(&text);
	ok = ok && (renameat(folder, draft_name, folder, file_name) == 0 ||
			   error_set_errno(err, errno, "moving the new file into place"));
	if (!ok) {
		unlinkat(folder, draft_name, 0);
	}
	return ok;
}

typedef bool change(struct kept_hosts *hosts, void *data, struct error *err);

static bool change_in(int folder, change *make, void *data, struct error *err)
{
	const struct lock_wait wait = {
		.look_ms = LOCK_LOOK_MS, .deadline_ms = clock_now_ms() + KEPT_HOSTS_LOCK_MS};
	ATTR_CLEANUP(fd_cleanup) int lock = lock_file_open(folder, lock_name);
	if (lock < 0) {
		return error_set_errno(err, errno, "opening %s", lock_name);
	}
	enum lock_state state = lock_file_wait(lock, &wait);
	if (state != LOCK_TAKEN) {
		return state == LOCK_FAILED ? error_set_errno(err, errno, "locking %s", lock_name)
		                            : error_set(err, ERROR_TIMEOUT,
						      "another broker has locked %s for %d ms",
						      lock_name, KEPT_HOSTS_LOCK_MS);
	}
	struct kept_hosts hosts = {.count = 0};
	bool ok = read_in(&hosts, folder, err);
	size_t before = hosts.count;
	ok = ok && make(&hosts, data, err) &&
	     (hosts.count == before || write_in(&hosts, folder, err));
	kept_hosts_finish(&hosts);
	return ok;
}

static bool change_file(const char *state_folder, change *make, void *data, struct error *err)
{
	if (!folder_make_state(state_folder, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int folder = open(state_folder, O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		return error_set_errno(err, errno, "opening %s", state_folder);
	}
	return change_in(folder, make, data, err) ||
	       error_prefix(err, "the allowed hosts in %s/%s", state_folder, file_name);
}

/* ---- the changes ---- */

struct one {
	const char *profile, *host;
	uint16_t port;
	size_t count;
};

static bool add(struct kept_hosts *hosts, void *data, struct error *err)
{
	char since[TIMESTAMP_SIZE];
	const struct one *one = data;
	if (kept_hosts_have(hosts, one->profile, one->host, one->port)) {
		return true;
	}
	if (hosts->count >= KEPT_HOSTS_MAX) {
		return error_set(err, ERROR_LIMIT,
			"there are already %d; acp-broker policy forget removes some",
			KEPT_HOSTS_MAX);
	}
	append(hosts, mem_strdup(one->profile), mem_strdup(one->host), one->port,
		timestamp_now(since));
	return true;
}

bool kept_hosts_add(const char *state_folder, const char *profile, const char *host, uint16_t port,
	struct error *err)
{
	struct one one = {.profile = profile, .host = host, .port = port};
	return change_file(state_folder, add, &one, err);
}

static bool forget(struct kept_hosts *hosts, void *data, struct error *err)
{
	struct one *one = data;
	size_t kept = 0;
	for (size_t i = 0; i < hosts->count; i++) {
		if (is_one(&hosts->items[i], one->profile, one->host, one->port)) {
			host_finish(&hosts->items[i]);
		} else {
			hosts->items[kept++] = hosts->items[i];
		}
	}
	one->count = hosts->count - kept;
	hosts->count = kept;
	return true;
}

bool kept_hosts_forget(const char *state_folder, const char *profile, const char *host,
	uint16_t port, size_t *out_count, struct error *err)
{
	struct one one = {.profile = profile, .host = host, .port = port};
	if (!change_file(state_folder, forget, &one, err)) {
		return false;
	}
	*out_count = one.count;
	return true;
}
