/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer_dockerfile.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/container/commands.h"

enum { INSTRUCTION_MAX = 64 * 1024, LINES_MAX = 10000, ONBUILD_MAX = 4 };

static const char blanks[] = " \t";
static const char digits[] = "0123456789";

/* ---- images ---- */

static bool is_among(struct span text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (span_is(text, words[i])) {
			return true;
		}
	}
	return false;
}

/*
 * podman also takes a file or a folder of this machine as an image (containers-transports(5)), and
 * the first digits of an id for an image that is here, such as one that the broker has built.
 */
bool devcontainer_is_image(const char *image)
{
	static const char *const transports[] = {"containers-storage", "dir", "docker-archive",
		"docker-daemon", "oci", "oci-archive", "ostree", "sif", "tarball", "sha256"};
	static const char local[] = "localhost/";
	const char *name =
		image + (strncmp(image, local, sizeof(local) - 1) == 0 ? sizeof(local) - 1 : 0);
	const struct span first = {name, strcspn(name, ":/@")};
	bool is_transport = first.data[first.len] == ':' &&
	                    is_among(first, transports, ARRAY_LENGTH(transports));
	return !is_transport && !span_is(first, "acp-broker") && !strstr(image, ":/") &&
	       image[strspn(image, "0123456789abcdefABCDEF")] != '\0';
}

/* The stages that are known for sure at a line. */
struct reader {
	char **stages; // owned
	unsigned stage_count;
	bool has_heredoc; // so what follows may be no instruction
};

/* A variable may only stand behind the colon of a tag, where it cannot name anything else. */
static const char *judge_image(const struct reader *reader, const char *operand, bool may_be_stage)
{
	const char *variable = strchr(operand, '$');
	const char *colon = strchr(operand, ':');
	if (may_be_stage && words_contain((const char *const *)reader->stages, operand)) {
		return NULL;
	}
	if (may_be_stage && *operand && !operand[strspn(operand, digits)] && strlen(operand) < 6) {
		return strtoul(operand, NULL, 10) < reader->stage_count
		               ? NULL
		               : "has a number that is no stage before it";
	}
	if (variable && (!colon || colon > variable)) {
		return "has a variable where the name of an image begins";
	}
	char *plain = mem_strndup(
		(struct span){operand, variable ? (size_t)(variable - operand) : strlen(operand)});
	if (variable) {
		size_t len = strlen(plain);
		plain[len - (plain[len - 1] == ':')] = '\0'; // "name:$TAG"
	}
	bool is_fine = devcontainer_is_image(variable ? operand : plain) &&
	               container_check_image(plain, &(struct error){.code = ERROR_NONE});
	free(plain);
	return is_fine ? NULL
	               : "names a file of this machine, an image that the broker has built, or an "
	                 "id as an image (an image of digits and a to f needs its registry)";
}

/* ---- instructions ---- */

static bool begins(const char *text, const char *with)
{
	return strncasecmp(text, with, strlen(with)) == 0;
}

static char **split(const char *text)
{
	char **words = mem_alloc_zero(sizeof(*words));
	while (*(text += strspn(text, blanks))) {
		size_t len = strcspn(text, blanks);
		char *word = mem_strndup((struct span){text, len});
		words_append(&words, word);
		free(word);
		text += len;
	}
	return words;
}

static const char *judge_mount(const struct reader *reader, const char *fields)
{
	const char *why = NULL;
	while (!why && *fields) {
		size_t len = strcspn(fields, ",");
		char *field = mem_strndup((struct span){fields, len});
		why = begins(field, "from=") ? judge_image(reader, field + 5, true) : NULL;
		free(field);
		fields += len + (fields[len] == ',');
	}
	return why;
}

static const char *judge_flag(const struct reader *reader, const char *flag)
{
	if (strpbrk(flag, "\"'\\")) {
		return "has a quote or a backslash in an option";
	}
	if (begins(flag, "--network") && strcasecmp(flag, "--network=none") != 0 &&
		strcasecmp(flag, "--network=default") != 0) {
		return "uses another network than that of the build";
	}
	return begins(flag, "--from=")    ? judge_image(reader, flag + 7, true)
	       : begins(flag, "--mount=") ? judge_mount(reader, flag + 8)
	                                  : NULL;
}

/* A source with a colon is a URL or a git repository; the last word is the target. */
static const char *judge_sources(char *const *words)
{
	static const char why[] = "could fetch a file from the network";
	bool is_list = words[0] && words[0][0] == '[';
	for (; *words; words++) {
		bool is_target = !is_list && !words[1];
		if (!is_target && (strpbrk(*words, ":$") || (is_list && strchr(*words, '\\')) ||
					  begins(*words, "github.com/") ||
					  strcasestr(*words, "\"github.com/"))) {
			return why;
		}
	}
	return NULL;
}

static const char *judge_words(struct reader *reader, char *const *words, int depth)
{
	static const char *const known[] = {"FROM", "COPY", "ADD", "RUN"};
	const char *name = words[0] ? words[0] : "", *why = NULL;
	bool is_known = false;
	if (strcasecmp(name, "ONBUILD") == 0) {
		return depth < ONBUILD_MAX ? judge_words(reader, words + 1, depth + 1)
		                           : "nests ONBUILD";
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		is_known = is_known || strcasecmp(name, known[i]) == 0;
	}
	if (!is_known) {
		return NULL;
	}
	for (words++; !why && *words && begins(*words, "--"); words++) {
		why = judge_flag(reader, *words);
	}
	if (why) {
		return why;
	}
	return strcasecmp(name, "FROM") == 0  ? judge_image(reader, *words ? *words : "", true)
	       : strcasecmp(name, "ADD") == 0 ? judge_sources(words)
	                                      : NULL;
}

