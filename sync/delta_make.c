/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/delta_impl.h"

/*
 * Compares two versions like rsync does. Each block of the older one has a sum, which is searched
 * for at every byte of the newer one. A match is extended in both directions as far as the bytes
 * are equal. Sums are never trusted: bytes are compared. The author of the files may have made this
 * slow on purpose, so the work is counted.
 */
enum {
	RUN_MIN = 64,      // bytes; a shorter match at the same offset is not worth a piece
	MISSES_MAX = 4096, // equal sums of unequal bytes, before it gives up
	WORK_TIMES = 16,   // the work limit is this many times the bytes of both versions
};

/* And this much more, because each piece may read a window of both. */
static const uint64_t work_least = (uint64_t)2 << 30;

struct making {
	struct store *store;
	struct delta_work work;
	struct delta_window now, before;
	struct delta_reader reader; // of the older version
	struct delta base;   // the parts of the older version; the shared pieces refer to them
	struct delta delta;  // the result; new bytes have the part base.part_count
	struct extent *news; // owned: the new bytes, in the file
	size_t news_count;
	uint64_t news_bytes, news_max;
	struct delta_blocks blocks; // of the older version
	bool has_blocks;            // the blocks were read
	uint32_t misses;
	uint64_t ahead;   // offset in the older version minus offset in the newer one
	bool is_followed; // `ahead` is known
};

/* ---- equal bytes ---- */

/* How many bytes from two offsets on are equal, at most `max`. */
static uint64_t equal_run(struct making *making, uint64_t now, uint64_t before, uint64_t max)
{
	uint64_t left = making->before.size - before;
	uint64_t done = 0;
	max = left < max ? left : max;
	while (done < max) {
		size_t step = max - done < DELTA_BLOCK_MIN ? (size_t)(max - done) : DELTA_BLOCK_MIN;
		const char *a = delta_window_see(&making->now, now + done, step);
		const char *b = delta_window_see(&making->before, before + done, step);
		if (!a || !b) {
			break;
		}
		if (memcmp(a, b, step) != 0) {
			size_t i = 0;
			while (a[i] == b[i]) {
				i++;
			}
			return done + i;
		}
		done += step;
	}
	return done;
}

/*
 * How many bytes before two offsets are equal; less than a block, or its sum would have been found.
 */
static uint64_t equal_back(struct making *making, uint64_t now, uint64_t before, uint64_t max)
{
	char a[DELTA_BLOCK_MIN], b[DELTA_BLOCK_MIN];
	uint64_t done = 0;
	max = before < max ? before : max;
	max = making->blocks.block < max ? making->blocks.block : max;
	while (done < max) {
		size_t step = max - done < DELTA_BLOCK_MIN ? (size_t)(max - done) : DELTA_BLOCK_MIN;
		size_t i = step;
		if (!delta_window_read(&making->now, a, step, now - done - step) ||
			!delta_window_read(&making->before, b, step, before - done - step)) {
			break;
		}
		while (i > 0 && a[i - 1] == b[i - 1]) {
			i--;
		}
		done += step - i;
		if (i > 0) {
			break;
		}
	}
	return done;
}

/* ---- the blocks of the older version ---- */

static bool sum_piece(struct making *making, const struct delta_piece *piece)
{
	struct delta_blocks *blocks = &making->blocks;
	uint64_t block = blocks->block;
	uint64_t at = (piece->offset + block - 1) / block * block;
	for (; at + block <= piece->offset + piece->length; at += block) {
		const char *bytes = delta_window_see(&making->before, at, blocks->block);
		if (!bytes) {
			return false;
		}
		delta_blocks_add(blocks, (uint32_t)(at / block), delta_blocks_sum(blocks, bytes));
	}
	return true;
}

/*
 * Done once: adds the blocks that lie in one piece and in no hole. Bytes beside them are found by
 * extending matches.
 */
