/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_JSON_CASES_H
#define TESTS_UNIT_JSON_CASES_H

#include <stddef.h>

/* Texts that the grammar of RFC 8259 accepts, and texts that it refuses. */
struct json_case {
	const char *text;
	size_t len;
};

#define CASE(literal)                                                                              \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

static const struct json_case accepted[] = {
	/* Scalars at the top. */
	CASE("0"), CASE("-0"), CASE("7"), CASE("10"), CASE("-12"), CASE("1.5"), CASE("0.0"),
	CASE("-0.1"), CASE("1e1"), CASE("1E1"), CASE("1e+1"), CASE("1e-1"), CASE("0e0"),
	CASE("0.5E-007"), CASE("123456789012345678901234567890"), CASE("9007199254740993"),
	CASE("1e99999"), CASE("true"), CASE("false"), CASE("null"), CASE("\"\""), CASE("\"a\""),
	/* White space. */
	CASE(" 1"), CASE("1 "), CASE("\t\r\n 1\t\r\n "), CASE(" [ ] "), CASE(" { } "),
	CASE("[ 1 , 2 ]"), CASE("{ \"a\" : 1 , \"b\" : 2 }"), CASE("{\"a\"\t:\r\n1}"), CASE("-1\n"),
	/* Containers. */
	CASE("[]"), CASE("{}"), CASE("[[]]"), CASE("[{}]"), CASE("[[],[]]"), CASE("[1]"),
	CASE("[1,2,3]"), CASE("[0,-0,1e1,true,false,null,\"\",[],{}]"), CASE("{\"\":0}"),
	CASE("{\"a\":1}"), CASE("{\"a\":1,\"b\":2}"), CASE("{\"a\":{\"b\":{\"c\":[]}}}"),
	CASE("{\"a\":1,\"a\":2}"), CASE("[[[[[[[[[[1]]]]]]]]]]"),
	CASE("[{\"a\":[{\"b\":[1,2]}]},3]"), CASE("{\"a\":true,\"b\":false,\"c\":null}"),
	CASE("{\"a\":-1}"), CASE("[-1]"), CASE("[1.0]"),
	/* Escapes. */
	CASE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), CASE("\"\\u0000\""), CASE("\"\\u00e9\""),
	CASE("\"\\uABCD\\uabcd\\uAbCd\""), CASE("\"\\ud83d\\ude00\""), CASE("\"\\ud83d\""),
	CASE("\"\\ude00\\ud83d\""), CASE("\"\\uFFFF\""), CASE("{\"\\n\":\"\\\\\"}"),
	CASE("\"\\\\\""), CASE("\"\\\\\\\"\""), CASE("\"\\u0022\""),
	/* Bytes inside strings. */
	CASE("\" !#[]^_`~\x7f\""), CASE("\"{}[],:\""), CASE("\"/\""), CASE("\"'\""),
	CASE("\"\xc2\x80\""), CASE("\"\xdf\xbf\""), CASE("\"\xe0\xa0\x80\""),
	CASE("\"\xed\x9f\xbf\""), CASE("\"\xee\x80\x80\""), CASE("\"\xef\xbf\xbf\""),
	CASE("\"\xef\xbb\xbf\""), CASE("\"\xf0\x90\x80\x80\""), CASE("\"\xf4\x8f\xbf\xbf\""),
	CASE("\"\xe4\xbd\xa0\xe5\xa5\xbd\""), CASE("\"\xf0\x9f\x98\x80 d\xc3\xa9j\xc3\xa0\""),
	CASE("\"0123456789abcdef0123456789abcdef0123456789abcdef\""),
	CASE("\"0123456789abcde\xc3\xa9"
	     "0123456789abcdef\\n0123456789abcdef\""),
	CASE("{\"\xc3\xa9\":\"\xe2\x82\xac\"}")};

