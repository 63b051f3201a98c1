/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_RUNNER_LIST_H
#define PROVIDERS_RUNNER_LIST_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/confine.h"

/*
 * Appends the entries of a folder below a root in the format of RUNNER_LIST (providers/mux/wire.h).
 * ERROR_LIMIT if they do not fit. Blocks.
 */
bool list_folder(const struct confine *confine, const char *path, struct buf *out,
	struct error *err) ATTR_NODISCARD;

#endif
