/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/ssh/target_reader.h"

enum {
	IDENTITIES_MAX = 100, // the same limit as ssh's
	VARIABLES_MAX = 1024,
	SECONDS_MAX = 24 * 60 * 60,
	SETTING_MAX = 256,
	FORWARDS_MAX = 100,
};

/* ---- values ---- */

static bool is_none(const char *value)
{
	return strcasecmp(value, "none") == 0;
}

static bool read_bool(const char *value, bool *out_value, struct error *err)
{
	bool is_true = strcasecmp(value, "yes") == 0 || strcasecmp(value, "true") == 0;
	if (!is_true && strcasecmp(value, "no") != 0 && strcasecmp(value, "false") != 0) {
		return error_set(err, ERROR_CONFIG, "expected yes or no");
	}
	*out_value = is_true;
	return true;
}

static bool read_number(const char *value, long max, long *out_number, struct error *err)
{
	char *end = NULL;
	long number = strtol(value, &end, 10);
	if (end == value || *end || number < 0) {
		return error_set(err, ERROR_CONFIG, "expected a number");
	}
	*out_number = number < max ? number : max;
	return true;
}

static bool append_limited(char ***words, const char *word, size_t max, struct error *err)
{
	if (words_count(*words) >= max) {
		return error_set(err, ERROR_CONFIG, "more than %zu of them", max);
	}
	words_append(words, word);
	return true;
}

/* ---- keywords ---- */

static bool read_host(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	ssh_tokens_set(&reader->tokens, 'n', value);
	mem_set_text(&reader->target.alias, value);
	return true;
}

static bool read_host_name(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	size_t len = strlen(value);
	bool has_brackets = len > 2 && value[0] == '[' && value[len - 1] == ']';
	free(reader->target.host);
	reader->target.host =
		has_brackets ? mem_strndup((struct span){value + 1, len - 2}) : mem_strdup(value);
	return value[0] || error_set(err, ERROR_CONFIG, "expected the name of a host");
}

static bool read_port(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	long port = 0;
	if (!read_number(value, 65536, &port, err)) {
		return false;
	}
	reader->target.port = (int)port;
	return (port > 0 && port < 65536) ||
	       error_set(err, ERROR_CONFIG, "expected a number from 1 to 65535");
}

static bool read_user(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	mem_set_text(&reader->target.user, value);
	return value[0] || error_set(err, ERROR_CONFIG, "expected the name of a user");
}

static bool read_key_alias(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	if (value[0] && !is_none(value)) {
		mem_set_text(&reader->target.host_key_alias, value);
	}
	return true;
}

static bool read_identity(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	return is_none(value) || append_limited(&reader->identities, value, IDENTITIES_MAX, err);
}

static bool read_host_checking(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	static const struct {
		const char *word;
		enum ssh_host_checking checking;
	} words[] = {
		{"ask", SSH_HOST_CHECKING_STRICT},
		{"yes", SSH_HOST_CHECKING_STRICT},
		{"true", SSH_HOST_CHECKING_STRICT},
		{"accept-new", SSH_HOST_CHECKING_ACCEPT_NEW},
		{"no", SSH_HOST_CHECKING_OFF},
		{"off", SSH_HOST_CHECKING_OFF},
		{"false", SSH_HOST_CHECKING_OFF},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		if (strcasecmp(words[i].word, value) == 0) {
			reader->target.host_checking = words[i].checking;
			return true;
		}
	}
	return error_set(err, ERROR_CONFIG, "expected yes, ask, accept-new or no");
}

static bool read_known_hosts_command(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.has_known_hosts_command = value[0] && !is_none(value);
	return true;
}

/* "ask" shows the user what DNS says, but does not accept a key because of it. */
static bool read_verify_by_dns(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	return strcasecmp(value, "ask") == 0 ||
	       read_bool(value, &reader->target.verifies_by_dns, err);
}

static bool read_address_family(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.address_family = strcasecmp(value, "inet") == 0    ? AF_INET
	                                : strcasecmp(value, "inet6") == 0 ? AF_INET6
	                                                                  : AF_UNSPEC;
	return true;
}

static bool is_no(const char *value)
{
	return strcasecmp(value, "no") == 0 || strcasecmp(value, "false") == 0;
}

/* "unbound" and "host-bound" also mean yes. */
static bool read_key_login(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.avoids_keys = is_no(value);
	return true;
}

static bool read_password_login(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.avoids_password = is_no(value);
	return true;
}

static bool read_question_login(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.avoids_questions = is_no(value);
	return true;
}

