/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shell_quote.h"
#include "base/text.h"
#include "providers/ssh/known_hosts.h"

enum { LINE_MAX_BYTES = 4096 };

/*
 * Messages of ssh that explain a failure, the most specific first: after a changed key ssh also
 * says that the verification failed, and after every failure that the connection was closed.
 */
struct cause {
	const char *words;
	enum error_code code;
	const char *reason;
	const char *cure; // may be NULL
};

/* For the key of a host before the target; about the target's own key we know much more. */
static const char unknown_cure[] =
	"compare its fingerprint with the host's own (there: ssh-keygen -lf "
	"/etc/ssh/ssh_host_*_key.pub), then connect once with ssh in a terminal and accept it";
static const char changed_cure[] =
	"find out why before anything else; ssh-keygen -R removes the old "
	"key";

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
		"is the host running, and is this the port of its sshd?"},
	{"kex_exchange_identification", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{"Connection closed by", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{"Connection reset by", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL},
	{" closed by remote host", ERROR_UNAVAILABLE, "HOST_UNREACHABLE", NULL}, // after the login
	{" timed out", ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", NULL},
};

/* ---- progress ---- */

static void set_progress(struct openssh_words *words, const char *text)
{
	text_format(words->progress, sizeof(words->progress), "%s", text);
	words->has_progress = true;
}

/* "127.0.0.1 [127.0.0.1] port 22." */
static void on_connecting(struct openssh_words *words, const char *rest)
{
	char address[64] = "", text[256];
	int port = 0;
	const char *bracket = strchr(rest, '[');
	if (bracket && sscanf(bracket, "[%63[^]]] port %d", address, &port) == 2) {
		text_format(text, sizeof(text), "Connecting to %s (%s port %d)",
			words->target->alias, address, port);
		set_progress(words, text);
		words->addresses++;
	}
}

static void on_proxy(struct openssh_words *words, const char *rest)
{
	char text[256];
	const struct ssh_target *via = words->target->via;
	text_format(text, sizeof(text), "Connecting to %s through %s", words->target->alias,
		via ? via->alias : "its proxy command");
	set_progress(words, text);
}

static void on_host_key(struct openssh_words *words, const char *rest)
{
	text_format(words->host_key, sizeof(words->host_key), "%s", rest);
}

static void on_authenticating(struct openssh_words *words, const char *rest)
{
	char text[256];
	words->is_authenticating = true;
	text_format(text, sizeof(text), "Authenticating as %s",
		words->target->user ? words->target->user : "you");
	set_progress(words, text);
}

/*
 * The length of the name in "/home/kim/my key ED25519 SHA256:… agent"; the name may contain blanks.
 */
static size_t key_name_len(const char *rest)
{
	const char *print = strstr(rest, " SHA256:");
	size_t len = print ? (size_t)(print - rest) : strcspn(rest, " ");
	while (print && len > 0 && rest[len - 1] != ' ') {
		len--;
	}
	return print && len > 0 ? len - 1 : strcspn(rest, " ");
}

static void add_name(char *list, size_t size, const char *name, size_t name_len)
{
	size_t len = strlen(list);
	text_append(list, size, "%s%.*s", len > 0 ? ", " : "", (int)name_len, name);
}

/* ssh does not use the key that the server would have accepted, and goes on. */
static void on_next(struct openssh_words *words, const char *rest)
{
	if (words->taken[0]) {
		add_name(words->locked, sizeof(words->locked), words->taken, strlen(words->taken));
		words->taken[0] = '\0';
	}
}

static void on_offering(struct openssh_words *words, const char *rest)
{
	on_next(words, rest);
	add_name(words->offered, sizeof(words->offered), rest, key_name_len(rest));
}

static void on_taken(struct openssh_words *words, const char *rest)
{
	text_format(words->taken, sizeof(words->taken), "%.*s", (int)key_name_len(rest), rest);
}

/* The server answered, so the key was used. */
static void on_answer(struct openssh_words *words, const char *rest)
{
	words->taken[0] = '\0';
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
	{"Server accepts key: ", on_taken},
	{"Authentications that can continue: ", on_answer},
	{"Trying private key: ", on_next},
	{"Next authentication method: ", on_next},
	{"No more authentication methods", on_next},
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

/* Other messages of a successful connection, and frames around warnings. */
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
			text_format(words->because, sizeof(words->because), "%s", line);
		}
	}
}

/* The last messages are the most important: if there is no room, the first are dropped. */
static void say(struct openssh_words *words, const char *line)
{
	size_t len = strlen(words->said);
	size_t most = sizeof(words->said) - 1;
	while (len > 0 && len + strlen("; ") + strlen(line) > most) {
		const char *rest = strstr(words->said, "; ");
		len = rest ? strlen(rest + 2) : 0;
		memmove(words->said, rest ? rest + 2 : "", len + 1);
	}
	text_append(words->said, sizeof(words->said), "%s%s", len > 0 ? "; " : "", line);
}

/* "Offending RSA key in /home/kim/.ssh/known_hosts:7" */
static void note_known(struct openssh_words *words, const char *line)
{
	const char *place = strstr(line, " key in ");
	if (place && strncmp(line, "Offending ", 10) == 0) {
		text_format(words->known_at, sizeof(words->known_at), "%s", place + 8);
	}
}

/* The client or the server cannot open a port of the user's configuration; the session goes on. */
static void note_refused(struct openssh_words *words, const char *line)
{
	static const char *const marks[] = {"cannot listen ", "port forwarding failed for "};
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
		if (strstr(line, marks[i])) {
			text_append(words->refused, sizeof(words->refused), "%s%s",
				words->refused[0] ? "; " : "", line);
			return;
		}
	}
}

