/* SPDX-License-Identifier: MIT */
#include "providers/local/allowed_sockets.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "base/text.h"
#include "providers/impl.h"

static const char key[] = "allow-socket";

static bool is_one(const struct setting *setting)
{
	return strcmp(setting->key, key) == 0;
}

static const char *without_scheme(const char *value)
{
	static const char *const schemes[] = {"unix://", "unix:path="};
	for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++) {
		size_t len = strlen(schemes[i]);
		if (strncmp(value, schemes[i], len) == 0) {
			return value + len;
		}
	}
	return value;
}

/* The path for a value. NULL: the variable names no path. */
static const char *path_of(const char *value, const char *const *environment)
{
	const char *named = value[0] == '$' ? environment_get(environment, value + 1) : NULL;
	return value[0] != '$' ? value : named ? without_scheme(named) : NULL;
}

bool allowed_sockets_draw(struct cell_drawing *drawing, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	char said[PATH_MAX + 64];
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (!is_one(setting)) {
			continue;
		}
		const char *path = path_of(setting->value, environment);
		text_format(said, sizeof(said), "%s = %s", key, setting->value);
		if (path && !cell_drawing_add_socket(drawing, said, path, err)) {
			return false;
		}
	}
	return true;
}

/*
 * Looks for the path as the user wrote it. The drawing, not this function, resolves a value below
 * "~/".
 */
static bool is_there(const char *path, const char *home)
{
	char full[PATH_MAX];
	struct stat status;
	bool is_in_home = strncmp(path, "~/", 2) == 0 && home;
	return text_whole(full, sizeof(full), "%s%s", is_in_home ? home : "",
		       is_in_home ? path + 1 : path) &&
	       stat(full, &status) == 0 && S_ISSOCK(status.st_mode);
}

void allowed_sockets_tell(
	struct sandbox *sandbox, const struct settings *settings, const char *const *environment)
{
	char text[ERROR_TEXT_MAX];
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const char *path = is_one(setting) ? path_of(setting->value, environment) : NULL;
		if (!is_one(setting)) {
			continue;
		}
		if (path && is_there(path, environment_get(environment, "HOME"))) {
			text_format(text, sizeof(text),
				"%s = %s: the agent can use the socket %s of this machine, and the "
				"program behind it",
				key, setting->value, path);
		} else {
			text_format(text, sizeof(text),
				"%s = %s: there is no socket at this path; the agent runs without "
				"it",
				key, setting->value);
		}
		sandbox_warn(sandbox, text);
	}
}

bool allowed_sockets_have(
	const struct settings *settings, const char *const *environment, struct span name)
{
	char variable[256];
	if (!text_whole(variable, sizeof(variable), "%.*s", (int)name.len, name.data)) {
		return false;
	}
	const char *value = environment_get(environment, variable);
	if (!value) {
		return false;
	}
	value = without_scheme(value);
	size_t len = strcspn(value, ","); // a D-Bus address continues with the server's identity
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const char *path = is_one(setting) ? path_of(setting->value, environment) : NULL;
		if (path && strlen(path) == len && memcmp(path, value, len) == 0) {
			return true;
		}
	}
	return false;
}
