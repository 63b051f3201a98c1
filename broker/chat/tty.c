/* SPDX-License-Identifier: MIT */
#include "broker/chat/tty.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Switch bracketed paste on and off. Switching it off also ends colours. */
static const char paste_on[] = "\033[?2004h";
static const char all_off[] = "\033[0m\033[?2004l";

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

/* Static, because signal handlers need it. */
static struct {
	int fd;
	bool is_begun;
	volatile sig_atomic_t is_entered;
	struct termios found;
	struct sigaction before[ARRAY_LENGTH(crashes)];
} tty;

/* Async-signal-safe. */
static void give_back(void)
{
	int errnum = errno;
	if (tty.is_entered) {
		tty.is_entered = 0;
		(void)!write(tty.fd, all_off, sizeof(all_off) - 1);
		/* SIGTTOU would stop us here if we were in the background. */
		sigset_t blocked;
		sigset_t before;
		sigemptyset(&blocked);
		sigaddset(&blocked, SIGTTOU);
		sigprocmask(SIG_BLOCK, &blocked, &before);
		tcsetattr(tty.fd, TCSANOW, &tty.found);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	errno = errnum;
}

/* SA_RESETHAND has removed the handler, so the signal ends the process now. */
static void on_crash(int number)
{
	give_back();
	raise(number);
}

bool tty_begin(int fd, struct error *err)
{
	if (tcgetattr(fd, &tty.found) == -1) {
		return error_set_errno(err, errno, "reading the modes of the terminal");
	}
	tty.fd = fd;
	tty.is_begun = true;
	for (size_t i = 0; i < ARRAY_LENGTH(crashes); i++) {
		struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};
		sigemptyset(&action.sa_mask);
		sigaction(crashes[i], &action, &tty.before[i]);
	}
	return true;
}

bool tty_is_begun(void)
{
	return tty.is_begun;
}

void tty_enter(void)
{
	if (!tty.is_begun) {
		return;
	}
	struct termios modes = tty.found;
	modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	modes.c_lflag |= ISIG;
	modes.c_iflag &= ~(tcflag_t)(INLCR | IGNCR | ICRNL);
	modes.c_cc[VMIN] = 1;
	modes.c_cc[VTIME] = 0;
	tty.is_entered = 1;
	tcsetattr(tty.fd, TCSANOW, &modes);
	(void)!write(tty.fd, paste_on, sizeof(paste_on) - 1);
}

void tty_leave(void)
{
	if (tty.is_begun) {
		give_back();
	}
}

void tty_end(void)
{
	if (!tty.is_begun) {
		return;
	}
	give_back();
	tty.is_begun = false;
	for (size_t i = 0; i < ARRAY_LENGTH(crashes); i++) {
		sigaction(crashes[i], &tty.before[i], NULL);
	}
}

void tty_flush_input(void)
{
	if (tty.is_begun) {
		tcflush(tty.fd, TCIFLUSH);
	}
}

size_t tty_columns(int fd)
{
	struct winsize size;
	bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	return is_known ? size.ws_col : TTY_COLUMNS;
}
