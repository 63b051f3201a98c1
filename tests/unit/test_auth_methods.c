/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json_doc.h"
#include "broker/agent/login_note.h"
#include "broker/relay/auth_methods.h"

/* The logins that an agent offers, and those of them that reach the editor. */

static char state_folder[64];

static int set_up_state(void **state)
{
	snprintf(state_folder, sizeof(state_folder), "/tmp/test-auth-methods-XXXXXX");
	return mkdtemp(state_folder) ? 0 : -1;
}

static int tear_down_state(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", state_folder);
	return system(command); // NOLINT(cert-env33-c): of the test's own
}

/* The variables that the profile passes on to an agent elsewhere. */
static char handed_on[] = "API_KEY";
static char *secret_env[] = {handed_on, NULL};

/* The broker serves the files and terminals of a confined agent. */
static const char served_request[] =
	"'method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'fs':{"
	"'readTextFile':true,'writeTextFile':true},'terminal':true}}";

/* Whether an agent elsewhere can have a terminal there. */
static bool has_terminals;

/* The raw authMethods that the editor gets, owned by the caller; NULL: an error. */
static char *heard(const char *said, bool is_far)
{
	void *state = NULL;
	set_up(&state);
	struct fixture *fixture = state;
	fixture->state_folder = state_folder;
	char **no_secrets = profile_of(fixture)->secret_env;
	profile_of(fixture)->secret_env = secret_env;
	fixture->stage.capabilities.confined = is_far;
	fixture->stage.capabilities.has_terminals = is_far && has_terminals;
	begin(fixture);
	editor_says(fixture, "'id':'i',%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", is_far ? served_request : initialize_request);
	agent_says(fixture, 0, "'id':0,'result':{'protocolVersion':1,'authMethods':%s}", said);
	char *line = editor_line(fixture);
	struct json_doc *doc = json_doc_parse(span_of(line), NULL);
	json_node methods = json_path(doc, 0, "result.authMethods");
	char *text = methods == JSON_NODE_NONE ? NULL : mem_strndup(json_raw(doc, methods));
	json_doc_destroy(doc);
	free(line);
	profile_of(fixture)->secret_env = no_secrets;
	tear_down(&state);
	return text;
}

static void quote(char *text)
{
	while ((text = strchr(text, '\'')) != NULL) {
		*text = '"';
	}
}

/* In `expected`, 32 dots stand for any token. */
static void assert_heard(const char *said, const char *expected, bool is_far)
{
	char *text = heard(said, is_far);
	char *pattern = mem_strdup(expected);
	assert_non_null(text);
	quote(pattern);
	bool is_same = strlen(text) == strlen(pattern);
	for (size_t i = 0; is_same && pattern[i]; i++) {
		is_same = pattern[i] == '.' || pattern[i] == text[i];
	}
	if (!is_same) {
		fail_msg("%s: heard %s", said, text);
	}
	free(pattern);
	free(text);
}

#define DOTS "................................"
#define LOGIN_FIELD "\"ACP_BROKER_LOGIN\":\""
#define MARK "'args':[],'env':{'ACP_BROKER_LOGIN':'" DOTS "'}"

/* ---- an agent on this machine ---- */

static void test_a_terminal_login_has_a_token_and_nothing_else_of_the_agents(void **state)
{
	assert_heard(
		"[{'id':'t','type':'terminal'}]", "[{" MARK ",'id':'t','type':'terminal'}]", false);
	assert_heard("[{'type':'terminal','args':['--login','x'],'env':null}]",
		"[{" MARK ",'type':'terminal'}]", false);
	assert_heard("[{'args':['--profile','local','--','sh'],'env':{'ACP_BROKER_LOGIN':'0',"
		     "'LD_PRELOAD':'./x.so'},'_meta':{'x':1},'type':'terminal'}]",
		"[{" MARK ",'_meta':{'x':1},'type':'terminal'}]", false);
	assert_heard("[{'id':'a'},{'ty\\u0070e':'terminal','ar\\u0067s':['x']},{'id':'b'}]",
		"[{'id':'a'},{" MARK ",'ty\\u0070e':'terminal'},{'id':'b'}]", false);
}

