/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path_quote.h"
#include "base/utf8.h"
#include "sync/checkpoint_impl.h"

enum { LINE_WIDTH = 80, GRAPH_WIDTH_MIN = 6, LINE_MAX_BYTES = 1024 };

struct row {
	char *name; // owned; quoted
	size_t added, deleted;
	bool is_binary;
	uint64_t old_bytes, new_bytes; // of a binary file
};

struct table {
	struct row *rows;
	size_t count;
	int name_width, number_width;
	int binary_width; // of the text for a binary file
	size_t most;      // lines in one row
	size_t graph_width;
	size_t added, deleted;
};

/* ---- counting ---- */

static int width_of(const char *text)
{
	int width = 0;
	for (struct span rest = span_of(text); rest.len > 0; width++) {
		size_t length = utf8_char_length(rest);
		length = length > 0 ? length : 1;
		rest = (struct span){rest.data + length, rest.len - length};
	}
	return width;
}

static int digits_of(size_t number)
{
	int digits = 1;
	for (; number > 9; number /= 10) {
		digits++;
	}
	return digits;
}

/* Counts one file; its patch is freed right after. */
static bool count_row(
	struct store *store, git_diff *diff, size_t index, struct row *row, struct error *err)
{
	git_patch *patch = NULL;
	const git_diff_delta *delta = store->git->diff_get_delta(diff, index);
	size_t context;
	*row = (struct row){.name = path_quote(span_of(delta->new_file.path))};
	if (checkpoint_delta_is_big(delta)) {
		row->is_binary = true;
		return true;
	}
	bool ok = store->git->patch_from_diff(&patch, diff, index) == 0 &&
	          (!patch || store->git->patch_line_stats(
				     &context, &row->added, &row->deleted, patch) == 0);
	ok = ok || error_set_git(store->git, err, "comparing %s", row->name);
	row->is_binary = (delta->flags & GIT_DIFF_FLAG_BINARY) != 0;
	row->old_bytes = delta->old_file.size;
	row->new_bytes = delta->new_file.size;
	store->git->patch_free(patch);
	return ok;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

static void table_measure(struct table *table, const struct row *row)
{
	size_t lines = row->added + row->deleted;
	table->name_width = larger(table->name_width, width_of(row->name));
	table->most = lines > table->most ? lines : table->most;
	table->added += row->added;
	table->deleted += row->deleted;
	if (row->is_binary) {
		table->number_width = larger(table->number_width, 3);
	}
	if (row->is_binary && row->old_bytes + row->new_bytes > 0) {
		int width = digits_of(row->old_bytes) + digits_of(row->new_bytes) + 10;
		table->binary_width = larger(table->binary_width, width);
	}
}

/* If names and signs do not fit, the signs get up to three eighths of the line, like git's. */
static void table_divide(struct table *table)
{
	table->number_width = larger(table->number_width, digits_of(table->most));
	int room = LINE_WIDTH - table->number_width - GRAPH_WIDTH_MIN;
	int graph = table->most < LINE_WIDTH ? (int)table->most : LINE_WIDTH;
	graph = larger(graph, table->binary_width);
	if (table->name_width + graph > room) {
		int share = larger(LINE_WIDTH * 3 / 8 - table->number_width - GRAPH_WIDTH_MIN,
			GRAPH_WIDTH_MIN);
		graph = graph > share ? share : graph;
		if (table->name_width > room - graph) {
			table->name_width = room - graph;
		} else {
			graph = room - table->name_width;
		}
	}
	table->graph_width = (size_t)graph;
}

static bool table_fill(struct table *table, struct store *store, git_diff *diff, struct error *err)
{
	size_t count = store->git->diff_num_deltas(diff);
	*table = (struct table){
		.rows = mem_alloc_zero((count + 1) * sizeof(*table->rows)), .number_width = 1};
	while (table->count < count) {
		struct row *row = &table->rows[table->count];
		if (!count_row(store, diff, table->count++, row, err)) {
			return false;
		}
		table_measure(table, row);
	}
	table_divide(table);
	return true;
}

static void table_finish(struct table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		free(table->rows[i].name);
	}
	free(table->rows);
}

/* ---- printing ---- */

