/* SPDX-License-Identifier: MIT */
#include "broker/config/known_agents.h"

#include <string.h>

#include "base/attr.h"
#include "base/real_path.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/*
 * Sources: the packages that tests/interop/agents/ installs (`bin` and `engines`), the agents'
 * answers to initialize (agentInfo, authMethods) and to --version, their README and --help.
 */
static const struct known_agent agents[] = {
	{
		.name = "claude",
		.title = "Claude Agent",
		.info_name = "@agentclientprotocol/claude-agent-acp",
		.argv = WORDS("claude-agent-acp"),
		.version = WORDS("claude-agent-acp", "--version"),
		.install = "npm install -g @agentclientprotocol/claude-agent-acp",
		.node_major = 22,
		.key_names = WORDS("ANTHROPIC_API_KEY"),
		.login = "claude-agent-acp --cli auth login --claudeai",
		.base_url_variable = "ANTHROPIC_BASE_URL",
	},
	{
		/* Another model service is set as a provider in CODEX_CONFIG. */
		.name = "codex",
		.title = "Codex",
		.info_name = "@agentclientprotocol/codex-acp",
		.argv = WORDS("codex-acp"),
		.version = WORDS("codex-acp", "--version"),
		.install = "npm install -g @agentclientprotocol/codex-acp",
		.key_names = WORDS("CODEX_API_KEY", "OPENAI_API_KEY"),
		.login = "codex-acp login",
		.has_sandbox = true,
	},
	{
		.name = "gemini",
		.title = "Gemini CLI",
		.info_name = "gemini-cli",
		.argv = WORDS("gemini", "--acp"),
		.version = WORDS("gemini", "--version"),
		.install = "npm install -g @google/gemini-cli",
		.node_major = 20,
		.key_names = WORDS("GEMINI_API_KEY"),
		.login = "gemini",
		.login_step = "Sign in with Google",
		.base_url_variable = "GOOGLE_GEMINI_BASE_URL",
	},
	{
		/*
                 * Each provider has its own variable. The agent's configuration sets another base
                 * URL.
                 */
		.name = "opencode",
		.title = "OpenCode",
		.info_name = "OpenCode",
		.argv = WORDS("opencode", "acp"),
		.version = WORDS("opencode", "--version"),
		.install = "npm install -g opencode-ai",
		.key_names = WORDS("OPENCODE_API_KEY"),
		.login = "opencode auth login",
	},
	{
		.name = "qwen",
		.title = "Qwen Code",
		.info_name = "qwen-code",
		.argv = WORDS("qwen", "--acp"),
		.version = WORDS("qwen", "--version"),
		.install = "npm install -g @qwen-code/qwen-code",
		.node_major = 22,
		.key_names = WORDS("OPENAI_API_KEY"),
		.login = "qwen",
		.login_step = "/auth",
		.base_url_variable = "OPENAI_BASE_URL",
	},
	{
		.name = "copilot",
		.title = "GitHub Copilot",
		.info_name = "Copilot",
		.argv = WORDS("copilot", "--acp"),
		.version = WORDS("copilot", "--version"),
		.install = "npm install -g @github/copilot",
		.key_names = WORDS("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
		.login = "copilot login",
		.base_url_variable = "COPILOT_PROVIDER_BASE_URL",
	},
};

static const char *const sandbox_programs[] = {"bwrap", "chroot", "docker", "firejail", "flatpak",
	"minijail0", "nsjail", "podman", "sandbox-exec", "srt", "unshare"};

const struct known_agent *known_agent_at(size_t index)
{
	return index < ARRAY_LENGTH(agents) ? &agents[index] : NULL;
}

const struct known_agent *known_agent_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(agents); i++) {
		if (strcmp(agents[i].name, name) == 0) {
			return &agents[i];
		}
	}
	return NULL;
}

const struct known_agent *known_agent_of_argv(const char *const *argv)
{
	const char *program = argv && argv[0] ? path_last_part(argv[0]) : "";
	for (size_t i = 0; i < ARRAY_LENGTH(agents); i++) {
		if (strcmp(agents[i].argv[0], program) == 0) {
			return &agents[i];
		}
	}
	return NULL;
}

bool known_agent_sandboxes_itself(const char *const *argv, const char *info_name)
{
	const struct known_agent *known = known_agent_of_argv(argv);
	const char *program = argv && argv[0] ? path_last_part(argv[0]) : "";
	bool has_sandbox = known && known->has_sandbox;
	for (size_t i = 0; i < ARRAY_LENGTH(agents); i++) {
		/* An agent calls itself by its package's name, with or without the scope. */
		bool is_it =
			strcmp(path_last_part(agents[i].info_name), path_last_part(info_name)) == 0;
		has_sandbox = has_sandbox || (is_it && agents[i].has_sandbox);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(sandbox_programs); i++) {
		has_sandbox = has_sandbox || strcmp(sandbox_programs[i], program) == 0;
	}
	return has_sandbox;
}
