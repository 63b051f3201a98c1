/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_COMMANDS_H
#define PROVIDERS_CONTAINER_COMMANDS_H

#include "providers/exec/profile.h"

/*
 * The keys of `backend = container`, and the engine's commands for them, which a profile of
 * `backend = exec` would name itself. podman and docker take the same words.
 *
 * With `image` or `dockerfile`, start makes a container and mounts the runner's folder in it. The
 * runner is the first process, and starts by itself, so the image needs no shell and no other
 * program. With `container`, the broker works in a container that somebody else has made, and
 * neither starts nor ends it; it copies the runner's folder there.
 */
enum { CONTAINER_OWN_KEYS = 13, CONTAINER_KEYS = CONTAINER_OWN_KEYS + EXEC_COMMON_COUNT };
extern const struct setting_key container_keys[CONTAINER_KEYS];
extern const struct exec_platform container_platform;

/* Whether it is an image's name that the engine cannot take for an option; ERROR_CONFIG. */
bool container_check_image(const char *image, struct error *err) ATTR_NODISCARD;

/* mount = same-path */
bool container_shows_workspace(const struct settings *settings);

#define CONTAINER_RUNNER_FOLDER "/.acp-broker"

#endif
