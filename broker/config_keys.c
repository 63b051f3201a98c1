/* SPDX-License-Identifier: MIT */
#include "broker/config_keys.h"

#include <assert.h>
#include <string.h>

#include "broker/mcp_config.h"
#include "broker/policy.h"
#include "providers/network.h"

static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const sync_modes[] = {
	"none", "session-bidirectional", "turn-bidirectional", NULL};
static const char *const persistences[] = {"transient", "reuse", "archive", NULL};
static const char *const transports[] = {"auto", "git", "rsync", NULL};
static const char *const toolhost_modes[] = {"auto", "editor", "broker", NULL};

enum {
	KIB = 1 << 10,
	GIB = 1 << 30,
	HOUR = 3600 * 1000,
	DAY = 24 * HOUR,
};

static const struct setting_key broker_keys[] = {
	{.name = "profile",
		.type = SETTING_TEXT,
		.fallback = "local",
		.help = "the profile used without --profile"},
	{.name = "agent", .type = SETTING_TEXT, .help = "the agent of profiles that name none"},
	{.name = "log-level",
		.type = SETTING_CHOICE,
		.choices = log_levels,
		.fallback = "info",
		.help = "what is logged to stderr"},
	{.name = "trace", .type = SETTING_TEXT, .help = "a file for every message of every hop"},
	{.name = "audit",
		.type = SETTING_TEXT,
		.help = "a file for every decision on what an agent asked for"},
	{.name = "audit-size",
		.type = SETTING_BYTES,
		.fallback = "10m",
		.min = KIB,
		.max = GIB,
		.help = "bytes of it before a new one is begun"},
};

static const struct setting_key agent_keys[] = {
	{.name = "command",
		.type = SETTING_TEXT,
		.help = "the program, found on PATH or by its path"},
	{.name = "arg", .type = SETTING_LIST, .help = "one argument of the program"},
	{.name = "env", .type = SETTING_ENV_LIST, .help = "NAME=value for this agent"},
};

