/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/words.h"

static const char *const client_choices[] = {"auto", "libssh2", "openssh", NULL};

enum { SECOND_MS = 1000, TIMEOUT_MAX_MS = 10 * 60 * 1000, ALIVE_COUNT_MAX = 1000 };

const struct setting_key ssh_target_keys[] = {
	{.name = "host",
		.type = SETTING_TEXT,
		.help = "the host, as in ~/.ssh/config: NAME, USER@NAME or ssh://USER@NAME:PORT"},
	{.name = "port", .type = SETTING_COUNT, .min = 1, .max = 65535, .help = "its port"},
	{.name = "user", .type = SETTING_TEXT, .help = "the user on the host"},
	{.name = "identity-file",
		.type = SETTING_LIST,
		.help = "a private key, instead of those that ssh would try"},
	{.name = "identity-agent",
		.type = SETTING_TEXT,
		.help = "the socket of the agent to ask for keys, SSH_AUTH_SOCK, or none"},
	{.name = "known-hosts",
		.type = SETTING_TEXT,
		.help = "the only file in which to look up host keys"},
	{.name = "host-key",
		.type = SETTING_TEXT,
		.help = "the fingerprint (SHA256:...) that the key of the host must have"},
	{.name = "ssh-config", .type = SETTING_TEXT, .help = "the file to read with ssh -F"},
	{.name = "ssh-client",
		.type = SETTING_CHOICE,
		.choices = client_choices,
		.fallback = "auto",
		.help = "libssh2, the program ssh (openssh), or auto: ssh where libssh2 cannot"},
	{.name = "resolve-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = SECOND_MS,
		.max = TIMEOUT_MAX_MS,
		.help = "the deadline for ssh -G to resolve the host"},
	{.name = "connect-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = SECOND_MS,
		.max = TIMEOUT_MAX_MS,
		.help = "the deadline for reaching the host"},
	{.name = "auth-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = SECOND_MS,
		.max = TIMEOUT_MAX_MS,
		.help = "the deadline for logging in"},
	{.name = "alive-interval",
		.type = SETTING_DURATION,
		.fallback = "15s",
		.min = SECOND_MS,
		.help = "how often to ask the host whether it still answers"},
	{.name = "alive-count",
		.type = SETTING_COUNT,
		.fallback = "4",
		.min = 1,
		.max = ALIVE_COUNT_MAX,
		.help = "how many of these questions may go unanswered"},
	{.name = "passphrase-command",
		.type = SETTING_TEXT,
		.help = "a shell line that prints the passphrase of the private key"},
	{.name = "password-command",
		.type = SETTING_TEXT,
		.help = "a shell line that prints the password of the user on the host"},
	{.name = "allow-none",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "log in with the user's name alone if the host allows that"},
};
const size_t ssh_target_key_count = ARRAY_LENGTH(ssh_target_keys);

const char *const ssh_algorithms_names[SSH_ALGORITHMS_COUNT] = {
	[SSH_KEX_ALGORITHMS] = "KexAlgorithms",
	[SSH_HOST_KEY_ALGORITHMS] = "HostKeyAlgorithms",
	[SSH_CIPHERS] = "Ciphers",
	[SSH_MACS] = "MACs",
	[SSH_PUBKEY_ALGORITHMS] = "PubkeyAcceptedAlgorithms",
};

bool ssh_names_have(const char *names, struct span name)
{
	while (names && *names) {
		size_t len = strcspn(names, ",");
		if (span_equals((struct span){names, len}, name)) {
			return true;
		}
		names += len + (names[len] == ',');
	}
	return false;
}

void ssh_target_finish(struct ssh_target *target)
{
	if (target->via) {
		ssh_target_finish(target->via); // there are at most eight jump hosts
		free(target->via);
	}
	if (target->user && target->user_is_secret) {
		explicit_bzero(target->user, strlen(target->user));
	}
	char *const texts[] = {target->alias, target->host, target->user, target->host_key_alias,
		target->identity_agent, target->host_key_pin, target->proxy_command,
		target->passphrase_command, target->password_command, target->ssh_program,
		target->config_file, target->revoked_host_keys, target->unknown_setting,
		target->preferred_methods};
	char **const lists[] = {target->identity_files, target->user_known_hosts_files,
		target->global_known_hosts_files, target->set_env, target->certificate_files,
		target->forwards};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		free(texts[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(target->algorithms); i++) {
		free(target->algorithms[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		words_free(lists[i]);
	}
	*target = (struct ssh_target){0};
}

const char *ssh_folder(char buffer[PATH_MAX])
{
	return getcwd(buffer, PATH_MAX) && buffer[0] == '/' ? buffer : "/";
}

const char *ssh_target_user_shown(const struct ssh_target *target)
{
	return target->user_is_secret ? "(secret)" : target->user;
}

bool ssh_target_may_use_program(const struct ssh_target *target)
{
	return target->client == SSH_CLIENT_AUTO && target->ssh_program && !target->user_is_secret;
}

bool ssh_target_has_forwards(const struct ssh_target *target)
{
	return target->forwards && !target->omits_forwards;
}

const char *ssh_target_tell_locked(const char *files, char *text, size_t size)
{
	text_format(text, size,
		"%s: it has a passphrase, and nobody can be asked for it (no "
		"passphrase-command is set, and the broker has neither a terminal "
		"nor SSH_ASKPASS): add the key to an agent with ssh-add, or set "
		"passphrase-command in the profile",
		files);
	return text;
}

const char *ssh_target_other_client(const struct ssh_target *target)
{
	return target->user_is_secret ? "" : ": set ssh-client = openssh";
}
