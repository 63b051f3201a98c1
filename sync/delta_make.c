/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store_impl.h"

/*
 * How two versions are compared, as rsync does it: each block of the older one has a sum, which is
 * looked for at every byte of the newer one; a place where both are equal is followed in both
 * directions as far as they stay equal. Sums are never believed, bytes are compared.
 */
enum {
	BLOCK_MIN = 4096,
	BLOCKS_MAX = 1 << 17, // of a larger file the blocks are larger
	SLOTS = 2 * BLOCKS_MAX,
	WINDOW_MIN = 256 << 10,
	RUN_MIN = 64,      // bytes in the same place that are worth a piece
	MISSES_MAX = 4096, // equal sums of unequal bytes, before it is given up
};

/* Odd, and no more is asked of it: who makes sums equal is stopped by MISSES_MAX. */
static const uint64_t multiplier = 0x9e3779b97f4a7c15U;

/* A part of a file in memory; the next one takes its place. */
struct window {
	int fd;                    // of the newer version
	struct delta_reader *from; // of the older one
	uint64_t size;             // of the file
	char *bytes;               // owned, `capacity`
	size_t capacity, len;
	uint64_t at;
	bool failed; // it could not be read
};

struct making {
	struct store *store;
	struct window now, before;
	struct delta_reader reader; // of the older version
	struct delta base;          // how the older version is made; its pieces are what is shared
	struct delta delta;         // the result; what is new has the part base.part_count
	struct extent *news;        // owned: what is new, in the file
	size_t news_count;
	uint64_t news_bytes, news_max;
	size_t block;
	uint64_t power;  // multiplier to the block
	uint64_t *sums;  // owned, of the blocks of the older version
	uint32_t *slots; // owned: the number of a block and one; 0: free
	uint32_t misses;
	uint64_t ahead;   // where the older version is compared: its offset less the newer one's
	bool is_followed; // `ahead` is known
};

/* ---- reading ---- */

static void window_init(struct window *window, uint64_t size, size_t block)
{
	window->size = size;
	window->capacity = 2 * block > WINDOW_MIN ? 2 * block : WINDOW_MIN;
	window->bytes = mem_alloc(window->capacity);
}

