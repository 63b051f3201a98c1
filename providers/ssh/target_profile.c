/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target_profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/ssh/target_reader.h"

static const struct setting_key *key_of(const char *name)
{
	const struct setting_key *key =
		setting_key_find(ssh_target_keys, ssh_target_key_count, name);
	assert(key);
	return key;
}

static void take_text(char **text, const struct settings *settings, const char *key)
{
	const char *value = settings_get(settings, key);
	if (value) {
		mem_set_text(text, value);
	}
}

/* Settings that the profile does not have keep the values from ssh. */
static void take_number(long long *number, const struct settings *settings, const char *key)
{
	if (settings_find(settings, key)) {
		*number = settings_number(settings, key_of(key));
	}
}

static void take_int(int *number, const struct settings *settings, const char *key)
{
	long long value = *number;
	take_number(&value, settings, key);
	*number = (int)value;
}

static void take_client(struct ssh_target *target, const struct settings *settings)
{
	static const struct {
		const char *name;
		enum ssh_client_choice client;
	} choices[] = {{"libssh2", SSH_CLIENT_LIBSSH2}, {"openssh", SSH_CLIENT_OPENSSH},
		{"auto", SSH_CLIENT_AUTO}};
	const char *value = settings_get(settings, "ssh-client");
	for (size_t i = 0; value && i < ARRAY_LENGTH(choices); i++) {
		if (strcmp(choices[i].name, value) == 0) {
			target->client = choices[i].client;
		}
	}
}

/* ---- files ---- */

static char *expand(
	const char *text, const char *const *environment, const char *key, struct error *err)
{
	struct ssh_tokens tokens = {.environment = environment};
	ssh_tokens_complete(&tokens);
	char *path = ssh_expand_home(&tokens, text, err);
	ssh_tokens_finish(&tokens);
	if (!path) {
		error_prefix(err, "%s", key);
	}
	return path;
}

bool ssh_profile_path(const struct settings *settings, const char *key,
	const char *const *environment, char **out_path, struct error *err)
{
	const char *value = settings_get(settings, key);
	*out_path = value ? expand(value, environment, key, err) : NULL;
	return *out_path || !value;
}

static bool take_identities(struct ssh_target *target, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	static const char key[] = "identity-file";
	if (!settings_find(settings, key)) {
		return true;
	}
	words_free(target->identity_files);
	target->identity_files = mem_alloc_zero(sizeof(*target->identity_files));
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, key) == 0 && setting->value[0]) {
			char *path = expand(setting->value, environment, key, err);
			if (!path) {
				return false;
			}
			words_append(&target->identity_files, path);
			free(path);
		}
	}
	return true;
}

static bool take_agent(struct ssh_target *target, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	const char *value = settings_get(settings, "identity-agent");
	if (!value) {
		return true;
	}
	struct ssh_tokens tokens = {.environment = environment};
	ssh_tokens_complete(&tokens);
	free(target->identity_agent);
	bool ok = ssh_agent_socket(&tokens, value, &target->identity_agent, err);
	ssh_tokens_finish(&tokens);
	return ok;
}

/* The profile's own file replaces all other known-hosts files. */
static bool take_known_hosts(struct ssh_target *target, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	char *path;
	if (!ssh_profile_path(settings, "known-hosts", environment, &path, err)) {
		return false;
	}
	if (path) {
		words_free(target->user_known_hosts_files);
		words_free(target->global_known_hosts_files);
		target->user_known_hosts_files = NULL;
		target->global_known_hosts_files = mem_alloc_zero(sizeof(char *));
		target->has_known_hosts_command = false;
		target->verifies_by_dns = false;
		words_append(&target->user_known_hosts_files, path);
		free(path);
	}
	return true;
}

bool ssh_target_apply(struct ssh_target *target, const struct settings *settings, bool is_hop,
	const char *const *environment, struct error *err)
{
	take_client(target, settings);
	take_number(&target->auth_timeout_ms, settings, "auth-timeout");
	take_text(&target->passphrase_command, settings, "passphrase-command");
	if (is_hop) {
		return true;
	}
	take_int(&target->port, settings, "port");
	take_text(&target->user, settings, "user");
	take_text(&target->host_key_pin, settings, "host-key");
	take_number(&target->connect_timeout_ms, settings, "connect-timeout");
	take_number(&target->alive_interval_ms, settings, "alive-interval");
	take_int(&target->alive_count_max, settings, "alive-count");
	take_text(&target->password_command, settings, "password-command");
	target->allows_none = settings_bool(settings, key_of("allow-none"));
	return take_identities(target, settings, environment, err) &&
	       take_agent(target, settings, environment, err) &&
	       take_known_hosts(target, settings, environment, err);
}
