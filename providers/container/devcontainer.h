/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_DEVCONTAINER_H
#define PROVIDERS_CONTAINER_DEVCONTAINER_H

#include "providers/exec/recipe.h"

/*
 * Reads the devcontainer.json of a workspace (containers.dev, "Dev Container metadata reference"),
 * on the pool. The file comes with a repository, so it is hostile. It may choose the image, or the
 * Dockerfile and the folder for its build inside of the workspace, and what the container is like
 * inside (devcontainer_members.h). Nothing that it says runs on this machine, shows one of its
 * folders, or changes the rights of the container. The names of all other members that would change
 * something end up in `ignored`.
 */
exec_recipe_find devcontainer_find;

#endif
