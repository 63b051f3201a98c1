/* SPDX-License-Identifier: MIT */
#include "broker/session/choices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool read_params(const char *method, const char *params, struct choice *out_choice)
{
	struct error err;
	struct json_doc *doc = json_doc_parse(span_of(params), &err);
	assert_non_null(doc);
	bool ok = choice_read(method, doc, out_choice);
	json_doc_destroy(doc);
	return ok;
}

static void put(struct choices *choices, const char *method, const char *params)
{
	struct choice choice;
	assert_true(read_params(method, params, &choice));
	assert_true(choices_put(choices, &choice));
}

static void put_option(struct choices *choices, const char *id, const char *value)
{
	char params[256];
	snprintf(params, sizeof(params), "{\"configId\":\"%s\",\"value\":%s}", id, value);
	put(choices, "session/set_config_option", params);
}

static void follow(struct choices *choices, const char *options, const char *except)
{
	struct error err;
	struct json_doc *doc = json_doc_parse(span_of(options), &err);
	assert_non_null(doc);
	choices_follow_options(choices, doc, 0, except);
	json_doc_destroy(doc);
}

static void expect(const struct choices *choices, const char *json)
{
	struct buf out;
	buf_init(&out, CHOICES_JSON_MAX);
	choices_write_json(choices, &out);
	if (!span_is(buf_span(&out), json)) {
		fail_msg("%.*s is not %s", (int)out.len, buf_span(&out).data, json);
	}
	buf_finish(&out);
}

static int set_up(void **state)
{
	struct choices *choices = malloc(sizeof(*choices));
	choices_init(choices);
	*state = choices;
	return 0;
}

static int tear_down(void **state)
{
	choices_finish(*state);
	free(*state);
	return 0;
}

static void test_the_last_choice_of_each_is_kept_and_models_come_first(void **state)
{
	struct choices *choices = *state;
	expect(choices, "");
	put(choices, "session/set_mode", "{\"modeId\":\"ask\"}");
	put_option(choices, "fast", "true");
	put(choices, "session/set_model", "{\"modelId\":\"m\"}");
	put(choices, "session/set_mode", "{\"modeId\":\"pl\\u0061n\"}");
	expect(choices, "[{\"kind\":\"model\",\"value\":\"m\"},"
			"{\"kind\":\"option\",\"configId\":\"fast\",\"type\":\"boolean\","
			"\"value\":true},{\"kind\":\"mode\",\"value\":\"plan\"}]");
}

static void test_what_is_no_choice_is_not_read(void **state)
{
	struct choice choice;
	char params[MODES_NAME_MAX + 64];
	assert_false(read_params("session/set_mode", "{}", &choice));
	assert_false(read_params("session/set_mode", "{\"modeId\":true}", &choice));
	assert_false(read_params("session/set_config_option", "{\"value\":\"x\"}", &choice));
	assert_false(read_params("session/prompt", "{\"modeId\":\"x\"}", &choice));
	snprintf(params, sizeof(params), "{\"modeId\":\"%0*d\"}", MODES_NAME_MAX, 0);
	assert_false(read_params("session/set_mode", params, &choice));
}

static void test_more_than_the_maximum_is_refused_and_the_rest_can_change(void **state)
{
	struct choices *choices = *state;
	struct choice choice = {.kind = CHOICE_OPTION, .value = "v"};
	for (int i = 0; i < CHOICES_MAX; i++) {
		snprintf(choice.config_id, sizeof(choice.config_id), "%d", i);
		assert_true(choices_put(choices, &choice));
	}
	snprintf(choice.config_id, sizeof(choice.config_id), "one more");
	assert_false(choices_put(choices, &choice));
	put_option(choices, "3", "\"w\"");
	assert_string_equal(choices_find(choices, CHOICE_OPTION, "3")->value, "w");
	choices_drop(choices, choices_find(choices, CHOICE_OPTION, "4"));
	assert_true(choices_put(choices, &choice));
}

static void test_a_mode_that_the_agent_changes_is_followed_where_one_was_chosen(void **state)
{
	struct choices *choices = *state;
	assert_false(choices_follow_mode(choices, "plan"));
	put_option(choices, "model", "\"m\"");
	assert_false(choices_follow_mode(choices, "plan"));
	put(choices, "session/set_mode", "{\"modeId\":\"plan\"}");
	assert_false(choices_follow_mode(choices, "plan"));
	assert_true(choices_follow_mode(choices, "default"));
	assert_string_equal(choices_find(choices, CHOICE_MODE, "")->value, "default");
	choices_make_stale(choices);
	assert_false(choices_follow_mode(choices, "yolo")); // not by an agent that was not told
	assert_string_equal(choices_find(choices, CHOICE_MODE, "")->value, "default");
}

static void test_options_are_followed_to_what_is_offered(void **state)
{
	struct choices *choices = *state;
	static const char told[] =
		"[{\"id\":\"effort\",\"currentValue\":\"low\",\"options\":[{\"name\":\"group\","
		"\"options\":[{\"value\":\"low\"},{\"value\":\"high\"}]}]},"
		"{\"id\":\"other\",\"currentValue\":\"x\",\"options\":[{\"value\":\"y\"}]},"
		"{\"id\":\"m\",\"category\":\"model\",\"currentValue\":\"a\","
		"\"options\":[{\"value\":\"a\"},{\"value\":\"b\"}]},"
		"{\"id\":\"unknown\",\"currentValue\":\"z\"}]";
	put_option(choices, "effort", "\"high\"");
	put_option(choices, "other", "\"y\"");
	put_option(choices, "m", "\"b\"");
	follow(choices, told, "m");
	expect(choices, "[{\"kind\":\"option\",\"configId\":\"m\",\"value\":\"b\"},"
			"{\"kind\":\"option\",\"configId\":\"effort\",\"value\":\"low\"},"
			"{\"kind\":\"option\",\"configId\":\"other\",\"value\":\"y\"}]");
}

static void test_what_was_read_is_to_be_sent(void **state)
{
	struct choices *choices = *state;
	static const char json[] =
		"[{\"kind\":\"model\",\"value\":\"m\"},"
		"{\"kind\":\"option\",\"configId\":\"fast\",\"type\":\"boolean\","
		"\"value\":false},{\"kind\":\"mode\",\"value\":\"plan\"}]";
	choices_read_json(choices, span_of("[{\"kind\":\"x\",\"value\":\"y\"},7,{}]"));
	choices_read_json(choices, span_of("no JSON"));
	assert_null(choices_first_stale(choices));
	choices_read_json(choices, span_of(json));
	expect(choices, json);
	assert_int_equal(choices_first_stale(choices)->kind, CHOICE_MODEL);
	put(choices, "session/set_model", "{\"modelId\":\"n\"}");
	assert_int_equal(choices_first_stale(choices)->kind, CHOICE_OPTION);
}

static void test_a_choice_that_was_replaced_has_another_serial(void **state)
{
	struct choices *choices = *state;
	put(choices, "session/set_mode", "{\"modeId\":\"ask\"}");
	unsigned serial = choices_find(choices, CHOICE_MODE, "")->serial;
	assert_non_null(choices_of_serial(choices, serial));
	put(choices, "session/set_mode", "{\"modeId\":\"ask\"}");
	assert_null(choices_of_serial(choices, serial));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_last_choice_of_each_is_kept_and_models_come_first, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_no_choice_is_not_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_more_than_the_maximum_is_refused_and_the_rest_can_change, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_mode_that_the_agent_changes_is_followed_where_one_was_chosen, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_options_are_followed_to_what_is_offered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_was_read_is_to_be_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_choice_that_was_replaced_has_another_serial, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
