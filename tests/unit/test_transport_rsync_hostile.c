/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sync/rsync/shell.h"
#include "tests/support/facts.h"
#include "tests/unit/transport_fixture.h"

/* Replaces the sandbox's rsync, except for its version. */
static void lie(struct stage *stage, const char *script)
{
	char text[2048];
	snprintf(text, sizeof(text),
		"case $* in --version) exec /usr/bin/rsync --version ;; esac\n%s", script);
	stage_program(stage, "rsync", text);
}

static void fail_to_collect(struct stage *stage, const git_oid *base)
{
	transport_collect(stage->transport, base, stage_on_collected, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_true(strlen(stage->err.text) > 0);
}

/* Everything beside and above the mirror, except what we may change. */
static char *surroundings(struct stage *stage)
{
	return place_ask(stage->place,
		"cd ..; find . \\( -path './state/store/rsync/*/mirror' -o -path './bin' -o -path"
		" './runtime' -o -path './state/store/cache' -o -path './state/store/objects' \\)"
		" -prune -o -type f ! -name filter ! -name narrow ! -name seen ! -name print"
		" ! -name state -print | LC_ALL=C sort |"
		" while IFS= read -r f; do cksum \"$f\"; done");
}

static void test_garbage_is_refused_and_changes_nothing(void **state)
{
	struct stage *stage = *state;
	static const char *const lies[] = {"yes", "head -c 9000000 /dev/urandom",
		"head -c 9000000 /dev/zero", "exit 3", "kill -9 $$",
		"printf '\\037\\0\\0\\0'; exit 0", "/usr/bin/rsync \"$@\" | head -c 60",
		"/usr/bin/rsync \"$@\" | head -c 500", "/usr/bin/rsync \"$@\" | tr a-m n-z",
		"printf '@ERROR: no\\n' >&2; exit 5"};
	git_oid tree = stage_send_first(stage, "echo a > a; mkdir d; seq 1000 > d/b");
	stage->request.timeout_ms = 3000;
	stage_restart(stage);
	stage_prepare(stage);
	stage_there(stage, "seq 5000 > d/b; echo c > c");
	char *before = surroundings(stage);
	for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
		lie(stage, lies[i]);
		fail_to_collect(stage, &tree);
	}
	char *after = surroundings(stage);
	assert_string_equal(before, after);
	free(before);
	free(after);
	place_run(stage->place, "rm ../bin/rsync");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nc\nd/b\n");
}

static void test_links_that_point_out_lead_nowhere(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "mkdir -p ../victim; echo mine > ../victim/f; ln -s ../victim v");
	git_oid tree = stage_send_first(stage, "echo a > a; mkdir d; echo f > d/f");
	char *before = surroundings(stage);
	char script[2048];
	snprintf(script, sizeof(script),
		"rm -r d; ln -s %s/victim d; ln -s / e; ln -s ../../../.. g", stage->place->folder);
	stage_there(stage, script);
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, "a\nd\ne\ng\nv\n");
	stage_there(stage, "rm d e g; mkdir -p d e/etc g; echo bad > d/f; echo bad > e/etc/passwd;"
			   "echo bad > g/x; rm v; mkdir v; echo bad > v/f");
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, "a\nd/f\ne/etc/passwd\ng/x\nv/f\n");
	char *after = surroundings(stage);
	assert_string_equal(before, after);
	free(before);
	free(after);
	place_run(stage->place, "test $(cat ../victim/f) = mine");
}

static void test_names_of_git_do_not_come(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage,
		"mkdir -p .git/hooks .GIT d/.Git; echo x > .git/hooks/pre-commit; echo x >"
		" .GIT/config; echo x > d/.Git/config; echo x > GIT~1; echo b > d/b;"
		"mkdir '.git '; echo x > '.git /config'; echo p > p.1.acp-conflict;"
		"echo t > .acp-broker-1.new.tmp");
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, "a\nd/b\n");
}

