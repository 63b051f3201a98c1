/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_NAME_H
#define PROVIDERS_SSH_TARGET_NAME_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/* A destination as ssh(1) accepts it: NAME, USER@NAME, ssh://[USER@]NAME[:PORT]. */
struct ssh_target_name {
	char *host; // IPv6 without brackets
	char *user; // NULL: not given
	int port;   // 0: not given
};

/*
 * Fails with ERROR_CONFIG for a text that ssh would take for an option, has blanks or control
 * characters, or has an invalid port. Then there is nothing to finish.
 */
bool ssh_target_name_read(
	const char *text, struct ssh_target_name *out_name, struct error *err) ATTR_NODISCARD;

/*
 * The same for the last jump host of a ProxyJump list: [USER@]NAME[:PORT] or ssh://. `out_before`
 * is the list without this host, which the caller frees; NULL if that list is empty.
 */
bool ssh_target_name_read_jump(const char *jumps, struct ssh_target_name *out_name,
	char **out_before, struct error *err) ATTR_NODISCARD;

void ssh_target_name_finish(struct ssh_target_name *name);

#endif
