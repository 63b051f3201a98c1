/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_servers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/json_doc.h"
#include "base/words.h"
#include "tests/support/facts.h"

/*
 * Everything here is written with ' for ". The letter "o" is the broker's own server. The sandbox
 * has the commands "ok" and /r/w/tool, and nothing is known of those that begin with "who".
 */
enum { TEXT_MAX = 8192 };

enum place_of_work { HERE, FAR, FAR_ONLY_FILES, FAR_ONLY_LOOPBACK, CELL };

struct sample {
	enum place_of_work where;
	const char *servers; // of the profile: letters of those below
	const char *params;
	const char *want;    // NULL: unchanged
	const char *notices; // the first words of each, separated by |
};

static char *no_words[] = {NULL};
static char *own_path[] = {(char *)"PATH=/own", NULL};

static const struct mcp_server known_servers[] = {
	{(char *)"a", MCP_STDIO, (char *)"ok", no_words, no_words, NULL, no_words, no_words},
	{(char *)"b", MCP_STDIO, (char *)"gone", no_words, own_path, NULL, no_words, no_words},
	{(char *)"h", MCP_HTTP, NULL, no_words, no_words, (char *)"http://localhost/h", no_words,
		no_words},
	{(char *)"s", MCP_SSE, NULL, no_words, no_words, (char *)"http://s/", no_words, no_words},
};

#define A "{'name':'a','command':'ok','args':[],'env':[]}"
#define H "{'type':'http','name':'h','url':'http://localhost/h','headers':[]}"
#define OWN "{'name':'o','command':'gone','args':[],'env':[]}"
#define OK "{'name':'x', 'command':'ok' ,'args':[ ]}"
#define GONE "{'command':'gone','name':'gone'}"
#define LOCAL "{'type':'http','name':'local','url':'http://localhost:3/m','headers':[]}"
#define LOCAL_4 "{'type':'http','name':'four','url':'http://127.0.0.1:4/m','headers':[]}"
#define LOCAL_6 "{'type':'sse','name':'six','url':'http://[::1]:3/m'}"
#define FAR_URL "{'type':'sse','name':'far','url':'https://example.com/m'}"

