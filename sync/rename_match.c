/* SPDX-License-Identifier: MIT */
#include "sync/rename_match.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sync/id.h"
#include "sync/similar.h"

/* ---- files ---- */

void rename_files_add(struct rename_files *files, const char *path, const struct store_entry *entry,
	const struct store_entry *other)
{
	if ((files->count & (files->count - 1)) == 0) { // 0, and each power of two
		size_t room = files->count > 0 ? 2 * files->count : 1;
		files->items = mem_realloc(files->items, room * sizeof(*files->items));
	}
	files->items[files->count++] =
		(struct rename_file){mem_strdup(path), *entry, *other, RENAME_NO_MATCH};
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct rename_file *)a)->path, ((const struct rename_file *)b)->path);
}

void rename_files_sort(struct rename_files *files)
{
	if (files->count > 0) {
		qsort(files->items, files->count, sizeof(*files->items), compare_files);
	}
}

void rename_files_finish(struct rename_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].path);
	}
	free(files->items);
	*files = (struct rename_files){0};
}

struct rename_file *rename_files_find(const struct rename_files *files, const char *path)
{
	const struct rename_file key = {.path = (char *)path};
	return files->count == 0
	               ? NULL
	               : bsearch(&key, files->items, files->count, sizeof(key), compare_files);
}

/* ---- candidates ---- */

struct candidate {
	unsigned gone, fresh; // indexes in the two lists
	unsigned percent;
	unsigned names; // equal components at the end of both paths
};

struct candidates {
	struct candidate *items; // owned
	size_t count;
};

static unsigned common_names(const char *a, const char *b)
{
	size_t i = strlen(a);
	size_t j = strlen(b);
	unsigned names = 0;
	while (i > 0 && j > 0 && a[i - 1] == b[j - 1]) {
		i--;
		j--;
		names += a[i] == '/';
	}
	bool is_start = (i == 0 && j == 0) || (i == 0 && j > 0 && b[j - 1] == '/') ||
	                (j == 0 && i > 0 && a[i - 1] == '/');
	return names + is_start;
}

static void add_candidate(struct candidates *candidates, const struct rename_files *gone, size_t i,
	const struct rename_files *fresh, size_t j, unsigned percent)
{
	if ((candidates->count & (candidates->count - 1)) == 0) {
		size_t room = candidates->count > 0 ? 2 * candidates->count : 1;
		candidates->items =
			mem_realloc(candidates->items, room * sizeof(*candidates->items));
	}
	candidates->items[candidates->count++] = (struct candidate){(unsigned)i, (unsigned)j,
		percent, common_names(gone->items[i].path, fresh->items[j].path)};
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;
	if (x->percent != y->percent) {
		return x->percent < y->percent ? 1 : -1;
	}
	if (x->names != y->names) {
		return x->names < y->names ? 1 : -1;
	}
	if (x->gone != y->gone) {
		return x->gone < y->gone ? -1 : 1;
	}
	return (x->fresh > y->fresh) - (x->fresh < y->fresh);
}

static void match(struct rename_files *gone, size_t i, struct rename_files *fresh, size_t j)
{
	gone->items[i].match = (int)j;
	fresh->items[j].match = (int)i;
}

/* Takes the best first; frees the candidates. */
static void take_best(
	struct candidates *candidates, struct rename_files *gone, struct rename_files *fresh)
{
	if (candidates->count > 0) {
		qsort(candidates->items, candidates->count, sizeof(*candidates->items),
			compare_candidates);
	}
	for (size_t i = 0; i < candidates->count; i++) {
		const struct candidate *one = &candidates->items[i];
		if (gone->items[one->gone].match == RENAME_NO_MATCH &&
			fresh->items[one->fresh].match == RENAME_NO_MATCH) {
			match(gone, one->gone, fresh, one->fresh);
		}
	}
	free(candidates->items);
	*candidates = (struct candidates){0};
}

