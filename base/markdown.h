/* SPDX-License-Identifier: MIT */
#ifndef BASE_MARKDOWN_H
#define BASE_MARKDOWN_H

#include "base/buf.h"
#include "base/span.h"

/*
 * Text of somebody else's - a command, a path - inside of text of the broker's, which an editor
 * may show as Markdown (CommonMark 0.31: 6.1 "Code spans", 4.5 "Fenced code blocks"). Nothing in it
 * is taken for Markdown or HTML, ends the code, or stays unseen: a character that utf8_is_hidden
 * becomes <U+202E>. It reads well where Markdown is not known, too. The buffer's maximum is never
 * met: the caller has bounded the text.
 */

/* On one line, `like this`; of a long text the first `most` bytes, and how many more there are. */
void markdown_code(struct buf *out, struct span text, size_t most);

/* On lines of its own, with its line ends and tabs; neither before nor after it. */
void markdown_block(struct buf *out, struct span text);

#endif