static void test_the_token_leads_to_the_args_and_the_env(void **state)
{
	char *text = heard("[{'type':'terminal','args':['--login','a\\u0062'],"
			   "'env':{'A':'1','B':''}}]",
		false);
	const char *at = strstr(text, LOGIN_FIELD);
	assert_non_null(at);
	char token[LOGIN_TOKEN_SIZE] = "";
	memcpy(token, at + strlen(LOGIN_FIELD), LOGIN_TOKEN_SIZE - 1);
	struct error err;
	struct login_note *note = login_note_open(state_folder, token, &err);
	assert_non_null(note);
	assert_string_equal(note->args[0], "--login");
	assert_string_equal(note->args[1], "ab");
	assert_null(note->args[2]);
	assert_string_equal(note->env[0], "A=1");
	assert_string_equal(note->env[1], "B=");
	assert_null(note->env[2]);
	login_note_close(note);
	free(text);
}

/* ACP's proposal and its version 2 have a list of variables, version 1 an object. */
static void test_the_variables_may_be_a_list(void **state)
{
	struct error err;
	char *text = heard("[{'id':'t','type':'terminal','env':[{'name':'A','value':'1'},"
			   "{'value':'','name':'B','_meta':null}]}]",
		false);
	char *token = mem_strdup(strstr(text, LOGIN_FIELD) + strlen(LOGIN_FIELD));
	token[LOGIN_TOKEN_SIZE - 1] = '\0';
	struct login_note *note = login_note_open(state_folder, token, &err);
	assert_non_null(note);
	assert_string_equal(note->env[0], "A=1");
	assert_string_equal(note->env[1], "B=");
	assert_null(note->env[2]);
	login_note_close(note);
	free(token);
	free(text);
	assert_heard("[{'type':'terminal','env':[]}]", "[{" MARK ",'type':'terminal'}]", false);
}

static void test_a_login_that_cannot_be_kept_is_not_offered(void **state)
{
	static const char *const methods[] = {
		"{'type':'terminal','args':['a'],'args':['b']}",
		"{'type':'agent','type':'terminal'}",
		"{'type':'terminal','Args':['b']}",
		"{'Type':'terminal','args':['--profile','local','--','sh'],'env':{'A':'1'}}",
		"{'TYPE':'Terminal'}",
		"{'type':'agent','tYpe':'terminal'}",
		"{'type':'terminal','env':{'A':'1','A':'2'}}",
		"{'type':'terminal','args':'x'}",
		"{'type':'terminal','args':[7]}",
		"{'type':'terminal','args':['a\\u0000']}",
		"{'type':'terminal','env':'odd'}",
		"{'type':'terminal','env':{'A':1}}",
		"{'type':'terminal','env':{'A=B':'1'}}",
		"{'type':'terminal','env':{'':'1'}}",
		"{'type':'terminal','env':['A=1']}",
		"{'type':'terminal','env':[{'name':'A'}]}",
		"{'type':'terminal','env':[{'name':'A=B','value':'1'}]}",
		"{'type':'terminal','env':[{'name':'A','value':'1'},{'name':'A','value':'2'}]}",
		"{'type':'terminal','env':[{'name':'A','value':'1','value':'2'}]}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		char said[256];
		snprintf(said, sizeof(said), "[{'id':'a'},%s,{'id':'b'}]", methods[i]);
		assert_heard(said, "[{'id':'a'},{'id':'b'}]", false);
	}
}

