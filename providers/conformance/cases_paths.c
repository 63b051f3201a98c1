/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/text.h"
#include "providers/conformance/cases.h"
#include "providers/conformance/files.h"

/* The cases about paths: no operation leaves the root. */

bool case_confinement(struct conformance_place *place, struct error *err)
{
	/* These files do not exist, so nothing would be lost if the names were not refused. */
	static const char *const names[] = {"../acp-broker-outside", "in/../../acp-broker-outside",
		"in/'c'/../../../acp-broker-outside"};
	char path[PATH_MAX];
	if (!conformance_shell(place, "mkdir -p \"in/'c'\"", NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		case_path(place, path, names[i]);
		if (!case_expect_refused(place, path, path, err)) {
			return false;
		}
	}
	return case_expect_refused(place, "/acp-broker-outside", "/acp-broker-outside", err);
}

bool case_relative(struct conformance_place *place, struct error *err)
{
	static const char *const paths[] = {
		"acp-broker-outside", "./acp-broker-outside", "", "~/acp-broker-outside"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		if (!case_expect_refused(place, paths[i], "not absolute", err)) {
			return false;
		}
	}
	return true;
}

bool case_links(struct conformance_place *place, struct error *err)
{
	static const char *const names[] = {"out", "root/acp-broker-outside", "a/through"};
	char path[PATH_MAX];
	if (!conformance_shell(place,
		    "mkdir -p links/a && cd links && ln -s /nowhere/acp-broker-outside out &&"
		    "ln -s / root && ln -s ../out a/through && ln -s back circle && ln -s circle "
		    "back",
		    NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char name[64];
		text_whole(name, sizeof(name), "links/%s", names[i]);
		case_path(place, path, name);
		if (!case_expect_refused(place, path, path, err)) {
			return false;
		}
	}
	case_path(place, path, "links/circle");
	return case_expect_untouchable(place, path, "too many links", err);
}

bool case_inner_links(struct conformance_place *place, struct error *err)
{
	static const char *const names[] = {
		"relative", "absolute", "folder/file", "a/b/up", "chain", "folder/b/up", "around"};
	if (!conformance_shell(place,
		    "mkdir -p inner/a/b && cd inner && d=$(pwd) && ln -s a/file relative &&"
		    "ln -s \"$d/a/file\" absolute && ln -s \"$d/a\" folder &&"
		    "ln -s ../file a/b/up && ln -s relative chain && ln -s a/new dangling &&"
		    "ln -s ../inner/a/file around && echo x >a/file && chmod 600 a/file",
		    NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char name[64];
		text_whole(name, sizeof(name), "inner/%s", names[i]);
		if (!case_expect_content(place, name, SPAN_LITERAL("x\n"), err) ||
			!case_expect_resolved(place, name, "inner/a/file", err)) {
			return false;
		}
	}
	return case_write(place, "inner/absolute", SPAN_LITERAL("through\n"), err) &&
	       case_expect_content(place, "inner/a/file", SPAN_LITERAL("through\n"), err) &&
	       case_expect_file(place, "inner/a/file", 0600, strlen("through\n"), err) &&
	       case_write(place, "inner/dangling", SPAN_LITERAL("made\n"), err) &&
	       conformance_shell(place,
		       "cd inner && test -L absolute && test -L dangling &&"
		       "test \"$(cat a/new)\" = made",
		       NULL, err);
}

bool case_dots(struct conformance_place *place, struct error *err)
{
	char name[NAME_MAX + 64];
	const char *root = strrchr(place->root, '/');
	text_whole(name, sizeof(name), "../%.255s/dots/file", root ? root + 1 : "");
	return conformance_shell(place,
		       "mkdir -p dots/a/b && cd dots && echo x >file && ln -s a/b link &&"
		       "echo y >a/file",
		       NULL, err) &&
	       case_expect_content(place, "dots/a/../file", SPAN_LITERAL("x\n"), err) &&
	       case_expect_content(place, "dots/a/b/../../file", SPAN_LITERAL("x\n"), err) &&
	       case_expect_content(place, "dots/./a/./../file", SPAN_LITERAL("x\n"), err) &&
	       /* ".." after a link is the parent of the link's target, as for the kernel. */
	       case_expect_content(place, "dots/link/../file", SPAN_LITERAL("y\n"), err) &&
	       /* This name leaves the root and comes back into it. */
	       case_expect_content(place, name, SPAN_LITERAL("x\n"), err);
}

bool case_missing(struct conformance_place *place, struct error *err)
{
	static const char *const names[][2] = {{"missing/a/b/../new", "missing/a/new"},
		{"missing/link/new", "missing/a/new"},
		{"missing/link/new/er/file", "missing/a/new/er/file"},
		{"missing/dangling", "missing/nothing"}, {"missing/a//b/.", "missing/a/b"}};
	char path[PATH_MAX];
	if (!conformance_shell(place,
		    "mkdir -p missing/a/b && cd missing && ln -s a link && ln -s nothing dangling",
		    NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (!case_expect_resolved(place, names[i][0], names[i][1], err)) {
			return false;
		}
	}
	case_path(place, path, "nobody/../../acp-broker-outside");
	return case_expect_failure(place, ACT_RESOLVE, path, err) &&
	       case_expect_resolved(place, "", "", err);
}

bool case_overlong(struct conformance_place *place, struct error *err)
{
	static const struct refusal too_long = {ERROR_LIMIT, NULL, "too long"};
	char path[FILE_PATH_MAX + 100];
	char name[NAME_MAX + 46];
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	return case_expect_error(place, ACT_READ, path, &too_long, err) &&
	       case_expect_failure(place, ACT_WRITE, case_path(place, path, name), err);
}