/* Remembers the stage that a FROM begins, which is an instruction for every builder. */
static void take_stage(struct reader *reader, char *const *words)
{
	if (!words[0] || strcasecmp(words[0], "FROM") != 0 || reader->has_heredoc) {
		return;
	}
	size_t count = words_count((char **)words);
	if (count >= 4 && strcasecmp(words[count - 2], "AS") == 0) {
		words_append(&reader->stages, words[count - 1]);
	}
	reader->stage_count++;
}

/* ---- lines ---- */

static bool is_comment(const char *line)
{
	return line[strspn(line, blanks)] == '#';
}

/*
 * Appends the instruction that begins at the line; returns the index after it. Builders differ in
 * whether they leave out an indented comment between its lines.
 */
static size_t join(char *const *lines, size_t at, bool keeps_comments, struct buf *out)
{
	bool is_open = true;
	for (size_t first = at; is_open && lines[at]; at++) {
		const char *line = lines[at];
		size_t len = strlen(line);
		bool is_left_out = line[strspn(line, blanks)] == '\0' ||
		                   (is_comment(line) && (line[0] == '#' || !keeps_comments));
		if (at > first && is_left_out) {
			continue;
		}
		while (len > 0 && strchr(blanks, line[len - 1])) {
			len--;
		}
		is_open = len > 0 && line[len - 1] == '\\';
		if (!buf_append(out, (struct span){line, is_open ? len - 1 : strlen(line)}, NULL)) {
			buf_clear(out);
			break;
		}
	}
	return at;
}

static const char *judge_at(struct reader *reader, char *const *lines, size_t at, size_t *next)
{
	const char *why = NULL;
	for (int keeps = 0; !why && keeps <= 1; keeps++) {
		struct buf text;
		buf_init(&text, INSTRUCTION_MAX);
		size_t end = join(lines, at, keeps != 0, &text);
		char *line = mem_strndup(buf_span(&text));
		char **words = split(line);
		why = text.len == 0 ? "begins an instruction of more than 65536 bytes"
		                    : judge_words(reader, words, 0);
		if (!why && keeps == 0 && at >= *next) {
			take_stage(reader, words);
			reader->has_heredoc = reader->has_heredoc || strstr(line, "<<");
			*next = end;
		}
		words_free(words);
		free(line);
		buf_finish(&text);
	}
	return why;
}

/* What changes how a builder reads the other lines. */
static const char *judge_line(const char *line)
{
	static const char frontend[] = "docker/dockerfile";
	const char *text = line + strspn(line, blanks);
	size_t len = strlen(line);
	while (len > 0 && strchr(blanks, line[len - 1])) {
		len--;
	}
	if (len >= 2 && line[len - 1] == '\\' && line[len - 2] == '\\') {
		return "ends in two backslashes";
	}
	if ((unsigned char)*text >= 0x80 || *text == '{') {
		return "begins with what is no instruction";
	}
	if (*text != '#' && strncmp(text, "//", 2) != 0) {
		return NULL;
	}
	text += *text == '#' ? 1 : 2;
	text += strspn(text, blanks);
	bool is_escape = begins(text, "escape"), is_syntax = begins(text, "syntax");
	text += 6 * (is_escape || is_syntax);
	text += strspn(text, blanks);
	if (*text != '=' || !(is_escape || is_syntax)) {
		return NULL;
	}
	text++;
	text += strspn(text, blanks);
	if (is_escape) {
		return *text == '\\' ? NULL : "chooses another escape character";
	}
	return strncmp(text, frontend, sizeof(frontend) - 1) == 0 &&
	                       strchr(":@", text[sizeof(frontend) - 1])
	               ? NULL
	               : "chooses another syntax than docker/dockerfile";
}

static bool refuse(const char *path, size_t line, const char *why, struct error *err)
{
	return error_set_reason(err, ERROR_CONFIG, "DOCKERFILE_REFUSED",
		"devcontainer = auto: %s, line %zu: it %s", path, line, why);
}

/* Appends the lines without their ends. */
static bool read_lines(struct span text, const char *path, char ***lines, struct error *err)
{
	size_t count = 0;
	while (text.len > 0) {
		const char *newline = memchr(text.data, '\n', text.len);
		size_t len = newline ? (size_t)(newline - text.data) : text.len;
		size_t end = len > 0 && text.data[len - 1] == '\r' ? len - 1 : len;
		count++;
		for (size_t i = 0; i < end; i++) {
			unsigned char letter = (unsigned char)text.data[i];
			if ((letter < ' ' && letter != '\t') || letter == 0x7f) {
				return refuse(path, count, "has a control character", err);
			}
		}
		if (count > LINES_MAX) {
			return refuse(path, count, "is after the 10000 lines allowed", err);
		}
		char *line = mem_strndup((struct span){text.data, end});
		words_append(lines, line);
		free(line);
		len += newline ? 1 : 0;
		text.data += len;
		text.len -= len;
	}
	return true;
}

bool devcontainer_check_dockerfile(struct span text, const char *path, struct error *err)
{
	struct reader reader = {.stages = mem_alloc_zero(sizeof(char *))};
	char **lines = mem_alloc_zero(sizeof(*lines));
	size_t next = 0;
	bool is_ok = read_lines(text, path, &lines, err);
	for (size_t i = 0; is_ok && lines[i]; i++) {
		const char *why = judge_line(lines[i]);
		bool is_blank = lines[i][strspn(lines[i], blanks)] == '\0' || is_comment(lines[i]);
		if (!why && !is_blank) {
			why = judge_at(&reader, lines, i, &next);
		}
		is_ok = !why || refuse(path, i + 1, why, err);
	}
	words_free(lines);
	words_free(reader.stages);
	return is_ok;
}
