/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_files.h"

#include <stddef.h>
#include <string.h>

#include "base/attr.h"

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

const char *const agent_files_choices[] = {
	"none", "claude", "codex", "gemini", "opencode", "qwen", NULL};

/*
 * Determined with the versions that tests/interop/agents/ installs: the files that appear in an
 * empty home, and the smallest set with which a second start finds the session of the first.
 */
static const struct agent_files known[] = {
	{
		.name = "claude",
		.kept = ".claude/projects",
		.moved = KEYS("CLAUDE_CONFIG_DIR"),
		.files = {{.path = ".claude/.credentials.json",
				  .keys = KEYS("claudeAiOauth.accessToken",
					  "claudeAiOauth.clientId", "claudeAiOauth.expiresAt",
					  "claudeAiOauth.rateLimitTier",
					  "claudeAiOauth.refreshToken",
					  "claudeAiOauth.refreshTokenExpiresAt",
					  "claudeAiOauth.scopes", "claudeAiOauth.subscriptionType"),
				  .back = KEYS("claudeAiOauth.accessToken",
					  "claudeAiOauth.expiresAt", "claudeAiOauth.refreshToken",
					  "claudeAiOauth.refreshTokenExpiresAt"),
				  .newer = "claudeAiOauth.expiresAt"},
			{.path = ".claude/settings.json",
				.keys = KEYS("effortLevel", "language", "model", "permissions.ask",
					"permissions.deny")}},
	},
	{
		/* No settings go in: they are TOML, which the broker cannot read. */
		.name = "codex",
		.kept = ".codex/sessions",
		.moved = KEYS("CODEX_HOME"),
		.files = {{.path = ".codex/auth.json",
			.keys = KEYS("OPENAI_API_KEY", "auth_mode", "last_refresh",
				"tokens.access_token", "tokens.account_id", "tokens.id_token",
				"tokens.refresh_token"),
			.back = KEYS("last_refresh", "tokens.access_token", "tokens.id_token",
				"tokens.refresh_token"),
			.newer = "last_refresh"}},
	},
	{
		/*
                 * gemini also downloads programs to this folder, so nothing in it may be executed.
                 */
		.name = "gemini",
		.kept = ".gemini/tmp",
		.moved = KEYS("GEMINI_CLI_HOME"),
		.files = {{.path = ".gemini/oauth_creds.json",
				  .keys = KEYS("access_token", "expiry_date", "id_token",
					  "refresh_token", "scope", "token_type"),
				  .back = KEYS("access_token", "expiry_date", "id_token",
					  "refresh_token"),
				  .newer = "expiry_date"},
			{.path = ".gemini/settings.json",
				.keys = KEYS("model.name", "security.auth.selectedType")}},
	},
	{
		/*
                 * The default folder of the database also has programs and plugins, so the database
                 * gets its own.
                 */
		.name = "opencode",
		.kept = ".local/share/opencode/db",
		.variable = "OPENCODE_DB",
		.variable_file = ".local/share/opencode/db/opencode.db",
		.moved = KEYS("XDG_DATA_HOME"),
		.files = {{.path = ".local/share/opencode/auth.json"}},
	},
	{
		/*
                 * `resource_url` names the server that receives the tokens, so it is never copied
                 * back.
                 */
		.name = "qwen",
		.kept = ".qwen/projects",
		.moved = KEYS("QWEN_HOME", "QWEN_RUNTIME_DIR"),
		.files = {{.path = ".qwen/oauth_creds.json",
				  .keys = KEYS("access_token", "expiry_date", "refresh_token",
					  "resource_url", "token_type"),
				  .back = KEYS("access_token", "expiry_date", "refresh_token"),
				  .newer = "expiry_date"},
			{.path = ".qwen/settings.json",
				.keys = KEYS("model.name", "security.auth.selectedType")}},
	},
};

const struct agent_files *agent_files_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LENGTH(known); i++) {
		if (strcmp(known[i].name, name) == 0) {
			return &known[i];
		}
	}
	return NULL;
}