static bool sum_blocks(struct making *making)
{
	for (uint32_t i = 0; !making->has_blocks && i < making->base.piece_count; i++) {
		const struct delta_piece *piece = &making->base.pieces[i];
		if (piece->part != DELTA_HOLE && !sum_piece(making, piece)) {
			return false;
		}
	}
	making->has_blocks = true;
	return true;
}

/* The offset of these bytes in the older version; false if it does not have them. */
static bool find_block(struct making *making, uint64_t now, uint64_t sum, uint64_t *out_before)
{
	struct delta_blocks *blocks = &making->blocks;
	uint64_t probes = blocks->probes;
	uint32_t number = 0;
	bool is_known = delta_blocks_find(blocks, sum, &number);
	making->work.done += blocks->probes - probes;
	if (!is_known) {
		return false;
	}
	*out_before = (uint64_t)number * blocks->block;
	if (equal_run(making, now, *out_before, blocks->block) == blocks->block) {
		return true;
	}
	making->work.done += blocks->block;
	making->misses++;
	return false;
}

/* ---- the pieces ---- */

static bool add_news(struct making *making, uint64_t at, uint64_t length)
{
	if (length == 0) {
		return true;
	}
	if (making->news_count % 64 == 0) {
		making->news = mem_realloc(
			making->news, (making->news_count + 64) * sizeof(making->news[0]));
	}
	making->news[making->news_count++] = (struct extent){at, length};
	struct delta_piece piece = {
		.length = length, .at = making->news_bytes, .part = making->base.part_count};
	making->news_bytes += length;
	return making->news_bytes <= making->news_max && delta_add(&making->delta, piece);
}

static bool add_shared(struct making *making, uint64_t before, uint64_t length)
{
	while (length > 0) {
		const struct delta_piece *piece = delta_piece_at(&making->base, before);
		uint64_t skipped = before - piece->offset;
		uint64_t count =
			piece->length - skipped < length ? piece->length - skipped : length;
		struct delta_piece shared = {.length = count, .part = piece->part};
		shared.at = piece->part == DELTA_HOLE ? 0 : piece->at + skipped;
		if (!delta_add(&making->delta, shared)) {
			return false;
		}
		before += count;
		length -= count;
	}
	return true;
}

/* ---- comparing ---- */

/* Where to search: offsets from `at` to `stop`, bytes up to `end`. */
struct search {
	uint64_t at, stop, end;
};

/* The first offset at which a block of the older version begins; `stop` if there is none. */
static uint64_t find_moved(struct making *making, const struct search *search, uint64_t *out_before)
{
	const struct delta_blocks *blocks = &making->blocks;
	size_t block = blocks->block;
	uint64_t at = search->at;
	bool is_possible = search->end - at >= block && sum_blocks(making);
	const char *bytes = is_possible ? delta_window_see(&making->now, at, block) : NULL;
	uint64_t sum = bytes ? delta_blocks_sum(blocks, bytes) : 0;
	while (bytes) {
		if (find_block(making, at, sum, out_before)) {
			return at;
		}
		if (at + block == search->end || at + 1 == search->stop ||
			making->misses > MISSES_MAX) {
			break;
		}
		bytes = delta_window_see(&making->now, at, block + 1);
		if (bytes) {
			sum = delta_blocks_roll(blocks, sum, bytes);
			at++;
		}
	}
	return search->stop;
}

/* The first offset at which `run` bytes are equal that did not move. Looks at each byte once. */
static uint64_t find_unmoved(
	struct making *making, const struct search *search, size_t run, uint64_t *out_before)
{
	uint64_t first = search->at; // everything is equal from here to `at`
	for (uint64_t at = first; first < search->stop && search->end - first >= run; at++) {
		uint64_t before = first + making->ahead;
		if (!making->is_followed || before >= making->before.size ||
			making->before.size - before < run) {
			break;
		}
		const char *a = delta_window_see(&making->now, at, 1);
		const char *b = delta_window_see(&making->before, at + making->ahead, 1);
		if (!a || !b) {
			break;
		}
		if (*a != *b) {
			first = at + 1;
		} else if (at + 1 - first == run) {
			*out_before = before;
			return first;
		}
	}
	return search->stop;
}