/* ---- equal contents ---- */

/* A file sorted by its content, executable or not. */
struct keyed {
	git_oid content;
	size_t index;
};

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed *x = a;
	const struct keyed *y = b;
	int order = memcmp(x->content.id, y->content.id, sizeof(x->content.id));
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static struct keyed *key_all(const struct rename_files *files)
{
	struct keyed *all = mem_alloc((files->count + 1) * sizeof(*all));
	for (size_t i = 0; i < files->count; i++) {
		const struct store_entry *entry = &files->items[i].entry;
		all[i] = (struct keyed){entry->id, i};
		if (entry->mode == ENTRY_BIG) {
			store_big_content(entry, &all[i].content);
		}
	}
	if (files->count > 0) {
		qsort(all, files->count, sizeof(*all), compare_keyed);
	}
	return all;
}

static size_t same_key(const struct keyed *all, size_t first, size_t count)
{
	size_t end = first + 1;
	while (end < count && id_equal(&all[end].content, &all[first].content)) {
		end++;
	}
	return end;
}

static bool is_empty_file(struct store *store, const git_oid *content)
{
	git_oid empty;
	return store->git->odb_hash(&empty, "", 0, GIT_OBJECT_BLOB) == 0 &&
	       id_equal(&empty, content);
}

/* Matches only if both have the same number; then in order, because nothing tells them apart. */
static void match_many(struct rename_files *gone, const struct keyed *from, size_t from_count,
	struct rename_files *fresh, const struct keyed *to, size_t to_count)
{
	for (size_t i = 0; from_count == to_count && i < from_count; i++) {
		match(gone, from[i].index, fresh, to[i].index);
	}
}

static void match_equal(struct store *store, struct rename_files *gone, struct rename_files *fresh)
{
	struct candidates candidates = {0};
	struct keyed *from = key_all(gone);
	struct keyed *to = key_all(fresh);
	size_t i = 0;
	size_t j = 0;
	while (i < gone->count && j < fresh->count) {
		int order = memcmp(from[i].content.id, to[j].content.id, sizeof(git_oid));
		size_t i_end = same_key(from, i, gone->count);
		size_t j_end = same_key(to, j, fresh->count);
		bool is_many = i_end - i > RENAME_ALIKE_MAX || j_end - j > RENAME_ALIKE_MAX;
		if (order == 0 && is_many && !is_empty_file(store, &from[i].content)) {
			match_many(gone, &from[i], i_end - i, fresh, &to[j], j_end - j);
		} else if (order == 0 && !is_empty_file(store, &from[i].content)) {
			for (size_t at = 0; at < (i_end - i) * (j_end - j); at++) {
				add_candidate(&candidates, gone, from[i + at / (j_end - j)].index,
					fresh, to[j + at % (j_end - j)].index, 100);
			}
		}
		i = order <= 0 ? i_end : i;
		j = order >= 0 ? j_end : j;
	}
	free(from);
	free(to);
	take_best(&candidates, gone, fresh);
}

/* ---- similar contents ---- */

/* Limits reading and comparing. */
struct effort {
	struct store *store;
	const atomic_bool *is_cancelled; // may be NULL
	uint64_t bytes;                  // read so far, or going to be read
};

static bool is_cancelled(const struct effort *effort)
{
	return effort->is_cancelled && *effort->is_cancelled;
}

/* The files of a list that have no equal. */
struct rest {
	const struct rename_files *files;
	size_t *indexes;              // owned
	struct similar_print *prints; // owned; for each index
	size_t count;
	uint64_t pieces;
	bool is_over; // there are too many to compare
};

static void rest_finish(struct rest *rest)
{
	for (size_t i = 0; i < rest->count; i++) {
		similar_print_finish(&rest->prints[i]);
	}
	free(rest->indexes);
	free(rest->prints);
}