static bool read_fd(int fd, char *to, size_t len, uint64_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t count = pread(fd, to + done, len - done, (off_t)(at + done));
		if (count == 0 || (count < 0 && errno != EINTR)) {
			return false;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return true;
}

static bool window_read(struct window *window, char *to, size_t len, uint64_t at)
{
	bool read = window->from ? delta_reader_read(window->from, to, len, at)
	                         : read_fd(window->fd, to, len, at);
	window->failed = window->failed || !read;
	return read;
}

/* `len` bytes at `at`, which are there; NULL where they cannot be read. */
static const char *window_see(struct window *window, uint64_t at, size_t len)
{
	if (at < window->at || at + len > window->at + window->len) {
		uint64_t left = window->size - at;
		size_t want = left < window->capacity ? (size_t)left : window->capacity;
		window->at = at;
		window->len = 0;
		if (!window_read(window, window->bytes, want, at)) {
			return NULL;
		}
		window->len = want;
	}
	return window->bytes + (at - window->at);
}

/* How many bytes are equal from two places on, at most `max`. */
static uint64_t equal_run(struct making *making, uint64_t now, uint64_t before, uint64_t max)
{
	uint64_t left = making->before.size - before;
	uint64_t done = 0;
	max = left < max ? left : max;
	while (done < max) {
		size_t step = max - done < BLOCK_MIN ? (size_t)(max - done) : BLOCK_MIN;
		const char *a = window_see(&making->now, now + done, step);
		const char *b = window_see(&making->before, before + done, step);
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

/* How many are equal just before two places; less than a block, or its sum had been found. */
static uint64_t equal_back(struct making *making, uint64_t now, uint64_t before, uint64_t max)
{
	char a[BLOCK_MIN], b[BLOCK_MIN];
	uint64_t done = 0;
	max = before < max ? before : max;
	max = making->block < max ? making->block : max;
	while (done < max) {
		size_t step = max - done < BLOCK_MIN ? (size_t)(max - done) : BLOCK_MIN;
		size_t i = step;
		if (!window_read(&making->now, a, step, now - done - step) ||
			!window_read(&making->before, b, step, before - done - step)) {
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

static uint64_t sum_of(const char *bytes, size_t len)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < len; i++) {
		sum = sum * multiplier + (unsigned char)bytes[i] + 1;
	}
	return sum;
}

static size_t slot_of(uint64_t sum)
{
	return (size_t)((sum * multiplier) >> 32) % SLOTS;
}

/* Of equal blocks the first one is enough. */
static void add_block(struct making *making, uint32_t number, uint64_t sum)
{
	size_t slot = slot_of(sum);
	making->sums[number] = sum;
	while (making->slots[slot] > 0 && making->sums[making->slots[slot] - 1] != sum) {
		slot = (slot + 1) % SLOTS;
	}
	if (making->slots[slot] == 0) {
		making->slots[slot] = number + 1;
	}
}

static bool sum_piece(struct making *making, const struct delta_piece *piece)
{
	uint64_t block = making->block;
	uint64_t at = (piece->offset + block - 1) / block * block;
	for (; at + block <= piece->offset + piece->length; at += block) {
		const char *bytes = window_see(&making->before, at, making->block);
		if (!bytes) {
			return false;
		}
		add_block(making, (uint32_t)(at / block), sum_of(bytes, making->block));
	}
	return true;
}

/* Once: blocks that lie in one piece, and not in a hole. What is beside them is followed. */
static bool sum_blocks(struct making *making)
{
	if (making->slots) {
		return !making->before.failed;
	}
	making->sums = mem_alloc(BLOCKS_MAX * sizeof(making->sums[0]));
	making->slots = mem_alloc_zero(SLOTS * sizeof(making->slots[0]));
	for (uint32_t i = 0; i < making->base.piece_count; i++) {
		const struct delta_piece *piece = &making->base.pieces[i];
		if (piece->part != DELTA_HOLE && !sum_piece(making, piece)) {
			return false;
		}
	}
	return true;
}

/* Where the older version has these bytes; false where it has not. */
static bool find_block(struct making *making, uint64_t now, uint64_t sum, uint64_t *out_before)
{
	for (size_t slot = slot_of(sum); making->slots[slot] > 0; slot = (slot + 1) % SLOTS) {
		uint32_t number = making->slots[slot] - 1;
		if (making->sums[number] != sum) {
			continue;
		}
		uint64_t at = (uint64_t)number * making->block;
		if (equal_run(making, now, at, making->block) == making->block) {
			*out_before = at;
			return true;
		}
		making->misses++;
		return false;
	}
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

/* The first place from `at` on, before `stop`, that begins a block of the older version. */
static uint64_t find_moved(
	struct making *making, uint64_t at, uint64_t stop, uint64_t end, uint64_t *out_before)
{
	size_t block = making->block;
	bool is_possible = end - at >= block && sum_blocks(making);
	const char *bytes = is_possible ? window_see(&making->now, at, block) : NULL;
	uint64_t sum = bytes ? sum_of(bytes, block) : 0;
	while (bytes) {
		if (find_block(making, at, sum, out_before)) {
			return at;
		}
		if (at + block == end || at + 1 == stop || making->misses > MISSES_MAX) {
			break;
		}
		bytes = window_see(&making->now, at, block + 1);
		if (bytes) {
			sum = sum * multiplier + (unsigned char)bytes[block] + 1 -
			      making->power * ((unsigned char)bytes[0] + 1U);
			at++;
		}
	}
	return stop;
}

/* What of the data may be searched: places from `at` to `stop`, bytes up to `end`. */
struct search {
	uint64_t at, stop, end;
};

/* The same of places where `run` bytes are equal that did not move. */
static uint64_t find_unmoved(
	struct making *making, const struct search *search, size_t run, uint64_t *out_before)
{
	for (uint64_t at = search->at; at < search->stop && search->end - at >= run; at++) {
		uint64_t before = at + making->ahead;
		if (!making->is_followed || before >= making->before.size ||
			making->before.size - before < run) {
			break;
		}
		const char *a = window_see(&making->now, at, run);
		const char *b = window_see(&making->before, before, run);
		if (!a || !b) {
			break;
		}
		if (memcmp(a, b, run) == 0) {
			*out_before = before;
			return at;
		}
	}
	return search->stop;
}

/*
 * Most changes move nothing, and a whole block that is where it was ends them. What has moved is
 * looked for next, for which the older version is read once. Few equal bytes come last, for files
 * whose every block has changed: among zeros they would mislead.
 */
static uint64_t find_in(struct making *making, const struct search *search, uint64_t *out_before)
{
	uint64_t found = find_unmoved(making, search, making->block, out_before);
	if (found == search->stop) {
		found = find_moved(making, search->at, search->stop, search->end, out_before);
	}
	if (found == search->stop) {
		found = find_unmoved(making, search, RUN_MIN, out_before);
	}
	return found;
}

/* The first place from `at` on whose bytes the older version has; `end` without one. */
static uint64_t find_shared(struct making *making, uint64_t at, uint64_t end, uint64_t *out_before)
{
	uint64_t limit = at + making->news_max - making->news_bytes;
	while (at < end && at <= limit && !making->now.failed && !making->before.failed) {
		uint64_t step = 2 * (uint64_t)making->block;
		uint64_t stop = end - at < step ? end : at + step;
		uint64_t found = find_in(making, &(struct search){at, stop, end}, out_before);
		if (found < stop) {
			return found;
		}
		at = stop;
	}
	return end;
}

/* What is equal where the last equal bytes suggest it; 0 where nothing is. */
static uint64_t follow(struct making *making, uint64_t at, uint64_t end)
{
	uint64_t before = at + making->ahead;
	if (!making->is_followed || before >= making->before.size) {
		return 0;
	}
	return equal_run(making, at, before, end - at);
}

/* Data of the newer version, without holes. */
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
		if (!add_news(making, at, found - at) || making->now.failed ||
			making->before.failed) {
			return false;
		}
		at = found;
	}
	return true;
}

static bool compare(struct making *making)
{
	uint64_t size = making->now.size;
	making->is_followed = true; // most files change in their places
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

/* One piece: all of a whole object. */
static bool base_of_whole(struct store *store, const git_oid *content, struct delta *out_base)
{
	uint64_t size = 0;
	if (!whole_size(store, content, &size) || size == 0) {
		return false;
	}
	*out_base = (struct delta){.parts = {*content}, .part_count = 1};
	return delta_add(out_base, (struct delta_piece){.length = size});
}

/* The sizes of all, and the number of the largest. False where one is gone. */
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
 * A version that leads to too many parts, or to more than twice the bytes of the new one, keeps
 * more than it is worth: then the new one is compared with the largest part alone, the last
 * that was whole; and with nothing, if that is too large as well.
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

/* ---- all of it ---- */

static bool making_init(
	struct making *making, struct store *store, int fd, uint64_t size, const git_oid *before)
{
	*making = (struct making){.store = store, .news_max = size / 2, .block = BLOCK_MIN};
	making->now.fd = fd;
	delta_reader_init(&making->reader, store, &making->base);
	if (!find_base(store, before, size, &making->base)) {
		return false;
	}
	making->before.from = &making->reader;
	while (making->base.size / making->block >= BLOCKS_MAX) {
		making->block *= 2;
	}
	window_init(&making->now, size, making->block);
	window_init(&making->before, making->base.size, making->block);
	making->power = 1;
	for (size_t i = 0; i < making->block; i++) {
		making->power *= multiplier;
	}
	return true;
}

static void making_finish(struct making *making)
{
	delta_reader_finish(&making->reader);
	free(making->now.bytes);
	free(making->before.bytes);
	free(making->sums);
	free(making->slots);
	free(making->news);
	delta_finish(&making->base);
	delta_finish(&making->delta);
}

/* The parts that a piece leads to, and what is new as the last one. */
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

bool delta_make(struct store *store, int fd, uint64_t size, const git_oid *content,
	const git_oid *before, bool *out_made, struct error *err)
{
	struct making making;
	bool made = making_init(&making, store, fd, size, before) && compare(&making);
	bool good = !made || keep(&making, content, err);
	making_finish(&making);
	*out_made = made && good;
	return good;
}
