/* SPDX-License-Identifier: MIT */
#include "providers/address.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct address parsed(const char *text)
{
	struct address address;
	if (!address_parse(&address, text)) {
		fail_msg("%s is no address", text);
	}
	return address;
}

static void assert_reach(enum address_reach reach, const char *const *texts)
{
	for (; *texts; texts++) {
		struct address address = parsed(*texts);
		if (address_reach(&address) != reach) {
			fail_msg("%s: %d", *texts, (int)address_reach(&address));
		}
	}
}

static void test_a_public_address_may_be_reached(void **state)
{
	static const char *const texts[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
		"198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2001:200::1",
		"2a00::1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", NULL};
	assert_reach(ADDRESS_PUBLIC, texts);
}

static void test_a_private_address_needs_a_word(void **state)
{
	static const char *const texts[] = {"10.0.0.1", "10.255.255.255", "100.64.0.1",
		"100.127.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.1", "192.0.2.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "fc00::1", "fd12::1",
		"fec0::1", "2001::1", "2001:db8::1", "3fff::1", "4000::1", "100::1", "64:ff9b:1::1",
		"::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:c0a8:1::1", NULL};
	assert_reach(ADDRESS_PRIVATE, texts);
}

static void test_loopback_link_and_metadata_are_never_reached(void **state)
{
	static const char *const texts[] = {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255",
		"169.254.0.1", "169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1",
		"fe80::1", "febf::1", "ff02::1", "fd00:ec2::254", "fd20:ce::254", "::127.0.0.1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
		"2002:7f00:1::", "2002:a9fe:a9fe::1", NULL};
	assert_reach(ADDRESS_NEVER, texts);
}

static void test_what_is_no_address_is_not_parsed(void **state)
{
	static const char *const texts[] = {"", "1", "1.2.3", "127.1", "0x7f.0.0.1", "1.2.3.4 ",
		"1.2.3.256", "::1%lo", "[::1]", "example.com", ":", "1:2:3"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct address address;
		assert_false(address_parse(&address, texts[i]));
	}
}

static void test_a_network_has_the_addresses_of_its_prefix(void **state)
{
	static const struct {
		const char *network;
		const char *address;
		bool is_in;
	} cases[] = {{"10.0.0.0/8", "10.255.0.1", true}, {"10.0.0.0/8", "11.0.0.0", false},
		{"172.16.0.0/12", "172.31.0.1", true}, {"172.16.0.0/12", "172.32.0.1", false},
		{"192.0.2.7/32", "192.0.2.7", true}, {"192.0.2.7/32", "192.0.2.6", false},
		{"0.0.0.0/0", "255.1.2.3", true}, {"0.0.0.0/0", "::1", false},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false}, {"fd00::1/128", "fd00::1", true},
		{"fd00::1/128", "fd00::", false}, {"10.0.0.0/8", "::ffff:10.0.0.1", false}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct address_network network;
		struct address address = parsed(cases[i].address);
		assert_true(address_parse_network(&network, cases[i].network));
		if (address_is_in(&address, &network) != cases[i].is_in) {
			fail_msg("%s in %s", cases[i].address, cases[i].network);
		}
	}
}

static void test_what_is_no_network_is_not_parsed(void **state)
{
	static const char *const texts[] = {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33",
		"10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8 ", "10.0.0.0/256", "10.0.0.0/264",
		"::/129", "/8", "10/8", "10.0.0.0/8/8",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct address_network network;
		assert_false(address_parse_network(&network, texts[i]));
	}
}

static void test_an_address_is_printed_and_named_as_it_was(void **state)
{
	static const char *const texts[] = {"192.0.2.7", "2001:db8::7", "::1"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		char text[ADDRESS_TEXT_SIZE];
		struct sockaddr_storage name;
		struct address again;
		struct address address = parsed(texts[i]);
		address_print(&address, text);
		assert_string_equal(text, texts[i]);
		socklen_t size = address_name(&address, 443, &name);
		assert_int_equal(size, address.family == AF_INET ? sizeof(struct sockaddr_in)
								 : sizeof(struct sockaddr_in6));
		assert_true(address_from_name(&again, (const struct sockaddr *)&name));
		assert_memory_equal(&again, &address, sizeof(again));
	}
}

static void test_an_address_of_a_link_or_of_no_network_is_not_taken(void **state)
{
	struct address address;
	struct sockaddr_in6 scoped = {.sin6_family = AF_INET6, .sin6_scope_id = 2};
	struct sockaddr other = {.sa_family = AF_UNIX};
	assert_false(address_from_name(&address, (const struct sockaddr *)&scoped));
	assert_false(address_from_name(&address, &other));
}

static void test_an_ipv4_number_is_an_address(void **state)
{
	char text[ADDRESS_TEXT_SIZE];
	struct address address = address_from_ipv4(0xc6120001);
	address_print(&address, text);
	assert_string_equal(text, "198.18.0.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_public_address_may_be_reached),
		cmocka_unit_test(test_a_private_address_needs_a_word),
		cmocka_unit_test(test_loopback_link_and_metadata_are_never_reached),
		cmocka_unit_test(test_what_is_no_address_is_not_parsed),
		cmocka_unit_test(test_a_network_has_the_addresses_of_its_prefix),
		cmocka_unit_test(test_what_is_no_network_is_not_parsed),
		cmocka_unit_test(test_an_address_is_printed_and_named_as_it_was),
		cmocka_unit_test(test_an_address_of_a_link_or_of_no_network_is_not_taken),
		cmocka_unit_test(test_an_ipv4_number_is_an_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
