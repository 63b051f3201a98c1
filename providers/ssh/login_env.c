/* SPDX-License-Identifier: MIT */
#include "providers/ssh/login_env.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/settings.h"
#include "base/words.h"

struct choice {
	struct login_env *to;
	size_t count;
	size_t bytes;
	bool wants_all;
};

static size_t name_len(const char *entry)
{
	return strcspn(entry, "=");
}

/* A pattern may end in "*". */
static bool is_of(const char *name, size_t len, const char *const *patterns)
{
	for (; *patterns; patterns++) {
		size_t size = strlen(*patterns);
		bool is_prefix = (*patterns)[size - 1] == '*';
		if (is_prefix ? len >= size - 1 && strncmp(name, *patterns, size - 1) == 0
			      : len == size && strncmp(name, *patterns, len) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_never_taken(const char *name, size_t len)
{
	static const char *const names[] = {"PWD", "OLDPWD", "SHLVL", "_", "ACP_BROKER_*", NULL};
	return is_of(name, len, names);
}

/* These variables make programs run other code. */
static bool is_taken_by_name_alone(const char *name, size_t len)
{
	static const char *const names[] = {"LD_*", "BASH_ENV", "ENV", NULL};
	return is_of(name, len, names);
}

static bool is_named(const char *name, size_t len, const char *const *names)
{
	for (; names && *names; names++) {
		if (strlen(*names) == len && strncmp(*names, name, len) == 0) {
			return true;
		}
	}
	return false;
}

static bool has_name(const char *const *entries, const char *name, size_t len)
{
	for (; entries && *entries; entries++) {
		if (name_len(*entries) == len && strncmp(*entries, name, len) == 0) {
			return true;
		}
	}
	return false;
}

static void take(struct choice *choice, const char *entry)
{
	size_t len = strlen(entry);
	if (len <= LOGIN_ENV_VALUE_MAX && choice->bytes + len <= LOGIN_ENV_MAX &&
		choice->count < LOGIN_ENV_COUNT_MAX) {
		choice->bytes += len;
		choice->count++;
		words_append(&choice->to->entries, entry);
	} else if (words_count(choice->to->too_big) < LOGIN_ENV_COUNT_MAX) {
		char *name = mem_strndup((struct span){entry, name_len(entry)});
		words_append(&choice->to->too_big, name);
		free(name);
	}
}

static bool is_wanted(const char *entry, const char *const *names, bool wants_all)
{
	size_t len = name_len(entry);
	if (entry[len] != '=' || !environment_name_is_valid(entry, len) ||
		is_never_taken(entry, len)) {
		return false;
	}
	return is_named(entry, len, names) || (wants_all && !is_taken_by_name_alone(entry, len));
}

/* Named variables come first, so that a limit can only affect the others. */
static void take_those(struct choice *choice, const char *const *from, const char *const *names,
	const char *const *base)
{
	for (; from && *from; from++) {
		size_t len = name_len(*from);
		if (is_wanted(*from, names, choice->wants_all) && !has_name(base, *from, len) &&
			!has_name((const char *const *)choice->to->entries, *from, len)) {
			take(choice, *from);
		}
	}
}

void login_env_choose(struct login_env *out_chosen, const char *const *from,
	const char *const *names, const char *const *base)
{
	static const char all[] = "all";
	struct choice choice = {.to = out_chosen};
	*out_chosen = (struct login_env){0};
	take_those(&choice, from, names, base);
	choice.wants_all = is_named(all, strlen(all), names);
	if (choice.wants_all) {
		take_those(&choice, from, names, base);
	}
	for (; names && *names; names++) {
		size_t len = strlen(*names);
		bool is_there = has_name(from, *names, len) && !is_never_taken(*names, len);
		if (!is_there && strcmp(*names, all) != 0) {
			words_append(&out_chosen->missing, *names);
		}
	}
}

void login_env_finish(struct login_env *chosen)
{
	words_wipe_free(chosen->entries);
	words_free(chosen->missing);
	words_free(chosen->too_big);
	*chosen = (struct login_env){0};
}
