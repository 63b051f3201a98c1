/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/ssh/run_note.h"

/* Which notes of runs on a host a broker finds, and for how long they stay. */

static const char place[] = "devbox kim@192.0.2.1:22";
static const char one[] = "0123456789abcdef0123456789abcdef";
static const char two[] = "00000000000000000000000000000000";

struct scene {
	char state[64];
	struct ssh_run_note *found;
	size_t count;
};

static const char *path_of(const struct scene *scene, const char *name, const char *ending)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/runs/%s%s", scene->state, name, ending);
	return path;
}

static struct ssh_run_note note_of(const char *token)
{
	char folder[128];
	struct ssh_run_note note = {.place = mem_strdup(place),
		.node = mem_strdup("devbox"),
		.grace_ms = 3600000,
		.lock_fd = -1};
	snprintf(folder, sizeof(folder), "/home/kim/.cache/alive.%s.7.b007.42", token);
	snprintf(note.token, sizeof(note.token), "%s", token);
	note.folder = mem_strdup(folder);
	return note;
}

/* The note of a living broker, until ssh_run_note_finish. */
static struct ssh_run_note put(const struct scene *scene, const char *token)
{
	struct error err;
	struct ssh_run_note note = note_of(token);
	assert_true(ssh_run_note_write(scene->state, &note, &err));
	return note;
}

static void leave(const struct scene *scene, const char *token)
{
	struct ssh_run_note note = put(scene, token);
	ssh_run_note_finish(&note);
}

static void drop_found(struct scene *scene)
{
	for (size_t i = 0; i < scene->count; i++) {
		ssh_run_note_finish(&scene->found[i]);
	}
	free(scene->found);
	scene->found = NULL;
	scene->count = 0;
}

static size_t find(struct scene *scene)
{
	drop_found(scene);
	scene->found = ssh_run_notes_find(scene->state, place, &scene->count);
	return scene->count;
}

/* Replaces `from` by `to`, which has the same length or is shorter and padded with blanks. */
static void change(const struct scene *scene, const char *token, const char *from, const char *to)
{
	char text[4096];
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path_of(scene, token, ".json"), O_RDWR | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof(text) - 1);
	assert_true(len > 0);
	text[len] = '\0';
	char *at = strstr(text, from);
	assert_non_null(at);
	assert_true(strlen(to) <= strlen(from));
	memset(at, ' ', strlen(from));
	memcpy(at, to, strlen(to));
	assert_int_equal(pwrite(fd, text, (size_t)len, 0), len);
}

static int set_up(void **state)
{
	static struct scene scene;
	scene = (struct scene){.state = "/tmp/run-note-XXXXXX"};
	assert_non_null(mkdtemp(scene.state));
	*state = &scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	char line[128];
	drop_found(scene);
	snprintf(line, sizeof(line), "rm -r %s", scene->state);
	return system(line); // NOLINT(cert-env33-c)
}

static void test_nothing_is_found_or_made_where_nothing_was_noted(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(find(scene), 0);
	assert_int_not_equal(access(path_of(scene, "", ""), F_OK), 0);
}

static void test_a_note_is_found_once_its_broker_is_gone(void **state)
{
	struct scene *scene = *state;
	struct ssh_run_note note = put(scene, one);
	leave(scene, two);
	assert_int_equal(find(scene), 1);
	assert_string_equal(scene->found[0].token, two);
	ssh_run_note_finish(&note);
	drop_found(scene);
	assert_int_equal(find(scene), 2);
	for (size_t i = 0; i < 2; i++) {
		struct ssh_run_note wanted = note_of(scene->found[i].token);
		assert_true(scene->found[i].is_certain);
		assert_string_equal(scene->found[i].folder, wanted.folder);
		assert_string_equal(scene->found[i].node, wanted.node);
		assert_string_equal(scene->found[i].place, wanted.place);
		assert_int_equal(scene->found[i].grace_ms, wanted.grace_ms);
		ssh_run_note_finish(&wanted);
	}
}

