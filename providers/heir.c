/* SPDX-License-Identifier: MIT */
#include "providers/heir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/words.h"

struct heir {
	struct spawner *spawner;
	const char *const *environment; // borrowed, like the next two
	const char *const *arguments;
	const char *folder;
	char **variables; // owned; names
	char **profiles;  // owned; names
};

/* What programs need to find their files. No display and no terminal: nobody can be asked. */
static const char *const usual[] = {"HOME", "USER", "LOGNAME", "PATH", "LANG", "TMPDIR",
	"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", NULL};

struct heir *heir_create(struct spawner *spawner, const char *const *environment,
	const char *const *arguments, const char *folder)
{
	struct heir *heir = mem_alloc_zero(sizeof(*heir));
	heir->spawner = spawner;
	heir->environment = environment;
	heir->arguments = arguments;
	heir->folder = folder ? folder : "/";
	heir->variables = words_copy(usual);
	heir->profiles = mem_alloc_zero(sizeof(*heir->profiles));
	return heir;
}

void heir_destroy(struct heir *heir)
{
	if (heir) {
		words_free(heir->variables);
		words_free(heir->profiles);
		free(heir);
	}
}

static char **command_of(const struct heir *heir)
{
	char **command = NULL;
	words_append(&command, "/proc/self/exe");
	for (char **profile = heir->profiles; *profile; profile++) {
		words_append(&command, HEIR_WORD);
		words_append(&command, *profile);
	}
	words_append_all(&command, heir->arguments);
	return command;
}

/*
 * If the log is a file, it goes on there. At the other end of a pipe, or of a socket, somebody may
 * wait for its end, because the broker has ended.
 */
static int log_of(void)
{
	struct stat status;
	bool is_file = fstat(STDERR_FILENO, &status) == 0 && S_ISREG(status.st_mode);
	return is_file ? STDERR_FILENO : -1;
}

static char **environment_of(const struct heir *heir)
{
	char **env = mem_alloc_zero(sizeof(*env));
	for (const char *const *entry = heir->environment; entry && *entry; entry++) {
		char *name = mem_strndup((struct span){*entry, strcspn(*entry, "=")});
		if (words_contain((const char *const *)heir->variables, name)) {
			words_append(&env, *entry);
		}
		free(name);
	}
	return env;
}

void heir_name(struct heir *heir, const char *profile, const char *variable)
{
	struct error err;
	if (!heir || words_contain((const char *const *)heir->profiles, profile)) {
		return;
	}
	words_append(&heir->profiles, profile);
	if (variable) {
		words_append(&heir->variables, variable);
	}
	char **command = command_of(heir);
	char **env = environment_of(heir);
	const struct process_spec spec = {.argv = (const char *const *)command,
		.env = (const char *const *)env,
		.cwd = heir->folder,
		.in = -1,
		.out = -1,
		.err = log_of()};
	if (!spawner_leave_will(heir->spawner, &spec, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"naming the program that ends what a killed broker leaves: %s", err.text);
	}
	words_free(command);
	words_free(env);
}
