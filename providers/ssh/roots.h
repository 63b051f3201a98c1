/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_ROOTS_H
#define PROVIDERS_SSH_ROOTS_H

#include "base/list.h"
#include "providers/impl.h"
#include "providers/remote/remote.h"

/*
 * The workspaces' folders in a sandbox on another machine: BASE/workspaces/NAME-HASH/NAME. For a
 * part of a repository, the repository's name and the way down to the part replace the last NAME
 * (base/user_repository.h). NAME comes from the local directory's name. HASH comes from this
 * machine (machine_id_read), the user, the profile, the local directory's real path, and a token if
 * there is one. So a directory always gets the same folder for one token, even if many machines
 * share an account there. No local path is looked up there, and the local directory need not exist.
 */
struct ssh_roots {
	struct sandbox *sandbox; // borrowed: the roots become its own, and it runs the scripts
	struct pool *pool;       // borrowed
	char *base;              // owned; absolute, there
	char *profile;           // owned
	char *state_folder;      // owned; NULL: none
	char *token;             // owned; NULL: the folders are found without one
	const char *program;     // static; the runner's file there; NULL: scripts make the folders
	const char *apart;       // borrowed; no workspace may contain it or lie in it; or NULL
	bool is_there;           // the folders must exist already
	struct remote *remote;   // borrowed; learns of each root; NULL: there is none
	struct list jobs;        // struct root_job
};

/*
 * `setting` is the profile's runtime-root; "~" and relative paths are below `home`. `token`, or
 * NULL, tells the folders of this sandbox from others of the profile. With `is_there`, the folders
 * must exist already: ERROR_NOT_FOUND with the reason SANDBOX_NOT_FOUND if they are gone.
 */
struct ssh_roots_config {
	struct sandbox *sandbox;
	struct pool *pool;
	const char *setting;
	const char *home;
	const char *profile;
	const char *state_folder; // or NULL
	const char *token;
	const char *program; // static; the runner's file there (runner/place.c), or NULL
	/*
	 * Borrowed: a folder here, which no agent may write, so no workspace may
	 * contain it or lie in it (DOCKERFILE_REFUSED). Or NULL.
	 */
	const char *apart;
	bool is_there;
	struct remote *remote; // or NULL
};
void ssh_roots_init(struct ssh_roots *roots, const struct ssh_roots_config *config);
void ssh_roots_finish(struct ssh_roots *roots); // also frees the sandbox's list of roots

/* These implement add_root and destroy of struct sandbox_impl. */
void ssh_roots_add(struct ssh_roots *roots, const char *local_root, sandbox_done *done, void *data);
void ssh_roots_remove(struct ssh_roots *roots, sandbox_done *done, void *data);

#endif
