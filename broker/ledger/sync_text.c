/* SPDX-License-Identifier: MIT */
#include "broker/ledger/sync_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/path_quote.h"
#include "base/utf8.h"

/* Appends as much as fits. */
static void say(char text[SYNC_TEXT_MAX], size_t *len, const char *format, ...) ATTR_PRINTF(3, 4);
static void say(char text[SYNC_TEXT_MAX], size_t *len, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int written = vsnprintf(text + *len, SYNC_TEXT_MAX - *len, format, args);
	va_end(args);
	if (written > 0) {
		*len += (size_t)written;
		*len = *len < SYNC_TEXT_MAX ? *len : SYNC_TEXT_MAX - 1;
	}
}

static size_t paths_in(const struct merge_counts *counts)
{
	return counts->added + counts->changed + counts->deleted;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* Added, changed and deleted together, and how many of them are gone. */
static void say_paths(
	char text[SYNC_TEXT_MAX], size_t *len, const struct merge_counts *counts, const char *what)
{
	say(text, len, "%zu %s", paths_in(counts), what);
	if (counts->deleted > 0) {
		say(text, len, " (%zu deleted)", counts->deleted);
	}
}

static void say_statistics(char text[SYNC_TEXT_MAX], size_t *len, const struct sync_result *result)
{
	bool is_one = paths_in(&result->to_local) == 1;
	say_paths(text, len, &result->to_local,
		is_one ? "file from the agent" : "files from the agent");
	say(text, len, ", ");
	say_paths(text, len, &result->to_runtime, "to it");
	say(text, len, ", %" PRIu64 " byte%s received, %" PRIu64 " sent", result->received_bytes,
		plural(result->received_bytes), result->sent_bytes);
	if (result->conflict_count > 0) {
		say(text, len, ", %zu conflict%s", result->conflict_count,
			plural(result->conflict_count));
	}
	say(text, len, ", %lld ms", result->duration_ms);
}

/* Those that are stuck here, or those that both sides have changed; says `what` before them. */
static void say_conflicts(char text[SYNC_TEXT_MAX], size_t *len, const struct sync_result *result,
	bool is_stuck, const char *what)
{
	size_t count = 0;
	LIST_FOR_EACH(conflict, result->conflicts, struct conflict, link) {
		if ((conflict->why != NULL) != is_stuck) {
			continue;
		}
		if (count == 0) {
			say(text, len, "; %s:", what);
		}
		if (count++ < SYNC_TEXT_NAMED) {
			char *path = path_quote(span_of(conflict->path));
			say(text, len, "%s %s", count > 1 ? "," : "", path);
			free(path);
		}
		if (conflict->why && count <= SYNC_TEXT_NAMED) {
			say(text, len, " (%s)", conflict->why);
		}
		if (conflict->file && count <= SYNC_TEXT_NAMED) {
			char *file = path_quote(span_of(conflict->file));
			say(text, len, " (the agent's: %s)", file);
			free(file);
		}
	}
	if (count > SYNC_TEXT_NAMED) {
		say(text, len, " and %zu more", count - SYNC_TEXT_NAMED);
	}
	if (count > 0) {
		say(text, len, " (acp-broker conflicts list)");
	}
}

/* At the end of a sandbox they are told, and kept, whether they were told before or not. */
static bool is_last(const struct sync_result *result)
{
	return result->reason == SYNC_REASON_STOP || result->reason == SYNC_REASON_CRASH;
}

static bool tells_held(const struct sync_result *result)
{
	return result->held_count > 0 && (result->is_held_news || is_last(result));
}

static void say_held(char text[SYNC_TEXT_MAX], size_t *len, const struct sync_result *result)
{
	size_t count = 0;
	say(text, len,
		"; held in the sandbox, for tools of yours may run commands from it "
		"(guard-paths):");
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (count++ < SYNC_TEXT_NAMED) {
			char *path = path_quote(span_of(held->path));
			say(text, len, "%s %s", count > 1 ? "," : "", path);
			free(path);
		}
	}
	if (count > SYNC_TEXT_NAMED) {
		say(text, len, " and %zu more", count - SYNC_TEXT_NAMED);
	}
	if (is_last(result)) {
		say(text, len, "; the agent's version is kept (acp-broker conflicts list)");
	}
}

static void say_deletions(char text[SYNC_TEXT_MAX], size_t *len, const struct sync_result *result)
{
	if (result->kept > 0) {
		say(text, len,
			"; the agent has deleted %zu of your files: they were kept here and given "
			"back to it",
			result->kept);
	}
	if (result->followed > 0) {
		say(text, len,
			"; %zu of your files were deleted as the agent has done; the checkpoint "
			"before this one has them (acp-broker checkpoints list)",
			result->followed);
	}
}

bool sync_text_write(char text[SYNC_TEXT_MAX], const char *local_root,
	const struct sync_result *result, const struct error *err)
{
	size_t len = 0;
	text[0] = '\0';
	if (err) {
		say(text, &len, "%s", err->text);
		return true;
	}
	say(text, &len, "%s: synced (%s): ", local_root, sync_reason_name(result->reason));
	say_statistics(text, &len, result);
	say_conflicts(text, &len, result, false,
		result->conflict_count == 1 ? "changed on both sides, so that yours stays"
					    : "changed on both sides, so that yours stay");
	say_conflicts(text, &len, result, true,
		"what the agent did could not be done here, so that yours stays as it is and "
		"the agent's version is kept");
	if (tells_held(result)) {
		say_held(text, &len, result);
	}
	say_deletions(text, &len, result);
	if (*result->note) {
		say(text, &len, "; %s", result->note);
	}
	text[utf8_whole_length((struct span){text, len})] = '\0';
	return tells_held(result) || result->conflict_count > 0 || result->kept > 0 ||
	       result->followed > 0 || *result->note;
}
