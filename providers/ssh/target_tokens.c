/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target_tokens.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static const char letters[SSH_TOKEN_COUNT + 1] = "duLliChknprj";
static const char answered[] = "duLliC"; // in the order of the question

enum { ANSWER_END = 0x1f };

static char **value_of(struct ssh_tokens *tokens, char letter)
{
	const char *at = letter ? strchr(letters, letter) : NULL;
	return at ? &tokens->values[at - letters] : NULL;
}

const char *ssh_tokens_get(const struct ssh_tokens *tokens, char letter)
{
	const char *at = letter ? strchr(letters, letter) : NULL;
	return at ? tokens->values[at - letters] : NULL;
}

void ssh_tokens_set(struct ssh_tokens *tokens, char letter, const char *value)
{
	char **place = value_of(tokens, letter);
	free(*place);
	*place = mem_strdup_or_null(value);
}

void ssh_tokens_read(struct ssh_tokens *tokens, struct span answer)
{
	size_t ends = 0;
	for (size_t i = 0; i < answer.len; i++) {
		ends += answer.data[i] == ANSWER_END;
	}
	if (ends != sizeof(answered) - 2 || answer.data[0] != '/') {
		return; // an ssh that does not expand tokens, or another ControlPath
	}
	for (const char *letter = answered; *letter; letter++) {
		const char *end = memchr(answer.data, ANSWER_END, answer.len);
		struct span part = {answer.data, end ? (size_t)(end - answer.data) : answer.len};
		char *text = mem_strndup(part);
		ssh_tokens_set(tokens, *letter, text);
		free(text);
		size_t taken = part.len + (end ? 1 : 0);
		answer = (struct span){answer.data + taken, answer.len - taken};
	}
}

const char *ssh_tokens_environment(const char *const *environment, struct span name)
{
	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name.data, name.len) == 0 &&
			(*environment)[name.len] == '=') {
			return *environment + name.len + 1;
		}
	}
	return NULL;
}

static void complete(struct ssh_tokens *tokens, char letter, const char *value)
{
	if (!ssh_tokens_get(tokens, letter) && value) {
		ssh_tokens_set(tokens, letter, value);
	}
}

void ssh_tokens_complete(struct ssh_tokens *tokens)
{
	char host[HOST_NAME_MAX + 1] = "";
	char number[16];
	snprintf(number, sizeof(number), "%u", (unsigned)getuid());
	complete(tokens, 'd', ssh_tokens_environment(tokens->environment, SPAN_LITERAL("HOME")));
	complete(tokens, 'u', ssh_tokens_environment(tokens->environment, SPAN_LITERAL("LOGNAME")));
	complete(tokens, 'u', ssh_tokens_environment(tokens->environment, SPAN_LITERAL("USER")));
	complete(tokens, 'i', number);
	if (gethostname(host, sizeof(host) - 1) == 0) {
		complete(tokens, 'l', host);
		host[strcspn(host, ".")] = '\0';
		complete(tokens, 'L', host);
	}
}

void ssh_tokens_finish(struct ssh_tokens *tokens)
{
	for (size_t i = 0; i < SSH_TOKEN_COUNT; i++) {
		free(tokens->values[i]);
		tokens->values[i] = NULL;
	}
}

/* ---- expanding ---- */

/* The home in "~kim/key". This rare look-up may use the network. */
static const char *home_of(const struct ssh_tokens *tokens, struct span user)
{
	if (user.len == 0) {
		return ssh_tokens_get(tokens, 'd');
	}
	char *name = mem_strndup(user);
	const struct passwd *entry =
		getpwnam(name); // NOLINT(concurrency-mt-unsafe): loop thread only
	free(name);
	return entry ? entry->pw_dir : NULL;
}

/* Expands a leading "~" up to the first slash, and moves past it. */
static bool append_home(
	const struct ssh_tokens *tokens, struct buf *out, const char **text, struct error *err)
{
	if (**text != '~') {
		return true;
	}
	size_t len = strcspn(*text, "/");
	const char *home = home_of(tokens, (struct span){*text + 1, len - 1});
	if (!home) {
		return error_set(
			err, ERROR_CONFIG, "the home folder of %.*s is unknown", (int)len, *text);
	}
	*text += len;
	return buf_append(out, span_of(home), err);
}

/* At a "%": appends the token's value and moves past it. */
static bool append_token(
	const struct ssh_tokens *tokens, struct buf *out, const char **text, struct error *err)
{
	char letter = (*text)[1];
	const char *value = letter == '%' ? "%" : ssh_tokens_get(tokens, letter);
	if (!value) {
		return error_set(err, ERROR_CONFIG, "the token %%%c is not supported here", letter);
	}
	*text += 2;
	return buf_append(out, span_of(value), err);
}

/* At a "${". */
static bool append_variable(
	const struct ssh_tokens *tokens, struct buf *out, const char **text, struct error *err)
{
	size_t len = strcspn(*text, "}");
	struct span name = {*text + 2, len - 2};
	const char *value = (*text)[len] ? ssh_tokens_environment(tokens->environment, name) : NULL;
	if (!value) {
		return error_set(
			err, ERROR_CONFIG, "the variable %.*s} is not set", (int)len, *text);
	}
	*text += len + 1;
	return buf_append(out, span_of(value), err);
}

enum { EXPAND_HOME = 1, EXPAND_TOKENS = 2, EXPAND_VARIABLES = 4 };

static char *expand(
	const struct ssh_tokens *tokens, const char *text, unsigned what, struct error *err)
{
	struct buf out;
	buf_init(&out, SSH_EXPANDED_MAX);
	bool ok = !(what & EXPAND_HOME) || append_home(tokens, &out, &text, err);
	while (ok && *text) {
		if (*text == '%' && (what & EXPAND_TOKENS)) {
			ok = append_token(tokens, &out, &text, err);
		} else if (text[0] == '$' && text[1] == '{' && (what & EXPAND_VARIABLES)) {
			ok = append_variable(tokens, &out, &text, err);
		} else {
			ok = buf_append(&out, (struct span){text++, 1}, err);
		}
	}
	char *expanded = ok ? mem_strndup(buf_span(&out)) : NULL;
	buf_finish(&out);
	return expanded;
}

char *ssh_expand_tokens(const struct ssh_tokens *tokens, const char *text, struct error *err)
{
	return expand(tokens, text, EXPAND_TOKENS, err);
}

char *ssh_expand_path(const struct ssh_tokens *tokens, const char *text, struct error *err)
{
	return expand(tokens, text, EXPAND_HOME | EXPAND_TOKENS | EXPAND_VARIABLES, err);
}

char *ssh_expand_home(const struct ssh_tokens *tokens, const char *text, struct error *err)
{
	return expand(tokens, text, EXPAND_HOME, err);
}
