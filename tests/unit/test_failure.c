/* SPDX-License-Identifier: MIT */
#include "acp/failure.h"

#include <ctype.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_doc.h"
#include "base/text.h"
#include "providers/container/container.h"
#include "providers/daytona/daytona.h"
#include "providers/local/local.h"
#include "providers/ssh/ssh.h"

enum {
	FILE_MAX = 1 << 20,
	NAME_MAX_BYTES = 64,
	ROW_MAX = 1024,
	COLUMNS = 6,
	PATH_BYTES = 1024,
	CODES_MAX = 128
};

#define LONG_WORD_4 "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789"
#define LONG_WORD LONG_WORD_4 LONG_WORD_4 LONG_WORD_4 LONG_WORD_4

/* Named on the command line: docs/errors.md, and the folder of all sources. */
static char *page;
static const char *source_root;

static const char *const stages[] = {"config", "prepare", "start", "initialize", "authenticate",
	"relay", "session", "tool", "sync", "stop"};

/* ---- the message ---- */

static void assert_written(const char *id, const struct error *err, const char *expected)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	failure_write(&out, span_of(id), err, NULL);
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, expected);
	free(text);
	buf_finish(&out);
}

static void test_a_failure_is_a_json_rpc_error_with_data(void **state)
{
	struct error err;
	assert_written("7",
		failure_set(&err, "TIMEOUT_EXCEEDED", "initialize", "too \"%s\"", "slow"),
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":"
		"\"too \\\"slow\\\"\",\"data\":{\"code\":\"TIMEOUT_EXCEEDED\",\"retryable\":true,"
		"\"stage\":\"initialize\"}}}");
}

