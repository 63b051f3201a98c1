/* SPDX-License-Identifier: MIT */
#include "broker/policy/kept_hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "tests/support/facts.h"

static char folder[64];
static struct kept_hosts hosts;

static int set_up(void **state)
{
	text_whole(folder, sizeof(folder), "/tmp/kept.XXXXXX");
	return mkdtemp(folder) ? 0 : 1;
}

static int tear_down(void **state)
{
	char command[96];
	kept_hosts_finish(&hosts);
	text_whole(command, sizeof(command), "rm -r %s", folder);
	return system(command); // NOLINT(cert-env33-c): of the test's own
}

static void read_hosts(void)
{
	struct error err;
	assert_true(kept_hosts_read(&hosts, folder, &err));
}

static void add(const char *profile, const char *host, uint16_t port)
{
	struct error err;
	assert_true(kept_hosts_add(folder, profile, host, port, &err));
}

static size_t forget(const char *profile, const char *host, uint16_t port)
{
	struct error err;
	size_t count;
	assert_true(kept_hosts_forget(folder, profile, host, port, &count, &err));
	return count;
}

static void write_file(const char *text)
{
	char path[96];
	text_whole(path, sizeof(path), "%s/hosts.json", folder);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void test_a_missing_file_and_folder_have_no_hosts(void **state)
{
	struct error err;
	read_hosts();
	assert_int_equal(hosts.count, 0);
	assert_true(kept_hosts_read(&hosts, "/nonexistent/folder", &err));
	assert_int_equal(hosts.count, 0);
}

static void test_an_answer_is_for_its_profile_host_and_port(void **state)
{
	add("p", "a.example", 443);
	add("p", "a.example", 443);
	add("q \"\x1b", "2001:db8::1", 22);
	read_hosts();
	assert_int_equal(hosts.count, 2);
	assert_true(kept_hosts_have(&hosts, "p", "a.example", 443));
	assert_false(kept_hosts_have(&hosts, "p", "a.example", 80));
	assert_false(kept_hosts_have(&hosts, "p", "b.a.example", 443));
	assert_false(kept_hosts_have(&hosts, "q", "a.example", 443));
	assert_true(kept_hosts_have(&hosts, "q \"\x1b", "2001:db8::1", 22));
	assert_int_equal(strlen(hosts.items[0].since), strlen("2026-01-31T12:00:00.000Z"));
}

static void test_what_is_forgotten_is_gone_at_once(void **state)
{
	add("p", "a.example", 443);
	add("p", "a.example", 80);
	add("q", "a.example", 443);
	read_hosts();
	assert_int_equal(forget("p", "b.example", 0), 0);
	assert_int_equal(forget("q", "a.example", 443), 1);
	assert_int_equal(forget("p", "a.example", 80), 1);
	read_hosts();
	assert_int_equal(hosts.count, 1);
	add("q", "a.example", 443);
	assert_int_equal(forget(NULL, "a.example", 0), 2);
	read_hosts();
	assert_int_equal(hosts.count, 0);
}

static void test_a_file_that_means_nothing_is_named_and_stays(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "{\"hosts\":1}", "{\"hosts\":[1]}",
		"{\"hosts\":[{\"profile\":\"p\",\"host\":\"h\",\"port\":65536,\"since\":\"\"}]}",
		"{\"hosts\":[{\"profile\":\"p\",\"host\":\"h\",\"since\":\"\"}]}"};
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		write_file(texts[i]);
		assert_false(kept_hosts_read(&hosts, folder, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
		assert_names(err.text, "hosts.json");
		assert_int_equal(hosts.count, 0);
		assert_false(kept_hosts_add(folder, "p", "a.example", 443, &err));
		assert_false(kept_hosts_read(&hosts, folder, &err));
	}
}

static void test_there_are_only_so_many(void **state)
{
	struct error err;
	struct buf text;
	buf_init(&text, KEPT_HOSTS_FILE_MAX);
	for (unsigned i = 0; i < KEPT_HOSTS_MAX; i++) {
		assert_true(buf_append_format(&text, NULL,
			"%s{\"profile\":\"p\",\"host\":\"%u.example\",\"port\":443,\"since\":\"\"}",
			i == 0 ? "{\"hosts\":[" : ",", i));
	}
	assert_true(buf_append(&text, (struct span){"]}", 3}, NULL));
	write_file(text.data);
	buf_finish(&text);
	assert_false(kept_hosts_add(folder, "p", "more.example", 443, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_names(err.text, "policy forget");
	add("p", "7.example", 443);
	read_hosts();
	assert_int_equal(hosts.count, KEPT_HOSTS_MAX);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_missing_file_and_folder_have_no_hosts),
		CASE(test_an_answer_is_for_its_profile_host_and_port),
		CASE(test_what_is_forgotten_is_gone_at_once),
		CASE(test_a_file_that_means_nothing_is_named_and_stays),
		CASE(test_there_are_only_so_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
