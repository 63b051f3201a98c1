/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_POLICY_WORDS_H
#define BROKER_POLICY_POLICY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/* Bytes of a command that is parsed; the kernel takes no longer argument (MAX_ARG_STRLEN). */
enum { POLICY_COMMAND_MAX = 128 << 10 };

/* Words in one allocation, NULL-terminated. */
struct policy_words {
	char *text;
	const char **list;
	size_t count;
};

/* Parses the blank-separated globs of a rule; ** stands for any number of words. */
bool policy_words_parse(
	struct policy_words *words, const char *pattern, struct error *err) ATTR_NODISCARD;
void policy_words_finish(struct policy_words *words);

/* Whether the command begins with these words. A shell line with any shell syntax never does. */
bool policy_words_begin(
	const struct policy_words *pattern, const char *const *command, bool shell_line);

/*
 * Whether the command may run these words: it begins with them, by name or by path. If a shell, or
 * a program that starts others, reads the command, the words may stand anywhere in it, after quotes
 * are removed. True for a command that is too long to parse.
 */
bool policy_words_may_occur(
	const struct policy_words *pattern, const char *const *command, bool shell_line);

#endif
