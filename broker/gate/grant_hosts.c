/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_hosts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_hosts_question.h"
#include "broker/policy/kept_hosts.h"
#include "broker/session/unanswered.h"
#include "providers/network.h"

enum { TARGET_SIZE = 300 }; // "HOST:PORT"

/* A host and port for which programs wait. */
struct asked_host {
	struct list link; // hosts.asked
	char *host;       // owned
	uint16_t port;
	uint32_t *ids; // owned; ids of the wishes, oldest first
	size_t count;
	uint32_t looked_for;     // the wish whose program is being searched for; 0: none
	struct request *request; // the question; NULL: not asked yet
};

/* An answer of the user. */
struct host_answer {
	struct list link; // hosts.answers, oldest first
	char *host;       // owned
	uint16_t port;    // 0: every port
	enum grant_hosts_answer answer;
};

/* A part of a peer. */
struct hosts {
	struct peer *peer;
	struct list asked; // of struct asked_host, oldest first
	size_t asked_count;
	struct list answers; // of struct host_answer
	size_t answer_count;
	bool refuses_further;   // GRANT_HOSTS_NO_MORE
	struct kept_hosts kept; // for all profiles
	bool was_kept_told;     // we have reported that we cannot read them
	char *session_id;       // owned; session of the last prompt; or NULL
	int questions;          // questions that may be asked now
	struct ev_timer refill; // runs while there are fewer than GRANT_HOSTS_AT_ONCE
};

static void on_refill(struct ev_loop *loop, struct ev_timer *timer, int events);

static void asked_destroy(struct hosts *hosts, struct asked_host *asked)
{
	list_remove(&asked->link);
	hosts->asked_count--;
	free(asked->host);
	free(asked->ids);
	free(asked);
}

static void answer_destroy(struct hosts *hosts, struct host_answer *answer)
{
	list_remove(&answer->link);
	hosts->answer_count--;
	free(answer->host);
	free(answer);
}

static void init(void *part)
{
	struct hosts *hosts = part;
	list_init(&hosts->asked);
	list_init(&hosts->answers);
	hosts->questions = GRANT_HOSTS_AT_ONCE;
	ev_timer_init(&hosts->refill, on_refill, 0., GRANT_HOSTS_EVERY_MS / 1000.);
}

static void finish(void *part, void *peer)
{
	struct hosts *hosts = part;
	ev_timer_stop(((struct peer *)peer)->relay->config.loop, &hosts->refill);
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		asked_destroy(hosts, asked);
	}
	LIST_FOR_EACH(answer, &hosts->answers, struct host_answer, link) {
		answer_destroy(hosts, answer);
	}
	kept_hosts_finish(&hosts->kept);
	free(hosts->session_id);
}

static const struct part_type type = {.size = sizeof(struct hosts), .init = init, .finish = finish};

static struct hosts *hosts_of(struct peer *peer)
{
	struct hosts *hosts = parts_get(&peer->parts, &type);
	hosts->peer = peer;
	return hosts;
}

static struct hosts *hosts_find(const struct peer *peer)
{
	return parts_find(&peer->parts, &type);
}

/* ---- answering programs ---- */

/* `why` is the reason if the user was not asked; NULL: the user has answered. */
static void decide(
	struct hosts *hosts, uint32_t id, enum grant_hosts_answer answer, const char *why)
{
	const struct sandbox_verdict verdict = {.is_allowed = answer >= GRANT_HOSTS_YES,
		.rule = why ? grant_hosts_rule : grant_hosts_rules[answer],
		.why = why};
	struct sandbox *sandbox = agent_sandbox(hosts->peer->agent);
	if (sandbox) {
		sandbox_decide(sandbox, id, &verdict);
	}
}

/* Answers all programs that wait for it. The caller ends the question, if there is one. */
static void decide_all(struct hosts *hosts, struct asked_host *asked,
	enum grant_hosts_answer answer, const char *why)
{
	for (size_t i = 0; i < asked->count; i++) {
		decide(hosts, asked->ids[i], answer, why);
	}
	asked_destroy(hosts, asked);
}

