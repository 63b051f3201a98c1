/* SPDX-License-Identifier: MIT */
#include "providers/ssh/openssh_argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/shell_quote.h"
#include "base/words.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/openssh_askpass.h"

enum { OPTION_MAX = 64 * 1024 }; // the longest is a proxy command that contains another

static void put(struct buf *buf, const char *text)
{
	if (!buf_append(buf, span_of(text), NULL)) {
		abort(); // the configuration's limits are much lower
	}
}

static void put_char(struct buf *buf, char c)
{
	put(buf, (const char[]){c, '\0'});
}

/* Escapes "%" for options in which ssh expands tokens. */
static void put_literal(struct buf *buf, const char *text)
{
	for (; *text; text++) {
		put(buf, *text == '%' ? "%%" : (const char[]){*text, '\0'});
	}
}

/* Quotes for ssh_config(5): in double quotes, with a backslash before quotes and backslashes. */
static void put_quoted(struct buf *buf, const char *text)
{
	put_char(buf, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\') {
			put_char(buf, '\\');
		}
		put(buf, *text == '%' ? "%%" : (const char[]){*text, '\0'});
	}
	put_char(buf, '"');
}

static const char *terminated(struct buf *buf)
{
	if (!buf_append(buf, (struct span){"", 1}, NULL)) {
		abort();
	}
	return buf_span(buf).data;
}

/* ---- options ---- */

static void add_option(char ***argv, const char *format, ...) ATTR_PRINTF(2, 3);

static void add_option(char ***argv, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0) {
		abort();
	}
	va_end(args);
	words_append(argv, "-o");
	words_append(argv, text);
	free(text);
}

/* Adds a path with any bytes, for an option in which ssh expands tokens. */
static void add_path(char ***argv, const char *name, const char *path)
{
	struct buf value ATTR_CLEANUP(buf_finish);
	buf_init(&value, OPTION_MAX);
	put_quoted(&value, path);
	add_option(argv, "%s=%s", name, terminated(&value));
}

static void add_paths(char ***argv, const char *name, char *const *paths)
{
	if (!paths) {
		return; // ssh's own default
	}
	if (!paths[0]) {
		add_option(argv, "%s=none", name);
		return;
	}
	struct buf value ATTR_CLEANUP(buf_finish);
	buf_init(&value, OPTION_MAX);
	for (; *paths; paths++) {
		put_quoted(&value, *paths);
		put(&value, paths[1] ? " " : "");
	}
	add_option(argv, "%s=%s", name, terminated(&value));
}

static long long seconds_of(long long ms)
{
	return (ms + 999) / 1000;
}

/*
 * Options that older programs do not know. These may ignore them, unless there is a pin, which
 * needs them.
 */
static void add_unknown(char ***argv, bool has_pin)
{
	add_option(argv, "IgnoreUnknown=ForkAfterAuthentication,StdinNull,SessionType%s",
		has_pin ? "" : ",KnownHostsCommand");
}

/* Options that keep the user's files from changing the kind of connection. */
static void add_fixed(char ***argv)
{
	static const char *const options[] = {
		"ForkAfterAuthentication=no",
		"ControlPersist=no",
		"PermitLocalCommand=no",
		"RemoteCommand=none",
		"RequestTTY=no",
		"Tunnel=no",
		"FingerprintHash=sha256",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		add_option(argv, "%s", options[i]);
	}
}

/* Puts the key types that ssh would prefer first. */
static void add_key_types(char ***argv, size_t turn)
{
	struct buf value ATTR_CLEANUP(buf_finish);
	buf_init(&value, OPTION_MAX);
	for (const char *const *type = host_key_types(turn); *type; type++) {
		if (strcmp(*type, "ssh-rsa") != 0) {
			put(&value, value.len > 0 ? "," : "^");
			put(&value, *type);
		}
	}
	add_option(argv, "HostKeyAlgorithms=%s", terminated(&value));
}

/*
 * The host's key must be the pinned one: no other key is known, unknown ones are refused, and
 * nothing else can vouch for a key.
 */
static void add_pin(char ***argv, const char *pin)
{
	struct buf value ATTR_CLEANUP(buf_finish);
	buf_init(&value, OPTION_MAX);
	put(&value, "/bin/sh -c 'test \"$1\" = \"$2\" && echo \"$3 $4 $5\"; exit 0' sh %f ");
	/*
	 * In the form that ssh prints, even if the pin was written without its prefix or with
	 * padding.
	 */
	const char *digest = pin + (strncmp(pin, "SHA256:", 7) == 0 ? 7 : 0);
	put(&value, "SHA256:");
	struct span bare = {digest, strcspn(digest, "=")};
	char *text = mem_strndup(bare);
	put_quoted(&value, text);
	free(text);
	put(&value, " %H %t %K");
	add_option(argv, "KnownHostsCommand=%s", terminated(&value));
	add_option(argv, "UserKnownHostsFile=/dev/null");
	add_option(argv, "GlobalKnownHostsFile=/dev/null");
	add_option(argv, "StrictHostKeyChecking=yes");
	add_option(argv, "UpdateHostKeys=no");
	add_option(argv, "VerifyHostKeyDNS=no");
	add_option(argv, "NoHostAuthenticationForLocalhost=no");
}

