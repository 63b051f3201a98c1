/* SPDX-License-Identifier: MIT */
#include "providers/local/net/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netfilter_ipv4.h> // after netinet/in.h

#include "providers/local/cell/filter.h"

enum { OPEN_FILES_MAX = 1024 };

/* Pastes the names here, because a C library may have macros with the same names. */
#define WHOLE(name)                                                                                \
	{                                                                                          \
		.call = __SNR_##name                                                               \
	}
#define WITH(name, at, bits, is)                                                                   \
	{                                                                                          \
		.call = __SNR_##name, .count = 1, .args = { {at, bits, is} }                       \
	}
#define OPTION(name, level, option)                                                                \
	{                                                                                          \
		.call = __SNR_##name, .count = 2, .args = {                                        \
			{1, FILTER_WHOLE_INT, level},                                              \
			{2, FILTER_WHOLE_INT, option}                                              \
		}                                                                                  \
	}
#define STREAMS_OF(family)                                                                         \
	{                                                                                          \
		.call = SCMP_SYS(socket), .count = 3, .args = {                                    \
			{0, FILTER_WHOLE_INT, family},                                             \
			{1, FILTER_SOCKET_TYPES, SOCK_STREAM},                                     \
			{2, FILTER_WHOLE_INT, 0}                                                   \
		}                                                                                  \
	}

/* What libev, the C library's memory and net/pair.c need. */
static const struct filter_rule base_rules[] = {
	WHOLE(accept4),
	WHOLE(brk),
	WHOLE(clock_gettime),
	WHOLE(close),
	WHOLE(epoll_ctl),
	WHOLE(epoll_pwait),
	WHOLE(epoll_wait),
	WHOLE(exit),
	WHOLE(exit_group),
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_GETFD),
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_GETFL),
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_SETFD),
	WHOLE(futex),
	WHOLE(getpeername),
	WHOLE(getpid),
	WHOLE(getrandom),
	OPTION(getsockopt, SOL_SOCKET, SO_ERROR),
	WHOLE(gettimeofday),
	WHOLE(madvise),
	WITH(mmap, 2, PROT_EXEC, 0),
	WITH(mprotect, 2, PROT_EXEC, 0),
	WHOLE(mremap),
	WHOLE(munmap),
	WHOLE(read),
	WHOLE(recvfrom),
	WHOLE(recvmsg),
	WHOLE(restart_syscall),
	WHOLE(rt_sigprocmask),
	WHOLE(rt_sigreturn),
	WITH(sendmsg, 2, MSG_FASTOPEN, 0), // with this flag a listener that was shut down connects
	WITH(sendto, 3, MSG_FASTOPEN, 0),
	OPTION(setsockopt, SOL_SOCKET, SO_KEEPALIVE),
	OPTION(setsockopt, SOL_SOCKET, SO_LINGER),
	OPTION(setsockopt, IPPROTO_TCP, TCP_KEEPIDLE),
	OPTION(setsockopt, IPPROTO_TCP, TCP_NODELAY),
	WHOLE(shutdown),
	WHOLE(sigaltstack),
	WHOLE(write),
};

/* What net/flow.c needs in addition. */
static const struct filter_rule relay_rules[] = {
	WHOLE(connect),
	OPTION(getsockopt, SOL_IP, SO_ORIGINAL_DST),
	STREAMS_OF(AF_INET),
	STREAMS_OF(AF_INET6),
};

/* What libev needs with poll(2), which net/forward.c chooses. */
static const struct filter_rule forward_rules[] = {
	WHOLE(poll),
	WHOLE(ppoll),
};

/* What libcurl and OpenSSL need in addition to relay_rules. */
static const struct filter_rule keys_rules[] = {
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_SETFL),
	WHOLE(getsockname),
	WHOLE(poll),
	WHOLE(ppoll),
	OPTION(setsockopt, IPPROTO_TCP, TCP_KEEPINTVL),
};

