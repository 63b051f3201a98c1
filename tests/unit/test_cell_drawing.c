/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_drawing.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/remove_folder.h"
#include "base/text.h"
#include "providers/local/allowed_sockets.h"
#include "tests/support/facts.h"

static char folder[64];
static char home[128];
static struct settings settings;
static struct cell_drawing *drawing;
static struct error err;
static char own_file[PATH_MAX];
static const char *const own_files[] = {own_file, NULL};

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void make(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0755), 0);
}

static int set_up(void **state)
{
	static const char *const folders[] = {"home", "home/.config", "home/.config/acp-broker",
		"home/.local", "home/.local/bin", "home/.local/state",
		"home/.local/state/acp-broker", "home/.cache", "home/notes", "data", "data/cache"};
	text_whole(folder, sizeof(folder), "/tmp/test-drawing-XXXXXX");
	if (!mkdtemp(folder)) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		make(folders[i]);
	}
	text_whole(home, sizeof(home), "%s/home", folder);
	text_whole(own_file, sizeof(own_file), "%s/own/config", folder);
	settings_init(&settings);
	drawing = cell_drawing_create(home, own_files);
	err = (struct error){.code = ERROR_NONE};
	return 0;
}

static int tear_down(void **state)
{
	settings_finish(&settings);
	cell_drawing_destroy(drawing);
	return remove_folder(folder, &err) ? 0 : -1;
}

static void say(const char *key, const char *value)
{
	settings_add(&settings, key, value, "file");
}

static bool draw(void)
{
	char state[PATH_MAX];
	text_whole(state, sizeof(state), "%s/.local/state/acp-broker", home);
	return cell_drawing_add_default(drawing, ".gitconfig", &err) &&
	       cell_drawing_add_key(drawing, CELL_READ, "allow-read", &settings, &err) &&
	       cell_drawing_add_key(drawing, CELL_WRITE, "allow-write", &settings, &err) &&
	       cell_drawing_hide(drawing, home, ".config/acp-broker", &err) &&
	       cell_drawing_hide(drawing, state, "", &err) && cell_drawing_check(drawing, &err);
}

static void assert_drawn(size_t at, enum cell_rule rule, const char *path, const char *source)
{
	assert_true(at < drawing->count);
	assert_int_equal(drawing->entries[at].rule, rule);
	assert_string_equal(drawing->entries[at].path, path_of(path));
	assert_string_equal(drawing->entries[at].source, path_of(source));
}

static void assert_refused(const char *facts)
{
	assert_false(draw());
	assert_int_equal(err.code, ERROR_CONFIG);
	assert_names(err.text, facts);
}

/* ---- drawings that are made ---- */

static void test_folders_beside_each_other_are_drawn(void **state)
{
	say("allow-read", "~/.local/bin");
	say("allow-read", "~/is-not-there");
	say("allow-write", "~//notes/");
	say("allow-write", path_of("home/.cache"));
	say("allow-write", "~/notes");
	assert_true(draw());
	assert_int_equal(drawing->count, 5);
	assert_drawn(0, CELL_READ, "home/.local/bin", "home/.local/bin");
	assert_drawn(1, CELL_WRITE, "home/notes", "home/notes");
	assert_drawn(2, CELL_WRITE, "home/.cache", "home/.cache");
	assert_drawn(3, CELL_HIDE, "home/.config/acp-broker", "home/.config/acp-broker");
	assert_drawn(4, CELL_HIDE, "home/.local/state/acp-broker", "home/.local/state/acp-broker");
}

static void test_what_is_read_may_contain_what_is_read(void **state)
{
	make("home/notes/a");
	say("allow-read", "~/notes");
	say("allow-read", "~/notes/a");
	assert_true(draw());
}

static void test_a_link_in_the_home_itself_is_followed(void **state)
{
	assert_int_equal(symlink("../data/cache", path_of("home/link")), 0);
	assert_int_equal(symlink("../data/cache", path_of("home/.gitconfig")), 0);
	say("allow-write", "~/link");
	assert_true(draw());
	assert_drawn(0, CELL_READ, "home/.gitconfig", "data/cache");
	assert_drawn(1, CELL_WRITE, "home/link", "data/cache");
}

static void test_a_home_behind_a_link_is_the_home(void **state)
{
	char other[PATH_MAX];
	assert_int_equal(symlink("home", path_of("other")), 0);
	text_whole(other, sizeof(other), "%s", path_of("other"));
	cell_drawing_destroy(drawing);
	drawing = cell_drawing_create(other, NULL);
	say("allow-write", path_of("other/notes"));
	say("allow-write", path_of("home/.cache"));
	assert_true(draw());
	assert_string_equal(drawing->home, home);
	assert_drawn(0, CELL_WRITE, "home/notes", "home/notes");
	assert_drawn(1, CELL_WRITE, "home/.cache", "home/.cache");
}

