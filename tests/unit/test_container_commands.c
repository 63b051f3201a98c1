/* SPDX-License-Identifier: MIT */
#include "providers/container/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/container/mount.h"
#include "providers/local/cell/plan.h"
#include "tests/support/facts.h"

enum { LINE_MAX_BYTES = 1024, KEYS_MAX = 8 };

/* A PATH with both engines, or with docker alone. */
static struct {
	char folder[64], both[80], docker[80];
	char path_both[96], path_docker[96];
} world;

static void make_program(const char *folder, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_return_code(chmod(path, 0755), 0);
}

static int set_up(void **state)
{
	snprintf(world.folder, sizeof(world.folder), "/tmp/engines-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(world.both, sizeof(world.both), "%s/both", world.folder);
	snprintf(world.docker, sizeof(world.docker), "%s/docker", world.folder);
	assert_return_code(mkdir(world.both, 0755), 0);
	assert_return_code(mkdir(world.docker, 0755), 0);
	make_program(world.both, "podman");
	make_program(world.both, "docker");
	make_program(world.docker, "docker");
	snprintf(world.path_both, sizeof(world.path_both), "PATH=%s", world.both);
	snprintf(world.path_docker, sizeof(world.path_docker), "PATH=%s", world.docker);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {
		"both/podman", "both/docker", "docker/docker", "both", "docker", ""};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/%s", world.folder, names[i]);
		remove(path);
	}
	return 0;
}

/*
 * Reads a profile with these keys and values, "KEY", "VALUE", …, NULL; returns the error, or NULL.
 */
static const struct error *read_from(struct exec_profile *profile, const char *path,
	const char *state_folder, const char *const *keys)
{
	static struct error err;
	struct settings settings;
	const char *const environment[] = {path, NULL};
	const struct provider_context context = {
		.environment = environment, .state_folder = state_folder};
	settings_init(&settings);
	for (size_t i = 0; keys[i]; i += 2) {
		settings_add(&settings, keys[i], keys[i + 1], "test");
	}
	bool ok = exec_profile_read(profile, &container_platform, "box", &settings, &context, &err);
	settings_finish(&settings);
	return ok ? NULL : &err;
}

static void read_well(struct exec_profile *profile, const char *const *keys)
{
	const struct error *err = read_from(profile, world.path_both, "/state", keys);
	if (err) {
		fail_msg("%s", err->text);
	}
}

/* The words of the command in one line, without the engine's folder. */
static const char *line_of(const struct exec_profile *profile, enum exec_verb verb)
{
	static char line[LINE_MAX_BYTES];
	static const struct exec_values values = {.instance = "box-1"};
	if (!profile->words[verb]) {
		return "none";
	}
	char **argv = exec_profile_argv(profile, verb, &values, NULL);
	size_t used = 0;
	for (size_t i = 0; argv[i]; i++) {
		const char *word = i > 0 ? argv[i] : strrchr(argv[i], '/') + 1;
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, "%s[%s]", i > 0 ? " " : "", word);
		assert_true(used < sizeof(line));
	}
	words_free(argv);
	return line;
}

static void test_an_image_becomes_containers_with_the_runner_in_them(void **state)
{
	static const char *const keys[] = {"image", "debian:12", NULL};
	struct exec_profile profile;
	read_well(&profile, keys);
	assert_string_equal(line_of(&profile, EXEC_START),
		"[podman] [run] [--detach] [--name] [box-1] [--label] [acp-broker.sandbox=box-1] "
		"[--label] [acp-broker.profile=box] [--volume] "
		"[/state/container/runner:/.acp-broker:ro,z] [--stop-signal] "
		"[SIGTERM] [--entrypoint] [/.acp-broker/acp-runner] [debian:12] [hold]");
	assert_string_equal(line_of(&profile, EXEC_EXEC), "[podman] [exec] [-i] [box-1]");
	assert_string_equal(line_of(&profile, EXEC_RESTART), "[podman] [start] [box-1]");
	assert_string_equal(line_of(&profile, EXEC_STOP), "[podman] [stop] [box-1]");
	assert_string_equal(
		line_of(&profile, EXEC_DESTROY), "[podman] [rm] [--force] [--volumes] [box-1]");
	assert_string_equal(line_of(&profile, EXEC_STATE),
		"[podman] [ps] [--all] [--no-trunc] [--filter] [id=box-1] [--format] [{{.State}}]");
	assert_string_equal(line_of(&profile, EXEC_LIST),
		"[podman] [ps] [--all] [--no-trunc] [--filter] [label=acp-broker.sandbox] "
		"[--format] [{{.ID}}]");
	assert_string_equal(line_of(&profile, EXEC_INSPECT), "none");
	exec_profile_finish(&profile);
}

