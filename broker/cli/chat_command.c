/* SPDX-License-Identifier: MIT */
#include "broker/cli/chat_command.h"

#include <stdlib.h>

#include "base/words.h"
#include "broker/chat/chat.h"
#include "broker/cli/exec_plan.h"
#include "broker/client/client.h"

bool chat_command_run(const struct exec_means *means, int *out_status, struct error *err)
{
	struct exec_plan plan;
	const struct options *options = means->options;
	bool resumes = options->flags & OPTION_RESUME;
	const char *id = options->word_count > 0 ? options->words[0] : NULL;
	if (id && !resumes) {
		return error_set(err, ERROR_CONFIG,
			"chat: expected no argument, or --resume ID, got \"%s\"", id);
	}
	const char *resume = !resumes ? NULL : id ? id : "";
	if (!exec_plan_make_chat(&plan, means->options, means->registry, means->environment, err)) {
		return false;
	}
	char **store_options = NULL;
	exec_plan_add_store_options(&store_options, means->options);
	free(plan.argv[0]);
	plan.argv[0] = client_own_program();
	struct chat_means chat = {
		.loop = means->loop,
		.argv = (const char *const *)plan.argv,
		.environment = means->environment,
		.options = (const char *const *)store_options,
		.resume = resume,
		.cwd = plan.cwd,
		.max_message = plan.max_message,
		.reasons = plan.reasons,
		.reason_count = plan.reason_count,
	};
	bool ok = chat_run(&chat, out_status, err);
	words_free(store_options);
	exec_plan_finish(&plan);
	return ok;
}
