/* SPDX-License-Identifier: MIT */
#include "providers/local/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

const struct error_reason local_limit_reason = {"LIMIT_NOT_ENFORCED", false,
	"do what the message says, or take required, or the named key, away"};

static const struct setting_key keys[] = {LOCAL_LIMIT_KEYS};
static const struct setting_key required_key = {
	.name = "required", .type = SETTING_BOOL, .fallback = "false"};

/* 0: not set. */
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

/* Without a cgroup; false with the reason where that says nothing. */
static bool limit_user(struct local_limits *limits, uint64_t processes, const char **out_why)
{
	if (geteuid() == 0) {
		*out_why = "processes is not enforced: the system counts no processes of root; "
			   "start the broker as an ordinary user";
		return false;
	}
	limits->each.user_processes = limits_count_tasks(getuid()) + processes;
	return true;
}

bool local_limits_read(struct local_limits *limits, struct sandbox *sandbox,
	const struct settings *settings, struct error *err)
{
	const char *why = NULL;
	uint64_t processes = number_of(settings, "processes");
	limits->each = (struct process_limits){
		.open_files = number_of(settings, "open-files"),
		.file_bytes = number_of(settings, "file-size"),
		.cpu_seconds = (number_of(settings, "cpu-time") + 999) / 1000,
	};
	limits->is_any = processes > 0 || limits_are_set(&limits->each);
	if (processes > 0 && !limit_user(limits, processes, &why)) {
		if (settings_bool(settings, &required_key)) {
			return error_set_reason(
				err, ERROR_CONFIG, local_limit_reason.name, "%s", why);
		}
		char sentence[256];
		text_format(sentence, sizeof(sentence), "%s", why);
		sandbox_warn(sandbox, sentence);
	}
	read_said(limits, settings);
	sandbox->limits = (const char *const *)limits->said;
	return true;
}

void local_limits_finish(struct local_limits *limits)
{
	for (int kind = 0; kind < LIMIT_KIND_COUNT; kind++) {
		free(limits->said[kind]);
	}
}
