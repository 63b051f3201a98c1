/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_FILTER_H
#define PROVIDERS_LOCAL_CELL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The system calls that nobody in a cell gets, by a seccomp filter: each fails with EPERM. They
 * lead to what no namespace separates (keys, terminals' input, what the kernel runs for others) or
 * have given more than they should too often. Sockets of AF_UNIX and AF_NETLINK are allowed:
 * today's agents end without them. Programs of another architecture get ENOSYS for every call.
 */
bool filter_load_library(struct error *err) ATTR_NODISCARD;

/* For the calling process and all that it starts, after no_new_privs; for good. */
bool filter_apply(struct error *err) ATTR_NODISCARD;

/*
 * A system call, where the low bits of some of its arguments are these. Each of these arguments is
 * an int.
 */
enum { FILTER_ARGS_MAX = 3, FILTER_WHOLE_INT = -1, FILTER_SOCKET_TYPES = 0xf };
struct filter_rule {
	int call;
	unsigned count; // of the arguments that matter
	struct {
		unsigned index;
		int mask;
		unsigned value;
	} args[FILTER_ARGS_MAX];
};

/*
 * As filter_apply, for a process of ours that is in no cell: it may make the calls that a rule
 * names, and no other, or every call but these.
 */
enum filter_kind { FILTER_ALLOWS, FILTER_REFUSES };
bool filter_apply_rules(enum filter_kind kind, const struct filter_rule *rules, size_t count,
	struct error *err) ATTR_NODISCARD;

#endif