/* ---- sockets ---- */

static const char *environment[] = {"HOME=/", "GIVEN=", "ODD=unix:///srv/odd", NULL};
static char given[PATH_MAX + 16];

static bool draw_sockets(const char *value)
{
	say("allow-socket", value);
	return allowed_sockets_draw(drawing, &settings, environment, &err);
}

static void make_socket(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	text_whole(address.sun_path, sizeof(address.sun_path), "%s", path_of(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	text_whole(given, sizeof(given), "GIVEN=%s", path_of(name));
	environment[1] = given;
}

static void test_a_socket_is_drawn_by_its_path_or_a_variable(void **state)
{
	make_socket("data/agent");
	assert_true(draw_sockets(path_of("data/agent")));
	assert_drawn(0, CELL_READ, "data/agent", "data/agent");
	settings_finish(&settings);
	settings_init(&settings);
	free(drawing->said[0]);
	drawing->count = 0;
	assert_true(draw_sockets("$GIVEN"));
	assert_drawn(0, CELL_READ, "data/agent", "data/agent");
	assert_true(allowed_sockets_have(&settings, environment, span_of("GIVEN")));
	assert_false(allowed_sockets_have(&settings, environment, span_of("HOME")));
	assert_false(allowed_sockets_have(&settings, environment, span_of("NONE")));
}

static void test_a_variable_with_an_address_names_its_socket(void **state)
{
	say("allow-socket", "/srv/odd");
	assert_true(allowed_sockets_have(&settings, environment, span_of("ODD")));
}

static void test_a_missing_socket_is_left_out(void **state)
{
	assert_true(draw_sockets("~/is-not-there"));
	assert_true(draw_sockets("$IS_NOT_SET"));
	assert_int_equal(drawing->count, 0);
}

static void test_what_is_no_socket_is_refused(void **state)
{
	assert_false(draw_sockets("~/notes"));
	assert_names(err.text, "allow-socket = ~/notes | allow-read");
	settings_finish(&settings);
	settings_init(&settings);
	make_socket("data/agent");
	char link[PATH_MAX];
	text_whole(link, sizeof(link), "%s", path_of("data/link"));
	assert_int_equal(symlink("agent", link), 0);
	assert_false(draw_sockets(link));
	assert_names(err.text, "data/link | symbolic link");
}

static void test_a_socket_is_neither_read_nor_written(void **state)
{
	static const char *const keys[] = {"allow-read", "allow-write"};
	make_socket("data/agent");
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		say(keys[i], path_of("data/agent"));
		assert_refused("data/agent | allow-socket");
		settings_finish(&settings);
		settings_init(&settings);
	}
}

/* ---- drawings that are refused ---- */

/* An agent that could write into the outer folder may have put a link to the home there. */
static void test_a_writable_folder_contains_no_other(void **state)
{
	make("home/.cache/inner");
	say("allow-write", "~/.cache");
	say("allow-write", "~/.cache/inner");
	assert_refused("allow-write = ~/.cache | allow-write = ~/.cache/inner");
}

static void test_a_writable_folder_lies_in_no_other(void **state)
{
	make("home/.cache/inner");
	say("allow-read", "~/.cache/inner");
	say("allow-write", "~/.cache");
	assert_refused("allow-read = ~/.cache/inner | allow-write = ~/.cache");
}

static void test_two_names_of_one_writable_folder_are_refused(void **state)
{
	assert_int_equal(symlink("../data", path_of("home/link")), 0);
	say("allow-write", "~/link");
	say("allow-read", path_of("data/cache"));
	assert_refused("allow-write = ~/link | allow-read");
}

static void test_a_link_on_the_way_is_refused(void **state)
{
	assert_int_equal(symlink(home, path_of("home/.cache/link")), 0);
	say("allow-write", "~/.cache/link");
	assert_refused("allow-write = ~/.cache/link | symbolic link");
}

static void test_a_second_link_is_refused(void **state)
{
	assert_int_equal(symlink(home, path_of("data/second")), 0);
	assert_int_equal(symlink("../data/second", path_of("home/first")), 0);
	say("allow-read", "~/first");
	assert_refused("allow-read = ~/first | symbolic link");
}

static void test_a_folder_above_the_brokers_state_is_refused(void **state)
{
	say("allow-write", "~/.local");
	assert_refused("allow-write = ~/.local | .local/state/acp-broker");
}

static void test_a_folder_above_the_configuration_is_refused_for_reading_too(void **state)
{
	say("allow-read", "~/.config");
	assert_refused("allow-read = ~/.config | .config/acp-broker");
}

static void test_the_configuration_need_not_be_there(void **state)
{
	assert_int_equal(rmdir(path_of("home/.config/acp-broker")), 0);
	say("allow-write", "~/.config");
	assert_refused("allow-write = ~/.config | .config/acp-broker");
}

static void test_a_folder_above_a_file_of_the_broker_is_refused(void **state)
{
	make("own");
	say("allow-read", path_of("own"));
	assert_refused("allow-read | own/config");
}

static void test_a_file_of_the_broker_is_hidden_where_it_is(void **state)
{
	assert_true(cell_drawing_hide_own_files(drawing, &err));
	assert_int_equal(drawing->count, 0); // it does not exist
	make("own");
	assert_int_equal(symlink("target", own_file), 0);
	assert_true(cell_drawing_hide_own_files(drawing, &err));
	assert_int_equal(drawing->count, 0); // a link leads to another of the files
	assert_int_equal(unlink(own_file), 0);
	FILE *file = fopen(own_file, "w");
	assert_non_null(file);
	fclose(file);
	assert_true(cell_drawing_hide_own_files(drawing, &err));
	assert_int_equal(drawing->count, 1);
	assert_drawn(0, CELL_HIDE, "own/config", "own/config");
}

static void test_the_home_is_refused(void **state)
{
	say("allow-write", "~/");
	assert_refused("allow-write = ~/");
}

static void test_the_root_is_refused(void **state)
{
	say("allow-read", "/");
	assert_refused("allow-read = /");
}

static void test_a_folder_in_the_brokers_state_is_refused(void **state)
{
	make("home/.local/state/acp-broker/copies");
	say("allow-write", "~/.local/state/acp-broker/copies");
	assert_refused("copies | .local/state/acp-broker");
}

static void test_dots_and_relative_paths_are_refused(void **state)
{
	static const char *const values[] = {
		"~/notes/../.cache", "~/./notes", "/..", "notes", "~", "~other/notes", ""};
	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		say("allow-read", values[i]);
		assert_refused("allow-read");
		settings_finish(&settings);
		settings_init(&settings);
	}
}

