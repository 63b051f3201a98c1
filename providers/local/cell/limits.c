/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/limits.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/local/cell/filter.h"

void *limits_prepare(struct error *err)
{
	return filter_load_library(err) ? filter_build(err) : NULL;
}

static bool drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
	                           SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
	                           SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	bool is_done = prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0 &&
	               prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
	for (unsigned long cap = 0; is_done && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		is_done = prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0;
	}
	if (!is_done || syscall(SYS_capset, &header, none) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "dropping capabilities");
	}
	return true;
}

/* From <linux/landlock.h>, which may be older than this where we build. */
struct landlock_scopes {
	uint64_t files;
	uint64_t network;
	uint64_t scoped;
};
enum { LANDLOCK_VERSION = 1 << 0, SCOPE_ABSTRACT_SOCKETS = 1 << 0 };

int limits_landlock(int *out_errnum)
{
	int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
	*out_errnum = version < 0 ? errno : 0;
	return version;
}

static bool scope_sockets(struct error *err)
{
	const struct landlock_scopes scopes = {.scoped = SCOPE_ABSTRACT_SOCKETS};
	int errnum;
	if (limits_landlock(&errnum) < LIMITS_SCOPES_SINCE) {
		return true; // the broker decides: cell_keeps_abstract_sockets
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = (int)syscall(SYS_landlock_create_ruleset, &scopes, sizeof(scopes), 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) != 0) {
		errnum = errno;
		return error_set_errno(err, errnum, "keeping abstract sockets apart");
	}
	return true;
}

bool limits_apply(void *filter, struct error *err)
{
	if (!drop_capabilities(err)) {
		return false;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "forbidding new privileges");
	}
	return scope_sockets(err) && filter_load(filter, err);
}

bool limits_open_loopback(struct error *err)
{
	struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
	memcpy(request.ifr_name, "lo", sizeof("lo"));
	ATTR_CLEANUP(fd_cleanup) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "opening the cell's loopback");
	}
	return true;
}
