/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_IMAGE_H
#define PROVIDERS_EXEC_IMAGE_H

#include "base/attr.h"
#include "base/error.h"
#include "providers/exec/profile.h"
#include "providers/impl.h"

struct exec_image;

/*
 * Builds the image of the profile's recipe, unless the engine has it already. on_progress gets each
 * line that the engine prints meanwhile. Raises done once, never before it returns, unless the
 * image is cancelled first. The profile is borrowed until then.
 */
struct exec_image *exec_image_start(const struct provider_context *context,
	const struct exec_profile *profile, void (*on_progress)(void *data, const char *text),
	sandbox_done *done, void *data, struct error *err) ATTR_NODISCARD;

void exec_image_cancel(struct exec_image *image); // NULL is fine

#endif
