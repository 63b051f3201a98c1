/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_login.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/markdown.h"
#include "base/text.h"
#include "broker/gate/grant_audit.h"
#include "broker/policy/audit.h"
#include "broker/session/notice.h"
#include "broker/session/question.h"
#include "broker/session/unanswered.h"
#include "providers/forward_ports.h"

enum { TARGET_SIZE = LOGIN_URL_SITE_SIZE + 32, TEXT_SIZE = 512 };

static const char rule[] = "login-callback = ask";

static const char options[] =
	"[{\"optionId\":\"open\",\"name\":\"Open the port for this login\","
	"\"kind\":\"allow_once\"},"
	"{\"optionId\":\"no\",\"name\":\"Refuse this port until this agent ends\","
	"\"kind\":\"reject_once\"},"
	"{\"optionId\":\"no-more\",\"name\":\"Refuse every login until this agent ends\","
	"\"kind\":\"reject_always\"}]";

/* A port about which the user is asked, that is open, or that the user has refused. */
struct callback {
	struct list link; // logins.callbacks
	struct logins *logins;
	uint16_t port;
	char site[LOGIN_URL_SITE_SIZE];
	char *session_id;        // owned; where the user was asked
	struct request *request; // the open question, or NULL
	bool is_open;
	bool was_answered;     // the browser has come back
	struct ev_timer timer; // while it is open: when to close it
};

/* A part of a peer. */
struct logins {
	struct peer *peer;
	struct list callbacks; // of struct callback
	size_t count;
	bool refuses_further;
	bool was_limit_told;
	int hints;       // lines of the log so far
	int questions;   // questions and notices that may be sent now
	double refilled; // ev_now when `questions` grew last
};

static void on_time(struct ev_loop *loop, struct ev_timer *timer, int events);

static struct ev_loop *loop_of(const struct logins *logins)
{
	return logins->peer->relay->config.loop;
}

static void forget(struct callback *callback)
{
	struct logins *logins = callback->logins;
	ev_timer_stop(loop_of(logins), &callback->timer);
	list_remove(&callback->link);
	logins->count--;
	free(callback->session_id);
	free(callback);
}

static void init(void *part)
{
	struct logins *logins = part;
	list_init(&logins->callbacks);
	logins->questions = GRANT_LOGIN_AT_ONCE;
}

static void finish(void *part, void *peer)
{
	struct logins *logins = part;
	LIST_FOR_EACH(callback, &logins->callbacks, struct callback, link) {
		forget(callback);
	}
}

static const struct part_type type = {
	.size = sizeof(struct logins), .init = init, .finish = finish};

static struct logins *logins_of(struct peer *peer)
{
	struct logins *logins = parts_get(&peer->parts, &type);
	logins->peer = peer;
	return logins;
}

static struct callback *find(const struct logins *logins, uint16_t port)
{
	LIST_FOR_EACH(callback, &logins->callbacks, struct callback, link) {
		if (callback->port == port) {
			return callback;
		}
	}
	return NULL;
}

static struct callback *add(
	struct logins *logins, const struct session *session, const struct login_url *login)
{
	struct callback *callback = mem_alloc_zero(sizeof(*callback));
	callback->logins = logins;
	callback->port = login->port;
	callback->session_id = mem_strdup(session->id);
	text_whole(callback->site, sizeof(callback->site), "%s", login->site);
	ev_init(&callback->timer, on_time);
	list_append(&logins->callbacks, &callback->link);
	logins->count++;
	return callback;
}

/* ---- the open port ---- */

static void tell(const struct callback *callback, const char *text)
{
	struct relay *relay = callback->logins->peer->relay;
	const struct session *session = session_find(&relay->sessions, callback->session_id);
	if (session && !relay->editor_has_ended) {
		notice_send(relay, session, text, true);
	} else {
		log_warning("%s: %s", callback->logins->peer->hop, text);
	}
}

static void close_port(const struct callback *callback, bool resets)
{
	struct sandbox *sandbox = agent_sandbox(callback->logins->peer->agent);
	if (!callback->is_open || !sandbox) {
		return;
	}
	if (resets) {
		sandbox_unforward(sandbox, callback->port);
	} else {
		sandbox_end_visits(sandbox, callback->port);
	}
}

