/* SPDX-License-Identifier: MIT */
#include "providers/local/net/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/settings.h"
#include "base/text.h"

static struct network_policy policy;
static struct network_policy open_policy; // every address

/* A list as a profile has it, "key=value key=value". */
static void read_policy(struct network_policy *out, const char *text)
{
	struct settings settings;
	struct error err;
	const char *key;
	char copy[512];
	char *rest = copy;
	settings_init(&settings);
	assert_true(text_whole(copy, sizeof(copy), "%s", text));
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		char *value = strchr(word, '=');
		*value = '\0';
		settings_add(&settings, word, value + 1, "test");
	}
	assert_true(network_policy_read(out, &settings, &key, &err));
	settings_finish(&settings);
}

static int read_policies(void **state)
{
	read_policy(&policy,
		"network=allow allow-host=a.example:443 allow-host=*.b.example "
		"allow-host=localhost:5432 allow-host=c.example allow-host=localhost:11434 "
		"allow-cidr=10.0.0.0/8 allow-cidr=127.0.0.0/8 allow-cidr=169.254.0.0/16 "
		"allow-cidr=2001:db8::/32");
	read_policy(&open_policy, "network=allow allow-cidr=0.0.0.0/0 allow-cidr=::/0");
	return 0;
}

static int finish_policies(void **state)
{
	network_policy_finish(&policy);
	network_policy_finish(&open_policy);
	return 0;
}

static void assert_name(const char *name, uint16_t port, const char *rule)
{
	const char *found = rules_find_name(&policy, name, port);
	if (rule) {
		assert_non_null(found);
		assert_string_equal(found, rule);
	} else {
		assert_null(found);
	}
}

static void test_a_name_is_decided_with_its_port(void **state)
{
	assert_name("a.example", 443, "a.example:443");
	assert_name("a.example", 80, NULL);
	assert_name("x.b.example", 22, "*.b.example");
	assert_name("b.example", 22, NULL);
	assert_name("c.example", 1, "c.example");
	assert_name("evil.example", 443, NULL);
	assert_name("c.example.evil.example", 443, NULL);
}

/*
 * A name that leads to this machine does not lead to its services: the cell has a socket for each.
 */
static void test_no_name_is_a_service(void **state)
{
	assert_name("localhost", 5432, NULL);
	assert_name("localhost", 80, NULL);
}

static void assert_address(const char *text, const char *rule)
{
	struct address address;
	assert_true(address_parse(&address, text));
	const char *found = rules_find_address(&policy, &address);
	if (rule) {
		assert_non_null(found);
		assert_string_equal(found, rule);
	} else {
		assert_null(found);
	}
}

static void test_an_address_needs_a_network(void **state)
{
	assert_address("10.1.2.3", "10.0.0.0/8");
	assert_address("192.168.1.1", NULL);
	assert_address("1.1.1.1", NULL);
	assert_address("2606:4700::1111", NULL);
}

/* Even if a profile names their network. */
static void test_this_machine_and_metadata_are_never_allowed(void **state)
{
	assert_address("127.0.0.1", NULL);
	assert_address("169.254.169.254", NULL);
	assert_address("::ffff:10.0.0.1", NULL);
	static const char *const never[] = {"127.0.0.1", "0.0.0.0", "169.254.169.254", "::1",
		"fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00:ec2::254", "224.0.0.1"};
	for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
		struct address address;
		assert_true(address_parse(&address, never[i]));
		if (rules_find_address(&open_policy, &address)) {
			fail_msg("%s", never[i]);
		}
	}
}

static void test_services_and_networks_are_listed(void **state)
{
	uint16_t services[PORTS_SERVICES_MAX];
	struct address_network networks[NETWORK_ENTRIES_MAX];
	assert_int_equal(rules_services(&policy, services), 2);
	assert_int_equal(services[0], 5432);
	assert_int_equal(services[1], 11434);
	assert_int_equal(rules_networks(&policy, networks), 4);
	assert_int_equal(networks[0].bits, 8);
	assert_string_equal(rules_find_service(&policy, 11434), "localhost:11434");
	assert_null(rules_find_service(&policy, 443));
	assert_int_equal(networks[3].address.family, AF_INET6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_is_decided_with_its_port),
		cmocka_unit_test(test_no_name_is_a_service),
		cmocka_unit_test(test_an_address_needs_a_network),
		cmocka_unit_test(test_this_machine_and_metadata_are_never_allowed),
		cmocka_unit_test(test_services_and_networks_are_listed),
	};
	return cmocka_run_group_tests(tests, read_policies, finish_policies);
}
