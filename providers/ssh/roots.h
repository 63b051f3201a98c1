/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_ROOTS_H
#define PROVIDERS_SSH_ROOTS_H

#include "base/list.h"
#include "providers/impl.h"

/*
 * The folders of the workspaces in a sandbox on another machine:
 * BASE/workspaces/NAME-HASH/NAME; of a part of a repository, that one's name and the way down
 * from there stand in the place of the last NAME (base/user_repository.h). NAME is made of the
 * local directory's, HASH of this machine (machine_id_read), the user, the profile and the local
 * directory's real path, and of a token where there is one: so one directory is one folder of each
 * token, from wherever many machines share an account there. Nothing of a local path is looked up
 * there, and a local directory need not exist.
 */
struct ssh_roots {
	struct sandbox *sandbox; // borrowed: whose roots they become, and who runs the scripts
	struct pool *pool;       // borrowed
	char *base;              // owned; absolute, there
	char *profile;           // owned
	char *state_folder;      // owned; NULL: there is none
	char *token;             // owned; NULL: the folders are found again without
	bool is_there;           // no folder is made
	struct list jobs;        // of struct root_job
};

/*
 * `setting` is the profile's runtime-root: "~" and what is not absolute is below `home`.
 * `token`: whose folders they are, besides the profile's; or NULL. `is_there`: what was made before
 * is wanted; ERROR_NOT_FOUND with reason SANDBOX_NOT_FOUND where it is gone.
 */
struct ssh_roots_config {
	struct sandbox *sandbox;
	struct pool *pool;
	const char *setting;
	const char *home;
	const char *profile;
	const char *state_folder; // or NULL
	const char *token;
	bool is_there;
};
void ssh_roots_init(struct ssh_roots *roots, const struct ssh_roots_config *config);
void ssh_roots_finish(struct ssh_roots *roots); // frees the sandbox's list of roots, too

/* As struct sandbox_impl has them: add_root and destroy. */
void ssh_roots_add(struct ssh_roots *roots, const char *local_root, sandbox_done *done, void *data);
void ssh_roots_remove(struct ssh_roots *roots, sandbox_done *done, void *data);

#endif