static void start_timer(struct callback *callback, double seconds)
{
	ev_timer_stop(loop_of(callback->logins), &callback->timer);
	ev_timer_set(&callback->timer, seconds, 0.);
	ev_timer_start(loop_of(callback->logins), &callback->timer);
}

/* The login is over, or nobody has come back: the next login may use the port again. */
static void on_time(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct callback *callback = CONTAINER_OF(timer, struct callback, timer);
	const struct peer *peer = callback->logins->peer;
	char text[TEXT_SIZE];
	if (callback->was_answered) {
		log_info("%s: port %u was closed after a login", peer->hop, callback->port);
	} else {
		text_format(text, sizeof(text),
			"No login page came back to port %u within %d seconds "
			"(login-callback-timeout), so the port was closed. Start the login again",
			callback->port,
			peer->relay->config.profile->login_callback_timeout_ms / 1000);
		tell(callback, text);
	}
	close_port(callback, !callback->was_answered);
	forget(callback);
}

/*
 * The answer may send the browser to a further page of the same program, and a browser may ask for
 * an icon. So the port takes connections for a moment more.
 */
static void on_answered(void *data)
{
	struct callback *callback = data;
	callback->was_answered = true;
	start_timer(callback, GRANT_LOGIN_MORE_S);
}

static void say_failure(const struct callback *callback, const struct error *err)
{
	char text[TEXT_SIZE];
	if (err->reason && strcmp(err->reason, forward_taken_reason.name) == 0) {
		text_format(text, sizeof(text),
			"A program (perhaps this broker) uses port %u of this machine, to which "
			"the login page comes back (%s). End its use of the port, and start the "
			"login again. If the sandbox shares this machine's network, that program "
			"may be the agent's: then the login works as it is",
			callback->port, err->reason);
	} else {
		text_format(text, sizeof(text), "Port %u was not opened for the login: %s",
			callback->port, err->text);
	}
	tell(callback, text);
}

static bool open_port(struct callback *callback)
{
	struct error err;
	const struct peer *peer = callback->logins->peer;
	const struct forward_visit visit = {.on_answered = on_answered, .data = callback};
	if (!sandbox_forward_visit(agent_sandbox(peer->agent), callback->port, &visit, &err)) {
		say_failure(callback, &err);
		return false;
	}
	log_info("%s: port %u is open for a login", peer->hop, callback->port);
	callback->is_open = true;
	start_timer(callback, peer->relay->config.profile->login_callback_timeout_ms / 1000.);
	return true;
}

/* ---- the question ---- */

static void write_words(
	struct json_writer *writer, const struct request *request, const struct callback *callback)
{
	struct buf text;
	const struct profile *profile = request->peer->relay->config.profile;
	buf_init(&text, SIZE_MAX / 2);
	buf_add(&text, SPAN_LITERAL("The agent "));
	markdown_code(&text, span_of(profile->agent_name ? profile->agent_name : ""), TEXT_SIZE);
	bool ok = buf_append_format(&text, NULL, " (%s, profile ", request->peer->hop);
	markdown_code(&text, span_of(profile->name), TEXT_SIZE);
	buf_add(&text, SPAN_LITERAL(") or a program in its sandbox shows a login page at "));
	markdown_code(&text, span_of(callback->site), LOGIN_URL_SITE_SIZE);
	ok = ok &&
	     buf_append_format(&text, NULL,
		     ". After the login that page sends your browser to `localhost:%u`. A yes "
		     "opens this port of your machine, for programs of this machine alone, and "
		     "leads it to the same port in the sandbox. It is closed after the login, or "
		     "after %d seconds.\n\nSay yes only if you want to log in there now. If the "
		     "browser could not open the page because your answer came later, load the "
		     "page again.",
		     callback->port, profile->login_callback_timeout_ms / 1000);
	question_write_content(writer, ok ? buf_span(&text) : SPAN_LITERAL(""));
	buf_finish(&text);
}

