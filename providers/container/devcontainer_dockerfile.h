/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_DEVCONTAINER_DOCKERFILE_H
#define PROVIDERS_CONTAINER_DEVCONTAINER_DOCKERFILE_H

#include "base/error.h"
#include "base/span.h"

/*
 * Judges a Dockerfile that a repository brings (Dockerfile reference; containers-transports(5)).
 * The engine may not take files of this machine, images by their id, images that the broker has
 * built, or files of the network (ADD) for it. Builders read such a file differently, so each line
 * counts as the beginning of an instruction, also in a heredoc. What is unclear is refused.
 * devcontainer.c uses this.
 */

/* Whether the engine takes the name for an image of a registry, or one that the user has named. */
bool devcontainer_is_image(const char *image);

/* DOCKERFILE_REFUSED names the file and the line. */
bool devcontainer_check_dockerfile(
	struct span text, const char *path, struct error *err) ATTR_NODISCARD;

#endif
