/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_place.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"

static void refuse_folder(char ***folders, const char *folder, const char *name)
{
	char *path = *name ? path_join(folder, name) : mem_strdup(folder);
	char *real = real_path(path);
	words_append(folders, real);
	free(real);
	free(path);
}

/* Whoever has an engine's socket can do everything on this machine. */
static void refuse_socket(
	char ***folders, const struct provider_context *context, const char *variable)
{
	static const char here[] = "unix:";
	const char *value = environment_get(context->environment, variable);
	if (value && strncmp(value, here, strlen(here)) == 0) {
		value += strlen(here);
		value += strspn(value, "/");
		refuse_folder(folders, "/", value);
	}
}

void pin_places_init(struct pin_places *places, const struct provider_context *context,
	const struct settings *settings, const char *home_name, const char *state,
	const char *instead)
{
	static const char *const own[] = {
		"/tmp", "/var/tmp", "/run", "/home", "/root", "/dev", "/proc", "/sys"};
	static const char *const engines[] = {"/var/lib/docker", "/var/lib/containers"};
	static const char *const users_engines[] = {
		".local/share/docker", ".local/share/containers"};
	const char *config = environment_get(context->environment, "XDG_CONFIG_HOME");
	*places = (struct pin_places){.home_name = mem_strdup(home_name),
		.home = real_path(home_name),
		.instead = instead};
	if (state) {
		words_append(&places->refused, state);
	}
	refuse_folder(&places->refused, places->home, ".config/acp-broker");
	if (config && config[0] == '/') {
		refuse_folder(&places->refused, config, "acp-broker");
	}
	for (size_t i = 0; i < ARRAY_LENGTH(engines); i++) {
		refuse_folder(&places->refused, engines[i], "");
		refuse_folder(&places->refused, places->home, users_engines[i]);
	}
	refuse_socket(&places->refused, context, "DOCKER_HOST");
	refuse_socket(&places->refused, context, "CONTAINER_HOST");
	if (context->own_files) {
		words_append_all(&places->refused, context->own_files);
	}
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, "allow-write") == 0) {
			bool is_in_home = strncmp(setting->value, "~/", 2) == 0;
			refuse_folder(&places->refused, is_in_home ? places->home : setting->value,
				is_in_home ? setting->value + 2 : "");
		}
	}
	words_append(&places->above, places->home);
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		words_append(&places->above, own[i]);
	}
}

void pin_places_copy(struct pin_places *places, const struct pin_places *from)
{
	*places = (struct pin_places){.home_name = mem_strdup(from->home_name),
		.home = mem_strdup(from->home),
		.instead = from->instead};
	words_append_all(&places->refused, (const char *const *)from->refused);
	words_append_all(&places->above, (const char *const *)from->above);
}

void pin_places_finish(struct pin_places *places)
{
	words_free(places->refused);
	words_free(places->above);
	free(places->home_name);
	free(places->home);
	*places = (struct pin_places){.home = NULL};
}

static bool contains(const char *folder, const char *path)
{
	return strcmp(folder, "/") == 0 || path_is_at_or_below(path, folder);
}

static bool refuse(const struct pin_places *places, const char *path, const char *other,
	const char *why, struct error *err)
{
	return error_set(err, ERROR_CONFIG,
		"%s cannot be the workspace of a confined agent: it %s %s. Open another folder, or "
		"let the agent work in a copy (%s)",
		path, why, other, places->instead);
}

/* It has the sockets of this machine's services. Only disks that come and go are below /run/media.
 */
static bool lies_in_run(const char *path)
{
	return path_is_at_or_below(path, "/run") && !path_is_at_or_below(path, "/run/media");
}

static bool contains_any(const char *path, char **folders)
{
	for (; folders && *folders; folders++) {
		if (contains(path, *folders)) {
			return true;
		}
	}
	return false;
}

bool pin_places_take_repository(const struct pin_places *places, const char *path)
{
	return !contains_any(path, places->refused) && !contains_any(path, places->above);
}

static bool lies_in_git(const char *path)
{
	const char *at = strstr(path, "/.git");
	while (at && at[5] != '/' && at[5] != '\0') {
		at = strstr(at + 1, "/.git");
	}
	return at != NULL;
}

/* The path that `local` must have without links: only the home itself may be one. */
static void expect(const struct pin_places *places, const char *local, char out[PATH_MAX])
{
	bool is_in_home = path_is_at_or_below(local, places->home_name);
	text_whole(out, PATH_MAX, "%s%s", is_in_home ? places->home : "",
		is_in_home ? local + strlen(places->home_name) : local);
}

bool pin_places_check(
	const struct pin_places *places, const char *local, const char *path, struct error *err)
{
	char expected[PATH_MAX];
	expect(places, local, expected);
	if (strcmp(path, expected) != 0) {
		return error_set(err, ERROR_CONFIG,
			"the path %s contains a symbolic link, which an agent could have made: "
			"open %s",
			local, path);
	}
	for (char **folder = places->refused; folder && *folder; folder++) {
		if (contains(path, *folder) || contains(*folder, path)) {
			return refuse(places, path, *folder,
				contains(path, *folder) ? "contains" : "lies in", err);
		}
	}
	for (char **folder = places->above; folder && *folder; folder++) {
		if (contains(path, *folder)) {
			return refuse(places, path, *folder, "contains", err);
		}
	}
	if (lies_in_run(path)) {
		return refuse(places, path, "/run", "lies in", err);
	}
	return !lies_in_git(path) ||
	       refuse(places, path, "a git repository's own files", "lies in", err);
}