static void withdraw(struct hosts *hosts, struct asked_host *asked)
{
	struct relay *relay = hosts->peer->relay;
	struct request *request = asked->request;
	if (request) {
		pending_remove(&relay->asked_editor, &request->pending);
		relay_withdraw_question(relay, request);
		question_close(relay, request, false);
		request_destroy(request);
		asked->request = NULL;
	}
}

/* ---- the user's answers ---- */

/* The last answer counts: a no for every port may have come after a yes for one port. */
static struct host_answer *find_answer(struct hosts *hosts, const char *host, uint16_t port)
{
	struct host_answer *last = NULL;
	LIST_FOR_EACH(answer, &hosts->answers, struct host_answer, link) {
		bool is_of_it = strcmp(answer->host, host) == 0 &&
		                (answer->port == 0 || answer->port == port);
		last = is_of_it ? answer : last;
	}
	return last;
}

static void remember(
	struct hosts *hosts, const struct asked_host *asked, enum grant_hosts_answer said)
{
	struct host_answer *answer = find_answer(hosts, asked->host, asked->port);
	if (answer) {
		answer_destroy(hosts, answer);
	}
	if (hosts->answer_count >= GRANT_HOSTS_ANSWERS_MAX) {
		answer_destroy(hosts, LIST_FIRST(&hosts->answers, struct host_answer, link));
	}
	answer = mem_alloc_zero(sizeof(*answer));
	answer->host = mem_strdup(asked->host);
	answer->port = said >= GRANT_HOSTS_YES ? asked->port : 0;
	answer->answer = said;
	list_append(&hosts->answers, &answer->link);
	hosts->answer_count++;
}

static bool is_kept(struct hosts *hosts, const char *host, uint16_t port)
{
	struct error err;
	const struct relay_config *config = &hosts->peer->relay->config;
	if (!config->state_folder) {
		return false;
	}
	bool is_read = kept_hosts_read(&hosts->kept, config->state_folder, &err);
	if (!is_read && !hosts->was_kept_told) {
		hosts->was_kept_told = true;
		log_failure(LOG_LEVEL_WARNING, &err, "%s: %s", hosts->peer->hop, err.text);
	}
	return is_read && kept_hosts_have(&hosts->kept, config->profile->name, host, port);
}

static void keep(struct hosts *hosts, const struct asked_host *asked)
{
	struct error err;
	const struct relay_config *config = &hosts->peer->relay->config;
	if (!kept_hosts_add(
		    config->state_folder, config->profile->name, asked->host, asked->port, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s: the answer holds only until it ends: %s",
			hosts->peer->hop, err.text);
		remember(hosts, asked, GRANT_HOSTS_YES_SESSION);
	}
}

/* ---- choosing a session for the question ---- */

struct candidate {
	const struct hosts *hosts;
	struct session *session; // the best so far, or NULL
	int rank;
};

/* Prefers a session with a turn in progress, then the one with the last prompt. */
static void choose(void *data, struct session *session)
{
	struct candidate *candidate = data;
	const char *last = candidate->hosts->session_id;
	int rank = 1 + (session->prompts > 0 ? 2 : 0) +
	           (last && strcmp(last, session->id) == 0 ? 1 : 0);
	if (rank > candidate->rank) {
		candidate->rank = rank;
		candidate->session = session;
	}
}

/* A session of the agent in which the user can be asked. NULL, and the reason, if there is none. */
static struct session *find_session(struct hosts *hosts, const char **out_why)
{
	struct peer *peer = hosts->peer;
	struct relay *relay = peer->relay;
	struct candidate candidate = {.hosts = hosts};
	if (relay->is_ending || relay->editor_has_ended || peer->is_down) {
		*out_why = "nobody can be asked any more";
		return NULL;
	}
	session_table_visit(&relay->sessions, peer, choose, &candidate);
	*out_why = "there is no session in which you could be asked";
	return candidate.session;
}

