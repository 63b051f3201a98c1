/* SPDX-License-Identifier: MIT */
#include "providers/local/net/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static struct wire_start start;

static struct address address_of(const char *text)
{
	struct address address;
	assert_true(address_parse(&address, text));
	return address;
}

static void allow(const char *network)
{
	assert_true(address_parse_network(&start.networks[start.network_count++], network));
}

static bool is_reached(const char *text, bool is_own)
{
	const struct lookup_found found = {.address = address_of(text), .is_own = is_own};
	return target_is_reached(&start, &found);
}

static void test_only_public_addresses_are_reached_unless_a_network_is_named(void **state)
{
	start = (struct wire_start){.network_count = 0};
	assert_true(is_reached("8.8.8.8", false));
	assert_true(is_reached("2606:4700::1", false));
	assert_false(is_reached("10.1.2.3", false));
	assert_false(is_reached("fd12::1", false));
	assert_false(is_reached("::ffff:10.1.2.3", false));
	allow("10.0.0.0/8");
	allow("fd12::/16");
	assert_true(is_reached("10.1.2.3", false));
	assert_true(is_reached("fd12::1", false));
	assert_false(is_reached("192.168.0.1", false));
}

static void test_no_network_opens_what_is_never_reached(void **state)
{
	static const char *const never[] = {"127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1",
		"::1", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00:ec2::254"};
	start = (struct wire_start){.network_count = 0};
	allow("0.0.0.0/0");
	allow("::/0");
	allow("127.0.0.1/32");
	for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
		assert_false(is_reached(never[i], false));
	}
}

static void test_this_machines_addresses_have_to_be_named_alone(void **state)
{
	start = (struct wire_start){.network_count = 0};
	assert_false(is_reached("8.8.8.8", true));
	allow("192.168.0.0/16");
	assert_false(is_reached("192.168.0.5", true));
	assert_true(is_reached("192.168.0.6", false));
	allow("192.168.0.5/32");
	assert_true(is_reached("192.168.0.5", true));
	assert_false(is_reached("2606:4700::1", true));
	allow("2606:4700::1/128");
	assert_true(is_reached("2606:4700::1", true));
}

static struct proxy_target target_of(const char *host, uint16_t port)
{
	struct proxy_target target = {.port = port};
	target.is_address = address_parse(&target.address, host);
	if (!target.is_address) {
		text_whole(target.name, sizeof(target.name), "%s", host);
	}
	return target;
}

static void test_an_address_of_our_dns_is_the_name_it_was_given_for(void **state)
{
	struct host_names *names = host_names_create();
	enum network_target kind;
	char text[ADDRESS_TEXT_SIZE];
	const struct address given = address_from_ipv4(host_names_give(names, "good.example"));
	address_print(&given, text);
	start = (struct wire_start){.network_count = 0};
	struct proxy_target target = target_of(text, 443);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_SETTLED);
	assert_int_equal(kind, NETWORK_TO_NAME);
	assert_false(target.is_address);
	assert_string_equal(target.name, "good.example");
	target = target_of("198.19.255.255", 443);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_UNKNOWN);
	target = target_of("198.18.0.1", 443);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_UNKNOWN);
	target = target_of("198.20.0.1", 443);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_SETTLED);
	assert_int_equal(kind, NETWORK_TO_ADDRESS);
	host_names_destroy(names);
}

static void test_this_machine_is_its_services(void **state)
{
	static const char *const hosts[] = {"localhost", "127.0.0.1", "127.9.9.9", "::1"};
	struct host_names *names = host_names_create();
	enum network_target kind;
	start = (struct wire_start){.service_count = 1, .services = {5432}};
	for (size_t i = 0; i < ARRAY_LENGTH(hosts); i++) {
		struct proxy_target target = target_of(hosts[i], 5432);
		assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_SETTLED);
		assert_int_equal(kind, NETWORK_TO_SERVICE);
		assert_string_equal(target.name, "localhost");
		target = target_of(hosts[i], 5433);
		assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_REFUSED);
	}
	host_names_destroy(names);
}

static void use_proxy(const char *host)
{
	start = (struct wire_start){.upstream.place = target_of(host, 8080)};
}

static void test_the_gate_is_one_address_and_port(void **state)
{
	struct host_names *names = host_names_create();
	start = (struct wire_start){.network_count = 0};
	struct proxy_target target = target_of(PORTS_GATE, PORTS_GATE_PORT);
	assert_true(target_is_gate(&start, names, &target));
	target.port++;
	assert_false(target_is_gate(&start, names, &target));
	target = target_of("198.18.0.2", PORTS_GATE_PORT);
	assert_false(target_is_gate(&start, names, &target));
	host_names_destroy(names);
}

