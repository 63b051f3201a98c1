/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_writes.h"

#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "broker/session/notice.h"

enum {
	BEFORE = 512, // bytes before the words in which we look for a path
	AFTER = 256,  // bytes after them
};

/* A part of a peer. */
struct writes {
	int looks;
	char **told; // owned; the folders
};

static void finish(void *part, void *peer)
{
	words_free(((struct writes *)part)->told);
}

static const struct part_type type = {.size = sizeof(struct writes), .finish = finish};

static bool may_tell(const struct peer *peer)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	const struct writes *writes = parts_find(&peer->parts, &type);
	return sandbox && sandbox_capabilities(sandbox)->confined &&
	       (!writes || (writes->looks < GRANT_WRITES_LOOKS_MAX &&
				   words_count(writes->told) < GRANT_WRITES_TOLD_MAX));
}

/* ---- which folder ---- */

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "/._+@~-";

/* Whether the slash begins a path: no character of a path precedes it. An escape of JSON may. */
static bool begins_path(struct span text, const char *slash)
{
	size_t before = (size_t)(slash - text.data);
	return before == 0 || !strchr(plain, slash[-1]) || (before >= 2 && slash[-2] == '\\') ||
	       (before >= 6 && slash[-6] == '\\' && slash[-5] == 'u');
}

/* The next absolute path of plain characters, which need no quotes anywhere. */
static bool next_path(struct span *text, char out[FILE_PATH_MAX])
{
	const char *slash;
	while (text->len > 0 && (slash = memchr(text->data, '/', text->len))) {
		const char *limit = text->data + text->len;
		const char *end = slash;
		bool begins = begins_path(*text, slash);
		while (end < limit && *end && strchr(plain, *end)) {
			end++;
		}
		*text = (struct span){end, (size_t)(limit - end)};
		size_t len = (size_t)(end - slash);
		while (len > 1 && (slash[len - 1] == '.' || slash[len - 1] == '/')) {
			len--;
		}
		if (begins && len > 1 && text_whole(out, FILE_PATH_MAX, "%.*s", (int)len, slash)) {
			return true;
		}
	}
	return false;
}

/* strerror(EROFS), as programs of all languages print it, and Node's in small letters. */
static struct span around_words(struct span text)
{
	static const char words[] = "ead-only file system";
	const char *found = memmem(text.data, text.len, words, sizeof(words) - 1);
	if (!found) {
		return (struct span){NULL, 0};
	}
	size_t at = (size_t)(found - text.data);
	size_t from = at > BEFORE ? at - BEFORE : 0;
	size_t to = at + sizeof(words) - 1 + AFTER;
	return (struct span){text.data + from, (to < text.len ? to : text.len) - from};
}

static bool find_folder(const struct peer *peer, struct span text, char out[FILE_PATH_MAX])
{
	char path[FILE_PATH_MAX];
	for (int i = 0; i < GRANT_WRITES_PATHS_MAX && next_path(&text, path); i++) {
		if (sandbox_find_write_hint(agent_sandbox(peer->agent), path, out)) {
			return true;
		}
	}
	return false;
}

/* ---- telling ---- */

static void tell(struct peer *peer, const struct session *session, const char *folder)
{
	char text[FILE_PATH_MAX + 512];
	struct relay *relay = peer->relay;
	session = session ? session : session_choose(&relay->sessions, peer);
	if (session && !relay->editor_has_ended) {
		text_format(text, sizeof(text),
			"A program in the sandbox seems to have tried to write in %s, which is "
			"read-only there. allow-write = %s in [profile \"%s\"] allows it from the "
			"agent's next start. Your own programs may later run what the agent writes "
			"there: add the line only if the agent's work needs it",
			folder, folder, relay->config.profile->name);
		notice_send(relay, session, text, false);
	}
}

void grant_writes_look(struct peer *peer, const struct session *session, struct span text)
{
	char folder[FILE_PATH_MAX];
	struct span near = may_tell(peer) ? around_words(text) : (struct span){NULL, 0};
	if (near.len == 0) {
		return;
	}
	struct writes *writes = parts_get(&peer->parts, &type);
	writes->looks++;
	if (find_folder(peer, near, folder) &&
		!words_contain((const char *const *)writes->told, folder)) {
		words_append(&writes->told, folder);
		tell(peer, session, folder);
	}
}

void grant_writes_note(struct peer *peer, const struct call *call)
{
	if (may_tell(peer) &&
		span_is(message_place(&call->message, PLACE_UPDATE_KIND), "\"tool_call_update\"")) {
		grant_writes_look(
			peer, relay_session_of_agent(peer, &call->message), call->message.text);
	}
}
