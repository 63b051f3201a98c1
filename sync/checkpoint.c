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
/* Lines of their own: reasons and ids contain no newline. */
static const char session_key[] = "\n\nSession: ";
static const char turn_key[] = "\nTurn: ";

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
	const char *turn = session ? strstr(session, turn_key) : NULL;
	*out = (struct checkpoint){.number = number,
		.tree = *store->git->commit_tree_id(commit),
		.time = store->git->commit_time(commit)};
	copy_line(out->reason, sizeof(out->reason), message);
	if (session) {
		copy_line(out->session, sizeof(out->session), session + strlen(session_key));
	}
	if (turn) {
		out->turn = (unsigned)strtoul(turn + strlen(turn_key), NULL, 10);
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

/* The numbers in use, ascending; the caller frees them. */
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
		"checkpoint %u cannot be read%s; you can go back to the others, and nothing was "
		"removed: %s",
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

void checkpoint_write(struct json_writer *writer, const struct checkpoint *checkpoint)
{
	char tree[ID_TEXT_SIZE];
	json_write_member_int(writer, "checkpoint", checkpoint->number);
	json_write_member_int(writer, "time", checkpoint->time);
	json_write_member(writer, "reason", checkpoint->reason);
	json_write_member(writer, "sessionId", *checkpoint->session ? checkpoint->session : NULL);
	json_write_key(writer, "turn");
	if (checkpoint->turn > 0) {
		json_write_int(writer, checkpoint->turn);
	} else {
		json_write_null(writer);
	}
	json_write_member(writer, "tree", id_text(tree, &checkpoint->tree));
}

/* 0 if there is none. */
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
			"\"%s\" is not a checkpoint: expected its number, or -1 for the newest",
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

/* Whether the newest one has this tree, so that another one would add nothing. */
static bool is_newest(struct store *store, unsigned newest, const git_oid *tree)
{
	struct checkpoint checkpoint;
	struct error damaged;
	return newest > 0 && read_one(store, newest, &checkpoint, &damaged) &&
	       id_equal(&checkpoint.tree, tree);
}

/* What is noted with a checkpoint; the texts are borrowed. */
struct label {
	const char *reason, *session;
	unsigned turn; // 0: it belongs to no turn
};

static void write_message(char message[MESSAGE_SIZE], const struct label *label)
{
	message[0] = '\0';
	append_clean(message, CHECKPOINT_REASON_MAX, label->reason);
	if (label->session && *label->session) {
		text_append(message, MESSAGE_SIZE, "%s", session_key);
		append_clean(message, strlen(message) + CHECKPOINT_SESSION_MAX, label->session);
		if (label->turn > 0) {
			text_append(message, MESSAGE_SIZE, "%s%u", turn_key, label->turn);
		}
	}
}

static bool add(struct store *store, const git_oid *tree, const struct label *label,
	unsigned *out_number, struct error *err)
{
	git_oid commit;
	char name[CHECKPOINT_NAME_SIZE];
	char message[MESSAGE_SIZE];
	unsigned number;
	if (!newest_number(store, &number, err)) {
		return false;
	}
	if (label->turn == 0 && is_newest(store, number, tree)) {
		*out_number = number;
		return true;
	}
	number++;
	write_message(message, label);
	checkpoint_name(name, number);
	if (!store_keep(store, name, tree, NULL, message, &commit, err)) {
		return false;
	}
	*out_number = number;
	return true;
}

bool checkpoint_add(struct store *store, const git_oid *tree, const char *reason,
	const char *session, unsigned *out_number, struct error *err)
{
	return add(store, tree, &(struct label){reason, session, 0}, out_number, err);
}

/* The last turn of the session that has a checkpoint; 0: none. */
static bool last_turn(
	struct store *store, const char *session, unsigned *out_turn, struct error *err)
{
	struct checkpoint *list;
	size_t count;
	struct checkpoint_damage damage;
	if (!checkpoint_list(store, &list, &count, &damage, err)) {
		return false;
	}
	*out_turn = 0;
	for (size_t i = 0; i < count; i++) {
		if (list[i].turn > *out_turn && strcmp(list[i].session, session) == 0) {
			*out_turn = list[i].turn;
		}
	}
	free(list);
	return true;
}

bool checkpoint_add_turn(struct store *store, const git_oid *tree,
	const struct checkpoint_turn *turn, const char *session, unsigned *out_number,
	struct error *err)
{
	char reason[CHECKPOINT_REASON_MAX];
	unsigned number;
	bool has_words = turn->words && *turn->words;
	if (!last_turn(store, session, &number, err)) {
		return false;
	}
	number = number + 1 > turn->least ? number + 1 : turn->least;
	if (turn->is_before) {
		text_format(reason, sizeof(reason), "before turn %u", number);
	} else {
		text_format(reason, sizeof(reason), "turn %u%s%s", number, has_words ? ": " : "",
			has_words ? turn->words : "");
	}
	const struct label label = {reason, session, turn->is_before ? 0 : number};
	return add(store, tree, &label, out_number, err);
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

/* Whether its tree is that of the one before it: a turn that changed nothing. */
static bool repeats(const struct checkpoint *list, size_t at)
{
	return at > 0 && id_equal(&list[at].tree, &list[at - 1].tree);
}

size_t checkpoint_count_states(const struct checkpoint *list, size_t count)
{
	size_t states = 0;
	for (size_t i = 0; i < count; i++) {
		states += !repeats(list, i);
	}
	return states;
}

/*
 * Marks those beyond the maximum number, in a list without old ones. Turns that changed nothing
 * come first, because no state is lost with them. The newest always stays; if it changed nothing,
 * the one before it goes instead.
 */
static void mark_excess(
	const struct checkpoint *list, size_t count, size_t count_max, bool *is_forgotten)
{
	size_t excess = count > count_max ? count - count_max : 0;
	for (size_t i = 1; excess > 0 && i + 1 < count; i++) {
		is_forgotten[i] = repeats(list, i);
		excess -= is_forgotten[i];
	}
	if (excess > 0 && count > 1 && repeats(list, count - 1)) {
		size_t same = count - 2;
		while (same > 0 && is_forgotten[same]) {
			same--;
		}
		is_forgotten[same] = true;
		excess--;
	}
	for (size_t i = 0; excess > 0 && i + 1 < count; i++) {
		excess -= !is_forgotten[i];
		is_forgotten[i] = true;
	}
}

static bool forget_marked(struct store *store, const struct checkpoint *list, size_t count,
	const bool *is_forgotten, size_t *out_forgotten, struct error *err)
{
	bool ok = true;
	for (size_t i = 0; ok && i < count; i++) {
		char name[CHECKPOINT_NAME_SIZE];
		if (is_forgotten[i]) {
			checkpoint_name(name, list[i].number);
			ok = store_forget(store, name, err);
			*out_forgotten += ok;
		}
	}
	return ok;
}

bool checkpoint_forget(struct store *store, const struct checkpoint_limits *limits, long long now,
	struct checkpoint_forgotten *out, struct checkpoint_damage *out_damage, struct error *err)
{
	struct checkpoint *list;
	struct checkpoint_horizon horizon = {0};
	size_t count, forgotten = 0;
	if (!checkpoint_list(store, &list, &count, out_damage, err)) {
		return false;
	}
	if (limits->age_max_seconds > 0) {
		horizon = checkpoint_horizon(list, count, limits->age_max_seconds, now);
	}
	size_t old = horizon.old < count ? horizon.old : count > 0 ? count - 1 : 0;
	bool *is_forgotten = mem_alloc_zero((count + 1) * sizeof(*is_forgotten));
	memset(is_forgotten, true, old * sizeof(*is_forgotten));
	mark_excess(list + old, count - old, limits->count_max, is_forgotten + old);
	bool ok = forget_marked(store, list, count, is_forgotten, &forgotten, err);
	free(is_forgotten);
	free(list);
	*out = (struct checkpoint_forgotten){forgotten, horizon.before};
	return ok;
}
