/* SPDX-License-Identifier: MIT */
#include "tests/unit/random_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/unit/tree_fixture.h"

enum { LINES = 6, TEXT_MAX = 4096 };

/* xorshift64* */
unsigned random_pick(struct random_worker *worker, unsigned below)
{
	unsigned long long x = worker->state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	worker->state = x;
	return (unsigned)((x * 0x2545f4914f6cdd1dULL >> 33) % below);
}

static void pick_path(struct random_worker *worker, const char *root, char *out, size_t size)
{
	static const char *const names[] = {"a", "b", "A", "main.c", "z z", "\xff\n"};
	int len = snprintf(out, size, "%s", root);
	unsigned depth = 1 + random_pick(worker, 3);
	for (unsigned i = 0; i < depth; i++) {
		len += snprintf(out + len, size - (size_t)len, "/%s",
			names[random_pick(worker, ARRAY_LENGTH(names))]);
	}
}

static void make_way(const char *root, char *path)
{
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		struct stat status;
		if (lstat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
			unlink(path);
		}
		mkdir(path, 0755);
		*slash = '/';
	}
	struct stat status;
	if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		tree_clear(path);
		rmdir(path);
	}
}

static void write_path(struct random_worker *worker, const char *path, const char *text)
{
	struct error err;
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		random_pick(worker, 4) ? 0644 : 0755);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(text), &err));
	close(fd);
}

static void step_write(struct random_worker *worker, const char *root, char *path)
{
	char text[TEXT_MAX];
	size_t len = 0;
	make_way(root, path);
	for (int i = 0; i < LINES; i++) {
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "line %u of %u\n", i, worker->writes);
	}
	worker->writes++;
	write_path(worker, path, text);
}

static size_t read_path(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);
	fd_close(&fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? (size_t)len : 0;
}

/* Another line in a text that is there, at a place of its own. */
void random_edit(struct random_worker *worker, const char *path)
{
	char text[TEXT_MAX], edited[TEXT_MAX + 64];
	struct stat status;
	if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode) ||
		read_path(path, text, sizeof(text) / 2) == 0) {
		return;
	}
	char *at = text;
	for (unsigned skip = random_pick(worker, LINES); skip > 0 && strchr(at, '\n'); skip--) {
		at = strchr(at, '\n') + 1;
	}
	char *end = strchr(at, '\n');
	snprintf(edited, sizeof(edited), "%.*sedit %u\n%s", (int)(at - text), text,
		worker->writes++, end ? end + 1 : "");
	write_path(worker, path, edited);
}

static void step_edit(struct random_worker *worker, const char *root, char *path)
{
	random_edit(worker, path);
}

static void step_delete(struct random_worker *worker, const char *root, char *path)
{
	struct stat status;
	if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		tree_clear(path);
		rmdir(path);
	} else {
		unlink(path);
	}
}

static void step_link(struct random_worker *worker, const char *root, char *path)
{
	char target[64];
	make_way(root, path);
	unlink(path);
	snprintf(target, sizeof(target), "../elsewhere/%u", worker->writes++);
	assert_int_equal(symlink(target, path), 0);
}

static void step_mode(struct random_worker *worker, const char *root, char *path)
{
	struct stat status;
	if (lstat(path, &status) == 0 && S_ISREG(status.st_mode)) {
		chmod(path, status.st_mode ^ 0111);
	}
}

static void step_rename(struct random_worker *worker, const char *root, char *path)
{
	char to[FIXTURE_PATH_MAX * 2];
	struct stat status;
	pick_path(worker, root, to, sizeof(to));
	size_t len = strlen(path);
	if (lstat(path, &status) == 0 && strncmp(path, to, len) != 0 &&
		strncmp(path, to, strlen(to)) != 0) {
		make_way(root, to);
		(void)(rename(path, to) == 0); // making the way may have removed it
	}
}

typedef void step(struct random_worker *worker, const char *root, char *path);
static step *const steps[] = {step_write, step_write, step_write, step_edit, step_edit, step_edit,
	step_delete, step_link, step_mode, step_rename};

void random_work(struct random_worker *worker, const char *root, unsigned count)
{
	char path[FIXTURE_PATH_MAX * 2];
	for (; count > 0; count--) {
		pick_path(worker, root, path, sizeof(path));
		steps[random_pick(worker, ARRAY_LENGTH(steps))](worker, root, path);
	}
}
