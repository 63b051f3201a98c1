/* SPDX-License-Identifier: MIT */
#include "tests/unit/calls_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>

struct calls calls;
bool calls_are_of_a_plain_disk;

void calls_begin(int at)
{
	calls = (struct calls){.is_on = true, .at = at};
}

void calls_end(void)
{
	calls.is_on = false;
}

enum kind { LOOKS, CHANGES };

/* Whether the call fails instead of being made. */
static bool is_failed(enum kind kind)
{
	if (!calls.is_on || ++calls.count != calls.at) {
		return false;
	}
	if (calls.before) {
		calls.is_on = false;
		calls.before(calls.data);
		calls.is_on = true;
	}
	if (calls.fail_with && kind == CHANGES) {
		calls.has_failed = true;
		errno = calls.fail_with;
		return true;
	}
	return false;
}

// NOLINTBEGIN(bugprone-reserved-identifier): the linker asks for these names
/* The types are those of the real calls; the linker's --wrap finds these functions by name. */
#define WRAP(kind, type, name, parameters, arguments)                                              \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return is_failed(kind) ? -1 : __real_##name arguments;                             \
	}

int __real_libc_rename(
	int from, const char *old_name, int to, const char *new_name, unsigned flags);
int __wrap_libc_rename(
	int from, const char *old_name, int to, const char *new_name, unsigned flags);
int __wrap_libc_rename(int from, const char *old_name, int to, const char *new_name, unsigned flags)
{
	if (calls_are_of_a_plain_disk && flags) {
		errno = EINVAL;
		return -1;
	}
	return is_failed(CHANGES) ? -1 : __real_libc_rename(from, old_name, to, new_name, flags);
}

int __real_linkat(int from, const char *old_name, int to, const char *new_name, int flags);
int __wrap_linkat(int from, const char *old_name, int to, const char *new_name, int flags);
int __wrap_linkat(int from, const char *old_name, int to, const char *new_name, int flags)
{
	if (calls_are_of_a_plain_disk) {
		errno = EPERM;
		return -1;
	}
	return is_failed(CHANGES) ? -1 : __real_linkat(from, old_name, to, new_name, flags);
}

WRAP(CHANGES, int, renameat, (int from, const char *old_name, int to, const char *new_name),
	(from, old_name, to, new_name))
WRAP(CHANGES, int, unlinkat, (int folder, const char *name, int flags), (folder, name, flags))
WRAP(CHANGES, int, mkdirat, (int folder, const char *name, mode_t mode), (folder, name, mode))
WRAP(CHANGES, int, symlinkat, (const char *target, int folder, const char *name),
	(target, folder, name))
WRAP(CHANGES, int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(CHANGES, ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
WRAP(LOOKS, ssize_t, readlinkat, (int folder, const char *name, char *target, size_t size),
	(folder, name, target, size))
WRAP(LOOKS, int, fstat64, (int fd, struct stat *status), (fd, status))
WRAP(LOOKS, int, fstatat64, (int folder, const char *name, struct stat *status, int flags),
	(folder, name, status, flags))

/* No test cuts the power: it does not matter whether data was synced, only when. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	return is_failed(CHANGES) ? -1 : 0;
}

int __wrap_syncfs(int fd);
int __wrap_syncfs(int fd)
{
	return 0;
}

int __real_openat64(int folder, const char *name, int flags, ...);
int __wrap_openat64(int folder, const char *name, int flags, ...);
int __wrap_openat64(int folder, const char *name, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return is_failed(flags & O_CREAT ? CHANGES : LOOKS)
	               ? -1
	               : __real_openat64(folder, name, flags, mode);
}

int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	long argument = va_arg(arguments, long);
	va_end(arguments);
	return is_failed(LOOKS) ? -1 : __real_fcntl64(fd, command, argument);
}
// NOLINTEND(bugprone-reserved-identifier)
