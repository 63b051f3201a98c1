/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "providers/conformance/cases.h"
#include "providers/conformance/files.h"

/* What every provider does with files. */

bool case_files(struct conformance_place *place, struct error *err)
{
	char bytes[3000];
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (char)(i % 256);
	}
	struct span content = {bytes, sizeof(bytes)};
	return case_write(place, "file", SPAN_LITERAL("old"), err) &&
	       conformance_shell(place, "chmod 750 file", NULL, err) &&
	       case_write(place, "file", content, err) &&
	       case_expect_content(place, "file", content, err) &&
	       case_expect_file(place, "file", 0750, sizeof(bytes), err);
}

bool case_modes(struct conformance_place *place, struct error *err)
{
	static const struct {
		const char *name;
		mode_t mode;
	} files[] = {{"755", 0755}, {"600", 0600}, {"640", 0640}, {"777", 0777}};
	if (!conformance_shell(place,
		    "mkdir modes && cd modes && for m in 755 600 640 777; "
		    "do echo old >$m && chmod $m $m || exit; done",
		    NULL, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		char name[16];
		text_whole(name, sizeof(name), "modes/%s", files[i].name);
		if (!case_write(place, name, SPAN_LITERAL("new\n"), err) ||
			!case_expect_file(place, name, files[i].mode, 4, err)) {
			return false;
		}
	}
	return true;
}

bool case_parents(struct conformance_place *place, struct error *err)
{
	return case_write(place, "a b/'c'/\xc3\xa4/file", SPAN_LITERAL("deep\n"), err) &&
	       conformance_shell(
		       place, "test \"$(cat \"a b/'c'/\xc3\xa4/file\")\" = deep", NULL, err);
}

bool case_reading(struct conformance_place *place, struct error *err)
{
	static const char *const missing[] = {
		"reading/nothing", "reading/no/such/folder", "reading/file/below"};
	if (!conformance_shell(place,
		    "mkdir -p reading/d && cd reading && printf 'a\\r\\nb' >file && : >empty &&"
		    "echo x >d/deep && printf 'a\\000\\377b' >bytes &&"
		    "head -c 1000 /dev/zero >thousand",
		    NULL, err) ||
		!case_expect_content(place, "reading/file", SPAN_LITERAL("a\r\nb"), err) ||
		!case_expect_content(place, "reading/empty", SPAN_LITERAL(""), err) ||
		!case_expect_content(place, "reading/bytes", (struct span){"a\0\377b", 4}, err) ||
		!case_expect_content(place, "reading/d//./deep", SPAN_LITERAL("x\n"), err) ||
		!case_expect_limit(place, "reading/thousand", 1000, err)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(missing); i++) {
		char path[PATH_MAX];
		struct refusal not_found = {ERROR_NOT_FOUND, NULL, missing[i]};
		case_path(place, path, missing[i]);
		if (!case_expect_error(place, ACT_READ, path, &not_found, err) ||
			!case_expect_error(place, ACT_STAT, path, &not_found, err)) {
			return false;
		}
	}
	return true;
}

bool case_stat(struct conformance_place *place, struct error *err)
{
	char path[PATH_MAX];
	return conformance_shell(place,
		       "mkdir -p stat/folder && cd stat && printf 12345 >file &&"
		       "chmod 640 file && ln -s file link",
		       NULL, err) &&
	       case_expect_file(place, "stat/link", 0640, 5, err) &&
	       case_expect_folder(place, case_path(place, path, "stat/folder"), err) &&
	       case_expect_folder(place, place->root, err);
}

bool case_special(struct conformance_place *place, struct error *err)
{
	static const struct refusal not_found = {ERROR_NOT_FOUND, NULL, "special/file/below"};
	char path[PATH_MAX];
	return conformance_shell(place,
		       "mkdir -p special/folder && mkfifo special/pipe && echo x >special/file",
		       NULL, err) &&
	       case_expect_untouchable(
		       place, case_path(place, path, "special/folder"), "is a directory", err) &&
	       case_expect_untouchable(
		       place, case_path(place, path, "special/pipe"), "not a regular file", err) &&
	       case_expect_untouchable(place, place->root, "is a directory", err) &&
	       case_expect_error(place, ACT_WRITE, case_path(place, path, "special/file/below"),
		       &not_found, err);
}

/* Tries names that a shell, a tool or a protocol could misread. */
bool case_names(struct conformance_place *place, struct error *err)
{
	static const char *const names[] = {"new\nline", "ends\n", "\n", " blank ", "-dash",
		"--help", "quo'te\"s`$(x)", "back\\slash\\", "\xff\x81\x88\xc3", "*?[a]", "~",
		"$HOME", "a=b", "tab\there", "...", "\x01\x7f"};
	char all[512] = "names"; // a path of all the names, each inside the one before
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char name[64];
		size_t len = strlen(all);
		text_whole(name, sizeof(name), "names/files/%s", names[i]);
		text_whole(all + len, sizeof(all) - len, "/%s", names[i]);
		if (!case_write(place, name, span_of(names[i]), err) ||
			!case_expect_content(place, name, span_of(names[i]), err)) {
			return false;
		}
	}
	/* The target of a link is also used byte for byte. */
	return case_write(place, all, SPAN_LITERAL("deep"), err) &&
	       case_expect_content(place, all, SPAN_LITERAL("deep"), err) &&
	       case_expect_file(place, all, 0, strlen("deep"), err) &&
	       case_expect_resolved(place, all, all, err) &&
	       conformance_shell(place,
		       "cd names && n=$(printf '\\n.') && ln -s \"files/ends${n%.}\" link", NULL,
		       err) &&
	       case_expect_content(place, "names/link", SPAN_LITERAL("ends\n"), err);
}
