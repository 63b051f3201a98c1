/* SPDX-License-Identifier: MIT */
#include "sync/git/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
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
			return false; // no attribute has such a value
		}
	}
	return *name != '\0';
}

static bool has_word(char *const *words, const char *word)
{
	for (; words && *words; words++) {
		if (strcmp(*words, word) == 0) {
			return true;
		}
	}
	return false;
}

/* The names between "filter." and the last dot, each once. */
static int add_name(const git_config_entry *entry, void *payload)
{
	char ***names = payload;
	const char *end = strrchr(entry->name, '.');
	const char *start = entry->name + sizeof(section) - 1;
	if (strncmp(entry->name, section, sizeof(section) - 1) != 0 || end <= start) {
		return 0;
	}
	char *name = mem_strndup((struct span){start, (size_t)(end - start)});
	if (is_for_attributes(name) && !has_word(*names, name)) {
		words_append(names, name);
	}
	free(name);
	return 0;
}

/* "" where it is not set. */
static void get(const struct git *git, git_config *config, const char *name, const char *key,
	char *value, size_t size)
{
	char full[PATH_MAX];
	git_buf text = {0};
	value[0] = '\0';
	snprintf(full, sizeof(full), "%s%s%s%s", *name ? section : "", name, *name ? "." : "", key);
	if (git->config_get_string_buf(&text, config, full) == 0) {
		snprintf(value, size, "%s", text.ptr);
	}
	git->buf_dispose(&text);
}

static bool add_filter(struct filters *filters, const struct git *git, git_config *config,
	const char *name, struct error *err)
{
	static const char lfs[] = "git-lfs ";
	char clean[64], smudge[64], process[64];
	get(git, config, name, "clean", clean, sizeof(clean));
	get(git, config, name, "smudge", smudge, sizeof(smudge));
	get(git, config, name, "process", process, sizeof(process));
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
	struct filters *filters, const struct git *git, git_config *config, struct error *err)
{
	static const char *const keys[] = {"core.autocrlf", "core.eol"};
	bool fits = true;
	for (size_t i = 0; fits && i < ARRAY_LENGTH(keys); i++) {
		char value[16];
		get(git, config, "", keys[i], value, sizeof(value));
		fits = !is_for_attributes(value) ||
		       buf_append_format(&filters->rules, err, "set %s %s\n", keys[i], value);
	}
	return fits;
}

/* ---- attributes ---- */

/* A file that is not there has none. */
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

static bool add_users(struct buf *out, const struct git *git, git_config *config, const char *home,
	struct error *err)
{
	char named[PATH_MAX], path[2 * PATH_MAX];
	get(git, config, "", "core.attributesFile", named, sizeof(named));
	if (strncmp(named, "~/", 2) == 0 && home) {
		snprintf(path, sizeof(path), "%s%s", home, named + 1);
	} else if (*named) {
		snprintf(path, sizeof(path), "%s", named);
	} else {
		snprintf(path, sizeof(path), "%s/.config/git/attributes", home ? home : "");
	}
	return path[0] != '/' || add_file(out, path, err);
}

/* ---- all of it ---- */

bool filters_read(struct filters *filters, const struct git *git, git_config *config,
	const char *common_folder, const char *home, struct error *err)
{
	char path[PATH_MAX], **names = NULL;
	buf_clear(&filters->rules);
	buf_clear(&filters->attributes);
	buf_clear(&filters->further);
	git->config_foreach(config, add_name, &names);
	bool read = true;
	for (char **name = names; read && name && *name; name++) {
		read = add_filter(filters, git, config, *name, err);
	}
	words_free(names);
	snprintf(path, sizeof(path), "%sinfo/attributes", common_folder);
	return read && add_settings(filters, git, config, err) &&
	       add_file(&filters->attributes, path, err) &&
	       add_file(&filters->further, "/etc/gitattributes", err) &&
	       add_users(&filters->further, git, config, home, err);
}
