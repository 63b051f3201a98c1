/* SPDX-License-Identifier: MIT */
#include "providers/local/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/copy_cell.h"

const struct error_reason local_limit_reason = {
	"LIMIT_NOT_ENFORCED", false, "follow the message, or remove `required` or the named key"};

static const struct setting_key keys[] = {LOCAL_LIMIT_KEYS};
static const struct setting_key required_key = {
	.name = "required", .type = SETTING_BOOL, .fallback = "false"};

enum {
	CELL_TASKS = 1,     // our own guard of each process in a cell
	CELL_OWN_TASKS = 3, // our own processes of the cell, which no group counts
};

/* 0: the key is not set. */
static uint64_t number_of(const struct settings *settings, const char *name)
{
	const struct setting_key *key = setting_key_find(keys, ARRAY_LENGTH(keys), name);
	return settings_get(settings, name) ? (uint64_t)settings_number(settings, key) : 0;
}

static void read_said(struct local_limits *limits, const struct settings *settings)
{
	for (int kind = LIMIT_NONE + 1; kind < LIMIT_KIND_COUNT; kind++) {
		const char *name = limit_key((enum limit_kind)kind);
		const char *value = settings_get(settings, name);
		char text[128];
		if (value) {
			text_format(text, sizeof(text), "%s = %s", name, value);
			limits->said[kind] = mem_strdup(text);
		}
	}
}

/* Limits that are not enforced, one sentence each. With `required`, the first becomes the error. */
struct unenforced {
	char **sentences; // owned
	bool is_required;
	struct error *err;
	bool has_failed;
};

static void add_unenforced(
	struct unenforced *list, const char *key, const char *why, const char *remedy)
{
	char sentence[512];
	text_format(sentence, sizeof(sentence), "%s is not enforced: %s; %s", key, why, remedy);
	if (!list->is_required) {
		words_append(&list->sentences, sentence);
	} else if (!list->has_failed) {
		list->has_failed = true;
		error_set_reason(list->err, ERROR_CONFIG, local_limit_reason.name, "%s", sentence);
	}
}

static void add_missing(struct unenforced *list, const char *key, const char *controller,
	const struct limit_group *group, const struct error *no_group)
{
	char why[320];
	if (no_group) {
		text_format(why, sizeof(why), "%s", no_group->text);
	} else if (group->is_busy) {
		text_format(why, sizeof(why),
			"the parent cgroup contains processes, so the kernel does not enable the "
			"controller \"%s\" below it (EBUSY)",
			controller);
	} else {
		text_format(why, sizeof(why), "this machine's cgroup v2 has no controller \"%s\"",
			controller);
	}
	add_unenforced(list, key, why,
		"if systemd runs, start the broker with systemd-run --user --scope");
}

/*
 * Limits processes without a cgroup. The kernel counts all processes of the user, so those that run
 * already are added to the limit. A process that is certainly in a cell never runs as root there:
 * local_limits_enter_cell.
 */
static void limit_user(
	struct local_limits *limits, uint64_t processes, bool is_in_cell, struct unenforced *list)
{
	if (geteuid() == 0 && !(is_in_cell && limits_count_by_namespace())) {
		add_unenforced(list, "processes",
			"there is no cgroup for it, and the system does not count root's processes",
			"start the broker as an ordinary user");
		return;
	}
	limits->each.user_processes = limits_count_tasks(getuid()) + processes;
}

/*
 * A limit of each process alone would kill programs that reserve much memory and use little, such
 * as V8 and Java.
 */
static void limit_all(struct local_limits *limits, const struct group_limits *wanted,
	bool is_in_cell, struct unenforced *list)
{
	struct error err;
	bool has_group = limit_group_open(&limits->group, wanted, &err);
	const struct error *no_group = has_group ? NULL : &err;
	if (wanted->memory_bytes > 0 && !limits->group.limits_memory) {
		add_missing(list, "memory", "memory", &limits->group, no_group);
	}
	if (wanted->cpus > 0 && !limits->group.limits_cpus) {
		add_missing(list, "cpu", "cpu", &limits->group, no_group);
	}
	if (wanted->processes > 0 && !limits->group.limits_processes) {
		limits->processes = wanted->processes;
		limit_user(limits, wanted->processes, is_in_cell, list);
	}
}

/* Fails if a limit is required and not enforced; then there is nothing to finish. */
static bool set_up(
	struct local_limits *limits, const struct settings *settings, struct unenforced *list)
{
	uint64_t processes = number_of(settings, "processes");
	bool is_confined = copy_confinement(settings) != CONFINEMENT_NO;
	struct group_limits all = {
		.memory_bytes = number_of(settings, "memory"),
		.processes = processes > 0 && is_confined ? processes + CELL_TASKS : processes,
		.cpus = number_of(settings, "cpu"),
	};
	limits->each = (struct process_limits){
		.open_files = number_of(settings, "open-files"),
		.file_bytes = number_of(settings, "file-size"),
		.cpu_seconds = (number_of(settings, "cpu-time") + 999) / 1000,
	};
	limits->is_any = all.memory_bytes > 0 || all.processes > 0 || all.cpus > 0 ||
	                 limits_are_set(&limits->each);
	if (limits->is_any) {
		limit_all(limits, &all, is_confined && copy_cell_is_required(settings), list);
	}
	if (list->has_failed) {
		limit_group_close(&limits->group);
	}
	return !list->has_failed;
}

bool local_limits_read(struct local_limits *limits, struct sandbox *sandbox,
	const struct settings *settings, struct error *err)
{
	struct unenforced list = {.sentences = mem_alloc_zero(sizeof(*list.sentences)),
		.is_required = settings_bool(settings, &required_key),
		.err = err};
	bool is_set_up = set_up(limits, settings, &list);
	for (char **sentence = list.sentences; is_set_up && *sentence; sentence++) {
		sandbox_warn(sandbox, *sentence);
	}
	words_free(list.sentences);
	if (is_set_up && limits->is_any) {
		read_said(limits, settings);
		sandbox->limits = (const char *const *)limits->said;
	}
	return is_set_up;
}

bool local_limits_check(const struct settings *settings, char ***warnings, struct error *err)
{
	struct local_limits limits = {.is_any = false};
	struct unenforced list = {.sentences = *warnings,
		.is_required = settings_bool(settings, &required_key),
		.err = err};
	bool is_set_up = set_up(&limits, settings, &list);
	*warnings = list.sentences;
	local_limits_finish(&limits);
	return is_set_up;
}

void local_limits_enter_cell(struct local_limits *limits)
{
	if (limits->each.user_processes > 0 && limits_count_by_namespace()) {
		limits->each.user_processes = limits->processes + CELL_OWN_TASKS;
	}
}

void local_limits_finish(struct local_limits *limits)
{
	limit_group_close(&limits->group);
	for (int kind = 0; kind < LIMIT_KIND_COUNT; kind++) {
		free(limits->said[kind]);
	}
}
