/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_mcp_exec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/agent/mcp_door.h"
#include "broker/agent/mcp_tools.h"
#include "broker/config/known_agents.h"
#include "broker/gate/grant_ask.h"
#include "broker/methods/pause.h"
#include "broker/methods/run.h"
#include "broker/policy/audit.h"
#include "broker/policy/modes.h"
#include "broker/relay/opens.h"
#include "broker/relay/relay_agent_methods.h"
#include "broker/relay/relay_turn.h"
#include "broker/session/in_flight.h"

enum { CALLS_MAX = 16, NAME_DIGITS = 32 };

/* A part of the relay. */
struct server {
	struct mcp_door *door; // owned; NULL: there is none
	char *why_not;         // owned; then the reason; NULL: the profile wants none
	struct list stations;  // of struct station
};

/* The server of one session. */
struct station {
	struct list link; // server.stations
	struct relay *relay;
	struct peer *peer;
	char *session_id; // owned; the editor's; NULL until the session is open
	struct mcp_place *place;
	struct list calls; // of struct exec_call
	int count;
	char mode[MODES_NAME_MAX]; // as the agent has told it; "": not known
	unsigned told;             // choices.serials of the session at that time
};

/* A part of a request that opens a session, until the session is open. */
struct offer {
	struct station *station; // owned
};

struct exec_call {
	struct list link; // station.calls
	struct station *station;
	struct mcp_client *client;
	char name[NAME_DIGITS + 3]; // its id at the gate, raw; nobody can guess it
	struct mcp_wish wish;
	bool is_passed;     // policy has allowed it
	struct file_op *op; // resolves its cwd
	ev_timer due;       // file-timeout for that
	long long away_ms;  // sandbox_extend_timer
	struct run *run;    // owned; NULL until it runs
};

static void finish_server(void *part, void *owner)
{
	struct server *server = part;
	mcp_door_destroy(server->door);
	free(server->why_not);
}

static void init_server(void *part)
{
	list_init(&((struct server *)part)->stations);
}

static const struct part_type server_type = {
	.size = sizeof(struct server), .init = init_server, .finish = finish_server};

static struct server *server_of(struct relay *relay)
{
	return parts_get(&relay->parts, &server_type);
}

/* ---- the life of a call ---- */

static void call_destroy(struct exec_call *call)
{
	struct station *station = call->station;
	list_remove(&call->link);
	station->count--;
	file_op_cancel(call->op);
	ev_timer_stop(station->relay->config.loop, &call->due);
	run_destroy(call->run);
	if (call->is_passed) {
		in_flight_add_command(station->peer, -1, NULL);
	}
	mcp_client_await_no_more(call->client);
	mcp_wish_finish(&call->wish);
	free(call);
}

static void client_answer(
	struct mcp_client *client, const char *id, const struct mcp_outcome *outcome)
{
	struct buf answer;
	buf_init(&answer, SIZE_MAX / 2);
	mcp_outcome_write(outcome, id, &answer);
	mcp_client_send(client, &answer);
	buf_finish(&answer);
}

static void call_end(struct exec_call *call, const struct mcp_outcome *outcome)
{
	client_answer(call->client, call->wish.id, outcome);
	call_destroy(call);
}

static void call_fail(struct exec_call *call, const char *problem)
{
	call_end(call, &(struct mcp_outcome){.problem = problem});
}

/*
 * Nobody waits for it any more: takes it back, wherever it is, and closes its question. If the
 * agent is down, the gate itself does that.
 */
static void call_drop(struct exec_call *call)
{
	struct station *station = call->station;
	char name[sizeof(call->name)];
	memcpy(name, call->name, sizeof(name));
	bool is_at_gate = !call->is_passed && !station->peer->is_down;
	call_destroy(call);
	if (is_at_gate && !grant_take_back(station->peer, span_of(name))) {
		(void)desk_cancel_request(&station->relay->desk, station->peer, span_of(name));
	}
}

static struct exec_call *call_find(
	const struct station *station, const struct mcp_client *client, const char *id)
{
	LIST_FOR_EACH(call, &station->calls, struct exec_call, link) {
		if (call->client == client && strcmp(call->wish.id, id) == 0) {
			return call;
		}
	}
	return NULL;
}

/* The call that is at the gate under this id; NULL if it was taken back. */
static struct exec_call *call_of(struct peer *peer, struct span id)
{
	LIST_FOR_EACH(station, &server_of(peer->relay)->stations, struct station, link) {
		LIST_FOR_EACH(call, &station->calls, struct exec_call, link) {
			if (station->peer == peer && span_is(id, call->name)) {
				return call;
			}
		}
	}
	return NULL;
}

