/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_JSONC_H
#define BROKER_INIT_JSONC_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Edits settings of editors: JSON with comments and trailing commas, which a person has written and
 * formatted. It adds a member to the text, in one place; every other byte stays as it is.
 */
enum jsonc_outcome {
	JSONC_ADDED, // `out` has the new text
	JSONC_SAME,  // the member exists with this value; `out` is empty
	JSONC_OTHER, // it exists with another value; `out` is empty
};

/*
 * Adds "name": value to the document's member `object`. Creates that object, and the document, if
 * they are missing. `value` is JSON on one or several lines; a tab at the beginning of a line
 * stands for one level of indentation. The new lines get the indentation and the line ends of the
 * text. Fails, and adds nothing, with ERROR_PROTOCOL if the text is invalid, or with ERROR_LIMIT if
 * it is nested too deeply; both name the line.
 */
bool jsonc_add(struct span text, const char *object, const char *name, struct span value,
	struct buf *out, enum jsonc_outcome *out_outcome, struct error *err) ATTR_NODISCARD;

#endif
