/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOSTS_H
#define PROVIDERS_SSH_HOSTS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The hosts that the user names in ~/.ssh/config, for a choice: plain names of `Host` lines,
 * without duplicates, in the order of the file. Files that it includes are not read, because `ssh
 * -G` lists no names.
 */
enum { SSH_HOSTS_MAX = 32 }; // the rest is left out

/* Appends them to the list. */
void ssh_hosts_read(struct span text, char ***names);

/* The same for the user's own file. ERROR_UNAVAILABLE without ssh. */
bool ssh_hosts_find(
	const char *const *environment, char ***names, struct error *err) ATTR_NODISCARD;

#endif
