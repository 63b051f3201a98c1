/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_PROFILE_H
#define PROVIDERS_EXEC_PROFILE_H

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/* The platform's commands. `backend = exec` names those before EXEC_KEYED_VERBS. */
enum exec_verb {
	EXEC_EXEC,
	EXEC_START,
	EXEC_STOP,
	EXEC_DESTROY,
	EXEC_LIST,
	EXEC_STATE,
	EXEC_COPY_IN,
	EXEC_KEYED_VERBS,
	EXEC_RESTART = EXEC_KEYED_VERBS, // starts one that has stopped; none: EXEC_START does
	EXEC_INSPECT,                    // after a start, prints what that has made
	EXEC_VERBS
};

/* For people; for the first ones, the key of a profile that names the command: "copy-in". */
const char *exec_verb_name(enum exec_verb verb);

/* What `state` exits with, or means. */
enum exec_state {
	EXEC_STATE_RUNNING = 0,
	EXEC_STATE_STOPPED = 3,
	EXEC_STATE_GONE = 4,
};

/* An instance's name: EXEC_INSTANCE_MAX letters, digits and . _ / - at most; no "-" first. */
enum { EXEC_INSTANCE_MAX = 200 };
bool exec_instance_is_valid(struct span name);

struct exec_profile;

/*
 * A kind of platform, that is, a backend whose sandboxes these files make: what its commands are,
 * and what their output means.
 */
struct exec_platform {
	const char *name; // of the backend, and of the folder of its notes; static
	/* Adds the commands to a profile that has all that EXEC_COMMON_KEYS say. */
	bool (*read)(struct exec_profile *profile, const struct settings *settings,
		const struct provider_context *context, struct error *err);
	/*
	 * Optional: what `state` means that has exited with 0, by its output, which is untrusted.
	 * False: nothing.
	 */
	bool (*read_state)(struct span out, enum exec_state *out_state);
};

/* What a profile says. */
struct exec_profile {
	const struct exec_platform *platform;
	char *name;               // owned
	char **words[EXEC_VERBS]; // owned; NULL: the profile has no such command
	char **env;               // owned; of the platform's commands
	char *home;               // owned; the folder in which they start
	char *runtime_root;       // owned
	char *made;               // owned; what inspect must print; with it
	char *variant;            // owned; settings that make another instance; may be NULL
	const char *runner_there; // static; where start shows the runner to it; NULL: it does not
	char *runner_file;        // owned; the file here, with runner_there; NULL: has no folder
	long long start_ms;       // for start
	long long command_ms;     // for each of the others, but exec
	long long answer_ms;      // for the runner's answers
	long long grace_ms;       // after so long without contact the runner ends
	bool is_transient;        // an instance for each session, destroyed at its end
	bool is_synced;
};

/* The keys that all these backends have: EXEC_COMMON_COUNT of them. */
enum {
	EXEC_SECOND = 1000,
	EXEC_HOUR = 3600 * EXEC_SECOND,
	EXEC_DAY = 24 * EXEC_HOUR,
	EXEC_COMMON_COUNT = 5
};
#define EXEC_COMMON_KEYS                                                                           \
	{.name = "runtime-root",                                                                   \
		.type = SETTING_TEXT,                                                              \
		.fallback = "~/.local/share/acp-broker",                                           \
		.help = "the folder there that contains the workspaces"},                          \
		{.name = "link-grace",                                                             \
			.type = SETTING_DURATION,                                                  \
			.fallback = "1h",                                                          \
			.min = EXEC_SECOND,                                                        \
			.max = EXEC_DAY,                                                           \
			.help = "without contact to this broker, after which everything there "    \
				"ends"},                                                           \
		{.name = "answer-timeout",                                                         \
			.type = SETTING_DURATION,                                                  \
			.fallback = "30s",                                                         \
			.min = 1,                                                                  \
			.max = EXEC_HOUR,                                                          \
			.help = "for each answer of the platform's exec until the runner works"},  \
		{.name = "create-timeout",                                                         \
			.type = SETTING_DURATION,                                                  \
			.fallback = "10m",                                                         \
			.min = 1,                                                                  \
			.max = EXEC_DAY,                                                           \
			.help = "for the command that starts an instance"},                        \
	{                                                                                          \
		.name = "command-timeout", .type = SETTING_DURATION, .fallback = "60s", .min = 1,  \
		.max = EXEC_HOUR, .help = "for each of the platform's other commands"              \
	}

/*
 * Reads checked settings. ERROR_CONFIG where the commands do not fit together, and what the
 * platform's `read` says. A context without an environment: only to check the settings.
 */
bool exec_profile_read(struct exec_profile *profile, const struct exec_platform *platform,
	const char *name, const struct settings *settings, const struct provider_context *context,
	struct error *err) ATTR_NODISCARD;
void exec_profile_finish(struct exec_profile *profile); // zeroed is fine

/* Whether start makes instances, each with a name. Otherwise there is one, and nobody manages it.
 */
bool exec_profile_has_instances(const struct exec_profile *profile);

/* Whether the command has the instance's name among its words. */
bool exec_profile_uses_name(const struct exec_profile *profile, enum exec_verb verb);

/* What stands in the place of %i, %f and %t; NULL: nothing has to. Borrowed. */
struct exec_values {
	const char *instance;
	const char *file;   // here
	const char *target; // there
};

/* The command's words, with the values and then `more` at the end; the caller frees it. */
char **exec_profile_argv(const struct exec_profile *profile, enum exec_verb verb,
	const struct exec_values *values, const char *const *more);

#endif
