/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_LIMIT_H
#define BROKER_LEDGER_RECORD_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Whether one more record of a profile may be made: fewer than `max` of it are worked with by
 * brokers that live; who only finishes what another has begun (broker/ledger/record_owner.h) does
 * not count. What cannot be read is nobody's. ERROR_LIMIT names max-sessions and those there are.
 * Whoever asks and then makes one holds record_limit_lock, so that two who do it at once do not
 * both take the last place. May block.
 */
bool record_limit_check(
	int folder_fd, const char *profile, size_t max, struct error *err) ATTR_NODISCARD;

/* Of the folder itself; others hold it for as long as writing one file takes. */
bool record_limit_lock(int folder_fd, struct error *err) ATTR_NODISCARD;
void record_limit_unlock(int folder_fd);

#endif