static void test_a_writable_folder_has_to_be_there(void **state)
{
	say("allow-write", "~/is-not-there");
	assert_refused("allow-write = ~/is-not-there");
}

#define WITH_FOLDERS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDERS(test_folders_beside_each_other_are_drawn),
		WITH_FOLDERS(test_what_is_read_may_contain_what_is_read),
		WITH_FOLDERS(test_a_link_in_the_home_itself_is_followed),
		WITH_FOLDERS(test_a_home_behind_a_link_is_the_home),
		WITH_FOLDERS(test_a_socket_is_drawn_by_its_path_or_a_variable),
		WITH_FOLDERS(test_a_variable_with_an_address_names_its_socket),
		WITH_FOLDERS(test_a_missing_socket_is_left_out),
		WITH_FOLDERS(test_what_is_no_socket_is_refused),
		WITH_FOLDERS(test_a_socket_is_neither_read_nor_written),
		WITH_FOLDERS(test_a_writable_folder_contains_no_other),
		WITH_FOLDERS(test_a_writable_folder_lies_in_no_other),
		WITH_FOLDERS(test_two_names_of_one_writable_folder_are_refused),
		WITH_FOLDERS(test_a_link_on_the_way_is_refused),
		WITH_FOLDERS(test_a_second_link_is_refused),
		WITH_FOLDERS(test_a_folder_above_the_brokers_state_is_refused),
		WITH_FOLDERS(test_a_folder_above_the_configuration_is_refused_for_reading_too),
		WITH_FOLDERS(test_the_configuration_need_not_be_there),
		WITH_FOLDERS(test_a_folder_above_a_file_of_the_broker_is_refused),
		WITH_FOLDERS(test_a_file_of_the_broker_is_hidden_where_it_is),
		WITH_FOLDERS(test_the_home_is_refused),
		WITH_FOLDERS(test_the_root_is_refused),
		WITH_FOLDERS(test_a_folder_in_the_brokers_state_is_refused),
		WITH_FOLDERS(test_dots_and_relative_paths_are_refused),
		WITH_FOLDERS(test_a_writable_folder_has_to_be_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
