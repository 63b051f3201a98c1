/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HOSTS_H
#define PROVIDERS_SSH_HOSTS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The hosts that the user has given names in ~/.ssh/config, to choose from: plain names of `Host`
 * lines, each once, in the order of the file. Not those of files that it includes: `ssh -G` does
 * not list names.
 */
enum { SSH_HOSTS_MAX = 32 }; // more are left out

/* Appends them to the list. */
void ssh_hosts_read(struct span text, char ***names);

/* The same of the user's file. ERROR_UNAVAILABLE where there is no ssh. */
bool ssh_hosts_find(
	const char *const *environment, char ***names, struct error *err) ATTR_NODISCARD;

#endif