static void test_two_brokers_may_end_the_same_run(void **state)
{
	struct scene *scene = *state;
	struct scene other = *scene;
	leave(scene, one);
	assert_int_equal(find(scene), 1);
	assert_int_equal(find(&other), 1);
	ssh_run_note_remove(scene->state, &scene->found[0]);
	assert_int_equal(access(path_of(scene, one, ".json"), F_OK), 0);
	ssh_run_note_remove(other.state, &other.found[0]);
	assert_int_not_equal(access(path_of(scene, one, ".json"), F_OK), 0);
	assert_int_not_equal(access(path_of(scene, one, ".lock"), F_OK), 0);
	drop_found(&other);
	assert_int_equal(find(scene), 0);
}

static void test_a_note_of_another_place_or_machine_is_not_found(void **state)
{
	struct scene *scene = *state;
	leave(scene, one);
	leave(scene, two);
	change(scene, one, "kim@192.0.2.1", "kim@192.0.2.7");
	change(scene, two, "\"boot\":\"", "\"bo\":\"");
	assert_int_equal(find(scene), 1); // it may have been restarted
	drop_found(scene);
	change(scene, two, "\"machine\":\"", "\"mach\":\"");
	assert_int_equal(find(scene), 0);
}

/* Its lock is another file. */
static void expect_uncertain_after(struct scene *scene, const char *from, const char *to)
{
	leave(scene, one);
	change(scene, one, from, to);
	assert_int_equal(find(scene), 1);
	assert_false(scene->found[0].is_certain);
}

static void test_nothing_is_certain_about_a_copied_note(void **state)
{
	struct scene *scene = *state;
	leave(scene, one);
	char lock[256], kept[256];
	snprintf(lock, sizeof(lock), "%s", path_of(scene, one, ".lock"));
	snprintf(kept, sizeof(kept), "%s/kept", scene->state);
	assert_int_equal(rename(lock, kept), 0); // so that the copy gets another inode
	assert_int_equal(find(scene), 1);
	assert_false(scene->found[0].is_certain);
}

static void test_nothing_is_certain_about_a_copy_on_another_disk(void **state)
{
	expect_uncertain_after(*state, "\"device\":", "\"dev\":");
}

static void test_nothing_is_certain_after_a_restart(void **state)
{
	expect_uncertain_after(*state, "\"boot\":\"", "\"bo\":\"");
}

static void test_a_note_is_ours_only_with_the_token_of_its_run(void **state)
{
	struct scene *scene = *state;
	char forged[256];
	leave(scene, one);
	snprintf(forged, sizeof(forged), "%s", path_of(scene, two, ".json"));
	assert_int_equal(rename(path_of(scene, one, ".json"), forged), 0);
	assert_int_equal(find(scene), 0);
	leave(scene, one);
	change(scene, one, "/alive.0123", "/alive.4567");
	assert_int_equal(find(scene), 0);
}

/* A runner without a shell gets the folder as a line. */
static void test_a_folder_with_a_line_break_is_of_no_run(void **state)
{
	struct scene *scene = *state;
	leave(scene, one);
	change(scene, one, "kim/.cache", "kim\\n/cach");
	assert_int_equal(find(scene), 0);
}

static void test_the_name_of_a_folder_names_one_run(void **state)
{
	assert_true(ssh_run_is_named("/a/alive.abc.1.2.3", "abc"));
	assert_true(ssh_run_is_named("/acp-broker.abc.1.2.3", "abc"));
	assert_false(ssh_run_is_named("/alive.abc.1/alive.abd.1.2.3", "abc"));
	assert_false(ssh_run_is_named("/a/alive.abcd.1.2.3", "abc"));
	assert_false(ssh_run_is_named("/a/alive.abc", "abc"));
	assert_false(ssh_run_is_named("/a/abc.1", "abc"));
	assert_false(ssh_run_is_named("", "abc"));
}

static void test_a_note_that_is_kept_is_found_until_its_run_must_have_ended(void **state)
{
	struct scene *scene = *state;
	leave(scene, one);
	assert_int_equal(find(scene), 1);
	ssh_run_note_keep(&scene->found[0]);
	assert_int_equal(find(scene), 1);
	ssh_run_note_keep(&scene->found[0]);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path_of(scene, one, ".lock"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "9223372036854775807\n", 20, 0), 20); // since the future
	assert_int_equal(find(scene), 1);
	assert_int_equal(pwrite(fd, "1\n        ", 10, 0), 10); // since 1970
	assert_int_equal(find(scene), 0);
	assert_int_not_equal(access(path_of(scene, one, ".json"), F_OK), 0);
}

