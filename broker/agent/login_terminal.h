/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_LOGIN_TERMINAL_H
#define BROKER_AGENT_LOGIN_TERMINAL_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/*
 * The user's terminal, while it stands for the terminal of a process elsewhere: keys go there and
 * the screen comes from there, byte by byte, and so does each new size of the window. A shell that
 * stops the broker and continues it (SIGTSTP, SIGCONT) has the terminal in its own modes meanwhile.
 * As with ssh(1), the process there can send any escape sequence to the user's terminal. Nothing is
 * raised before a function returns. Loop thread.
 */
struct login_terminal;

/* Who gets the keys, and what the terminal does with the output. */
enum login_terminal_mode {
	/*
	 * Its own modes, until the process has started: what is typed waits in the terminal, and
	 * Ctrl-C ends the broker.
	 */
	LOGIN_TERMINAL_OWN,
	/* Raw: keys go to the process, Ctrl-C and the like included. */
	LOGIN_TERMINAL_PASSES,
	/*
	 * The process cannot be reached, or does not read any more. What is typed waits, unchanged
	 * and not echoed, because it may be a password. Ctrl-C, Ctrl-\ and Ctrl-Z act on the
	 * broker. Its log can be read on the screen.
	 */
	LOGIN_TERMINAL_WAITS,
	/* The same after the exit, while the rest of the output comes, byte by byte. */
	LOGIN_TERMINAL_ENDS,
};

struct login_terminal_listener {
	void (*on_output)(void *data); // some came, or the user's terminal has taken some
	void (*on_shown)(void *data);  // the process's screen has ended, and all of it is here
	/* The user's terminal is gone. Destroy it. */
	void (*on_failed)(void *data, const struct error *err);
};

bool login_terminal_check(struct error *err); // false: stdin and stdout are no terminal

/* Takes over stdin and stdout. Fails if they are no terminal. */
struct login_terminal *login_terminal_create(struct ev_loop *loop,
	const struct login_terminal_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

struct terminal_size login_terminal_size(const struct login_terminal *terminal);

/*
 * `exec` is borrowed; it must have exec_spec.terminal. Takes its descriptors. The screen is shown
 * from now on; keys wait for login_terminal_set_mode.
 */
void login_terminal_connect(struct login_terminal *terminal, struct exec *exec);

/* Only after login_terminal_connect. */
void login_terminal_set_mode(struct login_terminal *terminal, enum login_terminal_mode mode);

/* Whether the user's terminal has still to take output that is here. */
bool login_terminal_is_behind(const struct login_terminal *terminal);

void login_terminal_destroy(struct login_terminal *terminal); // restores its modes; NULL is fine

#endif
