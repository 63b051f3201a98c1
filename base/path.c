/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <stdio.h>
#include <string.h>

bool path_push(char path[PATH_MAX], const char *name)
{
	size_t len = strlen(path);
	return snprintf(path + len, PATH_MAX - len, "/%s", name) < (int)(PATH_MAX - len);
}

void path_pop(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash) {
		*slash = '\0';
	}
}

bool names_are_over(const char *rest)
{
	const char *at = rest;
	while (*at == '/' || (*at == '.' && (at[1] == '/' || at[1] == '\0'))) {
		at++;
	}
	return *at == '\0';
}

bool names_go_up(const char *rest)
{
	for (const char *at = rest; (at = strstr(at, "..")) != NULL; at += 2) {
		bool begins = at == rest || at[-1] == '/';
		if (begins && (at[2] == '/' || at[2] == '\0')) {
			return true;
		}
	}
	return false;
}

void path_clean(const char *path, char out[PATH_MAX])
{
	size_t len = 0;
	for (const char *at = path; *at && len + 1 < PATH_MAX;) {
		at += strspn(at, "/");
		size_t part = strcspn(at, "/");
		if (part > 0 && !(part == 1 && *at == '.') && len + part + 2 < PATH_MAX) {
			out[len++] = '/';
			memcpy(out + len, at, part);
			len += part;
		}
		at += part;
	}
	if (len == 0) {
		out[len++] = '/';
	}
	out[len] = '\0';
}