/* ---- the question ---- */

static void serve(struct hosts *hosts);

static void audit(const struct request *request, const struct asked_host *asked,
	const struct grant_answer *answer)
{
	char target[TARGET_SIZE];
	struct relay *relay = request->peer->relay;
	text_host_port(target, sizeof(target), asked->host, asked->port);
	usage_note_decision(relay, session_find(&relay->sessions, request->session_id),
		answer->decision, answer->by);
	audit_write(relay->config.audit, &(struct audit_line){
						 .session = request->session_id,
						 .operation = "network/ask",
						 .subject = target,
						 .rule = grant_hosts_rule,
						 .decision = answer->decision,
						 .by = answer->by,
					 });
}

/* Refuses the other ports of a refused host, or everything that waits. */
static void refuse_others(struct hosts *hosts, const char *host, enum grant_hosts_answer answer)
{
	LIST_FOR_EACH(other, &hosts->asked, struct asked_host, link) {
		if (!host || strcmp(other->host, host) == 0) {
			withdraw(hosts, other);
			decide_all(hosts, other, answer, NULL);
		}
	}
}

/* Ends `asked`. */
static void take_answer(
	struct hosts *hosts, struct asked_host *asked, enum grant_hosts_answer answer)
{
	if (answer == GRANT_HOSTS_YES_ALWAYS) {
		keep(hosts, asked);
	} else if (answer == GRANT_HOSTS_NO_MORE) {
		hosts->refuses_further = true;
	} else if (answer != GRANT_HOSTS_YES) {
		remember(hosts, asked, answer);
	}
	if (answer >= GRANT_HOSTS_YES) {
		decide_all(hosts, asked, answer, NULL);
		return;
	}
	char *host = answer == GRANT_HOSTS_NO_MORE ? NULL : mem_strdup(asked->host);
	refuse_others(hosts, host, answer);
	free(host);
}

static struct asked_host *find_by_request(struct hosts *hosts, const struct request *request)
{
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		if (asked->request == request) {
			return asked;
		}
	}
	return NULL;
}

static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct hosts *hosts = hosts_of(request->peer);
	struct asked_host *asked = find_by_request(hosts, request);
	assert(asked); // a question ends together with its host
	struct grant_answer decided = grant_settle(relay, request, answer, failure);
	enum grant_hosts_answer said = grant_hosts_answer_of(&decided);
	question_close(relay, request, said >= GRANT_HOSTS_YES);
	audit(request, asked, &decided);
	asked->request = NULL;
	take_answer(hosts, asked, said);
	serve(hosts);
}

static bool send_question(struct hosts *hosts, struct asked_host *asked, const char *program,
	const struct session *session, struct error *err)
{
	struct peer *peer = hosts->peer;
	struct relay *relay = peer->relay;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_answer;
	request->session_id = mem_strdup(session->id);
	question_of(request)->options =
		relay->config.state_folder ? grant_hosts_options_kept : grant_hosts_options;
	if (!pending_add(&relay->asked_editor, &request->pending, (struct span){NULL, 0}, err)) {
		request_destroy(request);
		return false;
	}
	if (!grant_hosts_question_write(request, asked->host, asked->port, program, err)) {
		pending_remove(&relay->asked_editor, &request->pending);
		request_destroy(request);
		return false;
	}
	asked->request = request;
	relay_send_editor(relay, buf_span(&relay->scratch));
	relay_watch_question(request);
	return true;
}

static void ask(struct hosts *hosts, struct asked_host *asked, const char *program)
{
	struct error err;
	const char *why;
	const struct session *session = find_session(hosts, &why);
	if (!session) {
		decide_all(hosts, asked, GRANT_HOSTS_NO, why);
	} else if (!send_question(hosts, asked, program, session, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"session %s: cannot ask about a connection: %s", session->id, err.text);
		decide_all(hosts, asked, GRANT_HOSTS_NO, "the question could not be sent");
	}
}

