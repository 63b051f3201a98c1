/* SPDX-License-Identifier: MIT */
#include "sync/guard_paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct content_case {
	const char *path, *old, *content;
	bool counts;
} cases[] = {
	{".envrc", "a", "b", true},
	{".husky/pre-commit", "", "x", true},
	/* attributes */
	{".gitattributes", "", "*.sh eol=lf\n", false},
	{".gitattributes", "*.sh eol=lf\n", "*.sh text\n*.c text\n", false},
	{"a/.gitattributes", "", "*.bin filter=x\n", true},
	{".GitAttributes", "", "*.bin filter=x", true},
	{".gitattributes", "*.bin filter=x\n", "*.c text\n*.bin filter=x\n", false},
	{".gitattributes", "*.bin filter=x\n", "*.bin filter=y\n", true},
	{".gitattributes", "*.bin filter=x\n", "*.bin text\n", true},
	{".gitattributes", "a filter=x\nb filter=y\n", "b filter=y\na filter=x\n", true},
	{".gitattributes", "[attr]secret filter=x\n", "[attr]secret filter=x\n* secret\n", true},
	{".gitattributes", "[attr]secret filter=x\n", "[attr]secret filter=x\n", false},
	{".gitattributes", "", "* secret\n", true},
	{".gitattributes", "", "* -secret\n", true},
	{".gitattributes", "", "\t*.c text secret=1", true},
	{".gitattributes", "", "  [attr]x text\n", true},
	{".gitattributes", "", "\"a b\" text\n", true},
	{".gitattributes", "", "# * filter=x\n\n*.c\r\n", false},
	{".gitattributes", "",
		"* text=auto !eol -text\n*.png binary -diff merge=ours\r\n*.md linguist-docs "
		"export-ignore whitespace=tab working-tree-encoding=UTF-16 ident\n",
		false},
	/* Claude's settings */
	{".claude/settings.json", "{\"model\":\"a\"}", "{\"model\":\"b\"}", false},
	{".claude/settings.json", "", "{\"model\":\"b\"}", false},
	{".claude/settings.json", "", "{\"hooks\":{}}", true},
	{".claude/settings.local.json", "{\"env\":{\"A\":\"1\"}}", "{\"env\":{\"A\":\"2\"}}", true},
	{".claude/settings.json", "{\"hooks\":{}}", "{}", true},
	{".claude/settings.json", "{\"hooks\":{\"a\":1}}", "{\"x\":1,\"hooks\":{\"a\":1}}", false},
	{".claude/settings.json", "{}", "{\"mcpServers\":{}}", true},
	{".claude/settings.json", "{}", "{\"apiKeyHelper\":\"x\"}", true},
	{".claude/settings.json", "{}", "{\"h\\u006foks\":{}}", true},
	{".claude/settings.json", "{}", "{\"Hooks\":{}}", true},
	{".claude/settings.json", "{\"hooks\":1}", "{\"hooks\":1,\"hooks\":2}", true},
	{".claude/settings.json", "{}", "{\"a\":1", true},
	{".claude/settings.json", "{}", "[]", true},
	{".claude/settings.json", "// a note\n{}", "{}", true},
	{"x.claude/settings.json", "{}", "{}", true},
	{".claude/commands.json", "{}", "{}", true},
};

static void test_the_parts_that_run_something_count(void **state)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct content_case *at = &cases[i];
		if (guard_content_counts(at->path, span_of(at->old), span_of(at->content)) !=
			at->counts) {
			fail_msg("%s: %s -> %s: expected %d", at->path, at->old, at->content,
				at->counts);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_parts_that_run_something_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
