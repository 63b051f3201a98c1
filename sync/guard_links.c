/* SPDX-License-Identifier: MIT */
#include "sync/guard_links.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sync/graft.h"
#include "sync/tree_view.h"

enum { FOLLOWED_MAX = 40 }; // links on the way to one target; Linux's limit

/* A link of the tree. */
struct tree_link {
	char *path; // owned
	git_oid id;
	bool is_taken; // its place was added
};

/* A place in the tree that also has a guarded name. */
struct place {
	char *path;  // owned; folded; "" the root
	char *name;  // owned; the guarded name
	bool is_way; // a link put here would redirect the name; paths below do not count
};

struct guard_links {
	const struct guard_paths *guard;
	struct store *store;
	const git_oid *tree;
	const char *root;
	struct tree_link *all;
	size_t count, capacity;
	struct place *places;
	size_t place_count, place_capacity;
	size_t taken;
	struct trail trail;
};

/* ---- all links of the tree ---- */

static void add_link(struct guard_links *links, const git_oid *id)
{
	if (links->count == links->capacity) {
		links->capacity = links->capacity ? 2 * links->capacity : 16;
		links->all = mem_realloc(links->all, links->capacity * sizeof(*links->all));
	}
	links->all[links->count++] =
		(struct tree_link){.path = mem_strdup(links->trail.path), .id = *id};
}

static bool look_for_links(struct guard_links *links, const git_oid *tree, struct error *err)
{
	struct tree_view view;
	bool ok = tree_view_load(&view, links->store, tree, &links->trail, err);
	for (size_t i = 0; ok && i < view.count; i++) {
		const struct tree_view_entry *entry = &view.entries[i];
		size_t mark;
		if (entry->mode != TREE_VIEW_FOLDER && entry->mode != ENTRY_LINK) {
			continue;
		}
		ok = trail_push(&links->trail, entry->name, &mark, err);
		if (!ok) {
			break;
		}
		if (entry->mode == ENTRY_LINK) {
			add_link(links, &entry->id);
		} else {
			ok = look_for_links(links, &entry->id, err);
		}
		trail_pop(&links->trail, mark);
	}
	tree_view_finish(&view);
	return ok;
}

/* ---- names ---- */

/* The rest of a folded path below a place, "" for the place itself; NULL if it is elsewhere. */
static const char *below(const char *folded, const char *place)
{
	size_t len = strlen(place);
	if (strncmp(folded, place, len) != 0) {
		return NULL;
	}
	if (len == 0 || folded[len] == '\0') {
		return folded + len;
	}
	return folded[len] == '/' ? folded + len + 1 : NULL;
}

static char *name_through(const struct place *place, const char *rest)
{
	size_t size = strlen(place->name) + strlen(rest) + 2;
	char *name = mem_alloc(size);
	text_whole(name, size, "%s%s%s", place->name, *rest ? "/" : "", rest);
	return name;
}

/* The next place at or above the path; NULL after the last. */
static const struct place *next_place(
	const struct guard_links *links, const char *folded, size_t *at, const char **out_rest)
{
	while (*at < links->place_count) {
		const struct place *place = &links->places[(*at)++];
		*out_rest = below(folded, place->path);
		if (*out_rest) {
			return place;
		}
	}
	return NULL;
}

/* `takes_ways`: a new link on the way of a guarded name also has the name that it redirects. */
static char *next_name(const struct guard_links *links, const char *path, bool is_link,
	bool takes_ways, size_t *at)
{
	const struct place *place;
	const char *rest;
	char *name = NULL;
	char *folded = mem_strdup(path);
	guard_paths_fold(folded);
	while (!name && (place = next_place(links, folded, at, &rest))) {
		if (place->is_way && (!takes_ways || !is_link || *rest)) {
			continue;
		}
		name = name_through(place, rest);
		if (!place->is_way && !guard_paths_have(links->guard, links->root, name, is_link)) {
			free(name);
			name = NULL;
		}
	}
	free(folded);
	return name;
}

/* ---- where a link leads ---- */

/* An absolute path that is being resolved, without links. */
struct following {
	char at[PATH_MAX];   // resolved, without a slash at the end
	char rest[PATH_MAX]; // still to resolve
	int followed;
};

static void add_place(struct guard_links *links, const char *path, const char *name, bool is_way)
{
	if (links->place_count == links->place_capacity) {
		links->place_capacity = links->place_capacity ? 2 * links->place_capacity : 16;
		links->places =
			mem_realloc(links->places, links->place_capacity * sizeof(*links->places));
	}
	char *folded = mem_strdup(path);
	guard_paths_fold(folded);
	links->places[links->place_count++] = (struct place){folded, mem_strdup(name), is_way};
}

/* Its path below the root; NULL if it is outside. */
static const char *place_of(const struct guard_links *links, const struct following *following)
{
	size_t len = strlen(links->root);
	while (len > 0 && links->root[len - 1] == '/') {
		len--;
	}
	if (strncmp(following->at, links->root, len) != 0) {
		return NULL;
	}
	const char *below = following->at + len;
	return *below == '/' ? below + 1 : *below ? NULL : below;
}

