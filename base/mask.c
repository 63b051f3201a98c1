/* SPDX-License-Identifier: MIT */
#include "base/mask.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/utf8.h"

struct span mask_next(struct span *text, char room[MASK_SIZE])
{
	size_t length = utf8_char_length(*text);
	struct span character = {text->data, length > 0 ? length : 1};
	*text = (struct span){text->data + character.len, text->len - character.len};
	unsigned char first = (unsigned char)character.data[0];
	unsigned char last = (unsigned char)character.data[character.len - 1];
	bool is_c1 = character.len == 2 && first == 0xc2 && last < 0xa0;
	if ((first < ' ' && first != '\n' && first != '\t') || first == 0x7f) {
		text_whole(room, MASK_SIZE, "^%c", first ^ 0x40);
	} else if (is_c1 || length == 0) {
		text_whole(room, MASK_SIZE, "<%02x>", last);
	} else if (utf8_is_reordering(character)) {
		text_whole(room, MASK_SIZE, "<U+%04X>", (unsigned)utf8_code_point(character));
	} else {
		return character;
	}
	return span_of(room);
}

char *mask_line(struct span text)
{
	char room[MASK_SIZE];
	struct buf line;
	buf_init(&line, SIZE_MAX / 2);
	while (text.len > 0) {
		struct span shown = mask_next(&text, room);
		bool is_break = shown.data[0] == '\n' || shown.data[0] == '\t';
		buf_add(&line, is_break ? SPAN_LITERAL(" ") : shown); // the buffer has no maximum
	}
	char *out = mem_strndup(buf_span(&line));
	buf_finish(&line);
	return out;
}