static const struct json_case refused[] = {
	/* Nothing, or not all of it. */
	CASE(""), CASE(" "), CASE("\n\r\t"), CASE("["), CASE("{"), CASE("[1"), CASE("[1,"),
	CASE("{\"a\""), CASE("{\"a\":"), CASE("{\"a\":1"), CASE("{\"a\":1,"), CASE("[[]"),
	CASE("\""), CASE("\"a"), CASE("\"\\"), CASE("\"\\\""), CASE("\"\\u"), CASE("\"\\u12"),
	CASE("t"), CASE("tru"), CASE("fals"), CASE("nul"), CASE("-"), CASE("1."), CASE("1e"),
	CASE("1e+"), CASE("\"\xe4\xbd"), CASE("[{\"a\":1}"), CASE("{\"a\":[1]"),
	/* More than one document, or none. */
	CASE("1 2"), CASE("{}{}"), CASE("[]]"), CASE("{}}"), CASE("\"\"\"\""), CASE("nullnull"),
	CASE("]"), CASE("}"), CASE(","), CASE(":"), CASE("[],"), CASE("true1"), CASE("a"),
	/* Commas and colons. */
	CASE("[,]"), CASE("[1,]"), CASE("[,1]"), CASE("[1,,2]"), CASE("[1 2]"), CASE("[1:2]"),
	CASE("{,}"), CASE("{\"a\":1,}"), CASE("{,\"a\":1}"), CASE("{\"a\":1,,\"b\":2}"),
	CASE("{\"a\" 1}"), CASE("{\"a\"}"), CASE("{\"a\",1}"), CASE("{\"a\"::1}"),
	CASE("{\"a\":1 \"b\":2}"), CASE("{\"a\":}"), CASE("{\"a\":,\"b\":1}"), CASE("[\"a\":1]"),
	CASE("{\"a\":1:2}"), CASE("{:1}"),
	/* Names. */
	CASE("{1:2}"), CASE("{a:1}"), CASE("{'a':1}"), CASE("{true:1}"), CASE("{[]:1}"),
	CASE("{{}:1}"), CASE("{null}"), CASE("{\"a\":1,2}"), CASE("{\"a\":1,b}"),
	/* Brackets. */
	CASE("[}"), CASE("{]"), CASE("[1}"), CASE("{\"a\":1]"), CASE("[{]}"), CASE("[[[]]"),
	/* Numbers. */
	CASE("01"), CASE("-01"), CASE("00"), CASE("+1"), CASE(".5"), CASE("-.5"), CASE("1.e1"),
	CASE("1..2"), CASE("1.2.3"), CASE("1e1.5"), CASE("1e1e1"), CASE("1ee1"), CASE("1e+-1"),
	CASE("--1"), CASE("-a"), CASE("1a"), CASE("0x10"), CASE("1_0"), CASE("Infinity"),
	CASE("-Infinity"), CASE("NaN"), CASE("[1-2]"), CASE("[0 1]"), CASE("1+1"), CASE("1-"),
	CASE("[-]"), CASE("[1.]"), CASE("[1e]"), CASE("{\"a\":01}"), CASE("0e"), CASE("1,"),
	/* Literals. */
	CASE("True"), CASE("TRUE"), CASE("tRue"), CASE("trux"), CASE("falsy"), CASE("nulL"),
	CASE("[nul]"), CASE("[truefalse]"), CASE("undefined"), CASE("truee"),
	/* Escapes. */
	CASE("\"\\a\""), CASE("\"\\v\""), CASE("\"\\0\""), CASE("\"\\x41\""), CASE("\"\\'\""),
	CASE("\"\\U0041\""), CASE("\"\\u\""), CASE("\"\\u1\""), CASE("\"\\u12g4\""),
	CASE("\"\\u 123\""), CASE("\"\\u-123\""), CASE("\"\\\n\""), CASE("\"\\\xc3\xa9\""),
	CASE("\"\\uD8\xc3\xa9\""), CASE("\\u0031"),
	/* Control characters. */
	CASE("\"\n\""), CASE("\"\t\""), CASE("\"\r\""), CASE("\"\x1f\""), CASE("\"\x01\""),
	CASE("\"a\0b\""), CASE("\0"), CASE("1\0"), CASE("[\0]"), CASE("[\x0b]"), CASE("[\x0c]"),
	CASE("{\"\n\":1}"), CASE("\"0123456789abcdef\x1f\""), CASE("\xa0[]"), CASE("[\x7f]"),
	/* UTF-8: lone and missing continuations, overlong, surrogates, too large. */
	CASE("\"\x80\""), CASE("\"\xbf\""), CASE("\"\xc3\""), CASE("\"\xc3(\""),
	CASE("\"\xc0\xaf\""), CASE("\"\xc1\xbf\""), CASE("\"\xe0\x9f\xbf\""),
	CASE("\"\xe0\x80\x80\""), CASE("\"\xed\xa0\x80\""), CASE("\"\xed\xbf\xbf\""),
	CASE("\"\xe4\xbd\""), CASE("\"\xe4\xbd(\""), CASE("\"\xf0\x8f\xbf\xbf\""),
	CASE("\"\xf4\x90\x80\x80\""), CASE("\"\xf5\x80\x80\x80\""), CASE("\"\xf0\x9f\x98\""),
	CASE("\"\xf0\x9f\x98(\""), CASE("\"\xff\""), CASE("\"\xfe\""),
	CASE("\"\xf8\x88\x80\x80\x80\""), CASE("\"\xe9\""), CASE("{\"\xff\":1}"),
	CASE("\"\xc3\xa9\xa9\""), CASE("\xc3\xa9"), CASE("\"\xef\xbf\""),
	/* A byte order mark, comments. */
	CASE("\xef\xbb\xbf{}"), CASE("/**/1"), CASE("[1//\n]"), CASE("#\n1"), CASE("'a'"),
	CASE("(1)"), CASE("[1;2]"), CASE("`a`")};

#undef CASE

#endif
