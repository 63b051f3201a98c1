/* SPDX-License-Identifier: MIT */
#include "tests/unit/config_fixture.h"

#include "base/fd.h"
#include "broker/config/mcp_config.h"

enum { TEXT_MAX = 4096 };

static const char file_text[] = "[profile \"local\"]\n"
				"\tmcp = github\n"
				"\tmcp = docs\n"
				"\tmcp = github\n"
				"\tmcp-timeout = 5s\n"
				"\tsecret-env = HOME\n"
				"[mcp \"github\"]\n"
				"\tcommand = npx\n"
				"\targ = -y\n"
				"\targ = \"a b\"\n"
				"\tenv = A=x=y\n"
				"\tsecret-env = API_KEY\n"
				"[mcp \"docs\"]\n"
				"\turl = http://user:sesame@docs.example:8080/mcp?key=hunter3\n"
				"\theader = \"Authorization: Bearer hunter2\"\n"
				"\theader = X-Empty:\n"
				"[mcp \"unused\"]\n"
				"\ttype = sse\n"
				"\turl = https://h\n"
				"\tsecret-env =\n";

static const char *const secrets[] = {"hunter2", "hunter3", "sesame"};

/* The last line is a mistake that belongs to another test. */
static char *good_text(void)
{
	const char *end = strstr(file_text, "\tsecret-env =\n");
	return mem_strndup((struct span){file_text, (size_t)(end - file_text)});
}

static void load_file(struct fixture *fixture)
{
	char *text = good_text();
	write_config(fixture, text);
	free(text);
	assert_loads(fixture, &with_agent);
}

static void test_the_servers_of_a_profile_are_read_in_their_order_and_once(void **state)
{
	struct fixture *fixture = *state;
	load_file(fixture);
	const struct profile *profile = &fixture->config.profile;
	assert_int_equal(profile->mcp_count, 2);
	assert_int_equal(profile->mcp_timeout_ms, 5000);
	const struct mcp_server *github = &profile->mcp[0];
	assert_string_equal(github->name, "github");
	assert_int_equal(github->type, MCP_STDIO);
	assert_string_equal(github->command, "npx");
	assert_null(github->url);
	assert_words(github->args, "-y|a b|");
	assert_words(github->env, "A=x=y|API_KEY=hunter2|");
	assert_words(github->secret_names, "API_KEY|");
	const struct mcp_server *docs = &profile->mcp[1];
	assert_string_equal(docs->name, "docs");
	assert_int_equal(docs->type, MCP_HTTP);
	assert_null(docs->command);
	assert_words(docs->headers, "Authorization: Bearer hunter2|X-Empty:|");
	assert_words(profile->secret_env, "HOME|");
	assert_words(profile->masked_env, "HOME|API_KEY|");
	config_finish(&fixture->config);
}

static void test_without_servers_there_are_none(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, "[mcp \"m\"]\ncommand = x\nsecret-env = NOT_SET\n");
	assert_loads(fixture, &with_agent);
	assert_int_equal(fixture->config.profile.mcp_count, 0);
	assert_int_equal(fixture->config.profile.mcp_timeout_ms, 30000);
	assert_words(fixture->config.profile.masked_env ? fixture->config.profile.masked_env
							: (char *[]){NULL},
		"");
	config_finish(&fixture->config);
}

static void expect_json(const struct mcp_server *server, const char *expected)
{
	struct buf out;
	struct json_writer writer;
	buf_init(&out, TEXT_MAX);
	json_write_begin(&writer, &out);
	mcp_server_write(server, &writer);
	assert_true(json_write_end(&writer, NULL));
	char *text = mem_strndup(buf_span(&out));
	assert_string_equal(text, expected);
	free(text);
	buf_finish(&out);
}

static void test_a_server_is_written_as_the_protocol_has_it(void **state)
{
	struct fixture *fixture = *state;
	load_file(fixture);
	const struct profile *profile = &fixture->config.profile;
	expect_json(&profile->mcp[0],
		"{\"name\":\"github\",\"command\":\"npx\",\"args\":[\"-y\",\"a b\"],"
		"\"env\":[{\"name\":\"A\",\"value\":\"x=y\"},"
		"{\"name\":\"API_KEY\",\"value\":\"hunter2\"}]}");
	expect_json(&profile->mcp[1],
		"{\"type\":\"http\",\"name\":\"docs\","
		"\"url\":\"http://user:sesame@docs.example:8080/mcp?key=hunter3\","
		"\"headers\":[{\"name\":\"Authorization\",\"value\":\"Bearer hunter2\"},"
		"{\"name\":\"X-Empty\",\"value\":\"\"}]}");
	config_finish(&fixture->config);
}

/* What `acp-broker check` prints. */
static void print(struct fixture *fixture, char text[TEXT_MAX])
{
	char path[PATH_BYTES + 16];
	snprintf(path, sizeof(path), "%s/printed", fixture->home);
	fflush(stdout);
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(saved >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
	config_print(&fixture->config, fixture->environment);
	fflush(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	ssize_t len = pread(file, text, TEXT_MAX - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	fd_close(&saved);
	fd_close(&file);
}

static void test_what_is_printed_has_no_secret_in_it(void **state)
{
	static const char *const lines[] = {
		"mcp                 \"github\"\n  type              stdio\n"
		"  command           \"npx\"\n  arg               \"-y\"\n"
		"  arg               \"a b\"\n  env               \"A=x=y\"\n"
		"  secret-env        API_KEY\n",
		"mcp                 \"docs\"\n  type              http\n"
		"  url               \"http://docs.example:8080/mcp\"\n"
		"  header            Authorization\n  header            X-Empty\n",
		"mcp-timeout         5s\n"};
	struct fixture *fixture = *state;
	char text[TEXT_MAX];
	load_file(fixture);
	print(fixture, text);
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		if (!strstr(text, lines[i])) {
			fail_msg("%s\nis not in\n%s", lines[i], text);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(secrets); i++) {
		assert_null(strstr(text, secrets[i]));
	}
	config_finish(&fixture->config);
}

static void test_a_mistake_in_a_server_nobody_uses_is_one_too(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, file_text);
	assert_mistake(fixture, &with_agent,
		"FILE: mcp.unused.secret-env | name | letters, digits and _ | environment");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_the_servers_of_a_profile_are_read_in_their_order_and_once),
		CONFIG_TEST(test_without_servers_there_are_none),
		CONFIG_TEST(test_a_server_is_written_as_the_protocol_has_it),
		CONFIG_TEST(test_what_is_printed_has_no_secret_in_it),
		CONFIG_TEST(test_a_mistake_in_a_server_nobody_uses_is_one_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