/*
 * Most changes move nothing, and end at a whole block that is still in its place. Moved blocks are
 * searched next, for which the older version is read once. Short matches come last, for files in
 * which every block has changed: among zeros they would mislead.
 */
static uint64_t find_in(struct making *making, const struct search *search, uint64_t *out_before)
{
	uint64_t found = find_unmoved(making, search, making->blocks.block, out_before);
	if (found == search->stop) {
		found = find_moved(making, search, out_before);
	}
	if (found == search->stop) {
		found = find_unmoved(making, search, RUN_MIN, out_before);
	}
	return found;
}

/* The first offset from `at` on whose bytes the older version has; `end` if there is none. */
static uint64_t find_shared(struct making *making, uint64_t at, uint64_t end, uint64_t *out_before)
{
	uint64_t limit = at + making->news_max - making->news_bytes;
	while (at < end && at <= limit && !making->work.failed) {
		uint64_t step = 2 * (uint64_t)making->blocks.block;
		uint64_t stop = end - at < step ? end : at + step;
		making->work.done += stop - at;
		uint64_t found = find_in(making, &(struct search){at, stop, end}, out_before);
		if (found < stop) {
			return found;
		}
		at = stop;
	}
	return end;
}

/* How many bytes are equal at the offset that the last match suggests. */
static uint64_t follow(struct making *making, uint64_t at, uint64_t end)
{
	uint64_t before = at + making->ahead;
	if (!making->is_followed || before >= making->before.size) {
		return 0;
	}
	return equal_run(making, at, before, end - at);
}

/* Compares data of the newer version, without holes. */
static bool compare_data(struct making *making, uint64_t at, uint64_t end)
{
	while (at < end) {
		uint64_t length = follow(making, at, end);
		if (length > 0) {
			if (!add_shared(making, at + making->ahead, length)) {
				return false;
			}
			at += length;
			continue;
		}
		uint64_t before = 0;
		uint64_t found = find_shared(making, at, end, &before);
		if (found < end) {
			uint64_t back = equal_back(making, found, before, found - at);
			found -= back;
			making->ahead = before - back - found;
			making->is_followed = true;
		}
		if (!add_news(making, at, found - at) || making->work.failed) {
			return false;
		}
		at = found;
	}
	return true;
}

static bool compare(struct making *making)
{
	uint64_t size = making->now.size;
	making->is_followed = true; // most files change without moving bytes
	for (uint64_t at = 0; at < size;) {
		struct extent data = extent_next(making->now.fd, at, size);
		struct delta_piece hole = {.length = data.offset - at, .part = DELTA_HOLE};
		if ((hole.length > 0 && !delta_add(&making->delta, hole)) ||
			!compare_data(making, data.offset, data.offset + data.length)) {
			return false;
		}
		at = data.offset + data.length;
	}
	return true;
}

/* ---- the older version ---- */