static const struct setting_key profile_keys[] = {
	{.name = "backend",
		.type = SETTING_TEXT,
		.fallback = "local",
		.help = "the provider of the sandbox"},
	{.name = "agent",
		.type = SETTING_TEXT,
		.help = "the [agent \"NAME\"] that is started without -- AGENT"},
	{.name = "policy",
		.type = SETTING_TEXT,
		.help = "the [policy \"NAME\"] that applies; the profile's own name otherwise"},
	{.name = "toolhost",
		.type = SETTING_CHOICE,
		.choices = toolhost_modes,
		.fallback = "auto",
		.help = "who serves the agent's files and terminals"},
	{.name = "mcp",
		.type = SETTING_LIST,
		.help = "an [mcp \"NAME\"] that replaces or joins the editor's MCP servers"},
	{.name = "env", .type = SETTING_ENV_LIST, .help = "NAME=value for the agent"},
	{.name = "secret-env",
		.type = SETTING_NAME_LIST,
		.help = "a variable handed on from the broker's environment"},
	{.name = "max-message",
		.type = SETTING_BYTES,
		.fallback = "64m",
		.min = KIB,
		.max = GIB,
		.help = "the longest message accepted"},
	{.name = "max-queue",
		.type = SETTING_BYTES,
		.fallback = "8m",
		.min = KIB,
		.max = GIB,
		.help = "bytes kept for a slow reader before its writer is held up"},
	{.name = "max-requests",
		.type = SETTING_COUNT,
		.fallback = "1024",
		.min = 1,
		.max = 1000000,
		.help = "unanswered requests of one side"},
	{.name = "max-sessions",
		.type = SETTING_COUNT,
		.fallback = "1024",
		.min = 1,
		.max = 100000,
		.help = "sessions open at once"},
	{.name = "start-timeout",
		.type = SETTING_DURATION,
		.fallback = "120s",
		.min = 1,
		.max = DAY,
		.help = "from the agent's start to its answer to initialize"},
	{.name = "restart-limit",
		.type = SETTING_COUNT,
		.fallback = "3",
		.min = 1,
		.max = 1000,
		.help = "starts of an ended agent within a minute, to restore one session"},
	{.name = "prepare-timeout",
		.type = SETTING_DURATION,
		.fallback = "120s",
		.min = 1,
		.max = DAY,
		.help = "to get the sandbox ready"},
	{.name = "stop-eof-timeout",
		.type = SETTING_DURATION,
		.fallback = "3s",
		.min = 0,
		.max = HOUR,
		.help = "for the agent to end after its stdin was closed"},
	{.name = "stop-term-timeout",
		.type = SETTING_DURATION,
		.fallback = "5s",
		.min = 0,
		.max = HOUR,
		.help = "for it to end after SIGTERM"},
	{.name = "stop-kill-timeout",
		.type = SETTING_DURATION,
		.fallback = "2s",
		.min = 1,
		.max = HOUR,
		.help = "for its processes to be gone after SIGKILL"},
	{.name = "drain-timeout",
		.type = SETTING_DURATION,
		.fallback = "2s",
		.min = 0,
		.max = HOUR,
		.help = "for the last output of an agent that has ended"},
	{.name = "pause-drain-timeout",
		.type = SETTING_DURATION,
		.fallback = "10s",
		.min = 0,
		.max = HOUR,
		.help = "for tool calls to end, before a session is paused or rolled back"},
	{.name = "pause-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = 1,
		.max = HOUR,
		.help = "for all that runs in a sandbox to stand still, or to go on"},
	{.name = "idle-timeout",
		.type = SETTING_DURATION,
		.fallback = "never",
		.min = 1,
		.help = "a prompt without a word from the agent"},
	{.name = "cancel-timeout",
		.type = SETTING_DURATION,
		.fallback = "10s",
		.min = 1,
		.max = HOUR,
		.help = "for the person's answers in a turn that the editor has cancelled"},
	{.name = "max-file",
		.type = SETTING_BYTES,
		.fallback = "16m",
		.min = KIB,
		.max = GIB,
		.help = "the largest file the broker reads or writes for the agent"},
	{.name = "output-limit",
		.type = SETTING_BYTES,
		.fallback = "1m",
		.min = KIB,
		.max = GIB,
		.help = "bytes of a terminal's output that are kept: the last ones"},
	{.name = "max-terminals",
		.type = SETTING_COUNT,
		.fallback = "100",
		.min = 1,
		.max = 10000,
		.help = "terminals of one agent that were not released"},
	{.name = "terminal-timeout",
		.type = SETTING_DURATION,
		.fallback = "never",
		.min = 1,
		.help = "how long a command in a terminal may run"},
	{.name = "file-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = 1,
		.max = DAY,
		.help = "for one file to be read or written"},
	{.name = "mcp-timeout",
		.type = SETTING_DURATION,
		.fallback = "30s",
		.min = 1,
		.max = DAY,
		.help = "for the sandbox to say which commands of MCP servers it has"},
	{.name = "health-timeout",
		.type = SETTING_DURATION,
		.fallback = "10s",
		.min = 1,
		.max = HOUR,
		.help = "for a sandbox to say that it is well"},
	{.name = "setup",
		.type = SETTING_LIST,
		.help = "a shell line that is run once in the home of a sandbox"},
	{.name = "setup-timeout",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = 1,
		.max = DAY,
		.help = "for all setup lines together"},
	{.name = "copy",
		.type = SETTING_LIST,
		.help = "a file that the sandbox gets too: FILE or FILE:THERE"},
	{.name = "permission-timeout",
		.type = SETTING_DURATION,
		.fallback = "never",
		.min = 1,
		.help = "for the person to answer a question"},
	{.name = "network",
		.type = SETTING_CHOICE,
		.choices = network_modes,
		.fallback = "open",
		.help = "what the sandbox may reach: everything, nothing, or what is allowed"},
	{.name = "allow-host",
		.type = SETTING_LIST,
		.help = "a host that it may reach with network = allow: NAME or *.NAME"},
	{.name = "allow-cidr",
		.type = SETTING_LIST,
		.help = "a network that it may reach with network = allow"},
	{.name = "public-ingress",
		.type = SETTING_BOOL,
		.help = "whether anybody may reach what listens in the sandbox"},
	{.name = "required",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "refuse a backend that cannot enforce what these say"},
	{.name = "sync",
		.type = SETTING_CHOICE,
		.choices = sync_modes,
		.fallback = "turn-bidirectional",
		.help = "when the workspace and the sandbox are brought in step"},
	{.name = "persistence",
		.type = SETTING_CHOICE,
		.choices = persistences,
		.fallback = "reuse",
		.help = "whether the sandbox is kept when the broker ends"},
	{.name = "transport",
		.type = SETTING_CHOICE,
		.choices = transports,
		.fallback = "auto",
		.help = "how files travel between the workspace and the sandbox"},
	{.name = "include",
		.type = SETTING_LIST,
		.help = "a pathspec of files that travel although they are ignored"},
	{.name = "exclude", .type = SETTING_LIST, .help = "a pathspec of files that do not travel"},
	{.name = "big-file",
		.type = SETTING_BYTES,
		.fallback = "32m",
		.min = 64 * KIB,
		.max = GIB,
		.help = "a file over it travels as a stream and is not merged"},
	{.name = "max-files",
		.type = SETTING_COUNT,
		.fallback = "150000",
		.min = 1,
		.max = 100000000,
		.help = "files of a workspace that is synced"},
	{.name = "max-size",
		.type = SETTING_BYTES,
		.fallback = "20g",
		.min = KIB,
		.max = 1LL << 50,
		.help = "bytes of a workspace that is synced"},
	{.name = "sync-timeout",
		.type = SETTING_DURATION,
		.fallback = "60s",
		.min = 1,
		.max = DAY,
		.help = "for a sync that makes no progress"},
	{.name = "sync-lock-timeout",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = 1,
		.max = DAY,
		.help = "for another broker to end its sync of the workspace"},
	{.name = "recovery-timeout",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = 1,
		.max = DAY,
		.help = "for what brokers that are gone left in sandboxes, at a start"},
	{.name = "checkpoints",
		.type = SETTING_BOOL,
		.fallback = "false",
		.help = "keep checkpoints also where the agent works in the workspace itself"},
	{.name = "max-checkpoints",
		.type = SETTING_COUNT,
		.fallback = "100",
		.min = 1,
		.max = 100000,
		.help = "checkpoints of a workspace that are kept: the last ones"},
	{.name = "checkpoint-age",
		.type = SETTING_DURATION,
		.fallback = "720h",
		.min = 1,
		.help = "how long a checkpoint is kept"},
};

