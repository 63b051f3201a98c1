/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/json_check.h"
#include "base/json_doc.h"
#include "base/json_names.h"
#include "tests/fuzz/fuzz.h"

/*
 * The input is a document. If it is valid, the verdict must be that of a second version, which
 * walks the tokens of jsmn and compares each name of an object with each other: with all rules,
 * without opaque members, and for the outermost object alone.
 */
enum { NAMES_MAX = 300 }; // the second version compares all pairs

static const char *const known[] = {"path", "sessionId", "task", NULL};
static const char *const opaque[] = {"_meta", "content", NULL};
static const struct json_name_rules rules[] = {
	{.known = known, .opaque = opaque}, {.known = known}, {.known = known, .is_flat = true}};

struct name {
	char *text; // decoded
	size_t len;
};

/* The verdict of the second version. */
enum verdict { FINE, REFUSED, UNKNOWN };

static bool is_one_of(const char *const *list, const struct name *name)
{
	for (; list && *list; list++) {
		if (strlen(*list) == name->len && memcmp(*list, name->text, name->len) == 0) {
			return true;
		}
	}
	return false;
}

/* The name in lower case; the long s and the Kelvin sign are letters, too. */
static struct name fold(const struct name *name)
{
	struct name folded = {mem_alloc(name->len + 1), 0};
	for (size_t i = 0; i < name->len; i++) {
		const char *at = name->text + i;
		size_t left = name->len - i;
		bool is_s = left >= 2 && memcmp(at, "\xc5\xbf", 2) == 0;
		bool is_k = left >= 3 && memcmp(at, "\xe2\x84\xaa", 3) == 0;
		char letter = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
		folded.text[folded.len++] = (char)(is_s ? 's' : is_k ? 'k' : letter);
		i += is_s ? 1 : is_k ? 2 : 0;
	}
	return folded;
}

static bool is_misspelt(const struct name *name)
{
	bool is_bad = memchr(name->text, '\0', name->len) != NULL;
	struct name folded = fold(name);
	for (size_t i = 0; known[i] && !is_one_of(known, name); i++) {
		struct name plain = {(char *)known[i], strlen(known[i])};
		struct name wanted = fold(&plain);
		is_bad = is_bad || (wanted.len == folded.len &&
					   memcmp(wanted.text, folded.text, wanted.len) == 0);
		free(wanted.text);
	}
	free(folded.text);
	return is_bad;
}

static struct name decode(const struct json_doc *doc, json_node member)
{
	struct span key = json_key(doc, member);
	struct buf text;
	buf_init(&text, key.len + 2);
	FUZZ_CHECK(json_decode_string((struct span){key.data - 1, key.len + 2}, &text, NULL));
	struct name name = {mem_alloc(text.len + 1), text.len};
	memcpy(name.text, buf_span(&text).data ? buf_span(&text).data : "", text.len);
	buf_finish(&text);
	return name;
}

static enum verdict look(
	const struct json_doc *doc, json_node node, const struct json_name_rules *rule);

static enum verdict worse(enum verdict a, enum verdict b)
{
	return a == REFUSED || b == FINE ? a : b;
}

static enum verdict look_at_object(
	const struct json_doc *doc, json_node object, const struct json_name_rules *rule)
{
	struct name *names = mem_alloc_zero(json_count(doc, object) * sizeof(*names) + 1);
	enum verdict verdict = json_count(doc, object) > NAMES_MAX ? UNKNOWN : FINE;
	size_t count = 0;
	for (json_node member = json_first(doc, object);
		verdict != UNKNOWN && member != JSON_NODE_NONE; member = json_next(doc, member)) {
		struct name *name = &names[count++];
		*name = decode(doc, member);
		bool is_bad = is_misspelt(name);
		for (size_t i = 0; i + 1 < count; i++) {
			is_bad = is_bad ||
			         (names[i].len == name->len &&
					 memcmp(names[i].text, name->text, name->len) == 0);
		}
		bool is_left = rule->is_flat || is_one_of(rule->opaque, name);
		verdict = worse(verdict, is_bad ? REFUSED : FINE);
		verdict = worse(verdict, is_left ? FINE : look(doc, member, rule));
	}
	while (count > 0) {
		free(names[--count].text);
	}
	free(names);
	return verdict;
}

static enum verdict look(
	const struct json_doc *doc, json_node node, const struct json_name_rules *rule)
{
	enum verdict verdict = FINE;
	if (json_is(doc, node, JSON_OBJECT)) {
		return look_at_object(doc, node, rule);
	}
	if (json_is(doc, node, JSON_ARRAY)) {
		for (json_node item = json_first(doc, node); item != JSON_NODE_NONE;
			item = json_next(doc, item)) {
			verdict = worse(verdict, look(doc, item, rule));
		}
	}
	return verdict;
}

static bool is_document(struct span text)
{
	struct error err;
	struct json_check *check = json_check_create(NULL);
	bool is_one = json_check_feed(check, text, &err) && json_check_end(check, &err);
	json_check_destroy(check);
	return is_one;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	struct error err;
	if (!is_document(text)) {
		return 0;
	}
	struct json_doc *doc = json_doc_parse_unchecked(text, &err);
	for (size_t i = 0; doc && i < ARRAY_LENGTH(rules); i++) {
		enum verdict expected = look(doc, 0, &rules[i]);
		bool is_fine = json_names_check(text, &rules[i], &err);
		FUZZ_CHECK(is_fine || err.text[0]);
		FUZZ_CHECK(is_fine || err.code == ERROR_PROTOCOL || err.code == ERROR_LIMIT);
		FUZZ_CHECK(expected == UNKNOWN || is_fine == (expected == FINE));
	}
	json_doc_destroy(doc);
	return 0;
}
