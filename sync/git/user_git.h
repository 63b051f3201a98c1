/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_USER_GIT_H
#define SYNC_GIT_USER_GIT_H

#include "base/buf.h"
#include "base/user_repository.h"

/*
 * The program git at work in the user's repository, where the user has asked for it. It reads the
 * user's configuration, but runs nothing that this names: no hook, no filter, no file system
 * monitor, since each of them may be, or read, a file of the work tree that an agent has written.
 * It fetches from nowhere but local folders. Blocks.
 */
struct user_git {
	struct user_repository repository;
	char **environment; // owned
	char **words;       // owned: "git" and the settings that it gets
	char **filters;     // owned: the names of the filters that the user has; may be NULL
	char *draft;        // owned: an index to work on instead of the repository's, by its path
};

/*
 * `root` is a real path, the top of a repository's work tree; or it `may_be_part` of one.
 * ERROR_NOT_FOUND where it is not, or there is no git. To be finished in any case.
 */
bool user_git_open(struct user_git *git, const char *root, bool may_be_part,
	const char *const *environment, struct error *err) ATTR_NODISCARD;
void user_git_finish(struct user_git *git);

struct user_git_call {
	const char *const *words; // NULL-terminated, from the command on
	struct span input;
	struct buf *output; // initialised by the caller; NULL: nobody wants it
	bool is_on_draft;   // with the draft for an index
};

/* Fails with what git has said where its status is not 0. */
bool user_git_run(
	struct user_git *git, const struct user_git_call *call, struct error *err) ATTR_NODISCARD;

/* The same for a question: *out_yes for a status of 0, false for 1; all else fails. */
bool user_git_ask(struct user_git *git, const struct user_git_call *call, bool *out_yes,
	struct error *err) ATTR_NODISCARD;

/* The first line that it prints, which has to fit; "" where it prints none. */
bool user_git_line(struct user_git *git, const char *const *words, bool is_on_draft, char *line,
	size_t size, struct error *err) ATTR_NODISCARD;

#endif
