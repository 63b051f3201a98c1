/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_LIMIT_H
#define BROKER_LEDGER_RECORD_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Whether one more record of a profile may be created: running brokers work with fewer than `max`
 * of them. A broker that only finishes another's work (broker/ledger/record_owner.h) does not
 * count, and neither does an unreadable record. ERROR_LIMIT names max-sessions and the existing
 * records. Hold record_limit_lock from the check until the record is created, so that two brokers
 * cannot both take the last place. May block.
 */
bool record_limit_check(
	int folder_fd, const char *profile, size_t max, struct error *err) ATTR_NODISCARD;

/* Locks the folder of the records. Others hold this lock only while they write one file. */
bool record_limit_lock(int folder_fd, struct error *err) ATTR_NODISCARD;
void record_limit_unlock(int folder_fd);

#endif
