/* SPDX-License-Identifier: MIT */
#ifndef BASE_MARKDOWN_H
#define BASE_MARKDOWN_H

#include "base/buf.h"
#include "base/span.h"

/*
 * Puts foreign text (a command, a path) into text of the broker that an editor may show as Markdown
 * (CommonMark 0.31: 6.1 "Code spans", 4.5 "Fenced code blocks"). No part of it can act as Markdown
 * or HTML, end the code, or stay invisible: a character for which utf8_is_hidden is true becomes
 * <U+202E>. The result is also readable where Markdown is not rendered. The caller has bounded the
 * text, so that it never reaches the buffer's maximum.
 */
/*
 * Puts the text on one line, `like this`. Shows only the first `most` bytes of a longer text, and
 * the number of the other bytes.
 */
void markdown_code(struct buf *out, struct span text, size_t most);

/*
 * Puts the text on lines of its own, with its line ends and tabs. Adds no lines around the block.
 */
void markdown_block(struct buf *out, struct span text);

#endif
