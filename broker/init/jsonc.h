/* SPDX-License-Identifier: MIT */
#ifndef BROKER_INIT_JSONC_H
#define BROKER_INIT_JSONC_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Settings of editors: JSON with comments and trailing commas, which a person has written and
 * formatted. A member is added to the text itself, in one place; every other byte stays as it is.
 */
enum jsonc_outcome {
	JSONC_ADDED, // `out` has the new text
	JSONC_SAME,  // the member is there with this value; `out` is empty
	JSONC_OTHER, // it is there with another value; `out` is empty
};

/*
 * Adds "name": value to the object that is the member `object` of the document, and makes that
 * object, and the document, where there is none. `value` is JSON on one line or several; a tab at
 * the beginning of a line stands for one level of indentation. Lines are indented, and end, as
 * those of the text do. ERROR_PROTOCOL or ERROR_LIMIT, with the line, where the text cannot be
 * understood, or is nested too deeply; nothing is added then.
 */
bool jsonc_add(struct span text, const char *object, const char *name, struct span value,
	struct buf *out, enum jsonc_outcome *out_outcome, struct error *err) ATTR_NODISCARD;

#endif
