/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_TTY_H
#define BROKER_CHAT_TTY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The modes of the process's one terminal. tty_end restores them; in a crash (SIGSEGV, SIGABRT, …),
 * signal handlers do. After SIGKILL the modes stay as they are, and `reset` repairs the terminal.
 */
enum { TTY_COLUMNS = 80 }; // if the terminal does not say how many it has

/* Saves the modes of `fd`, which the caller closes, and handles crashes. Once in a process. */
bool tty_begin(int fd, struct error *err) ATTR_NODISCARD;
bool tty_is_begun(void);

/*
 * Sets our modes: keys arrive one by one and are not echoed, and the terminal marks pastes. Ctrl-C
 * and Ctrl-Z still send signals.
 */
void tty_enter(void);

/* Restores the modes that tty_begin found. Also called before the process stops (SIGTSTP). */
void tty_leave(void);

/* Like tty_leave; also removes the handlers for crashes. Idempotent. */
void tty_end(void);

/* Drops typed bytes that were not read yet. */
void tty_flush_input(void);

size_t tty_columns(int fd);

#endif