/* Programs whose configuration names the machine's proxy find ours there, and nothing else does. */
static void test_the_machines_proxy_is_the_gate_and_no_target(void **state)
{
	struct host_names *names = host_names_create();
	enum network_target kind;
	char text[ADDRESS_TEXT_SIZE];
	const struct address given = address_from_ipv4(host_names_give(names, "proxy.example"));
	address_print(&given, text);
	use_proxy("proxy.example");
	struct proxy_target target = target_of(text, 8080);
	assert_true(target_is_gate(&start, names, &target));
	target = target_of(text, 8081);
	assert_false(target_is_gate(&start, names, &target));
	target = target_of("proxy.example", 8080);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_REFUSED);
	target = target_of("proxy.example", 8081);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_SETTLED);
	use_proxy("10.0.0.5");
	target = target_of("10.0.0.5", 8080);
	assert_true(target_is_gate(&start, names, &target));
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_REFUSED);
	start.upstream.others[start.upstream.other_count++] = target_of("10.0.0.6", 3128);
	target = target_of("10.0.0.6", 3128);
	assert_true(target_is_gate(&start, names, &target));
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_REFUSED);
	use_proxy("127.0.0.1");
	start.service_count = 1;
	start.services[0] = 8080;
	target = target_of("localhost", 8080);
	assert_int_equal(target_settle(&start, names, &target, &kind), TARGET_REFUSED);
	host_names_destroy(names);
}

static void test_an_address_of_the_machines_proxy_is_not_reached(void **state)
{
	struct lookup_found found = {.address = address_of("8.8.8.8")};
	start = (struct wire_start){.network_count = 0};
	assert_true(target_is_reached(&start, &found));
	found.is_avoided = true;
	assert_false(target_is_reached(&start, &found));
}

static bool may_be_asked_for(const char *first, const char *second, bool is_own)
{
	struct lookup_answer answer = {.count = second ? 2 : 1};
	answer.found[0].address = address_of(first);
	if (second) {
		answer.found[1] =
			(struct lookup_found){.address = address_of(second), .is_own = is_own};
	}
	return target_may_be_asked_for(&start, &answer);
}

/* A proxy on this machine may connect to any of the addresses. */
static void test_no_address_leads_back_by_a_proxy_of_this_machine(void **state)
{
	const struct lookup_answer none = {.count = 0};
	start = (struct wire_start){.network_count = 0};
	assert_true(target_may_be_asked_for(&start, &none));
	assert_true(may_be_asked_for("8.8.8.8", NULL, false));
	assert_false(may_be_asked_for("127.0.0.1", NULL, false));
	assert_false(may_be_asked_for("10.1.2.3", NULL, false));
	assert_false(may_be_asked_for("8.8.8.8", "169.254.169.254", false));
	assert_false(may_be_asked_for("8.8.8.8", "192.0.2.5", true));
	assert_true(may_be_asked_for("8.8.8.8", "10.1.2.3", false));
	allow("10.0.0.0/8");
	assert_true(may_be_asked_for("10.1.2.3", NULL, false));
	assert_false(may_be_asked_for("10.1.2.3", "10.1.2.4", true));
	allow("10.1.2.4/32");
	assert_true(may_be_asked_for("10.1.2.3", "10.1.2.4", true));
}

static void test_names_below_localhost_are_local(void **state)
{
	struct proxy_target target = target_of("a.localhost", 80);
	assert_true(target_is_local_name(&target));
	target = target_of("alocalhost", 80);
	assert_false(target_is_local_name(&target));
	target = target_of("127.0.0.1", 80);
	assert_false(target_is_local_name(&target));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_public_addresses_are_reached_unless_a_network_is_named),
		cmocka_unit_test(test_no_network_opens_what_is_never_reached),
		cmocka_unit_test(test_this_machines_addresses_have_to_be_named_alone),
		cmocka_unit_test(test_an_address_of_our_dns_is_the_name_it_was_given_for),
		cmocka_unit_test(test_this_machine_is_its_services),
		cmocka_unit_test(test_the_gate_is_one_address_and_port),
		cmocka_unit_test(test_the_machines_proxy_is_the_gate_and_no_target),
		cmocka_unit_test(test_an_address_of_the_machines_proxy_is_not_reached),
		cmocka_unit_test(test_no_address_leads_back_by_a_proxy_of_this_machine),
		cmocka_unit_test(test_names_below_localhost_are_local),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
