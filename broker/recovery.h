/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RECOVERY_H
#define BROKER_RECOVERY_H

#include "broker/collect.h"

/*
 * What a starting broker does for those that are gone: looks for records of its profile
 * whose broker is not there any more, and finishes what each has begun (broker/collect.h), one
 * after the other, the one that was used last first. What fails is logged and stays for the next
 * start. Never touches what a living broker has. Loop thread only.
 */
struct recovery;

enum { RECOVERY_RECORDS_MAX = 64 }; // at one start; the rest is for the next one

/*
 * Begins after `delay_ms`, and ends, wherever it is, `timeout_ms` after that. The fields `done`,
 * `data` and `is_discarded` of the configuration are not used.
 */
struct recovery *recovery_start(const struct collect_config *config, int delay_ms, int timeout_ms);

/* NULL is fine. */
void recovery_destroy(struct recovery *recovery);

#endif