static void rest_read(struct rest *rest, struct effort *effort, const struct rename_files *files)
{
	*rest = (struct rest){.files = files,
		.indexes = mem_alloc(RENAME_SIMILAR_MAX * sizeof(*rest->indexes)),
		.prints = mem_alloc(RENAME_SIMILAR_MAX * sizeof(*rest->prints))};
	for (size_t i = 0; i < files->count && !rest->is_over; i++) {
		if (files->items[i].match != RENAME_NO_MATCH) {
			continue;
		}
		rest->is_over = rest->count == RENAME_SIMILAR_MAX ||
		                rest->pieces > RENAME_SIMILAR_PIECES_MAX ||
		                effort->bytes > RENAME_SIMILAR_BYTES_MAX || is_cancelled(effort);
		if (!rest->is_over) {
			struct similar_print *print = &rest->prints[rest->count];
			rest->indexes[rest->count++] = i;
			similar_print(print, effort->store, &files->items[i].entry);
			rest->pieces += print->count;
			effort->bytes += print->size <= SIMILAR_BYTES_MAX ? print->size : 0;
		}
	}
}

/* The cost of a comparison; 0: it is impossible. */
static uint64_t work_of(const struct similar_print *a, const struct similar_print *b)
{
	bool may_be = a->count > 0 && b->count > 0 && similar_may_be(a->size, b->size);
	return may_be ? a->count + b->count : 0;
}

static bool is_too_much_work(const struct rest *from, const struct rest *to)
{
	uint64_t work = 0;
	for (size_t i = 0; i < from->count; i++) {
		for (size_t j = 0; j < to->count; j++) {
			work += work_of(&from->prints[i], &to->prints[j]);
		}
	}
	return work > RENAME_SIMILAR_WORK_MAX;
}

static void compare_rest(const struct effort *effort, const struct rest *from,
	const struct rest *to, struct candidates *candidates)
{
	for (size_t i = 0; i < from->count && !is_cancelled(effort); i++) {
		for (size_t j = 0; j < to->count; j++) {
			const struct similar_print *a = &from->prints[i];
			const struct similar_print *b = &to->prints[j];
			unsigned percent = work_of(a, b) > 0 ? similar_percent(a, b) : 0;
			if (percent >= SIMILAR_LEAST) {
				add_candidate(candidates, from->files, from->indexes[i], to->files,
					to->indexes[j], percent);
			}
		}
	}
}

static void match_similar(
	struct effort *effort, struct rename_files *gone, struct rename_files *fresh)
{
	struct rest from;
	struct rest to = {0};
	struct candidates candidates = {0};
	rest_read(&from, effort, gone);
	if (!from.is_over && from.count > 0) {
		rest_read(&to, effort, fresh);
	}
	if (!from.is_over && !to.is_over && !is_too_much_work(&from, &to)) {
		compare_rest(effort, &from, &to, &candidates);
	}
	rest_finish(&from);
	rest_finish(&to);
	take_best(&candidates, gone, fresh);
}

static bool is_similar(
	struct effort *effort, const struct rename_file *one, const struct rename_file *other)
{
	struct store *store = effort->store;
	struct similar_print a;
	struct similar_print b;
	struct error ignored;
	if (!store_size(store, &one->entry, &a.size, &ignored) ||
		!store_size(store, &other->entry, &b.size, &ignored) ||
		!similar_may_be(a.size, b.size) || is_cancelled(effort)) {
		return false;
	}
	effort->bytes += a.size + b.size;
	if (effort->bytes > RENAME_SIMILAR_BYTES_MAX) {
		return false;
	}
	similar_print(&a, store, &one->entry);
	similar_print(&b, store, &other->entry);
	unsigned percent = similar_percent(&a, &b);
	similar_print_finish(&a);
	similar_print_finish(&b);
	return percent >= SIMILAR_LEAST;
}

/*
 * Tries the same name in the new place of its folder, so that not all files of a folder are
 * compared.
 */
