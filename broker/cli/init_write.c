/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/mask.h"
#include "base/real_path.h"
#include "base/words.h"
#include "broker/cli/init_parts.h"
#include "broker/client/client.h"
#include "broker/init/jsonc.h"
#include "broker/init/profile_text.h"
#include "broker/init/unified.h"
#include "broker/init/user_file.h"

enum { TEXT_MAX = 8 << 20 }; // of a file or a diff: over eight times the size of an input

/* One file: its present content and its new content. */
struct change {
	struct user_file file;
	struct buf text; // the whole new content
	bool is_needed;
	user_file_check *check; // may be NULL
};

struct writing {
	struct init *init;
	struct change config;
	struct change editor;
	struct error paste_why; // why the editor's settings are not changed
	bool must_paste;        // the user has to add the lines
	char *command;          // owned; the word that starts this program
	char **argv;            // owned; the command that the editor starts
};

static void print_text(const struct buf *text)
{
	fwrite(text->data + text->head, 1, text->len, stdout);
}

static void print_diff(const char *name, const struct span *old_text, struct span new_text)
{
	struct buf diff;
	buf_init(&diff, TEXT_MAX);
	unified_write(name, old_text, new_text, &diff);
	print_text(&diff);
	buf_finish(&diff);
}

/* ---- the configuration ---- */

static size_t count_settings(const struct config_file *file)
{
	size_t count = 0;
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		LIST_FOR_EACH(setting, &section->settings.list, struct setting, link) {
			count++;
		}
	}
	return count;
}

/* Checks with our own reader that the draft has the profile, and everything else as before. */
static bool check_draft(void *data, const char *draft, struct error *err)
{
	const struct init *init = data;
	struct config_file file;
	size_t added = 0;
	config_file_init(&file, draft);
	LIST_FOR_EACH(setting, &init->settings.list, struct setting, link) {
		added++;
	}
	bool ok = config_file_read(&file, err);
	if (ok) {
		const struct config_section *section =
			config_file_find(&file, SECTION_PROFILE, init->profile);
		size_t before = init->file.was_read ? count_settings(&init->file) : 1;
		ok = (section && profile_text_is_same(&section->settings, &init->settings) &&
			     count_settings(&file) == before + added) ||
		     error_set(err, ERROR_CONFIG,
			     "a profile added at its end would not be read as a profile: is its "
			     "last line complete?");
		ok = ok && config_file_check(&file, init->means->registry, err);
	}
	config_file_finish(&file);
	return ok;
}

/* Never changes another profile of this name: shows the user the difference. */
static bool fail_other(
	const struct init *init, const struct config_section *section, struct error *err)
{
	struct buf there, wanted;
	buf_init(&there, TEXT_MAX);
	buf_init(&wanted, TEXT_MAX);
	profile_text_write_keys(&section->settings, &there);
	profile_text_write_keys(&init->settings, &wanted);
	struct span old = buf_span(&there);
	print_diff(init->profile, &old, buf_span(&wanted));
	fflush(stdout);
	buf_finish(&there);
	buf_finish(&wanted);
	return error_set(err, ERROR_UNAVAILABLE,
		"init: %s has another [profile \"%s\"], which stays as it is: take another name "
		"(--profile NAME), or change it by hand as the difference shows",
		init->config_path, init->profile);
}

static bool plan_config(struct writing *writing, struct error *err)
{
	struct init *init = writing->init;
	struct change *change = &writing->config;
	const struct config_section *section =
		config_file_find(&init->file, SECTION_PROFILE, init->profile);
	if (!user_file_read(&change->file, init->config_path, err)) {
		return false;
	}
	if (section) {
		return profile_text_is_same(&section->settings, &init->settings) ||
		       fail_other(init, section, err);
	}
	struct span old = buf_span(&change->file.content);
	profile_text_add(
		change->file.is_there ? &old : NULL, init->profile, &init->settings, &change->text);
	change->is_needed = true;
	change->check = check_draft;
	return true;
}

/* ---- the editor ---- */

