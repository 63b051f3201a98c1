/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_words.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096 };

/*
 * Words of ssh's that say why, the more telling ones first: of a changed key it says also
 * that the verification failed, and of everything that the connection was closed.
 */
struct cause {
	const char *words;
	enum error_code code;
	const char *reason;
	const char *cure; // may be NULL
};

static const char unknown_cure[] =
	"compare its fingerprint with the host's own (there: ssh-keygen -lf "
	"/etc/ssh/ssh_host_ed25519_key.pub), then connect once with ssh in a terminal and accept "
	"it";
static const char changed_cure[] =
	"find out why before anything else; ssh-keygen -R takes the old key out";

static const struct cause causes[] = {
	{NULL, ERROR_UNAVAILABLE, NULL, NULL},
	{"HOST IDENTIFICATION HAS CHANGED", ERROR_DENIED, "HOST_KEY_MISMATCH", changed_cure},
	{"REVOKED HOST KEY DETECTED", ERROR_DENIED, "HOST_KEY_MISMATCH", changed_cure},
	{" is known for ", ERROR_DENIED, "HOST_KEY_UNKNOWN", unknown_cure},
	{"Host key verification failed", ERROR_DENIED, "HOST_KEY_UNKNOWN", unknown_cure},
	{"Permission denied (", ERROR_DENIED, "AUTH_FAILED", NULL},
	{"Too many authentication failures", ERROR_DENIED, "AUTH_FAILED", NULL},
	{"Temporary failure in name resolution", ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"is this machine's network up?"},
	{"Could not resolve hostname", ERROR_NOT_FOUND, "HOST_NOT_FOUND",
		"correct host in the profile, or its Host in ~/.ssh/config"},
	{"Unable to negotiate", ERROR_UNAVAILABLE, "SSH_UNSUPPORTED", NULL},
	{"Bad configuration option", ERROR_UNAVAILABLE, "SSH_UNSUPPORTED",
		"a newer OpenSSH knows it"},
	{"terminating,", ERROR_CONFIG, "CONFIG_INVALID", NULL},
	{"Bad owner or permissions", ERROR_CONFIG, "CONFIG_INVALID", NULL},
	{"unix_listener", ERROR_SYSTEM, NULL, NULL},
	{"during banner exchange", ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", NULL},
	{"connect to host", ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"is it up, and is that the port of its sshd?"},
	{"kex_exchange_identification", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{"Connection closed by", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{"Connection reset by", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{" timed out", ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", NULL},
};

/* ---- progress ---- */

static void set_progress(struct openssh_words *words, const char *text)
{
	snprintf(words->progress, sizeof(words->progress), "%s", text);
	words->has_progress = true;
}

/* "127.0.0.1 [127.0.0.1] port 22." */
static void on_connecting(struct openssh_words *words, const char *rest)
{
	char address[64] = "", text[256];
	int port = 0;
	const char *bracket = strchr(rest, '[');
	if (bracket && sscanf(bracket, "[%63[^]]] port %d", address, &port) == 2) {
		snprintf(text, sizeof(text), "Connecting to %s (%s port %d)", words->target->alias,
			address, port);
		set_progress(words, text);
		words->addresses++;
	}
}

static void on_proxy(struct openssh_words *words, const char *rest)
{
	char text[256];
	const struct ssh_target *via = words->target->via;
	snprintf(text, sizeof(text), "Connecting to %s through %s", words->target->alias,
		via ? via->alias : "its proxy command");
	set_progress(words, text);
}

static void on_host_key(struct openssh_words *words, const char *rest)
{
	snprintf(words->host_key, sizeof(words->host_key), "%s", rest);
}

static void on_authenticating(struct openssh_words *words, const char *rest)
{
	char text[256];
	words->is_authenticating = true;
	snprintf(text, sizeof(text), "Authenticating as %s",
		words->target->user ? words->target->user : "you");
	set_progress(words, text);
}

/* "/home/kim/.ssh/id_ed25519 ED25519 SHA256:… agent" */
static void on_offering(struct openssh_words *words, const char *rest)
{
	size_t len = strlen(words->offered);
	snprintf(words->offered + len, sizeof(words->offered) - len, "%s%.*s", len > 0 ? ", " : "",
		(int)strcspn(rest, " "), rest);
}

static const struct {
	const char *words;
	void (*handle)(struct openssh_words *words, const char *rest);
} debug_lines[] = {
	{"Connecting to ", on_connecting},
	{"Executing proxy command: ", on_proxy},
	{"Server host key: ", on_host_key},
	{"SSH2_MSG_SERVICE_ACCEPT received", on_authenticating},
	{"Offering public key: ", on_offering},
};

static void read_debug(struct openssh_words *words, const char *line)
{
	for (size_t i = 0; i < ARRAY_LENGTH(debug_lines); i++) {
		size_t len = strlen(debug_lines[i].words);
		if (strncmp(line, debug_lines[i].words, len) == 0) {
			debug_lines[i].handle(words, line + len);
			return;
		}
	}
}

/* ---- complaints ---- */

/* What ssh says besides, in a connection that goes well, and frames round warnings. */
static bool is_chatter(const char *line)
{
	static const char *const beginnings[] = {"Authenticated to ", "OpenSSH_", "@@@",
		"Warning: Permanently added",
		"no such identity:", "Transferred: ", "Bytes per second"};
	for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++) {
		if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0) {
			return true;
		}
	}
	return line[0] == '\0';
}

static void find_cause(struct openssh_words *words, const char *line)
{
	for (size_t i = 1; i < ARRAY_LENGTH(causes); i++) {
		if ((words->cause == 0 || i < words->cause) && strstr(line, causes[i].words)) {
			words->cause = i;
			snprintf(words->because, sizeof(words->because), "%s", line);
		}
	}
}

/* Its last words say the most: what does not fit goes at the front. */
static void say(struct openssh_words *words, const char *line)
{
	size_t len = strlen(words->said);
	size_t most = sizeof(words->said) - 1;
	while (len > 0 && len + strlen("; ") + strlen(line) > most) {
		const char *rest = strstr(words->said, "; ");
		len = rest ? strlen(rest + 2) : 0;
		memmove(words->said, rest ? rest + 2 : "", len + 1);
	}
	snprintf(words->said + len, sizeof(words->said) - len, "%s%s", len > 0 ? "; " : "", line);
}

static void read_complaint(struct openssh_words *words, const char *line, bool is_banner)
{
	if (!is_banner) {
		find_cause(words, line);
	}
	if (!is_chatter(line)) {
		say(words, line);
	}
}

static void read_line(struct openssh_words *words)
{
	char line[LINE_MAX_BYTES + 1];
	struct span bytes = buf_span(&words->line);
	if (bytes.len > 0) {
		memcpy(line, bytes.data, bytes.len);
	}
	line[bytes.len] = '\0';
	/* ssh's own lines end so; those of a server's banner, which comes with the login, do not.
	 */
	bool is_own = bytes.len > 0 && line[bytes.len - 1] == '\r';
	bool is_banner = words->is_authenticating && !is_own;
	line[strcspn(line, "\r")] = '\0';
	buf_clear(&words->line);
	if (!is_banner && strncmp(line, "debug1: ", 8) == 0) {
		read_debug(words, line + 8);
	} else if (is_banner || strncmp(line, "debug", 5) != 0) {
		read_complaint(words, line, is_banner);
	}
}

void openssh_words_read(struct openssh_words *words, struct span bytes)
{
	for (size_t i = 0; i < bytes.len; i++) {
		if (bytes.data[i] == '\n') {
			read_line(words);
			words->is_too_long = false;
		} else if (!words->is_too_long) {
			words->is_too_long =
				!buf_append(&words->line, (struct span){&bytes.data[i], 1}, NULL);
		}
	}
}

void openssh_words_init(struct openssh_words *words, const struct ssh_target *target)
{
	*words = (struct openssh_words){.target = target};
	buf_init(&words->line, LINE_MAX_BYTES);
}

void openssh_words_finish(struct openssh_words *words)
{
	buf_finish(&words->line);
}

void openssh_words_clear(struct openssh_words *words)
{
	words->said[0] = '\0';
	words->because[0] = '\0';
	words->cause = 0;
}

/* ---- why ---- */

enum { WORDS_MAX = OPENSSH_CAUSE_MAX + OPENSSH_SAID_MAX };

/* The last ones, after the one that matters where that was too long ago. */
static const char *last_words(const struct openssh_words *words, char text[WORDS_MAX])
{
	bool has_both = strstr(words->said, words->because) != NULL;
	snprintf(text, WORDS_MAX, "%s%s%s", has_both ? "" : words->because, has_both ? "" : "; ",
		words->said);
	return text;
}

static void explain_key(
	const struct openssh_words *words, const struct cause *cause, struct error *err)
{
	const struct ssh_target *target = words->target;
	char said[WORDS_MAX];
	last_words(words, said);
	if (!words->host_key[0]) { // of a host on the way
		error_set_reason(
			err, cause->code, cause->reason, "ssh: %s (%s)", said, cause->cure);
	} else if (target->host_key_pin) {
		error_set_reason(err, cause->code, "HOST_KEY_MISMATCH",
			"the key of %s is %s, and the profile says that it is %s", target->host,
			words->host_key, target->host_key_pin);
	} else {
		error_set_reason(err, cause->code, cause->reason, "the key of %s is %s: %s (%s)",
			target->host, words->host_key, said, cause->cure);
	}
}

void openssh_words_explain(const struct openssh_words *words, const char *ended, struct error *err)
{
	const struct cause *cause = &causes[words->cause];
	if (cause->cure == unknown_cure || cause->cure == changed_cure) {
		explain_key(words, cause, err);
		return;
	}
	char said[WORDS_MAX];
	last_words(words, said);
	error_set_reason(
		err, cause->code, cause->reason, "ssh %s%s%s", ended, said[0] ? ": " : "", said);
	size_t len = strlen(err->text);
	if (cause->reason && strcmp(cause->reason, "AUTH_FAILED") == 0) {
		snprintf(err->text + len, sizeof(err->text) - len, " (keys offered: %s)",
			words->offered[0] ? words->offered : "none");
	} else if (cause->cure) {
		snprintf(err->text + len, sizeof(err->text) - len, " (%s)", cause->cure);
	}
}
