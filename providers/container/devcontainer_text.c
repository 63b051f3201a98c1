/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer_text.h"

#include <string.h>

#include "base/buf.h"
#include "base/real_path.h"

enum { EXPANDED_MAX = 64 * 1024 };

static const char folder[] = DEVCONTAINER_FOLDER;

/* The value of the variable; NULL: we do not give it. *out_is_known: it is a variable at all. */
static const char *value_of(const struct exec_place *place, struct span name, bool *out_is_known)
{
	static const char *const refused[] = {"localEnv", "env", "containerEnv", "devcontainerId"};
	const char *colon = name.len > 0 ? memchr(name.data, ':', name.len) : NULL;
	const struct span kind = {name.data, colon ? (size_t)(colon - name.data) : name.len};
	*out_is_known = true;
	if (span_is(name, "localWorkspaceFolder")) {
		return place->workspace;
	}
	if (span_is(name, "containerWorkspaceFolder")) {
		return place->is_shown ? place->workspace : NULL;
	}
	if (span_is(name, "localWorkspaceFolderBasename") ||
		span_is(name, "containerWorkspaceFolderBasename")) {
		return path_last_part(place->workspace);
	}
	*out_is_known = false;
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		*out_is_known = *out_is_known || span_is(kind, refused[i]);
	}
	return NULL;
}

/* Appends what stands for "${", name and "}". False: the text cannot be used. */
static bool append_variable(
	const struct exec_place *place, struct span whole, bool keeps_folder, struct buf *out)
{
	const struct span name = {whole.data + 2, whole.len - 3};
	bool is_known;
	const char *value = value_of(place, name, &is_known);
	if (!is_known || (keeps_folder && span_is(whole, folder))) {
		return buf_append(out, whole, NULL);
	}
	return value && buf_append(out, span_of(value), NULL);
}

char *devcontainer_expand(const struct exec_place *place, const char *text, bool keeps_folder)
{
	struct buf out;
	bool is_ok = true;
	buf_init(&out, EXPANDED_MAX);
	while (is_ok && *text) {
		const char *end = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;
		size_t len = end ? (size_t)(end + 1 - text) : 1;
		const struct span part = {text, len};
		is_ok = end ? append_variable(place, part, keeps_folder, &out)
		            : buf_append(&out, part, NULL);
		text += len;
	}
	char *whole = is_ok ? mem_strndup(buf_span(&out)) : NULL;
	buf_finish(&out);
	return whole;
}

void devcontainer_quote(struct buf *line, const char *word)
{
	(void)!buf_append(line, SPAN_LITERAL("'"), NULL);
	while (*word) {
		if (strncmp(word, folder, sizeof(folder) - 1) == 0) {
			(void)!buf_append(
				line, SPAN_LITERAL("'\"" DEVCONTAINER_FOLDER "\"'"), NULL);
			word += sizeof(folder) - 1;
			continue;
		}
		(void)!buf_append(
			line, *word == '\'' ? SPAN_LITERAL("'\\''") : (struct span){word, 1}, NULL);
		word++;
	}
	(void)!buf_append(line, SPAN_LITERAL("'"), NULL);
}
