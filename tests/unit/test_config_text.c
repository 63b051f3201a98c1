/* SPDX-License-Identifier: MIT */
#include "base/config_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"

/* Our reading of a text, compared with that of the installed git. */

enum { LISTED_MAX = 4096 };

static char folder[] = "/tmp/config-text-XXXXXX";

static int set_up(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char path[64];
	text_whole(path, sizeof(path), "%s/config", folder);
	unlink(path);
	return rmdir(folder);
}

/* Lists the settings as list_gits does; "refused" if there is an error. */
static void list_ours(struct span text, char *out)
{
	struct config_text source;
	enum config_text_step step;
	char *key, *value;
	*out = '\0';
	config_text_init(&source, text);
	while ((step = config_text_next(&source, &key, &value)) == CONFIG_TEXT_SETTING) {
		assert_true(text_append(
			out, LISTED_MAX, "%s%s%s|", key, value ? "=" : "", value ? value : ""));
		free(key);
		free(value);
	}
	config_text_finish(&source);
	if (step == CONFIG_TEXT_WRONG) {
		assert_non_null(source.wrong);
		text_whole(out, LISTED_MAX, "refused");
	}
}

/* False if there is no git here. */
static bool list_gits(struct span text, char *out)
{
	char path[64], command[128], listed[LISTED_MAX];
	text_whole(path, sizeof(path), "%s/config", folder);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
	assert_int_equal(fclose(file), 0);
	text_whole(command, sizeof(command), "git config -f '%s' --list -z 2>/dev/null", path);
	FILE *git = popen(command, "re"); // NOLINT(cert-env33-c): of the test's own
	assert_non_null(git);
	size_t count = fread(listed, 1, sizeof(listed), git);
	int status = pclose(git);
	assert_true(count < sizeof(listed) && WIFEXITED(status));
	if (WEXITSTATUS(status) == 127) {
		return false;
	}
	*out = '\0';
	/* Each is "KEY\nVALUE\0", or "KEY\0" without a value. */
	for (size_t at = 0; at < count; at += strlen(listed + at) + 1) {
		char *value = strchr(listed + at, '\n');
		size_t len = value ? (size_t)(value - listed) - at : strlen(listed + at);
		assert_true(text_append(out, LISTED_MAX, "%.*s%s%s|", (int)len, listed + at,
			value ? "=" : "", value ? value + 1 : ""));
	}
	if (WEXITSTATUS(status) != 0) {
		text_whole(out, LISTED_MAX, "refused");
	}
	return true;
}

