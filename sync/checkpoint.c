/* SPDX-License-Identifier: MIT */
#include "sync/checkpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "sync/id.h"
#include "sync/store_impl.h"

enum { NUMBER_WIDTH = 8, MESSAGE_SIZE = CHECKPOINT_REASON_MAX + CHECKPOINT_SESSION_MAX + 64 };

static const char folder_path[] = "refs/acp-broker/checkpoints";
static const char session_key[] = "\n\nSession: "; // a line of its own: reasons have none

void checkpoint_name(char name[CHECKPOINT_NAME_SIZE], unsigned number)
{
	snprintf(name, CHECKPOINT_NAME_SIZE, "checkpoints/%0*u", NUMBER_WIDTH, number);
}

/* ---- reading ---- */

/* One line of a commit's message, at most size - 1 bytes. */
static void copy_line(char *out, size_t size, const char *line)
{
	text_format(out, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static bool read_one(
	struct store *store, unsigned number, struct checkpoint *out, struct error *err)
{
	char path[CHECKPOINT_NAME_SIZE * 2];
	git_oid id;
	git_commit *commit = NULL;
	text_whole(path, sizeof(path), "%s/%0*u", folder_path, NUMBER_WIDTH, number);
	if (!ref_read(store, path, &id, err)) {
		return false;
	}
	if (store->git->commit_lookup(&commit, store->repository, &id) < 0) {
		return error_set_git(store->git, err, "checkpoint %u", number);
	}
	const char *message = store->git->commit_message(commit);
	const char *session = strstr(message, session_key);
	*out = (struct checkpoint){.number = number,
		.tree = *store->git->commit_tree_id(commit),
		.time = store->git->commit_time(commit)};
	copy_line(out->reason, sizeof(out->reason), message);
	if (session) {
		copy_line(out->session, sizeof(out->session), session + strlen(session_key));
	}
	store->git->commit_free(commit);
	return true;
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a;
	unsigned y = *(const unsigned *)b;
	return (x > y) - (x < y);
}

static bool is_number(const char *name)
{
	return strlen(name) == NUMBER_WIDTH && strspn(name, "0123456789") == NUMBER_WIDTH;
}

/* The numbers in use, ascending; to be freed. */
static bool list_numbers(
	struct store *store, unsigned **out_numbers, size_t *out_count, struct error *err)
{
	size_t count = 0;
	unsigned *numbers = NULL;
	int fd = openat(store->folder_fd, folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*out_numbers = NULL;
		*out_count = 0;
		return true;
	}
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		int errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "store %s: %s", store->path, folder_path);
	}
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		if (is_number(entry->d_name)) {
			numbers = mem_realloc(numbers, (count + 1) * sizeof(*numbers));
			numbers[count++] = (unsigned)strtoul(entry->d_name, NULL, 10);
		}
	}
	closedir(folder);
	if (count > 0) {
		qsort(numbers, count, sizeof(*numbers), compare_numbers);
	}
	*out_numbers = numbers;
	*out_count = count;
	return true;
}

static void note_damage(struct checkpoint_damage *damage, unsigned number, const struct error *err)
{
	if (damage->count++ == 0) {
		damage->first = number;
		damage->err = *err;
	}
}

const char *checkpoint_damage_text(
	const struct checkpoint_damage *damage, char text[CHECKPOINT_DAMAGE_MAX])
{
	char more[48] = "";
	if (damage->count == 0) {
		return NULL;
	}
	if (damage->count > 1) {
		snprintf(more, sizeof(more), ", and %zu more are damaged", damage->count - 1);
	}
	text_format(text, CHECKPOINT_DAMAGE_MAX,
		"checkpoint %u cannot be read%s; the others can be gone back to, and nothing of "
		"it was removed: %s",
		damage->first, more, damage->err.text);
	return text;
}

bool checkpoint_list(struct store *store, struct checkpoint **out_list, size_t *out_count,
	struct checkpoint_damage *out_damage, struct error *err)
{
	unsigned *numbers;
	size_t count;
	*out_damage = (struct checkpoint_damage){0};
	if (!list_numbers(store, &numbers, &count, err)) {
		return false;
	}
	struct checkpoint *list = mem_alloc_zero((count + 1) * sizeof(*list));
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		struct error why;
		if (read_one(store, numbers[i], &list[found], &why)) {
			found++;
		} else if (why.code != ERROR_NOT_FOUND) { // another broker has forgotten it
			note_damage(out_damage, numbers[i], &why);
		}
	}
	free(numbers);
	*out_list = list;
	*out_count = found;
	return true;
}

