/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_home.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/config/known_agents.h"
#include "tests/support/facts.h"

static char folder[64];
static struct settings settings;
static struct agent_home agent;
static struct cell_drawing *drawing;
static struct sandbox sandbox;
static struct error err;
static const struct owner own; // nobody else

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *content)
{
	char above[PATH_MAX];
	text_whole(above, sizeof(above), "%s", path_of(name));
	*strrchr(above, '/') = '\0';
	assert_true(folder_make(above, &err));
	FILE *file = fopen(path_of(name), "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

static int set_up(void **state)
{
	text_whole(folder, sizeof(folder), "/tmp/test-agent-home-XXXXXX");
	if (!mkdtemp(folder) || mkdir(path_of("home"), 0755) != 0) {
		return -1;
	}
	settings_init(&settings);
	char home[PATH_MAX];
	text_whole(home, sizeof(home), "%s", path_of("home"));
	drawing = cell_drawing_create(mem_strdup(home), NULL);
	sandbox = (struct sandbox){0};
	return 0;
}

static int tear_down(void **state)
{
	agent_home_finish(&agent);
	free((char *)drawing->home_name);
	cell_drawing_destroy(drawing);
	settings_finish(&settings);
	words_free(sandbox.warnings);
	return remove_folder(folder, &err) ? 0 : -1;
}

static void draw(const char *name)
{
	char kept[PATH_MAX];
	text_whole(kept, sizeof(kept), "%s", path_of("state/homes/1"));
	settings_add(&settings, "agent-state", name, "test");
	assert_true(agent_home_init(&agent, &settings, drawing->home_name, kept, &own, &err));
	assert_true(agent_home_draw(&agent, drawing, &sandbox, &err));
}

static const struct cell_entry *find_entry(const char *name)
{
	for (size_t i = 0; i < drawing->count; i++) {
		if (strcmp(drawing->entries[i].path, path_of(name)) == 0) {
			return &drawing->entries[i];
		}
	}
	return NULL;
}

static void assert_put(const char *name, const char *content)
{
	const struct cell_entry *entry = find_entry(name);
	assert_non_null(entry);
	assert_int_equal(entry->rule, CELL_PUT);
	assert_string_equal(entry->source, content);
}

static void assert_warned(const char *facts)
{
	assert_int_equal(words_count(sandbox.warnings), 1);
	assert_names(sandbox.warnings[0], facts);
}

static void test_an_agent_cannot_close_the_folder_to_the_next_one(void **state)
{
	struct stat status;
	char top[PATH_MAX];
	const char *kept = "state/homes/1/.claude/projects";
	draw("claude");
	assert_int_equal(chmod(path_of(kept), 0), 0);
	agent_home_finish(&agent);
	text_whole(top, sizeof(top), "%s", path_of("state/homes/1"));
	assert_true(agent_home_init(&agent, &settings, drawing->home_name, top, &own, &err));
	assert_int_equal(stat(path_of(kept), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
}

static void test_the_sessions_have_a_folder_of_the_profile(void **state)
{
	struct stat status;
	draw("claude");
	const struct cell_entry *entry = find_entry("home/.claude/projects");
	assert_non_null(entry);
	assert_int_equal(entry->rule, CELL_KEEP);
	assert_string_equal(entry->source, path_of("state/homes/1/.claude/projects"));
	assert_int_equal(stat(path_of("state/homes/1"), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	assert_int_equal(drawing->count, 1); // nobody is logged in
	assert_null(sandbox.warnings);
}

static void test_login_and_settings_go_in_by_their_keys(void **state)
{
	write_file("home/.claude/.credentials.json",
		"{\"claudeAiOauth\": {\"accessToken\": \"a\", \"new\": 1}, \"mcpOAuth\": {}}");
	write_file("home/.claude/settings.json",
		"{\"model\": \"m\", \"hooks\": {\"Stop\": []}, \"apiKeyHelper\": \"x\", "
		"\"permissions\": {\"allow\": [\"Bash\"], \"deny\": [\"Read\"]}}");
	write_file("home/.claude.json", "{\"mcpServers\": {}}");
	draw("claude");
	assert_put("home/.claude/.credentials.json", "{\"claudeAiOauth\":{\"accessToken\":\"a\"}}");
	assert_put("home/.claude/settings.json",
		"{\"model\":\"m\",\"permissions\":{\"deny\":[\"Read\"]}}");
	assert_null(find_entry("home/.claude.json"));
}

static void test_of_no_known_agent_nothing_goes_in(void **state)
{
	write_file("home/.claude/.credentials.json", "{\"claudeAiOauth\": {}}");
	draw("none");
	assert_int_equal(drawing->count, 0);
	assert_int_not_equal(access(path_of("state"), F_OK), 0);
}

static void test_settings_that_say_nothing_are_left_out(void **state)
{
	write_file("home/.claude/settings.json", "{\"hooks\": {\"Stop\": []}}");
	draw("claude");
	assert_int_equal(drawing->count, 1);
	assert_null(sandbox.warnings);
}

static void test_the_users_own_paths_come_first(void **state)
{
	write_file("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"k\"}");
	settings_add(&settings, "allow-write", "~/.codex", "test");
	assert_true(cell_drawing_add_key(drawing, CELL_WRITE, "allow-write", &settings, &err));
	draw("codex");
	assert_int_equal(drawing->count, 1);
	assert_true(cell_drawing_check(drawing, &err));
}

/* An agent that was allowed to write there could have left each of these. */
static void test_a_link_is_not_followed(void **state)
{
	write_file("home/secret", "{\"OPENAI_API_KEY\": \"k\"}");
	assert_int_equal(mkdir(path_of("home/.codex"), 0755), 0);
	assert_int_equal(symlink("../secret", path_of("home/.codex/auth.json")), 0);
	draw("codex");
	assert_null(find_entry("home/.codex/auth.json"));
	assert_warned(".codex/auth.json | agent-state = codex | symbolic link");
}

static void test_a_folder_behind_a_link_is_not_read(void **state)
{
	write_file("home/other/auth.json", "{\"OPENAI_API_KEY\": \"k\"}");
	assert_int_equal(symlink("other", path_of("home/.codex")), 0);
	draw("codex");
	assert_null(find_entry("home/.codex/auth.json"));
	assert_warned("symbolic link");
}

static void test_nobody_waits_for_a_pipe(void **state)
{
	assert_int_equal(mkdir(path_of("home/.codex"), 0755), 0);
	assert_int_equal(mkfifo(path_of("home/.codex/auth.json"), 0644), 0);
	draw("codex");
	assert_warned(".codex/auth.json | not a regular file");
}

static void test_a_huge_file_is_left_out(void **state)
{
	write_file("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"k\"}");
	assert_int_equal(truncate(path_of("home/.codex/auth.json"), 1LL << 40), 0);
	draw("codex");
	assert_warned(".codex/auth.json | 256 KiB");
}

static void test_what_is_no_json_is_left_out(void **state)
{
	write_file("home/.codex/auth.json", "{\"OPENAI_API_KEY\": \"k\"");
	draw("codex");
	assert_int_equal(drawing->count, 1);
	assert_warned(".codex/auth.json");
}

static void test_variables_name_no_other_place(void **state)
{
	char **environment = NULL;
	words_append(&environment, "XDG_DATA_HOME=/elsewhere");
	words_append(&environment, "HOME=/h");
	draw("opencode");
	agent_home_set_variables(&agent, &environment, &sandbox);
	assert_int_equal(words_count(environment), 2);
	assert_string_equal(environment[0], "HOME=/h");
	assert_int_equal(strncmp(environment[1], "OPENCODE_DB=", 12), 0);
	assert_string_equal(
		environment[1] + 12, path_of("home/.local/share/opencode/db/opencode.db"));
	assert_warned("XDG_DATA_HOME | agent-state = opencode");
	words_free(environment);
}

/* The names must be those in the table of known agents, which belongs to another layer. */
static void test_names_are_those_of_known_agents(void **state)
{
	assert_string_equal(agent_files_choices[0], "none");
	for (size_t i = 1; agent_files_choices[i]; i++) {
		const char *name = agent_files_choices[i];
		assert_non_null(known_agent_find(name));
		assert_non_null(agent_files_find(name));
	}
	assert_null(agent_files_find("none"));
	assert_null(agent_files_find(NULL));
}

/* json_pick and json_renew need the keys in this order. */
static void test_keys_are_sorted_and_what_comes_back_went_in(void **state)
{
	for (size_t i = 1; agent_files_choices[i]; i++) {
		const struct agent_files *files = agent_files_find(agent_files_choices[i]);
		for (size_t j = 0; j < AGENT_FILES_MAX && files->files[j].path; j++) {
			const struct agent_file *file = &files->files[j];
			for (size_t k = 0; file->keys && file->keys[k] && file->keys[k + 1]; k++) {
				assert_true(strcmp(file->keys[k], file->keys[k + 1]) < 0);
			}
			for (size_t k = 0; file->back && file->back[k]; k++) {
				assert_true(words_contain(file->keys, file->back[k]));
			}
			assert_int_equal(!file->back, !file->newer);
		}
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_an_agent_cannot_close_the_folder_to_the_next_one),
		CASE(test_the_sessions_have_a_folder_of_the_profile),
		CASE(test_login_and_settings_go_in_by_their_keys),
		CASE(test_of_no_known_agent_nothing_goes_in),
		CASE(test_settings_that_say_nothing_are_left_out),
		CASE(test_the_users_own_paths_come_first),
		CASE(test_a_link_is_not_followed),
		CASE(test_a_folder_behind_a_link_is_not_read),
		CASE(test_nobody_waits_for_a_pipe),
		CASE(test_a_huge_file_is_left_out),
		CASE(test_what_is_no_json_is_left_out),
		CASE(test_variables_name_no_other_place),
		cmocka_unit_test(test_names_are_those_of_known_agents),
		cmocka_unit_test(test_keys_are_sorted_and_what_comes_back_went_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
