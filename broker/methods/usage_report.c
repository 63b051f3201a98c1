/* SPDX-License-Identifier: MIT */
#include "broker/methods/usage_report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/policy/memory.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/usage.h"

/* One member of an object of numbers. */
struct number {
	const char *key;
	uint64_t value;
};

static void write_numbers(
	struct json_writer *writer, const char *key, const struct number *numbers, size_t count)
{
	json_write_key(writer, key);
	json_write_object(writer);
	for (size_t i = 0; i < count; i++) {
		json_write_member_int(writer, numbers[i].key, numbers[i].value);
	}
	json_write_object_end(writer);
}

static void write_decisions(struct json_writer *writer, const struct usage_counts *counts)
{
	json_write_key(writer, "decisions");
	json_write_array(writer);
	for (int decision = 0; decision <= POLICY_REJECT_ALWAYS; decision++) {
		for (int by = 0; by <= AUDIT_BY_NOBODY; by++) {
			if (counts->decisions[decision][by] == 0) {
				continue;
			}
			json_write_object(writer);
			json_write_member(writer, "decision", policy_decision_name(decision));
			json_write_member(writer, "by", audit_by_name(by));
			json_write_member_int(writer, "count", counts->decisions[decision][by]);
			json_write_object_end(writer);
		}
	}
	json_write_array_end(writer);
}

static void write_counts(struct json_writer *writer, const struct usage_counts *counts)
{
	json_write_member_int(writer, "prompts", counts->prompts);
	json_write_key(writer, "toolCalls");
	json_write_object(writer);
	for (int tool = 0; tool < USAGE_TOOL_COUNT; tool++) {
		json_write_member_int(writer, usage_tool_name(tool), counts->tool_calls[tool]);
	}
	json_write_object_end(writer);
	write_decisions(writer, counts);
}

static void write_session(void *data, struct session *session)
{
	struct json_writer *writer = data;
	json_write_object(writer);
	json_write_member(writer, "sessionId", session->id);
	write_counts(writer, &session->usage);
	const struct number bytes[] = {
		{"fromEditor", session->usage.editor_bytes},
		{"fromAgent", session->usage.agent_bytes},
	};
	write_numbers(writer, "bytes", bytes, ARRAY_LENGTH(bytes));
	json_write_member_int(writer, "rememberedAnswers", memory_count(session->memory));
	json_write_object_end(writer);
}

static void write_bytes(struct json_writer *writer, struct relay *relay)
{
	uint64_t from_agents = relay->usage.read_bytes;
	uint64_t to_agents = relay->usage.written_bytes;
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		from_agents += agent_link(peer->agent)->read_bytes;
		to_agents += link_written(agent_link(peer->agent));
	}
	const struct number bytes[] = {
		{"fromEditor", relay->editor.read_bytes},
		{"toEditor", link_written(&relay->editor)},
		{"fromAgents", from_agents},
		{"toAgents", to_agents},
	};
	write_numbers(writer, "bytes", bytes, ARRAY_LENGTH(bytes));
}

static void write_syncs(struct json_writer *writer, const struct usage_syncs *syncs)
{
	const struct number numbers[] = {
		{"count", syncs->count},
		{"failed", syncs->failed},
		{"durationMs", syncs->duration_ms},
		{"sentBytes", syncs->sent_bytes},
		{"receivedBytes", syncs->received_bytes},
		{"conflicts", syncs->conflicts},
		{"pathsToLocal", syncs->to_local},
		{"pathsToRuntime", syncs->to_runtime},
	};
	write_numbers(writer, "syncs", numbers, ARRAY_LENGTH(numbers));
}

/* Writes the memory of this process (proc_pid_statm(5)); nothing if /proc is missing. */
static void write_memory(struct json_writer *writer)
{
	char text[128] = "";
	char *end;
	ATTR_CLEANUP(fd_cleanup) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		json_write_key(writer, "memory");
		json_write_null(writer);
		return;
	}
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	strtoull(text, &end, 10); // the size of the address space
	uint64_t resident = strtoull(end, &end, 10);
	uint64_t shared = strtoull(end, &end, 10);
	const struct number numbers[] = {
		{"residentBytes", resident * page},
		{"privateBytes", (resident - shared) * page},
	};
	write_numbers(writer, "memory", numbers, ARRAY_LENGTH(numbers));
}

/* What an agent's sandbox uses, if its profile has limits and a cgroup enforces them. */
static void write_used(struct json_writer *writer, const struct peer *peer)
{
	struct group_usage used;
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	json_write_key(writer, "used");
	if (!sandbox || !sandbox_usage(sandbox, &used)) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_member_int(writer, "cpuMs", used.cpu_ms);
	if (used.has_memory) {
		json_write_member_int(writer, "memoryBytes", used.memory_bytes);
		json_write_member_int(writer, "peakMemoryBytes", used.peak_bytes);
	}
	if (used.has_processes) {
		json_write_member_int(writer, "processes", used.processes);
	}
	json_write_object_end(writer);
}

static void write_agents(struct json_writer *writer, struct relay *relay)
{
	json_write_key(writer, "agents");
	json_write_array(writer);
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		json_write_object(writer);
		json_write_member_int(writer, "pid", agent_process(peer->agent));
		write_used(writer, peer);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

void usage_report_call(struct relay *relay, const struct call *call)
{
	struct buf out;
	struct error err;
	struct json_writer writer;
	struct session *session = relay_session_of(relay, &call->message);
	if (!session && message_hit(&call->message, PLACE_SESSION_ID)) {
		relay_fail(relay, call->message.id,
			failure_set(&err, "INVALID_PARAMS", "session",
				"params.sessionId names no session"));
		return;
	}
	buf_init(&out, SIZE_MAX / 2);
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	json_write_member(&writer, "since", relay->usage.since);
	write_counts(&writer, &relay->usage.total);
	write_bytes(&writer, relay);
	write_syncs(&writer, &relay->usage.syncs);
	write_memory(&writer);
	write_agents(&writer, relay);
	json_write_key(&writer, "sessions");
	json_write_array(&writer);
	if (session) {
		write_session(&writer, session);
	} else {
		session_table_visit(&relay->sessions, NULL, write_session, &writer);
	}
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, &err)) {
		relay_answer(relay, call->message.id, buf_span(&out));
	} else {
		relay_fail(relay, call->message.id, error_at(&err, "session"));
	}
	buf_finish(&out);
}
