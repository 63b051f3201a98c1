/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SCRIPT_LINE_H
#define PROVIDERS_SCRIPT_LINE_H

#include "base/buf.h"

/*
 * How to send a script to a machine that can only run one line with the login shell. The line
 * starts sh, which prints a mark and then reads the script from stdin as another line. So the
 * script is on no command line, and everything that the login shell prints comes before the mark.
 */

/*
 * The commands of sh; in the line they are in single quotes. bash, dash, busybox, zsh, fish, csh
 * and tcsh read such a line in the same way: it has no newline, no '!' and no backslash. The mark
 * is printed in two pieces, so that a login shell that traces its commands does not print it.
 */
#define SCRIPT_PRINT_BEGIN "printf \"@%s:%s;\" acp-broker begins-here"
#define SCRIPT_READ "read -r acp_line; eval \"$acp_line\""

/* Also marks stderr. */
#define SCRIPT_BEGIN SCRIPT_PRINT_BEGIN "; " SCRIPT_PRINT_BEGIN " >&2; " SCRIPT_READ

/* Writes nothing to stderr. */
#define SCRIPT_BEGIN_APART "exec 2>/dev/null; " SCRIPT_PRINT_BEGIN "; " SCRIPT_READ

/* How much of the mark was received. */
struct script_begin {
	size_t matched;
	bool is_over;
};

/* How many of the bytes come before the end of the mark. */
size_t script_begin_skip(struct script_begin *begin, struct span bytes);

/* Sets the variable acp_n; must come first in a line with quoted texts. */
#define SCRIPT_SET_NEWLINE "acp_n=$(printf '\\nx'); acp_n=${acp_n%x}; "

/* Appends a text as one word of sh on one line: newlines come from the variable acp_n. */
bool script_quote_append(struct buf *buf, struct span text, struct error *err) ATTR_NODISCARD;

/* Whether the line is this word, a blank and more; *out_rest is that. */
bool script_take_word(const char *line, const char *word, const char **out_rest);

#endif
