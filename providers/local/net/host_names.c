/* SPDX-License-Identifier: MIT */
#include "providers/local/net/host_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/random.h"

enum { SLOTS = 2 * NAMES_MAX, LABEL_MAX = 63 };

struct host_names {
	char *names[NAMES_MAX]; // owned; the first `count`, by address
	uint16_t slots[SLOTS];  // hash table: 1 + index of a name; 0: empty
	uint32_t count;
	uint64_t seed; // keeps programs from choosing names with equal hashes
};

/* ---- valid names ---- */

static bool label_is_valid(const char *label, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	return len > 0 && len <= LABEL_MAX && label[0] != '-' && label[len - 1] != '-' &&
	       strspn(label, allowed) >= len;
}

/* inet_aton(3) also reads "1" and "0x7f000001" as addresses. */
static bool label_is_number(const char *label)
{
	bool is_hexadecimal = label[0] == '0' && label[1] == 'x';
	const char *digits = is_hexadecimal ? "0123456789abcdef" : "0123456789";
	label += is_hexadecimal ? 2 : 0;
	return label[strspn(label, digits)] == '\0';
}

bool host_name_read(char out[NAME_SIZE], struct span text)
{
	if (text.len > 0 && text.data[text.len - 1] == '.') {
		text.len--;
	}
	out[0] = '\0';
	if (text.len == 0 || text.len > NAME_MAX_BYTES || memchr(text.data, '\0', text.len)) {
		return false;
	}
	for (size_t i = 0; i < text.len; i++) {
		char byte = text.data[i];
		out[i] = byte;
		if (byte >= 'A' && byte <= 'Z') {
			out[i] = (char)(byte - 'A' + 'a');
		}
	}
	out[text.len] = '\0';
	const char *label = out;
	for (;;) {
		size_t len = strcspn(label, ".");
		bool is_last = label[len] == '\0';
		if (!label_is_valid(label, len) || (is_last && label_is_number(label))) {
			out[0] = '\0';
			return false;
		}
		if (is_last) {
			return true;
		}
		label += len + 1;
	}
}

/* ---- the table ---- */

struct host_names *host_names_create(void)
{
	struct host_names *names = mem_alloc_zero(sizeof(*names));
	random_fill(&names->seed, sizeof(names->seed));
	return names;
}

void host_names_destroy(struct host_names *names)
{
	for (uint32_t i = 0; names && i < names->count; i++) {
		free(names->names[i]);
	}
	free(names);
}

uint32_t host_names_give(struct host_names *names, const char *name)
{
	size_t slot = (size_t)(hash_text(names->seed, name) % SLOTS);
	for (; names->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
		uint32_t place = names->slots[slot] - 1U;
		if (strcmp(names->names[place], name) == 0) {
			return NAMES_FIRST + place;
		}
	}
	if (names->count == NAMES_MAX) {
		return 0;
	}
	names->names[names->count] = mem_strdup(name);
	names->slots[slot] = (uint16_t)(names->count + 1);
	return NAMES_FIRST + names->count++;
}

const char *host_names_find(const struct host_names *names, uint32_t address)
{
	uint32_t place = address - NAMES_FIRST;
	return place < names->count ? names->names[place] : NULL;
}