/* ---- choosing the next question ---- */

static bool is_busy(const struct asked_host *asked)
{
	return asked->request || asked->looked_for != 0;
}

/* Only one question about a host is open at a time. */
static bool is_host_busy(const struct hosts *hosts, const char *host)
{
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		if (is_busy(asked) && strcmp(asked->host, host) == 0) {
			return true;
		}
	}
	return false;
}

static struct asked_host *find_next(const struct hosts *hosts)
{
	struct asked_host *next = NULL;
	int open = 0;
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		open += is_busy(asked);
		next = next || is_busy(asked) || is_host_busy(hosts, asked->host) ? next : asked;
	}
	return open < GRANT_HOSTS_OPEN_MAX ? next : NULL;
}

/* The program is known, or nobody knows it. */
static void look_for_program(struct hosts *hosts, struct asked_host *asked)
{
	asked->looked_for = asked->ids[0];
	sandbox_look_for_program(agent_sandbox(hosts->peer->agent), asked->looked_for);
}

static void serve(struct hosts *hosts)
{
	struct asked_host *asked;
	while (hosts->questions > 0 && (asked = find_next(hosts))) {
		hosts->questions--;
		if (!ev_is_active(&hosts->refill)) {
			ev_timer_again(hosts->peer->relay->config.loop, &hosts->refill);
		}
		look_for_program(hosts, asked);
	}
}

static void on_refill(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct hosts *hosts = CONTAINER_OF(timer, struct hosts, refill);
	if (++hosts->questions >= GRANT_HOSTS_AT_ONCE) {
		ev_timer_stop(loop, timer);
	}
	serve(hosts);
}

/* ---- wishes ---- */

static struct asked_host *find_asked(struct hosts *hosts, const char *host, uint16_t port)
{
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		if (strcmp(asked->host, host) == 0 && asked->port == port) {
			return asked;
		}
	}
	return NULL;
}

/* Whether we can decide about the wish without a question. */
static bool is_decided(struct hosts *hosts, const struct sandbox_wish *wish,
	enum grant_hosts_answer *out_answer, const char **out_why)
{
	const struct policy *policy = hosts->peer->relay->config.profile->policy;
	const struct host_answer *answer = find_answer(hosts, wish->host, wish->port);
	*out_answer = GRANT_HOSTS_NO;
	*out_why = NULL;
	if (policy_decide_unknown(policy).decision == POLICY_REJECT_ONCE) {
		*out_why = "the policy refuses everything";
	} else if (answer) {
		*out_answer = answer->answer;
	} else if (is_kept(hosts, wish->host, wish->port)) {
		*out_answer = GRANT_HOSTS_YES_ALWAYS;
	} else if (hosts->refuses_further) {
		*out_answer = GRANT_HOSTS_NO_MORE;
	} else if (find_session(hosts, out_why)) {
		bool is_full = hosts->asked_count >= GRANT_HOSTS_WAITING_MAX &&
		               !find_asked(hosts, wish->host, wish->port);
		*out_why = is_full ? "too many hosts wait for an answer" : NULL;
		return is_full;
	}
	return true;
}

void grant_hosts_on_wish(void *data, const struct sandbox_wish *wish)
{
	struct hosts *hosts = hosts_of(data);
	enum grant_hosts_answer answer;
	const char *why;
	if (is_decided(hosts, wish, &answer, &why)) {
		decide(hosts, wish->id, answer, why);
		return;
	}
	struct asked_host *asked = find_asked(hosts, wish->host, wish->port);
	if (!asked) {
		asked = mem_alloc_zero(sizeof(*asked));
		asked->host = mem_strdup(wish->host);
		asked->port = wish->port;
		list_append(&hosts->asked, &asked->link);
		hosts->asked_count++;
	}
	asked->ids = mem_realloc(asked->ids, (asked->count + 1) * sizeof(*asked->ids));
	asked->ids[asked->count++] = wish->id;
	serve(hosts);
}

