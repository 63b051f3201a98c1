/* SPDX-License-Identifier: MIT */
#include "broker/relay/turn_words.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/json_doc.h"
#include "base/text.h"

/* The first text of the prompt (ACP, content blocks), or NULL; the caller owns it. */
static char *first_text(struct span prompt)
{
	struct error ignored; // a prompt may have more blocks than a document allows
	struct json_doc *doc = json_doc_parse_unchecked(prompt, &ignored);
	char *text = NULL;
	if (!doc || !json_is(doc, 0, JSON_ARRAY)) {
		json_doc_destroy(doc);
		return NULL;
	}
	for (json_node block = json_first(doc, 0); block != JSON_NODE_NONE && !text;
		block = json_next(doc, block)) {
		if (json_string_is(doc, json_get(doc, block, "type"), "text")) {
			text = json_string(doc, json_get(doc, block, "text"));
		}
	}
	json_doc_destroy(doc);
	return text;
}

/* Replaces runs of blanks and line breaks by one blank, in place. */
static void squeeze(char *text)
{
	char *to = text;
	for (const char *at = text; *at; at++) {
		bool is_blank = isspace((unsigned char)*at);
		if (!is_blank) {
			*to++ = *at;
		} else if (to > text && to[-1] != ' ') {
			*to++ = ' ';
		}
	}
	if (to > text && to[-1] == ' ') {
		to--;
	}
	*to = '\0';
}

void turn_words_note(struct session *session, const struct call *call)
{
	char words[TURN_WORDS_SIZE];
	char *text = first_text(message_place(&call->message, PLACE_PROMPT));
	free(session->words);
	session->words = NULL;
	if (text) {
		squeeze(text);
		text_format(words, sizeof(words), "%s", text);
		session->words = mem_strdup(words);
		free(text);
	}
}