static void read_complaint(struct openssh_words *words, const char *line, bool is_banner)
{
	if (!is_banner) {
		note_refused(words, line);
		find_cause(words, line);
		note_known(words, line);
		words->taken[0] = '\0'; // the reason follows
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
	/*
	 * ssh ends its own lines with a CR; the lines of a server's banner, which comes with the
	 * login, have none.
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

/* ---- reasons ---- */

enum { WORDS_MAX = OPENSSH_CAUSE_MAX + OPENSSH_SAID_MAX };

/* The last messages, preceded by the decisive one if that came earlier. */
static const char *last_words(const struct openssh_words *words, char text[WORDS_MAX])
{
	bool has_both = strstr(words->said, words->because) != NULL;
	text_format(text, WORDS_MAX, "%s%s%s", has_both ? "" : words->because, has_both ? "" : "; ",
		words->said);
	return text;
}

/* The file that the user's own ssh reads and writes. */
static const char *known_hosts_of(const struct ssh_target *target)
{
	char *const *files = target->user_known_hosts_files;
	return files && files[0] ? files[0] : "~/.ssh/known_hosts";
}

/* "-t rsa" for ssh-keyscan. */
static const char *scan_type(const char *host_key)
{
	return strncmp(host_key, "ssh-rsa", 7) == 0   ? "rsa"
	       : strncmp(host_key, "ecdsa-", 6) == 0  ? "ecdsa"
	       : strncmp(host_key, "ssh-dss", 7) == 0 ? "dsa"
	                                              : "ed25519";
}

/* We only know the key's fingerprint; its text is in the file on the host. */
static void explain_unknown(const struct openssh_words *words, struct error *err)
{
	const struct ssh_target *target = words->target;
	char *name = known_hosts_name(target);
	char *file = shell_quote(known_hosts_of(target));
	const char *there =
		host_key_file((struct span){words->host_key, strcspn(words->host_key, " ")});
	error_set_reason(err, ERROR_DENIED, "HOST_KEY_UNKNOWN",
		"no key of %s is known; it shows %s. If the host's own key (there: ssh-keygen -lf "
		"%s) is the same: connect once with \"ssh %s\", which asks, or add to %s a line "
		"with \"%s \" and the content of %s; ssh-keyscan -t %s -p %d %s prints that line",
		name, words->host_key, there, target->alias ? target->alias : target->host, file,
		name, there, scan_type(words->host_key), target->port, target->host);
	free(name);
	free(file);
}

static void explain_changed(const struct openssh_words *words, struct error *err)
{
	char *name = known_hosts_name(words->target);
	char at[OPENSSH_FILE_MAX];
	text_format(at, sizeof(at), "%s", words->known_at);
	char *colon = strrchr(at, ':');
	if (colon) {
		*colon = '\0';
	}
	char *file = shell_quote(at);
	char *quoted_name = shell_quote(name);
	error_set_reason(err, ERROR_DENIED, "HOST_KEY_MISMATCH",
		"the key of %s is not the known one: it is %s, and %s has another. Somebody may be "
		"intercepting the connection, or the host has been reinstalled; nothing was sent "
		"to it. Its own key is in %s there (ssh-keygen -lf). If its key was changed on "
		"purpose: ssh-keygen -f %s -R %s",
		name, words->host_key, words->known_at,
		host_key_file((struct span){words->host_key, strcspn(words->host_key, " ")}), file,
		quoted_name);
	free(quoted_name);
	free(name);
	free(file);
}

static void explain_key(
	const struct openssh_words *words, const struct cause *cause, struct error *err)
{
	const struct ssh_target *target = words->target;
	bool is_unknown = cause->cure == unknown_cure;
	char said[WORDS_MAX];
	last_words(words, said);
	if (!words->host_key[0]) { // of a host before the target
		error_set_reason(
			err, cause->code, cause->reason, "ssh: %s (%s)", said, cause->cure);
	} else if (target->host_key_pin) {
		error_set_reason(err, cause->code, "HOST_KEY_MISMATCH",
			"the key of %s is %s, but the profile has %s", target->host,
			words->host_key, target->host_key_pin);
	} else if (is_unknown && strstr(words->because, " is known for ")) {
		explain_unknown(words, err);
	} else if (!is_unknown && words->known_at[0]) {
		explain_changed(words, err);
	} else {
		error_set_reason(err, cause->code, cause->reason, "the key of %s is %s: %s (%s)",
			target->host, words->host_key, said, cause->cure);
	}
}

/* Names the keys that ssh offered, and those that it could not use without a passphrase. */
static void explain_keys(const struct openssh_words *words, struct error *err)
{
	const struct ssh_target *target = words->target;
	bool has_nobody = !target->has_user && !target->passphrase_command;
	if (words->locked[0] && has_nobody) {
		char text[ERROR_TEXT_MAX];
		char said[ERROR_TEXT_MAX];
		text_format(said, sizeof(said), "%s", err->text);
		error_set_reason(err, err->code, err->reason, "%s; %s",
			ssh_target_tell_locked(words->locked, text, sizeof(text)), said);
		return;
	}
	text_append(err->text, sizeof(err->text), " (keys offered: %s)",
		words->offered[0] ? words->offered : "none");
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
	if (cause->reason && strcmp(cause->reason, "AUTH_FAILED") == 0) {
		explain_keys(words, err);
	} else if (cause->cure) {
		text_append(err->text, sizeof(err->text), " (%s)", cause->cure);
	}
}
