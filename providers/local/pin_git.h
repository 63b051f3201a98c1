/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PIN_GIT_H
#define PROVIDERS_LOCAL_PIN_GIT_H

#include "providers/local/pin_list.h"

/*
 * Finds what the user's git reads from a workspace beside the repositories there, and adds it to
 * the list: files of git's configuration (with those that they include, and ~/.gitconfig if it is a
 * link into the workspace), the files and the folder that core.hooksPath, core.attributesFile and
 * core.excludesFile name, and the links on the way to them. `home` has no links. It looks at each
 * repository in the list, and at the one that contains the workspace. Fails if a configuration
 * cannot be read to its end. Blocks; any thread. ERROR_LIMIT: there are too many.
 */
bool pin_git_find(struct pin_list *list, const char *root, const char *home,
	struct error *err) ATTR_NODISCARD;

#endif
