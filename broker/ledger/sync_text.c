/* SPDX-License-Identifier: MIT */
#include "broker/ledger/sync_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/path_quote.h"
#include "base/text.h"

static void say(char text[SYNC_TEXT_MAX], const char *format, ...) ATTR_PRINTF(2, 3);
static void say(char text[SYNC_TEXT_MAX], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	text_vappend(text, SYNC_TEXT_MAX, format, args);
	va_end(args);
}

static size_t paths_in(const struct merge_counts *counts)
{
	return counts->added + counts->changed + counts->deleted;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The sum of added, changed and deleted paths, and how many were deleted. */
static void say_paths(char text[SYNC_TEXT_MAX], const struct merge_counts *counts, const char *what)
{
	say(text, "%zu %s", paths_in(counts), what);
	if (counts->deleted > 0) {
		say(text, " (%zu deleted)", counts->deleted);
	}
}

static void say_statistics(char text[SYNC_TEXT_MAX], const struct sync_result *result)
{
	bool is_one = paths_in(&result->to_local) == 1;
	say_paths(text, &result->to_local, is_one ? "file from the agent" : "files from the agent");
	say(text, ", ");
	say_paths(text, &result->to_runtime, "to it");
	say(text, ", %" PRIu64 " byte%s received, %" PRIu64 " sent", result->received_bytes,
		plural(result->received_bytes), result->sent_bytes);
	if (result->conflict_count > 0) {
		say(text, ", %zu conflict%s", result->conflict_count,
			plural(result->conflict_count));
	}
	say(text, ", %lld ms", result->duration_ms);
}

/* Lists conflicts of one kind (stuck here, or changed on both sides), after the text `what`. */
static void say_conflicts(
	char text[SYNC_TEXT_MAX], const struct sync_result *result, bool is_stuck, const char *what)
{
	size_t count = 0;
	LIST_FOR_EACH(conflict, result->conflicts, struct conflict, link) {
		if ((conflict->why != NULL) != is_stuck) {
			continue;
		}
		if (count == 0) {
			say(text, "; %s:", what);
		}
		if (count++ < SYNC_TEXT_NAMED) {
			char *path = path_quote(span_of(conflict->path));
			say(text, "%s %s", count > 1 ? "," : "", path);
			free(path);
		}
		if (conflict->why && count <= SYNC_TEXT_NAMED) {
			say(text, " (%s)", conflict->why);
		}
		if (conflict->file && count <= SYNC_TEXT_NAMED) {
			char *file = path_quote(span_of(conflict->file));
			say(text, " (the agent's: %s)", file);
			free(file);
		}
	}
	if (count > SYNC_TEXT_NAMED) {
		say(text, " and %zu more", count - SYNC_TEXT_NAMED);
	}
	if (count > 0) {
		say(text, " (acp-broker conflicts list)");
	}
}

/* At the end of a sandbox they are listed, and kept, even if they were reported before. */
static bool is_last(const struct sync_result *result)
{
	return result->reason == SYNC_REASON_STOP || result->reason == SYNC_REASON_CRASH;
}

static bool tells_held(const struct sync_result *result)
{
	return result->held_count > 0 && (result->is_held_news || is_last(result));
}

static void say_held(char text[SYNC_TEXT_MAX], const struct sync_result *result)
{
	size_t count = 0;
	say(text, "; held in the sandbox, because your tools may run commands from it "
		  "(guard-paths):");
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (count++ < SYNC_TEXT_NAMED) {
			char *path = path_quote(span_of(held->path));
			say(text, "%s %s", count > 1 ? "," : "", path);
			free(path);
		}
	}
	if (count > SYNC_TEXT_NAMED) {
		say(text, " and %zu more", count - SYNC_TEXT_NAMED);
	}
	if (is_last(result)) {
		say(text, "; the agent's version is kept (acp-broker conflicts list)");
	}
}

/* More than the user might overlook in a turn, and fewer than are asked about. */
static bool tells_deleted(const struct sync_result *result)
{
	return result->gone >= SYNC_DELETIONS_MIN && result->followed == 0 &&
	       result->checkpoint > 1;
}

static void say_deletions(char text[SYNC_TEXT_MAX], const struct sync_result *result)
{
	if (tells_deleted(result)) {
		say(text,
			"; %zu of your files were deleted, because the agent deleted them: "
			"`acp-broker checkpoints undelete %u` brings them back",
			result->gone, result->checkpoint - 1);
	}
	if (result->kept > 0) {
		say(text,
			"; the agent has deleted %zu of your files: they were kept here and "
			"restored for it",
			result->kept);
	}
	if (result->followed > 0) {
		say(text,
			"; %zu of your files were deleted, because the agent deleted them; the "
			"checkpoint before this one has them (acp-broker checkpoints list)",
			result->followed);
	}
}

bool sync_text_write(char text[SYNC_TEXT_MAX], const char *local_root,
	const struct sync_result *result, const struct error *err)
{
	text[0] = '\0';
	if (err) {
		say(text, "%s", err->text);
		return true;
	}
	say(text, "%s: synced (%s): ", local_root, sync_reason_name(result->reason));
	say_statistics(text, result);
	say_conflicts(text, result, false,
		result->conflict_count == 1 ? "changed on both sides, so that yours stays"
					    : "changed on both sides, so that yours stay");
	say_conflicts(text, result, true,
		"the agent's change could not be made here, so that your version stays and "
		"the agent's version is kept");
	if (tells_held(result)) {
		say_held(text, result);
	}
	say_deletions(text, result);
	if (*result->note) {
		say(text, "; %s", result->note);
	}
	return tells_held(result) || result->conflict_count > 0 || result->kept > 0 ||
	       result->followed > 0 || tells_deleted(result) || *result->note;
}
