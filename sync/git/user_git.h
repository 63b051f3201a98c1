/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_USER_GIT_H
#define SYNC_GIT_USER_GIT_H

#include "base/buf.h"
#include "base/user_repository.h"

/*
 * Runs the program git in the user's repository, because the user asked for it. Git reads the
 * user's configuration but runs no command from it: no hook, no filter, no file system monitor.
 * Such a command could be, or read, a file of the work tree that an agent has written. Git fetches
 * only from local folders. Blocks.
 */
struct user_git {
	struct user_repository repository;
	char **environment; // owned
	char **words;       // owned: "git" and its settings
	char **filters;     // owned: the names of the user's filters; may be NULL
	char *draft;        // owned: path of an index to use instead of the repository's
};

/*
 * `root` is a real path: the top of a repository's work tree or, if `may_be_part`, a folder in one.
 * ERROR_NOT_FOUND if it is not, or without git. Finish it in any case.
 */
bool user_git_open(struct user_git *git, const char *root, bool may_be_part,
	const char *const *environment, struct error *err) ATTR_NODISCARD;
void user_git_finish(struct user_git *git);

struct user_git_call {
	const char *const *words; // NULL-terminated, from the command on
	struct span input;
	struct buf *output; // initialised by the caller; NULL: ignore the output
	bool is_on_draft;   // with the draft as the index
};

/* Fails with git's own message if its status is not 0. */
bool user_git_run(
	struct user_git *git, const struct user_git_call *call, struct error *err) ATTR_NODISCARD;

/*
 * For a command that answers by its exit status: 0 sets *out_yes to true, 1 sets it to false; any
 * other status is a failure.
 */
bool user_git_ask(struct user_git *git, const struct user_git_call *call, bool *out_yes,
	struct error *err) ATTR_NODISCARD;

/* The first line of its output, which must fit; "" if there is no output. */
bool user_git_line(struct user_git *git, const char *const *words, bool is_on_draft, char *line,
	size_t size, struct error *err) ATTR_NODISCARD;

#endif
