/* SPDX-License-Identifier: MIT */
#include "broker/cli/complete.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/cli/exec_plan.h"
#include "broker/cli/policy_hosts.h"
#include "broker/config/config.h"
#include "broker/config/config_file.h"
#include "broker/config/options_tables.h"
#include "broker/init/editors.h"

struct line {
	const char *group;             // the first word of a two-word command, or NULL
	const struct command_row *row; // or NULL
	size_t word_count;             // after the command
	const char *config;            // --config FILE, or NULL
	const struct option *open;     // the option whose value is being typed, or NULL
	bool is_agents;                // after "--", where the agent's command stands
	bool has_program;              // the agent's program was typed already
};

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static void offer(const char *typed, const char *word, const char *help)
{
	if (begins_with(word, typed)) {
		printf("%s\t%s\n", word, help);
	}
}

static void offer_choices(const char *typed, const char *const *choices)
{
	for (; *choices; choices++) {
		offer(typed, *choices, "");
	}
}

/* ---- the words typed so far ---- */

static void read_option(struct line *line, const char *word)
{
	for (size_t i = 0; i < OPTION_TABLE_LENGTH; i++) {
		if (option_table[i].value_name && strcmp(option_table[i].name, word) == 0) {
			line->open = &option_table[i];
		}
	}
}

static void read_bare_word(struct line *line, const char *word)
{
	for (size_t i = 0; !line->row && i < COMMAND_TABLE_LENGTH; i++) {
		const struct command_row *row = &command_table[i];
		const char *own = command_row_word(row, line->group);
		if (!own || strcmp(own, word) != 0) {
			continue;
		}
		if (row->group && !line->group) {
			line->group = row->group;
		} else if (row->command != COMMAND_HELP) { // a command follows "help"
			line->row = row;
		}
		return;
	}
	line->word_count++;
}

static void read_word(struct line *line, const char *word)
{
	if (line->is_agents) {
		line->has_program = true;
	} else if (line->open) {
		line->config = strcmp(line->open->name, "--config") == 0 ? word : line->config;
		line->open = NULL;
	} else if (strcmp(word, "--") == 0) {
		line->is_agents = !line->group;
	} else if (word[0] == '-') {
		read_option(line, word);
	} else {
		read_bare_word(line, word);
	}
}

/* ---- candidates ---- */

static void offer_sections(const char *typed, enum section_kind kind, const char *config,
	const char *const *environment)
{
	struct config_file file;
	struct error ignored;
	char *path = config ? NULL : config_default_path(environment);
	config_file_init(&file, config ? config : path);
	if (config_file_read(&file, &ignored)) {
		LIST_FOR_EACH(section, &file.sections, struct config_section, link) {
			if (section->kind == kind && section->name) {
				offer(typed, section->name, "");
			}
		}
	}
	config_file_finish(&file);
	free(path);
}

static void offer_known_agents(const char *typed)
{
	const struct known_agent *known;
	for (size_t i = 0; (known = known_agent_at(i)) != NULL; i++) {
		offer(typed, known->name, known->title);
	}
}

static void offer_editors(const char *typed)
{
	const struct editor *editor;
	for (size_t i = 0; (editor = editor_at(i)) != NULL; i++) {
		offer(typed, editor_name(editor), editor_title(editor));
	}
	offer(typed, "none", "");
}

static void offer_values(const struct line *line, const char *typed, const char *const *environment)
{
	const char *name = line->open->name;
	const char *kind = line->open->value_name;
	if (strcmp(name, "--profile") == 0) {
		offer_sections(typed, SECTION_PROFILE, line->config, environment);
	} else if (strcmp(name, "--agent") == 0) {
		offer_sections(typed, SECTION_AGENT, line->config, environment);
		offer_known_agents(typed);
	} else if (strcmp(name, "--log-level") == 0) {
		offer_choices(typed, section_key(SECTION_BROKER, "log-level")->choices);
	} else if (strcmp(name, "--log-format") == 0) {
		offer_choices(typed, section_key(SECTION_BROKER, "log-format")->choices);
	} else if (strcmp(name, "--toolhost") == 0) {
		offer_choices(typed, section_key(SECTION_PROFILE, "toolhost")->choices);
	} else if (strcmp(name, "--approve") == 0) {
		offer_choices(typed, policy_approve_key.choices);
	} else if (strcmp(name, "--editor") == 0) {
		offer_editors(typed);
	} else if (strcmp(name, "--format") == 0) {
		offer_choices(typed, exec_formats);
	} else if (strcmp(kind, "FILE") == 0) {
		puts(":files");
	} else if (strcmp(kind, "DIR") == 0) {
		puts(":folders");
	}
}

static void offer_options(const struct line *line, const char *typed)
{
	unsigned flags = line->row ? line->row->flags : line->group ? 0 : (unsigned)SESSION_FLAGS;
	for (size_t i = 0; i < OPTION_TABLE_LENGTH; i++) {
		if (!option_table[i].flag || option_table[i].flag & flags) {
			offer(typed, option_table[i].name, option_table[i].help);
		}
	}
}

static void offer_commands(const struct line *line, const char *typed)
{
	const char *last = "";
	for (size_t i = 0; i < COMMAND_TABLE_LENGTH; i++) {
		const struct command_row *row = &command_table[i];
		const char *word = command_row_word(row, line->group);
		if (word && strcmp(word, last) != 0) {
			bool is_group = row->group && !line->group;
			offer(typed, word, is_group ? "" : row->help);
			last = word;
		}
	}
}

static void offer_host(void *typed, const char *target)
{
	offer(typed, target, "");
}

static void offer_words(const struct line *line, const char *typed, const char *const *environment)
{
	static const char *const sides[] = {"local", "runtime", NULL};
	static const char *const operations[] = {
		"read", "write", "terminal", "grant", "connect", NULL};
	bool is_path =
		line->word_count > 0 && (line->row->command == COMMAND_CHECKPOINTS_RESTORE ||
						line->row->command == COMMAND_POLICY_EXPLAIN);
	if (line->row->command == COMMAND_CONFLICTS_TAKE && line->word_count == 1) {
		offer_choices(typed, sides);
	} else if (line->row->command == COMMAND_POLICY_EXPLAIN && line->word_count == 0) {
		offer_choices(typed, operations);
	} else if (line->row->command == COMMAND_POLICY_FORGET && line->word_count == 0) {
		policy_hosts_visit(environment, offer_host, (void *)typed);
	} else if (is_path || strstr(line->row->words, "|PATH")) {
		puts(":files");
	}
}

int complete_main(int argc, char **argv, const char *const *environment)
{
	struct line line = {0};
	const char *typed = argc > 2 ? argv[argc - 1] : "";
	for (int i = 2; i < argc - 1; i++) {
		read_word(&line, argv[i]);
	}
	if (line.is_agents) {
		puts(line.has_program ? ":files" : ":programs");
	} else if (line.open) {
		offer_values(&line, typed, environment);
	} else if (typed[0] == '-') {
		offer_options(&line, typed);
	} else if (line.row) {
		offer_words(&line, typed, environment);
	} else {
		offer_commands(&line, typed);
	}
	return EXIT_SUCCESS;
}
