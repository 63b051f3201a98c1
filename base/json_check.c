/* SPDX-License-Identifier: MIT */
#include "base/json_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_check_impl.h"
#include "base/json_fast.h"
#include "base/buf.h"

enum {
	HITS_FIRST = 64,  // hits allocated at first
	HITS_IDLE = 1024, // hits whose memory is kept between documents
};

struct json_check *json_check_create(const struct json_places *places)
{
	struct json_check *check = mem_alloc_zero(sizeof(*check));
	check->places = places;
	check->fast = json_fast_best();
	json_check_reset(check);
	return check;
}

void json_check_destroy(struct json_check *check)
{
	if (check) {
		free(check->hits);
		free(check);
	}
}

void json_check_reset(struct json_check *check)
{
	if (check->hit_capacity > HITS_IDLE) {
		free(check->hits);
		check->hits = NULL;
		check->hit_capacity = 0;
	}
	check->hit_count = 0;
	memset(check->begun, 0, sizeof(check->begun));
	memset(check->ended, 0, sizeof(check->ended));
	for (size_t i = 0; i < JSON_KEEP_PLACES; i++) {
		check->keeps[i].node = NULL;
		check->keeps[i].active = false;
	}
	check->keeping = 0;
	check->state = STATE_START;
	check->failed = false;
	check->depth = 0;
	check->in_object = false;
	check->value = json_places_root(check->places);
	check->container = NULL;
	check->piece_start = 0;
}

static bool bit_is_set(const uint64_t *bits, int index)
{
	return (bits[index / 64] >> (index % 64) & 1) != 0;
}

static void bit_set(uint64_t *bits, int index)
{
	bits[index / 64] |= UINT64_C(1) << (index % 64);
}

static const unsigned char *fail_at(
	struct json_check *check, size_t position, enum error_code code, const char *text)
{
	check->failed = true;
	check->error_at = position;
	check->error_code = code;
	check->error_text = text;
	return NULL;
}

const unsigned char *json_fail(struct json_check *check, const unsigned char *at, const char *text)
{
	return fail_at(check, json_position(check, at), ERROR_PROTOCOL, text);
}

const unsigned char *json_fail_limit(
	struct json_check *check, const unsigned char *at, const char *text)
{
	return fail_at(check, json_position(check, at), ERROR_LIMIT, text);
}

static bool report(const struct json_check *check, struct error *err)
{
	return error_set(
		err, check->error_code, "byte %zu: %s", check->error_at, check->error_text);
}

/* Keeps the bytes of the value in this piece, up to `end`. */
static void keep_bytes(const struct json_check *check, struct json_keep *keep, size_t end)
{
	size_t from = keep->start > check->piece_start ? keep->start : check->piece_start;
	size_t more = end - from;
	if (keep->len > JSON_KEEP_MAX || more > JSON_KEEP_MAX - keep->len) {
		keep->len = JSON_KEEP_MAX + 1;
		return;
	}
	if (more > 0) {
		memcpy(keep->bytes + keep->len, check->piece + (from - check->piece_start), more);
		keep->len += more;
	}
}

/* A repeated place is not kept again. */
static void keep_begin(struct json_check *check, const struct json_place_node *node, size_t start)
{
	for (size_t i = 0; i < JSON_KEEP_PLACES; i++) {
		struct json_keep *keep = &check->keeps[i];
		if (keep->node == node) {
			return;
		}
		if (!keep->node) {
			keep->node = node;
			keep->start = start;
			keep->len = 0;
			keep->active = true;
			check->keeping++;
			return;
		}
	}
}

static void keep_end(
	struct json_check *check, const struct json_place_node *node, size_t start, size_t end)
{
	for (size_t i = 0; i < JSON_KEEP_PLACES; i++) {
		struct json_keep *keep = &check->keeps[i];
		if (keep->active && keep->node == node && keep->start == start) {
			keep_bytes(check, keep, end);
			keep->active = false;
			check->keeping--;
		}
	}
}

bool json_place_begin(struct json_check *check, const struct json_place_node *node, size_t start)
{
	if ((node->flags & JSON_PLACE_ONCE) && bit_is_set(check->begun, node->place)) {
		fail_at(check, start, ERROR_PROTOCOL, "a member that must be unique occurs again");
		return false;
	}
	bit_set(check->begun, node->place);
	if (node->flags & JSON_PLACE_KEEP) {
		keep_begin(check, node, start);
	}
	return true;
}

bool json_place_end(struct json_check *check, const struct json_place_node *node, size_t start,
	const unsigned char *at)
{
	size_t end = json_position(check, at);
	if (node->flags & JSON_PLACE_KEEP) {
		keep_end(check, node, start, end);
	}
	if (check->hit_count == JSON_HITS_MAX) {
		json_fail_limit(check, at, "too many values of known members");
		return false;
	}
	if (check->hit_count == check->hit_capacity) {
		check->hit_capacity = check->hit_capacity ? check->hit_capacity * 2 : HITS_FIRST;
		check->hits =
			mem_realloc(check->hits, check->hit_capacity * sizeof(check->hits[0]));
	}
	if (!bit_is_set(check->ended, node->place)) {
		bit_set(check->ended, node->place);
		check->first_hits[node->place] = (uint32_t)check->hit_count;
	}
	check->hits[check->hit_count++] = (struct json_hit){
		.start = start,
		.end = end,
		.place = (uint32_t)node->place,
		.depth = check->depth,
	};
	return true;
}

bool json_check_feed(struct json_check *check, struct span bytes, struct error *err)
{
	assert(!check->failed);
	if (bytes.len == 0) {
		return true;
	}
	check->piece = (const unsigned char *)bytes.data;
	if (!json_run(check, check->piece, check->piece + bytes.len)) {
		return report(check, err);
	}
	size_t piece_end = check->piece_start + bytes.len;
	for (size_t i = 0; check->keeping > 0 && i < JSON_KEEP_PLACES; i++) {
		if (check->keeps[i].active) {
			keep_bytes(check, &check->keeps[i], piece_end);
		}
	}
	check->piece_start = piece_end;
	check->piece = NULL;
	return true;
}

bool json_check_end(struct json_check *check, struct error *err)
{
	assert(!check->failed);
	/* A number at the top level ends with the input; a space shows whether it may end here. */
	if (check->state == STATE_NUMBER && check->depth == 0 &&
		!json_check_feed(check, SPAN_LITERAL(" "), err)) {
		return false;
	}
	if (check->state != STATE_DONE) {
		fail_at(check, check->piece_start, ERROR_PROTOCOL, "the document is not complete");
		return report(check, err);
	}
	return true;
}

bool json_check_is_blank(const struct json_check *check)
{
	return check->state == STATE_START && !check->failed;
}

size_t json_check_hit_count(const struct json_check *check)
{
	return check->hit_count;
}

const struct json_hit *json_check_hits(const struct json_check *check)
{
	return check->hits;
}

const struct json_hit *json_check_find(const struct json_check *check, int place)
{
	if (place < 0 || place >= JSON_PLACE_IDS || !bit_is_set(check->ended, place)) {
		return NULL;
	}
	return &check->hits[check->first_hits[place]];
}

bool json_check_kept(const struct json_check *check, int place, struct span *out_bytes)
{
	for (size_t i = 0; i < JSON_KEEP_PLACES; i++) {
		const struct json_keep *keep = &check->keeps[i];
		if (keep->node && keep->node->place == place) {
			if (keep->active || keep->len > JSON_KEEP_MAX) {
				return false;
			}
			*out_bytes = (struct span){keep->bytes, keep->len};
			return true;
		}
	}
	return false;
}
