/* SPDX-License-Identifier: MIT */
#include "broker/init/unified.h"

#include <assert.h>

#include "base/mask.h"
#include "broker/chat/diff.h"

static size_t count_lines(struct span text)
{
	size_t count = 0;
	while (text.len > 0) {
		diff_take_line(&text);
		count++;
	}
	return count;
}

static void append_masked(struct buf *out, struct span line)
{
	while (line.len > 0) {
		char room[MASK_SIZE];
		buf_add(out, mask_next(&line, room));
	}
}

static void append_lines(struct buf *out, char sign, struct span text)
{
	bool is_cut = text.len > 0 && text.data[text.len - 1] != '\n';
	while (text.len > 0) {
		struct span line = diff_take_line(&text);
		buf_add(out, (struct span){&sign, 1});
		append_masked(out, line);
		buf_add(out, SPAN_LITERAL("\n"));
	}
	if (is_cut) {
		buf_add(out, SPAN_LITERAL("\\ No newline at end of file\n"));
	}
}

/* The last lines of a text. */
static struct span lines_before(struct span text)
{
	size_t at = text.len;
	for (size_t lines = 0; at > 0 && lines < UNIFIED_CONTEXT; lines++) {
		at--;
		while (at > 0 && text.data[at - 1] != '\n') {
			at--;
		}
	}
	return (struct span){text.data + at, text.len - at};
}

static struct span lines_after(struct span text)
{
	struct span rest = text;
	for (size_t lines = 0; rest.len > 0 && lines < UNIFIED_CONTEXT; lines++) {
		diff_take_line(&rest);
	}
	return (struct span){text.data, text.len - rest.len};
}

/* A range without lines has the number of the line before it. */
static void append_range(struct buf *out, char sign, size_t first, size_t count)
{
	bool ok = buf_append_format(
		out, NULL, " %c%zu,%zu", sign, count > 0 ? first : first - 1, count);
	assert(ok); // the buffer has no maximum that matters
	(void)ok;
}

void unified_write(
	const char *name, const struct span *old_text, struct span new_text, struct buf *out)
{
	struct diff_lines lines;
	struct span old = old_text ? *old_text : (struct span){"", 0};
	diff_find(old, new_text, &lines);
	if (lines.removed.len == 0 && lines.added.len == 0) {
		return;
	}
	size_t same = (size_t)(lines.added.data - new_text.data);
	size_t end = same + lines.added.len;
	struct span all_before = {new_text.data, same};
	struct span before = lines_before(all_before);
	struct span after = lines_after((struct span){new_text.data + end, new_text.len - end});
	size_t first = count_lines(all_before) - count_lines(before) + 1;
	size_t common = count_lines(before) + count_lines(after);
	buf_add(out, SPAN_LITERAL("--- "));
	append_masked(out, span_of(old_text ? name : "/dev/null"));
	buf_add(out, SPAN_LITERAL("\n+++ "));
	append_masked(out, span_of(name));
	buf_add(out, SPAN_LITERAL("\n@@"));
	append_range(out, '-', first, common + count_lines(lines.removed));
	append_range(out, '+', first, common + count_lines(lines.added));
	buf_add(out, SPAN_LITERAL(" @@\n"));
	append_lines(out, ' ', before);
	append_lines(out, '-', lines.removed);
	append_lines(out, '+', lines.added);
	append_lines(out, ' ', after);
}