/* 0 where there is none. */
static bool newest_number(struct store *store, unsigned *out_number, struct error *err)
{
	unsigned *numbers;
	size_t count;
	if (!list_numbers(store, &numbers, &count, err)) {
		return false;
	}
	*out_number = count > 0 ? numbers[count - 1] : 0;
	free(numbers);
	return true;
}

static bool find_from_newest(
	struct store *store, long long back, struct checkpoint *out, struct error *err)
{
	unsigned *numbers;
	size_t count;
	if (!list_numbers(store, &numbers, &count, err)) {
		return false;
	}
	bool ok = back <= (long long)count
	                  ? read_one(store, numbers[count - (size_t)back], out, err)
	                  : error_set_reason(err, ERROR_NOT_FOUND, "INVALID_PARAMS",
				    "there are only %zu checkpoints", count);
	free(numbers);
	return ok;
}

bool checkpoint_find(
	struct store *store, const char *which, struct checkpoint *out, struct error *err)
{
	char *end;
	errno = 0;
	long long number = strtoll(which, &end, 10);
	if (end == which || *end || errno != 0 || number == 0 || number > 99999999 ||
		number < -99999999) {
		return error_set_reason(err, ERROR_CONFIG, "INVALID_PARAMS",
			"\"%s\" is no checkpoint: expected its number, or -1 for the newest",
			which);
	}
	if (number < 0) {
		return find_from_newest(store, -number, out, err);
	}
	return read_one(store, (unsigned)number, out, err) ||
	       (err->code == ERROR_NOT_FOUND &&
		       error_set_reason(err, ERROR_NOT_FOUND, "INVALID_PARAMS",
			       "there is no checkpoint %lld", number));
}

/* ---- writing ---- */

static void append_clean(char *out, size_t size, const char *text)
{
	size_t len = strlen(out);
	for (; *text && len + 1 < size; text++) {
		out[len++] = iscntrl((unsigned char)*text) ? ' ' : *text;
	}
	out[len] = '\0';
}

bool checkpoint_add(struct store *store, const git_oid *tree, const char *reason,
	const char *session, unsigned *out_number, struct error *err)
{
	struct checkpoint newest;
	struct error damaged;
	git_oid commit;
	char name[CHECKPOINT_NAME_SIZE];
	char message[MESSAGE_SIZE] = "";
	unsigned number;
	if (!newest_number(store, &number, err)) {
		return false;
	}
	if (number > 0 && read_one(store, number, &newest, &damaged) &&
		id_equal(&newest.tree, tree)) {
		*out_number = number;
		return true;
	}
	number++;
	append_clean(message, CHECKPOINT_REASON_MAX, reason);
	if (session && *session) {
		text_append(message, sizeof(message), "%s", session_key);
		append_clean(message, strlen(message) + CHECKPOINT_SESSION_MAX, session);
	}
	checkpoint_name(name, number);
	if (!store_keep(store, name, tree, NULL, message, &commit, err)) {
		return false;
	}
	*out_number = number;
	return true;
}

struct checkpoint_horizon checkpoint_horizon(
	const struct checkpoint *list, size_t count, long long age_max_seconds, long long now)
{
	long long step = age_max_seconds / 10 + 1;
	long long age = 0, next = now, first = now;
	for (size_t i = count; i > 0; i--) {
		long long gap = next - list[i - 1].time;
		gap = gap < 0 ? 0 : gap > step ? step : gap;
		if (age + gap > age_max_seconds) {
			return (struct checkpoint_horizon){i, first};
		}
		age += gap;
		next = list[i - 1].time;
		first = next < first ? next : first;
	}
	return (struct checkpoint_horizon){0, first - (age_max_seconds - age)};
}

bool checkpoint_forget(struct store *store, const struct checkpoint_limits *limits, long long now,
	struct checkpoint_forgotten *out, struct checkpoint_damage *out_damage, struct error *err)
{
	struct checkpoint *list;
	struct checkpoint_horizon horizon = {0};
	size_t count;
	if (!checkpoint_list(store, &list, &count, out_damage, err)) {
		return false;
	}
	if (limits->age_max_seconds > 0) {
		horizon = checkpoint_horizon(list, count, limits->age_max_seconds, now);
	}
	bool ok = true;
	size_t forgotten = 0;
	for (size_t i = 0; ok && i + 1 < count; i++) {
		char name[CHECKPOINT_NAME_SIZE];
		if (count - i > limits->count_max || i < horizon.old) {
			checkpoint_name(name, list[i].number);
			ok = store_forget(store, name, err);
			forgotten += ok;
		}
	}
	free(list);
	*out = (struct checkpoint_forgotten){forgotten, horizon.before};
	return ok;
}