static void match_by_folder(
	struct effort *effort, struct rename_files *gone, struct rename_files *fresh)
{
	struct rename_folders folders;
	rename_folders_find(&folders, gone, fresh);
	for (size_t i = 0; folders.count > 0 && i < gone->count; i++) {
		struct rename_file *from = &gone->items[i];
		const struct rename_folder *folder =
			from->match == RENAME_NO_MATCH ? rename_folders_above(&folders, from->path)
						       : NULL;
		char *path = folder ? rename_folder_path(folder, from->path) : NULL;
		struct rename_file *to = path ? rename_files_find(fresh, path) : NULL;
		free(path);
		if (to && to->match == RENAME_NO_MATCH && is_similar(effort, from, to)) {
			match(gone, i, fresh, (size_t)(to - fresh->items));
		}
	}
	rename_folders_finish(&folders);
}

void rename_match(struct store *store, struct rename_files *gone, struct rename_files *fresh,
	const atomic_bool *is_cancelled)
{
	struct effort effort = {.store = store, .is_cancelled = is_cancelled};
	if (gone->count == 0 || fresh->count == 0 || gone->count > INT_MAX ||
		fresh->count > INT_MAX) {
		return;
	}
	match_equal(store, gone, fresh);
	match_by_folder(&effort, gone, fresh);
	match_similar(&effort, gone, fresh);
}

/* ---- folders ---- */

static size_t folder_length(const char *path, size_t len)
{
	while (len > 0 && path[len - 1] != '/') {
		len--;
	}
	return len > 0 ? len - 1 : 0;
}

/* Consecutive files with the same vote are counted together. */
static void add_vote(struct rename_folders *folders, struct span from, struct span to, size_t count)
{
	struct rename_folder *last = folders->count ? &folders->items[folders->count - 1] : NULL;
	if (last && span_equals(span_of(last->from), from) && span_equals(span_of(last->to), to)) {
		last->count += count;
		return;
	}
	folders->bytes += sizeof(*last) + from.len + to.len;
	if (folders->bytes > RENAME_FOLDERS_BYTES_MAX) {
		return;
	}
	if ((folders->count & (folders->count - 1)) == 0) {
		size_t room = folders->count > 0 ? 2 * folders->count : 1;
		folders->items = mem_realloc(folders->items, room * sizeof(*folders->items));
	}
	folders->items[folders->count++] =
		(struct rename_folder){mem_strndup(from), mem_strndup(to), count};
}

static bool is_same_name(const char *from, size_t from_at, size_t from_end, const char *to,
	size_t to_at, size_t to_end)
{
	from_at += from_at > 0; // skips the slash
	to_at += to_at > 0;
	return from_end - from_at == to_end - to_at &&
	       memcmp(from + from_at, to + to_at, to_end - to_at) == 0;
}

/* A file votes for its folder. */
static void vote(struct rename_folders *folders, const char *from, const char *to)
{
	struct span old = {from, folder_length(from, strlen(from))};
	struct span new = {to, folder_length(to, strlen(to))};
	if (old.len > 0 && !span_equals(old, new)) {
		add_vote(folders, old, new, 1);
	}
}

/* The votes of a folder also count for the folders above it, as long as the names are equal. */
static void vote_above(struct rename_folders *folders, size_t index)
{
	struct rename_folder below = folders->items[index];
	size_t i = strlen(below.from);
	size_t j = strlen(below.to);
	while (folders->bytes <= RENAME_FOLDERS_BYTES_MAX && j > 0) {
		size_t i_above = folder_length(below.from, i);
		size_t j_above = folder_length(below.to, j);
		struct span old = {below.from, i_above};
		struct span new = {below.to, j_above};
		if (!is_same_name(below.from, i_above, i, below.to, j_above, j) || old.len == 0 ||
			span_equals(old, new)) {
			return;
		}
		add_vote(folders, old, new, below.count);
		i = i_above;
		j = j_above;
	}
}