static void test_more_than_the_limit_is_refused(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage->request.bytes_max = 1 << 20;
	stage_restart(stage);
	stage_prepare(stage);
	stage_there(stage, "head -c 700000 /dev/urandom | tee one > two");
	fail_to_collect(stage, &tree);
	if (!strstr(stage->err.text, "more than is allowed")) {
		fail_msg("%s", stage->err.text);
	}
}

/* Its zeros would travel for minutes. */
static void test_a_file_over_the_limit_is_not_even_begun(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage->request.bytes_max = 1 << 20;
	stage->request.timeout_ms = 20000;
	stage_restart(stage);
	stage_prepare(stage);
	for (int i = 0; i < 2; i++) {
		stage_there(stage, "mkdir -p d; truncate -s 100G 'd/s x'; echo a > a");
		fail_to_collect(stage, &tree);
		assert_int_equal(stage->err.code, ERROR_LIMIT);
		assert_names(stage->err.text, "d/s x | 1 MiB | max-size");
		stage_there(stage, "truncate -s 100k 'd/s x'; echo b > b");
		tree = stage_collect(stage, &tree);
		assert_paths(stage->place, &tree, "a\nb\nd/s x\n");
	}
}

static void test_silence_ends_at_the_deadline(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage->request.timeout_ms = 1000;
	stage_restart(stage);
	stage_prepare(stage);
	lie(stage, "echo $$ > ${0%/*}/pid; exec sleep 1000");
	fail_to_collect(stage, &tree);
	assert_int_equal(stage->err.code, ERROR_TIMEOUT);
	assert_string_equal(stage->err.reason, "TIMEOUT_EXCEEDED");
	place_run(stage->place, "while kill -0 $(cat ../bin/pid) 2>/dev/null; do sleep 0.05; done");
}

/* Another process of this user connects to the socket first, without the token. */
static void test_a_wrong_token_gets_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	char *path = place_ask(stage->place, "printf %s ../state/store/rsync/*");
	assert_int_equal(chdir(stage->place->root), 0);
	assert_int_equal(chdir(path), 0);
	free(path);
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = RSYNC_SHELL_SOCKET};
	static const char request[] = "0123456789abcdef0123456789abcdef\0rsync\0--server\0.";
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool has_connected = false;
	transport_collect(stage->transport, &tree, stage_on_collected, stage);
	while (!stage->is_done) {
		if (!has_connected &&
			connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
			has_connected = true;
			assert_true(send(fd, request, sizeof(request), MSG_NOSIGNAL) > 0);
		}
		ev_run(stage->loop, EVRUN_ONCE);
	}
	stage->is_done = false;
	assert_false(stage->failed);
	assert_true(has_connected);
	char byte;
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	assert_int_equal(chdir("/"), 0);
}

static void test_the_token_is_on_no_command_line(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	lie(stage,
		"for p in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' <$p; done >${0%/*}/lines 2>&1;"
		"tr '\\0' '\\n' </proc/self/environ >>${0%/*}/lines; exec /usr/bin/rsync \"$@\"");
	stage_collect(stage, &tree);
	place_run(stage->place, "grep -q rsync-shell ../bin/lines;"
				"! grep '" RSYNC_SHELL_TOKEN "=[0-9a-f]' ../bin/lines");
}

/* Root reads everything, unless it has given that up. */
static void give_up_reading(struct stage *stage)
{
	static const char *const programs[] = {"rsync", "sh"};
	char script[256];
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		snprintf(script, sizeof(script),
			"[ $(id -u) = 0 ] || exec /usr/bin/%s \"$@\"\n"
			"exec setpriv --bounding-set=-dac_override,-dac_read_search -- "
			"/usr/bin/%s \"$@\"",
			programs[i], programs[i]);
		stage_program(stage, programs[i], script);
	}
}

