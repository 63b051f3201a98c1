/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_TOKENS_H
#define PROVIDERS_SSH_TARGET_TOKENS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The tokens of ssh_config(5), "TOKENS", "~" and ${VARIABLE}. If possible we let ssh itself expand
 * them, as a ControlPath, so that we need not look up the local names or compute the hash.
 */
enum { SSH_TOKEN_COUNT = 12, SSH_EXPANDED_MAX = 64 * 1024 };

/* The tokens that we let ssh expand: the value for `ssh -G -o ControlPath=`. */
#define SSH_TOKENS_QUESTION "%d\x1f%u\x1f%L\x1f%l\x1f%i\x1f%C"

struct ssh_tokens {
	char *values[SSH_TOKEN_COUNT];  // owned; NULL: unknown
	const char *const *environment; // borrowed
};

/* Reads ssh's answer; values that it did not give stay unknown. */
void ssh_tokens_read(struct ssh_tokens *tokens, struct span answer);
void ssh_tokens_set(struct ssh_tokens *tokens, char letter, const char *value);
/* NULL if unknown. */
const char *ssh_tokens_get(const struct ssh_tokens *tokens, char letter);
/* Fills in the local values that are still unknown, from the environment. */
void ssh_tokens_complete(struct ssh_tokens *tokens);
void ssh_tokens_finish(struct ssh_tokens *tokens);

/* Expands tokens alone, for a command line. The caller frees the result; NULL is ERROR_CONFIG. */
char *ssh_expand_tokens(
	const struct ssh_tokens *tokens, const char *text, struct error *err) ATTR_NODISCARD;

/* Expands "~", tokens and ${VARIABLE}, for a file name. */
char *ssh_expand_path(
	const struct ssh_tokens *tokens, const char *text, struct error *err) ATTR_NODISCARD;

/* Expands "~" alone. */
char *ssh_expand_home(
	const struct ssh_tokens *tokens, const char *text, struct error *err) ATTR_NODISCARD;

/* The value of a variable, or NULL. */
const char *ssh_tokens_environment(const char *const *environment, struct span name);

#endif
