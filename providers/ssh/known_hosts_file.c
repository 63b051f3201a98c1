/* SPDX-License-Identifier: MIT */
#include "providers/ssh/known_hosts_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

enum { READ_SIZE = 64 * 1024, SSH_PORT = 22 };

struct search {
	char *name; // "[devbox]:2222"
	char *bare; // "devbox"; NULL if that is the same, or not a name of the host
	known_hosts_visit *visit;
	void *data;
};

static char *lower_case(char *text)
{
	for (char *at = text; *at; at++) {
		if (*at >= 'A' && *at <= 'Z') {
			*at = (char)(*at + ('a' - 'A'));
		}
	}
	return text;
}

char *known_hosts_name(const struct ssh_target *target)
{
	if (target->host_key_alias) {
		return lower_case(mem_strdup(target->host_key_alias));
	}
	if (target->port == SSH_PORT) {
		return lower_case(mem_strdup(target->host));
	}
	size_t size = strlen(target->host) + 16;
	char *name = mem_alloc(size);
	text_whole(name, size, "[%s]:%d", target->host, target->port);
	return lower_case(name);
}

/* ---- a file ---- */

bool known_hosts_read_all(int fd, struct buf *text, struct error *err)
{
	for (;;) {
		char *to = buf_reserve(text, READ_SIZE, err);
		ssize_t count = to ? read(fd, to, READ_SIZE) : -1;
		if (!to) {
			return false;
		}
		if (count < 0 && errno != EINTR) {
			return error_set_errno(err, errno, "reading it");
		}
		if (count == 0) {
			return true;
		}
		buf_commit(text, count > 0 ? (size_t)count : 0);
	}
}

/* /dev/null is a way to say that no host is known. */
static bool read_file(const char *path, struct buf *text, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	if (fd < 0) {
		return errno == ENOENT || errno == ENOTDIR ||
		       error_set_errno(err, errno, "opening it");
	}
	if (fstat(fd, &status) < 0) {
		return error_set_errno(err, errno, "reading its state");
	}
	if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "it is not a file");
	}
	return known_hosts_read_all(fd, text, err);
}

static bool names_fit(
	struct search *search, struct known_hosts_match *match, bool *out_fit, struct error *err)
{
	struct span names = match->line->names;
	match->is_bare = false;
	if (!known_hosts_names_fit(names, search->name, out_fit, err)) {
		return false;
	}
	if (*out_fit || !search->bare) {
		return true;
	}
	match->is_bare = true;
	return known_hosts_names_fit(names, search->bare, out_fit, err);
}

static bool search_text(
	struct search *search, const char *file, struct span text, struct error *err)
{
	bool ok = true;
	struct known_hosts_match match = {.file = file};
	while (ok && text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		struct span row = {text.data, end ? (size_t)(end - text.data) : text.len};
		struct known_hosts_line line;
		match.number++;
		if (known_hosts_line_read(row, &line)) {
			bool fits = false;
			match.line = &line;
			ok = names_fit(search, &match, &fits, err);
			if (ok && fits) {
				search->visit(search->data, &match);
			}
			known_hosts_line_finish(&line);
		}
		size_t taken = row.len + (end ? 1 : 0);
		text = (struct span){text.data + taken, text.len - taken};
	}
	return ok;
}

static bool search_files(struct search *search, char *const *files, struct error *err)
{
	for (; files && *files; files++) {
		struct buf text;
		buf_init(&text, KNOWN_HOSTS_FILE_MAX);
		bool ok = read_file(*files, &text, err) &&
		          search_text(search, *files, buf_span(&text), err);
		buf_finish(&text);
		if (!ok) {
			return error_prefix(err, "known hosts of %s", *files);
		}
	}
	return true;
}

bool known_hosts_each(
	const struct ssh_target *target, known_hosts_visit *visit, void *data, struct error *err)
{
	bool has_bare = !target->host_key_alias && target->port != SSH_PORT;
	struct search search = {
		.name = known_hosts_name(target),
		.bare = has_bare ? lower_case(mem_strdup(target->host)) : NULL,
		.visit = visit,
		.data = data,
	};
	bool ok = search_files(&search, target->user_known_hosts_files, err) &&
	          search_files(&search, target->global_known_hosts_files, err);
	free(search.name);
	free(search.bare);
	return ok;
}