static const struct sample samples[] = {
	/* the same files and the same loopback: nothing is looked at */
	{HERE, "", "{'mcpServers':[" GONE "," LOCAL "]}", NULL, ""},
	{HERE, "", "{'mcpServers':[]}", NULL, ""},
	{HERE, "", "{}", NULL, ""},
	/* a cell that reaches port 3 of this machine */
	{CELL, "", "{'mcpServers':[" LOCAL "," FAR_URL "]}", NULL, ""},
	{CELL, "", "{'mcpServers':[" LOCAL "," LOCAL_4 "," LOCAL_6 "]}",
		"{'mcpServers':[" LOCAL "]}", "'four' was left out|'six' was left out"},
	/* elsewhere */
	{FAR, "", "{'cwd':'/l/w','mcpServers':[ " OK " , " FAR_URL "\t]}", NULL, ""},
	{FAR, "", "{'mcpServers':[ ]}", NULL, ""},
	{FAR, "", "{'mcpServers':null}", NULL, ""},
	{FAR, "", "{'mcpServers':'gone'}", NULL, ""},
	{FAR, "", "{}", NULL, ""},
	{FAR, "", "{'mcpServers':[" GONE "]}", "{'mcpServers':[]}", "'gone' was left out"},
	{FAR, "", "{'mcpServers':[ " GONE " , " LOCAL " ]}", "{'mcpServers':[  ]}",
		"'gone' was left out|'local' was left out"},
	{FAR, "", "{'mcpServers':[ " GONE " , " OK " ]}", "{'mcpServers':[ " OK " ]}",
		"'gone' was left out"},
	{FAR, "", "{'mcpServers':[ " OK " , " GONE " ]}", "{'mcpServers':[ " OK " ]}",
		"'gone' was left out"},
	{FAR, "", "{'mcpServers':[" LOCAL "," OK ", " GONE " ,  " FAR_URL "," LOCAL "," GONE "]}",
		"{'mcpServers':[" OK " ,  " FAR_URL "]}",
		"'local' was|'gone' was|'local' was|'gone' was"},
	{FAR, "", "{'mcpServers':[" GONE "," GONE "," OK "," OK "]}",
		"{'mcpServers':[" OK "," OK "]}", "'gone'|'gone'"},
	{FAR_ONLY_FILES, "", "{'mcpServers':[" GONE "," LOCAL "]}", "{'mcpServers':[" LOCAL "]}",
		"'gone'"},
	{FAR_ONLY_LOOPBACK, "", "{'mcpServers':[" GONE "," LOCAL "]}", "{'mcpServers':[" GONE "]}",
		"'local'"},
	/* what is not understood is the agent's to refuse */
	{FAR, "",
		"{'mcpServers':[7,null,'gone',{},{'command':7},{'type':'acp','command':'gone'},"
		"{'type':'ws','url':'http://localhost'},{'url':'http://localhost'},"
		"{'type':'http','url':'localhost:1'},[['gone']]]}",
		NULL, ""},
	/* commands below a root */
	{FAR, "", "{'mcpServers':[{'name':'t','command':'/l/w/tool','args':['/l/w/x']}]}",
		"{'mcpServers':[{'name':'t','command':'/r/w/tool','args':['/l/w/x']}]}", ""},
	{FAR, "", "{'mcpServers':[{'command':'\\/l\\/w\\/tool'}]}",
		"{'mcpServers':[{'command':'/r/w/tool'}]}", ""},
	{FAR, "", "{'mcpServers':[{'name':'n','command':'/l/w/none'}," OK "]}",
		"{'mcpServers':[" OK "]}", "'n' | left out | '/r/w/none'"},
	/* a server's own PATH */
	{FAR, "", "{'mcpServers':[{'command':'gone','env':[{'name':'PATH','value':'/own'}]}]}",
		"{'mcpServers':[]}", "'' was left out"},
	/* nobody knows */
	{FAR, "", "{'mcpServers':[{'command':'who'}," GONE ",{'command':'who2'}]}",
		"{'mcpServers':[{'command':'who'},{'command':'who2'}]}",
		"'gone' was left out|it is not known whether"},
	/* servers of the profile */
	{HERE, "a", "{'mcpServers':[]}", "{'mcpServers':[" A "]}", ""},
	{HERE, "a", "{'mcpServers':[ ]}", "{'mcpServers':[" A " ]}", ""},
	{HERE, "ah", "{'mcpServers':[" GONE " ]}", "{'mcpServers':[" GONE "," A "," H " ]}", ""},
	{HERE, "ah", "{'mcpServers':null,'x':1}", "{'mcpServers':[" A "," H "],'x':1}", ""},
	{HERE, "a", "{'x':1}", "{'mcpServers':[" A "],'x':1}", ""},
	{HERE, "a", "{ }", "{'mcpServers':[" A "] }", ""},
	{HERE, "a", "[1]", NULL, ""},
	{HERE, "a", "{'mcpServers':{}}", NULL, ""},
	{HERE, "a", "{'mcpServers':[{'name':'a','x':1}, " GONE "]}",
		"{'mcpServers':[" A ", " GONE "]}", ""},
	{HERE, "ha", "{'mcpServers':[" GONE ",{'name':'\\u0061'},{'name':'a'},{'name':'A'}]}",
		"{'mcpServers':[" GONE "," A ",{'name':'A'}," H "]}", ""},
	{HERE, "b", "{'mcpServers':[{'name':'b'}]}",
		"{'mcpServers':[{'name':'b','command':'gone','args':[],"
		"'env':[{'name':'PATH','value':'/own'}]}]}",
		""},
	{FAR, "b", "{'mcpServers':[" OK ",{'name':'b','command':'ok'}]}", "{'mcpServers':[" OK "]}",
		"'b' | left out | 'gone'"},
	{FAR, "b", "{'mcpServers':[]}", NULL, "'b' was left out"},
	{FAR, "ah", "{'mcpServers':[" GONE "," LOCAL "]}", "{'mcpServers':[" A "," H "]}",
		"'gone'|'local'"},
	{FAR, "h", "{'mcpServers':[{'name':'h','type':'http','url':'http://localhost'}]}",
		"{'mcpServers':[" H "]}", ""},
	{FAR, "a", "{'mcpServers':[" GONE ",{'name':'a','command':'gone'}," LOCAL "]}",
		"{'mcpServers':[" A "]}", "'gone'|'local'"},
	/* the broker's own */
	{HERE, "o", "{'mcpServers':[]}", "{'mcpServers':[" OWN "]}", ""},
	{HERE, "o", "{'x':1}", "{'mcpServers':[" OWN "],'x':1}", ""},
	{FAR, "ao", "{'mcpServers':[" GONE "," OK "]}", "{'mcpServers':[" OK "," A "," OWN "]}",
		"'gone'"},
	{FAR, "o", "{'mcpServers':[{'name':'o','command':'ok'}," OK "]}",
		"{'mcpServers':[" OWN "," OK "]}", ""},
	/* an agent that takes no servers of type sse */
	{HERE, "s", "{'mcpServers':[]}", NULL, "'s' | left out | agent takes"},
	{HERE, "sa", "{'mcpServers':[{'name':'s'}," FAR_URL "]}",
		"{'mcpServers':[" FAR_URL "," A "]}", "'s' was left out"},
};