static bool read_smart_card(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	reader->target.has_smart_card = value[0] && !is_none(value);
	return true;
}

static bool read_certificate(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	return is_none(value) || append_limited(&reader->certificates, value, IDENTITIES_MAX, err);
}

static bool read_jumps(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	if (value[0] && !is_none(value)) {
		mem_set_text(&reader->jumps, value);
	}
	return true;
}

static bool read_proxy_command(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	if (value[0] && !is_none(value)) {
		mem_set_text(&reader->proxy_command, value);
	}
	return true;
}

static bool read_seconds(const char *value, long long *out_ms, struct error *err)
{
	long seconds = 0;
	if (is_none(value)) {
		return true;
	}
	if (!read_number(value, SECONDS_MAX, &seconds, err)) {
		return false;
	}
	*out_ms = seconds > 0 ? seconds * 1000LL : *out_ms;
	return true;
}

static bool read_connect_timeout(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	return read_seconds(value, &reader->target.connect_timeout_ms, err);
}

static bool read_alive_interval(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	return read_seconds(value, &reader->target.alive_interval_ms, err);
}

static bool read_alive_count(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	long count = 0;
	if (!read_number(value, 1000, &count, err)) {
		return false;
	}
	reader->alive_count = count > 0 ? (int)count : 1;
	return true;
}

static bool read_variable(struct ssh_target_reader *reader, const char *value, struct error *err)
{
	const char *equals = strchr(value, '=');
	if (!equals || !environment_name_is_valid(value, (size_t)(equals - value))) {
		return error_set(err, ERROR_CONFIG, "expected NAME=value");
	}
	return append_limited(&reader->target.set_env, value, VARIABLES_MAX, err);
}

/* Reads the expanded tokens, for which we set ControlPath (target_tokens.h). */
static bool read_control_path(
	struct ssh_target_reader *reader, const char *value, struct error *err)
{
	ssh_tokens_read(&reader->tokens, span_of(value));
	return true;
}

static const struct keyword {
	const char *name;
	bool (*read)(struct ssh_target_reader *reader, const char *value, struct error *err);
} keywords[] = {
	{"addressfamily", read_address_family},
	{"certificatefile", read_certificate},
	{"connecttimeout", read_connect_timeout},
	{"controlpath", read_control_path},
	{"host", read_host},
	{"hostkeyalias", read_key_alias},
	{"hostname", read_host_name},
	{"identityfile", read_identity},
	{"kbdinteractiveauthentication", read_question_login},
	{"knownhostscommand", read_known_hosts_command},
	{"passwordauthentication", read_password_login},
	{"pkcs11provider", read_smart_card},
	{"port", read_port},
	{"proxycommand", read_proxy_command},
	{"proxyjump", read_jumps},
	{"pubkeyauthentication", read_key_login},
	{"serveralivecountmax", read_alive_count},
	{"serveraliveinterval", read_alive_interval},
	{"setenv", read_variable},
	{"stricthostkeychecking", read_host_checking},
	{"user", read_user},
	{"verifyhostkeydns", read_verify_by_dns},
};

/* Keywords that are stored as printed, and keywords that are yes or no. */
struct place {
	const char *name;
	size_t offset; // in struct ssh_target_reader
};

#define PLACE(name, member)                                                                        \
	{                                                                                          \
		name, offsetof(struct ssh_target_reader, member)                                   \
	}

static const struct place texts[] = {
	PLACE("ciphers", target.algorithms[SSH_CIPHERS]),
	PLACE("globalknownhostsfile", global_files),
	PLACE("hostkeyalgorithms", target.algorithms[SSH_HOST_KEY_ALGORITHMS]),
	PLACE("identityagent", agent),
	PLACE("kexalgorithms", target.algorithms[SSH_KEX_ALGORITHMS]),
	PLACE("macs", target.algorithms[SSH_MACS]),
	PLACE("preferredauthentications", target.preferred_methods),
	PLACE("pubkeyacceptedalgorithms", target.algorithms[SSH_PUBKEY_ALGORITHMS]),
	PLACE("pubkeyacceptedkeytypes", target.algorithms[SSH_PUBKEY_ALGORITHMS]), // before 8.5
	PLACE("revokedhostkeys", revoked_keys),
	PLACE("userknownhostsfile", user_files),
};

static const struct place flags[] = {
	PLACE("gssapiauthentication", target.has_kerberos),
	PLACE("hashknownhosts", target.hash_known_hosts),
	PLACE("hostbasedauthentication", target.has_host_login),
	PLACE("identitiesonly", target.identities_only),
	PLACE("nohostauthenticationforlocalhost", target.trusts_loopback),
};

