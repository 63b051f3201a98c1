/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_news.h"

#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "base/real_path.h"
#include "base/text.h"

enum { NAMED_MAX = 8 }; // files that one text names for each program

void pin_news_begin(struct pin_news *news, struct pin_list *list)
{
	size_t kept = 0;
	news->known = *list;
	*list = (struct pin_list){.found = NULL};
	for (size_t i = 0; i < news->known.count; i++) {
		struct pin_found *found = &news->known.found[i];
		if (found->kind == PIN_LINK) {
			free(found->path);
		} else {
			news->known.found[kept++] = *found;
		}
	}
	news->known.count = kept;
	news->known_first = kept;
}

void pin_news_finish(struct pin_news *news)
{
	pin_list_finish(&news->known);
}

void pin_news_pin(struct pin_news *news, const struct pin_list *list)
{
	for (size_t i = news->known_first; i < news->known.count; i++) {
		struct pin_found *known = news->known.found;
		const struct pin_found late = known[i];
		if (late.kind != PIN_LINK && pin_list_has(list, late.path)) {
			known[i] = known[news->known_first];
			known[news->known_first++] = late;
		}
	}
}

static struct pin_found *find_known(const struct pin_news *news, const char *path)
{
	for (size_t i = 0; i < news->known.count; i++) {
		if (strcmp(news->known.found[i].path, path) == 0) {
			return &news->known.found[i];
		}
	}
	return NULL;
}

static bool is_first(const struct pin_news *news, const struct pin_found *known)
{
	return known < news->known.found + news->known_first;
}

static bool is_same_time(struct timespec one, struct timespec other)
{
	return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

/* A file system may give a new file the number of a removed one, but not its time of birth. */
static bool is_same_file(const struct pin_found *one, const struct pin_found *other)
{
	return one->inode == other->inode && is_same_time(one->born, other->born);
}

/*
 * Pinned files are not reported, because they cannot change. Repositories are not either, because
 * every git command changes them.
 */
static bool is_news(const struct pin_news *news, const struct pin_found *found)
{
	const struct pin_found *known = find_known(news, found->path);
	bool is_repository = found->kind == PIN_REPOSITORY;
	if (!known) {
		return true;
	}
	if (is_first(news, known) && !known->is_loose) {
		return !news->is_renewed && !is_same_file(known, found) &&
		       !(is_repository && news->writes_git);
	}
	bool is_same = known->inode == found->inode && known->kind == found->kind &&
	               is_same_time(known->changed, found->changed);
	return !is_same && !is_repository;
}

static void remember(struct pin_news *news, const struct pin_found *found)
{
	struct pin_found *known = find_known(news, found->path);
	if (known) {
		known->is_loose = is_first(news, known);
	} else if (news->known.count < PINS_MAX) {
		size_t size = (news->known.count + 1) * sizeof(*known);
		news->known.found = mem_realloc(news->known.found, size);
		known = &news->known.found[news->known.count++];
		*known = (struct pin_found){.path = mem_strdup(found->path)};
	}
	if (known) {
		known->kind = found->kind;
		known->inode = found->inode;
		known->born = found->born;
		known->changed = found->changed;
	}
}

static bool say(struct buf *text, const struct pin_found *found)
{
	char *path = path_quote(span_of(found->path));
	bool is_said = buf_append_format(text, NULL, "\n%s: %s", path,
		found->kind == PIN_LINK ? "a symbolic link, which cannot be protected from changes"
					: pin_reader(found));
	free(path);
	return is_said;
}

/*
 * Counts the earlier files that the same program reads. A limit for each program ensures that many
 * decoys of one kind do not hide a file of another kind.
 */
static size_t count_same(const struct pin_found *const *found, size_t index)
{
	size_t count = 0;
	for (size_t i = 0; i < index; i++) {
		count += strcmp(pin_reader(found[i]), pin_reader(found[index])) == 0;
	}
	return count;
}

bool pin_news_write(
	struct pin_news *news, const char *local, const struct pin_list *list, struct buf *text)
{
	const struct pin_found **found = mem_alloc((list->count + 1) * sizeof(const void *));
	size_t count = 0, told = 0;
	bool is_said = buf_append_format(text, NULL,
		"The agent can write files in %s from which tools outside of the confinement run "
		"commands. Look at these files before you use the tools:",
		local);
	for (size_t i = 0; i < list->count; i++) {
		if (is_news(news, &list->found[i])) {
			found[count++] = &list->found[i];
			remember(news, &list->found[i]);
		}
	}
	for (size_t i = 0; i < count && is_said; i++) {
		if (count_same(found, i) < NAMED_MAX) {
			told++;
			is_said = say(text, found[i]);
		}
	}
	if (count > told) {
		is_said =
			is_said && buf_append_format(text, NULL,
					   "\nand %zu more that these programs read", count - told);
	}
	free(found);
	return count > 0 && is_said && buf_append(text, (struct span){"", 1}, NULL);
}

void pin_news_lose(struct pin_news *news, const char *root, const char *path)
{
	size_t len = strlen(root);
	struct pin_found *known = path_is_at_or_below(path, root) && path[len]
	                                  ? find_known(news, path + len + 1)
	                                  : NULL;
	if (known) {
		known->inode = 0; // no file has this number
	}
}

bool pin_news_has(const struct pin_news *news, const char *root, const char *path)
{
	char pinned[PATH_MAX];
	for (size_t i = 0; i < news->known_first; i++) {
		const struct pin_found *found = &news->known.found[i];
		bool is_pinned = found->kind != PIN_REPOSITORY || !news->writes_git;
		if (is_pinned && text_whole(pinned, sizeof(pinned), "%s/%s", root, found->path) &&
			path_is_at_or_below(path, pinned)) {
			return true;
		}
	}
	return false;
}
