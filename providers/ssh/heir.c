/* SPDX-License-Identifier: MIT */
#include "providers/ssh/heir.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/words.h"

/* What programs need to find their files. No display and no terminal: nobody can be asked. */
static const char *const names[] = {"HOME", "USER", "LOGNAME", "PATH", "LANG", "TMPDIR",
	"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"};

static bool is_passed_on(const char *entry)
{
	size_t len = strcspn(entry, "=");
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (span_is((struct span){entry, len}, names[i])) {
			return true;
		}
	}
	return false;
}

void heir_name(const struct provider_context *context)
{
	char folder[PATH_MAX];
	char **env = mem_alloc_zero(sizeof(*env));
	struct error err;
	if (!context->heir) {
		words_free(env);
		return;
	}
	for (const char *const *entry = context->environment; entry && *entry; entry++) {
		if (is_passed_on(*entry)) {
			words_append(&env, *entry);
		}
	}
	const struct process_spec spec = {.argv = context->heir,
		.env = (const char *const *)env,
		.cwd = getcwd(folder, sizeof(folder)) ? folder : "/",
		.in = -1,
		.out = -1,
		.err = -1};
	if (!spawner_leave_will(context->spawner, &spec, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"naming the program that ends what a killed "
			"broker leaves: %s",
			err.text);
	}
	words_free(env);
}