static void *find_place(struct ssh_target_reader *reader, const struct place *places, size_t count,
	const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(places[i].name, name) == 0) {
			return (char *)reader + places[i].offset;
		}
	}
	return NULL;
}

/* Keywords that the libssh2 client does not support, unless they are "no" or "none". */
static const char *const unknown[] = {"BindAddress", "BindInterface", "ProxyUseFdpass"};

static void note_unknown(struct ssh_target_reader *reader, const char *name, const char *value)
{
	struct buf text ATTR_CLEANUP(buf_finish);
	buf_init(&text, strlen(value) + 32);
	for (size_t i = 0; i < ARRAY_LENGTH(unknown); i++) {
		if (strcasecmp(unknown[i], name) == 0 && !is_none(value) &&
			strcasecmp(value, "no") != 0 && !reader->target.unknown_setting &&
			buf_append_format(&text, NULL, "%s %s", unknown[i], value)) {
			reader->target.unknown_setting = mem_strndup(buf_span(&text));
		}
	}
}

/* Keywords that forward something, unless they are "no". */
static const char *const forwards[] = {
	"DynamicForward", "ForwardAgent", "LocalForward", "RemoteForward"};

static bool note_forward(
	struct ssh_target_reader *reader, const char *name, const char *value, struct error *err)
{
	struct buf text ATTR_CLEANUP(buf_finish);
	buf_init(&text, strlen(value) + SETTING_MAX);
	for (size_t i = 0; i < ARRAY_LENGTH(forwards); i++) {
		if (strcasecmp(forwards[i], name) != 0 || is_no(value)) {
			continue;
		}
		bool is_agent = strcmp(forwards[i], "ForwardAgent") == 0;
		reader->target.forwards_agent = reader->target.forwards_agent || is_agent;
		return buf_append_format(&text, err, "%s %s", forwards[i], value) &&
		       buf_append(&text, (struct span){"", 1}, err) &&
		       append_limited(
			       &reader->target.forwards, buf_span(&text).data, FORWARDS_MAX, err);
	}
	return true;
}

/* ---- lines ---- */

static bool read_value(
	struct ssh_target_reader *reader, const char *name, const char *value, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(keywords); i++) {
		if (strcasecmp(keywords[i].name, name) == 0) {
			return keywords[i].read(reader, value, err);
		}
	}
	char **text = find_place(reader, texts, ARRAY_LENGTH(texts), name);
	if (text) {
		mem_set_text(text, value);
		return true;
	}
	bool *flag = find_place(reader, flags, ARRAY_LENGTH(flags), name);
	if (flag) {
		return read_bool(value, flag, err);
	}
	note_unknown(reader, name, value);
	return note_forward(reader, name, value, err);
}

static bool read_line(struct ssh_target_reader *reader, struct span line, struct error *err)
{
	const char *space = line.len > 0 ? memchr(line.data, ' ', line.len) : NULL;
	if (!space) {
		return true; // a keyword without a value
	}
	size_t len = (size_t)(space - line.data);
	char *name = mem_strndup((struct span){line.data, len});
	char *value = mem_strndup((struct span){space + 1, line.len - len - 1});
	bool ok = read_value(reader, name, value, err) ||
	          error_prefix(err, "%s \"%s\" of ssh -G", name, value);
	free(name);
	free(value);
	return ok;
}

static bool read_lines(struct ssh_target_reader *reader, struct span text, struct error *err)
{
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		struct span line = {text.data, end ? (size_t)(end - text.data) : text.len};
		if (!read_line(reader, line, err)) {
			return false;
		}
		size_t taken = line.len + (end ? 1 : 0);
		text = (struct span){text.data + taken, text.len - taken};
	}
	return true;
}

bool ssh_target_read(struct span text, const char *const *environment,
	struct ssh_target *out_target, char **out_jumps, struct error *err)
{
	struct ssh_target_reader reader = {.tokens.environment = environment};
	bool ok = read_lines(&reader, text, err) && ssh_target_complete(&reader, err);
	if (ok) {
		*out_target = reader.target;
		*out_jumps = reader.jumps;
	} else {
		ssh_target_finish(&reader.target);
		free(reader.jumps);
	}
	ssh_tokens_finish(&reader.tokens);
	words_free(reader.identities);
	words_free(reader.certificates);
	free(reader.revoked_keys);
	free(reader.proxy_command);
	free(reader.agent);
	free(reader.user_files);
	free(reader.global_files);
	return ok;
}
