/* SPDX-License-Identifier: MIT */
#include "sync/git/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"

enum { RULES_MAX = 64 << 10, ATTRIBUTES_MAX = 1 << 20, READ_SIZE = 4096 };

static const char section[] = "filter.";

void filters_init(struct filters *filters)
{
	buf_init(&filters->rules, RULES_MAX);
	buf_init(&filters->attributes, ATTRIBUTES_MAX);
	buf_init(&filters->further, ATTRIBUTES_MAX);
}

void filters_finish(struct filters *filters)
{
	buf_finish(&filters->rules);
	buf_finish(&filters->attributes);
	buf_finish(&filters->further);
}

bool filters_are_none(const struct filters *filters)
{
	return filters->rules.len + filters->attributes.len + filters->further.len == 0;
}

/* ---- filters ---- */

static bool is_for_attributes(const char *name)
{
	for (const char *at = name; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == '\x7f') {
			return false; // no attribute can have such a value
		}
	}
	return *name != '\0';
}

/* The names between "filter." and the last dot, each once; also those that are uncertain. */
static char **list_names(const struct user_config *config)
{
	char **names = NULL;
	for (size_t i = 0; i < config->count; i++) {
		const char *key = config->settings[i].key;
		const char *start = key + sizeof(section) - 1, *end = strrchr(key, '.');
		if (strncmp(key, section, sizeof(section) - 1) != 0 || end <= start) {
			continue;
		}
		char *name = mem_strndup((struct span){start, (size_t)(end - start)});
		if (is_for_attributes(name) && !words_contain((const char *const *)names, name)) {
			words_append(&names, name);
		}
		free(name);
	}
	return names;
}

/* "" if it is not set. For a filter an uncertain value counts. */
static const char *get(const struct user_config *config, const char *name, const char *key)
{
	size_t len = strlen(name), before = sizeof(section) - 1;
	for (size_t i = config->count; i > 0; i--) {
		const struct user_setting *setting = &config->settings[i - 1];
		const char *at = setting->key;
		if (strncmp(at, section, before) == 0 && strncmp(at + before, name, len) == 0 &&
			at[before + len] == '.' && strcmp(at + before + len + 1, key) == 0) {
			return setting->value ? setting->value : "";
		}
	}
	return "";
}

static bool add_filter(struct filters *filters, const struct user_config *config, const char *name,
	struct error *err)
{
	static const char lfs[] = "git-lfs ";
	const char *clean = get(config, name, "clean"), *smudge = get(config, name, "smudge");
	const char *process = get(config, name, "process");
	bool is_both_ways = *process || (*smudge && strcmp(smudge, "cat") != 0);
	const char *first = *process ? process : clean;
	if (!is_both_ways && !*clean) {
		return true; // it does nothing here either
	}
	if (strcmp(name, "lfs") == 0 && strncmp(first, lfs, sizeof(lfs) - 1) == 0) {
		return buf_append_format(&filters->rules, err, "lfs\n");
	}
	return buf_append_format(
		&filters->rules, err, "%s %s\n", is_both_ways ? "whole" : "clean", name);
}

static bool add_settings(
	struct filters *filters, const struct user_config *config, struct error *err)
{
	static const char *const keys[] = {"core.autocrlf", "core.eol"};
	bool fits = true;
	for (size_t i = 0; fits && i < ARRAY_LENGTH(keys); i++) {
		const char *value = user_config_get(config, keys[i]);
		char text[16];
		text_whole(text, sizeof(text), "%s", !value ? "" : *value ? value : "true");
		fits = !is_for_attributes(text) ||
		       buf_append_format(&filters->rules, err, "set %s %s\n", keys[i], text);
	}
	return fits;
}

/* ---- attributes ---- */

/* A missing file has no attributes. */
static bool add_file(struct buf *out, const char *path, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t count = fd >= 0 ? 1 : 0;
	if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
		return error_set_errno(err, errno, "reading %s", path);
	}
	size_t before = out->len;
	while (count > 0) {
		char *at = buf_reserve(out, READ_SIZE, err);
		if (!at) {
			return error_prefix(err, "reading %s", path);
		}
		count = read(fd, at, READ_SIZE);
		if (count < 0) {
			return error_set_errno(err, errno, "reading %s", path);
		}
		buf_commit(out, (size_t)count);
	}
	return out->len == before || buf_append(out, SPAN_LITERAL("\n"), err);
}

/*
 * The repository's configuration may name any file of the user as its attributes, and the
 * repository may come from anywhere. Such a file is only sent if it lies in the repository's .git,
 * or if the user's own configuration names it.
 */
static bool may_name(const struct user_repository *repository, const char *home, const char *path,
	struct error *err)
{
	struct user_config own = {0};
	struct user_repository none = {0};
	char users[PATH_MAX];
	char *real = real_path(path);
	bool is_inside = path_is_at_or_below(real, repository->common);
	free(real);
	if (is_inside) {
		return true;
	}
	bool may =
		user_config_read(&own, home, &none, err) &&
		user_config_file(&own, "core.attributesfile", "attributes", home, users, err) &&
		(strcmp(users, path) == 0 ||
			error_set(err, ERROR_DENIED,
				"%s: core.attributesFile names %s, which is outside of it: name it "
				"in your own configuration",
				repository->common, path));
	user_config_finish(&own);
	return may;
}

static bool add_users(struct buf *out, const struct user_config *config,
	const struct user_repository *repository, const char *home, struct error *err)
{
	char path[PATH_MAX];
	return user_config_file(config, "core.attributesfile", "attributes", home, path, err) &&
	       (path[0] != '/' ||
		       (may_name(repository, home, path, err) && add_file(out, path, err)));
}

/* ---- all of it ---- */

bool filters_read(struct filters *filters, const struct user_config *config,
	const struct user_repository *repository, const char *home, struct error *err)
{
	char path[PATH_MAX];
	char **names = list_names(config);
	buf_clear(&filters->rules);
	buf_clear(&filters->attributes);
	buf_clear(&filters->further);
	bool read = true;
	for (char **name = names; read && name && *name; name++) {
		read = add_filter(filters, config, *name, err);
	}
	words_free(names);
	text_whole(path, sizeof(path), "%s/info/attributes", repository->common);
	return read && add_settings(filters, config, err) &&
	       add_file(&filters->attributes, path, err) &&
	       add_file(&filters->further, "/etc/gitattributes", err) &&
	       add_users(&filters->further, config, repository, home, err);
}