/* ---- running it ---- */

static void on_done(void *data)
{
	struct exec_call *call = data;
	const struct run_result result = run_result(call->run);
	struct error err = result.err;
	struct mcp_outcome outcome = {.code = result.status.code,
		.signal = result.status.signal,
		.out = result.out,
		.errors = result.errors,
		.out_is_cut = result.out_total > result.out.len,
		.errors_is_cut = result.err_total > result.errors.len};
	if (result.timed_out) {
		text_format(
			err.text, sizeof(err.text), "killed because it ran longer than allowed");
	}
	outcome.problem = result.timed_out || result.has_failed ? err.text : NULL;
	call_end(call, &outcome);
}

static size_t smaller(size_t one, size_t other)
{
	return one < other ? one : other;
}

/* `root_bytes` of the cwd name a root, as in struct exec_spec. */
static void start(struct exec_call *call, const char *cwd, size_t root_bytes)
{
	struct station *station = call->station;
	const struct toolhost_limits *limits = &station->relay->config.profile->toolhost_limits;
	struct error err;
	int most_ms = limits->terminal_timeout_ms;
	int wanted_ms = call->wish.timeout_ms;
	const struct run_config config = {.loop = station->relay->config.loop,
		.sandbox = agent_sandbox(station->peer->agent),
		.argv = (const char *const *)call->wish.words,
		.cwd = cwd,
		.cwd_root = root_bytes,
		.input = buf_span(&call->wish.input),
		.output_max = smaller(limits->output_limit, MCP_OUTPUT_MAX),
		.timeout_ms = wanted_ms > 0 && (most_ms == 0 || wanted_ms < most_ms) ? wanted_ms
	                                                                             : most_ms,
		.done = on_done,
		.data = call};
	call->run = run_start(&config, &err);
	if (!call->run) {
		call_fail(call, err.text);
	}
}

static bool is_in_session(const struct session *session, const char *path)
{
	bool is_in = false;
	for (char **root = session->roots; root && *root; root++) {
		is_in = is_in || path_is_at_or_below(path, *root);
	}
	return is_in;
}

static struct session *session_of(const struct station *station)
{
	struct session *session =
		station->session_id ? session_find(&station->relay->sessions, station->session_id)
				    : NULL;
	return session && session->peer == station->peer ? session : NULL;
}

static void on_resolved(void *data, const char *path, const struct error *err)
{
	struct exec_call *call = data;
	const struct session *session = session_of(call->station);
	char problem[FILE_PATH_MAX + 128];
	call->op = NULL;
	ev_timer_stop(call->station->relay->config.loop, &call->due);
	if (!err && session && is_in_session(session, path)) {
		start(call, path,
			sandbox_root_length(agent_sandbox(call->station->peer->agent), path));
		return;
	}
	text_format(problem, sizeof(problem), "cwd %s: %s", call->wish.cwd,
		err ? err->text : "refused: it leads out of the session's directories");
	call_fail(call, problem);
}

static void on_resolve_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct exec_call *call = CONTAINER_OF(timer, struct exec_call, due);
	if (!sandbox_extend_timer(
		    agent_sandbox(call->station->peer->agent), timer, &call->away_ms)) {
		call_fail(call, "cwd: it was not found within file-timeout");
	}
}

static void resolve(struct exec_call *call)
{
	struct station *station = call->station;
	struct sandbox *sandbox = agent_sandbox(station->peer->agent);
	int timeout_ms = station->relay->config.profile->toolhost_limits.file_timeout_ms;
	ev_timer_set(&call->due, timeout_ms / 1000., 0.);
	call->away_ms = sandbox_away_ms(sandbox);
	if (timeout_ms > 0) {
		ev_timer_start(station->relay->config.loop, &call->due);
	}
	call->op = sandbox_resolve_path(sandbox, call->wish.cwd, on_resolved, call);
}

/* ---- what the mode says ---- */

/* The session's mode: what the editor has chosen or the agent has told, whichever is later. */
static const char *mode_of(const struct station *station, struct session *session)
{
	const struct choice *last = NULL;
	LIST_FOR_EACH(choice, &session->choices.all, struct choice, link) {
		bool holds_mode = choice->kind == CHOICE_MODE || choice->is_mode;
		if (holds_mode && !choice->is_stale && (!last || choice->serial > last->serial)) {
			last = choice;
		}
	}
	bool is_told_later = station->mode[0] && (!last || station->told >= last->serial);
	return is_told_later || !last ? station->mode : last->value;
}

