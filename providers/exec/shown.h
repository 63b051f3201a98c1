/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_SHOWN_H
#define PROVIDERS_EXEC_SHOWN_H

#include "providers/exec/profile.h"
#include "providers/local/pin_list.h"
#include "providers/remote/remote.h"

/*
 * The workspace that an instance shows at its own path (exec_profile.shows_workspace), so nothing
 * is synced. It finds what must be pinned there before the instance is made (pin_list.h), tells the
 * platform, checks the sandbox's roots, and looks later for files without a pin. An instance cannot
 * get another folder, or another pin, once it runs. Loop thread; the worker pool reads the files.
 */
struct exec_shown;

struct exec_shown_config {
	const struct provider_context *context;
	struct exec_profile *profile;               // borrowed; its platform's `show` changes it
	const struct settings *settings;            // only during exec_shown_create
	struct sandbox *sandbox;                    // borrowed; gets the roots
	const char *directory;                      // only during exec_shown_create; may be NULL
	struct pin_rules rules;                     // without `home`
	void (*tell)(void *data, const char *text); // receives sentences for the user
	void *data;
};

/*
 * `done` is called once, after this has returned. ERROR_CONFIG: the folder must not be shown, see
 * pin_place.h.
 */
struct exec_shown *exec_shown_create(const struct exec_shown_config *config, sandbox_done *done,
	struct error *err) ATTR_NODISCARD;
void exec_shown_destroy(struct exec_shown *shown); // NULL is fine

/*
 * Checks that the instance has what exec_shown_create has found to be mounted. Call it before
 * anything of the user's runs in the instance, and after remote_set_sandbox. `done` is not called
 * after exec_shown_destroy. EXEC_MADE_OTHERWISE: the instance has other files, or a file belongs to
 * another user there.
 */
void exec_shown_check(
	struct exec_shown *shown, struct remote *remote, sandbox_done *done, void *data);

/*
 * Implements sandbox_add_root, after exec_shown_check. ERROR_UNAVAILABLE: the instance shows
 * another folder. ERROR_CONFIG for a path with a link. EXEC_MADE_OTHERWISE: what the instance has
 * there is not that folder, or belongs to another user there.
 */
void exec_shown_add_root(struct exec_shown *shown, struct remote *remote, const char *local,
	sandbox_done *done, void *data);

/* These implement sandbox_look and sandbox_is_pinned. NULL: nothing is shown. */
void exec_shown_look(struct exec_shown *shown);
bool exec_shown_is_pinned(const struct exec_shown *shown, const char *path);

#endif
