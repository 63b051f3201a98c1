/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text.h"
#include "base/base64.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/known_hosts_line.h"

/* "NAME TYPE KEY"; the caller frees it. */
static char *line_of(const char *name, const struct host_key *key)
{
	char *blob = base64_encode(key->blob);
	size_t size = strlen(name) + strlen(key->type) + strlen(blob) + 3;
	char *line = mem_alloc(size);
	text_whole(line, size, "%s %s %s", name, key->type, blob);
	free(blob);
	return line;
}

char *known_hosts_line(const struct ssh_target *target, const struct host_key *key)
{
	char *name = known_hosts_name(target);
	char *line = line_of(name, key);
	free(name);
	return line;
}

static char *hash_name(const char *name, struct error *err)
{
	uint8_t salt[KNOWN_HOSTS_SALT_SIZE];
	random_fill(salt, sizeof(salt));
	return known_hosts_hash(name, salt, err);
}

/* The line for the file; the caller frees it. NULL on failure. */
static char *file_line(
	const struct ssh_target *target, const struct host_key *key, struct error *err)
{
	char *name = known_hosts_name(target);
	if (target->hash_known_hosts) {
		char *hashed = hash_name(name, err);
		free(name);
		name = hashed;
	}
	char *line = name ? line_of(name, key) : NULL;
	free(name);
	return line;
}

/* Makes the folder of ~/.ssh/known_hosts if it is missing. */
static bool make_folder(const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path) {
		return true;
	}
	char *folder = mem_strndup((struct span){path, (size_t)(slash - path)});
	bool ok = mkdir(folder, 0700) == 0 || errno == EEXIST ||
	          error_set_errno(err, errno, "making the folder %s", folder);
	free(folder);
	return ok;
}

/* Whether the file does not end with a newline. */
static bool lacks_newline(int fd)
{
	char last = '\n';
	off_t end = lseek(fd, 0, SEEK_END);
	return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

/* Writes once, so that lines that others append at the same time stay whole. */
static bool append_line(const char *path, const char *line, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening it");
	}
	size_t size = strlen(line) + 3;
	char *text = mem_alloc(size);
	int len = snprintf(text, size, "%s%s\n", lacks_newline(fd) ? "\n" : "", line);
	ssize_t written = write(fd, text, (size_t)len);
	int errnum = written < 0 ? errno : ENOSPC;
	free(text);
	return written == len || error_set_errno(err, errnum, "writing it");
}

bool known_hosts_add(const struct ssh_target *target, const struct host_key *key, struct error *err)
{
	const char *path =
		target->user_known_hosts_files ? target->user_known_hosts_files[0] : NULL;
	if (!path) {
		return error_set(err, ERROR_CONFIG,
			"no known hosts file to write to: name one with known-hosts in the "
			"profile, or with UserKnownHostsFile");
	}
	char *line = file_line(target, key, err);
	bool ok = line && make_folder(path, err) && append_line(path, line, err);
	free(line);
	return ok || error_prefix(err, "adding the host's key to %s", path);
}
