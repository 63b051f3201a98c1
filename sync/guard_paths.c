/* SPDX-License-Identifier: MIT */
#include "sync/guard_paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/glob.h"
#include "base/words.h"
#include "sync/snapshot_impl.h"

/* docs/acp-broker.config.5.scd, "guard-paths", says of each which program reads it. */
static const char *const defaults[] = {
	".envrc",
	".gitmodules",
	".gitattributes",
	".vscode/tasks.json",
	".vscode/settings.json",
	".vscode/launch.json",
	".zed/tasks.json",
	".zed/settings.json",
	".idea/runConfigurations",
	".idea/workspace.xml",
	".mcp.json",
	".husky",
	".githooks",
	".devcontainer",
	".devcontainer.json",
	"*.code-workspace",
	".claude/settings*.json",
	".codex/config.toml",
	".gemini/settings.json",
	".qwen/settings.json",
	".opencode",
	"opencode.json",
	"opencode.jsonc",
	NULL,
};

struct guard_paths {
	char **globs; // owned, as the user wrote them
	char **files; // owned, in lower case: each glob, with everything below it
	char **links; // owned, the same: the folders on a glob's way
};

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z') {
			*text = (char)(*text - 'A' + 'a');
		}
	}
}

void guard_paths_fold(char *path)
{
	char *out = path;
	for (char *name = path; name;) {
		char *slash = strchr(name, '/');
		if (slash) {
			*slash = '\0';
		}
		snapshot_name_fold(name);
		size_t len = strlen(name);
		memmove(out, name, len);
		out += len;
		if (slash) {
			*out++ = '/';
		}
		name = slash ? slash + 1 : NULL;
	}
	*out = '\0';
}

/*
 * Adds the folders on the way to a glob: "a" and "a/b" for "a/b/c". Leaves out a leading
 * "**" component, which matches any folder.
 */
static void add_links(struct guard_paths *guard, const char *glob)
{
	const char *begin = strncmp(glob, "**/", 3) == 0 ? glob + 3 : glob;
	for (const char *at = strchr(begin + 1, '/'); at; at = strchr(at + 1, '/')) {
		char *folder = mem_strndup((struct span){begin, (size_t)(at - begin)});
		words_append(&guard->links, folder);
		free(folder);
	}
}

static bool add_glob(struct guard_paths *guard, const char *value, struct error *err)
{
	size_t len = strlen(value);
	bool is_folder = len > 1 && value[len - 1] == '/';
	char *glob = mem_strndup((struct span){value, is_folder ? len - 1 : len});
	bool ok = *glob && strcmp(glob, "/") != 0
	                  ? glob_check_path(glob, err)
	                  : error_set(err, ERROR_CONFIG,
				    "expected a path, \"default\" or \"none\", got \"%s\"", value);
	if (ok) {
		struct buf below;
		buf_init(&below, len + 8);
		words_append(&guard->globs, value);
		lower(glob);
		ok = buf_append_format(&below, err, "%s/**", glob) &&
		     buf_append(&below, (struct span){"", 1}, err);
		words_append(&guard->files, ok ? below.data : "");
		buf_finish(&below);
		add_links(guard, glob);
	}
	free(glob);
	return ok;
}

static bool add_defaults(struct guard_paths *guard, struct error *err)
{
	bool ok = true;
	for (const char *const *glob = defaults; ok && *glob; glob++) {
		ok = add_glob(guard, *glob, err);
	}
	return ok;
}

static bool add_values(struct guard_paths *guard, const char *const *values, struct error *err)
{
	bool ok = true;
	if (!values || !*values) {
		return add_defaults(guard, err);
	}
	for (size_t i = 0; ok && values[i]; i++) {
		if (strcmp(values[i], "default") == 0) {
			ok = add_defaults(guard, err);
		} else if (strcmp(values[i], "none") != 0) {
			ok = add_glob(guard, values[i], err);
		} else if (i > 0 || values[1]) {
			ok = error_set(err, ERROR_CONFIG, "expected \"none\" alone");
		}
	}
	return ok;
}

struct guard_paths *guard_paths_create(const char *const *values, struct error *err)
{
	struct guard_paths *guard = mem_alloc_zero(sizeof(*guard));
	if (!add_values(guard, values, err)) {
		guard_paths_destroy(guard);
		return NULL;
	}
	return guard;
}

struct guard_paths *guard_paths_copy(const struct guard_paths *guard)
{
	if (!guard) {
		return NULL;
	}
	struct guard_paths *copy = mem_alloc_zero(sizeof(*copy));
	words_append_all(&copy->globs, (const char *const *)guard->globs);
	words_append_all(&copy->files, (const char *const *)guard->files);
	words_append_all(&copy->links, (const char *const *)guard->links);
	return copy;
}

void guard_paths_destroy(struct guard_paths *guard)
{
	if (guard) {
		words_free(guard->globs);
		words_free(guard->files);
		words_free(guard->links);
		free(guard);
	}
}

/* A path below the root, beginning with a slash, and the absolute path without its first slash. */
struct names {
	const char *rooted, *whole;
};

static bool any_matches(char *const *globs, const struct names *names)
{
	for (; globs && *globs; globs++) {
		if (**globs == '/' ? glob_match(*globs, names->rooted)
				   : glob_match_anywhere(*globs, names->whole)) {
			return true;
		}
	}
	return false;
}

static bool matches(const struct guard_paths *guard, const struct names *names, bool is_link)
{
	return any_matches(guard->files, names) || (is_link && any_matches(guard->links, names));
}

bool guard_paths_have(
	const struct guard_paths *guard, const char *root, const char *path, bool is_link)
{
	char rooted[PATH_MAX + 1], whole[2 * PATH_MAX];
	struct names names = {rooted, whole};
	root += strspn(root, "/");
	size_t root_len = strlen(root);
	while (root_len > 0 && root[root_len - 1] == '/') {
		root_len--;
	}
	int len = snprintf(rooted, sizeof(rooted), "/%s", path);
	int whole_len = snprintf(whole, sizeof(whole), "%.*s%s%s", (int)root_len, root,
		root_len > 0 ? "/" : "", path);
	if (len < 0 || (size_t)len >= sizeof(rooted) || whole_len < 0 ||
		(size_t)whole_len >= sizeof(whole)) {
		return true; // not a file's name: we cannot say that it is not guarded
	}
	lower(rooted);
	lower(whole);
	if (matches(guard, &names, is_link)) {
		return true;
	}
	guard_paths_fold(rooted);
	guard_paths_fold(whole);
	return matches(guard, &names, is_link);
}