static void add_host_keys(char ***argv, const struct ssh_target *target)
{
	if (target->host_key_alias) {
		add_option(argv, "HostKeyAlias=%s", target->host_key_alias);
	}
	if (target->host_key_pin) {
		add_pin(argv, target->host_key_pin);
		add_key_types(argv, target->host_key_turn);
		return;
	}
	add_paths(argv, "UserKnownHostsFile", target->user_known_hosts_files);
	add_paths(argv, "GlobalKnownHostsFile", target->global_known_hosts_files);
	/*
	 * The profile's own file replaces the user's known hosts, but not a KnownHostsCommand of
	 * the profile.
	 */
	if (!target->has_known_hosts_command) {
		add_option(argv, "KnownHostsCommand=none");
	}
	if (!target->verifies_by_dns) {
		add_option(argv, "VerifyHostKeyDNS=no");
	}
	/* Never "no", which would accept a key that has changed. */
	add_option(argv, "StrictHostKeyChecking=%s",
		target->host_checking == SSH_HOST_CHECKING_STRICT ? "yes" : "accept-new");
	add_option(argv, "HashKnownHosts=%s", target->hash_known_hosts ? "yes" : "no");
}

static void add_identities(char ***argv, const struct ssh_target *target)
{
	for (char *const *file = target->identity_files; file && *file; file++) {
		add_path(argv, "IdentityFile", *file);
	}
	add_option(argv, "IdentitiesOnly=%s", target->identities_only ? "yes" : "no");
	if (target->identity_agent) {
		add_path(argv, "IdentityAgent", target->identity_agent);
	} else {
		add_option(argv, "IdentityAgent=none");
	}
}

/* A port that is taken must not end the session: openssh_words.c reports it. */
static void add_forwards(char ***argv, bool has_forwards)
{
	add_option(argv, "ClearAllForwardings=%s", has_forwards ? "no" : "yes");
	if (has_forwards) {
		add_option(argv, "ExitOnForwardFailure=no");
	}
}

static void add_target(char ***argv, const struct ssh_target *target, int prompts);

/* An ssh to the host before the target; its stdin and stdout are a connection to the target. */
static void add_via(char ***argv, const struct ssh_target *target, int prompts)
{
	const struct ssh_target *via = target->via;
	char **words = NULL;
	struct buf place ATTR_CLEANUP(buf_finish);
	struct buf line ATTR_CLEANUP(buf_finish);
	buf_init(&place, OPTION_MAX);
	buf_init(&line, OPTION_MAX);
	if (!buf_append_format(&place, NULL, "[%s]:%d", target->host, target->port)) {
		abort();
	}
	words_append(&words, target->ssh_program);
	words_append(&words, "-W");
	words_append(&words, terminated(&place));
	add_option(&words, "LogLevel=ERROR"); // both programs write to the same stderr
	add_option(&words, "ControlMaster=no");
	add_option(&words, "ControlPath=none");
	add_forwards(&words, false);
	if (target->password_command) { // this password is only for the target
		add_option(&words, "PasswordAuthentication=no");
		add_option(&words, "KbdInteractiveAuthentication=no");
	}
	add_target(&words, via, prompts);
	for (char **word = words; *word; word++) {
		char *quoted = shell_quote(*word);
		put_literal(&line, quoted);
		free(quoted);
		put(&line, word[1] ? " " : "");
	}
	words_free(words);
	add_option(argv, "ProxyCommand=%s", terminated(&line));
}

static void add_proxy(char ***argv, const struct ssh_target *target, int prompts)
{
	if (target->via) {
		add_via(argv, target, prompts);
	} else if (target->proxy_command) {
		struct buf value ATTR_CLEANUP(buf_finish);
		buf_init(&value, OPTION_MAX);
		put_literal(&value, target->proxy_command);
		add_option(argv, "ProxyCommand=%s", terminated(&value));
	} else {
		add_option(argv, "ProxyCommand=none");
	}
}

/* All options that the connection and the hosts before it have in common. */
static void add_target(char ***argv, const struct ssh_target *target, int prompts)
{
	if (target->config_file) {
		words_append(argv, "-F");
		words_append(argv, target->config_file);
	}
	add_unknown(argv, target->host_key_pin != NULL);
	add_fixed(argv);
	add_option(argv, "BatchMode=%s", prompts > 0 ? "no" : "yes");
	add_option(argv, "NumberOfPasswordPrompts=%d", prompts > 0 ? prompts : 1);
	add_path(argv, "HostName", target->host);
	add_option(argv, "Port=%d", target->port);
	if (target->user) {
		add_option(argv, "User=%s", target->user);
	}
	add_option(argv, "ConnectTimeout=%lld", seconds_of(target->connect_timeout_ms));
	add_option(argv, "ServerAliveInterval=%lld", seconds_of(target->alive_interval_ms));
	add_option(argv, "ServerAliveCountMax=%d", target->alive_count_max);
	add_host_keys(argv, target);
	add_identities(argv, target);
	add_proxy(argv, target, prompts);
	words_append(argv, "--");
	words_append(argv, target->alias);
}

char **openssh_argv(
	const struct ssh_target *target, const char *const *environment, const char *control_path)
{
	char **argv = NULL;
	words_append(&argv, target->ssh_program);
	words_append(&argv, "-N");
	words_append(&argv, "-T");
	add_option(&argv, "LogLevel=DEBUG1");
	add_option(&argv, "ControlMaster=yes");
	add_path(&argv, "ControlPath", control_path);
	/* A command would only repeat its answer. */
	int prompts = openssh_has_command(target)            ? 1
	              : openssh_can_ask(target, environment) ? 3
	                                                     : 0;
	add_forwards(&argv, ssh_target_has_forwards(target));
	add_target(&argv, target, prompts);
	return argv;
}