static bool whole_size(struct store *store, const git_oid *content, uint64_t *out_size)
{
	struct stat status;
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	if (fstatat(store->folder_fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		return false;
	}
	*out_size = (uint64_t)status.st_size;
	return true;
}

/* Describes a version that the store has as a whole object: it is one piece. */
static bool base_of_whole(struct store *store, const git_oid *content, struct delta *out_base)
{
	uint64_t size = 0;
	if (!whole_size(store, content, &size) || size == 0) {
		return false;
	}
	*out_base = (struct delta){.parts = {*content}, .part_count = 1};
	return delta_add(out_base, (struct delta_piece){.length = size});
}

/* Gets the sizes of all parts, and the index of the largest. False if one is missing. */
static bool measure_parts(
	struct store *store, const struct delta *delta, uint64_t *out_total, uint32_t *out_largest)
{
	uint64_t total = 0, largest_size = 0;
	for (uint32_t i = 0; i < delta->part_count; i++) {
		uint64_t size = 0;
		if (!whole_size(store, &delta->parts[i], &size)) {
			return false;
		}
		total += size;
		if (size > largest_size) {
			*out_largest = i;
			largest_size = size;
		}
	}
	*out_total = total;
	return true;
}

/*
 * A version with too many parts, or with more than twice the bytes of the new one, would keep too
 * much alive. Then the new version is compared only with the largest part, which is the last whole
 * version; or with nothing, if that is too large as well.
 */
static bool find_base(
	struct store *store, const git_oid *before, uint64_t size, struct delta *out_base)
{
	struct error ignored;
	struct delta base;
	uint64_t total = 0;
	uint32_t largest = 0;
	if (!big_has(store, before, true)) {
		return false;
	}
	if (!base_of_whole(store, before, out_base)) {
		if (!delta_read(store, before, &base, &ignored)) {
			return false;
		}
		bool is_known = measure_parts(store, &base, &total, &largest);
		if (is_known && base.part_count < DELTA_PARTS_MAX && total / 2 <= size) {
			*out_base = base;
			return true;
		}
		git_oid whole = base.parts[largest];
		delta_finish(&base);
		if (!is_known || !base_of_whole(store, &whole, out_base)) {
			return false;
		}
	}
	return out_base->size / 2 <= size;
}

/* ---- the whole ---- */

static bool making_init(
	struct making *making, struct store *store, const struct delta_request *request)
{
	*making = (struct making){.store = store, .news_max = request->size / 2};
	making->now.fd = request->fd;
	delta_reader_init(&making->reader, store, &making->base);
	if (!find_base(store, request->before, request->size, &making->base)) {
		return false;
	}
	uint64_t base_size = making->base.size, most = (uint64_t)DELTA_SIZE_MAX_GIB << 30;
	if (request->size > most || base_size > most) {
		return false;
	}
	uint64_t usual = WORK_TIMES * (request->size + base_size) + work_least;
	making->work.max = request->work_max ? request->work_max : usual;
	making->work.is_cancelled = request->is_cancelled;
	making->now.work = making->before.work = &making->work;
	making->before.from = &making->reader;
	delta_blocks_init(&making->blocks, base_size);
	delta_window_init(&making->now, request->size, making->blocks.block);
	delta_window_init(&making->before, base_size, making->blocks.block);
	return true;
}

static void making_finish(struct making *making)
{
	delta_reader_finish(&making->reader);
	delta_window_finish(&making->now);
	delta_window_finish(&making->before);
	delta_blocks_finish(&making->blocks);
	free(making->news);
	delta_finish(&making->base);
	delta_finish(&making->delta);
}

/* Takes the parts that the pieces refer to, and the new bytes as the last part. */
static void take_parts(struct delta *delta, const git_oid *parts)
{
	uint32_t numbers[DELTA_PARTS_MAX];
	memset(numbers, -1, sizeof(numbers));
	for (uint32_t i = 0; i < delta->piece_count; i++) {
		struct delta_piece *piece = &delta->pieces[i];
		if (piece->part == DELTA_HOLE) {
			continue;
		}
		if (numbers[piece->part] == UINT32_MAX) {
			numbers[piece->part] = delta->part_count;
			delta->parts[delta->part_count++] = parts[piece->part];
		}
		piece->part = numbers[piece->part];
	}
}

static bool keep(struct making *making, const git_oid *content, struct error *err)
{
	git_oid parts[DELTA_PARTS_MAX];
	memcpy(parts, making->base.parts, making->base.part_count * sizeof(parts[0]));
	if (making->news_count > 0 &&
		!big_put_parts(making->store, making->now.fd, making->news, making->news_count,
			&parts[making->base.part_count], err)) {
		return false;
	}
	take_parts(&making->delta, parts);
	return delta_write(making->store, content, &making->delta, err);
}

bool delta_make(struct store *store, const struct delta_request *request, bool *out_made,
	uint64_t *out_work, struct error *err)
{
	struct making making;
	bool made = making_init(&making, store, request) && compare(&making);
	bool good = !made || keep(&making, request->content, err);
	*out_work = making.work.done;
	making_finish(&making);
	*out_made = made && good;
	return good;
}