/* Its instance may be gone, or its profile. */
static void test_a_note_goes_even_if_nobody_comes_to_its_place_any_more(void **state)
{
	struct scene *scene = *state;
	leave(scene, one);
	change(scene, one, "kim@192.0.2.1", "kim@192.0.2.7");
	assert_int_equal(find(scene), 0);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path_of(scene, one, ".lock"), O_RDWR | O_CLOEXEC);
	char since[24];
	assert_true(pread(fd, since, sizeof(since), 0) > 0); // the time when it was kept
	assert_int_equal(find(scene), 0);
	assert_int_equal(access(path_of(scene, one, ".json"), F_OK), 0);
	assert_int_equal(pwrite(fd, "1\n        ", 10, 0), 10); // since 1970
	assert_int_equal(find(scene), 0);
	assert_int_not_equal(access(path_of(scene, one, ".json"), F_OK), 0);
}

static void test_only_so_many_notes_are_found_at_once(void **state)
{
	struct scene *scene = *state;
	char token[SSH_TOKEN_SIZE];
	for (int i = 0; i < 70; i++) {
		snprintf(token, sizeof(token), "%032x", (unsigned)i);
		leave(scene, token);
	}
	assert_int_equal(find(scene), 64);
	for (size_t i = 0; i < scene->count; i++) {
		ssh_run_note_remove(scene->state, &scene->found[i]);
	}
	assert_int_equal(find(scene), 6);
}

/* Another broker takes the lock for one that was left, and removes it. */
static void test_a_new_lock_that_another_broker_removes_is_made_again(void **state)
{
	struct scene *scene = *state;
	int status;
	leave(scene, two);
	int fd = open(path_of(scene, one, ".lock"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pid_t other = fork();
	if (other == 0) {
		usleep(50000);
		unlink(path_of(scene, one, ".lock"));
		_exit(0);
	}
	fd_close(&fd);
	struct ssh_run_note note = put(scene, one);
	assert_int_equal(access(path_of(scene, one, ".lock"), F_OK), 0);
	ssh_run_note_finish(&note);
	assert_int_equal(waitpid(other, &status, 0), other);
}

static void test_a_note_that_cannot_be_written_is_an_error(void **state)
{
	struct scene *scene = *state;
	struct error err;
	struct ssh_run_note note = note_of(one);
	int fd = open(path_of(scene, "", ""), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd, -1);
	char path[256];
	snprintf(path, sizeof(path), "%s/runs", scene->state);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); // in the place of the folder
	fd_close(&fd);
	assert_false(ssh_run_note_write(scene->state, &note, &err));
	assert_int_equal(note.lock_fd, -1);
	ssh_run_note_finish(&note);
}

#define NOTE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NOTE_TEST(test_nothing_is_found_or_made_where_nothing_was_noted),
		NOTE_TEST(test_a_note_is_found_once_its_broker_is_gone),
		NOTE_TEST(test_two_brokers_may_end_the_same_run),
		NOTE_TEST(test_a_note_of_another_place_or_machine_is_not_found),
		NOTE_TEST(test_nothing_is_certain_about_a_copied_note),
		NOTE_TEST(test_nothing_is_certain_about_a_copy_on_another_disk),
		NOTE_TEST(test_nothing_is_certain_after_a_restart),
		NOTE_TEST(test_a_note_goes_even_if_nobody_comes_to_its_place_any_more),
		NOTE_TEST(test_only_so_many_notes_are_found_at_once),
		NOTE_TEST(test_a_new_lock_that_another_broker_removes_is_made_again),
		NOTE_TEST(test_a_note_is_ours_only_with_the_token_of_its_run),
		NOTE_TEST(test_a_folder_with_a_line_break_is_of_no_run),
		NOTE_TEST(test_the_name_of_a_folder_names_one_run),
		NOTE_TEST(test_a_note_that_is_kept_is_found_until_its_run_must_have_ended),
		NOTE_TEST(test_a_note_that_cannot_be_written_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