static const struct mcp_server own_server = {
	(char *)"o", MCP_STDIO, (char *)"gone", no_words, no_words, NULL, no_words, no_words};

/* The text with " for ', owned by the caller. */
static char *quoted(const char *text)
{
	char *copy = mem_strdup(text);
	for (char *at = copy; *at; at++) {
		*at = *at == '\'' ? '"' : *at;
	}
	return copy;
}

static void answer(struct mcp_commands *commands)
{
	for (size_t i = 0; i < commands->count; i++) {
		struct mcp_command *command = &commands->items[i];
		bool exists =
			strcmp(command->name, "ok") == 0 || strcmp(command->name, "/r/w/tool") == 0;
		command->state = strncmp(command->name, "who", 3) == 0 ? MCP_COMMAND_UNKNOWN
		                 : exists                              ? MCP_COMMAND_EXISTS
		                                                       : MCP_COMMAND_MISSING;
	}
}

static size_t pick_servers(const char *letters, struct mcp_server *servers)
{
	size_t count = 0;
	for (; *letters; letters++) {
		for (size_t i = 0; i < ARRAY_LENGTH(known_servers); i++) {
			if (known_servers[i].name[0] == *letters) {
				servers[count++] = known_servers[i];
			}
		}
	}
	return count;
}

/* Notices are separated by "|", the facts of one by " | ". */
static void check_notices(char *const *notices, const char *expected)
{
	char *words = quoted(expected);
	char *at = words;
	for (size_t i = 0; i < words_count(notices); i++) {
		char *end = at;
		while (*end && (*end != '|' || end == at || end[-1] == ' ')) {
			end++;
		}
		bool is_last = !*end;
		*end = '\0';
		if (!*at || !text_names(notices[i], at)) {
			fail_msg("\"%s\" is not \"%s\"", notices[i], at);
		}
		at = is_last ? end : end + 1;
	}
	assert_string_equal(at, "");
	free(words);
}

struct subject {
	struct json_places *places;
	struct json_check *check;
	struct path_map map;
	struct mcp_commands commands;
	struct splice splice;
	char **notices;
	char *text;
	struct message message;
};

