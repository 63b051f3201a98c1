/* SPDX-License-Identifier: MIT */
#include "broker/cli/exec_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/words.h"
#include "broker/client/client.h"
#include "broker/config/config.h"
#include "broker/config/options_tables.h"

enum { SLACK = 64 * 1024 }; // bytes that the broker's edits may add to a message

const char *const exec_formats[] = {"text", "json", NULL};

static bool read_stdin(struct buf *prompt, struct error *err)
{
	for (;;) {
		char bytes[16 * 1024];
		ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
		if (count == 0) {
			return true;
		}
		if (count < 0 && errno != EINTR) {
			return error_set_errno(err, errno, "exec: reading the prompt from stdin");
		}
		if (count > 0 && !buf_append(prompt, (struct span){bytes, (size_t)count}, err)) {
			return error_set(err, ERROR_CONFIG,
				"exec: the prompt on stdin is longer than %d bytes: put the text "
				"into a file in the workspace, and ask about that file",
				EXEC_PROMPT_MAX);
		}
	}
}

/* JSON must be UTF-8; a diff on stdin may contain other bytes. */
static void warn_of_bytes(struct span prompt)
{
	while (prompt.len > 0) {
		size_t len = utf8_char_length(prompt);
		if (len == 0) {
			log_warning("exec: bytes of the prompt that are not UTF-8 are sent as "
				    "U+FFFD");
			return;
		}
		prompt = (struct span){prompt.data + len, prompt.len - len};
	}
}

static bool read_prompt(struct buf *prompt, const char *word, struct error *err)
{
	bool is_stdin = strcmp(word, "-") == 0;
	bool ok = is_stdin ? read_stdin(prompt, err) : buf_append(prompt, span_of(word), err);
	if (!ok) {
		return false;
	}
	struct span rest = buf_span(prompt);
	if (span_take_word(&rest, " \t\r\n").len == 0) {
		return error_set(err, ERROR_CONFIG, "exec: the prompt%s is empty",
			is_stdin ? " on stdin" : "");
	}
	warn_of_bytes(buf_span(prompt));
	return true;
}

static bool read_format(const char *word, bool *out_is_json, struct error *err)
{
	const struct setting_key key = {.type = SETTING_CHOICE, .choices = exec_formats};
	if (word && !setting_check(&key, word, err)) {
		return error_prefix(err, "--format");
	}
	*out_is_json = word && strcmp(word, "json") == 0;
	return true;
}

static void add_option(char ***argv, const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 2;
	char *word = mem_alloc(size);
	text_whole(word, size, "%s=%s", name, value);
	words_append(argv, word);
	free(word);
}

static void add_given(char ***argv, const struct options *options, unsigned flags)
{
	for (size_t i = 0; i < OPTION_TABLE_LENGTH; i++) {
		const struct option *option = &option_table[i];
		const char *value = NULL;
		if (option->value_name) {
			memcpy(&value, (const char *)options + option->offset, sizeof(value));
		}
		if (value && (!option->flag || option->flag & flags)) {
			add_option(argv, option->name, value);
		} else if (!option->value_name && option->flag & options->flags & flags) {
			words_append(argv, option->name);
		}
	}
}

void exec_plan_add_given(char ***argv, const struct options *options)
{
	add_given(argv, options, SESSION_FLAGS);
}

void exec_plan_add_store_options(char ***argv, const struct options *options)
{
	add_given(argv, options, OPTION_PROFILE | OPTION_WORKSPACE);
}

/*
 * These clients serve neither files nor terminals. Without a policy exec allows nothing. Info
 * messages of the broker and the agent are left out, because nobody needs them unless something is
 * wrong.
 */
static void plan_broker(
	struct exec_plan *plan, const struct options *options, const struct config *config)
{
	words_append(&plan->argv, ""); // to be replaced by the program's path
	words_append(&plan->argv, CLIENT_WORD);
	exec_plan_add_given(&plan->argv, options);
	plan->allows_nothing = options->command == COMMAND_EXEC && !options->approve &&
	                       !policy_is_given(config->profile.policy);
	if (plan->allows_nothing) {
		add_option(&plan->argv, "--approve", "none");
	}
	if (!options->toolhost && config->profile.toolhost == TOOLHOST_AUTO) {
		add_option(&plan->argv, "--toolhost", "broker");
	}
	if (!options->log_level && config->log_level == LOG_LEVEL_INFO) {
		add_option(&plan->argv, "--log-level", "warning");
	}
	if (options->agent_argv) {
		words_append(&plan->argv, "--");
		words_append_all(&plan->argv, options->agent_argv);
	}
}

static bool read_configuration(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment, struct error *err)
{
	struct config config;
	if (!config_load(&config, options, registry, environment, err)) {
		return false;
	}
	config_set_log(&config);
	plan->max_message = config.profile.max_message + SLACK;
	plan->cwd = config.workspace ? mem_strdup(config.workspace) : getcwd(NULL, 0);
	int errnum = errno;
	plan_broker(plan, options, &config);
	struct error ignored; // config_load has found the provider
	struct provider *provider = registry_get(registry, config.profile.backend, &ignored);
	if (provider) {
		plan->reasons = provider_reasons(provider, &plan->reason_count);
	}
	config_finish(&config);
	return plan->cwd || error_set_errno(err, errnum, "the current directory");
}

bool exec_plan_make(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment, struct error *err)
{
	*plan = (struct exec_plan){.is_json = false};
	buf_init(&plan->prompt, EXEC_PROMPT_MAX);
	if (read_format(options->format, &plan->is_json, err) &&
		read_configuration(plan, options, registry, environment, err) &&
		read_prompt(&plan->prompt, options->words[0], err)) {
		return true;
	}
	exec_plan_finish(plan);
	return false;
}

bool exec_plan_make_chat(struct exec_plan *plan, const struct options *options,
	const struct registry *registry, const char *const *environment, struct error *err)
{
	*plan = (struct exec_plan){.is_json = false};
	buf_init(&plan->prompt, EXEC_PROMPT_MAX);
	if (read_configuration(plan, options, registry, environment, err)) {
		return true;
	}
	exec_plan_finish(plan);
	return false;
}

void exec_plan_finish(struct exec_plan *plan)
{
	buf_finish(&plan->prompt);
	words_free(plan->argv);
	free(plan->cwd);
}
