/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_cell.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"

const struct error_reason copy_cell_reason = {
	"CELL_UNAVAILABLE", false, "do what the message says; it names what forbids confinement"};

const char *const confinement_choices[] = {"no", "yes", "required", NULL};

/*
 * git's configuration and tool chains. Not whole folders where some keep passwords in them:
 * .cargo/credentials.toml, .config/git/credentials.
 */
static const char *const shown[] = {".gitconfig", ".config/git/config", ".config/git/ignore",
	".config/git/attributes", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env",
	".cargo/config.toml", ".rustup", ".nvm", "go"};

/* Names of variables, and ends of such names: of agents for keys there are several. */
static const char *const lacking[] = {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "XDG_RUNTIME_DIR", "DOCKER_HOST", "TMPDIR"};
static const char *const lacking_ends[] = {"_AUTH_SOCK", "_AGENT_PID", "_AGENT_INFO"};

enum confinement copy_confinement(const struct settings *settings)
{
	const char *value = settings_get(settings, "confine");
	for (int i = CONFINEMENT_NO; value && confinement_choices[i]; i++) {
		if (strcmp(value, confinement_choices[i]) == 0) {
			return (enum confinement)i;
		}
	}
	return CONFINEMENT_NO;
}

bool copy_cell_lacks(struct span name)
{
	bool lacks = false;
	for (size_t i = 0; i < ARRAY_LENGTH(lacking); i++) {
		lacks = lacks || span_is(name, lacking[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(lacking_ends); i++) {
		size_t len = strlen(lacking_ends[i]);
		lacks = lacks || (name.len > len && memcmp(name.data + name.len - len,
							    lacking_ends[i], len) == 0);
	}
	return lacks;
}

const char *copy_cell_home(const struct provider_context *context)
{
	const char *home = environment_get(context->environment, "HOME");
	return home && home[0] == '/' && home[1] ? home : NULL;
}

/* ---- the plan ---- */

/* Entries, and the texts that they borrow. */
struct drawing {
	struct cell_entry entries[CELL_ENTRIES_MAX];
	size_t count;
	char **texts; // owned
};

static bool draw(struct drawing *drawing, enum cell_rule rule, const char *folder, const char *name,
	struct error *err)
{
	char path[PATH_MAX];
	if (!text_whole(path, sizeof(path), "%s%s%s", folder, name[0] ? "/" : "", name)) {
		return error_set(err, ERROR_CONFIG, "%s/%s: the path is too long", folder, name);
	}
	if (drawing->count == ARRAY_LENGTH(drawing->entries)) {
		return error_set(
			err, ERROR_LIMIT, "a cell takes %d paths at most", CELL_ENTRIES_MAX);
	}
	words_append(&drawing->texts, path);
	drawing->entries[drawing->count++].rule = rule;
	return true;
}

/* What the user says: absolute, or below the home. */
static bool draw_key(struct drawing *drawing, enum cell_rule rule, const char *key,
	const struct settings *settings, const char *home, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const char *value = setting->value;
		bool is_in_home = strncmp(value, "~/", 2) == 0;
		if (strcmp(setting->key, key) != 0) {
			continue;
		}
		if (!is_in_home && value[0] != '/') {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: expected a path that begins with / or ~/", key, value);
		}
		if (!draw(drawing, rule, is_in_home ? home : value, is_in_home ? value + 2 : "",
			    err)) {
			return false;
		}
	}
	return true;
}

static bool draw_all(struct drawing *drawing, const struct provider_context *context,
	const struct settings *settings, const char *state, struct error *err)
{
	const char *home = copy_cell_home(context);
	const char *config = environment_get(context->environment, "XDG_CONFIG_HOME");
	for (size_t i = 0; i < ARRAY_LENGTH(shown); i++) {
		if (!draw(drawing, CELL_READ, home, shown[i], err)) {
			return false;
		}
	}
	/* Last what is ours, so that nothing that the user shows has it. */
	return draw_key(drawing, CELL_READ, "allow-read", settings, home, err) &&
	       draw_key(drawing, CELL_WRITE, "allow-write", settings, home, err) &&
	       draw(drawing, CELL_HIDE, home, ".config/acp-broker", err) &&
	       (!config || config[0] != '/' ||
		       draw(drawing, CELL_HIDE, config, "acp-broker", err)) &&
	       draw(drawing, CELL_HIDE, state, "", err);
}

/* As in a passwd file; a name is for people and programs that want one. */
static const char *find_user(const struct provider_context *context)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
	const char *user = environment_get(context->environment, "USER");
	bool is_name =
		user && user[0] && user[strspn(user, allowed)] == '\0' && strcmp(user, "root") != 0;
	return is_name ? user : "user";
}

struct cell *copy_cell_create(const struct provider_context *context,
	const struct settings *settings, const char *state, const struct cell_listener *listener,
	void *data, struct error *err)
{
	struct cell *cell = NULL;
	struct drawing *drawing = mem_alloc_zero(sizeof(*drawing));
	if (!copy_cell_home(context)) {
		error_set(err, ERROR_CONFIG, "confining an agent: HOME names no folder");
	} else if (draw_all(drawing, context, settings, state, err)) {
		for (size_t i = 0; i < drawing->count; i++) {
			drawing->entries[i].path = drawing->texts[i];
		}
		const struct cell_plan plan = {.user = find_user(context),
			.home = copy_cell_home(context),
			.uid = geteuid(),
			.gid = getegid(),
			.has_network = true,
			.entries = drawing->entries,
			.entry_count = drawing->count};
		cell = cell_create(context->loop, context->spawner, &plan, listener, data, err);
	}
	words_free(drawing->texts);
	free(drawing);
	return cell;
}
