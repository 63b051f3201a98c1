/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_PROFILE_H
#define PROVIDERS_EXEC_PROFILE_H

#include "base/attr.h"
#include "base/error.h"
#include "providers/exec/recipe.h"
#include "providers/provider.h"

/* The platform's commands. A profile of `backend = exec` names those before EXEC_KEYED_VERBS. */
enum exec_verb {
	EXEC_EXEC,
	EXEC_START,
	EXEC_STOP,
	EXEC_DESTROY,
	EXEC_LIST,
	EXEC_STATE,
	EXEC_COPY_IN,
	EXEC_KEYED_VERBS,
	EXEC_RESTART = EXEC_KEYED_VERBS, // starts a stopped instance; without it, EXEC_START does
	EXEC_INSPECT,                    // prints the settings of the instance that start has made
	EXEC_HAS_BUILT,                  // exits with 0 if the image of EXEC_BUILD is there
	EXEC_BUILD,                      // makes the image of the instances
	EXEC_VERBS
};

/* A name for people, such as "copy-in". Below EXEC_KEYED_VERBS it is the key of a profile. */
const char *exec_verb_name(enum exec_verb verb);

/* The state of an instance, and the exit status with which `state` reports it. */
enum exec_state {
	EXEC_STATE_RUNNING = 0,
	EXEC_STATE_STOPPED = 3,
	EXEC_STATE_GONE = 4,
	EXEC_STATE_WAITING = 256, // will run or stop by itself; only a read_state knows this state
};
enum { EXEC_SAYS_SIZE = 256 };

/* An instance's name: at most EXEC_INSTANCE_MAX letters, digits and . _ / -; "-" is not first. */
enum { EXEC_INSTANCE_MAX = 200 };
bool exec_instance_is_valid(struct span name);

/* Appends a value in which each "%" stands for itself, as far as the buffer's limit allows. */
void exec_append_literal(struct buf *text, struct span value);

/* Adds `name` and such a value as one word. */
void exec_add_literal(char ***words, const char *name, const char *value);

struct exec_profile;
struct cell_entry;

/* How an instance shows a workspace of this machine. Borrowed. */
struct exec_show {
	const struct cell_entry *entries; // folders and pins at their own paths; upper ones first
	size_t count;
	uid_t uid; // everybody in the instance is this user
	gid_t gid;
};

/*
 * A kind of platform: a backend whose sandboxes the files of this folder make. It defines its
 * commands, and says what their output means.
 */
struct exec_platform {
	const char *name; // of the backend, and of the folder of its notes; static
	/* Adds the commands to a profile in which the settings of EXEC_COMMON_KEYS are set already.
	 */
	bool (*read)(struct exec_profile *profile, const struct settings *settings,
		const struct provider_context *context, struct error *err);
	/*
	 * Optional: reads the state from the output of a `state` that has exited with 0. The output
	 * is untrusted. `says` is "", and may get the state in the platform's words as printable
	 * text. False: it names no state that we know.
	 */
	bool (*read_state)(struct span out, enum exec_state *out_state, char says[EXEC_SAYS_SIZE]);
	/*
	 * Optional: the name of the running instance that the same output speaks of. It differs
	 * from the noted one if a broker was killed before it had written down what it started.
	 * Returns {"", 0} if there is none. The span points into `out`.
	 */
	struct span (*read_name)(struct span out);
	/*
	 * The files of an instance outlive it, where other instances find them, too. So each
	 * instance has folders of its own, named after %n, which its end removes. One that has
	 * stopped is started again by another name.
	 */
	bool keeps_files;
	/*
	 * Mandatory if `read` sets shows_workspace: adds words to `start` that show the workspace.
	 * Another folder, user or pin needs another instance. ERROR_CONFIG: the platform cannot
	 * mount one of the paths; nothing is added.
	 */
	bool (*show)(struct exec_profile *profile, const struct exec_show *show, struct error *err);
};

/* The settings of a profile. */
struct exec_profile {
	const struct exec_platform *platform;
	char *name;               // owned
	char **words[EXEC_VERBS]; // owned; NULL: the profile has no such command
	char *input[EXEC_VERBS];  // owned; its stdin, with letters as in words; NULL: it has none
	char **env;               // owned; the environment of the platform's commands
	char *home;               // owned; the folder in which they start
	char *runtime_root;       // owned
	char *made;               // owned; what inspect must print; NULL without inspect
	char *variant;            // owned; other values need another instance; may be NULL
	/*
	 * Owned; where the commands find instances, in words for the user, or NULL. With another
	 * value they find others, or none, so they are not used for an instance of this one.
	 */
	char *reach;
	/*
	 * Static: the runner's path there, which needs no shell. A start has mounted its folder, or
	 * copy-in copies the folder; if copy-in fails, scripts bring the runner. May be NULL.
	 */
	const char *runner_there;
	char *recipe; // owned; the file from which EXEC_BUILD makes the image; or NULL
	exec_recipe_find *find_recipe; // finds the image or that file in the workspace; or NULL
	bool trusts_workspace;         // also if the workspace contains that file
	char *recipe_file;             // owned; %f of EXEC_BUILD; NULL: nothing is built
	char *recipe_folder;           // owned; %t of EXEC_BUILD
	char *built;                   // owned; %b: the name of that image; NULL without a recipe
	long long build_ms;            // timeout of EXEC_BUILD
	char *runner_file;    // owned; the file here for runner_there; NULL: no state folder
	const char *wait_key; // static; the key of wait_ms
	long long wait_ms;    // how long a started instance may be EXEC_STATE_WAITING; 0: never is
	long long start_ms;   // timeout of start
	long long command_ms; // timeout of each other command except exec
	long long answer_ms;  // timeout of each answer of the runner
	long long grace_ms;   // the runner ends after this time without contact
	bool is_transient;    // an instance for each session, destroyed at its end
	bool is_synced;
	bool shows_workspace;  // at its own path: there is nothing to sync
	bool opens_ports;      // that the file of find_recipe names
	bool writes_git;       // with shows_workspace: repositories are not pinned
	bool has_unknown_user; // the image may not know the user, who then has no home there
};

