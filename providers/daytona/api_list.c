/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "providers/daytona/api_impl.h"
#include "providers/daytona/api_read.h"
#include "providers/daytona/api_write.h"

enum { PAGES_MAX = 1000 }; // limit for a service that answers with empty pages for ever

static void end(struct daytona_call *call, const struct error *err)
{
	struct daytona_list_listener listener = call->raise.list;
	void *data = call->data;
	daytona_call_free(call);
	listener.on_done(data, err);
}

/* Returns whether the call is still wanted. */
static bool tell(struct daytona_call *call, const struct daytona_sandbox *sandbox)
{
	call->is_raising = true;
	call->raise.list.on_sandbox(call->data, sandbox);
	call->is_raising = false;
	if (!call->api) { // the callback cancelled it
		daytona_call_free(call);
		return false;
	}
	return true;
}

static void end_as_too_many(struct daytona_call *call)
{
	struct error err;
	error_set(&err, ERROR_LIMIT, "%s: there are more than %d sandboxes with these labels",
		call->what, (int)DAYTONA_LIST_MAX);
	end(call, &err);
}

static void next_page(struct daytona_call *call, char *cursor)
{
	free(call->list.cursor);
	call->list.cursor = cursor;
	buf_clear(&call->path);
	daytona_call_go_on(call,
		daytona_write_list_path(&call->path, call->list.labels, cursor, &call->unfit));
}

/* Returns false if an item cannot be read and the call was not cancelled. */
static bool tell_items(struct daytona_call *call, struct daytona_page *page, struct error *err)
{
	for (size_t i = 0; i < page->count; i++) {
		struct daytona_told_sandbox told;
		if (!daytona_read_sandbox(page->items[i], &told, err)) {
			return error_prefix(err, "item %zu", i);
		}
		if (call->list.told == DAYTONA_LIST_MAX) {
			daytona_told_sandbox_finish(&told);
			end_as_too_many(call);
			return true;
		}
		call->list.told++;
		bool is_wanted = tell(call, &told.sandbox);
		daytona_told_sandbox_finish(&told);
		if (!is_wanted) {
			return true;
		}
	}
	if (!page->cursor) {
		end(call, NULL);
		return true;
	}
	char *cursor = page->cursor;
	page->cursor = NULL;
	next_page(call, cursor);
	return true;
}

static bool read_page(
	struct daytona_call *call, const struct http_answer *answer, struct error *err)
{
	struct daytona_page page;
	if (!daytona_read_page(answer->body, &page, err)) {
		return false;
	}
	bool is_again =
		page.cursor && call->list.cursor && strcmp(page.cursor, call->list.cursor) == 0;
	bool ok = is_again || ++call->list.pages > PAGES_MAX
	                  ? error_set(err, ERROR_PROTOCOL, "its \"nextCursor\" has no end")
	                  : tell_items(call, &page, err);
	daytona_page_finish(&page);
	return ok;
}

static struct daytona_pair *pairs_copy(const struct daytona_pair *pairs)
{
	size_t count = 0;
	while (pairs && pairs[count].name) {
		count++;
	}
	struct daytona_pair *copy = mem_alloc_zero((count + 1) * sizeof(*copy));
	for (size_t i = 0; i < count; i++) {
		copy[i] = (struct daytona_pair){
			.name = mem_strdup(pairs[i].name), .value = mem_strdup(pairs[i].value)};
	}
	return copy;
}

struct daytona_call *daytona_list(struct daytona_api *api, const struct daytona_pair *labels,
	const struct daytona_list_listener *listener, void *data)
{
	static const struct daytona_call_kind kind = {"GET", 0, read_page, end};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.list = *listener;
	call->list.labels = pairs_copy(labels);
	return daytona_call_begin(
		call, daytona_write_list_path(&call->path, call->list.labels, NULL, &call->unfit));
}