static bool take_id(struct asked_host *asked, uint32_t id)
{
	for (size_t i = 0; i < asked->count; i++) {
		if (asked->ids[i] == id) {
			memmove(&asked->ids[i], &asked->ids[i + 1],
				(--asked->count - i) * sizeof(*asked->ids));
			return true;
		}
	}
	return false;
}

static struct asked_host *find_by_id(struct hosts *hosts, uint32_t id)
{
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		for (size_t i = 0; i < asked->count; i++) {
			if (asked->ids[i] == id) {
				return asked;
			}
		}
	}
	return NULL;
}

void grant_hosts_on_wish_gone(void *data, uint32_t id)
{
	struct hosts *hosts = hosts_find(data);
	struct asked_host *asked = hosts ? find_by_id(hosts, id) : NULL;
	if (!asked) {
		return;
	}
	take_id(asked, id);
	if (asked->count == 0) {
		withdraw(hosts, asked);
		asked_destroy(hosts, asked);
		serve(hosts);
	} else if (asked->looked_for == id) {
		look_for_program(hosts, asked);
	}
}

void grant_hosts_on_program(void *data, uint32_t id, const char *program)
{
	struct hosts *hosts = hosts_find(data);
	struct asked_host *asked = hosts ? find_by_id(hosts, id) : NULL;
	if (asked && asked->looked_for == id) {
		asked->looked_for = 0;
		ask(hosts, asked, program);
	}
}

/* ---- turns, and the end ---- */

void grant_hosts_turn_begins(struct peer *peer, const struct session *session)
{
	const char *network = settings_get(&peer->relay->config.profile->settings, "network");
	if (!network || strcmp(network, network_modes[NETWORK_ASK]) != 0) {
		return;
	}
	struct hosts *hosts = hosts_of(peer);
	mem_set_text(&hosts->session_id, session->id);
	LIST_FOR_EACH(answer, &hosts->answers, struct host_answer, link) {
		if (answer->answer == GRANT_HOSTS_NO) {
			answer_destroy(hosts, answer);
		}
	}
}

static const struct error cancelled = {.code = ERROR_DENIED,
	.reason = "PERMISSION_DENIED",
	.stage = "session",
	.text = "the session was cancelled before anyone answered"};

/* Whether the cancelled session has the question about the host, or no session has it yet. */
static bool is_cancelled(const struct asked_host *asked, const char *session_id)
{
	return !asked->request || strcmp(asked->request->session_id, session_id) == 0;
}

static void cancel(struct hosts *hosts, const char *session_id)
{
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		if (!is_cancelled(asked, session_id)) {
			continue;
		}
		if (asked->request) {
			struct grant_answer no =
				grant_settle(hosts->peer->relay, asked->request, NULL, &cancelled);
			audit(asked->request, asked, &no);
		}
		withdraw(hosts, asked);
		remember(hosts, asked, GRANT_HOSTS_NO);
		decide_all(hosts, asked, GRANT_HOSTS_NO, NULL);
	}
}

void grant_hosts_cancel(struct relay *relay, const char *session_id)
{
	struct session *session = session_find(&relay->sessions, session_id);
	struct hosts *hosts = session && session->peer ? hosts_find(session->peer) : NULL;
	if (hosts) {
		cancel(hosts, session_id);
	}
}

void grant_hosts_drop(struct peer *peer)
{
	struct hosts *hosts = hosts_find(peer);
	if (!hosts) {
		return;
	}
	LIST_FOR_EACH(asked, &hosts->asked, struct asked_host, link) {
		decide_all(hosts, asked, GRANT_HOSTS_NO, NULL);
	}
	LIST_FOR_EACH(answer, &hosts->answers, struct host_answer, link) {
		answer_destroy(hosts, answer);
	}
	hosts->refuses_further = false;
}
