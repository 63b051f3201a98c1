/* SPDX-License-Identifier: MIT */
#include "broker/init/editors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/environment.h"
#include "base/json_writer.h"
#include "base/real_path.h"

/*
 * From the editors' documentation: zed.dev/docs/ai/external-agents ("Custom agents") and
 * zed.dev/docs/configuring-zed; jetbrains.com/help/ai-assistant/acp.html.
 */
struct editor {
	const char *name, *title;
	const char *file;           // below the home, or below the folder of configurations
	bool is_configuration;      // `file` is below XDG_CONFIG_HOME
	const char *programs[4];    // NULL-terminated: with one on PATH, it is installed
	const char *folders[2];     // the same, below the home
	const char *before, *after; // members of an agent around its command
};

static const struct editor editors[] = {
	{
		.name = "zed",
		.title = "Zed",
		.file = "zed/settings.json",
		.is_configuration = true,
		.programs = {"zed", "zeditor", "zedit"},
		.before = "\t\"type\": \"custom\",\n",
		.after = ",\n\t\"env\": {}",
	},
	{
		.name = "jetbrains",
		.title = "JetBrains",
		.file = ".jetbrains/acp.json",
		.programs = {"idea"},
		.folders = {".jetbrains", ".config/JetBrains"},
		.before = "",
		.after = "",
	},
};

const struct editor *editor_at(size_t index)
{
	return index < ARRAY_LENGTH(editors) ? &editors[index] : NULL;
}

const struct editor *editor_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(editors); i++) {
		if (strcmp(editors[i].name, name) == 0) {
			return &editors[i];
		}
	}
	return NULL;
}

const char *editor_name(const struct editor *editor)
{
	return editor->name;
}

const char *editor_title(const struct editor *editor)
{
	return editor->title;
}

const char *editor_member(const struct editor *editor)
{
	return "agent_servers"; // of both
}

static char *below_home(const char *const *environment, const char *path)
{
	const char *home = environment_get(environment, "HOME");
	return home && home[0] == '/' ? path_join(home, path) : NULL;
}

char *editor_path(const struct editor *editor, const char *const *environment)
{
	const char *folder = environment_get(environment, "XDG_CONFIG_HOME");
	if (!editor->is_configuration) {
		return below_home(environment, editor->file);
	}
	if (folder && folder[0] == '/') {
		return path_join(folder, editor->file);
	}
	char *below = path_join(".config", editor->file);
	char *path = below_home(environment, below);
	free(below);
	return path;
}

static bool is_there(const char *path)
{
	return path && access(path, F_OK) == 0;
}

/* An editor also counts as installed if the folder of its settings exists. */
bool editor_is_here(const struct editor *editor, const char *const *environment)
{
	const char *variable = environment_get(environment, "PATH");
	char *path = editor_path(editor, environment);
	if (path) {
		*strrchr(path, '/') = '\0';
	}
	bool is_here = is_there(path);
	free(path);
	for (const char *const *name = editor->programs; variable && *name && !is_here; name++) {
		path = path_find_program(*name, variable);
		is_here = path != NULL;
		free(path);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(editor->folders) && !is_here; i++) {
		path = editor->folders[i] ? below_home(environment, editor->folders[i]) : NULL;
		is_here = is_there(path);
		free(path);
	}
	return is_here;
}

static void append(struct buf *out, const char *text)
{
	buf_add(out, span_of(text));
}

static void append_text(struct buf *out, const char *text)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_text(&writer, text);
	bool ok = json_write_end(&writer, NULL);
	assert(ok); // the buffer has no maximum that matters
	(void)ok;
}

void editor_write_agent(const struct editor *editor, const char *const *argv, struct buf *out)
{
	append(out, "{\n");
	append(out, editor->before);
	append(out, "\t\"command\": ");
	append_text(out, argv[0]);
	append(out, ",\n\t\"args\": [");
	for (size_t i = 1; argv[i]; i++) {
		append(out, i > 1 ? ", " : "");
		append_text(out, argv[i]);
	}
	append(out, "]");
	append(out, editor->after);
	append(out, "\n}");
}
