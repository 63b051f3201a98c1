/* SPDX-License-Identifier: MIT */
#include "base/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

const char *environment_get(const char *const *environment, const char *name)
{
	size_t len = strlen(name);
	for (const char *const *entry = environment; *entry; entry++) {
		if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=') {
			return *entry + len + 1;
		}
	}
	return NULL;
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;
	while (list && list[count]) {
		count++;
	}
	return count;
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

static bool has_name(const char *entry, const char *name, size_t len)
{
	return name_length(entry) == len && strncmp(entry, name, len) == 0;
}

static void put(char **list, size_t *count, const char *entry)
{
	for (size_t i = 0; i < *count; i++) {
		if (has_name(list[i], entry, name_length(entry))) {
			mem_set_text(&list[i], entry);
			return;
		}
	}
	list[(*count)++] = mem_strdup(entry);
}

char **environment_merge(const char *const *base, const char *const *additions)
{
	size_t base_count = count_of(base);
	size_t more = count_of(additions);
	char **list = mem_alloc((base_count + more + 1) * sizeof(*list));
	size_t count = 0;
	for (; count < base_count; count++) {
		list[count] = mem_strdup(base[count]);
	}
	for (size_t i = 0; i < more; i++) {
		put(list, &count, additions[i]);
	}
	list[count] = NULL;
	return list;
}

void environment_drop(char **environment, const char *name)
{
	char **kept = environment;
	for (; *environment; environment++) {
		if (has_name(*environment, name, strlen(name))) {
			free(*environment);
		} else {
			*kept++ = *environment;
		}
	}
	*kept = NULL;
}
