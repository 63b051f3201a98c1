/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/guard.h"
#include "base/text.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define OWN_PROGRAM "/proc/self/exe"

/*
 * F_SEAL_WRITE would only add protection against writable mappings, of which there are none, and it
 * fails with EBUSY while the kernel holds a page.
 */
enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE };

static bool copy(int from, int to)
{
	struct stat status;
	if (fstat(from, &status) != 0) {
		return false;
	}
	for (off_t left = status.st_size; left > 0;) {
		ssize_t count = sendfile(to, from, NULL, (size_t)left);
		if (count == 0) {
			errno = EIO; // the file has become shorter
		}
		if (count == 0 || (count < 0 && errno != EINTR)) {
			return false;
		}
		left -= count > 0 ? count : 0;
	}
	return true;
}

static bool fail(struct error *err)
{
	int errnum = errno;
	return error_set_errno(err, errnum, "confining an agent: copying the broker's program");
}

bool cell_program_open(struct cell_program *program, struct error *err)
{
	char path[64];
	program->fd = -1;
	program->own_fd = memfd_create(GUARD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (program->own_fd < 0 && errno == EINVAL) { // before Linux 6.3
		program->own_fd = memfd_create(GUARD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	}
	if (program->own_fd < 0 || flock(program->own_fd, LOCK_EX | LOCK_NB) != 0) {
		return fail(err);
	}
	/* Opened again, because a lock belongs to one opening. */
	text_whole(path, sizeof(path), "/proc/self/fd/%d", program->own_fd);
	program->fd = open(path, O_RDONLY | O_CLOEXEC);
	return program->fd >= 0 || fail(err);
}

bool cell_program_fill(struct cell_program *program, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int own = open(OWN_PROGRAM, O_RDONLY | O_CLOEXEC);
	if (own < 0 || !copy(own, program->own_fd) ||
		fcntl(program->own_fd, F_ADD_SEALS, SEALS) != 0) {
		return fail(err);
	}
	fd_close(&program->own_fd);
	return true;
}

void cell_program_finish(struct cell_program *program)
{
	fd_close(&program->fd);
	fd_close(&program->own_fd);
}

bool cell_program_is_copy(void)
{
	ATTR_CLEANUP(fd_cleanup) int own = open(OWN_PROGRAM, O_RDONLY | O_CLOEXEC);
	int seals = own < 0 ? -1 : fcntl(own, F_GET_SEALS);
	return seals >= 0 && (seals & SEALS) == SEALS;
}