static bool write_question(
	struct request *request, const struct callback *callback, struct error *err)
{
	static const struct question_reason reason = {.rule = rule};
	struct json_writer writer;
	char what[TEXT_SIZE];
	text_format(what, sizeof(what), "Open port %u of this machine for a login", callback->port);
	question_begin(request, &writer);
	json_write_member(&writer, "sessionId", request->session_id);
	json_write_key(&writer, "toolCall");
	json_write_object(&writer);
	question_write_head(&writer, request, &reason, "other", span_of(what));
	write_words(&writer, request, callback);
	json_write_object_end(&writer);
	return question_end(request, &writer, err);
}

static struct callback *find_by_request(const struct request *request)
{
	const struct logins *logins = parts_find(&request->peer->parts, &type);
	assert(logins);
	LIST_FOR_EACH(callback, &logins->callbacks, struct callback, link) {
		if (callback->request == request) {
			return callback;
		}
	}
	return NULL;
}

static void audit(const struct callback *callback, const struct grant_answer *answer)
{
	char target[TARGET_SIZE];
	struct relay *relay = callback->logins->peer->relay;
	text_format(target, sizeof(target), "localhost:%u for a login at %s", callback->port,
		callback->site);
	usage_note_decision(relay, session_find(&relay->sessions, callback->session_id),
		answer->decision, answer->by);
	audit_write(relay->config.audit, &(struct audit_line){
						 .session = callback->session_id,
						 .operation = "login/callback",
						 .subject = target,
						 .rule = rule,
						 .decision = answer->decision,
						 .by = answer->by,
					 });
}

/* A refusal holds only if the user has chosen it. */
static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct callback *callback = find_by_request(request);
	assert(callback); // a question ends together with its port
	struct grant_answer decided = grant_settle(relay, request, answer, failure);
	bool is_yes = strcmp(decided.option, "open") == 0;
	bool is_no = !is_yes && decided.option[0];
	callback->request = NULL;
	audit(callback, &decided);
	callback->logins->refuses_further =
		callback->logins->refuses_further || strcmp(decided.option, "no-more") == 0;
	bool opened = is_yes && open_port(callback);
	question_close(relay, request, opened);
	if (!opened && !is_no) {
		forget(callback);
	}
}

static bool send_question(struct callback *callback, struct error *err)
{
	struct peer *peer = callback->logins->peer;
	struct relay *relay = peer->relay;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_answer;
	request->session_id = mem_strdup(callback->session_id);
	question_of(request)->options = options;
	if (!pending_add(&relay->asked_editor, &request->pending, (struct span){NULL, 0}, err)) {
		request_destroy(request);
		return false;
	}
	if (!write_question(request, callback, err)) {
		pending_remove(&relay->asked_editor, &request->pending);
		request_destroy(request);
		return false;
	}
	callback->request = request;
	relay_send_editor(relay, buf_span(&relay->scratch));
	relay_watch_question(request);
	return true;
}

/* ---- addresses ---- */

bool grant_login_is_watched(const struct peer *peer)
{
	const struct relay *relay = peer->relay;
	const struct profile *profile = relay->config.profile;
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	return profile->asks_login_callback && sandbox && peer->is_ready && !peer->is_down &&
	       !relay->is_ending && !relay->editor_has_ended &&
	       !sandbox_capabilities(sandbox)->shares_loopback &&
	       policy_decide_unknown(profile->policy).decision != POLICY_REJECT_ONCE;
}

/* Whether a line of the profile leads the port there already. */
static bool is_led(const struct peer *peer, uint16_t port)
{
	struct forward_port ports[FORWARDS_MAX];
	struct error ignored; // the profile was checked
	size_t count = 0;
	(void)!forward_ports_read(&peer->relay->config.profile->settings, ports, &count, &ignored);
	for (size_t i = 0; i < count; i++) {
		if (ports[i].here == port && ports[i].inside == port) {
			return true;
		}
	}
	return false;
}

/* False: the agent has shown too many. */
static bool take_question(struct logins *logins)
{
	double now = ev_now(loop_of(logins));
	int more = (int)((now - logins->refilled) / GRANT_LOGIN_EVERY_S);
	if (logins->questions == GRANT_LOGIN_AT_ONCE) {
		logins->refilled = now;
	} else if (more > 0) {
		logins->refilled = now;
		logins->questions = logins->questions + more < GRANT_LOGIN_AT_ONCE
		                            ? logins->questions + more
		                            : GRANT_LOGIN_AT_ONCE;
	}
	if (logins->questions == 0 || logins->count >= GRANT_LOGIN_PORTS_MAX) {
		if (!logins->was_limit_told) {
			log_warning("%s: it shows many login pages: you are not asked about the "
				    "ports of all of them",
				logins->peer->hop);
		}
		logins->was_limit_told = true;
		return false;
	}
	logins->questions--;
	return true;
}