static const char *const texts[] = {
	/* values */
	"[a]\nb = c\n",
	"[a]b=c",
	"[a]\nb =   c d   # e\n",
	"[a]\nb = c ; d # e\n",
	"[a]\nb = c;d\n",
	"[a]\nb = \"c;d\" ;e\n",
	"[a]\nb =\n",
	"[a]\nb = \n",
	"[a]\nb = # c\n",
	"[a]\nb = \"\"\n",
	"[a]\nb = \"\" x\n",
	"[a]\nb = \"\"  \"\"  x  \"\"\n",
	"[a]\nb = \" \" x\n",
	"[a]\nb = \" x \" \n",
	"[a]\nb = x \"\" \n",
	"[a]\nb = x  \"y\"  z\n",
	"[a]\nb = \\\n    /w/hooks\n",
	"[a]\nb = \\\n\\\n  \\\n\t/w/hooks\n",
	"[a]\nb = \"\\\n  c\"\n",
	"[a]\nb = c \\\n  d\n",
	"[a]\nb = c  \\\n  \n",
	"[a]\nb = c  \\\n",
	"[a]\nb = c\\\nd = e\n",
	"[a]\nb = \\t c\n",
	"[a]\nb = c\\n\n",
	"[a]\nb = \\\" \\\\ \\t \\n \\b\n",
	"[a]\nb = \"c\nd\"\n",
	"[a]\nb = \"c",
	"[a]\nb = \\q\n",
	"[a]\nb = 'c  d'\n",
	"[a]\nb = c = d\n",
	"[a]\nb = c # \\\nd = e\n",
	/* the end of the file */
	"[a]\nb = c",
	"[a]\nb =",
	"[a]\nb",
	"[a]\nb ",
	"[a]\nb = c\\",
	"[a]\nb = \\",
	"[a]\nb = \"c\\",
	"[a]\nb = c\r",
	"[a]\nb = \r",
	"[a]\nb\r",
	"[a]\r",
	"[a",
	"[a \"b",
	"[a \"b\\",
	"[a \"b\"",
	"",
	"\r",
	"# a",
	"\xef\xbb\xbf",
	"\xef\xbb",
	/* "\r" */
	"[a]\r\nb = c\r\nd\r\ne = \\\r\n  f\r\n",
	"[a]\nb = c\r\r\n",
	"[a]\nb = \rc\n",
	"[a]\nb = \"c\r\"\n",
	"[a]\nb = c\\\r",
	"[a]\nb\r= c\n",
	"[a]\nb =\r\n",
	"[a]\r[b]\rc = d\n",
	"[a\r\"b\"]\nc = d\n",
	"[a \r\t \"b\"]\nc = d\n",
	/* keys and comments */
	"[a]\nb ; c\n",
	"[a]\nb # c\n",
	"[a]\nb; c\n",
	"[a]\nb\n",
	"[a]\nb\t \t= c\n",
	"[a]\nB-2 = c\n",
	"[a]\nb_2 = c\n",
	"[a]\n2b = c\n",
	"[a]\n-b = c\n",
	"[a]\nb c\n",
	"[a]\n\\\nb = c\n",
	"[a]\n= b\n",
	"[a]\n\vb = c\n",
	"[a]\n\fb = c\n",
	"[a]\nb = \vc\v\n",
	"# [a]\n; [b]\n [c] ; d\ne = f\n",
	"[a] ; \\\nb = c\n",
	/* sections */
	"[A.B]\nC = D\n",
	"[A \"B\"]\nC = D\n",
	"[a \"\"]\nb = c\n",
	"[a \"b\\\"\\\\\\c.d]\"]\ne = f\n",
	"[a \"b\nc\"]\nd = e\n",
	"[a \"b\\\nc\"]\nd = e\n",
	"[a \"b\" ]\nc = d\n",
	"[a\"b\"]\nc = d\n",
	"[ a]\nb = c\n",
	"[a ]\nb = c\n",
	"[a b]\nc = d\n",
	"[a\n\"b\"]\nc = d\n",
	"[a.b-2 \"c\"]\nd = e\n",
	"[a_b]\nc = d\n",
	"[]\na = b\n",
	"[a][]",
	"[.]\na = b\n",
	"[ \"\"]\na = b\n",
	"[a.]\nb = c\n",
	"[a] b = c [d]\ne = f\n",
	"[a][b]c = d\n",
	"\xef\xbb\xbf[a]\nb = c\n",
	"[a]\nb = c\n\xef\xbb\xbf",
	"[a]\nb = \xc3\xa4 \xff\n",
};

static void test_a_text_is_read_as_git_reads_it(void **state)
{
	char ours[LISTED_MAX], gits[LISTED_MAX];
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		list_ours(span_of(texts[i]), ours);
		if (!list_gits(span_of(texts[i]), gits)) {
			fprintf(stderr, "skipped: there is no git\n");
			skip();
		}
		if (strcmp(ours, gits) != 0) {
			fail_msg("%s\ngit: %s\nours: %s", texts[i], gits, ours);
		}
	}
}

/* git reads this as a value of core.hooksPath. */
static void test_a_nul_byte_in_a_section_is_refused(void **state)
{
	static const char text[] = "[core \"hookspath\0\"]\nx = y\n";
	char ours[LISTED_MAX];
	list_ours((struct span){text, sizeof(text) - 1}, ours);
	assert_string_equal(ours, "refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_is_read_as_git_reads_it),
		cmocka_unit_test(test_a_nul_byte_in_a_section_is_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
