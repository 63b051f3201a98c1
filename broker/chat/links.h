/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_LINKS_H
#define BROKER_CHAT_LINKS_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "base/span.h"

/*
 * Names of files in a prompt: "@" at the beginning of a word, then a path, absolute or relative to
 * the session's directory. A backslash makes the next character a part of the name, also a blank.
 */
enum { LINKS_MAX = 64 }; // of one prompt; further names stay text

/*
 * Writes the content blocks of a prompt into an open array: its text and, in the place of each
 * name of a file or folder that is there, a resource_link, which every agent takes (ACP,
 * "Content"). Any other word stays as it was typed. Punctuation behind a name is not a part of it,
 * unless such a file is there. Asks the file system: blocks.
 */
void links_write(struct json_writer *writer, const char *cwd, struct span text);

/* The bytes from the beginning of `text` to the first blank that no backslash protects. */
size_t links_word_length(struct span text);

/* Appends the name that was typed, without its backslashes; and a name as it has to be typed. */
void links_unescape(struct span typed, struct buf *out);
void links_escape(struct span name, struct buf *out);

#endif
