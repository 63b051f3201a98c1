/* SPDX-License-Identifier: MIT */
#include "providers/local/net/dns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

#define HEADER "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define NAME "\3wWw\7example\3com\0"
#define TYPE_A_CLASS_IN "\0\1\0\1"

static const struct span question = {HEADER NAME TYPE_A_CLASS_IN, 12 + 17 + 4};

static void test_a_question_for_an_address_is_read(void **state)
{
	struct dns_question read;
	assert_int_equal(dns_read(question, &read), DNS_DONE);
	assert_string_equal(read.name, "www.example.com");
	assert_true(read.wants_address);
	assert_int_equal(read.size, question.len);
}

/*
 * The answer repeats the question byte for byte, because resolvers compare it, even the upper case.
 */
static void test_an_answer_has_the_one_address(void **state)
{
	unsigned char out[DNS_MESSAGE_MAX];
	struct dns_question read;
	enum dns_code code = dns_read(question, &read);
	size_t size = dns_write(question, &read, code, 0xc6120102, out);
	static const char expected[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" NAME TYPE_A_CLASS_IN
				       "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\2";
	assert_int_equal(size, sizeof(expected) - 1);
	assert_memory_equal(out, expected, size);
}

static void test_other_types_have_an_empty_answer(void **state)
{
	static const unsigned char types[] = {28, 33, 16, 65, 2, 255}; // AAAA SRV TXT HTTPS NS ANY
	for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
		char bytes[64];
		unsigned char out[DNS_MESSAGE_MAX];
		struct dns_question read;
		memcpy(bytes, question.data, question.len);
		bytes[question.len - 3] = (char)types[i];
		struct span message = {bytes, question.len};
		assert_int_equal(dns_read(message, &read), DNS_DONE);
		assert_false(read.wants_address);
		assert_int_equal(dns_write(message, &read, DNS_DONE, 0, out), message.len);
		assert_memory_equal(out + 2, "\x81\x80\0\1\0\0\0\0\0\0", 10);
	}
}

/* EDNS (RFC 6891): one more record follows; it is not repeated. */
static void test_what_follows_the_question_is_left_out(void **state)
{
	static const char bytes[] = "\x12\x34\x01\x20\0\1\0\0\0\0\0\1" NAME TYPE_A_CLASS_IN
				    "\0\0\x29\x10\0\0\0\0\0\0\0";
	unsigned char out[DNS_MESSAGE_MAX];
	struct dns_question read;
	struct span message = {bytes, sizeof(bytes) - 1};
	assert_int_equal(dns_read(message, &read), DNS_DONE);
	assert_int_equal(dns_write(message, &read, DNS_DONE, 0, out), question.len);
	assert_memory_equal(out + 2, "\x81\x80\0\1\0\0\0\0\0\0", 10);
}

static void test_what_is_no_question_is_not_answered(void **state)
{
	struct dns_question read;
	char bytes[DNS_MESSAGE_MAX + 1] = {0};
	assert_int_equal(dns_read((struct span){NULL, 0}, &read), DNS_SILENT);
	assert_int_equal(dns_read((struct span){question.data, 11}, &read), DNS_SILENT);
	assert_int_equal(dns_read((struct span){bytes, sizeof(bytes)}, &read), DNS_SILENT);
	/* An answer to an answer: two of us would talk for ever. */
	memcpy(bytes, question.data, question.len);
	bytes[2] = (char)0x81;
	assert_int_equal(dns_read((struct span){bytes, question.len}, &read), DNS_SILENT);
}

static void assert_code(enum dns_code code, struct span message, size_t size)
{
	unsigned char out[DNS_MESSAGE_MAX];
	struct dns_question read;
	assert_int_equal(dns_read(message, &read), code);
	assert_int_equal(dns_write(message, &read, code, 0, out), size);
	assert_int_equal(out[3] & 0xf, code);
	assert_int_equal(out[5], size > 12);
	assert_memory_equal(out, message.data, 2);
}

static void test_odd_questions_have_their_codes(void **state)
{
	assert_code(
		DNS_UNKNOWN, SPAN_LITERAL("\1\2\x29\0\0\1\0\0\0\0\0\0" NAME TYPE_A_CLASS_IN), 12);
	assert_code(DNS_REFUSED, SPAN_LITERAL(HEADER NAME "\0\1\0\3"), question.len);
	assert_code(DNS_NO_SUCH_NAME, SPAN_LITERAL(HEADER "\0" TYPE_A_CLASS_IN), 17);
	assert_code(DNS_NO_SUCH_NAME, SPAN_LITERAL(HEADER "\1a\1 \0" TYPE_A_CLASS_IN), 21);
	assert_code(DNS_NO_SUCH_NAME,
		SPAN_LITERAL(HEADER "\3"
				    "127\1"
				    "1\0" TYPE_A_CLASS_IN),
		23);
}

static void test_a_malformed_question_says_so(void **state)
{
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER), 12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL("\1\2\1\0\0\0\0\0\0\0\0\0"), 12);
	assert_code(DNS_MALFORMED,
		SPAN_LITERAL("\1\2\1\0\0\2\0\0\0\0\0\0" NAME TYPE_A_CLASS_IN NAME TYPE_A_CLASS_IN),
		12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER "\3ab"), 12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER "\3abc"), 12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER "\1a\0\0\1\0"), 12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER "\3a.b\0" TYPE_A_CLASS_IN), 12);
	assert_code(DNS_MALFORMED, SPAN_LITERAL(HEADER "\xc0\x0c" TYPE_A_CLASS_IN), 12);
}

/* 255 bytes with the lengths (RFC 1035, section 2.3.4); a byte more is refused. */
static void test_a_name_may_be_as_long_as_names_are(void **state)
{
	const struct span end = SPAN_LITERAL("\0" TYPE_A_CLASS_IN);
	char bytes[DNS_MESSAGE_MAX] = HEADER;
	struct dns_question read;
	size_t at = 12;
	for (int i = 0; i < 4; i++) {
		size_t len = i < 3 ? 63 : 61;
		bytes[at] = (char)len;
		memset(bytes + at + 1, 'a', len);
		at += 1 + len;
	}
	memcpy(bytes + at, end.data, end.len);
	assert_int_equal(dns_read((struct span){bytes, at + end.len}, &read), DNS_DONE);
	assert_int_equal(strlen(read.name), NAME_MAX_BYTES);
	bytes[at - 62] = 62;
	bytes[at] = 'a';
	memcpy(bytes + at + 1, end.data, end.len);
	assert_int_not_equal(dns_read((struct span){bytes, at + 1 + end.len}, &read), DNS_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_question_for_an_address_is_read),
		cmocka_unit_test(test_an_answer_has_the_one_address),
		cmocka_unit_test(test_other_types_have_an_empty_answer),
		cmocka_unit_test(test_what_follows_the_question_is_left_out),
		cmocka_unit_test(test_what_is_no_question_is_not_answered),
		cmocka_unit_test(test_odd_questions_have_their_codes),
		cmocka_unit_test(test_a_malformed_question_says_so),
		cmocka_unit_test(test_a_name_may_be_as_long_as_names_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