static void test_terminal_logins_are_bounded(void **state)
{
	char said[1024] = "[7";
	char expected[4096] = "[7";
	size_t said_len = strlen(said);
	size_t expected_len = strlen(expected);
	for (int i = 0; i < AUTH_METHODS_TERMINAL_MAX + 3; i++) {
		said_len += (size_t)snprintf(
			said + said_len, sizeof(said) - said_len, "%s", ",{'type':'terminal'}");
	}
	for (int i = 0; i < AUTH_METHODS_TERMINAL_MAX; i++) {
		expected_len += (size_t)snprintf(expected + expected_len,
			sizeof(expected) - expected_len, "%s", ",{" MARK ",'type':'terminal'}");
	}
	snprintf(said + said_len, sizeof(said) - said_len, "]");
	snprintf(expected + expected_len, sizeof(expected) - expected_len, "]");
	assert_heard(said, expected, false);
}

static void test_other_logins_are_left_alone(void **state)
{
	static const char *const methods[] = {"[]", "null", "{}", "[{'id':'a'}]",
		"[ {'id':'a', 'id':'b','TYPE':'x'} ]",
		"[{'id':'a','_meta':{'terminal-auth':{'command':'x','args':[]}}}]",
		"[{'id':'a','type':'agent','env':{}},{'type':'env_var'},{'type':null},7]"};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		assert_heard(methods[i], methods[i], false);
	}
}

/* ---- an agent elsewhere ---- */

static void test_no_login_of_an_agent_elsewhere_runs_here(void **state)
{
	static const char *const methods[] = {
		"{'id':'t','type':'terminal'}",
		("{'type':'terminal','args':['--profile','local','--','sh','-c','x'],"
		 "'env':{'ACP_BROKER_LOGIN':'0'}}"),
		"{'type':'agent','type':'terminal'}",
		"{'type':'terminal','type':'agent'}",
		"{'typ\\u0065':'termin\\u0061l'}",
		"{'type':'TERMINAL'}",
		"{'Type':'terminal'}",
		"{'id':'x','id':'y'}",
		"{'id':'x','Args':[]}",
		"[{'type':'terminal'}]",
		"7",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		char said[256];
		snprintf(said, sizeof(said), "[{'id':'a'},%s,{'id':'b'}]", methods[i]);
		assert_heard(said, "[{'id':'a'},{'id':'b'}]", true);
	}
	assert_heard("[{'type':'terminal'}]", "[]", true);
}

static void test_a_login_runs_where_the_agent_is(void **state)
{
	has_terminals = true;
	assert_heard(
		"[{'id':'t','type':'terminal','args':['--login'],'env':{'LD_PRELOAD':'./x.so'}}]",
		"[{" MARK ",'id':'t','type':'terminal'}]", true);
	assert_heard("[{'_meta':{'a':1,'terminal-auth':{'command':'sh','args':['-c','x']},'b':2},"
		     "'type':'terminal'}]",
		"[{" MARK ",'_meta':{'a':1,'b':2},'type':'terminal'}]", true);
	assert_heard("[{'type':'terminal','_meta':{'terminal\\u002dauth':{'command':'sh'}}}]",
		"[{" MARK ",'type':'terminal','_meta':{}}]", true);
	assert_heard("[{'type':'terminal','_meta':null}]",
		"[{" MARK ",'type':'terminal','_meta':null}]", true);
	static const char *const methods[] = {
		"{'type':'terminal','Type':'agent'}",
		"{'type':'terminal','_META':{'terminal-auth':{'command':'sh'}}}",
		"{'type':'terminal','_meta':{'Terminal-Auth':{'command':'sh'}}}",
		"{'type':'terminal','_meta':{},'_meta':{'terminal-auth':{'command':'sh'}}}",
		"{'type':'terminal','args':7}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		char said[256];
		snprintf(said, sizeof(said), "[{'id':'a'},%s]", methods[i]);
		assert_heard(said, "[{'id':'a'}]", true);
	}
	has_terminals = false;
}

