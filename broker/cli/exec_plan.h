/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_PLAN_H
#define BROKER_CLI_EXEC_PLAN_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "broker/config/options.h"
#include "providers/provider.h"

/* The plan of exec or chat: what its command line asks for. It is read before anything starts. */
enum { EXEC_PROMPT_MAX = 1024 * 1024 }; // bytes of a prompt

extern const char *const exec_formats[]; // the values of --format; NULL-terminated

struct exec_plan {
	struct buf prompt;
	char **argv; // owned; for the broker; argv[0] is empty, to be replaced by the program's
	             // path
	char *cwd;   // owned; absolute
	size_t max_message;                 // bytes of one message from the broker
	const struct error_reason *reasons; // that only the provider's errors have; static
	size_t reason_count;
	bool is_json;
	bool allows_nothing; // neither --approve nor a policy is given
};

/*
 * Loads the configuration, sets the log's level, and reads stdin to its end if the prompt comes
 * from there. ERROR_CONFIG is a mistake of the user; then there is nothing to finish. Blocks.
 */
bool exec_plan_make(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
/* The same for chat, which has no prompt yet, and which asks the user where no policy decides. */
bool exec_plan_make_chat(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment,
	struct error *err) ATTR_NODISCARD;

void exec_plan_finish(struct exec_plan *plan);

/* Adds the session's options, as the user gave them, to a broker's command line. */
void exec_plan_add_given(char ***argv, const struct options *options);

/* Adds only those options that the commands on a workspace's store accept. */
void exec_plan_add_store_options(char ***argv, const struct options *options);

#endif
