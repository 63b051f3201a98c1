/* SPDX-License-Identifier: MIT */
#include "base/config_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void config_text_init(struct config_text *source, struct span text)
{
	static const char mark[] = "\xef\xbb\xbf";
	bool is_marked = text.len > 2 && memcmp(text.data, mark, 3) == 0;
	*source = (struct config_text){.text = text, .at = is_marked ? 3 : 0, .next_line = 1};
	buf_init(&source->word, 2 * text.len + 2); // a section's name, a dot and a key
}

void config_text_finish(struct config_text *source)
{
	buf_finish(&source->word);
	free(source->section);
	source->section = NULL;
}

/* ---- characters and words ---- */

/* -1 at the end. Only "\n" ends a line. */
static int peek(struct config_text *source)
{
	struct span rest = {source->text.data + source->at, source->text.len - source->at};
	if (rest.len > 1 && rest.data[0] == '\r' && rest.data[1] == '\n') {
		source->at++;
		return '\n';
	}
	return rest.len > 0 ? (unsigned char)rest.data[0] : -1;
}

static int take(struct config_text *source)
{
	int character = peek(source);
	source->at += character >= 0;
	source->next_line += character == '\n';
	return character;
}

static bool is_blank(int character)
{
	return character == ' ' || character == '\t';
}

/* Except after a key, git takes a "\r" that ends no line for a blank, too. */
static bool is_space(int character)
{
	return is_blank(character) || character == '\r';
}

static void skip_line(struct config_text *source)
{
	int character;
	do {
		character = take(source);
	} while (character >= 0 && character != '\n');
}

static void put(struct config_text *source, int character)
{
	char byte = (char)character;
	buf_add(&source->word, (struct span){&byte, 1});
}

static void put_lower(struct config_text *source, int character)
{
	put(source, tolower(character));
}

static char *take_word(struct config_text *source)
{
	char *word = mem_strndup(buf_span(&source->word));
	buf_clear(&source->word);
	return word;
}

static bool is_name(int character)
{
	return character >= 0 && (isalnum(character) || character == '-');
}

static bool refuse(struct config_text *source, const char *wrong)
{
	source->wrong = wrong;
	return false;
}

/* ---- sections ---- */

/* Reads the quoted part of a section's name, after its quote. */
static bool take_quoted_name(struct config_text *source)
{
	for (int character = take(source); character != '"'; character = take(source)) {
		character = character == '\\' ? take(source) : character;
		if (character < 0 || character == '\n') {
			return refuse(source, "missing '\"' in section header");
		}
		if (character == '\0') { // git would cut the name there, and the key with it
			return refuse(source, "a NUL byte in a section header");
		}
		put(source, character);
	}
	return true;
}

/* Reads a section header after its "[". */
static bool take_section(struct config_text *source)
{
	int character = take(source);
	for (; is_name(character) || character == '.'; character = take(source)) {
		put_lower(source, character);
	}
	if (is_space(character)) {
		while (is_space(character)) {
			character = take(source);
		}
		if (character != '"') {
			return refuse(source, "missing '\"' in section header");
		}
		put(source, '.');
		if (!take_quoted_name(source)) {
			return false;
		}
		character = take(source);
	}
	free(source->section);
	source->section = take_word(source);
	if (character != ']') {
		return refuse(source, "missing ']' in section header");
	}
	return source->section[0] || refuse(source, "a section without a name");
}

/* ---- settings ---- */

static bool take_escaped(struct config_text *source)
{
	static const char letters[] = "\\\"ntb\n", bytes[] = "\\\"\n\t\b";
	int character = take(source);
	if (character < 0) {
		return true; // the end of the file also ends a line
	}
	const char *at = character > 0 ? strchr(letters, character) : NULL;
	if (at && character != '\n') {
		put(source, bytes[at - letters]);
	}
	return at || refuse(source, "unknown escape: only \\\\, \\\", \\n, \\t and \\b are known");
}

/*
 * Reads a value after its "=", up to the end of the line. It neither begins nor ends with unquoted
 * blanks. Those before its first character are dropped also after an empty "" and in the next line.
 * We keep the others as they are; git before 2.45 makes each of them a space.
 */
static bool take_value(struct config_text *source)
{
	size_t whole = 0; // without the blanks at the end
	bool is_quoted = false;
	for (int character = take(source); character >= 0; character = take(source)) {
		bool is_outside = !is_quoted && is_space(character);
		if (character == '\n') {
			break;
		}
		if (!is_quoted && (character == '#' || character == ';')) {
			skip_line(source);
			break;
		}
		if (character == '"') {
			is_quoted = !is_quoted;
		} else if (character == '\\') {
			if (!take_escaped(source)) {
				return false;
			}
		} else if (!is_outside || source->word.len > 0) {
			put(source, character);
		}
		whole = is_outside ? whole : source->word.len;
	}
	source->word.len = whole;
	return !is_quoted || refuse(source, "missing '\"' at the end of a value");
}

/* Reads what follows a key. *out_value stays as it is if there is no "=". */
static bool take_rest(struct config_text *source, char **out_value)
{
	int character = take(source);
	while (is_blank(character)) {
		character = take(source);
	}
	if (character != '=') { // nor may a comment follow
		return character < 0 || character == '\n' ||
		       refuse(source, "missing '=' after a key");
	}
	bool is_whole = take_value(source);
	*out_value = take_word(source);
	return is_whole;
}

static bool take_setting(struct config_text *source, char **out_key, char **out_value)
{
	char *value = NULL;
	if (source->section) {
		buf_add(&source->word, span_of(source->section));
		put(source, '.');
	}
	while (is_name(peek(source))) {
		put_lower(source, take(source));
	}
	char *key = take_word(source);
	if (!take_rest(source, &value)) {
		free(key);
		free(value);
		return false;
	}
	*out_key = key;
	*out_value = value;
	return true;
}

enum config_text_step config_text_next(struct config_text *source, char **out_key, char **out_value)
{
	while (source->at < source->text.len) {
		int character = peek(source);
		source->line = source->next_line;
		if (character == '#' || character == ';') {
			skip_line(source);
		} else if (is_space(character) || character == '\n') {
			take(source);
		} else if (character == '[') {
			take(source);
			if (!take_section(source)) {
				return CONFIG_TEXT_WRONG;
			}
		} else if (!isalpha(character)) {
			refuse(source, "neither a section nor a setting");
			return CONFIG_TEXT_WRONG;
		} else {
			bool is_taken = take_setting(source, out_key, out_value);
			return is_taken ? CONFIG_TEXT_SETTING : CONFIG_TEXT_WRONG;
		}
	}
	return CONFIG_TEXT_END;
}
