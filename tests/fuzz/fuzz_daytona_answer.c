/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/json_doc.h"
#include "base/utf8.h"
#include "providers/daytona/api_read.h"
#include "tests/fuzz/fuzz.h"

/*
 * The input is an answer of Daytona's API, read as everything that it could be: a sandbox, a page
 * of a list, access, an error. The results must be consistent, and an error must be one clean line.
 */
static const char secret[] = "s3cret";

static void check_sandbox(struct span text)
{
	struct daytona_told_sandbox told;
	struct error err = {.code = ERROR_NONE};
	if (!daytona_read_sandbox(text, &told, &err)) {
		FUZZ_CHECK(err.code != ERROR_NONE && err.text[0]);
		return;
	}
	const struct daytona_sandbox *sandbox = &told.sandbox;
	FUZZ_CHECK(sandbox->id[0] && sandbox->name && sandbox->state && sandbox->error_reason);
	FUZZ_CHECK(sandbox->network_allow_list && sandbox->domain_allow_list);
	FUZZ_CHECK(sandbox->auto_stop_min >= -1 && sandbox->auto_delete_min >= -1);
	size_t count = 0;
	for (; sandbox->labels[count].name; count++) {
		FUZZ_CHECK(sandbox->labels[count].value);
	}
	struct json_doc *doc = json_doc_parse(text, NULL);
	size_t all = json_count(doc, json_get(doc, 0, "labels"));
	FUZZ_CHECK(sandbox->has_odd_labels ? count < all : count <= all);
	json_doc_destroy(doc);
	daytona_told_sandbox_finish(&told);
}

static void check_page(struct span text)
{
	struct daytona_page page;
	struct error err = {.code = ERROR_NONE};
	if (!daytona_read_page(text, &page, &err)) {
		FUZZ_CHECK(err.code != ERROR_NONE && err.text[0]);
		return;
	}
	FUZZ_CHECK(!page.cursor || page.cursor[0]);
	const char *last = text.data;
	for (size_t i = 0; i < page.count; i++) {
		FUZZ_CHECK(page.items[i].data > last && page.items[i].len > 0);
		last = page.items[i].data + page.items[i].len;
		check_sandbox(page.items[i]);
	}
	FUZZ_CHECK(last <= text.data + text.len);
	daytona_page_finish(&page);
}

static void check_access(struct span text)
{
	struct daytona_told_access told;
	struct error err = {.code = ERROR_NONE};
	if (!daytona_read_access(text, &told, &err)) {
		FUZZ_CHECK(err.code != ERROR_NONE && err.text[0]);
		return;
	}
	const struct daytona_access *access = &told.access;
	FUZZ_CHECK(access->token[0] && !strpbrk(access->token, " \t\r\n\x7f"));
	FUZZ_CHECK(access->port >= 0 && access->port <= 65535);
	FUZZ_CHECK(access->host[0] || access->port == 0);
	FUZZ_CHECK(access->host[0] != '-' && !strpbrk(access->host, " /@%\t\n"));
	daytona_told_access_finish(&told);
}

static void check_line(const char *line, size_t max)
{
	struct span rest = span_of(line);
	FUZZ_CHECK(rest.len < max && !strstr(line, secret) && !strstr(line, "  "));
	while (rest.len > 0) {
		size_t taken = utf8_char_length(rest);
		FUZZ_CHECK(taken > 0 && (unsigned char)rest.data[0] >= ' ' && rest.data[0] != 0x7f);
		rest.data += taken;
		rest.len -= taken;
	}
}

static void check_permissions(struct span text)
{
	unsigned int permissions = 0;
	struct error err;
	if (daytona_read_permissions(text, &permissions, &err)) {
		FUZZ_CHECK(
			!(permissions & ~(unsigned int)(DAYTONA_MAY_WRITE | DAYTONA_MAY_DELETE)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	char line[DAYTONA_MESSAGE_MAX];
	check_sandbox(text);
	check_page(text);
	check_access(text);
	check_permissions(text);
	check_line(daytona_read_message(text, secret, line), DAYTONA_MESSAGE_MAX);
	check_line(daytona_excerpt(text, secret, line), DAYTONA_MESSAGE_MAX);
	return 0;
}