static void test_limits_go_to_the_engine_and_are_read_back(void **state)
{
	static const char *const keys[] = {"image", "debian:12", "memory", "512m", "cpu", "2",
		"processes", "100", "network", "blocked", NULL};
	struct exec_profile profile;
	read_well(&profile, keys);
	assert_non_null(strstr(line_of(&profile, EXEC_START),
		" [--memory] [536870912] [--cpus] [2] [--pids-limit] [100] [--network] [none] "));
	assert_string_equal(line_of(&profile, EXEC_INSPECT),
		"[podman] [inspect] [--format] [memory={{.HostConfig.Memory}} "
		"cpu={{.HostConfig.NanoCpus}} processes={{.HostConfig.PidsLimit}} "
		"network={{.HostConfig.NetworkMode}}] [box-1]");
	assert_string_equal(
		profile.made, "memory=536870912 cpu=2000000000 processes=100 network=none");
	exec_profile_finish(&profile);
}

static void test_other_settings_make_another_container(void **state)
{
	static const char *const variants[][5] = {{"image", "a", NULL}, {"image", "b", NULL},
		{"image", "a", "network", "blocked", NULL}, {"image", "a", "memory", "1g", NULL},
		{"image", "a", "cpu", "3", NULL}, {"image", "a", "processes", "64", NULL},
		{"image", "a", "engine", "docker", NULL}};
	char *seen[ARRAY_LENGTH(variants)];
	for (size_t i = 0; i < ARRAY_LENGTH(variants); i++) {
		struct exec_profile profile;
		read_well(&profile, variants[i]);
		seen[i] = mem_strdup(profile.variant);
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(seen[i], seen[j]);
		}
		exec_profile_finish(&profile);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(variants); i++) {
		free(seen[i]);
	}
}

static void test_a_dockerfile_is_built_before_containers_are_made_from_it(void **state)
{
	static const char *const keys[] = {"dockerfile", "/boxes/Dockerfile", NULL};
	struct exec_profile profile;
	read_well(&profile, keys);
	exec_profile_set_recipe(&profile, "/real/Dockerfile", "/real", "c0ffee");
	assert_string_equal(line_of(&profile, EXEC_BUILD),
		"[podman] [build] [--tag] [localhost/acp-broker:c0ffee] [--file] "
		"[/real/Dockerfile] [/real]");
	assert_string_equal(line_of(&profile, EXEC_HAS_BUILT),
		"[podman] [image] [inspect] [--format] [{{.Id}}] [localhost/acp-broker:c0ffee]");
	assert_non_null(
		strstr(line_of(&profile, EXEC_START), " [localhost/acp-broker:c0ffee] [hold]"));
	assert_non_null(strstr(profile.variant, "c0ffee"));
	exec_profile_finish(&profile);
}

static void test_a_devcontainer_names_an_image_or_is_built(void **state)
{
	static const char *const keys[] = {"devcontainer", "auto", NULL};
	struct exec_profile profile;
	read_well(&profile, keys);
	assert_non_null(profile.find_recipe);
	exec_profile_set_image(&profile, "debian:12");
	assert_null(profile.recipe_file);
	assert_non_null(strstr(line_of(&profile, EXEC_START), " [debian:12] [hold]"));
	assert_non_null(strstr(profile.variant, "debian:12"));
	exec_profile_finish(&profile);
	read_well(&profile, keys);
	exec_profile_set_recipe(&profile, "/w/box/Dockerfile", "/w", "c0ffee");
	assert_string_equal(line_of(&profile, EXEC_BUILD),
		"[podman] [build] [--tag] [localhost/acp-broker:c0ffee] [--file] "
		"[/w/box/Dockerfile] [/w]");
	exec_profile_finish(&profile);
}