/* The command for this program: its name alone, if PATH finds this very program. */
static char *find_command(const struct init *init)
{
	const char *path = environment_get(init->means->environment, "PATH");
	char *own = client_own_program();
	char *found = path ? path_find_program("acp-broker", path) : NULL;
	char *real_found = found ? real_path(found) : NULL;
	char *real_own = real_path(own);
	bool is_on_path = real_found && strcmp(real_found, real_own) == 0;
	char *command = mem_strdup(is_on_path ? "acp-broker" : own);
	free(own);
	free(found);
	free(real_found);
	free(real_own);
	return command;
}

static void make_argv(struct writing *writing)
{
	const struct init *init = writing->init;
	writing->command = find_command(init);
	words_append(&writing->argv, writing->command);
	if (init->means->options->config) {
		words_append(&writing->argv, "--config");
		words_append(&writing->argv, init->config_path);
	}
	words_append(&writing->argv, "--profile");
	words_append(&writing->argv, init->profile);
}

/* "claude-confined (broker)". */
static char *agent_title(const struct init *init)
{
	static const char end[] = " (broker)";
	size_t len = strlen(init->profile);
	char *title = mem_alloc(len + sizeof(end));
	memcpy(title, init->profile, len);
	memcpy(title + len, end, sizeof(end));
	return title;
}

static bool add_agent(struct writing *writing, const char *title, struct error *err)
{
	const struct editor *editor = writing->init->editor;
	struct change *change = &writing->editor;
	enum jsonc_outcome outcome = JSONC_SAME;
	struct buf value;
	buf_init(&value, TEXT_MAX);
	editor_write_agent(editor, (const char *const *)writing->argv, &value);
	bool ok = jsonc_add(buf_span(&change->file.content), editor_member(editor), title,
		buf_span(&value), &change->text, &outcome, err);
	change->is_needed = ok && outcome == JSONC_ADDED;
	if (ok && outcome == JSONC_OTHER) {
		ok = error_set(err, ERROR_UNAVAILABLE,
			"it has another \"%s\", which stays as it is", title);
	}
	buf_finish(&value);
	return ok || error_prefix(err, "%s", change->file.path);
}

/* If we cannot change the settings, the user must paste lines, which we print. */
static void plan_editor(struct writing *writing, const char *path)
{
	char *title = agent_title(writing->init);
	writing->must_paste = !user_file_read(&writing->editor.file, path, &writing->paste_why) ||
	                      !add_agent(writing, title, &writing->paste_why);
	free(title);
}

static void print_lines_to_paste(const struct writing *writing)
{
	const struct editor *editor = writing->init->editor;
	enum jsonc_outcome outcome;
	struct error ignored;
	struct buf value, text;
	char *title = agent_title(writing->init);
	buf_init(&value, TEXT_MAX);
	buf_init(&text, TEXT_MAX);
	editor_write_agent(editor, (const char *const *)writing->argv, &value);
	if (jsonc_add(SPAN_LITERAL(""), editor_member(editor), title, buf_span(&value), &text,
		    &outcome, &ignored)) {
		printf("\nAdd this to the settings of %s by hand:\n\n", editor_title(editor));
		print_text(&text);
	}
	buf_finish(&value);
	buf_finish(&text);
	free(title);
}

/* ---- output ---- */

static void show(const struct change *change)
{
	if (!change->file.path) {
		return;
	}
	if (!change->is_needed) {
		printf("%s needs no change.\n", change->file.path);
		return;
	}
	struct span old = buf_span(&change->file.content);
	print_diff(change->file.path, change->file.is_there ? &old : NULL, buf_span(&change->text));
}

/* Whether the profile is used without --profile. */
static bool is_default(const struct init *init)
{
	const struct config_section *section = config_file_find(&init->file, SECTION_BROKER, NULL);
	const char *name = section ? settings_get(&section->settings, "profile") : NULL;
	return !init->file.was_read || strcmp(name ? name : PROFILE_BUILT_IN, init->profile) == 0;
}

