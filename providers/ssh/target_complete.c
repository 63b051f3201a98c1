/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/ssh/target_reader.h"

enum { FILES_MAX = 32 }; // the same limit as ssh's

/* ---- lists of files ---- */

static bool begins_name(const char *at)
{
	return *at == '/' || *at == '~' || *at == '"';
}

/* The end of the word or quoted text at `at`. */
static const char *word_end(const char *at)
{
	const char *quote = *at == '"' ? strchr(at + 1, '"') : NULL;
	return quote ? quote + 1 : at + strcspn(at, " ");
}

/*
 * Takes one name. ssh prints no quotes, so a text without a leading slash after an absolute name is
 * treated as the rest of a name with a blank.
 */
static struct span take_name(const char **rest)
{
	const char *begin = *rest;
	const char *end = word_end(begin);
	const char *next = end + strspn(end, " ");
	if (*begin == '"') {
		*rest = next;
		bool is_closed = end - begin > 1 && end[-1] == '"';
		return (struct span){begin + 1, (size_t)(end - begin) - (is_closed ? 2 : 1)};
	}
	while (begins_name(begin) && *next && !begins_name(next)) {
		end = word_end(next);
		next = end + strspn(end, " ");
	}
	*rest = next;
	return (struct span){begin, (size_t)(end - begin)};
}

static bool append_file(
	const struct ssh_tokens *tokens, struct span name, char ***files, struct error *err)
{
	if (words_count(*files) >= FILES_MAX) {
		return error_set(err, ERROR_CONFIG, "more than %d of them", FILES_MAX);
	}
	char *text = mem_strndup(name);
	char *path = ssh_expand_home(tokens, text, err);
	if (path) {
		words_append(files, path);
	}
	free(text);
	free(path);
	return path != NULL;
}

static bool complete_files(const struct ssh_tokens *tokens, const char *keyword, const char *text,
	char ***files, struct error *err)
{
	bool ok = true;
	*files = mem_alloc_zero(sizeof(**files));
	if (!text || strcasecmp(text, "none") == 0) {
		return true;
	}
	text += strspn(text, " ");
	while (ok && *text) {
		struct span name = take_name(&text);
		ok = name.len == 0 || append_file(tokens, name, files, err);
	}
	return ok || error_prefix(err, "%s", keyword);
}

/* ---- the rest ---- */

static bool complete_paths(const struct ssh_tokens *tokens, const char *keyword, char **names,
	char ***files, struct error *err)
{
	*files = mem_alloc_zero(sizeof(char *));
	for (; names && *names; names++) {
		char *path = ssh_expand_path(tokens, *names, err);
		if (!path) {
			return error_prefix(err, "%s \"%s\"", keyword, *names);
		}
		words_append(files, path);
		free(path);
	}
	return true;
}

static bool complete_revoked_keys(struct ssh_target_reader *reader, struct error *err)
{
	const char *name = reader->revoked_keys;
	if (!name || strcasecmp(name, "none") == 0) {
		return true;
	}
	reader->target.revoked_host_keys = ssh_expand_path(&reader->tokens, name, err);
	return reader->target.revoked_host_keys ||
	       error_prefix(err, "RevokedHostKeys \"%s\"", name);
}

bool ssh_agent_socket(
	const struct ssh_tokens *tokens, const char *text, char **out_socket, struct error *err)
{
	*out_socket = NULL;
	if (text && strcasecmp(text, "none") == 0) {
		return true;
	}
	bool is_default = !text || strcmp(text, "SSH_AUTH_SOCK") == 0;
	if (is_default || (text[0] == '$' && text[1] != '{')) {
		const char *name = is_default ? "SSH_AUTH_SOCK" : text + 1;
		const char *value = ssh_tokens_environment(tokens->environment, span_of(name));
		*out_socket = value && value[0] ? mem_strdup(value) : NULL;
		return true;
	}
	*out_socket = ssh_expand_home(tokens, text, err);
	return *out_socket || error_prefix(err, "IdentityAgent \"%s\"", text);
}

