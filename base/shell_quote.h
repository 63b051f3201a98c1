/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHELL_QUOTE_H
#define BASE_SHELL_QUOTE_H

/* A text as one word for a POSIX shell, in single quotes. The caller frees it. */
char *shell_quote(const char *text);

#endif