/* In such a mode the agent itself would run no command. True if the call may not run. */
static bool is_forbidden_by_mode(struct station *station, const char *command)
{
	struct relay *relay = station->relay;
	struct session *session = session_of(station);
	if (!session || !modes_is_read_only(mode_of(station, session))) {
		return false;
	}
	usage_note_decision(relay, session, POLICY_REJECT_ONCE, AUDIT_BY_POLICY);
	audit_write(
		relay->config.audit, &(struct audit_line){.session = session->id,
					     .operation = policy_operation_name(POLICY_TERMINAL),
					     .subject = command,
					     .rule = "the session's mode only reads or plans",
					     .decision = POLICY_REJECT_ONCE,
					     .by = AUDIT_BY_POLICY});
	return true;
}

static const char paused_refusal[] = "the session is paused: try again when it goes on";

static const char mode_refusal[] =
	"refused: the session is in a mode that only reads or plans, and runs no commands";

/* ---- at the gate ---- */

void relay_mcp_exec_fail(struct peer *peer, struct span id, const struct error *failure)
{
	struct exec_call *call = call_of(peer, id);
	if (call) {
		call_fail(call, failure->text);
	}
}

/* Policy has allowed it. The session's mode may have changed while the user was asked. */
void relay_mcp_exec_serve(struct peer *peer, const struct call *request)
{
	struct exec_call *call = call_of(peer, request->message.id);
	struct error err;
	if (!call) {
		return; // taken back
	}
	const struct session *session = session_of(call->station);
	if (!session || !session->roots) {
		call_fail(call, "the session is no longer open");
	} else if (pause_holds_agent(peer)) {
		call_fail(call, paused_refusal);
	} else if (is_forbidden_by_mode(call->station, call->wish.words[0])) {
		call_fail(call, mode_refusal);
	} else if (!in_flight_add_command(peer, 1, &err)) {
		call_fail(call, err.text);
	} else {
		call->is_passed = true;
		if (call->wish.cwd) {
			resolve(call);
		} else {
			start(call, session->roots[0], 0);
		}
	}
}

/*
 * Writes the call as an agent's request for a terminal. Policy and the user must see the input,
 * because a shell or an interpreter runs it; so it follows the words like a here-string.
 */
static void write_request(
	const struct exec_call *call, const struct session *session, struct buf *out)
{
	struct json_writer writer;
	const struct mcp_wish *wish = &call->wish;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member_raw(&writer, "id", span_of(call->name));
	json_write_member(&writer, "method", relay_mcp_exec_method.name);
	json_write_key(&writer, "params");
	json_write_object(&writer);
	json_write_member(&writer, "sessionId", session->agent_id);
	json_write_member(&writer, "command", wish->words[0]);
	json_write_key(&writer, "args");
	json_write_array(&writer);
	for (char **word = wish->words + 1; *word; word++) {
		json_write_text(&writer, *word);
	}
	if (wish->has_input) {
		json_write_text(&writer, "<<<");
		json_write_string(&writer, buf_span(&wish->input));
	}
	json_write_array_end(&writer);
	if (wish->cwd) {
		json_write_member(&writer, "cwd", wish->cwd);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written); // it has no limit
	(void)is_written;
}

/* The request goes the way of the agent's own ones. The call may be over afterwards. */
static void send_request(struct exec_call *call, const struct session *session)
{
	struct peer *peer = call->station->peer;
	struct call request = {.sender = peer};
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	write_request(call, session, &text);
	struct parcel *parcel = parcel_of(&text, peer->relay->places);
	parcel_set_method(parcel, &relay_mcp_exec_method);
	if (!call_open(&request, parcel)) {
		call_fail(call, "the call could not be read again");
	} else if (!relay_turn_holds_message(peer, &request)) {
		peer->relay->ops->on_agent_call(peer, &request);
	}
	parcel_destroy(parcel);
	buf_finish(&text);
}

/* ---- lines of the clients ---- */

/* Why a call is not taken; NULL: it is. */
static const char *refusal(
	struct station *station, const struct mcp_client *client, const struct mcp_wish *wish)
{
	int most = station->relay->config.profile->toolhost_limits.max_terminals;
	if (!session_of(station) || station->peer->is_down || station->relay->is_ending) {
		return "the session is not open";
	}
	if (pause_holds_agent(station->peer)) {
		return paused_refusal;
	}
	if (link_is_over(&station->relay->editor)) {
		return "the editor does not read what the broker sends: try again later";
	}
	if (call_find(station, client, wish->id)) {
		return "a call with this id is in progress";
	}
	if (station->count >= CALLS_MAX || station->count >= most) {
		return "too many calls of this session are in progress: wait for one to end";
	}
	return is_forbidden_by_mode(station, wish->words[0]) ? mode_refusal : NULL;
}

