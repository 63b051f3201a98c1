/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_PLAN_H
#define BROKER_CLI_EXEC_PLAN_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "broker/config/options.h"
#include "providers/provider.h"

/* What the command line of exec or chat asks for, read before anything is started. */
enum { EXEC_PROMPT_MAX = 1024 * 1024 }; // bytes of a prompt

extern const char *const exec_formats[]; // what --format takes; NULL-terminated

struct exec_plan {
	struct buf prompt;
	char **argv; // owned; the broker's; argv[0] is an empty word, in the place of the program
	char *cwd;   // owned; absolute
	size_t max_message; // bytes of one from the broker
	bool is_json;
	bool allows_nothing; // neither --approve nor a policy says anything
};

/*
 * Loads the configuration, sets the log's level by it, and reads stdin to its end where that is
 * the prompt. ERROR_CONFIG is a mistake of whoever typed it; then there is nothing to finish.
 * Blocks.
 */
bool exec_plan_make(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
/* The same for chat, which has no prompt yet, and asks the user what no policy decides. */
bool exec_plan_make_chat(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;

void exec_plan_finish(struct exec_plan *plan);

/* The options of a session, as they were given, for the command line of a broker. */
void exec_plan_add_given(char ***argv, const struct options *options);

/* Those of them that go with the commands on a workspace's store. */
void exec_plan_add_store_options(char ***argv, const struct options *options);

#endif