static void test_no_command_of_an_agent_elsewhere_runs_here(void **state)
{
	assert_heard("[{'id':'a','_meta':{'terminal-auth':{'command':'sh','args':['-c','x']}},"
		     "'name':'A'}]",
		"[{'id':'a','_meta':{},'name':'A'}]", true);
	assert_heard("[{'_meta':{'a':1,'terminal\\u002dauth':{'command':'sh'},'b':[2]},'id':'a'}]",
		"[{'_meta':{'a':1,'b':[2]},'id':'a'}]", true);
	assert_heard("[{'id':'a','_meta':{'Terminal-Auth':{'command':'sh'}}},{'id':'b'}]",
		"[{'id':'b'}]", true);
	assert_heard("[{'id':'a','_META':{'terminal-auth':{'command':'sh'}}}]", "[]", true);
	assert_heard("[{'id':'a','_meta':{'x':{'y':1}},'type':'agent'}]",
		"[{'id':'a','_meta':{'x':{'y':1}},'type':'agent'}]", true);
}

static void test_an_agent_elsewhere_names_no_variable_of_the_brokers(void **state)
{
	static const char *const methods[] = {
		"{'type':'env_var','vars':[{'name':'LD_PRELOAD','label':'Path of the licence'}]}",
		"{'type':'env_var','vars':[{'name':'API_KEY'},{'name':'PATH'}]}",
		"{'type':'env_var','vars':[{'name':'api_key'}]}",
		"{'type':'env_var','vars':[{'label':'x'}]}",
		"{'type':'env_var','vars':[]}",
		"{'type':'env_var','vars':['API_KEY']}",
		"{'type':'env_var','vars':{'name':'API_KEY'}}",
		"{'type':'env_var','vars':[{'name':'API_KEY','Name':'PATH'}]}",
		"{'type':'env_var','vars':[{'name':'API_KEY'}],'Vars':[{'name':'PATH'}]}",
		"{'type':'env_var','varName':'PATH'}",
		"{'type':'env_var','varName':'PATH','vars':[{'name':'API_KEY'}]}",
		"{'type':'env_var','varName':'API_KEY','vars':[{'name':'PATH'}]}",
		"{'type':'env_var'}",
		"{'type':'ENV_VAR','vars':[{'name':'PATH'}]}",
		"{'typ\\u0065':'env\\u005fvar','vars':[{'name':'PATH'}]}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		char said[256];
		snprintf(said, sizeof(said), "[{'id':'a'},%s,{'id':'b'}]", methods[i]);
		assert_heard(said, "[{'id':'a'},{'id':'b'}]", true);
	}
	const char *here = "[{'type':'env_var','vars':[{'name':'LD_PRELOAD'}]}]";
	assert_heard(here, here, false);
}

static void test_it_names_those_that_the_profile_hands_on(void **state)
{
	static const char *const methods[] = {
		"[{'type':'env_var','vars':[{'name':'API_KEY','label':'x','secret':true}]}]",
		"[{'type':'env_var','varName':'API_KEY','link':'l'}]",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		assert_heard(methods[i], methods[i], true);
	}
}

static void test_an_answer_that_editors_may_read_otherwise_is_refused(void **state)
{
	assert_null(heard("[],'AuthMethods':[{'type':'terminal'}]", true));
	char *text = heard("[],'AuthMethods':[{'type':'terminal'}]", false);
	assert_string_equal(text, "[]");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_terminal_login_has_a_token_and_nothing_else_of_the_agents),
		cmocka_unit_test(test_the_token_leads_to_the_args_and_the_env),
		cmocka_unit_test(test_the_variables_may_be_a_list),
		cmocka_unit_test(test_a_login_that_cannot_be_kept_is_not_offered),
		cmocka_unit_test(test_terminal_logins_are_bounded),
		cmocka_unit_test(test_other_logins_are_left_alone),
		cmocka_unit_test(test_no_login_of_an_agent_elsewhere_runs_here),
		cmocka_unit_test(test_a_login_runs_where_the_agent_is),
		cmocka_unit_test(test_no_command_of_an_agent_elsewhere_runs_here),
		cmocka_unit_test(test_an_agent_elsewhere_names_no_variable_of_the_brokers),
		cmocka_unit_test(test_it_names_those_that_the_profile_hands_on),
		cmocka_unit_test(test_an_answer_that_editors_may_read_otherwise_is_refused),
	};
	return cmocka_run_group_tests(tests, set_up_state, tear_down_state);
}
