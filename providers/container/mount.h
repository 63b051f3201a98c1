/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_MOUNT_H
#define PROVIDERS_CONTAINER_MOUNT_H

#include "providers/exec/profile.h"

/*
 * The engine's words for `mount = same-path`: the container has the workspace at its own path, and
 * everybody in it is the workspace's user. podman and docker take the same words, except that
 * podman maps user ids if it runs as an ordinary user.
 */

/*
 * Refuses an engine that the environment's variables place on another machine (ERROR_CONFIG): it
 * would mount a folder of that machine. `engine` is its path or name.
 */
bool container_mount_check(
	const char *engine, const char *const *environment, struct error *err) ATTR_NODISCARD;

/* Implements exec_platform.show. */
bool container_mount_show(struct exec_profile *profile, const struct exec_show *show,
	struct error *err) ATTR_NODISCARD;

#endif