/* Takes the wish's content. */
static void take_call(struct station *station, struct mcp_client *client, struct mcp_wish *wish)
{
	char digits[NAME_DIGITS + 1];
	const char *problem = refusal(station, client, wish);
	if (problem) {
		client_answer(client, wish->id, &(struct mcp_outcome){.problem = problem});
		mcp_wish_finish(wish);
		return;
	}
	struct exec_call *call = mem_alloc_zero(sizeof(*call));
	call->station = station;
	call->client = client;
	mcp_client_await(client);
	call->wish = *wish;
	ev_init(&call->due, on_resolve_due);
	random_fill_hex(digits, NAME_DIGITS);
	text_whole(call->name, sizeof(call->name), "\"%s\"", digits);
	list_append(&station->calls, &call->link);
	station->count++;
	send_request(call, session_of(station));
}

static void on_line(void *data, struct mcp_client *client, const struct frame *frame)
{
	struct station *station = data;
	struct mcp_wish wish;
	struct buf answer;
	buf_init(&answer, SIZE_MAX / 2);
	mcp_wish_read(&wish, frame, &client->is_greeted, &answer);
	if (answer.len > 0) {
		mcp_client_send(client, &answer);
	}
	buf_finish(&answer);
	if (wish.kind == MCP_WISH_CALL) {
		take_call(station, client, &wish);
		return;
	}
	struct exec_call *call =
		wish.kind == MCP_WISH_CANCEL ? call_find(station, client, wish.id) : NULL;
	if (call) {
		call_drop(call);
	}
	mcp_wish_finish(&wish);
}

static void on_gone(void *data, struct mcp_client *client)
{
	struct station *station = data;
	LIST_FOR_EACH(call, &station->calls, struct exec_call, link) {
		if (call->client == client) {
			call_drop(call);
		}
	}
}

static const struct mcp_door_listener listener = {.on_line = on_line, .on_gone = on_gone};

/* ---- stations ---- */

static void station_destroy(struct station *station)
{
	if (!station) {
		return;
	}
	LIST_FOR_EACH(call, &station->calls, struct exec_call, link) {
		call_drop(call);
	}
	mcp_place_close(station->place);
	list_remove(&station->link);
	free(station->session_id);
	free(station);
}

static void finish_offer(void *part, void *owner)
{
	struct offer *offer = part;
	station_destroy(offer->station);
}

static const struct part_type offer_type = {.size = sizeof(struct offer), .finish = finish_offer};

static struct station *station_create(struct peer *peer)
{
	struct server *server = server_of(peer->relay);
	struct station *station = mem_alloc_zero(sizeof(*station));
	station->relay = peer->relay;
	station->peer = peer;
	list_init(&station->calls);
	list_append(&server->stations, &station->link);
	station->place = mcp_place_open(server->door, station);
	return station;
}

static struct station *station_of(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(station, &server_of(relay)->stations, struct station, link) {
		if (station->session_id && strcmp(station->session_id, session_id) == 0) {
			return station;
		}
	}
	return NULL;
}

/* ---- the offer ---- */

/* An agent that confines its own commands would escape from its own sandbox with the server. */
const char *relay_mcp_exec_excludes(const struct profile *profile, const char *agent_name)
{
	if (!profile->runs_here) {
		return "it exists only for agents on this machine";
	}
	if (known_agent_sandboxes_itself((const char *const *)profile->agent_argv, agent_name)) {
		return "the agent confines what it runs, and the server's commands would escape "
		       "from that";
	}
	for (size_t i = 0; i < profile->mcp_count; i++) {
		if (strcmp(profile->mcp[i].name, MCP_SERVER_NAME) == 0) {
			return "the profile has another server of this name";
		}
	}
	return NULL;
}

/* Why the session gets no server, although the profile wants one; NULL: it gets one. */
static const char *reason_against(const struct peer *peer)
{
	const struct relay_config *config = &peer->relay->config;
	const char *reason = relay_mcp_exec_excludes(config->profile, peer->agent_name);
	if (reason) {
		return reason;
	}
	const char *program = config->mcp_program;
	if (!program || strncmp(program, "/proc/", 6) == 0) {
		return "the broker's own program was replaced while it ran: start it again";
	}
	return server_of(peer->relay)->why_not;
}

