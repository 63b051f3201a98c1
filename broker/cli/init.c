/* SPDX-License-Identifier: MIT */
#include "broker/cli/init.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/text.h"
#include "broker/cli/init_parts.h"
#include "broker/config/config.h"

/* Decides whether to ask in the terminal. Fails if options are missing and nobody can be asked. */
static bool check_options(struct init *init, struct error *err)
{
	const struct options *options = init->means->options;
	bool is_complete = options->agent && options->place;
	bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
	if (options->agent_argv) {
		return error_set(err, ERROR_CONFIG,
			"init: expected the agent by its name, as --agent NAME, not a command; "
			"acp-broker agents lists the names");
	}
	init->asks = is_terminal && !is_complete && !(options->flags & OPTION_YES);
	if (is_complete || init->asks || (options->flags & OPTION_YES)) {
		return true;
	}
	return error_set(err, ERROR_CONFIG,
		"init: it can ask questions only in a terminal: expected %s%s%s, or --yes to take "
		"its suggestions",
		options->agent ? "" : "--agent NAME",
		options->agent || options->place ? "" : " and ",
		options->place ? "" : "--place PLACE");
}

/* Finds the absolute path of the configuration file. */
static bool find_config(struct init *init, struct error *err)
{
	const char *named = init->means->options->config;
	if (!named) {
		init->config_path = config_default_path(init->means->environment);
	} else if (named[0] == '/') {
		init->config_path = mem_strdup(named);
	} else {
		char *folder = getcwd(NULL, 0);
		init->config_path = folder ? path_join(folder, named) : NULL;
		free(folder);
	}
	return init->config_path ||
	       error_set(err, ERROR_CONFIG,
		       "init: HOME is not set: expected --config FILE with an absolute path");
}

static bool read_config(struct init *init, struct error *err)
{
	if (!find_config(init, err)) {
		return false;
	}
	init->file.path = init->config_path;
	return config_file_read(&init->file, err) &&
	       config_file_check(&init->file, init->means->registry, err);
}

bool init_run(const struct init_means *means, struct error *err)
{
	struct init init = {.means = means};
	list_init(&init.agents);
	list_init(&init.places);
	settings_init(&init.settings);
	config_file_init(&init.file, NULL);
	bool ok = check_options(&init, err) && read_config(&init, err) && init_choose(&init, err) &&
	          init_write(&init, err);
	init_forget(&init);
	settings_finish(&init.settings);
	config_file_finish(&init.file);
	free(init.config_path);
	free(init.asked_value);
	free(init.profile);
	return ok;
}
