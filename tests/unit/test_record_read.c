/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Records that no broker has written: cut off, edited by hand, with wrong types. */

static const char *const rest[] = {"version\":1", "id\":\"00112233445566aa\"", "state\":\"active\"",
	"created\":\"2026\"", "updated\":\"2026\"", "profile\":\"p\"", "backend\":\"local\"",
	"sync\":\"none\"", "persistence\":\"reuse\"", "localRoot\":\"/w\"", "sessions\":[]",
	"receipt\":null"};

/* The JSON that a save writes; owned by the caller. */
static char *json_of(const struct record *record, size_t *out_len)
{
	struct error err;
	struct buf json;
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(record, &json, &err));
	char *text = mem_strndup(buf_span(&json));
	*out_len = buf_span(&json).len;
	buf_finish(&json);
	return text;
}

static void fill_whole(struct record *record)
{
	record_init(record);
	record->profile = mem_strdup("dev\"box");
	record->backend = mem_strdup("local");
	record->sync = mem_strdup("turn-bidirectional");
	record->persistence = mem_strdup("reuse");
	record->local_root = mem_strdup("/home/me/pr\xc3\xb6ject");
	assert_true(record_add_session(record, "s-1"));
	record->runtime_root = mem_strdup("/there");
	record->reference = mem_strdup("box-1");
	record->instance = mem_strdup("id-1");
	record->error = mem_strdup("the link broke");
	snprintf(record->receipt.runtime_tree, RECORD_TREE_SIZE, "%040d", 1);
	snprintf(record->receipt.merged_tree, RECORD_TREE_SIZE, "%040d", 2);
	snprintf(record->receipt.time, sizeof(record->receipt.time), "2026-01-31T12:00:00.000Z");
}

static void test_every_truncation_is_refused(void **state)
{
	struct record record;
	size_t len;
	fill_whole(&record);
	char *text = json_of(&record, &len);
	for (size_t cut = 0; cut < len; cut++) {
		struct error err;
		struct record read = {0};
		assert_false(record_read_json(&read, (struct span){text, cut}, &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
		assert_true(err.text[0] != '\0');
		record_finish(&read);
	}
	free(text);
	record_finish(&record);
}

/* Whatever a byte is changed to, the record can be used or is refused. */
static void test_edits_by_hand_are_read_or_refused(void **state)
{
	static const char bytes[] = "\0\x1b\"\\{}[]:,/0a-n";
	struct record record;
	size_t len;
	size_t refused = 0;
	fill_whole(&record);
	char *text = json_of(&record, &len);
	for (size_t at = 0; at < len; at++) {
		for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
			struct error err;
			struct record read = {0};
			char was = text[at];
			text[at] = bytes[i];
			if (record_read_json(&read, (struct span){text, len}, &err)) {
				assert_true(read.state < RECORD_STATE_COUNT);
				assert_int_equal(read.local_root[0], '/');
				assert_non_null(read.profile);
				assert_true(!*read.receipt.runtime_tree ||
					    strlen(read.receipt.runtime_tree) == 40);
			} else {
				assert_true(err.code == ERROR_PROTOCOL ||
					    err.code == ERROR_UNAVAILABLE);
				refused++;
			}
			record_finish(&read);
			text[at] = was;
		}
	}
	assert_true(refused > len);
	free(text);
	record_finish(&record);
}

/* Writes a record in which one member has another value. */
static void write_with(char *text, size_t size, const char *member, const char *value)
{
	size_t name_len = strlen(member);
	int len = snprintf(text, size, "{\"%s\":%s", member, value);
	for (size_t i = 0; i < ARRAY_LENGTH(rest); i++) {
		if (strncmp(rest[i], member, name_len) != 0 || rest[i][name_len] != '"') {
			len += snprintf(text + len, size - (size_t)len, ",\"%s", rest[i]);
		}
	}
	snprintf(text + len, size - (size_t)len, "}");
}

static const struct {
	const char *member;
	const char *fine; // the values that it may have, by their numbers
} members[] = {{"version", ""}, {"id", "37"}, {"state", ""}, {"created", "3"}, {"updated", "3"},
	{"profile", "37"}, {"localRoot", ""}, {"sessions", "4"}, {"receipt", "0"}};

static void test_wrong_types_and_values_are_refused(void **state)
{
	static const char *const values[] = {"null", "true", "7", "\"\"", "[]", "{}", "-1", "\"x\"",
		"\"\\u0000\"", "{\"runtimeTree\":\"\"}"};
	for (size_t m = 0; m < ARRAY_LENGTH(members); m++) {
		for (size_t v = 0; v < ARRAY_LENGTH(values); v++) {
			char text[1024];
			struct error err;
			struct record read = {0};
			write_with(text, sizeof(text), members[m].member, values[v]);
			bool ok = record_read_json(&read, span_of(text), &err);
			if (ok != (strchr(members[m].fine, '0' + (int)v) != NULL)) {
				fail_msg("%s: %s", text, ok ? "was read" : err.text);
			}
			record_finish(&read);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_truncation_is_refused),
		cmocka_unit_test(test_edits_by_hand_are_read_or_refused),
		cmocka_unit_test(test_wrong_types_and_values_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
