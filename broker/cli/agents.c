/* SPDX-License-Identifier: MIT */
#include "broker/cli/agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capture.h"
#include "base/mask.h"
#include "base/secrets.h"
#include "base/words.h"
#include "broker/cli/command.h"
#include "broker/config/config_file.h"
#include "broker/config/config_shown.h"

enum { VERSION_MAX = 256 }; // bytes of a program's output

/* One agent: a section of the configuration, or a known agent without a section. */
struct row {
	struct list link; // agents.rows
	struct agents *agents;
	const char *name;                // borrowed
	const struct known_agent *known; // the known agent of its program; may be NULL
	bool is_section;
	char **argv;             // owned
	char **env;              // owned; the variables of its section
	char *program;           // owned; NULL: not on this machine
	char *version;           // owned; one line; NULL: unknown
	struct capture *capture; // NULL: not running
};

struct agents {
	const struct agents_means *means;
	struct secrets *secrets; // owned
	struct list rows;
	size_t running; // captures that run
};

/* ---- versions ---- */

/* The first line, without secrets of the environment and without what drives a terminal. */
static char *version_of(const struct agents *agents, struct span out)
{
	struct buf text;
	buf_init(&text, VERSION_MAX * 4);
	buf_add(&text, out);
	secrets_mask_text(agents->secrets, &text, out.len == VERSION_MAX);
	struct span rest = buf_span(&text);
	const char *end = rest.len > 0 ? memchr(rest.data, '\n', rest.len) : NULL;
	size_t len = end ? (size_t)(end - rest.data) : rest.len;
	char *version = len > 0 ? mask_line((struct span){rest.data, len}) : NULL;
	buf_finish(&text);
	return version;
}

static void on_version(void *data, const struct capture_result *result, const struct error *err)
{
	struct row *row = data;
	row->capture = NULL;
	row->agents->running--;
	if (!err && result->status.code == 0) {
		row->version = version_of(row->agents, result->out);
	}
	if (row->agents->running == 0) {
		ev_break(row->agents->means->loop, EVBREAK_ALL);
	}
}

static void ask_version(struct row *row)
{
	if (!row->program || row->program[0] != '/' || !row->known) {
		return;
	}
	const struct agents_means *means = row->agents->means;
	char **argv = words_copy(row->known->version);
	free(argv[0]);
	argv[0] = mem_strdup(row->program);
	struct capture_spec spec = {.argv = (const char *const *)argv,
		.env = means->environment,
		.cwd = "/", // not the workspace, from which it might read
		.out_max = VERSION_MAX,
		.out_is_cut = true,
		.timeout_ms = AGENTS_VERSION_MS};
	struct error ignored; // then its version stays unknown
	row->capture = capture_start(means->loop, means->spawner, &spec, on_version, row, &ignored);
	row->agents->running += row->capture != NULL;
	words_free(argv);
}

/* ---- rows ---- */

static struct row *add_row(struct agents *agents, const char *name)
{
	struct row *row = mem_alloc_zero(sizeof(*row));
	row->agents = agents;
	row->name = name;
	list_append(&agents->rows, &row->link);
	return row;
}

static void add_section(struct agents *agents, const struct config_section *section)
{
	struct row *row = add_row(agents, section->name);
	const char *command = settings_get(&section->settings, "command");
	row->is_section = true;
	words_append(&row->argv, command ? command : "");
	words_append_settings(&row->argv, &section->settings, "arg");
	row->env = words_copy((const char *const[]){NULL});
	words_append_settings(&row->env, &section->settings, "env");
	row->known = known_agent_of_argv((const char *const *)row->argv);
}

static void add_known(struct agents *agents, const struct known_agent *known)
{
	struct row *row = add_row(agents, known->name);
	words_append_all(&row->argv, known->argv);
	row->env = words_copy((const char *const[]){NULL});
	row->known = known;
}