/* For the log: an editor that knows no session cannot be asked in one. */
static void hint(struct logins *logins, const struct login_url *login)
{
	if (logins->hints < GRANT_LOGIN_HINTS_MAX) {
		logins->hints++;
		log_warning("%s: the page of its login comes back to port %u of this machine, "
			    "which does not lead to the agent. You cannot be asked about it "
			    "before there is a session. forward = %u in [profile \"%s\"] opens it "
			    "at the agent's next start",
			logins->peer->hop, login->port, login->port,
			logins->peer->relay->config.profile->name);
	}
}

/* No yes could open the port. */
static void say_impossible(const struct callback *callback)
{
	char text[TEXT_SIZE];
	const struct peer *peer = callback->logins->peer;
	if (sandbox_capabilities(agent_sandbox(peer->agent))->is_near) {
		text_format(text, sizeof(text),
			"A login page comes back to port %u of this machine, which does not lead "
			"to the agent. The cell of a confined agent leads only the ports of its "
			"profile: forward = %u in [profile \"%s\"] opens this one at the agent's "
			"next start",
			callback->port, callback->port, peer->relay->config.profile->name);
	} else {
		text_format(text, sizeof(text),
			"A login page comes back to port %u of this machine, which does not lead "
			"to the agent, and the broker cannot lead it there: its own program does "
			"not run in the sandbox. Log in there in another way",
			callback->port);
	}
	tell(callback, text);
}

void grant_login_offer(
	struct peer *peer, const struct session *session, const struct login_url *login)
{
	struct error err;
	if (!grant_login_is_watched(peer)) {
		return;
	}
	struct logins *logins = logins_of(peer);
	if (logins->refuses_further || find(logins, login->port) || is_led(peer, login->port)) {
		return;
	}
	session = session ? session : session_choose(&peer->relay->sessions, peer);
	if (!session) {
		hint(logins, login);
		return;
	}
	if (!take_question(logins)) {
		return;
	}
	struct callback *callback = add(logins, session, login);
	if (!sandbox_can_forward(agent_sandbox(peer->agent))) {
		say_impossible(callback);
	} else if (!send_question(callback, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "session %s: cannot ask about a login: %s",
			session->id, err.text);
		forget(callback);
	}
}

/* ---- the end ---- */

static const struct error cancelled = {.code = ERROR_DENIED,
	.reason = "PERMISSION_DENIED",
	.stage = "session",
	.text = "the session was cancelled before anyone answered"};

static void withdraw(struct callback *callback)
{
	struct relay *relay = callback->logins->peer->relay;
	struct request *request = callback->request;
	struct grant_answer no = grant_settle(relay, request, NULL, &cancelled);
	audit(callback, &no);
	pending_remove(&relay->asked_editor, &request->pending);
	relay_withdraw_question(relay, request);
	question_close(relay, request, false);
	request_destroy(request);
}

static void cancel(struct logins *logins, const char *session_id)
{
	LIST_FOR_EACH(callback, &logins->callbacks, struct callback, link) {
		if (strcmp(callback->session_id, session_id) != 0) {
			continue;
		}
		if (callback->request) {
			withdraw(callback);
			forget(callback);
		} else if (callback->is_open) {
			close_port(callback, true);
			forget(callback);
		}
	}
}

void grant_login_cancel(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		struct logins *logins = parts_find(&peer->parts, &type);
		if (logins) {
			cancel(logins, session_id);
		}
	}
}

void grant_login_drop(struct peer *peer)
{
	struct logins *logins = parts_find(&peer->parts, &type);
	if (!logins) {
		return;
	}
	LIST_FOR_EACH(callback, &logins->callbacks, struct callback, link) {
		close_port(callback, true);
		forget(callback);
	}
	logins->refuses_further = logins->was_limit_told = false; // it may be restarted
}