/* The name in a column; if it is too long, only its end, beginning with a slash. */
static bool append_name(
	struct buf *line, const struct table *table, const char *name, struct error *err)
{
	int width = width_of(name);
	const char *dots = "";
	struct span rest = span_of(name);
	if (width > table->name_width) {
		dots = "...";
		for (; width > table->name_width - 3; width--) {
			size_t length = utf8_char_length(rest);
			length = length > 0 ? length : 1;
			rest = (struct span){rest.data + length, rest.len - length};
		}
		const char *slash = strchr(rest.data, '/');
		rest = slash ? span_of(slash) : rest;
		width = width_of(rest.data) + 3;
	}
	return buf_append_format(
		line, err, " %s%s%*s | ", dots, rest.data, table->name_width - width, "");
}

static size_t scale(const struct table *table, size_t lines)
{
	assert(lines <= table->most);
	return lines > 0 ? 1 + lines * (table->graph_width - 1) / table->most : 0;
}

/*
 * How many signs to print: the smaller part gets its share, at least one, the larger part the rest.
 */
static void scale_both(const struct table *table, size_t *added, size_t *deleted)
{
	if (table->most <= table->graph_width) {
		return;
	}
	size_t both = *added > 0 && *deleted > 0 ? 2 : 0;
	size_t total = scale(table, *added + *deleted);
	total = total > both ? total : both;
	if (*added < *deleted) {
		*added = scale(table, *added);
		*deleted = total - *added;
	} else {
		*deleted = scale(table, *deleted);
		*added = total - *deleted;
	}
}

static bool append_signs(struct buf *line, char sign, size_t count, struct error *err)
{
	char *to = buf_reserve(line, count, err);
	if (!to) {
		return false;
	}
	memset(to, sign, count);
	buf_commit(line, count);
	return true;
}

static bool append_counts(
	struct buf *line, const struct table *table, const struct row *row, struct error *err)
{
	size_t added = row->added;
	size_t deleted = row->deleted;
	if (row->is_binary && row->old_bytes == 0 && row->new_bytes == 0) {
		return buf_append_format(line, err, "Bin\n");
	}
	if (row->is_binary) {
		return buf_append_format(line, err, "Bin %llu -> %llu bytes\n",
			(unsigned long long)row->old_bytes, (unsigned long long)row->new_bytes);
	}
	scale_both(table, &added, &deleted);
	return buf_append_format(line, err, "%*zu%s", table->number_width,
		       row->added + row->deleted, added + deleted > 0 ? " " : "") &&
	       append_signs(line, '+', added, err) && append_signs(line, '-', deleted, err) &&
	       buf_append(line, SPAN_LITERAL("\n"), err);
}

static bool append_total(struct buf *line, const struct table *table, struct error *err)
{
	const char *files = table->count == 1 ? "file" : "files";
	bool ok = buf_append_format(line, err, " %zu %s changed", table->count, files);
	if (table->added > 0 || table->deleted == 0) {
		ok = ok && buf_append_format(line, err, ", %zu insertion%s(+)", table->added,
				   table->added == 1 ? "" : "s");
	}
	if (table->deleted > 0 || table->added == 0) {
		ok = ok && buf_append_format(line, err, ", %zu deletion%s(-)", table->deleted,
				   table->deleted == 1 ? "" : "s");
	}
	return ok && buf_append(line, SPAN_LITERAL("\n"), err);
}

static bool print_table(
	struct checkpoint_printing *printing, const struct table *table, struct error *err)
{
	struct buf line;
	buf_init(&line, LINE_MAX_BYTES);
	bool ok = true;
	for (size_t i = 0; ok && i < table->count && !printing->was_refused; i++) {
		const struct row *row = &table->rows[i];
		buf_clear(&line);
		ok = append_name(&line, table, row->name, err) &&
		     append_counts(&line, table, row, err);
		if (ok) {
			checkpoint_print(printing, line.data, buf_span(&line).len);
		}
	}
	buf_clear(&line);
	ok = ok && (table->count == 0 || append_total(&line, table, err));
	if (ok && line.len > 0) {
		checkpoint_print(printing, buf_span(&line).data, line.len);
	}
	buf_finish(&line);
	return ok;
}

bool checkpoint_print_stat(struct store *store, git_diff *diff,
	struct checkpoint_printing *printing, struct error *err)
{
	struct table table;
	bool ok = table_fill(&table, store, diff, err) && print_table(printing, &table, err);
	table_finish(&table);
	return ok;
}
