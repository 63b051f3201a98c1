/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_H
#define BROKER_CONFIG_CONFIG_H

/*
 * This folder knows every key and option: where the broker reads it, which values it takes, and in
 * which line of which file a mistake is. It does not know ACP's messages, nor the code that uses
 * the settings. A backend's own keys belong to its provider. All folders above take their settings
 * from here; broker/cli prints them.
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
 * The configuration file is $XDG_CONFIG_HOME/acp-broker/config. It has git-config syntax
 * (git-config(1), "Syntax") and is read with libgit2. Options of the command line win over it. A
 * missing file counts as empty, unless the command line named it.
 */
enum toolhost_mode { TOOLHOST_AUTO, TOOLHOST_EDITOR, TOOLHOST_BROKER };

/*
 * The settings of a profile, with defaults filled in. Times are in milliseconds; 0 means "never".
 */
struct profile {
	char *name;          // "local" if no profile was asked for
	const char *backend; // the provider's name; points into settings or to static text
	bool runs_here;      // provider_runs_here
	enum toolhost_mode toolhost;
	bool editor_terminals;    // with toolhost = editor: also for an agent that works elsewhere
	struct settings settings; // every key as written; the provider reads its own keys

	char **agent_argv;    // NULL-terminated; from the command line, or the agent section
	char **agent_env;     // NULL-terminated NAME=value added to the sandbox's environment
	char **secret_env;    // NULL-terminated names; their values are in the broker's environment
	char **secret_values; // NULL-terminated NAME=value of secret_env, or NULL; wiped when freed
	char **masked_env;    // NULL-terminated names, or NULL; traces mask the values of these
	                      // variables
	char *agent_name;     // for messages: the agent section's name, or the command's last part

	size_t max_message;          // bytes of one message, on either link
	size_t max_queue;            // bytes waiting for a slow reader, for each link
	int max_requests;            // unanswered requests, for each link
	int max_sessions;            // open at once in one broker
	int start_timeout_ms;        // from the agent's start to its answer to initialize
	int session_timeout_ms;      // for opening a session while the agent is silent; 0: never
	int authenticate_timeout_ms; // the same for authenticate
	int prepare_timeout_ms;      // until the sandbox is ready
	int stop_eof_ms;             // after closing stdin, before SIGTERM
	int stop_term_ms;            // after SIGTERM, before SIGKILL
	int stop_kill_ms;            // after SIGKILL, before the broker gives up waiting
	int pause_timeout_ms;        // until everything in a sandbox stands still, or runs again
	int pause_drain_timeout_ms;  // for tool calls to end before a pause or rollback
	int drain_timeout_ms;        // for output that a child of an exited agent still holds open
	int idle_timeout_ms;         // a prompt while the agent is silent; 0: never
	int wall_ms;                 // the agent's whole run time; 0: no limit
	int permission_timeout_ms;   // the editor's answer to a question; 0: never
	int cancel_timeout_ms;       // the same, counted from the cancellation of its turn
	bool asks_login_callback;    // whether the user is asked about ports for logins
	int login_callback_timeout_ms; // for the browser to come back to such a port

	struct toolhost_limits toolhost_limits;
	struct sync_settings sync; // owns its strings

	struct copy_file *copy; // owned; files copied into the sandbox before its agent starts
	size_t copy_count;
	char **setup; // NULL-terminated shell lines, or NULL: run once in a sandbox's home
	int setup_timeout_ms;

	struct mcp_server *mcp; // owned; servers that replace or join the editor's
	size_t mcp_count;
	bool mcp_exec;           // the agent gets the broker's own MCP server
	int recovery_timeout_ms; // at start, for collecting what dead brokers left
	int health_timeout_ms;   // for a sandbox's answer to a health check
	int restart_limit;       // restarts of the agent for one session, within a minute
	int mcp_timeout_ms;      // for the sandbox's answer to which commands it has

	struct policy *policy; // owned
};

/* Everything the broker needs to know before it starts. */
struct config {
	char *file; // the file that was read or would have been; NULL: no --config and no HOME
	bool file_was_read;
	enum log_level log_level;
	enum log_format log_format;
	char *trace; // file name, or NULL
	char *audit; // file name, or NULL
	/*
	 * Owned; the places of `file` and `audit` (path_places), NULL-terminated. No agent that is
	 * kept apart may get a folder above one of them.
	 */
	char **own_files;
	size_t audit_size; // bytes
	char *workspace;   // --workspace as an absolute path, or NULL
	struct profile profile;
	/*
	 * Owned. All other profiles, including "local", without agent and secrets. The broker uses
	 * them to finish or inspect work in the sandboxes of those profiles.
	 */
	struct profile *others;
	size_t other_count;
};

/*
 * Reads the file, picks the profile and the agent, and checks every key of every section. Each
 * mistake is ERROR_CONFIG with one line that names the file, the key and what was expected; then
 * there is nothing to finish. `environment` is the broker's, NULL-terminated, borrowed. Needs no
 * loop. Call it before any thread starts. Reading the file blocks for some milliseconds.
 */
bool config_load(struct config *config, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void config_finish(struct config *config);

void config_set_log(const struct config *config); // sets the log's level and format

/*
 * Returns the path of the configuration file without --config; the caller owns it. NULL if neither
 * XDG_CONFIG_HOME nor HOME is an absolute path (XDG Base Directory Specification 0.8).
 */
char *config_default_path(const char *const *environment);

/*
 * `acp-broker check`: prints the effective settings to stdout: argv word by word, secrets by name
 * only, and whether the agent's program can be found. Returns false if it cannot.
 */
bool config_print(const struct config *config, const char *const *environment);

/*
 * The same, as members of a JSON object that the caller has opened; docs/schemas/check.json
 * describes them. Each key of the profile has an array of values, because it may be written several
 * times.
 */
struct json_writer;
bool config_write(
	const struct config *config, const char *const *environment, struct json_writer *writer);

/* Prints one more indented line in the style of config_print. */
void config_print_fact(const char *name, const char *value);

/*
 * Returns the environment of everything that the profile starts in a sandbox: the sandbox's own,
 * with env and secret-env added. The caller frees it with words_free.
 */
char **config_profile_environment(const struct profile *profile, const char *const *base);

#endif
