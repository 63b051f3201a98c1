/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/local/net/lookup.h"
#include "providers/local/net/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);
	FUZZ_CHECK(end);
	for (const char *at = text; at < end; at++) {
		FUZZ_CHECK(*at >= 0x20 && *at <= 0x7e);
	}
}

static void check_name(const char *text)
{
	char name[NAME_SIZE];
	FUZZ_CHECK(host_name_read(name, span_of(text)) && strcmp(name, text) == 0);
}

static void check_message(struct span packet)
{
	struct wire_message message;
	if (!wire_read(packet, &message)) {
		return;
	}
	check_text(message.text, sizeof(message.text));
	check_text(message.name, sizeof(message.name));
	if (message.kind == WIRE_SERVER_NAME) {
		FUZZ_CHECK(message.id != 0);
		check_name(message.name);
	}
	if (message.kind != WIRE_ASK && message.kind != WIRE_TELL) {
		return;
	}
	struct network_connection connection = wire_connection(&message);
	FUZZ_CHECK(connection.id != 0 && connection.port != 0);
	FUZZ_CHECK(connection.port == message.port);
	if (connection.target == NETWORK_TO_NAME) {
		check_name(connection.name);
	} else if (connection.target == NETWORK_TO_ADDRESS) {
		char printed[ADDRESS_TEXT_SIZE];
		address_print(&connection.address, printed);
		FUZZ_CHECK(strcmp(printed, connection.name) == 0);
	} else {
		FUZZ_CHECK(connection.target == NETWORK_TO_SERVICE);
	}
}

static void check_start(struct span packet)
{
	static struct wire_start start;
	if (!wire_read_start(packet, &start)) {
		return;
	}
	const struct address address = {.family = AF_INET6};
	FUZZ_CHECK(start.service_count <= PORTS_SERVICES_MAX);
	for (uint32_t i = 0; i < start.network_count; i++) {
		(void)address_is_in(&address, &start.networks[i]);
	}
}

static void check_answer(struct span packet)
{
	struct lookup_answer answer;
	if (!lookup_read(packet, &answer)) {
		return;
	}
	for (uint32_t i = 0; i < answer.count; i++) {
		char printed[ADDRESS_TEXT_SIZE];
		(void)address_reach(&answer.found[i].address);
		address_print(&answer.found[i].address, printed);
		FUZZ_CHECK(printed[0] != '\0');
	}
}

/* The first byte says which packet it is. What is missing at its end is zero. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		void (*check)(struct span packet);
		size_t size;
	} packets[] = {{check_message, sizeof(struct wire_message)},
		{check_start, sizeof(struct wire_start)},
		{check_answer, sizeof(struct lookup_answer)}};
	static char whole[sizeof(struct wire_start) + 1];
	if (size == 0 || data[0] >= sizeof(packets) / sizeof(packets[0])) {
		return 0;
	}
	size_t at = data[0];
	size_t used = size - 1 < packets[at].size ? size - 1 : packets[at].size;
	memset(whole, 0, sizeof(whole));
	memcpy(whole, data + 1, used);
	packets[at].check((struct span){whole, packets[at].size});
	packets[at].check((struct span){whole, packets[at].size + 1});
	packets[at].check((struct span){whole, used});
	return 0;
}