static void test_the_path_of_a_dockerfile_is_whole(void **state)
{
	static const char *const paths[] = {"Dockerfile", "./Dockerfile", "~kim/Dockerfile"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		const char *const keys[] = {"dockerfile", paths[i], NULL};
		struct exec_profile profile;
		const struct error *err = read_from(&profile, world.path_both, "/s", keys);
		assert_non_null(err);
		assert_names(err->text, "dockerfile");
		assert_non_null(strstr(err->text, paths[i]));
	}
}

static void test_a_container_that_is_there_is_only_used(void **state)
{
	static const char *const keys[] = {"container", "mine", NULL};
	struct exec_profile profile;
	read_well(&profile, keys);
	assert_string_equal(line_of(&profile, EXEC_EXEC), "[podman] [exec] [-i] [mine]");
	assert_string_equal(line_of(&profile, EXEC_COPY_IN),
		"[podman] [cp] [/state/container/runner/.] [mine:/.acp-broker]");
	for (int verb = EXEC_START; verb < EXEC_VERBS; verb++) {
		if (verb != EXEC_COPY_IN) {
			assert_string_equal(line_of(&profile, (enum exec_verb)verb), "none");
		}
	}
	assert_false(exec_profile_has_instances(&profile));
	exec_profile_finish(&profile);
}

static void test_the_engine_is_the_one_on_path_or_the_named_one(void **state)
{
	static const char *const any[] = {"image", "a", NULL};
	static const char *const docker[] = {"image", "a", "engine", "docker", NULL};
	static const char *const podman[] = {"image", "a", "engine", "podman", NULL};
	const struct {
		const char *path;
		const char *const *keys;
		const char *wanted; // NULL: an error
	} cases[] = {{world.path_both, any, "both/podman"},
		{world.path_both, docker, "both/docker"}, {world.path_docker, any, "docker/docker"},
		{world.path_docker, podman, NULL}, {"PATH=/nowhere", any, NULL},
		{"PATH=", any, NULL}, {"HOME=/", any, NULL}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct exec_profile profile;
		const struct error *err = read_from(&profile, cases[i].path, "/s", cases[i].keys);
		if (!cases[i].wanted) {
			assert_non_null(err);
			assert_string_equal(err->reason, "ENGINE_NOT_FOUND");
			assert_names(err->text, "PATH | podman");
			continue;
		}
		assert_null(err);
		const char *engine = profile.words[EXEC_START][0] + strlen(world.folder) + 1;
		assert_string_equal(engine, cases[i].wanted);
		exec_profile_finish(&profile);
	}
}

static void test_no_name_is_an_option_or_a_template(void **state)
{
	static const char *const hostile[] = {"-v", "--privileged", " a", "a b", "a\tb", "a\nb",
		"a%i", "%i", "", "/etc", ".", "a;b", "a$(b)", "a'b", "\xc3\xa4", "a=b", "a,b"};
	static const char *const images[] = {"a", "docker.io/library/debian:12",
		"localhost:5000/a_b/c-d:v1.2", "a@sha256:0123456789abcdef"};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(hostile); i++) {
		for (size_t j = 0; j < 2; j++) {
			const char *key = j == 0 ? "image" : "container";
			const char *const keys[] = {key, hostile[i], NULL};
			const struct error *err = read_from(&profile, world.path_both, "/s", keys);
			assert_non_null(err);
			assert_int_equal(err->code, ERROR_CONFIG);
			assert_names(err->text, key);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(images); i++) {
		const char *const keys[] = {"image", images[i], NULL};
		assert_null(read_from(&profile, world.path_both, "/s", keys));
		exec_profile_finish(&profile);
	}
}