/* The keys that all these backends have; EXEC_LINK_KEYS without runtime-root. */
enum {
	EXEC_SECOND = 1000,
	EXEC_HOUR = 3600 * EXEC_SECOND,
	EXEC_DAY = 24 * EXEC_HOUR,
	EXEC_LINK_COUNT = 5,
	EXEC_COMMON_COUNT = 1 + EXEC_LINK_COUNT
};
#define EXEC_LINK_KEYS                                                                             \
	{.name = "link-grace",                                                                     \
		.type = SETTING_DURATION,                                                          \
		.fallback = "1h",                                                                  \
		.min = EXEC_SECOND,                                                                \
		.max = EXEC_DAY,                                                                   \
		.help = "without contact to this broker, after which everything there "            \
			"ends"},                                                                   \
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
		{.name = "command-timeout",                                                        \
			.type = SETTING_DURATION,                                                  \
			.fallback = "60s",                                                         \
			.min = 1,                                                                  \
			.max = EXEC_HOUR,                                                          \
			.help = "for each of the platform's other commands"},                      \
	{                                                                                          \
		.name = "forward", .type = SETTING_LIST,                                           \
		.help = "a port of this machine that leads to one there: 3000, or 8080:3000"       \
	}
#define EXEC_COMMON_KEYS                                                                           \
	{.name = "runtime-root",                                                                   \
		.type = SETTING_TEXT,                                                              \
		.fallback = "~/.local/share/acp-broker",                                           \
		.help = "the folder there that contains the workspaces"},                          \
		EXEC_LINK_KEYS

/*
 * Reads settings whose types were checked. ERROR_CONFIG: the commands do not fit together. It also
 * fails as the platform's `read` does. A context without an environment only checks the settings.
 */
bool exec_profile_read(struct exec_profile *profile, const struct exec_platform *platform,
	const char *name, const struct settings *settings, const struct provider_context *context,
	struct error *err) ATTR_NODISCARD;
void exec_profile_finish(struct exec_profile *profile); // zeroed is fine

/*
 * Says which file and folder EXEC_BUILD uses (recipe.h), and names the image after their content.
 * Another content needs another instance.
 */
void exec_profile_set_recipe(
	struct exec_profile *profile, const char *file, const char *folder, const char *content);

/* The same for an image that exists, or that the engine downloads: then nothing is built. */
void exec_profile_set_image(struct exec_profile *profile, const char *image);

/*
 * Adds words to start or build, after the command's first two, and takes no letter after a "%" in
 * them for a value. Other words for start mean another instance.
 */
void exec_profile_add_words(
	struct exec_profile *profile, enum exec_verb verb, const char *const *more);

/* Whether the profile has start, which makes instances. Otherwise exec leads to a fixed place. */
bool exec_profile_has_instances(const struct exec_profile *profile);

/* Whether the name that start was given (%i or %n) is in the command's words or its input. */
bool exec_profile_uses_name(const struct exec_profile *profile, enum exec_verb verb);

/*
 * Returns a name of the place where the command `exec` starts the runner, for notes of what runs
 * there (providers/ssh/runs.h); the caller frees it. `instance` is NULL if the profile has none.
 * Then the name depends on the words of `exec`, too: if the user edits them, they may lead to
 * another place.
 */
char *exec_profile_place(const struct exec_profile *profile, const char *instance);

/* The values of %i, %n, %f and %t; NULL: the command does not use it. Borrowed. */
struct exec_values {
	const char *instance;
	const char *proposed; // the name that the broker proposed for the instance
	const char *file;     // here
	const char *target;   // there
};

/* The command's words with the values filled in, followed by `more`. words_free() frees them. */
char **exec_profile_argv(const struct exec_profile *profile, enum exec_verb verb,
	const struct exec_values *values, const char *const *more);

/* The command's input with the values filled in; NULL if it has none. The caller frees it. */
char *exec_profile_input(
	const struct exec_profile *profile, enum exec_verb verb, const struct exec_values *values);

#endif
