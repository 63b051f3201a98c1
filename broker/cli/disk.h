/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DISK_H
#define BROKER_CLI_DISK_H

#include "broker/cli/sessions.h"
#include "broker/ledger/holdings.h"

/*
 * acp-broker du and prune: show what is kept in the state folder (broker/ledger/holdings.h), and
 * delete from it. Runs the loop while a copy is synced for the last time.
 */
bool disk_act(const struct sessions_means *means, struct error *err) ATTR_NODISCARD;

/* ---- shared by du and prune ---- */

bool disk_prune(const struct sessions_means *means, struct error *err) ATTR_NODISCARD;

enum { DISK_TEXT_SIZE = 32 };
/* "1.2 GiB", and "12d". Return text. */
const char *disk_size_text(char text[DISK_TEXT_SIZE], long long bytes);
const char *disk_age_text(char text[DISK_TEXT_SIZE], time_t used);

/*
 * Returns "copy of /home/u/project", quoted if necessary, or the path if the workspace is unknown.
 * The caller owns it.
 */
char *disk_name(const struct holding *holding);

#endif
