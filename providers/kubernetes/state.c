/* SPDX-License-Identifier: MIT */
#include "providers/kubernetes/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json_doc.h"
#include "base/text.h"

enum { WORD_MAX = 64, MESSAGE_MAX = 160 };

/* In the order in which one pod of several decides. */
enum pod_state { POD_ENDED, POD_WAITING, POD_RUNNING };

struct pod {
	enum pod_state state;
	char says[EXEC_SAYS_SIZE];
	struct span name, created; // raw; they point into the output
};

struct found {
	bool has_pod;
	bool has_claim;
	bool is_claim_ending;
	struct pod pod; // the one that decides
};

/* ---- words ---- */

/* The beginning of a string as printable text, or "". */
static void take_words(const struct json_doc *doc, json_node node, char *out, size_t max)
{
	char *text = json_string(doc, node);
	struct span words = span_of(text ? text : "");
	out[0] = '\0';
	words.len = words.len < max ? words.len : max;
	io_keep_words(out, max, words);
	free(text);
}

/* Says "PHASE (REASON: MESSAGE)", as far as `from` has a reason and a message. */
static void say(const struct json_doc *doc, struct pod *pod, const char *phase, json_node from)
{
	char reason[WORD_MAX + 1], message[MESSAGE_MAX + 1];
	take_words(doc, json_get(doc, from, "reason"), reason, WORD_MAX);
	take_words(doc, json_get(doc, from, "message"), message, MESSAGE_MAX);
	bool has_both = reason[0] && message[0];
	text_format(pod->says, sizeof(pod->says), reason[0] || message[0] ? "%s (%s%s%s)" : "%s",
		phase, reason, has_both ? ": " : "", message);
}

static bool has_reason(const struct json_doc *doc, json_node from)
{
	struct span reason = json_raw(doc, json_get(doc, from, "reason"));
	return json_is(doc, json_get(doc, from, "reason"), JSON_STRING) && reason.len > 2;
}

/* ---- a pod ---- */

static json_node find_condition(
	const struct json_doc *doc, json_node status, const char *type, const char *value)
{
	json_node list = json_get(doc, status, "conditions");
	for (json_node one = json_first(doc, list); one != JSON_NODE_NONE;
		one = json_next(doc, one)) {
		if (json_string_is(doc, json_get(doc, one, "type"), type) &&
			json_string_is(doc, json_get(doc, one, "status"), value)) {
			return one;
		}
	}
	return JSON_NODE_NONE;
}

/* The state of the only container: "waiting", "running" or "terminated". */
static json_node container_state(const struct json_doc *doc, json_node status, const char *which)
{
	json_node list = json_get(doc, status, "containerStatuses");
	return json_get(doc, json_get(doc, json_first(doc, list), "state"), which);
}

/* kubelet tries these again and again, but only the profile or the cluster's owner can help. */
static bool is_hopeless(const struct json_doc *doc, json_node waiting)
{
	static const char *const reasons[] = {"ImagePullBackOff", "InvalidImageName",
		"ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"};
	json_node reason = json_get(doc, waiting, "reason");
	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		if (json_string_is(doc, reason, reasons[i])) {
			return true;
		}
	}
	return false;
}

static void judge_pending(const struct json_doc *doc, json_node status, struct pod *pod)
{
	json_node waiting = container_state(doc, status, "waiting");
	json_node unscheduled = find_condition(doc, status, "PodScheduled", "False");
	bool is_over = is_hopeless(doc, waiting);
	pod->state = is_over ? POD_ENDED : POD_WAITING;
	say(doc, pod, "Pending", is_over || unscheduled == JSON_NODE_NONE ? waiting : unscheduled);
}

/* The pod's own reason says more than the container's, which then was only killed. */
static void judge_ended(
	const struct json_doc *doc, json_node status, struct pod *pod, const char *phase)
{
	json_node terminated = container_state(doc, status, "terminated");
	json_node disruption = find_condition(doc, status, "DisruptionTarget", "True");
	json_node code = json_get(doc, terminated, "exitCode");
	pod->state = POD_ENDED;
	if (has_reason(doc, status)) {
		say(doc, pod, phase, status);
	} else if (has_reason(doc, disruption)) {
		say(doc, pod, phase, disruption);
	} else {
		say(doc, pod, phase, terminated);
		if (code != JSON_NODE_NONE) {
			text_append(pod->says, sizeof(pod->says), ", exit status %lld",
				json_int(doc, code, -1));
		}
	}
}

