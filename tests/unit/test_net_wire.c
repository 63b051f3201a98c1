/* SPDX-License-Identifier: MIT */
#include "providers/local/net/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static struct wire_message message_to(enum network_target target, const char *name)
{
	struct wire_message message = {
		.kind = WIRE_ASK, .id = 7, .target = target, .port = 443, .client_port = 40000};
	text_whole(message.name, sizeof(message.name), "%s", name);
	return message;
}

static bool is_read(const struct wire_message *message)
{
	struct wire_message out;
	return wire_read((struct span){(const char *)message, sizeof(*message)}, &out);
}

static void test_a_connection_is_read_with_where_it_goes(void **state)
{
	const struct wire_message name = message_to(NETWORK_TO_NAME, "example.com");
	const struct wire_message address = message_to(NETWORK_TO_ADDRESS, "10.0.0.7");
	const struct wire_message service = message_to(NETWORK_TO_SERVICE, "localhost");
	assert_true(is_read(&name) && is_read(&address) && is_read(&service));
	struct network_connection connection = wire_connection(&address);
	assert_int_equal(connection.id, 7);
	assert_int_equal(connection.target, NETWORK_TO_ADDRESS);
	assert_int_equal(connection.port, 443);
	assert_int_equal(connection.client_port, 40000);
	assert_string_equal(connection.name, "10.0.0.7");
	const struct address expected = address_from_ipv4(0x0a000007);
	assert_memory_equal(&connection.address, &expected, sizeof(expected));
}

/* The owner decides by names, so each name has one spelling. */
static void test_names_that_are_spelled_otherwise_are_refused(void **state)
{
	static const struct {
		enum network_target target;
		const char *name;
	} wrong[] = {
		{NETWORK_TO_NAME, "Example.com"},
		{NETWORK_TO_NAME, "example.com."},
		{NETWORK_TO_NAME, "127.0.0.1"},
		{NETWORK_TO_NAME, ""},
		{NETWORK_TO_NAME, "a b.example"},
		{NETWORK_TO_ADDRESS, "example.com"},
		{NETWORK_TO_ADDRESS, "2001:0db8::1"},
		{NETWORK_TO_SERVICE, "example.com"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		const struct wire_message message = message_to(wrong[i].target, wrong[i].name);
		assert_false(is_read(&message));
	}
}

static void test_texts_end_and_are_printable(void **state)
{
	struct wire_message message = {.kind = WIRE_FAILED};
	memset(message.text, 'x', sizeof(message.text));
	assert_false(is_read(&message));
	message.text[sizeof(message.text) - 1] = '\0';
	assert_true(is_read(&message));
	message.text[3] = '\x1b';
	assert_false(is_read(&message));
	message = message_to(NETWORK_TO_NAME, "example.com");
	memset(message.name, 'x', sizeof(message.name));
	assert_false(is_read(&message));
}

static void test_numbers_that_mean_nothing_are_refused(void **state)
{
	const struct wire_message right = message_to(NETWORK_TO_NAME, "example.com");
	struct wire_message wrong[] = {right, right, right, right, right, right, right};
	wrong[0].kind = WIRE_LIMIT + 1;
	wrong[1].id = 0;
	wrong[2].port = 0;
	wrong[3].port = 65536;
	wrong[4].target = NETWORK_TO_SERVICE + 1;
	wrong[5].way = NETWORK_BY_REQUEST + 1;
	wrong[6].client_port = 65536;
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		assert_false(is_read(&wrong[i]));
	}
	struct wire_message message = right;
	message.kind = WIRE_TELL;
	message.result = NETWORK_PROXY_UNREACHABLE + 1;
	assert_false(is_read(&message));
	message.result = NETWORK_PROXY_REFUSED;
	message.status = 999;
	assert_true(is_read(&message));
	message.status = 1000;
	assert_false(is_read(&message));
	message = (struct wire_message){.kind = WIRE_LIMIT, .limit = NETWORK_LIMIT_NAMES + 1};
	assert_false(is_read(&message));
	message = (struct wire_message){.kind = WIRE_GONE};
	assert_false(is_read(&message));
	message = (struct wire_message){.kind = WIRE_SERVER_NAME, .id = 7, .name = "A.example"};
	assert_false(is_read(&message));
}

static void test_a_packet_of_another_size_is_refused(void **state)
{
	const struct wire_message message = message_to(NETWORK_TO_NAME, "example.com");
	struct wire_message out;
	struct span packet = {(const char *)&message, sizeof(message)};
	assert_true(wire_read(packet, &out));
	packet.len--;
	assert_false(wire_read(packet, &out));
	packet.len = 0;
	assert_false(wire_read(packet, &out));
}

static void test_the_first_packet_has_networks_that_are_networks(void **state)
{
	static struct wire_start start, out;
	struct span packet = {(const char *)&start, sizeof(start)};
	start.network_count = 1;
	start.networks[0] = (struct address_network){.address.family = AF_INET, .bits = 32};
	assert_true(wire_read_start(packet, &out));
	start.networks[0].bits = 33;
	assert_false(wire_read_start(packet, &out));
	start.networks[0].address.family = AF_INET6;
	assert_true(wire_read_start(packet, &out));
	start.networks[0].address.family = AF_UNIX;
	assert_false(wire_read_start(packet, &out));
	start.network_count = NETWORK_NETWORKS_MAX + 1;
	assert_false(wire_read_start(packet, &out));
	start.network_count = 0;
	start.service_count = PORTS_SERVICES_MAX + 1;
	assert_false(wire_read_start(packet, &out));
}

static void test_the_first_packet_has_a_proxy_that_is_whole(void **state)
{
	static struct wire_start start, out;
	struct span packet = {(const char *)&start, sizeof(start)};
	start.upstream.place = (struct proxy_target){.port = 3128, .name = "proxy.example"};
	assert_true(wire_read_start(packet, &out));
	start.upstream.place.name[0] = '/';
	assert_false(wire_read_start(packet, &out));
	start.upstream.place.is_address = true;
	assert_false(wire_read_start(packet, &out));
	start.upstream.place.address.family = AF_INET6;
	assert_true(wire_read_start(packet, &out));
	start.upstream.other_count = 1;
	assert_false(wire_read_start(packet, &out));
	start.upstream.others[0] = (struct proxy_target){.port = 1, .name = "other.example"};
	assert_true(wire_read_start(packet, &out));
	memset(start.upstream.key, 'x', sizeof(start.upstream.key));
	assert_false(wire_read_start(packet, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_connection_is_read_with_where_it_goes),
		cmocka_unit_test(test_names_that_are_spelled_otherwise_are_refused),
		cmocka_unit_test(test_texts_end_and_are_printable),
		cmocka_unit_test(test_numbers_that_mean_nothing_are_refused),
		cmocka_unit_test(test_a_packet_of_another_size_is_refused),
		cmocka_unit_test(test_the_first_packet_has_networks_that_are_networks),
		cmocka_unit_test(test_the_first_packet_has_a_proxy_that_is_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
