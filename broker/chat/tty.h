/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_TTY_H
#define BROKER_CHAT_TTY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The modes of the one terminal that a process has. They are given back on every way out: by
 * tty_end, and by handlers of the signals of a crash (SIGSEGV, SIGABRT, …). Against SIGKILL
 * there is no help; `reset` repairs the terminal then.
 */
enum { TTY_COLUMNS = 80 }; // where the terminal does not say

/* Keeps the modes of `fd`, which stays the caller's, and handles crashes. Once a process. */
bool tty_begin(int fd, struct error *err) ATTR_NODISCARD;
bool tty_is_begun(void);

/*
 * From here on, keys are not shown and come one by one, and a paste is marked as one. Ctrl-C and
 * Ctrl-Z stay signals.
 */
void tty_enter(void);

/* The modes are what tty_begin has found. Also before the process stops (SIGTSTP). */
void tty_leave(void);

/* tty_leave, and crashes are nobody's any more. Idempotent. */
void tty_end(void);

/* Forgets what was typed and not read. */
void tty_flush_input(void);

size_t tty_columns(int fd);

#endif