/* False: it names no phase that we know. */
static bool judge(const struct json_doc *doc, json_node item, struct pod *pod)
{
	json_node status = json_get(doc, item, "status");
	json_node phase = json_get(doc, status, "phase");
	if (json_string_is(doc, phase, "Succeeded")) {
		judge_ended(doc, status, pod, "Succeeded");
	} else if (json_string_is(doc, phase, "Failed")) {
		judge_ended(doc, status, pod, "Failed");
	} else if (json_path(doc, item, "metadata.deletionTimestamp") != JSON_NODE_NONE) {
		pod->state = POD_WAITING; // its processes may still run
		say(doc, pod, "Terminating", status);
	} else if (json_string_is(doc, phase, "Pending")) {
		judge_pending(doc, status, pod);
	} else if (json_string_is(doc, phase, "Running")) {
		json_node terminated = container_state(doc, status, "terminated");
		pod->state = terminated == JSON_NODE_NONE ? POD_RUNNING : POD_WAITING;
		say(doc, pod, "Running", terminated);
	} else if (json_string_is(doc, phase, "Unknown")) {
		pod->state = POD_WAITING;
		say(doc, pod, "Unknown", status);
	} else {
		return false;
	}
	return true;
}

/* ---- all of them ---- */

static struct span inside(struct span quoted)
{
	return quoted.len > 2 ? (struct span){quoted.data + 1, quoted.len - 2}
	                      : (struct span){"", 0};
}

static bool is_later(struct span a, struct span b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len > 0 ? memcmp(a.data, b.data, len) : 0;
	return order > 0 || (order == 0 && a.len > b.len);
}

static bool take_item(const struct json_doc *doc, json_node item, struct found *found)
{
	json_node kind = json_get(doc, item, "kind");
	json_node ending = json_path(doc, item, "metadata.deletionTimestamp");
	struct pod pod = {.state = POD_ENDED};
	if (json_string_is(doc, kind, "PersistentVolumeClaim")) {
		found->has_claim = true;
		found->is_claim_ending = ending != JSON_NODE_NONE;
		return true;
	}
	if (!json_string_is(doc, kind, "Pod") || !judge(doc, item, &pod)) {
		return false;
	}
	pod.name = inside(json_raw(doc, json_path(doc, item, "metadata.name")));
	pod.created = inside(json_raw(doc, json_path(doc, item, "metadata.creationTimestamp")));
	if (!found->has_pod || pod.state > found->pod.state ||
		(pod.state == found->pod.state && is_later(pod.created, found->pod.created))) {
		found->pod = pod;
	}
	found->has_pod = true;
	return true;
}

static bool read_list(struct span out, struct found *found)
{
	struct error ignored;
	struct json_doc *doc = json_doc_parse(out, &ignored);
	json_node items = doc ? json_get(doc, 0, "items") : JSON_NODE_NONE;
	bool is_ok = doc && json_is(doc, items, JSON_ARRAY);
	*found = (struct found){.pod = {.says = "it has no pod"}};
	for (json_node item = is_ok ? json_first(doc, items) : JSON_NODE_NONE;
		is_ok && item != JSON_NODE_NONE; item = json_next(doc, item)) {
		is_ok = take_item(doc, item, found);
	}
	json_doc_destroy(doc);
	return is_ok;
}

bool kubernetes_read_state(struct span out, enum exec_state *out_state, char says[EXEC_SAYS_SIZE])
{
	struct found found;
	if (!read_list(out, &found)) {
		return false;
	}
	memcpy(says, found.pod.says, sizeof(found.pod.says));
	if (found.has_pod && found.pod.state == POD_RUNNING) {
		*out_state = EXEC_STATE_RUNNING;
	} else if (found.has_pod && found.pod.state == POD_WAITING) {
		*out_state = EXEC_STATE_WAITING;
	} else if (found.is_claim_ending) {
		*out_state = EXEC_STATE_WAITING;
		text_format(says, EXEC_SAYS_SIZE, "its volume claim is being deleted");
	} else {
		*out_state = found.has_claim ? EXEC_STATE_STOPPED : EXEC_STATE_GONE;
	}
	return true;
}

struct span kubernetes_read_name(struct span out)
{
	struct found found;
	bool runs = read_list(out, &found) && found.has_pod && found.pod.state == POD_RUNNING;
	return runs ? found.pod.name : (struct span){"", 0};
}