static void test_folders_of_odd_names_stay_words(void **state)
{
	static const char *const keys[] = {"image", "a", NULL};
	struct exec_profile profile;
	assert_null(read_from(&profile, world.path_both, "/st%ate %i", keys));
	assert_non_null(strstr(
		line_of(&profile, EXEC_START), "[/st%ate %i/container/runner:/.acp-broker:ro,z]"));
	exec_profile_finish(&profile);
	const struct error *err = read_from(&profile, world.path_both, "/a:b", keys);
	assert_non_null(err);
	assert_names(err->text, "colon | /a:b | XDG_STATE_HOME");
}

static void test_what_an_engine_cannot_do_is_refused(void **state)
{
	static const struct {
		const char *keys[KEYS_MAX];
		const char *names;
	} cases[] = {
		{{NULL}, "image | dockerfile | container"},
		{{"image", "a", "container", "b", NULL}, "image | container | only one"},
		{{"image", "a", "dockerfile", "/b", NULL}, "image | dockerfile | only one"},
		{{"dockerfile", "/a", "container", "b", NULL}, "dockerfile | container | only one"},
		{{"image", "a", "devcontainer", "auto", NULL}, "image | devcontainer | only one"},
		{{"image", "a", "network", "allow", NULL}, "network = allow | open | blocked"},
		{{"container", "b", "network", "blocked", NULL}, "network = blocked | image"},
		{{"container", "b", "memory", "1g", NULL}, "memory | image"},
		{{"container", "b", "cpu", "1", NULL}, "cpu | image"},
		{{"container", "b", "mount", "same-path", NULL}, "mount = same-path | image"},
		{{"image", "a", "git-write", "true", NULL}, "git-write | mount = same-path"},
		{{"container", "b", "processes", "64", NULL}, "processes | image"},
		{{"image", "a", "devcontainer-ports", "true", NULL},
			"devcontainer-ports | devcontainer = auto | forward"},
	};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct error *err = read_from(&profile, world.path_both, "/s", cases[i].keys);
		assert_non_null(err);
		assert_int_equal(err->code, ERROR_CONFIG);
		assert_names(err->text, cases[i].names);
	}
}

static void test_a_workspace_is_mounted_with_its_pins_and_its_user(void **state)
{
	static const char *const keys[] = {
		"image", "a", "engine", "docker", "mount", "same-path", NULL};
	static const struct cell_entry entries[] = {{.rule = CELL_WRITE, .path = "/a, \"b\":c%i"},
		{.rule = CELL_READ, .path = "/a, \"b\":c%i/.git"}};
	struct exec_profile profile;
	read_well(&profile, keys);
	assert_true(profile.shows_workspace);
	char *before = mem_strdup(profile.variant);
	const struct exec_show show = {.entries = entries, .count = 2, .uid = 12, .gid = 34};
	struct error err;
	assert_true(profile.platform->show(&profile, &show, &err));
	assert_non_null(strstr(line_of(&profile, EXEC_START),
		"[docker] [run] [--detach] [--user] [12:34] [--cap-drop] [all] [--security-opt] "
		"[no-new-privileges] [--security-opt] [label=disable] [--no-healthcheck] [--mount] "
		"[type=bind,\"src=/a, \"\"b\"\":c%i\",\"dst=/a, \"\"b\"\":c%i\"] [--mount] "
		"[type=bind,\"src=/a, \"\"b\"\":c%i/.git\",\"dst=/a, \"\"b\"\":c%i/.git\",ro=true] "
		"[--name] [box-1] "));
	assert_string_not_equal(profile.variant, before);
	free(before);
	exec_profile_finish(&profile);
	static const char *const podman[] = {"image", "a", "mount", "same-path", NULL};
	read_well(&profile, podman);
	assert_true(profile.platform->show(&profile, &show, &err));
	assert_non_null(strstr(line_of(&profile, EXEC_START), "[--image-volume] [ignore] "));
	exec_profile_finish(&profile);
}

