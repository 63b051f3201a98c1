/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_H
#define BROKER_CONFIG_CONFIG_H

/*
 * This folder knows every key and option: where they are read, what their values mean, and which
 * line of which file was wrong. It knows neither what runs by them nor ACP's messages; the keys of
 * a backend are the provider's own. Everything above it takes its settings from here; broker/cli
 * prints them.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/settings.h"
#include "broker/config/copy_file.h"
#include "broker/config/mcp_config.h"
#include "broker/config/options.h"
#include "broker/config/sync_settings.h"
#include "broker/policy/policy.h"
#include "broker/toolhost/toolhost.h"
#include "providers/provider.h"

/*
 * The configuration: git-config syntax (git-config(1), "Syntax"), read with
 * libgit2, $XDG_CONFIG_HOME/acp-broker/config; the command line wins. A file
 * that is not there is an empty one, unless the command line named it.
 */
enum toolhost_mode { TOOLHOST_AUTO, TOOLHOST_EDITOR, TOOLHOST_BROKER };

/* What a profile says, after defaults; times in milliseconds, 0 is "never". */
struct profile {
	char *name;          // "local" where no profile was asked for
	const char *backend; // in settings, or static text; the provider's name
	bool runs_here;      // provider_runs_here
	enum toolhost_mode toolhost;
	bool editor_terminals;    // with toolhost = editor, also for an agent that works elsewhere
	struct settings settings; // every key as written; the provider reads its own

	char **agent_argv;    // NULL-terminated; from the command line, or the agent section
	char **agent_env;     // NULL-terminated NAME=value added to the sandbox's environment
	char **secret_env;    // NULL-terminated names, set in the broker's environment
	char **secret_values; // NULL-terminated NAME=value of these, or NULL; wiped when freed
	char **masked_env;    // NULL-terminated names, or NULL: whose values no trace may show
	char *agent_name;     // for messages: the agent section's name, or the command's last part

	size_t max_message;          // bytes of one message, either link
	size_t max_queue;            // bytes waiting for a slow reader, a link
	int max_requests;            // unanswered requests a link
	int max_sessions;            // open at once in one broker
	int start_timeout_ms;        // agent start to the answer of initialize
	int session_timeout_ms;      // a session opened without a word from the agent; 0: never
	int authenticate_timeout_ms; // the same of authenticate
	int prepare_timeout_ms;      // sandbox ready
	int stop_eof_ms;             // after stdin was closed, before SIGTERM
	int stop_term_ms;            // after SIGTERM, before SIGKILL
	int stop_kill_ms;            // after SIGKILL, before the end is forced
	int pause_timeout_ms;        // everything in a sandbox to stand still, or to go on
	int pause_drain_timeout_ms;  // tool calls that are about to end, before a pause or rollback
	int drain_timeout_ms;        // output of an exited agent still held open by a child
	int idle_timeout_ms;         // a prompt without a word from the agent; 0: never
	int wall_ms;                 // an agent, from its start; 0: never
	int permission_timeout_ms;   // the editor's answer to a question; 0: never
	int cancel_timeout_ms;       // the same, from when its turn was cancelled

	struct toolhost_limits toolhost_limits;
	struct sync_settings sync; // its words are owned

	struct copy_file *copy; // owned; what is in the sandbox before its agent starts
	size_t copy_count;
	char **setup; // NULL-terminated shell lines, or NULL: run once in a sandbox's home
	int setup_timeout_ms;

	struct mcp_server *mcp; // owned; the servers that replace or join the editor's
	size_t mcp_count;
	int recovery_timeout_ms; // what brokers left that are gone, at a start
	int health_timeout_ms;   // a sandbox's answer to whether it is well
	int restart_limit;       // of an agent for one session, within a minute
	int mcp_timeout_ms;      // the sandbox's answer on which commands it has

	struct policy *policy; // owned
};

/* Everything the broker needs to know before it starts. */
struct config {
	char *file; // read, or where it would have been; NULL: no --config and no HOME
	bool file_was_read;
	enum log_level log_level;
	enum log_format log_format;
	char *trace;       // a file's name, or NULL
	char *audit;       // a file's name, or NULL
	size_t audit_size; // bytes
	char *workspace;   // --workspace as an absolute path, or NULL
	struct profile profile;
	/* Owned. The other profiles there are, "local" among them, without agent and secrets: for
	 * what is finished, or looked at, in their sandboxes. */
	struct profile *others;
	size_t other_count;
};

/*
 * Reads the file, picks the profile and the agent, checks every key of every
 * section. Each mistake is one line that names the file, the key and what was
 * expected (ERROR_CONFIG); then there is nothing to finish. `environment` is
 * the broker's, NULL-terminated, borrowed. Loop not needed, no thread running
 * yet; reading a file blocks for some milliseconds.
 */
bool config_load(struct config *config, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void config_finish(struct config *config);

void config_set_log(const struct config *config); // the process logs as it says

/*
 * Where the configuration is without --config, owned by the caller; NULL: nowhere, as neither
 * XDG_CONFIG_HOME nor HOME is an absolute path (XDG Base Directory Specification 0.8).
 */
char *config_default_path(const char *const *environment);

/*
 * `acp-broker check`: prints to stdout what was understood, argv word by word,
 * secrets by name only, and whether the agent's program can be found. False
 * where it cannot.
 */
bool config_print(const struct config *config, const char *const *environment);

/*
 * The same as members of a JSON object that is open; docs/schemas/check.json describes them. A key
 * of the profile has an array of its values, for it may be written several times.
 */
struct json_writer;
bool config_write(
	const struct config *config, const char *const *environment, struct json_writer *writer);

/* One line more of it, indented. */
void config_print_fact(const char *name, const char *value);

/*
 * The environment of what the profile starts in a sandbox: that of the sandbox with env and
 * secret-env added. The caller frees it with words_free.
 */
char **config_profile_environment(const struct profile *profile, const char *const *base);

#endif
