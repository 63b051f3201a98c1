/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_LOCK_H
#define PROVIDERS_LOCAL_COPY_LOCK_H

#include <stdatomic.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Locks a copy's folder, so that only one broker makes the first copy in it. The lock ends with the
 * descriptor, even if the process is killed. Blocks for at most timeout_ms (prepare-timeout; 0: no
 * limit), then fails with ERROR_TIMEOUT. ERROR_UNAVAILABLE once cancelled. ERROR_NOT_FOUND if the
 * last holder of the lock removed the folder: then make the folder again.
 */
bool copy_lock(const char *folder, int timeout_ms, const atomic_bool *is_cancelled, int *out_fd,
	struct error *err) ATTR_NODISCARD;

/*
 * Whether `folder` is still the folder of the descriptor. The last holder of the lock may have
 * removed it.
 */
bool copy_is_in_place(int fd, const char *folder);

#endif
