/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "tests/unit/daytona_plane_fixture.h"
#include "tests/unit/stderr_capture.h"
#include "tests/support/facts.h"

/* A sandbox that is found again, with a profile that has changed. */

static struct daytona_profile profile;
static struct daytona_identity identity = {.owner = "me"};

static int set_up(void **state)
{
	plane = (struct plane){.loop = ev_loop_new(0)};
	profile = (struct daytona_profile){
		.ready_state = "started", .create_timeout_ms = 20000, .api_timeout_ms = 20000};
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int tear_down(void **state)
{
	ev_loop_destroy(plane.loop);
	return 0;
}

/* Brings the sandbox for the present profile; returns the minutes until it stops by itself. */
static int bring_as(struct told *told, struct plane_box *there, const struct daytona_create *wanted,
	struct daytona_box_config config)
{
	*told = (struct told){.plane = there};
	config.loop = plane.loop;
	config.profile = &profile;
	config.identity = &identity;
	config.name = there->name;
	config.wanted = wanted;
	config.on_warning = told_warning;
	config.data = told;
	told->box = daytona_box_create(&config);
	daytona_box_bring(told->box, told_done);
	told_wait(told);
	int auto_stop_min = daytona_box_auto_stop(told->box);
	daytona_box_destroy(told->box);
	return auto_stop_min;
}

static void test_what_the_profile_says_by_now_is_set_once(void **state)
{
	struct plane_box *there = plane_add("box", "stopped");
	struct daytona_create wanted = {.is_public = true,
		.blocks_network = true,
		.auto_stop_min = 7,
		.auto_archive_min = 8,
		.auto_delete_min = -1};
	there->settings.auto_stop_min = 15;
	there->settings.auto_archive_min = 10080;
	there->settings.auto_delete_min = 60;
	for (int i = 0; i < 2; i++) {
		struct told told;
		int auto_stop_min = bring_as(&told, there, &wanted, (struct daytona_box_config){0});
		assert_true(told.is_ok);
		assert_int_equal(told.warnings, 0);
		assert_int_equal(auto_stop_min, 7);
		assert_int_equal(there->publics, 1);
		assert_int_equal(there->networks, 0);
		for (size_t j = 0; j < DAYTONA_TTL; j++) {
			assert_int_equal(there->intervals[j], 1);
		}
	}
	assert_true(there->settings.is_public);
	assert_int_equal(there->settings.auto_delete_min, -1);
}

static void test_what_the_profile_does_not_say_of_archiving_stays(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {
		.blocks_network = true, .auto_archive_min = -1, .auto_delete_min = 0};
	there->settings.auto_archive_min = 30;
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_true(told.is_ok);
	assert_int_equal(there->intervals[DAYTONA_AUTO_ARCHIVE], 0);
}

static void test_an_interval_that_cannot_be_set_is_told_and_its_own_counts(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.blocks_network = true, .auto_stop_min = 1};
	there->settings.auto_stop_min = 90;
	there->set_reason = "DAYTONA_REJECTED";
	int auto_stop_min = bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_true(told.is_ok);
	assert_int_equal(told.warnings, 1);
	assert_names(told.warning, "sandbox box | auto-stop");
	assert_int_equal(auto_stop_min, 90);
}

static void test_a_setting_is_logged_as_changed_only_if_the_service_changed_it(void **state)
{
	static const char *const reasons[] = {NULL, "DAYTONA_REJECTED"};
	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		struct capture capture;
		struct told told;
		struct plane_box *there = plane_add(i ? "refused" : "changed", "started");
		struct daytona_create wanted = {.blocks_network = true, .auto_stop_min = 1};
		there->settings.auto_stop_min = 90;
		there->set_reason = reasons[i];
		capture_pipe(&capture);
		bring_as(&told, there, &wanted, (struct daytona_box_config){0});
		bool is_logged = strstr(logged(&capture), "auto-stop") != NULL;
		capture_stop(&capture);
		assert_true(told.is_ok);
		assert_int_equal(is_logged, i == 0);
	}
}

static void test_who_may_reach_it_has_to_be_as_the_profile_says(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.blocks_network = true};
	there->settings.is_public = true;
	there->set_reason = "DAYTONA_REJECTED";
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_false(told.is_ok);
	assert_string_equal(told.err.reason, "DAYTONA_REJECTED");
	assert_non_null(strstr(told.err.text, "public-ingress"));
}

static void test_what_cannot_be_changed_is_told(void **state)
{
	static const char *const keys[] = {"image", "target", "cpu"};
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {
		.blocks_network = true, .image = "node:22", .cpu = 4, .target = "eu"};
	there->settings.image = "node:20";
	there->settings.cpu = 2;
	there->settings.target = "us";
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		struct told told;
		bring_as(&told, there, &wanted, (struct daytona_box_config){0});
		assert_true(told.is_ok);
		assert_int_equal(told.warnings, ARRAY_LENGTH(keys) - i);
		assert_non_null(strstr(told.warning, "cannot be changed"));
		assert_memory_equal(told.warning, keys[i], strlen(keys[i]));
		there->settings.image = "node:22";
		there->settings.target = i >= 1 ? "eu" : "us";
	}
}

