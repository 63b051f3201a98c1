/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/filter.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/library.h"

/* If the library's header is older than the call. */
#ifndef __SNR_io_uring_setup
#error "libseccomp is too old: 2.5 has io_uring"
#endif
#ifndef TIOCSTI
#define TIOCSTI 0x5412
#endif
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif
#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif

struct seccomp_functions {
	scmp_filter_ctx (*init)(uint32_t action);
	int (*set)(scmp_filter_ctx filter, enum scmp_filter_attr attr, uint32_t value);
	int (*add)(scmp_filter_ctx filter, uint32_t action, int syscall, unsigned count,
		const struct scmp_arg_cmp *args);
	int (*load)(const scmp_filter_ctx filter);
	void (*release)(scmp_filter_ctx filter);
};

static struct seccomp_functions seccomp;

static const char *const names[] = {"seccomp_init", "seccomp_attr_set", "seccomp_rule_add_array",
	"seccomp_load", "seccomp_release"};

static struct library_use use = {
	.library = &libraries[LIBRARY_SECCOMP],
	.reason = "CELL_UNAVAILABLE",
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &seccomp,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* Refused with any arguments. */
static const int calls[] = {
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
};

static const struct filter_rule uses[] = {
	{SCMP_SYS(ioctl), 1, {{1, FILTER_WHOLE_INT, TIOCSTI}}},
	{SCMP_SYS(ioctl), 1, {{1, FILTER_WHOLE_INT, TIOCLINUX}}},
	{SCMP_SYS(socket), 1, {{0, FILTER_WHOLE_INT, AF_PACKET}}},
	{SCMP_SYS(socket), 1, {{0, FILTER_WHOLE_INT, AF_VSOCK}}},
	{SCMP_SYS(socket), 2, {{0, FILTER_WHOLE_INT, AF_INET}, {1, FILTER_SOCKET_TYPES, SOCK_RAW}}},
	{SCMP_SYS(socket), 2,
		{{0, FILTER_WHOLE_INT, AF_INET6}, {1, FILTER_SOCKET_TYPES, SOCK_RAW}}},
	{SCMP_SYS(socket), 2,
		{{0, FILTER_WHOLE_INT, AF_INET}, {1, FILTER_SOCKET_TYPES, SOCK_PACKET}}},
};

bool filter_load_library(struct error *err)
{
	return library_open(&use, err);
}

/* Both return 0, or a negative errno. */
static int add_rule(scmp_filter_ctx filter, uint32_t action, const struct filter_rule *rule)
{
	struct scmp_arg_cmp args[FILTER_ARGS_MAX];
	for (unsigned k = 0; k < rule->count; k++) {
		args[k] = (struct scmp_arg_cmp){.arg = rule->args[k].index,
			.op = SCMP_CMP_MASKED_EQ,
			.datum_a = (uint32_t)rule->args[k].mask,
			.datum_b = rule->args[k].value};
	}
	return seccomp.add(filter, action, rule->call, rule->count, args);
}

static int add_refusals(scmp_filter_ctx filter)
{
	const uint32_t refused = SCMP_ACT_ERRNO(EPERM);
	int result = seccomp.set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	for (size_t i = 0; i < ARRAY_LENGTH(calls) && result == 0; i++) {
		result = seccomp.add(filter, refused, calls[i], 0, NULL);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(uses) && result == 0; i++) {
		result = add_rule(filter, refused, &uses[i]);
	}
	return result;
}

/* Takes over the filter; `result` is the result of adding all rules. */
static bool load(scmp_filter_ctx filter, int result, struct error *err)
{
	if (!filter) {
		result = -ENOMEM;
	} else if (result == 0) {
		result = seccomp.load(filter);
	}
	if (filter) {
		seccomp.release(filter);
	}
	return result == 0 || error_set_errno(err, -result, "filtering system calls");
}

void *filter_build(struct error *err)
{
	scmp_filter_ctx filter = seccomp.init(SCMP_ACT_ALLOW);
	int result = filter ? add_refusals(filter) : -ENOMEM;
	if (result == 0) {
		return filter;
	}
	if (filter) {
		seccomp.release(filter);
	}
	error_set_errno(err, -result, "filtering system calls");
	return NULL;
}

bool filter_load(void *filter, struct error *err)
{
	return load(filter, 0, err);
}

bool filter_apply_rules(
	enum filter_kind kind, const struct filter_rule *rules, size_t count, struct error *err)
{
	const uint32_t refused = SCMP_ACT_ERRNO(EPERM);
	bool is_list = kind == FILTER_ALLOWS;
	scmp_filter_ctx filter = seccomp.init(is_list ? refused : SCMP_ACT_ALLOW);
	int result = 0;
	for (size_t i = 0; filter && i < count && result == 0; i++) {
		result = add_rule(filter, is_list ? SCMP_ACT_ALLOW : refused, &rules[i]);
	}
	return load(filter, result, err);
}
