/* SPDX-License-Identifier: MIT */
#include "sync/git/inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "sync/git/commits.h"
#include "sync/nested.h"

/* ---- which ones exist ---- */

/* The paths in these lines, sorted; free them with words_free. */
static char **list_paths(struct span lines)
{
	char **paths = NULL;
	for (size_t at = 0; at < lines.len;) {
		char name[AGENT_COMMITS_PATH_MAX + 1];
		const char *end = memchr(lines.data + at, '\n', lines.len - at);
		size_t length = (size_t)(end - lines.data) - at;
		char *path = mem_strndup((struct span){lines.data + at, length});
		if (agent_commits_path(path, name)) {
			words_append(&paths, path);
		}
		free(path);
		at += length + 1;
	}
	if (paths) {
		qsort(paths, words_count(paths), sizeof(*paths), words_compare);
	}
	return paths;
}

static struct history *take_known(struct history **known, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		struct history *history = known[i];
		if (history && strcmp(history->path, path) == 0) {
			known[i] = NULL;
			return history;
		}
	}
	return history_create(path);
}

/* Sets `nested` to the paths that lie below the repository's folder, relative to it. */
static void put_nested(struct history *history, struct span lines)
{
	size_t length = strlen(history->path);
	buf_clear(&history->nested);
	for (size_t at = 0; at < lines.len;) {
		const char *line = lines.data + at;
		const char *end = memchr(line, '\n', lines.len - at);
		size_t size = (size_t)(end - line) + 1;
		if (size > length + 1 && memcmp(line, history->path, length) == 0 &&
			line[length] == '/') {
			struct span below = {line + length + 1, size - length - 1};
			(void)!buf_append(&history->nested, below, NULL);
		}
		at += size;
	}
}

size_t inner_update(struct history *histories[1 + INNER_MAX], size_t count)
{
	struct span lines = buf_span(&histories[0]->nested);
	struct history *known[INNER_MAX];
	size_t known_count = count - 1;
	memcpy(known, histories + 1, known_count * sizeof(*known));
	char **paths = list_paths(lines);
	for (count = 1; paths && paths[count - 1] && count <= INNER_MAX; count++) {
		histories[count] = take_known(known, known_count, paths[count - 1]);
		put_nested(histories[count], lines);
	}
	for (size_t i = 0; i < known_count; i++) {
		if (known[i]) {
			history_destroy(known[i]);
		}
	}
	words_free(paths);
	return count;
}

/* ---- where they are ---- */

bool inner_root(const char *root, const char *path, char out[PATH_MAX])
{
	char wanted[PATH_MAX];
	if (!*path) {
		return text_whole(out, PATH_MAX, "%s", root);
	}
	char *top = realpath(root, NULL);
	bool fits = top && text_whole(wanted, sizeof(wanted), "%s/%s", top, path);
	free(top);
	char *real = fits ? realpath(wanted, NULL) : NULL;
	bool is_it = real && strcmp(real, wanted) == 0;
	free(real);
	return is_it && text_whole(out, PATH_MAX, "%s", wanted);
}