static void subject_init(struct subject *subject, const char *params)
{
	struct error err;
	char *inner = quoted(params);
	size_t size = strlen(inner) + 64;
	*subject = (struct subject){.places = places_create()};
	subject->check = json_check_create(subject->places);
	subject->text = mem_alloc(size);
	snprintf(subject->text, size, "{\"jsonrpc\":\"2.0\",\"params\":%s}", inner);
	free(inner);
	path_map_init(&subject->map);
	assert_true(path_map_add(&subject->map, "/l/w", "/r/w"));
	mcp_commands_init(&subject->commands);
	splice_init(&subject->splice);
	subject->message = (struct message){
		.text = span_of(subject->text), .check = subject->check, .method = "session/new"};
	assert_true(json_check_feed(subject->check, subject->message.text, &err));
	assert_true(json_check_end(subject->check, &err));
}

static void subject_finish(struct subject *subject)
{
	splice_finish(&subject->splice);
	mcp_commands_finish(&subject->commands);
	path_map_finish(&subject->map);
	words_free(subject->notices);
	json_check_destroy(subject->check);
	json_places_destroy(subject->places);
	free(subject->text);
}

static bool reaches_port(const void *data, uint16_t port)
{
	return port == 3;
}

static struct mcp_context context_of(const struct subject *subject, enum place_of_work where)
{
	return (struct mcp_context){
		.map = &subject->map,
		.commands = &subject->commands,
		.has_other_files = where == FAR || where == FAR_ONLY_FILES,
		.has_other_loopback = where == FAR || where == FAR_ONLY_LOOPBACK || where == CELL,
		.reaches_port = where == CELL ? reaches_port : NULL,
		.reached_by = where == CELL ? "allow-host = localhost:" : NULL,
		.lacks_sse = true,
	};
}

/* The edited params, owned by the caller. */
static char *edited(struct subject *subject)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	assert_true(splice_seal(&subject->splice, subject->message.text.len, NULL));
	assert_true(splice_append(&subject->splice, subject->message.text, &out, NULL));
	const char *params = "{\"jsonrpc\":\"2.0\",\"params\":";
	struct span whole = buf_span(&out);
	char *text = mem_strndup(
		(struct span){whole.data + strlen(params), whole.len - strlen(params) - 1});
	buf_finish(&out);
	return text;
}

static void check_sample(const struct sample *sample)
{
	struct error err;
	struct subject subject;
	struct mcp_server servers[ARRAY_LENGTH(known_servers)];
	subject_init(&subject, sample->params);
	struct mcp_context context = context_of(&subject, sample->where);
	context.servers = servers;
	context.server_count = pick_servers(sample->servers, servers);
	context.own = strchr(sample->servers, 'o') ? &own_server : NULL;
	assert_true(mcp_servers_collect(&context, &subject.message, &subject.commands, &err));
	assert_true(context.has_other_files || subject.commands.count == 0);
	answer(&subject.commands);
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, &err));
	assert_true(sample->want || subject.splice.count == 0);
	char *want = quoted(sample->want ? sample->want : sample->params);
	char *got = edited(&subject);
	assert_string_equal(got, want);
	check_notices(subject.notices, sample->notices);
	struct json_doc *doc = json_doc_parse(span_of(got), &err);
	assert_non_null(doc);
	json_doc_destroy(doc);
	free(got);
	free(want);
	subject_finish(&subject);
}

static void test_each_server_is_kept_left_out_replaced_or_added(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		check_sample(&samples[i]);
	}
}

static void test_the_line_that_is_missing_is_named(void **state)
{
	struct subject subject;
	subject_init(&subject, "{'mcpServers':[" LOCAL_4 "]}");
	struct mcp_context context = context_of(&subject, CELL);
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, NULL));
	assert_int_equal(words_count(subject.notices), 1);
	assert_non_null(strstr(subject.notices[0], "allow-host = localhost:4"));
	subject_finish(&subject);
}