static void fill(struct agents *agents, const struct config_file *file)
{
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (section->kind == SECTION_AGENT) {
			add_section(agents, section);
		}
	}
	const struct known_agent *known;
	for (size_t i = 0; (known = known_agent_at(i)) != NULL; i++) {
		if (!config_file_find(file, SECTION_AGENT, known->name)) {
			add_known(agents, known);
		}
	}
	LIST_FOR_EACH(row, &agents->rows, struct row, link) {
		row->program =
			config_find_program(row->argv[0], row->env, agents->means->environment);
		ask_version(row);
	}
}

static void finish(struct agents *agents)
{
	LIST_FOR_EACH(row, &agents->rows, struct row, link) {
		capture_cancel(row->capture);
		list_remove(&row->link);
		words_free(row->argv);
		words_free(row->env);
		free(row->program);
		free(row->version);
		free(row);
	}
}

/* ---- for people ---- */

static void print_part(const char *label, const char *text)
{
	char *line = mask_line(span_of(text));
	printf("    %-9s%s\n", label, line);
	free(line);
}

static void print_login(const struct known_agent *known)
{
	printf("    %-9s%s", "login", known->login);
	if (known->login_step) {
		printf(" (then: %s)", known->login_step);
	}
	for (const char *const *name = known->key_names; *name; name++) {
		printf(", or %s", *name);
	}
	putchar('\n');
}

static void print_row(const struct row *row)
{
	char *name = mask_line(span_of(row->name));
	printf("%s%s%s%s\n", name, row->known ? ": " : "", row->known ? row->known->title : "",
		row->is_section ? " (in the configuration)" : "");
	free(name);
	print_part("program", row->program ? row->program : "not found on PATH");
	if (row->version) {
		print_part("version", row->version);
	}
	if (row->known && !row->program) {
		print_part("install", row->known->install);
		if (row->known->node_major > 0) {
			printf("    %-9sNode.js %d or newer\n", "needs", row->known->node_major);
		}
	}
	if (row->known) {
		print_login(row->known);
	}
}

/* ---- for programs ---- */

static void write_row(struct json_writer *writer, const struct row *row)
{
	const struct known_agent *known = row->known;
	json_write_object(writer);
	json_write_member(writer, "name", row->name);
	json_write_member(writer, "title", known ? known->title : NULL);
	json_write_key(writer, "isConfigured");
	json_write_bool(writer, row->is_section);
	json_write_member_words(writer, "argv", (const char *const *)row->argv);
	json_write_member(writer, "program", row->program);
	json_write_member(writer, "version", row->version);
	json_write_member(writer, "install", known ? known->install : NULL);
	json_write_member(writer, "login", known ? known->login : NULL);
	json_write_member_words(writer, "keys", known ? known->key_names : NULL);
	json_write_object_end(writer);
}

static void write_all(struct json_writer *writer, const void *data)
{
	const struct agents *agents = data;
	json_write_key(writer, "agents");
	json_write_array(writer);
	LIST_FOR_EACH(row, &agents->rows, struct row, link) {
		write_row(writer, row);
	}
	json_write_array_end(writer);
}

static bool show(const struct agents *agents, struct error *err)
{
	if (agents->means->options->flags & OPTION_JSON) {
		return command_print_json(write_all, agents, err);
	}
	LIST_FOR_EACH(row, &agents->rows, struct row, link) {
		print_row(row);
	}
	return true;
}

bool agents_run(const struct agents_means *means, struct error *err)
{
	struct agents agents = {.means = means};
	struct config_file file;
	const char *named = means->options->config;
	char *path = named ? NULL : config_default_path(means->environment);
	list_init(&agents.rows);
	agents.secrets = secrets_create(means->environment, NULL);
	config_file_init(&file, named ? named : path);
	bool ok = config_file_read(&file, err);
	if (ok) {
		fill(&agents, &file);
		if (agents.running > 0) {
			ev_run(means->loop, 0);
		}
		ok = show(&agents, err);
	}
	finish(&agents);
	secrets_destroy(agents.secrets);
	config_file_finish(&file);
	free(path);
	return ok;
}
