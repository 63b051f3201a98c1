/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_FILTER_H
#define PROVIDERS_LOCAL_CELL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * A seccomp filter for system calls that no process in a cell may use: each fails with EPERM. They
 * reach resources that no namespace separates (keys, terminal input, work that the kernel does for
 * others), or had security holes too often. Sockets of AF_UNIX and AF_NETLINK are allowed, because
 * today's agents end without them. For programs of another architecture, every call fails with
 * ENOSYS.
 */
bool filter_load_library(struct error *err) ATTR_NODISCARD;

/* Makes the filter, which takes a while; NULL on failure. Give it to filter_load. */
void *filter_build(struct error *err) ATTR_NODISCARD;

/*
 * Permanently filters the calling process and everything it starts. Needs no_new_privs. Takes over
 * the filter.
 */
bool filter_load(void *filter, struct error *err) ATTR_NODISCARD;

/*
 * Matches a system call if these arguments have these low bits. Each such argument must be an int.
 */
enum { FILTER_ARGS_MAX = 3, FILTER_WHOLE_INT = -1, FILTER_SOCKET_TYPES = 0xf };
struct filter_rule {
	int call;
	unsigned count; // number of arguments to compare
	struct {
		unsigned index;
		int mask;
		unsigned value;
	} args[FILTER_ARGS_MAX];
};

/*
 * Builds and loads a filter, for a process of ours outside of a cell. With FILTER_ALLOWS it may
 * make only the calls of the rules, with FILTER_REFUSES all calls except these.
 */
enum filter_kind { FILTER_ALLOWS, FILTER_REFUSES };
bool filter_apply_rules(enum filter_kind kind, const struct filter_rule *rules, size_t count,
	struct error *err) ATTR_NODISCARD;

#endif