static void test_a_ttl_is_asked_for_once_and_told_where_there_is_none(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box", .ttl_min = 60, .blocks_network = true};
	struct daytona_box_config config = {.create = &create};
	bring_as(&told, there, &create, config);
	assert_true(told.is_ok);
	assert_int_equal(told.warnings, 0);
	bring_as(&told, there, &create, config); // found again: to set it would begin it anew
	assert_int_equal(there->intervals[DAYTONA_TTL], 1);
	there->exists = false;
	there->set_reason = "DAYTONA_REJECTED";
	bring_as(&told, there, &create, config);
	assert_true(told.is_ok);
	assert_int_equal(told.warnings, 1);
	assert_names(told.warning, "sandbox box | ttl");
}

static void test_a_class_that_is_another_is_told(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.sandbox_class = "linux-vm", .blocks_network = true};
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_int_equal(told.warnings, 1);
	assert_names(told.warning, "class | linux-vm | container");
}

static void test_of_another_account_its_absence_is_no_end(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	struct daytona_box_config config = {.create = &create, .others = "with another key"};
	bring_as(&told, there, &create, config);
	assert_string_equal(told.err.reason, "DAYTONA_OTHER_ACCOUNT");
	assert_non_null(strstr(told.err.text, "with another key"));
	assert_int_equal(there->creates, 0);
	there->exists = true;
	there->state = "started";
	bring_as(&told, there, &create, config);
	assert_true(told.is_ok);
}

/* ---- the network ---- */

static void test_a_list_that_the_profile_has_no_more_is_cleared_and_read_back(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.blocks_network = false};
	there->is_network_open = true;
	there->settings.domain_allow_list = "a.example,b.example";
	there->settings.network_allow_list = "10.0.0.0/8";
	bring_as(&told, there, &wanted, (struct daytona_box_config){.network_is_required = true});
	assert_true(told.is_ok);
	assert_string_equal(there->settings.domain_allow_list, "");
	assert_string_equal(there->settings.network_allow_list, "");
	assert_int_equal(there->networks, 1);
	assert_int_equal(there->gets, 2); // and once more after the network was set
	wanted = (struct daytona_create){.blocks_network = true};
	there->settings.domain_allow_list = "a.example";
	bring_as(&told, there, &wanted, (struct daytona_box_config){.network_is_required = true});
	assert_true(told.is_ok);
	assert_string_equal(there->settings.domain_allow_list, "");
}

static void test_a_list_in_another_order_and_form_is_the_same(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.domain_allow_list = "b.example,a.example"};
	there->is_network_open = true;
	there->settings.domain_allow_list = "A.example, b.example";
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_true(told.is_ok);
	assert_int_equal(there->networks, 0);
	there->settings.domain_allow_list = "b.example";
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_int_equal(there->networks, 1);
}

/* In the first row the service accepts the call, in the second it refuses it. */
static void test_a_network_that_is_another_in_force_is_told_or_an_error(void **state)
{
	static const char *const reasons[] = {NULL, "DAYTONA_REJECTED"};
	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		struct told told;
		struct plane_box *there = plane_add(i ? "said-no" : "said-yes", "started");
		struct daytona_create wanted = {.domain_allow_list = "a.example"};
		there->is_network_open = true;
		there->keeps_network = true;
		there->network_reason = reasons[i];
		bring_as(&told, there, &wanted, (struct daytona_box_config){0});
		assert_true(told.is_ok);
		assert_int_equal(told.warnings, 1);
		assert_names(told.warning, "sandbox said- | network = open | a.example");
		bring_as(&told, there, &wanted,
			(struct daytona_box_config){.network_is_required = true});
		assert_false(told.is_ok);
		assert_string_equal(told.err.reason, "NETWORK_NOT_ENFORCED");
	}
}

static void test_a_network_that_cannot_be_set_for_another_reason_ends_it(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.domain_allow_list = "a.example"};
	there->is_network_open = true;
	there->network_reason = "DAYTONA_UNAUTHORIZED";
	bring_as(&told, there, &wanted, (struct daytona_box_config){0});
	assert_string_equal(told.err.reason, "DAYTONA_UNAUTHORIZED");
}

#define FIT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIT_TEST(test_what_the_profile_says_by_now_is_set_once),
		FIT_TEST(test_what_the_profile_does_not_say_of_archiving_stays),
		FIT_TEST(test_an_interval_that_cannot_be_set_is_told_and_its_own_counts),
		FIT_TEST(test_a_setting_is_logged_as_changed_only_if_the_service_changed_it),
		FIT_TEST(test_who_may_reach_it_has_to_be_as_the_profile_says),
		FIT_TEST(test_what_cannot_be_changed_is_told),
		FIT_TEST(test_a_ttl_is_asked_for_once_and_told_where_there_is_none),
		FIT_TEST(test_a_class_that_is_another_is_told),
		FIT_TEST(test_of_another_account_its_absence_is_no_end),
		FIT_TEST(test_a_list_that_the_profile_has_no_more_is_cleared_and_read_back),
		FIT_TEST(test_a_list_in_another_order_and_form_is_the_same),
		FIT_TEST(test_a_network_that_is_another_in_force_is_told_or_an_error),
		FIT_TEST(test_a_network_that_cannot_be_set_for_another_reason_ends_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
