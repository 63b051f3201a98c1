/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/libc.h"

static const char *const step_names[] = {
	[PROBE_NAMESPACES] = "making namespaces",
	[PROBE_IDENTITY] = "mapping the user in a namespace",
	[PROBE_MOUNTS] = "making the cell's files",
	[PROBE_PROC] = "making the cell's /proc",
	[PROBE_PORTS] = "making the sockets of network = allow",
};

static ssize_t read_small(const char *path, char *text, size_t size)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, size - 1);
	text[count > 0 ? count : 0] = '\0';
	return count;
}

static int read_number(const char *path)
{
	char text[32];
	return read_small(path, text, sizeof(text)) > 0 ? (int)strtol(text, NULL, 10) : -1;
}

static int read_filter(void)
{
	static const char name[] = "\nSeccomp:";
	char text[4096];
	const char *line =
		read_small("/proc/self/status", text, sizeof(text)) > 0 ? strstr(text, name) : NULL;
	return line ? strtol(line + sizeof(name) - 1, NULL, 10) != 0 : -1;
}

void probe_read(struct probe_facts *facts)
{
	facts->allows_users = read_number("/proc/sys/kernel/unprivileged_userns_clone");
	facts->namespaces_max = read_number("/proc/sys/user/max_user_namespaces");
	facts->apparmor_forbids =
		read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	facts->is_filtered = read_filter();
}

/* What the user can do, or NULL. */
static const char *advice_for(enum probe_step step, int errnum, const struct probe_facts *facts)
{
	if (step == PROBE_PORTS) {
		return "this kernel's nf_tables cannot redirect: load the modules nft_chain_nat "
		       "and nft_redir as root, or set network = blocked or network = open";
	}
	if (errnum == ENOSYS && facts->is_filtered != 1) {
		return "this kernel lacks a system call that confinement needs: use Linux 5.12 or "
		       "newer";
	}
	if (facts->allows_users == 0) {
		return "kernel.unprivileged_userns_clone is 0: run `sysctl -w "
		       "kernel.unprivileged_userns_clone=1` as root";
	}
	if (facts->namespaces_max == 0 || (step == PROBE_NAMESPACES && errnum == ENOSPC)) {
		return "user.max_user_namespaces allows no more namespaces: run `sysctl -w "
		       "user.max_user_namespaces=15000` as root";
	}
	if (step == PROBE_PROC) {
		return "this /proc is partly hidden, as in a container: start the container with "
		       "`--security-opt systempaths=unconfined`";
	}
	if (facts->is_filtered == 1) {
		return "a seccomp filter forbids it, as in a container: start the container with "
		       "`--security-opt seccomp=unconfined`";
	}
	if (facts->apparmor_forbids == 1) {
		return "kernel.apparmor_restrict_unprivileged_userns is 1: as root, put the "
		       "profile examples/apparmor/acp-broker with the path of this program into "
		       "/etc/apparmor.d, and run `apparmor_parser -r /etc/apparmor.d/acp-broker`";
	}
	return NULL;
}

/* Whether the machine forbids it, whatever other processes do. */
static bool is_forbidden(enum probe_step step, int errnum, const struct probe_facts *facts)
{
	static const int forbidding[] = {EPERM, EACCES, ENOSYS, EINVAL, ENODEV, EOPNOTSUPP};
	bool is = (errnum == ENOSPC && facts->namespaces_max == 0) || step == PROBE_PORTS;
	for (size_t i = 0; i < ARRAY_LENGTH(forbidding); i++) {
		is = is || errnum == forbidding[i];
	}
	return is;
}

bool probe_explain(
	struct error *err, enum probe_step step, int errnum, const struct probe_facts *facts)
{
	const char *advice = advice_for(step, errnum, facts);
	const char *why = libc_error_text(errnum);
	bool is = is_forbidden(step, errnum, facts);
	return error_set_reason(err, is ? ERROR_UNAVAILABLE : ERROR_LIMIT,
		is ? "CELL_UNAVAILABLE" : NULL, "confining an agent: %s: %s%s%s", step_names[step],
		why ? why : "unknown error", advice ? "; " : "", advice ? advice : "");
}

bool probe_explain_landlock(
	struct error *err, int version, int errnum, const struct probe_facts *facts)
{
	const char *advice = "this kernel has no Landlock: use Linux 6.12 or newer with "
			     "CONFIG_SECURITY_LANDLOCK";
	if (version >= 0) {
		advice = "this kernel's Landlock has no scopes: use Linux 6.12 or newer";
	} else if (errnum == EOPNOTSUPP) {
		advice = "Landlock is switched off: add landlock to the kernel's parameter `lsm=`";
	} else if (facts->is_filtered == 1) {
		advice = "a seccomp filter forbids Landlock, as in a container: start the "
			 "container with `--security-opt seccomp=unconfined`";
	}
	return error_set_reason(err, ERROR_UNAVAILABLE, "CELL_UNAVAILABLE",
		"confining an agent: it could connect to abstract sockets of this machine; %s, or "
		"give it its own network: network = blocked",
		advice);
}
