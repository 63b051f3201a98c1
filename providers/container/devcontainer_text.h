/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_DEVCONTAINER_TEXT_H
#define PROVIDERS_CONTAINER_DEVCONTAINER_TEXT_H

#include "providers/exec/recipe.h"

/*
 * The variables in the texts of a devcontainer.json (containers.dev, "Variables in
 * devcontainer.json"). The file is hostile: no variable of this machine's environment ends up in a
 * text. devcontainer_members.c uses this.
 */

#define DEVCONTAINER_FOLDER "${containerWorkspaceFolder}"

/*
 * Returns the text with its variables replaced; the caller frees it. NULL: it uses a variable that
 * the broker does not give. With `keeps_folder`, DEVCONTAINER_FOLDER stays as it is; otherwise it
 * is known only if the workspace is shown. Other texts in ${…} mean nothing and stay.
 */
char *devcontainer_expand(const struct exec_place *place, const char *text, bool keeps_folder);

/*
 * Appends the word to a line of sh, as one word. DEVCONTAINER_FOLDER in it stays a variable of the
 * shell.
 */
void devcontainer_quote(struct buf *line, const char *word);

#endif
