/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/fd.h"
#include "providers/runner/runner.h"

/* A terminal for a process. */

static const char doing[] = "opening a terminal";

/* Backspace then deletes a whole character, also if it has several bytes. */
static void expect_utf8(int terminal)
{
	struct termios modes;
	if (tcgetattr(terminal, &modes) == 0) {
		modes.c_iflag |= IUTF8;
		tcsetattr(terminal, TCSANOW, &modes);
	}
}

int terminal_open(const struct runner_size *size, int *out_theirs, struct error *err)
{
	int locked = 0;
	int own = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (own < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "%s: /dev/ptmx", doing);
		return -1;
	}
	/* TIOCGPTPEER needs no path, which another mount of devpts could lead elsewhere. */
	int theirs = ioctl(own, TIOCSPTLCK, &locked) == 0
	                     ? ioctl(own, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
	                     : -1;
	if (theirs < 0) {
		int errnum = errno;
		fd_close(&own);
		error_set_errno(err, errnum, "%s", doing);
		return -1;
	}
	terminal_resize(own, size);
	expect_utf8(theirs);
	*out_theirs = theirs;
	return own;
}

void terminal_resize(int own, const struct runner_size *size)
{
	const struct winsize window = {
		.ws_row = (unsigned short)size->rows, .ws_col = (unsigned short)size->columns};
	(void)!ioctl(own, TIOCSWINSZ, &window);
}

bool terminal_size_is_valid(const struct runner_size *size)
{
	return size->rows <= UINT16_MAX && size->columns <= UINT16_MAX;
}
