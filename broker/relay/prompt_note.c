/* SPDX-License-Identifier: MIT */
#include "broker/relay/prompt_note.h"

#include <string.h>

/*
 * A byte that can continue a name, so that the text names another path; a slash before it makes a
 * URI.
 */
static bool is_of_name(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("-_.~%", byte)) || (byte & 0x80);
}

/* Whether a text names a directory or a path below it. */
static bool names(struct span text, const char *path)
{
	size_t len = strlen(path);
	const char *at = text.data;
	const char *end = text.data + text.len;
	while (len > 1 && (at = memmem(at, (size_t)(end - at), path, len))) {
		bool is_escape =
			at - text.data > 1 && at[-2] == '\\'; // in JSON: a line break, a tab
		char before = at > text.data && !is_escape ? at[-1] : ' ';
		const char *after = at + len;
		/* A full stop ends a sentence unless a name follows. */
		bool is_stop = after + 1 < end && *after == '.' && !is_of_name(after[1]);
		if (before != '/' && !is_of_name(before) &&
			(after == end || is_stop || !is_of_name(*after))) {
			return true;
		}
		at++;
	}
	return false;
}

static bool has_root(const struct session *session, const struct path_map_root *root)
{
	for (char **at = session->roots; at && *at; at++) {
		if (strcmp(*at, root->sides[PATH_TO_RUNTIME]) == 0) {
			return true;
		}
	}
	return false;
}

/* The session's root that the prompt names, or NULL. */
static const struct path_map_root *find_named(
	const struct peer *peer, const struct session *session, struct span prompt)
{
	for (size_t i = 0; i < peer->map.count; i++) {
		const struct path_map_root *root = &peer->map.roots[i];
		if (strcmp(root->sides[PATH_TO_LOCAL], root->sides[PATH_TO_RUNTIME]) != 0 &&
			has_root(session, root) && names(prompt, root->sides[PATH_TO_LOCAL])) {
			return root;
		}
	}
	return NULL;
}

/* ACP, a content block. */
static bool write_block(const struct path_map_root *root, struct buf *out, struct error *err)
{
	struct json_writer writer;
	struct buf text;
	buf_init(&text, 4 * FILE_PATH_MAX);
	const char *here = root->sides[PATH_TO_LOCAL];
	const char *there = root->sides[PATH_TO_RUNTIME];
	bool ok = buf_append_format(&text, err,
		"(acp-broker: in your sandbox, the directory %s is %s. Use that path for files and "
		"commands; your changes there are synced to the user. Write the user's own path "
		"only if the user asks about the path itself.)",
		here, there);
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "type", "text");
	json_write_member_string(&writer, "text", buf_span(&text));
	json_write_object_end(&writer);
	ok = json_write_end(&writer, err) && ok;
	buf_finish(&text);
	return ok;
}

bool prompt_note_add(
	struct peer *peer, struct session *session, const struct call *call, struct error *err)
{
	struct span prompt = message_place(&call->message, PLACE_PROMPT);
	if (peer->map.is_identity || session->knows_copy || prompt.len < 3 ||
		prompt.data[0] != '[') {
		return true;
	}
	const struct path_map_root *root = find_named(peer, session, prompt);
	if (!root) {
		return true;
	}
	struct buf block;
	buf_init(&block, 8 * FILE_PATH_MAX);
	size_t end = message_hit(&call->message, PLACE_PROMPT)->end - 1;
	bool ok = buf_append(&block, SPAN_LITERAL(","), err) && write_block(root, &block, err) &&
	          splice_add(call->edits, end, end, buf_span(&block), err);
	session->knows_copy = ok;
	buf_finish(&block);
	return ok;
}