static void test_a_path_that_the_engine_would_change_is_refused(void **state)
{
	static const char *const keys[] = {"image", "a", "mount", "same-path", NULL};
	static const struct {
		const char *path, *names;
	} cases[] = {{"/a/x\r\n/.envrc", "\"/a/x\\r\\n/.envrc\" | carriage return | mount = none"},
		{"/a/x\r", "\"/a/x\\r\" | carriage return"},
		{"/a/x\xff/.envrc", "\"/a/x\\377/.envrc\" | UTF-8"}, {"/a/x\n\t/.envrc", NULL}};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const struct cell_entry entries[] = {{.rule = CELL_WRITE, .path = "/a"},
			{.rule = CELL_READ, .path = (char *)cases[i].path}};
		const struct exec_show show = {.entries = entries, .count = 2};
		struct error err;
		read_well(&profile, keys);
		size_t before = words_count(profile.words[EXEC_START]);
		bool is_shown = profile.platform->show(&profile, &show, &err);
		assert_int_equal(is_shown, cases[i].names == NULL);
		if (!is_shown) {
			assert_int_equal(err.code, ERROR_CONFIG);
			assert_names(err.text, cases[i].names);
			assert_int_equal(words_count(profile.words[EXEC_START]), before);
		}
		exec_profile_finish(&profile);
	}
}

static void test_an_engine_on_another_machine_mounts_nothing(void **state)
{
	static const struct {
		const char *engine, *variable;
		bool is_here;
	} cases[] = {{"/bin/podman", "CONTAINER_HOST=ssh://there", false},
		{"/bin/podman", "CONTAINER_CONNECTION=there", false},
		{"/bin/podman", "CONTAINER_HOST=unix:///run/podman.sock", true},
		{"/bin/podman", "DOCKER_HOST=tcp://there", true},
		{"/bin/docker", "DOCKER_HOST=tcp://there", false},
		{"/bin/docker", "DOCKER_HOST=", true},
		{"docker", "DOCKER_HOST=unix:///run/docker.sock", true}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const char *const environment[] = {cases[i].variable, NULL};
		struct error err;
		assert_int_equal(container_mount_check(cases[i].engine, environment, &err),
			cases[i].is_here);
	}
}

static void test_states_are_words_of_either_engine(void **state)
{
	static const struct {
		const char *out;
		int state; // -1: none
	} cases[] = {{"running\n", EXEC_STATE_RUNNING}, {"Up 2 minutes ago\n", EXEC_STATE_RUNNING},
		{"Up", EXEC_STATE_RUNNING}, {"exited\n", EXEC_STATE_STOPPED},
		{"Exited (137) Less than a second ago\n", EXEC_STATE_STOPPED},
		{"created\n", EXEC_STATE_STOPPED}, {"Created", EXEC_STATE_STOPPED},
		{"", EXEC_STATE_GONE}, {"\n", EXEC_STATE_GONE}, {"paused\n", -1}, {"Paused\n", -1},
		{"upside\n", -1}, {"\x1b[31mrunning", -1}, {"removing\n", -1}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		enum exec_state found = EXEC_STATE_GONE;
		char says[EXEC_SAYS_SIZE] = "";
		bool ok = container_platform.read_state(span_of(cases[i].out), &found, says);
		assert_int_equal(ok ? (int)found : -1, cases[i].state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_image_becomes_containers_with_the_runner_in_them),
		cmocka_unit_test(test_limits_go_to_the_engine_and_are_read_back),
		cmocka_unit_test(test_other_settings_make_another_container),
		cmocka_unit_test(test_a_dockerfile_is_built_before_containers_are_made_from_it),
		cmocka_unit_test(test_a_devcontainer_names_an_image_or_is_built),
		cmocka_unit_test(test_the_path_of_a_dockerfile_is_whole),
		cmocka_unit_test(test_a_container_that_is_there_is_only_used),
		cmocka_unit_test(test_the_engine_is_the_one_on_path_or_the_named_one),
		cmocka_unit_test(test_no_name_is_an_option_or_a_template),
		cmocka_unit_test(test_folders_of_odd_names_stay_words),
		cmocka_unit_test(test_what_an_engine_cannot_do_is_refused),
		cmocka_unit_test(test_a_workspace_is_mounted_with_its_pins_and_its_user),
		cmocka_unit_test(test_a_path_that_the_engine_would_change_is_refused),
		cmocka_unit_test(test_an_engine_on_another_machine_mounts_nothing),
		cmocka_unit_test(test_states_are_words_of_either_engine),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