static void print_command(const struct writing *writing, const char *command, const char *text)
{
	const struct init *init = writing->init;
	bool names_config = init->means->options->config != NULL;
	bool names_profile = !is_default(init);
	printf("%s%s%s %s%s%s  # %s\n", writing->command, names_config ? " --config " : "",
		names_config ? init->config_path : "", command, names_profile ? " --profile " : "",
		names_profile ? init->profile : "", text);
}

static void print_notes(const struct init *init)
{
	const struct known_agent *known = init->agent->known;
	const struct provider_place *place = init->place->place;
	if (init->place->warning) {
		char *line = mask_line(span_of(init->place->warning));
		printf("Note: %s\n", line);
		free(line);
	}
	if (!provider_runs_here(init->place->provider)) {
		if (place->asked) {
			printf("Note: %s has to be installed there, and logged in.\n",
				init->agent->name);
		} else if (!settings_get(&init->settings, "secret-env")) {
			puts("Note: the agent is not logged in there; acp-broker.config(5) has "
			     "secret-env and copy.");
		}
	} else if (!init->agent->program && known) {
		printf("Note: the agent is not installed: %s\n", known->install);
	}
}

static void print_next(const struct writing *writing)
{
	putchar('\n');
	print_notes(writing->init);
	print_command(writing, "doctor", "tries all that a session does");
	print_command(writing, "chat", "talks with the agent");
	if (writing->init->editor && !writing->must_paste) {
		char *title = agent_title(writing->init);
		printf("In %s, begin a thread with the agent \"%s\".\n",
			editor_title(writing->init->editor), title);
		free(title);
	}
}

/* ---- the whole step ---- */

static bool put(struct writing *writing, const struct change *change, struct error *err)
{
	if (!change->is_needed) {
		return true;
	}
	if (!user_file_replace(
		    &change->file, buf_span(&change->text), change->check, writing->init, err)) {
		return error_prefix(err, "init");
	}
	printf("%s is written.\n", change->file.path);
	return true;
}

static bool confirm(const struct writing *writing, bool *out_yes, struct error *err)
{
	*out_yes = true;
	if (!writing->init->asks || !(writing->config.is_needed || writing->editor.is_needed)) {
		return true;
	}
	putchar('\n');
	return init_ask_yes("Write this?", out_yes, err);
}

static bool finish_writing(struct writing *writing, struct error *err)
{
	bool is_wanted;
	show(&writing->config);
	if (!writing->must_paste) {
		show(&writing->editor);
	}
	if (writing->init->means->options->flags & OPTION_DRY_RUN) {
		is_wanted = false;
	} else if (!confirm(writing, &is_wanted, err)) {
		return false;
	} else if (!is_wanted) {
		return error_set(err, ERROR_UNAVAILABLE, "init: nothing was written");
	}
	if (is_wanted && (!put(writing, &writing->config, err) ||
				 (!writing->must_paste && !put(writing, &writing->editor, err)))) {
		return false;
	}
	if (writing->must_paste) {
		print_lines_to_paste(writing);
	}
	if (is_wanted) {
		print_next(writing);
	}
	fflush(stdout);
	if (writing->must_paste) {
		*err = writing->paste_why;
		return error_prefix(err, "init: the editor's settings are not changed");
	}
	return true;
}

static void init_change(struct change *change)
{
	buf_init(&change->text, TEXT_MAX);
}

static void finish_change(struct change *change)
{
	if (change->file.path) {
		user_file_finish(&change->file);
	}
	buf_finish(&change->text);
}

bool init_write(struct init *init, struct error *err)
{
	struct writing writing = {.init = init};
	char *path = init->editor ? editor_path(init->editor, init->means->environment) : NULL;
	init_change(&writing.config);
	init_change(&writing.editor);
	make_argv(&writing);
	bool ok = !init->editor || path ||
	          error_set(err, ERROR_CONFIG, "--editor %s: HOME names no folder",
			  editor_name(init->editor));
	ok = ok && plan_config(&writing, err);
	if (ok && path) {
		plan_editor(&writing, path);
	}
	ok = ok && finish_writing(&writing, err);
	finish_change(&writing.config);
	finish_change(&writing.editor);
	words_free(writing.argv);
	free(writing.command);
	free(path);
	return ok;
}