static bool join(char out[PATH_MAX], const char *first, const char *second)
{
	int len = snprintf(out, PATH_MAX, "%s/%s", first, second);
	return len >= 0 && len < PATH_MAX;
}

/* Continues at the target of the link at the end of `at`. */
static bool follow(struct guard_links *links, struct following *following, const git_oid *id)
{
	struct error err;
	struct buf target;
	char rest[PATH_MAX];
	buf_init(&target, PATH_MAX);
	bool ok = ++following->followed <= FOLLOWED_MAX &&
	          store_read(links->store, id, PATH_MAX - 1, &target, &err) &&
	          buf_append(&target, (struct span){"", 1}, &err) &&
	          join(rest, target.data, following->rest);
	if (ok) {
		char *last = strrchr(following->at, '/');
		*(*rest == '/' || !last ? following->at : last) = '\0';
		memcpy(following->rest, rest, sizeof(rest));
	}
	buf_finish(&target);
	return ok;
}

/* Resolves one more name. False if that is impossible. */
static bool step(struct guard_links *links, struct following *following, const char *name)
{
	size_t skip = strspn(following->rest, "/");
	size_t len = strcspn(following->rest + skip, "/");
	struct span part = {following->rest + skip, len};
	struct graft found;
	struct error missing;
	size_t at = strlen(following->at);
	if (span_is(part, "..")) {
		char *last = strrchr(following->at, '/');
		*(last ? last : following->at) = '\0';
	} else if (len > 0 && !span_is(part, ".")) {
		if (!text_whole(following->at + at, PATH_MAX - at, "/%.*s", (int)len, part.data)) {
			return false;
		}
	}
	memmove(following->rest, part.data + len, strlen(part.data + len) + 1);
	const char *place = place_of(links, following);
	if (strlen(following->at) <= at || !place || !*place) {
		return true;
	}
	add_place(links, place, name, true);
	return !graft_find(links->store, links->tree, place, &found, &missing) ||
	       found.mode != ENTRY_LINK || follow(links, following, &found.id);
}

/* Follows a link that has this guarded name, and gives its target the name too. */
static bool take(
	struct guard_links *links, struct tree_link *link, const char *name, struct error *err)
{
	struct following *following = mem_alloc_zero(sizeof(*following));
	link->is_taken = true;
	if (links->taken++ == GUARD_LINKS_MAX) {
		free(following);
		return error_set(err, ERROR_LIMIT,
			"merging: more than %d links here lead to guarded files (guard-paths); "
			"nothing was changed here",
			GUARD_LINKS_MAX);
	}
	bool goes_on =
		join(following->at, links->root, link->path) && follow(links, following, &link->id);
	while (goes_on && *following->rest) {
		goes_on = step(links, following, name);
	}
	const char *place = goes_on ? place_of(links, following) : NULL;
	if (place) {
		add_place(links, place, name, false);
	}
	free(following);
	return true;
}

/* Its own name, or the first that links give it; NULL: none is guarded. The caller frees it. */
static char *guarded_name(const struct guard_links *links, const char *path)
{
	size_t at = 0;
	return guard_paths_have(links->guard, links->root, path, true)
	               ? mem_strdup(path)
	               : next_name(links, path, true, false, &at);
}

/* Each new place may give other links a guarded name. */
static bool take_all(struct guard_links *links, struct error *err)
{
	bool is_more = true;
	bool ok = true;
	while (ok && is_more) {
		is_more = false;
		for (size_t i = 0; ok && i < links->count; i++) {
			struct tree_link *link = &links->all[i];
			char *name = link->is_taken ? NULL : guarded_name(links, link->path);
			is_more = is_more || name;
			ok = !name || take(links, link, name, err);
			free(name);
		}
	}
	return ok;
}

struct guard_links *guard_links_find(const struct guard_paths *guard, struct store *store,
	const git_oid *tree, const char *root, struct error *err)
{
	struct guard_links *links = mem_alloc_zero(sizeof(*links));
	*links = (struct guard_links){.guard = guard, .store = store, .tree = tree, .root = root};
	bool ok = look_for_links(links, tree, err) && take_all(links, err);
	for (size_t i = 0; i < links->count; i++) {
		free(links->all[i].path);
	}
	free(links->all);
	links->all = NULL;
	links->count = 0;
	if (!ok) {
		guard_links_destroy(links);
		return NULL;
	}
	return links;
}

void guard_links_destroy(struct guard_links *links)
{
	if (links) {
		for (size_t i = 0; i < links->place_count; i++) {
			free(links->places[i].path);
			free(links->places[i].name);
		}
		free(links->places);
		free(links);
	}
}

char *guard_links_next(const struct guard_links *links, const char *path, bool is_link, size_t *at)
{
	return next_name(links, path, is_link, true, at);
}
