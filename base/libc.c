/* SPDX-License-Identifier: MIT */
#include "base/libc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/attr.h"

static const char *const signal_names[] = {
	[SIGHUP] = "HUP",
	[SIGINT] = "INT",
	[SIGQUIT] = "QUIT",
	[SIGILL] = "ILL",
	[SIGTRAP] = "TRAP",
	[SIGABRT] = "ABRT",
	[SIGBUS] = "BUS",
	[SIGFPE] = "FPE",
	[SIGKILL] = "KILL",
	[SIGUSR1] = "USR1",
	[SIGSEGV] = "SEGV",
	[SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE",
	[SIGALRM] = "ALRM",
	[SIGTERM] = "TERM",
	[SIGSTKFLT] = "STKFLT",
	[SIGCHLD] = "CHLD",
	[SIGCONT] = "CONT",
	[SIGSTOP] = "STOP",
	[SIGTSTP] = "TSTP",
	[SIGTTIN] = "TTIN",
	[SIGTTOU] = "TTOU",
	[SIGURG] = "URG",
	[SIGXCPU] = "XCPU",
	[SIGXFSZ] = "XFSZ",
	[SIGVTALRM] = "VTALRM",
	[SIGPROF] = "PROF",
	[SIGWINCH] = "WINCH",
	[SIGPOLL] = "POLL",
	[SIGPWR] = "PWR",
	[SIGSYS] = "SYS",
};

const char *libc_error_text(int errnum)
{
#ifdef __GLIBC__
	return strerrordesc_np(errnum);
#else
	return strerror(errnum); // musl's texts are static, unlike glibc's
#endif
}

const char *libc_signal_name(int signal)
{
	bool is_known = signal > 0 && (size_t)signal < ARRAY_LENGTH(signal_names);
	return is_known ? signal_names[signal] : NULL;
}

int libc_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

int libc_rename(int from, const char *old_name, int to, const char *new_name, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from, old_name, to, new_name, flags);
}

int libc_pidfd_signal(int pid_fd, int signal)
{
	return (int)syscall(SYS_pidfd_send_signal, pid_fd, signal, NULL, 0);
}

void libc_keep_freed(int max_bytes)
{
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, max_bytes);
	mallopt(M_MMAP_THRESHOLD, max_bytes); // blocks of less are never unmapped one by one
#endif
}

void libc_trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* The kernel's struct statx has 256 bytes; its second eight are stx_attributes. */
bool libc_is_mount_root(int fd)
{
	enum { ATTRIBUTES = 1, MOUNT_ROOT = 0x2000, TYPE = 1 };
	uint64_t status[32] = {0};
	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, TYPE, status) == 0 &&
	       (status[ATTRIBUTES] & MOUNT_ROOT) != 0;
}

struct timespec libc_birth(const char *path)
{
	enum { MASK = 0, SECONDS = 10, NANOSECONDS = 11, BIRTH = 0x800 };
	uint64_t status[32] = {0};
	bool is_known =
		syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, BIRTH, status) == 0 &&
		((uint32_t)status[MASK] & BIRTH) != 0;
	return is_known ? (struct timespec){(time_t)status[SECONDS], (uint32_t)status[NANOSECONDS]}
	                : (struct timespec){0};
}

bool libc_known_device(int fd, dev_t *out_device)
{
	enum { MAJOR = 34, MINOR = 35, NO_SERVER = 0x4000 }; // in words of four bytes; DONT_SYNC
	uint32_t status[64] = {0};
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | NO_SERVER, 0, status) != 0) {
		return false;
	}
	*out_device = makedev(status[MAJOR], status[MINOR]);
	return true;
}

ssize_t libc_read_cached(int fd, char *to, size_t size)
{
	enum { NO_WAIT = 8 }; // RWF_NOWAIT
	struct iovec piece = {.iov_base = to, .iov_len = size};
	return syscall(SYS_preadv2, fd, &piece, 1, -1L, -1L, NO_WAIT);
}
