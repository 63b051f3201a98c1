/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_LOCK_H
#define PROVIDERS_LOCAL_COPY_LOCK_H

#include <stdatomic.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The lock of a copy's folder: one broker at a time makes the first copy in it. It ends with the
 * descriptor, so also with a kill. Waits, blocking, at most so long (prepare-timeout; 0: as long
 * as it takes): ERROR_TIMEOUT. ERROR_UNAVAILABLE once cancelled. ERROR_NOT_FOUND where the folder
 * is gone by then: who has it makes it anew.
 */
bool copy_lock(const char *folder, int timeout_ms, const atomic_bool *is_cancelled, int *out_fd,
	struct error *err) ATTR_NODISCARD;

/* Whether the folder is still the one of the descriptor: who had it before may have removed it. */
bool copy_is_in_place(int fd, const char *folder);

#endif