static bool complete_proxy_command(struct ssh_target_reader *reader, struct error *err)
{
	if (!reader->proxy_command) {
		return true;
	}
	reader->target.proxy_command =
		ssh_expand_tokens(&reader->tokens, reader->proxy_command, err);
	return reader->target.proxy_command ||
	       error_prefix(err, "ProxyCommand \"%s\"", reader->proxy_command);
}

static void complete_numbers(struct ssh_target_reader *reader)
{
	struct ssh_target *target = &reader->target;
	target->port = target->port > 0 ? target->port : SSH_PORT;
	target->auth_timeout_ms = SSH_AUTH_TIMEOUT_MS;
	if (target->connect_timeout_ms == 0) {
		target->connect_timeout_ms = SSH_CONNECT_TIMEOUT_MS;
	}
	bool is_alive_set = target->alive_interval_ms > 0 && reader->alive_count > 0;
	target->alive_count_max = is_alive_set ? reader->alive_count : SSH_ALIVE_COUNT;
	if (target->alive_interval_ms == 0) {
		target->alive_interval_ms = SSH_ALIVE_INTERVAL_MS;
	}
	target->client = SSH_CLIENT_AUTO;
}

/* If the ticket is not in the default file, the environment of the login names its place. */
static void complete_kerberos(struct ssh_target_reader *reader)
{
	const char *cache =
		ssh_tokens_environment(reader->tokens.environment, SPAN_LITERAL("KRB5CCNAME"));
	reader->target.names_tickets = cache && cache[0];
}

static void complete_names(struct ssh_target_reader *reader)
{
	struct ssh_target *target = &reader->target;
	struct ssh_tokens *tokens = &reader->tokens;
	char port[16];
	ssh_tokens_complete(tokens);
	const char *local_user = ssh_tokens_get(tokens, 'u');
	if (!target->user && local_user && local_user[0]) {
		target->user = mem_strdup(local_user);
	}
	if (!target->alias) {
		target->alias = mem_strdup(target->host);
		ssh_tokens_set(tokens, 'n', target->host);
	}
	snprintf(port, sizeof(port), "%d", target->port);
	ssh_tokens_set(tokens, 'p', port);
	ssh_tokens_set(tokens, 'h', target->host);
	ssh_tokens_set(tokens, 'r', target->user);
	ssh_tokens_set(tokens, 'j', reader->jumps ? reader->jumps : "");
	ssh_tokens_set(tokens, 'k',
		target->host_key_alias ? target->host_key_alias : ssh_tokens_get(tokens, 'n'));
}

bool ssh_target_complete(struct ssh_target_reader *reader, struct error *err)
{
	struct ssh_target *target = &reader->target;
	const struct ssh_tokens *tokens = &reader->tokens;
	if (!target->host) {
		return error_set(err, ERROR_CONFIG, "ssh -G names no host");
	}
	complete_numbers(reader);
	complete_kerberos(reader);
	complete_names(reader);
	if (!target->user) {
		return error_set(err, ERROR_CONFIG,
			"your name is unknown (LOGNAME is not set): set user in the "
			"profile to your name on %s",
			target->host);
	}
	if (!target->set_env) {
		target->set_env = mem_alloc_zero(sizeof(*target->set_env));
	}
	return complete_paths(
		       tokens, "IdentityFile", reader->identities, &target->identity_files, err) &&
	       complete_paths(tokens, "CertificateFile", reader->certificates,
		       &target->certificate_files, err) &&
	       complete_revoked_keys(reader, err) && complete_proxy_command(reader, err) &&
	       ssh_agent_socket(tokens, reader->agent, &target->identity_agent, err) &&
	       complete_files(tokens, "UserKnownHostsFile", reader->user_files,
		       &target->user_known_hosts_files, err) &&
	       complete_files(tokens, "GlobalKnownHostsFile", reader->global_files,
		       &target->global_known_hosts_files, err);
}