const char *section_kind_name(enum section_kind kind)
{
	static const char *const names[] = {"broker", "agent", "profile", "policy", "mcp"};
	assert((size_t)kind < ARRAY_LENGTH(names));
	return names[kind];
}

bool section_kind_parse(const char *name, enum section_kind *out_kind)
{
	for (int kind = 0; kind < SECTION_KIND_COUNT; kind++) {
		if (strcmp(section_kind_name(kind), name) == 0) {
			*out_kind = kind;
			return true;
		}
	}
	return false;
}

bool section_kind_is_named(enum section_kind kind)
{
	return kind != SECTION_BROKER;
}

const struct setting_key *section_keys(enum section_kind kind, size_t *out_count)
{
	const struct {
		const struct setting_key *keys;
		size_t count;
	} tables[] = {
		[SECTION_BROKER] = {broker_keys, ARRAY_LENGTH(broker_keys)},
		[SECTION_AGENT] = {agent_keys, ARRAY_LENGTH(agent_keys)},
		[SECTION_PROFILE] = {profile_keys, ARRAY_LENGTH(profile_keys)},
		[SECTION_POLICY] = {policy_keys, policy_key_count},
		[SECTION_MCP] = {mcp_keys, mcp_key_count},
	};
	assert((size_t)kind < ARRAY_LENGTH(tables));
	*out_count = tables[kind].count;
	return tables[kind].keys;
}

const struct setting_key *section_key(enum section_kind kind, const char *name)
{
	size_t count;
	const struct setting_key *keys = section_keys(kind, &count);
	const struct setting_key *key = setting_key_find(keys, count, name);
	assert(key);
	return key;
}