static void test_what_cannot_be_read_is_left_out_and_not_taken_for_deleted(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage,
		"echo a > a; echo b > b; mkdir d e; echo f > d/f; echo g > e/g;"
		"echo h > h; echo i > i");
	give_up_reading(stage);
	stage_there(stage, "chmod 0 a d; mkdir new; echo s > new/secret; chmod 0 new/secret;"
			   "rm b; echo more >> e/g");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nd/f\ne/g\nh\ni\n");
	assert_int_equal(stage->collected.left.count, 3); // a, d, new/secret
	/* All other files are delivered. */
	place_run(stage->place, "rm b h; echo more >> e/g; echo j > i; mkdir k; echo k > k/k");
	git_oid next = place_take(stage->place, &there);
	stage_deliver(stage, &there, &next);
	stage_there(stage, "test $(cat i) = j; test -e k/k; test ! -e h; test -e new/secret");
	git_oid again = stage_collect(stage, &next);
	stage_assert_same(&again, &next);
	assert_int_equal(stage->collected.left.count, 3);
	/* A change here cannot replace it. */
	place_run(stage->place, "echo mine > d/f");
	git_oid last = place_take(stage->place, &next);
	stage_deliver_fails(stage, &next, &last, ERROR_UNAVAILABLE, "d cannot be read");
	assert_string_equal(stage->stuck, "d/f\n");
	stage_there(stage, "chmod 0755 d; test $(cat d/f) = f; chmod 0600 a; echo aa > a;"
			   "chmod 0644 new/secret");
	there = stage_collect(stage, &next);
	assert_paths(stage->place, &there, "a\nd/f\ne/g\ni\nk/k\nnew/secret\n");
	assert_int_equal(stage->collected.left.count, 0);
	stage_restart(stage); // another run finds it, too
	stage_prepare(stage);
	stage_there(stage, "chmod 0 a; rm i");
	there = stage_collect(stage, &there);
	assert_paths(stage->place, &there, "a\nd/f\ne/g\nk/k\nnew/secret\n");
	stage_there(stage, "chmod 0 .");
	fail_to_collect(stage, &there);
	stage_there(stage, "chmod 0755 .");
}

/* Happens between the last look and the delivery. */
static void test_what_cannot_be_put_back_is_kept(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; mkdir d; echo f > d/f; echo g > d/g");
	place_run(stage->place, "echo aa > a; echo ff > d/f");
	git_oid next = place_take(stage->place, &tree);
	char script[1024];
	snprintf(script, sizeof(script),
		"case $* in *--sender*) ;; *) [ -e %s/once ] || { : >%s/once; cd %s\n"
		"echo agents >a; chmod 0 a; rm -r d; ln -s /etc d; } ;; esac\n"
		"exec setpriv --bounding-set=-dac_override,-dac_read_search /usr/bin/rsync \"$@\"",
		stage->bin, stage->bin, stage->root);
	lie(stage, script);
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	stage_there(stage, "test $(cat a) = aa; test $(cat d/f) = ff; test ! -e /etc/f");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nd/f\n");
	assert_non_null(strstr(stage->collected.note, "kept"));
	place_run(stage->place, "test -L ../state/store/rsync/*/rescued-*/d");
	char *kept = place_ask(
		stage->place, "cat $(find ../runtime/.acp-broker -path '*/kept-*/backup/a')");
	assert_string_equal(kept, "agents\n");
	free(kept);
	stage_deliver(stage, &there, &next);
	stage_assert_equal(stage);
}

#define HOSTILE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup_rsync, stage_teardown)

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, (const char *const *)environ);
	}
	const struct CMUnitTest tests[] = {
		HOSTILE_TEST(test_garbage_is_refused_and_changes_nothing),
		HOSTILE_TEST(test_links_that_point_out_lead_nowhere),
		HOSTILE_TEST(test_names_of_git_do_not_come),
		HOSTILE_TEST(test_more_than_the_limit_is_refused),
		HOSTILE_TEST(test_a_file_over_the_limit_is_not_even_begun),
		HOSTILE_TEST(test_silence_ends_at_the_deadline),
		HOSTILE_TEST(test_a_wrong_token_gets_nothing),
		HOSTILE_TEST(test_the_token_is_on_no_command_line),
		HOSTILE_TEST(test_what_cannot_be_read_is_left_out_and_not_taken_for_deleted),
		HOSTILE_TEST(test_what_cannot_be_put_back_is_kept),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