static const struct filter_rule lookup_rules[] = {
	WHOLE(add_key),
	WHOLE(bpf),
	WHOLE(chmod),
	WHOLE(chown),
	WHOLE(creat),
	WHOLE(execve),
	WHOLE(execveat),
	WHOLE(fchmod),
	WHOLE(fchmodat),
	WHOLE(fchown),
	WHOLE(fchownat),
	WHOLE(fremovexattr),
	WHOLE(fsetxattr),
	WHOLE(futimesat),
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_SETOWN), // with F_SETSIG this could send any signal
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_SETOWN_EX),
	WITH(fcntl, 1, FILTER_WHOLE_INT, F_SETSIG),
	WHOLE(io_uring_enter),
	WHOLE(io_uring_register),
	WHOLE(io_uring_setup),
	WHOLE(keyctl),
	WHOLE(kill),
	WHOLE(lchown),
	WHOLE(link),
	WHOLE(linkat),
	WHOLE(lremovexattr),
	WHOLE(lsetxattr),
	WHOLE(mkdir),
	WHOLE(mkdirat),
	WHOLE(mknod),
	WHOLE(mknodat),
	WHOLE(mount),
	WITH(open, 1, O_ACCMODE, O_WRONLY),
	WITH(open, 1, O_ACCMODE, O_RDWR),
	WITH(open, 1, O_CREAT, O_CREAT), // these two change files that are opened for reading
	WITH(open, 1, O_TRUNC, O_TRUNC),
	WITH(openat, 2, O_ACCMODE, O_WRONLY),
	WITH(openat, 2, O_ACCMODE, O_RDWR),
	WITH(openat, 2, O_CREAT, O_CREAT),
	WITH(openat, 2, O_TRUNC, O_TRUNC),
	WHOLE(openat2),
	WHOLE(perf_event_open),
	WHOLE(pidfd_getfd),
	WHOLE(pidfd_open),
	WHOLE(pidfd_send_signal),
	WHOLE(prlimit64),
	WHOLE(process_vm_readv),
	WHOLE(process_vm_writev),
	WHOLE(ptrace),
	WHOLE(removexattr),
	WHOLE(rename),
	WHOLE(renameat),
	WHOLE(renameat2),
	WHOLE(request_key),
	WHOLE(rmdir),
	WHOLE(rt_sigqueueinfo),
	WHOLE(rt_tgsigqueueinfo),
	WHOLE(setns),
	WHOLE(setxattr),
	WHOLE(symlink),
	WHOLE(symlinkat),
	WHOLE(tgkill),
	WHOLE(tkill),
	WHOLE(truncate),
	WHOLE(unlink),
	WHOLE(unlinkat),
	WHOLE(unshare),
	WHOLE(userfaultfd),
	WHOLE(utime),
	WHOLE(utimensat),
	WHOLE(utimes),
};

bool confinement_prepare(struct error *err)
{
	return filter_load_library(err);
}

static bool limit_to(int resource, rlim_t most)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) != 0) {
		return false;
	}
	limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) == 0;
}

static bool limit(enum confinement_kind kind, struct error *err)
{
	bool is_done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	               prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && limit_to(RLIMIT_CORE, 0) &&
	               limit_to(RLIMIT_FSIZE, 0) && limit_to(RLIMIT_MSGQUEUE, 0) &&
	               limit_to(RLIMIT_NOFILE, OPEN_FILES_MAX) &&
	               (kind == CONFINEMENT_LOOKUP || limit_to(RLIMIT_NPROC, 0));
	if (!is_done) {
		int errnum = errno;
		return error_set_errno(err, errnum, "confining the process of the network");
	}
	return true;
}

static size_t add_rules(
	struct filter_rule *rules, size_t at, const struct filter_rule *added, size_t count)
{
	memcpy(rules + at, added, count * sizeof(*rules));
	return at + count;
}

/* A process that holds keys may do everything that the relaying process may do, and more. */
static bool apply_allowed(enum confinement_kind kind, struct error *err)
{
	enum { BASE = ARRAY_LENGTH(base_rules), RELAY = ARRAY_LENGTH(relay_rules) };
	enum { KEYS = ARRAY_LENGTH(keys_rules), FORWARD = ARRAY_LENGTH(forward_rules) };
	struct filter_rule rules[BASE + RELAY + KEYS + FORWARD];
	size_t count = add_rules(rules, 0, base_rules, BASE);
	if (kind == CONFINEMENT_FORWARD) {
		count = add_rules(rules, count, forward_rules, FORWARD);
	} else {
		count = add_rules(rules, count, relay_rules, RELAY);
	}
	if (kind == CONFINEMENT_KEYS) {
		count = add_rules(rules, count, keys_rules, KEYS);
	}
	return filter_apply_rules(FILTER_ALLOWS, rules, count, err);
}

bool confinement_apply(enum confinement_kind kind, struct error *err)
{
	if (!limit(kind, err)) {
		return false;
	}
	return kind == CONFINEMENT_LOOKUP ? filter_apply_rules(FILTER_REFUSES, lookup_rules,
						    ARRAY_LENGTH(lookup_rules), err)
	                                  : apply_allowed(kind, err);
}

static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(1);
	}
}

bool confinement_become(uid_t uid, gid_t gid, struct error *err)
{
	pid_t guard = getppid();
	if (uid == 0) {
		return error_set(
			err, ERROR_DENIED, "a process that runs as root cannot be confined");
	}
	if (geteuid() == 0 && (setgroups(1, &gid) != 0 || setresgid(gid, gid, gid) != 0 ||
				      setresuid(uid, uid, uid) != 0)) {
		int errnum = errno;
		return error_set_errno(err, errnum, "becoming user %u", (unsigned)uid);
	}
	die_with(guard); // the setting is lost when the user changes
	return geteuid() == uid || error_set(err, ERROR_DENIED, "the broker is user %u, not %u",
					   (unsigned)geteuid(), (unsigned)uid);
}