bool relay_mcp_exec_offer(
	struct peer *peer, struct request *request, struct mcp_server *out_entry, char ***notices)
{
	char text[ERROR_TEXT_MAX];
	if (!peer->relay->config.profile->mcp_exec || peer->relay->is_ending) {
		return false;
	}
	const char *reason = reason_against(peer);
	if (reason) {
		text_format(text, sizeof(text),
			"MCP server \"%s\" (mcp-exec = yes) was left out: %s", MCP_SERVER_NAME,
			reason);
		words_append(notices, text);
		return false;
	}
	struct offer *offer = parts_get(&request->parts, &offer_type);
	station_destroy(offer->station);
	offer->station = station_create(peer);
	mcp_place_entry(offer->station->place, peer->relay->config.mcp_program, out_entry);
	return true;
}

/* `object` may have the name of a mode, and options of which one is the mode. */
static void take_mode(
	struct station *station, const struct json_doc *doc, json_node object, const char *dotted)
{
	char mode[MODES_NAME_MAX];
	const struct session *session = session_of(station);
	if (modes_copy_value(doc, json_path(doc, object, dotted), mode) ||
		modes_find_option(doc, json_get(doc, object, "configOptions"), mode)) {
		memcpy(station->mode, mode, sizeof(mode));
		station->told = session ? session->choices.serials : 0;
	}
}

void relay_mcp_exec_read(struct request *request, const struct call *answer)
{
	struct offer *offer = parts_find(&request->parts, &offer_type);
	struct span result = message_place(&answer->message, PLACE_RESULT);
	if (offer && offer->station && result.len > 0) {
		struct json_doc *doc = json_doc_parse_unchecked(result, NULL);
		if (doc) {
			take_mode(offer->station, doc, 0, "modes.currentModeId");
		}
		json_doc_destroy(doc);
	}
}

void relay_mcp_exec_opened(struct relay *relay, const struct request *request)
{
	struct offer *offer = parts_find(&request->parts, &offer_type);
	const struct session *session = opens_session(relay, request);
	if (offer && offer->station && session) {
		station_destroy(station_of(relay, session->id)); // it was opened again
		offer->station->session_id = mem_strdup(session->id);
		offer->station = NULL;
	}
}

void relay_mcp_exec_on_update(struct peer *peer, const struct call *call)
{
	char kind[sizeof("config_option_update")];
	const struct session *session = NULL;
	if (peer->relay->config.profile->mcp_exec &&
		message_string(&call->message, PLACE_UPDATE_KIND, kind, sizeof(kind)) &&
		(strcmp(kind, "current_mode_update") == 0 ||
			strcmp(kind, "config_option_update") == 0)) {
		session = relay_session_of_agent(peer, &call->message);
	}
	struct station *station = session ? station_of(peer->relay, session->id) : NULL;
	if (station) {
		struct json_doc *doc =
			json_doc_parse_unchecked(message_place(&call->message, PLACE_PARAMS), NULL);
		if (doc) {
			take_mode(station, doc, json_get(doc, 0, "update"), "currentModeId");
		}
		json_doc_destroy(doc);
	}
}

/* ---- the end ---- */

void relay_mcp_exec_cancel(struct relay *relay, const char *session_id)
{
	struct station *station = station_of(relay, session_id);
	const struct mcp_outcome outcome = {.problem = "the turn was cancelled"};
	if (!station) {
		return;
	}
	LIST_FOR_EACH(call, &station->calls, struct exec_call, link) {
		client_answer(call->client, call->wish.id, &outcome);
		call_drop(call);
	}
}

void relay_mcp_exec_close(struct relay *relay, const struct peer *peer, const char *session_id)
{
	LIST_FOR_EACH(station, &server_of(relay)->stations, struct station, link) {
		bool is_of_peer = !peer || station->peer == peer;
		bool is_it = !session_id ||
		             (station->session_id && strcmp(station->session_id, session_id) == 0);
		if (is_of_peer && is_it && station->session_id) {
			station_destroy(station);
		}
	}
}

void relay_mcp_exec_end(struct relay *relay)
{
	relay_mcp_exec_close(relay, NULL, NULL);
}

void relay_mcp_exec_init(struct relay *relay)
{
	const struct relay_config *config = &relay->config;
	struct server *server = server_of(relay);
	struct error err;
	if (!config->profile->mcp_exec || !config->profile->runs_here) {
		return;
	}
	error_set(&err, ERROR_UNAVAILABLE, "no folder for its socket could be made");
	server->door = config->mcp_socket ? mcp_door_create(config->loop, config->mcp_socket,
						    relay->places, &listener, &err)
	                                  : NULL;
	if (!server->door) {
		log_failure(LOG_LEVEL_WARNING, &err, "mcp-exec: %s", err.text);
		server->why_not = mem_strdup(err.text);
	}
}
