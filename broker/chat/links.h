/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_LINKS_H
#define BROKER_CHAT_LINKS_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "base/span.h"

/*
 * Names of files in a prompt: "@" at the beginning of a word, then a path, absolute or relative to
 * the session's directory. After a backslash, any character belongs to the name, even a blank.
 */
enum { LINKS_MAX = 64 }; // of one prompt; further names stay text

/*
 * Writes the content blocks of a prompt into an open array. Each name of an existing file or folder
 * becomes a resource_link, which every agent accepts (ACP, "Content"); the rest is text, as it was
 * typed. Punctuation after a name belongs to it only if a file of that name exists. Blocks, because
 * it reads the file system.
 */
void links_write(struct json_writer *writer, const char *cwd, struct span text);

/*
 * The length of the word at the beginning of `text`, which ends at the first blank without a
 * backslash.
 */
size_t links_word_length(struct span text);

/*
 * links_unescape appends a typed name without its backslashes; links_escape appends a name in the
 * way it has to be typed.
 */
void links_unescape(struct span typed, struct buf *out);
void links_escape(struct span name, struct buf *out);

#endif
