/* SPDX-License-Identifier: MIT */
#include "broker/chat/keys.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

static const char paste_begin[] = "\033[200~";
static const char paste_end[] = "\033[201~";

void keys_init(struct keys *keys)
{
	*keys = (struct keys){.is_pasting = false};
	buf_init(&keys->held, KEYS_HELD_MAX);
	buf_init(&keys->paste, KEYS_PASTE_MAX);
	buf_init(&keys->out, KEYS_PASTE_MAX);
}

void keys_finish(struct keys *keys)
{
	buf_finish(&keys->held);
	buf_finish(&keys->paste);
	buf_finish(&keys->out);
}

/*
 * Moves bytes from `held` to the paste, except those that may be the first part of the paste's end.
 * True: the paste is whole.
 */
static bool take_paste(struct keys *keys)
{
	struct span held = buf_span(&keys->held);
	size_t end_len = strlen(paste_end);
	const char *end = held.len > 0 ? memmem(held.data, held.len, paste_end, end_len) : NULL;
	size_t len = end ? (size_t)(end - held.data) : held.len;
	for (size_t back = end_len - 1; !end && back > 0;
		back--) { // the first bytes of the end may be there
		if (back <= held.len && memcmp(held.data + held.len - back, paste_end, back) == 0) {
			len = held.len - back;
			break;
		}
	}
	size_t room = keys->paste.max - keys->paste.len;
	keys->is_cut = keys->is_cut || len > room;
	buf_add(&keys->paste,
		(struct span){held.data, len < room ? len : room}); // it was cut to fit
	buf_consume(&keys->held, len + (end ? end_len : 0));
	keys->is_pasting = !end;
	return end != NULL;
}

bool keys_has_room(const struct keys *keys)
{
	return keys->held.max - keys->held.len >= KEYS_READ_MAX;
}

void keys_add(struct keys *keys, struct span bytes)
{
	buf_add(&keys->held, bytes);
}

/* The length of the escape sequence at the beginning of the text; 0: it is not whole yet. */
static size_t sequence_length(struct span text)
{
	if (text.len < 2) {
		return 0;
	}
	if (text.data[1] == 'O') {
		return text.len < 3 ? 0 : 3;
	}
	struct span rest = {text.data + 1, text.len - 1};
	if (utf8_whole_length(rest) == 0) {
		return 0; // Alt and the first bytes of a character
	}
	if (text.data[1] != '[') {
		size_t whole = text.data[1] == '\033' ? 0 : utf8_char_length(rest);
		return text.data[1] == '\033' ? 1 : 1 + (whole > 0 ? whole : 1);
	}
	for (size_t i = 2; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		if (byte < 0x20 || byte > 0x3f || i == KEYS_SEQUENCE_MAX) {
			return i + 1;
		}
	}
	return 0;
}

static bool give(struct keys *keys, enum key_kind kind, size_t len, struct key *out_key)
{
	buf_clear(&keys->out);
	buf_add(&keys->out, (struct span){buf_span(&keys->held).data, len});
	buf_consume(&keys->held, len);
	*out_key = (struct key){.kind = kind, .text = buf_span(&keys->out)};
	return true;
}

/* Terminals send the line ends of a paste as "\r". */
static bool give_paste(struct keys *keys, struct key *out_key)
{
	struct span paste = buf_span(&keys->paste);
	buf_clear(&keys->out);
	for (size_t i = 0; i < paste.len; i++) {
		char byte = paste.data[i];
		bool is_double = byte == '\n' && i > 0 && paste.data[i - 1] == '\r';
		if (byte == '\r') {
			byte = '\n';
		}
		bool ok = byte == '\0' || is_double ||
		          buf_append(&keys->out, (struct span){&byte, 1}, NULL);
		assert(ok);
		(void)ok;
	}
	*out_key = (struct key){
		.kind = KEY_PASTE, .text = buf_span(&keys->out), .is_cut = keys->is_cut};
	buf_clear(&keys->paste);
	keys->is_cut = false;
	return true;
}

bool keys_next(struct keys *keys, struct key *out_key)
{
	for (;;) {
		if (keys->is_pasting) {
			return take_paste(keys) && give_paste(keys, out_key);
		}
		struct span held = buf_span(&keys->held);
		if (held.len == 0) {
			return false;
		}
		if (held.data[0] != '\033') {
			size_t length = utf8_char_length(held);
			bool is_cut = length == 0 && utf8_whole_length(held) == 0;
			return !is_cut && give(keys, KEY_CHARACTER, length ? length : 1, out_key);
		}
		size_t length = sequence_length(held);
		if (length == 0) {
			return false;
		}
		if (length != strlen(paste_begin) || memcmp(held.data, paste_begin, length) != 0) {
			return give(keys, KEY_SEQUENCE, length, out_key);
		}
		buf_consume(&keys->held, length);
		keys->is_pasting = true;
	}
}

void keys_forget(struct keys *keys)
{
	struct key key;
	while (keys_next(keys, &key)) {
	}
	buf_clear(&keys->paste);
}
