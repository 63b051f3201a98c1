/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_hosts_question.h"

#include <stdint.h>
#include <string.h>

#include "base/markdown.h"

enum { TEXT_MAX = 512 }; // bytes of a name or a command line that are shown

const char grant_hosts_rule[] = "network = ask";

#define YES                                                                                        \
	"[{\"optionId\":\"once\",\"name\":\"Allow the connections that wait\","                    \
	"\"kind\":\"allow_once\"},"                                                                \
	"{\"optionId\":\"session\",\"name\":\"Allow until this agent ends\","                      \
	"\"kind\":\"allow_always\"},"
#define NO                                                                                         \
	"{\"optionId\":\"no\",\"name\":\"Refuse\",\"kind\":\"reject_once\"},"                      \
	"{\"optionId\":\"no-session\",\"name\":\"Refuse this host until this agent ends\","        \
	"\"kind\":\"reject_always\"},"                                                             \
	"{\"optionId\":\"no-more\",\"name\":\"Refuse every further host until this agent ends\","  \
	"\"kind\":\"reject_always\"}]"

const char grant_hosts_options[] = YES NO;
const char grant_hosts_options_kept[] =
	YES "{\"optionId\":\"always\",\"name\":\"Always allow in this profile\","
	    "\"kind\":\"allow_always\"}," NO;

static const char *const option_ids[] = {
	[GRANT_HOSTS_NO] = "no",
	[GRANT_HOSTS_NO_SESSION] = "no-session",
	[GRANT_HOSTS_NO_MORE] = "no-more",
	[GRANT_HOSTS_YES] = "once",
	[GRANT_HOSTS_YES_SESSION] = "session",
	[GRANT_HOSTS_YES_ALWAYS] = "always",
};

const char *const grant_hosts_rules[] = {
	[GRANT_HOSTS_NO] = "network = ask: no",
	[GRANT_HOSTS_NO_SESSION] = "network = ask: no, until the agent ends",
	[GRANT_HOSTS_NO_MORE] = "network = ask: no further host, until the agent ends",
	[GRANT_HOSTS_YES] = "network = ask: yes, once",
	[GRANT_HOSTS_YES_SESSION] = "network = ask: yes, until the agent ends",
	[GRANT_HOSTS_YES_ALWAYS] = "network = ask: yes, always",
};

/* The ids are the broker's own: `answer` names one that was offered, or none. */
enum grant_hosts_answer grant_hosts_answer_of(const struct grant_answer *answer)
{
	for (size_t i = 0; i < ARRAY_LENGTH(option_ids); i++) {
		if (strcmp(answer->option, option_ids[i]) == 0) {
			return (enum grant_hosts_answer)i;
		}
	}
	return GRANT_HOSTS_NO;
}

static void append_code(struct buf *text, const char *foreign)
{
	markdown_code(text, span_of(foreign), TEXT_MAX);
}

static void write_words(
	struct json_writer *writer, const struct request *request, const char *program)
{
	struct buf text;
	const struct profile *profile = request->peer->relay->config.profile;
	buf_init(&text, SIZE_MAX / 2);
	buf_add(&text, SPAN_LITERAL("A program in the sandbox of "));
	append_code(&text, profile->agent_name ? profile->agent_name : "");
	bool ok = buf_append_format(&text, NULL, " (%s, profile ", request->peer->hop);
	append_code(&text, profile->name);
	buf_add(&text,
		SPAN_LITERAL(") wants this connection, and waits. The agent chooses the name of "
			     "the host. Nobody has looked it up yet, because the name itself can "
			     "carry data to whoever owns it. A yes holds for everything that "
			     "runs in this sandbox.\n\n"));
	if (program[0]) {
		buf_add(&text, SPAN_LITERAL("Program, as /proc says: "));
		append_code(&text, program);
		buf_add(&text, SPAN_LITERAL(". A program can forge this."));
	} else {
		buf_add(&text, SPAN_LITERAL("/proc does not say which program."));
	}
	question_write_content(writer, ok ? buf_span(&text) : SPAN_LITERAL(""));
	buf_finish(&text);
}

bool grant_hosts_question_write(struct request *request, const char *host, uint16_t port,
	const char *program, struct error *err)
{
	static const struct question_reason reason = {.rule = grant_hosts_rule};
	struct json_writer writer;
	struct buf what;
	buf_init(&what, SIZE_MAX / 2);
	buf_add(&what, SPAN_LITERAL("Connect to "));
	append_code(&what, host);
	bool ok = buf_append_format(&what, NULL, ", port %u", port);
	question_begin(request, &writer);
	json_write_member(&writer, "sessionId", request->session_id);
	json_write_key(&writer, "toolCall");
	json_write_object(&writer);
	question_write_head(&writer, request, &reason, "fetch", buf_span(&what));
	write_words(&writer, request, program);
	json_write_object_end(&writer);
	buf_finish(&what);
	return question_end(request, &writer, err) && ok;
}
