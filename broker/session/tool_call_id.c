/* SPDX-License-Identifier: MIT */
#include "broker/session/tool_call_id.h"

#include <string.h>

#include "base/json_doc.h"
#include "base/random.h"
#include "base/text.h"

#define PREFIX "acp-broker-"

enum {
	RAW_MAX = 6 * (sizeof(PREFIX) - 1), // bytes of the prefix, each spelled as an escape
};

static void create(char out[TOOL_CALL_ID_MAX], const char *prefix, const char *end)
{
	char digits[33];
	random_fill_hex(digits, sizeof(digits) - 1);
	text_whole(out, TOOL_CALL_ID_MAX, "%s%s%s", prefix, digits, end);
}

void tool_call_id_create(char out_id[TOOL_CALL_ID_MAX])
{
	create(out_id, PREFIX, "");
}

void tool_call_id_create_notice(char out_prefix[TOOL_CALL_ID_MAX])
{
	create(out_prefix, PREFIX "notice-", "-");
}

/* Compares a JSON value as it is spelled. */
static bool is_ours(struct span raw, const char *id)
{
	struct span prefix = SPAN_LITERAL(PREFIX);
	if (raw.len < prefix.len || raw.data[0] != '"') {
		return false;
	}
	struct span begin = {raw.data + 1, raw.len - 1 < RAW_MAX ? raw.len - 1 : RAW_MAX};
	if (!memchr(begin.data, '\\', begin.len)) {
		return span_starts_with(begin, prefix);
	}
	struct buf decoded;
	buf_init(&decoded, SIZE_MAX / 2);
	bool is_it = !json_decode_string(raw, &decoded, NULL) ||
	             span_starts_with(buf_span(&decoded), prefix);
	buf_finish(&decoded);
	return is_it;
}

/* A value that cannot be read could be the id, so it counts as the id. */
static bool is_id(struct span raw, const char *id)
{
	struct buf decoded;
	buf_init(&decoded, SIZE_MAX / 2);
	bool is_it = !json_decode_string(raw, &decoded, NULL) || span_is(buf_span(&decoded), id);
	buf_finish(&decoded);
	return is_it;
}

/* Whether a place of the message for such ids has one for which is_it is true. */
static bool find(const struct message *message, bool (*is_it)(struct span raw, const char *id),
	const char *id)
{
	const struct json_hit *hits = json_check_hits(message->check);
	for (size_t i = 0; i < json_check_hit_count(message->check); i++) {
		struct span raw = {message->text.data + hits[i].start, hits[i].end - hits[i].start};
		bool is_place = hits[i].place == PLACE_ANY_TOOL_CALL_ID ||
		                hits[i].place == PLACE_UPDATE_TOOL_CALL_ID ||
		                hits[i].place == PLACE_TOOL_CALL_ID;
		if (is_place && is_it(raw, id)) {
			return true;
		}
	}
	return false;
}

bool tool_call_id_is_named(const struct message *message)
{
	return find(message, is_ours, NULL);
}

bool tool_call_id_names(const struct message *message, const char *id)
{
	return find(message, is_id, id);
}
