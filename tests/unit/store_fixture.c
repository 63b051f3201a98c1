/* SPDX-License-Identifier: MIT */
#include "tests/unit/store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum { OUTPUT_MAX = 16 << 20 };

int place_setup(void **state)
{
	struct place *place = mem_alloc_zero(sizeof(*place));
	struct error err;
	snprintf(place->folder, sizeof(place->folder), "/tmp/acp-store-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	snprintf(place->store_path, sizeof(place->store_path), "%.400s/state/store", place->folder);
	snprintf(place->root, sizeof(place->root), "%.400s/work", place->folder);
	assert_int_equal(mkdir(place->root, 0755), 0);
	if (!store_open(&place->store, place->store_path, 0, &err)) {
		fail_msg("%s", err.text);
	}
	*state = place;
	return 0;
}

int place_teardown(void **state)
{
	struct place *place = *state;
	store_close(&place->store);
	place_run(place, "cd / && chmod -R u+rwx \"$PLACE\" && rm -rf \"$PLACE\"");
	free(place);
	return 0;
}

/* The child's environment: nothing of the user's git. */
static void become_shell(struct place *place, const char *script)
{
	char home[FIXTURE_PATH_MAX + 8], folder[FIXTURE_PATH_MAX + 8];
	snprintf(home, sizeof(home), "HOME=%s", place->folder);
	snprintf(folder, sizeof(folder), "PLACE=%s", place->folder);
	const char *env[] = {home, folder, "PATH=/usr/local/bin:/usr/bin:/bin",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "LC_ALL=C",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow",
		"GIT_CONFIG_VALUE_0=always", "GIT_CONFIG_KEY_1=init.defaultBranch",
		"GIT_CONFIG_VALUE_1=main", NULL};
	const char *argv[] = {"sh", "-ec", script, NULL};
	if (chdir(place->root) == 0) {
		execve("/bin/sh", (char *const *)argv, (char *const *)env);
	}
	_exit(127);
}

char *place_ask(struct place *place, const char *script)
{
	int fds[2];
	struct error err;
	struct buf output;
	assert_true(fd_pipe(fds, &err));
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		become_shell(place, script);
	}
	fd_close(&fds[1]);
	buf_init(&output, OUTPUT_MAX);
	ssize_t count;
	do {
		char *to = buf_reserve(&output, 4096, &err);
		assert_non_null(to);
		count = read(fds[0], to, 4095);
		assert_true(count >= 0);
		buf_commit(&output, (size_t)count);
	} while (count > 0);
	fd_close(&fds[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fail_msg("status %d of: %s", status, script);
	}
	char *text = mem_strndup(buf_span(&output));
	buf_finish(&output);
	return text;
}

void place_run(struct place *place, const char *script)
{
	free(place_ask(place, script));
}

const char *place_path(struct place *place, const char *name)
{
	static char paths[8][2 * FIXTURE_PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", place->root, name);
	return path;
}

void place_write(struct place *place, const char *name, const char *content)
{
	struct error err;
	int fd = open(place_path(place, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), &err));
	close(fd);
}

git_oid place_take_as(struct place *place, struct snapshot_request request)
{
	struct error err;
	request.root = place->root;
	request.home = place->folder;
	request.cache = "work";
	if (!snapshot_take(&place->store, &request, &place->last, &err)) {
		fail_msg("%s", err.text);
	}
	return place->last.tree;
}

git_oid place_take(struct place *place, const git_oid *base)
{
	return place_take_as(
		place, (struct snapshot_request){.base = base, .limits = snapshot_default_limits});
}

static void assert_listed(
	struct place *place, const git_oid *tree, const char *format, const char *expected)
{
	char script[FIXTURE_PATH_MAX], hex[GIT_OID_HEXSZ + 1];
	place->store.git->oid_tostr(hex, sizeof(hex), tree);
	snprintf(script, sizeof(script), "git --git-dir=../state/store ls-tree -r %s %s", format,
		hex);
	char *said = place_ask(place, script);
	assert_string_equal(said, expected);
	free(said);
}

void assert_tree(struct place *place, const git_oid *tree, const char *expected)
{
	assert_listed(place, tree, "--format='%(objectmode) %(path)'", expected);
}

void assert_paths(struct place *place, const git_oid *tree, const char *expected)
{
	assert_listed(place, tree, "--name-only", expected);
}