static void test_a_providers_reason_is_told_as_it_says(void **state)
{
	static const struct error_reason reason = {"MOON_HAS_SET", true, "wait for the night"};
	static const char expected[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"dark\","
		"\"data\":{\"code\":\"MOON_HAS_SET\",\"retryable\":true,\"stage\":\"prepare\"}}}";
	struct buf out;
	struct error err;
	buf_init(&out, 1 << 20);
	error_set_reason(&err, ERROR_UNAVAILABLE, reason.name, "dark");
	failure_write(&out, SPAN_LITERAL("7"), error_at(&err, "prepare"), &reason);
	assert_true(span_is(buf_span(&out), expected));
	buf_finish(&out);
}

static void test_last_words_are_its_detail(void **state)
{
	struct error err;
	failure_set(&err, "AGENT_EXITED", "relay", "it ended");
	err.detail = SPAN_LITERAL("panic\n\xff \x01");
	assert_written("\"a\\u0062\"", &err,
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"error\":{\"code\":-32603,"
		"\"message\":\"it ended\",\"data\":{\"code\":\"AGENT_EXITED\",\"retryable\":true,"
		"\"stage\":\"relay\",\"detail\":\"panic\\n\xef\xbf\xbd \\u0001\"}}}");
}

static void test_where_the_id_is_not_known_it_is_null(void **state)
{
	struct error err;
	assert_written("", failure_set(&err, "PARSE_ERROR", "relay", "byte 0: not JSON"),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":"
		"\"byte 0: not JSON\",\"data\":{\"code\":\"PARSE_ERROR\",\"retryable\":false,"
		"\"stage\":\"relay\"}}}");
}

static void test_a_file_that_does_not_exist_is_named_by_its_uri(void **state)
{
	struct error err;
	failure_set(&err, "RESOURCE_NOT_FOUND", "tool", "Resource not found");
	err.detail = SPAN_LITERAL("/a b/\xc3\xa9%#?.txt");
	assert_written("1", &err,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":"
		"\"Resource not found\",\"data\":{\"code\":\"RESOURCE_NOT_FOUND\","
		"\"retryable\":false,\"stage\":\"tool\",\"uri\":"
		"\"file:///a%20b/%C3%A9%25%23%3F.txt\"}}}");
}

static void test_every_code_can_be_written_with_the_largest_detail(void **state)
{
	char detail[FAILURE_DETAIL_MAX];
	char message[ERROR_TEXT_MAX];
	memset(detail, 1, sizeof(detail)); // the longest spelling there is
	memset(message, 1, sizeof(message));
	message[sizeof(message) - 1] = '\0';
	for (size_t i = 0; i < failure_code_count; i++) {
		struct buf out;
		struct error err;
		buf_init(&out, 1 << 20);
		failure_set(&err, failure_codes[i].name, "relay", "%s", message);
		err.detail = (struct span){detail, sizeof(detail)};
		failure_write(&out, SPAN_LITERAL("null"), &err, NULL);
		struct json_doc *doc = json_doc_parse(buf_span(&out), &err);
		assert_non_null(doc);
		json_node error = json_get(doc, 0, "error");
		json_node data = json_get(doc, error, "data");
		assert_int_equal(
			json_int(doc, json_get(doc, error, "code"), 0), failure_codes[i].rpc);
		assert_true(
			json_string_is(doc, json_get(doc, data, "code"), failure_codes[i].name));
		assert_int_equal(json_bool(doc, json_get(doc, data, "retryable"),
					 !failure_codes[i].retryable),
			failure_codes[i].retryable);
		json_doc_destroy(doc);
		buf_finish(&out);
	}
}

/* The answer must not grow with what a peer has sent. */
static void test_a_message_that_never_ends_is_cut(void **state)
{
	enum { LONG = 2 << 20 };
	struct buf out;
	struct error err;
	char *message = mem_alloc(LONG);
	memset(message, 'x', LONG - 1);
	message[LONG - 1] = '\0';
	buf_init(&out, 1 << 20);
	failure_write(&out, SPAN_LITERAL("1"),
		failure_set(&err, "INVALID_PARAMS", "tool", "%s", message), NULL);
	struct json_doc *doc = json_doc_parse(buf_span(&out), NULL);
	assert_non_null(doc);
	char *told = json_string(doc, json_path(doc, 0, "error.message"));
	assert_int_equal(strlen(told), ERROR_TEXT_MAX - 1);
	assert_string_equal(told, err.text);
	free(told);
	json_doc_destroy(doc);
	buf_finish(&out);
	free(message);
}

static void test_what_an_agent_says_is_read_and_shows_where_it_was_cut(void **state)
{
	static const char long_error[] =
		"{\"message\":\"" LONG_WORD LONG_WORD "\",\"data\":{\"a\":1}}";
	char said[FAILURE_SAID_MAX];
	char *detail =
		failure_read_error(SPAN_LITERAL("{\"message\":\"no\",\"data\":\"b\\nc\"}"), said);
	assert_string_equal(said, "the agent says: no");
	assert_string_equal(detail, "b\nc");
	free(detail);
	detail = failure_read_error(span_of(long_error), said);
	assert_int_equal(strlen(said), FAILURE_SAID_MAX - 1);
	assert_string_equal(said + strlen(said) - strlen(TEXT_CUT), TEXT_CUT);
	assert_string_equal(detail, "{\"a\":1}");
	free(detail);
}

/* ---- the code of an error ---- */

static void test_an_error_is_told_as_its_reason(void **state)
{
	struct error err;
	error_set_reason(&err, ERROR_DENIED, "SECURITY_VIOLATION", "x");
	assert_string_equal(failure_code_of(&err), "SECURITY_VIOLATION");
}

static void test_an_error_without_a_reason_has_a_code_too(void **state)
{
	static const struct {
		enum error_code error;
		const char *code;
	} cases[] = {
		{ERROR_SYSTEM, "SYSTEM_ERROR"},
		{ERROR_PROTOCOL, "INVALID_MESSAGE"},
		{ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED"},
		{ERROR_CONFIG, "CONFIG_INVALID"},
		{ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE"},
		{ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND"},
		{ERROR_DENIED, "PERMISSION_DENIED"},
		{ERROR_TIMEOUT, "TIMEOUT_EXCEEDED"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		error_set(&err, cases[i].error, "x");
		assert_string_equal(failure_code_of(&err), cases[i].code);
	}
	for (int code = ERROR_NONE; code <= ERROR_TIMEOUT; code++) {
		struct error err = {.code = (enum error_code)code};
		failure_code_get(failure_code_of(&err)); // asserts that there is one
	}
}

/* The code of the enum says what a caller could do about the error. */
static void test_an_error_that_is_set_to_be_told_has_code_stage_and_text(void **state)
{
	static const struct {
		const char *code;
		enum error_code error;
	} cases[] = {
		{"TIMEOUT_EXCEEDED", ERROR_TIMEOUT},
		{"PERMISSION_DENIED", ERROR_DENIED},
		{"AGENT_EXITED", ERROR_UNAVAILABLE},
		{"INVALID_PARAMS", ERROR_PROTOCOL},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		assert_ptr_equal(failure_set(&err, cases[i].code, "relay", "%d", 7), &err);
		assert_int_equal(err.code, cases[i].error);
		assert_string_equal(err.reason, cases[i].code);
		assert_string_equal(err.stage, "relay");
		assert_string_equal(err.text, "7");
		assert_int_equal(err.detail.len, 0);
		assert_true(failure_is(&err, cases[i].code));
		assert_false(failure_is(&err, "SESSION_LOST"));
	}
}

/* ---- the page ---- */

/* Reads the row of a code, cut at its bars and trimmed; false if the page has no such row. */
static bool find_row(const char *code, char columns[COLUMNS][ROW_MAX])
{
	char begin[NAME_MAX_BYTES + 8];
	snprintf(begin, sizeof(begin), "\n| `%s` |", code);
	const char *at = strstr(page, begin);
	if (!at) {
		return false;
	}
	at += 2; // the newline, the first bar
	for (int i = 0; i < COLUMNS; i++) {
		size_t len = strcspn(at, "|\n");
		assert_int_equal(at[len], '|');
		snprintf(columns[i], ROW_MAX, "%.*s", (int)len - 2, at + 1);
		at += len + 1;
	}
	assert_int_equal(*at, '\n');
	return true;
}

/* Whether a list "a, b, c" has the word. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = list; *at; at += strcspn(at, ",") + (strchr(at, ',') ? 2 : 0)) {
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0')) {
			return true;
		}
	}
	return false;
}

/* The table's codes, and the providers' reasons. */
static struct failure_code codes[CODES_MAX];
static size_t code_count;

static void add_code(struct failure_code code)
{
	for (size_t i = 0; i < code_count; i++) {
		assert_string_not_equal(codes[i].name, code.name);
	}
	assert_true(code_count < CODES_MAX);
	codes[code_count++] = code;
}

/* Takes the provider over. */
static void add_reasons(struct provider *provider)
{
	size_t count;
	const struct error_reason *reasons = provider_reasons(provider, &count);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		add_code((struct failure_code){reasons[i].name, RPC_INTERNAL_ERROR,
			reasons[i].retryable, reasons[i].help});
	}
	provider_destroy(provider);
}

static int set_up(void **state)
{
	static const struct provider_context context = {0};
	for (size_t i = 0; i < failure_code_count; i++) {
		add_code(failure_codes[i]);
	}
	add_reasons(local_provider_create(&context));
	add_reasons(ssh_provider_create(&context));
	add_reasons(daytona_provider_create(&context));
	add_reasons(container_provider_create(&context)); // with those of exec
	return 0;
}

static void test_the_page_has_each_code_as_it_is(void **state)
{
	for (size_t i = 0; i < code_count; i++) {
		const struct failure_code *code = &codes[i];
		char columns[COLUMNS][ROW_MAX];
		if (!find_row(code->name, columns)) {
			fail_msg("%s is not documented", code->name);
		}
		assert_int_equal(strtol(columns[1], NULL, 10), code->rpc);
		assert_string_equal(columns[2], code->retryable ? "yes" : "no");
		assert_true(strlen(columns[4]) > 10);
		assert_string_equal(columns[5], code->help);
	}
}

static void test_the_page_has_no_other_code(void **state)
{
	size_t found = 0;
	for (const char *at = page; (at = strstr(at, "\n| `")) != NULL; at++) {
		char name[NAME_MAX_BYTES];
		assert_int_equal(sscanf(at, "\n| `%60[A-Z_]` |", name), 1);
		size_t i = 0;
		while (i < code_count && strcmp(codes[i].name, name) != 0) {
			i++;
		}
		if (i == code_count) {
			fail_msg("there is no %s", name);
		}
		found++;
	}
	assert_int_equal(found, code_count);
}

static void test_each_stage_is_explained(void **state)
{
	for (size_t i = 0; i < code_count; i++) {
		char columns[COLUMNS][ROW_MAX];
		bool has_one = false;
		assert_true(find_row(codes[i].name, columns));
		for (size_t j = 0; j < ARRAY_LENGTH(stages); j++) {
			has_one = has_one || list_has(columns[3], stages[j]);
		}
		assert_true(has_one);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(stages); i++) {
		char row[NAME_MAX_BYTES];
		snprintf(row, sizeof(row), "\n| %s | ", stages[i]);
		assert_non_null(strstr(page, row));
	}
}

/* ---- the sources ---- */

/* Reads `"WORD"` of these characters; returns what is behind it, or NULL. */
static const char *read_word(const char *at, int (*is_right)(int), char *word)
{
	size_t len = 0;
	at += strspn(at, " \t\n");
	if (*at++ != '"') {
		return NULL;
	}
	while ((is_right(at[len]) || at[len] == '_') && len < NAME_MAX_BYTES - 1) {
		word[len] = at[len];
		len++;
	}
	word[len] = '\0';
	return at[len] == '"' && len > 2 ? at + len + 1 : NULL;
}

static bool is_stage(const char *word)
{
	for (size_t i = 0; i < ARRAY_LENGTH(stages); i++) {
		if (strcmp(stages[i], word) == 0) {
			return true;
		}
	}
	return false;
}

/* Finds "CODE", "stage" side by side: the page's row must have both. */
static int check_failures(const char *file, const char *text)
{
	int found = 0;
	for (const char *at = text; (at = strchr(at, '"')) != NULL; at++) {
		char code[NAME_MAX_BYTES];
		char stage[NAME_MAX_BYTES];
		char columns[COLUMNS][ROW_MAX];
		const char *next = read_word(at, isupper, code);
		if (!next || *next != ',' || !read_word(next + 1, islower, stage) ||
			!is_stage(stage)) {
			continue;
		}
		found++;
		if (!find_row(code, columns) || !list_has(columns[3], stage)) {
			fail_msg("%s: %s at stage %s is not documented", file, code, stage);
		}
	}
	return found;
}

/*
 * Finds error_set_reason(err, ERROR_…, "REASON", …): the table must have each reason that an editor
 * may see.
 */
static int check_reasons(const char *file, const char *text)
{
	static const char call[] = "error_set_reason(";
	int found = 0;
	for (const char *at = text; (at = strstr(at, call)) != NULL; at++) {
		char reason[NAME_MAX_BYTES];
		char columns[COLUMNS][ROW_MAX];
		const char *first = strpbrk(at, "\";");
		if (!first || *first == ';' || !read_word(first, isupper, reason)) {
			continue;
		}
		found++;
		if (!find_row(reason, columns)) {
			fail_msg("%s: %s is not documented", file, reason);
		}
	}
	return found;
}

static char *read_file(const char *path)
{
	char *text = mem_alloc(FILE_MAX);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, FILE_MAX - 1, file);
	fclose(file);
	assert_in_range(len, 1, FILE_MAX - 2);
	text[len] = '\0';
	return text;
}

/* Checks all .c files below the folder. */
static int check_folder(const char *name, int (*check)(const char *file, const char *text))
{
	char path[PATH_BYTES];
	int found = 0;
	snprintf(path, sizeof(path), "%s/%s", source_root, name);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		size_t len = strlen(entry->d_name);
		char inner[PATH_BYTES];
		int size = snprintf(inner, sizeof(inner), "%s/%s", name, entry->d_name);
		assert_true(size > 0 && (size_t)size < sizeof(inner));
		snprintf(path, sizeof(path), "%s/%s", source_root, inner);
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
			found += check_folder(inner, check);
		} else if (len > 2 && strcmp(entry->d_name + len - 2, ".c") == 0) {
			char *text = read_file(path);
			found += check(entry->d_name, text);
			free(text);
		}
	}
	closedir(folder);
	return found;
}

static void test_each_failure_of_the_sources_is_on_the_page(void **state)
{
	assert_true(check_folder("broker", check_failures) > 30);
}

static void test_each_reason_of_an_error_is_on_the_page(void **state)
{
	static const char *const folders[] = {"base", "acp", "providers", "sync", "broker"};
	int found = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		found += check_folder(folders[i], check_reasons);
	}
	assert_true(found > 150);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failure_is_a_json_rpc_error_with_data),
		cmocka_unit_test(test_a_providers_reason_is_told_as_it_says),
		cmocka_unit_test(test_last_words_are_its_detail),
		cmocka_unit_test(test_where_the_id_is_not_known_it_is_null),
		cmocka_unit_test(test_a_file_that_does_not_exist_is_named_by_its_uri),
		cmocka_unit_test(test_every_code_can_be_written_with_the_largest_detail),
		cmocka_unit_test(test_a_message_that_never_ends_is_cut),
		cmocka_unit_test(test_what_an_agent_says_is_read_and_shows_where_it_was_cut),
		cmocka_unit_test(test_an_error_that_is_set_to_be_told_has_code_stage_and_text),
		cmocka_unit_test(test_an_error_is_told_as_its_reason),
		cmocka_unit_test(test_an_error_without_a_reason_has_a_code_too),
		cmocka_unit_test(test_the_page_has_each_code_as_it_is),
		cmocka_unit_test(test_the_page_has_no_other_code),
		cmocka_unit_test(test_each_stage_is_explained),
		cmocka_unit_test(test_each_failure_of_the_sources_is_on_the_page),
		cmocka_unit_test(test_each_reason_of_an_error_is_on_the_page),
	};
	if (argc != 1 && argc != 3) {
		fputs("usage: test_failure [docs/errors.md SOURCE-ROOT]\n", stderr);
		return 2;
	}
	/* Without arguments, reads the source tree in which it runs. */
	page = read_file(argc == 3 ? argv[1] : "docs/errors.md");
	source_root = argc == 3 ? argv[2] : ".";
	int failed = cmocka_run_group_tests(tests, set_up, NULL);
	free(page);
	return failed;
}