static void test_only_what_may_be_missing_is_asked_about(void **state)
{
	struct error err;
	struct subject subject;
	struct mcp_server servers[ARRAY_LENGTH(known_servers)];
	subject_init(&subject, "{'mcpServers':[{'name':'a','command':'replaced'}," GONE "," GONE
			       "," LOCAL ",{'command':'/l/w/tool'}]}");
	struct mcp_context context = context_of(&subject, FAR);
	context.servers = servers;
	context.server_count = pick_servers("abh", servers);
	assert_true(mcp_servers_concern(&context));
	assert_true(mcp_servers_collect(&context, &subject.message, &subject.commands, &err));
	static const char *const names[] = {"ok", "gone", "gone", "/r/w/tool"};
	static const char *const paths[] = {"", "/own", "", ""};
	assert_int_equal(subject.commands.count, ARRAY_LENGTH(names));
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		assert_string_equal(subject.commands.items[i].name, names[i]);
		assert_string_equal(subject.commands.items[i].path, paths[i]);
	}
	subject_finish(&subject);
}

static void test_where_nobody_was_asked_commands_are_kept(void **state)
{
	struct subject subject;
	subject_init(&subject, "{'mcpServers':[" GONE "]}");
	struct mcp_context context = context_of(&subject, FAR);
	context.commands = NULL;
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, NULL));
	assert_int_equal(subject.splice.count, 0);
	assert_null(subject.notices);
	subject_finish(&subject);
}

/* "[S,S,…]" of count times the server, in params; owned by the caller. */
static char *many(const char *server, size_t count)
{
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	assert_true(buf_append(&text, SPAN_LITERAL("{'mcpServers':["), NULL));
	for (size_t i = 0; i < count; i++) {
		assert_true(buf_append_format(&text, NULL, "%s%s", i ? "," : "", server));
	}
	assert_true(buf_append(&text, SPAN_LITERAL("]}"), NULL));
	char *params = mem_strndup(buf_span(&text));
	buf_finish(&text);
	return params;
}

static void test_many_notices_end_in_a_count(void **state)
{
	struct subject subject;
	char *params = many(LOCAL, MCP_NOTICES_MAX + 3);
	subject_init(&subject, params);
	struct mcp_context context = context_of(&subject, FAR);
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, NULL));
	assert_int_equal(words_count(subject.notices), MCP_NOTICES_MAX + 1);
	assert_names(subject.notices[MCP_NOTICES_MAX], "3 further | left out");
	subject_finish(&subject);
	free(params);
}

static void test_a_list_without_end_is_refused(void **state)
{
	struct error err;
	struct subject subject;
	char *params = many("7", JSON_DOC_TOKENS_MAX);
	subject_init(&subject, params);
	struct mcp_context context = context_of(&subject, FAR);
	assert_false(mcp_servers_collect(&context, &subject.message, &subject.commands, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_false(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_non_null(strstr(err.text, "session/new: mcpServers: "));
	context = context_of(&subject, HERE);
	assert_false(mcp_servers_concern(&context));
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, &err));
	subject_finish(&subject);
	free(params);
}

static void test_a_notice_shows_no_secret_of_a_url(void **state)
{
	struct subject subject;
	subject_init(&subject, "{'mcpServers':[{'name':'n','type':'http',"
			       "'url':'http://u:hunter2@localhost/m?k=hunter2'}]}");
	struct mcp_context context = context_of(&subject, FAR);
	assert_true(mcp_servers_edit(
		&context, &subject.message, &subject.splice, &subject.notices, NULL));
	assert_int_equal(words_count(subject.notices), 1);
	assert_non_null(strstr(subject.notices[0], "\"http://localhost/m\""));
	assert_null(strstr(subject.notices[0], "hunter2"));
	subject_finish(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_server_is_kept_left_out_replaced_or_added),
		cmocka_unit_test(test_the_line_that_is_missing_is_named),
		cmocka_unit_test(test_only_what_may_be_missing_is_asked_about),
		cmocka_unit_test(test_where_nobody_was_asked_commands_are_kept),
		cmocka_unit_test(test_many_notices_end_in_a_count),
		cmocka_unit_test(test_a_list_without_end_is_refused),
		cmocka_unit_test(test_a_notice_shows_no_secret_of_a_url),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
