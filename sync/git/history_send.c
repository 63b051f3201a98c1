/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sync/git/history.h"

enum { LINE_SIZE = GIT_OID_HEXSZ + 1 };

/* ---- by git ---- */

/*
 * Appends those of the runtime's commits that exist here too, because git fails if it does not know
 * one. They may be missing after `commit --amend` and gc, and if the workspace was cloned again.
 */
static void list_shared(const struct history *history, struct buf *out)
{
	const struct git *git = git_open(NULL);
	struct span have = buf_span(&history->have);
	git_repository *repository = NULL;
	git_odb *odb = NULL;
	if (!git) {
		return;
	}
	bool is_open = git->repository_open_ext(&repository, history->git_folder,
			       GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
	               git->repository_odb(&odb, repository) == 0;
	for (size_t at = 0; is_open && at < have.len; at += LINE_SIZE) {
		git_oid id;
		if (git->oid_fromstr(&id, have.data + at) == 0 &&
			git->odb_exists_ext(odb, &id, GIT_ODB_LOOKUP_NO_REFRESH) == 1) {
			(void)!buf_append(out, (struct span){have.data + at, LINE_SIZE}, NULL);
		}
	}
	git->odb_free(odb);
	git->repository_free(repository);
	git_close();
}

static bool write_revisions(
	const struct history *history, const struct buf *shared, int fd, struct error *err)
{
	struct span refs = buf_span(&history->refs);
	struct span have = buf_span(shared);
	struct buf text;
	buf_init(&text, 4 << 20);
	bool fits = !history->id[0] || buf_append_format(&text, err, "%s\n", history->id);
	for (size_t at = 0; fits && at < refs.len;) {
		const char *end = memchr(refs.data + at, '\n', refs.len - at);
		struct span id = {refs.data + at, GIT_OID_HEXSZ};
		fits = buf_append(&text, id, err) && buf_append(&text, SPAN_LITERAL("\n"), err);
		at = (size_t)(end - refs.data) + 1;
	}
	for (size_t at = 0; fits && at < have.len; at += LINE_SIZE) {
		struct span line = {have.data + at, LINE_SIZE};
		fits = buf_append(&text, SPAN_LITERAL("^"), err) && buf_append(&text, line, err);
	}
	bool written = fits && fd_write_all(fd, buf_span(&text), err);
	buf_finish(&text);
	return written;
}

/* The program's ends of the pipes. */
struct ends {
	int in, out, words;
};

static bool spawn(
	const struct history *history, bool is_near, const struct ends *ends, pid_t *out_pid)
{
	char folder[4200];
	text_whole(folder, sizeof(folder), "--git-dir=%s", history->git_folder);
	const char *const argv[] = {"git", folder, "-c", "core.hooksPath=/dev/null", "-c",
		"core.fsmonitor=false", "-c", "pack.threads=2", "-c",
		is_near ? "pack.compression=0" : "pack.compression=1", "-c", "pack.window=0",
		"pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset",
		*history->promisor ? "--missing=allow-promisor" : NULL, NULL};
	static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none", // the equivalent for git before 2.45
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends->in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends->out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends->words, STDERR_FILENO);
	int result = posix_spawnp(
		out_pid, "git", &actions, &attributes, (char *const *)argv, (char *const *)env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return result == 0;
}

/* Reads its stderr, joined into one line; at most what a pipe holds. */
static void read_words(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t count = 1;
	while (count > 0 && length < size - 1) {
		count = read(fd, text + length, size - 1 - length);
		length += count > 0 ? (size_t)count : 0;
	}
	text[length] = '\0';
	for (char *at = text; *at; at++) {
		*at = (unsigned char)*at < ' ' ? ' ' : *at;
	}
	while (length > 0 && text[length - 1] == ' ') {
		text[--length] = '\0';
	}
}

static bool wait_for(pid_t pid, int words, struct error *err)
{
	int status = 0;
	char text[160];
	pid_t waited;
	do {
		waited = waitpid(pid, &status, 0);
	} while (waited < 0 && errno == EINTR);
	/*
	 * If another part of the program has reaped it, the other side sees whether the pack is
	 * complete. If the other side stopped reading, it says why.
	 */
	if (waited < 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) ||
		(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
		return true;
	}
	read_words(words, text, sizeof(text));
	return error_set(err, ERROR_SYSTEM, "git pack-objects failed: %s", text);
}

/* ---- by libgit2 ---- */

static int write_piece(void *data, size_t size, void *payload)
{
	return fd_write_all(*(const int *)payload, (struct span){data, size}, NULL) ? 0 : -1;
}

/* Adds a tag's commit, if it has one, and the tag itself, which a walk does not visit. */
static bool walk_from(const struct git *git, git_revwalk *walk, git_odb *odb,
	git_packbuilder *builder, const git_oid *id)
{
	size_t size;
	git_object_t type;
	if (git->odb_read_header(&size, &type, odb, id) < 0) {
		return false;
	}
	if (type == GIT_OBJECT_COMMIT) {
		return git->revwalk_push(walk, id) == 0;
	}
	(void)!git->revwalk_push(walk, id);
	return git->packbuilder_insert_recur(builder, id, NULL) == 0;
}

static bool walk_lines(const struct git *git, git_revwalk *walk, git_odb *odb,
	git_packbuilder *builder, struct span lines)
{
	for (size_t at = 0; at < lines.len;) {
		char hex[GIT_OID_HEXSZ + 1];
		git_oid id;
		memcpy(hex, lines.data + at, GIT_OID_HEXSZ);
		hex[GIT_OID_HEXSZ] = '\0';
		const char *end = memchr(lines.data + at, '\n', lines.len - at);
		at = (size_t)(end - lines.data) + 1;
		if (git->oid_fromstr(&id, hex) < 0) {
			return false;
		}
		if (!builder) {
			git->revwalk_hide(walk, &id); // it may be missing here
		} else if (!walk_from(git, walk, odb, builder, &id)) {
			return false;
		}
	}
	return true;
}

static bool send_by_library(const struct history *history, int fd, struct error *err)
{
	const struct git *git = git_open(err);
	git_repository *repository = NULL;
	git_revwalk *walk = NULL;
	git_packbuilder *builder = NULL;
	git_odb *odb = NULL;
	if (!git) {
		return false;
	}
	char head[GIT_OID_HEXSZ + 2];
	text_whole(head, sizeof(head), "%s%s", history->id, history->id[0] ? "\n" : "");
	bool sent = git->repository_open_ext(&repository, history->git_folder,
			    GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
	            git->revwalk_new(&walk, repository) == 0 &&
	            git->repository_odb(&odb, repository) == 0 &&
	            git->packbuilder_new(&builder, repository) == 0 &&
	            walk_lines(git, walk, odb, builder, span_of(head)) &&
	            walk_lines(git, walk, odb, builder, buf_span(&history->refs)) &&
	            walk_lines(git, walk, odb, NULL, buf_span(&history->have)) &&
	            git->packbuilder_insert_walk(builder, walk) == 0 &&
	            git->packbuilder_foreach(builder, write_piece, &fd) == 0;
	if (!sent) {
		error_set_git(git, err, "sending the workspace's history");
	}
	git->packbuilder_free(builder);
	git->revwalk_free(walk);
	git->odb_free(odb);
	git->repository_free(repository);
	git_close();
	return sent;
}

static void close_both(int fds[2])
{
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

bool history_send(struct history *history, bool is_near, int fd, struct error *err)
{
	int in[2] = {-1, -1}, words[2] = {-1, -1};
	pid_t pid;
	/* Text that does not fit is lost: nobody reads before the program ends. */
	if (!fd_pipe(in, err) || !fd_pipe(words, err) || !fd_set_nonblock(words[0], true, err) ||
		!fd_set_nonblock(words[1], true, err)) {
		close_both(in);
		close_both(words);
		return false;
	}
	struct buf shared;
	buf_init(&shared, history->have.max);
	list_shared(history, &shared);
	bool spawned = spawn(history, is_near, &(struct ends){in[0], fd, words[1]}, &pid);
	fd_close(&in[0]);
	fd_close(&words[1]);
	struct error write_err;
	bool written = spawned && write_revisions(history, &shared, in[1], &write_err);
	fd_close(&in[1]);
	buf_finish(&shared);
	bool sent = spawned ? wait_for(pid, words[0], err) : send_by_library(history, fd, err);
	fd_close(&words[0]);
	if (!spawned) {
		return sent;
	}
	if (sent && !written) {
		*err = write_err;
	}
	return sent && written;
}