static int compare_votes(const void *a, const void *b)
{
	const struct rename_folder *x = a;
	const struct rename_folder *y = b;
	int order = strcmp(x->from, y->from);
	return order ? order : strcmp(x->to, y->to);
}

static int compare_from(const void *a, const void *b)
{
	return strcmp(
		((const struct rename_folder *)a)->from, ((const struct rename_folder *)b)->from);
}

/*
 * Counts the sorted votes of one folder; the first of them becomes the winner. False: there is
 * none.
 */
static bool count_votes(struct rename_folder *votes, size_t count)
{
	size_t best = 0;
	size_t most = 0;
	bool is_tie = true;
	for (size_t i = 0, end; i < count; i = end) {
		size_t sum = 0;
		for (end = i; end < count && strcmp(votes[end].to, votes[i].to) == 0; end++) {
			sum += votes[end].count;
		}
		is_tie = sum == most || (sum < most && is_tie);
		best = sum > most ? i : best;
		most = sum > most ? sum : most;
	}
	struct rename_folder winner = votes[best];
	votes[best] = votes[0];
	votes[0] = winner;
	votes[0].count = most;
	return !is_tie;
}

static void count_all(struct rename_folders *folders)
{
	size_t kept = 0;
	qsort(folders->items, folders->count, sizeof(*folders->items), compare_votes);
	for (size_t i = 0, end; i < folders->count; i = end) {
		struct rename_folder *first = &folders->items[i];
		end = i + 1;
		while (end < folders->count && compare_from(first, &folders->items[end]) == 0) {
			end++;
		}
		bool has_winner = count_votes(first, end - i);
		for (size_t at = i + has_winner; at < end; at++) {
			free(folders->items[at].from);
			free(folders->items[at].to);
		}
		if (has_winner) {
			folders->items[kept++] = *first;
		}
	}
	folders->count = kept;
}

void rename_folders_find(struct rename_folders *folders, const struct rename_files *gone,
	const struct rename_files *fresh)
{
	*folders = (struct rename_folders){0};
	for (size_t i = 0; i < gone->count; i++) {
		if (gone->items[i].match != RENAME_NO_MATCH) {
			vote(folders, gone->items[i].path, fresh->items[gone->items[i].match].path);
		}
	}
	for (size_t i = 0, end = folders->count; i < end; i++) {
		vote_above(folders, i);
	}
	if (folders->bytes > RENAME_FOLDERS_BYTES_MAX) {
		rename_folders_finish(folders);
	} else if (folders->count > 0) {
		count_all(folders);
	}
}

void rename_folders_finish(struct rename_folders *folders)
{
	for (size_t i = 0; i < folders->count; i++) {
		free(folders->items[i].from);
		free(folders->items[i].to);
	}
	free(folders->items);
	*folders = (struct rename_folders){0};
}

const struct rename_folder *rename_folders_above(
	const struct rename_folders *folders, const char *path)
{
	const struct rename_folder *found = NULL;
	size_t len = folder_length(path, strlen(path));
	while (len > 0 && !found && folders->count > 0) {
		struct rename_folder key = {.from = mem_strndup((struct span){path, len})};
		found = bsearch(&key, folders->items, folders->count, sizeof(key), compare_from);
		free(key.from);
		len = folder_length(path, len);
	}
	return found;
}

char *rename_folder_path(const struct rename_folder *folder, const char *path)
{
	const char *rest = path + strlen(folder->from) + 1;
	size_t size = strlen(folder->to) + 1 + strlen(rest) + 1;
	char *made = mem_alloc(size);
	size_t len = strlen(folder->to);
	memcpy(made, folder->to, len);
	if (len > 0) {
		made[len++] = '/';
	}
	memcpy(made + len, rest, strlen(rest) + 1);
	return made;
}
