/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CONTAINED_H
#define TESTS_CONFORMANCE_CONTAINED_H

#include <stdbool.h>

#include "providers/provider.h"

/*
 * The provider for containers, with a real podman and runc. All cases share its storage and an
 * image without programs of its own; each sandbox has a container, which the end of its provider
 * removes.
 */
struct provider *contained_provider_create(
	const struct provider_context *context, const char *folder);

/* The same with mount = same-path: the container has the folder "workspace" in `folder`. */
struct provider *contained_provider_create_mounted(
	const struct provider_context *context, const char *folder);

/*
 * Makes the storage and the image, and sets the variables by which podman finds them. Call it
 * before anything uses the environment. Returns why it cannot, for people; NULL on success.
 */
const char *contained_start(void);
void contained_finish(void); // fine without contained_start

#endif
