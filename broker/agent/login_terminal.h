/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_LOGIN_TERMINAL_H
#define BROKER_AGENT_LOGIN_TERMINAL_H

#include <ev.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/*
 * The user's terminal, while it stands for the terminal of a process elsewhere: keys go there and
 * the screen comes from there, byte by byte, and so does each new size of the window. As with
 * ssh(1), the process there can send any escape sequence to the user's terminal. Nothing is raised
 * before a function returns. Loop thread.
 */
struct login_terminal;

struct login_terminal_listener {
	void (*on_shown)(void *data); // the process's screen has ended, and all of it is here
	/* The user's terminal is gone. Destroy it. */
	void (*on_failed)(void *data, const struct error *err);
};

/* Takes over stdin and stdout. Fails if they are no terminal. */
struct login_terminal *login_terminal_create(struct ev_loop *loop,
	const struct login_terminal_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

struct terminal_size login_terminal_size(const struct login_terminal *terminal);

/*
 * From now on the terminal is in raw mode, so that Ctrl-C and the like reach the process. `exec` is
 * borrowed; it must have exec_spec.terminal. Takes its descriptors.
 */
void login_terminal_connect(struct login_terminal *terminal, struct exec *exec);

/*
 * While the process cannot be reached, or has given its terminal up: the terminal has its own modes
 * again, so that Ctrl-C ends the broker, and keys wait. Does nothing before login_terminal_connect.
 */
void login_terminal_pause(struct login_terminal *terminal, bool is_paused);

void login_terminal_destroy(struct login_terminal *terminal); // restores its modes; NULL is fine

#endif
