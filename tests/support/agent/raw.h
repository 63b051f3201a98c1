/* SPDX-License-Identifier: MIT */
#ifndef TESTS_AGENT_RAW_H
#define TESTS_AGENT_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * The scripted agent's own JSON reader: it works on spans of raw bytes and parses only the parts
 * that the caller asks for. It shares no code with the broker's checker, so that each can reveal
 * errors of the other. Malformed text ends a search; it never reads past the span.
 */

/* The value at the beginning of the text, after white space; empty when there is none. */
struct span raw_value(struct span text);

/* The value of an object's member (names compared after decoding); empty when absent. */
struct span raw_member(struct span object, const char *name);

/* raw_member, step by step: raw_path(message, "params.update.kind"). */
struct span raw_path(struct span object, const char *dotted);

/* The next element of an array; *rest is the array at first. False at its end. */
bool raw_next_element(struct span *rest, struct span *out_element);

/* A string decoded to UTF-8, owned by the caller; NULL for anything else. */
char *raw_text(struct span value);

/* Text as a JSON string with quotes, owned by the caller. */
char *raw_quote(struct span text);

#endif
