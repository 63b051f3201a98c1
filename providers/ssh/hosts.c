/* SPDX-License-Identifier: MIT */
#include "providers/ssh/hosts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/real_path.h"
#include "base/words.h"

enum { CONFIG_MAX = 1 << 20, NAME_MAX_BYTES = 255 };

/* A plain host name without pattern, quotes or options. */
static bool is_plain(struct span word)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
	for (size_t i = 0; i < word.len; i++) {
		if (!word.data[i] || !strchr(allowed, word.data[i])) {
			return false;
		}
	}
	return word.len > 0 && word.len <= NAME_MAX_BYTES && word.data[0] != '-';
}

/* "Host one two", also "Host=one" (ssh_config(5)). */
static void read_line(struct span line, char ***names)
{
	static const char blanks[] = " \t\r";
	struct span word = span_take_word(&line, " \t\r=");
	if (word.len != 4 || strncasecmp(word.data, "Host", word.len) != 0) {
		return;
	}
	while (line.len > 0 && (line.data[0] == '=' || line.data[0] == ' ')) {
		line = (struct span){line.data + 1, line.len - 1};
	}
	while ((word = span_take_word(&line, blanks)).len > 0 && word.data[0] != '#') {
		char *name = mem_strndup(word);
		if (is_plain(word) && words_count(*names) < SSH_HOSTS_MAX &&
			!words_contain((const char *const *)*names, name)) {
			words_append(names, name);
		}
		free(name);
	}
}

void ssh_hosts_read(struct span text, char ***names)
{
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		read_line((struct span){text.data, len}, names);
		len += end != NULL;
		text = (struct span){text.data + len, text.len - len};
	}
}

/* A file that cannot be read names no hosts. */
static void read_file(const char *path, char ***names)
{
	struct buf text;
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return;
	}
	buf_init(&text, CONFIG_MAX);
	char *to = buf_reserve(&text, CONFIG_MAX, NULL);
	ssize_t count = to ? read(fd, to, CONFIG_MAX) : 0;
	buf_commit(&text, count > 0 ? (size_t)count : 0);
	ssh_hosts_read(buf_span(&text), names);
	buf_finish(&text);
}

bool ssh_hosts_find(const char *const *environment, char ***names, struct error *err)
{
	const char *home = environment_get(environment, "HOME");
	const char *path = environment_get(environment, "PATH");
	char *program = path ? path_find_program("ssh", path) : NULL;
	bool has_ssh = program != NULL;
	free(program);
	if (!has_ssh) {
		return error_set(err, ERROR_UNAVAILABLE,
			"ssh is not on PATH: install it (apt-get install openssh-client)");
	}
	if (home && home[0] == '/') {
		char *file = path_join(home, ".ssh/config");
		read_file(file, names);
		free(file);
	}
	return true;
}
