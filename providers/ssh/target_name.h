/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_NAME_H
#define PROVIDERS_SSH_TARGET_NAME_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/* A destination as ssh(1) takes it: NAME, USER@NAME, ssh://[USER@]NAME[:PORT]. */
struct ssh_target_name {
	char *host; // IPv6 without brackets
	char *user; // NULL: not said
	int port;   // 0: not said
};

/*
 * ERROR_CONFIG for what ssh would take for an option, for what has blanks or control characters,
 * and for a port that is none. Nothing to finish on failure.
 */
bool ssh_target_name_read(
	const char *text, struct ssh_target_name *out_name, struct error *err) ATTR_NODISCARD;

/*
 * The same of one hop of a ProxyJump, [USER@]NAME[:PORT] or ssh://: the last of a list.
 * `out_before` is the list without it, the caller's to free, NULL where that is empty.
 */
bool ssh_target_name_read_jump(const char *jumps, struct ssh_target_name *out_name,
	char **out_before, struct error *err) ATTR_NODISCARD;

void ssh_target_name_finish(struct ssh_target_name *name);

#endif
