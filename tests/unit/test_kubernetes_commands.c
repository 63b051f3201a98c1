/* SPDX-License-Identifier: MIT */
#include "providers/kubernetes/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/words.h"
#include "tests/support/facts.h"

enum { LINE_MAX_BYTES = 1024 };

#define PLACE "context", "prod", "namespace", "agents", "image", "debian:12"

static const struct exec_values values = {.instance = "acp-1-x7", .proposed = "acp-1"};

/*
 * Reads a profile with these keys and values, "KEY", "VALUE", …, NULL; returns the error, or NULL.
 */
static const struct error *read_keys(struct exec_profile *profile, const char *const *keys)
{
	static const char *const environment[] = {"PATH=/bin", "KUBECONFIG=/k", NULL};
	static struct error err;
	struct settings settings;
	const struct provider_context context = {.environment = environment};
	settings_init(&settings);
	for (size_t i = 0; keys[i]; i += 2) {
		settings_add(&settings, keys[i], keys[i + 1], "test");
	}
	bool ok = exec_profile_read(
		profile, &kubernetes_platform, "a%i\"b", &settings, &context, &err);
	settings_finish(&settings);
	return ok ? NULL : &err;
}

/* The words of the command in one line. */
static const char *line_of(const struct exec_profile *profile, enum exec_verb verb)
{
	static char line[LINE_MAX_BYTES];
	char **argv = exec_profile_argv(profile, verb, &values, NULL);
	size_t used = 0;
	for (size_t i = 0; argv[i]; i++) {
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, "%s[%s]", i > 0 ? " " : "", argv[i]);
		assert_true(used < sizeof(line));
	}
	words_free(argv);
	return line;
}

#define KUBECTL "[kubectl] [--context=prod] [--namespace=agents] "
#define CREATE                                                                                     \
	KUBECTL "[create] [--filename=-] [--output=go-template={{.metadata.name}}{{\"\\n\"}}]"
#define SELECTED "[--selector=acp-broker/sandbox=acp-1]"

static void check_lines(const char *const *keys, const char *const lines[EXEC_VERBS])
{
	struct exec_profile profile;
	assert_null(read_keys(&profile, keys));
	for (int verb = 0; verb < EXEC_VERBS; verb++) {
		assert_int_equal(profile.words[verb] != NULL, lines[verb] != NULL);
		if (lines[verb]) {
			assert_string_equal(line_of(&profile, (enum exec_verb)verb), lines[verb]);
		}
	}
	assert_true(exec_profile_uses_name(&profile, EXEC_START));
	exec_profile_finish(&profile);
}

static void test_a_claim_outlives_the_pod_and_ends_with_the_sandbox(void **state)
{
	static const char *const keys[] = {PLACE, "storage", "1g", NULL};
	static const char *const lines[EXEC_VERBS] = {
		[EXEC_START] = CREATE,
		[EXEC_RESTART] = CREATE,
		[EXEC_EXEC] = KUBECTL "[exec] [--stdin] [--container=agent] [acp-1-x7] [--]",
		[EXEC_STOP] =
			KUBECTL "[delete] [pods] " SELECTED " [--wait=true] [--interactive=false]",
		[EXEC_DESTROY] = KUBECTL "[delete] [pods,persistentvolumeclaims] " SELECTED
					 " [--wait=true] [--interactive=false]",
		[EXEC_STATE] =
			KUBECTL "[get] [pods,persistentvolumeclaims] " SELECTED " [--output=json]",
	};
	check_lines(keys, lines);
}

static void test_without_a_claim_nothing_outlives_the_pod(void **state)
{
	static const char *const keys[] = {PLACE, NULL};
	static const char *const lines[EXEC_VERBS] = {
		[EXEC_START] = CREATE,
		[EXEC_EXEC] = KUBECTL "[exec] [--stdin] [--container=agent] [acp-1-x7] [--]",
		[EXEC_DESTROY] =
			KUBECTL "[delete] [pods] " SELECTED " [--wait=true] [--interactive=false]",
		[EXEC_STATE] = KUBECTL "[get] [pods] " SELECTED " [--output=json]",
	};
	check_lines(keys, lines);
}

/* ---- the manifest ---- */

static char *manifest_of(const char *const *keys, enum exec_verb verb)
{
	struct exec_profile profile;
	assert_null(read_keys(&profile, keys));
	char *text = exec_profile_input(&profile, verb, &values);
	exec_profile_finish(&profile);
	return text;
}

/* The raw value at "a.b.c"; elements of arrays are the first ones. */
static struct span at(const struct json_doc *doc, json_node from, const char *path)
{
	char copy[LINE_MAX_BYTES];
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *rest = copy, *name; (name = strsep(&rest, "/"));) {
		from = json_is(doc, from, JSON_ARRAY) ? json_first(doc, from) : from;
		from = json_get(doc, from, name);
	}
	return from == JSON_NODE_NONE ? (struct span){"absent", 6} : json_raw(doc, from);
}

struct expected {
	const char *path, *raw;
};

static void check_values(const struct json_doc *doc, json_node from, const struct expected *rows)
{
	for (; rows->path; rows++) {
		struct span found = at(doc, from, rows->path);
		if (!span_is(found, rows->raw)) {
			fail_msg("%s: %.*s", rows->path, (int)found.len, found.data);
		}
	}
}

static void test_a_pod_has_no_rights_and_its_name_and_labels_are_the_sandbox(void **state)
{
	static const char *const keys[] = {PLACE, NULL};
	static const struct expected rows[] = {{"kind", "\"Pod\""},
		{"metadata/generateName", "\"acp-1-\""},
		{"metadata/labels", "{\"app.kubernetes.io/managed-by\":\"acp-broker\","
				    "\"acp-broker/sandbox\":\"acp-1\"}"},
		{"metadata/annotations", "{\"acp-broker/profile\":\"a%i\\\"b\"}"},
		{"spec/restartPolicy", "\"Never\""}, {"spec/automountServiceAccountToken", "false"},
		{"spec/enableServiceLinks", "false"}, {"spec/hostNetwork", "absent"},
		{"spec/hostPID", "absent"}, {"spec/activeDeadlineSeconds", "absent"},
		{"spec/serviceAccountName", "absent"},
		{"spec/securityContext", "{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"},
		{"spec/containers/image", "\"debian:12\""}, {"spec/containers/env", "absent"},
		{"spec/containers/securityContext",
			"{\"privileged\":false,\"allowPrivilegeEscalation\":false}"},
		{"spec/containers/resources/limits", "{}"},
		{"spec/containers/volumeMounts/mountPath", "\"/acp-broker\""},
		{"spec/volumes/emptyDir", "{}"}, {NULL, NULL}};
	struct error err;
	char *text = manifest_of(keys, EXEC_START);
	struct json_doc *doc = json_doc_parse(span_of(text), &err);
	assert_non_null(doc);
	check_values(doc, 0, rows);
	json_doc_destroy(doc);
	free(text);
}

static void test_every_key_is_in_the_manifest(void **state)
{
	static const char *const keys[] = {PLACE, "storage", "10g", "storage-class", "fast", "cpu",
		"2", "memory", "1g", "resource", "nvidia.com/gpu=1", "node-selector", "disk=ssd",
		"service-account", "agent", "user", "1000", "time", "90m", "runtime-root", "/w%n",
		NULL};
	static const struct expected pod[] = {{"spec/activeDeadlineSeconds", "5400"},
		{"spec/serviceAccountName", "\"agent\""},
		{"spec/nodeSelector", "{\"disk\":\"ssd\"}"},
		{"spec/securityContext/runAsUser", "1000"},
		{"spec/securityContext/runAsGroup", "1000"},
		{"spec/securityContext/fsGroup", "1000"},
		{"spec/securityContext/runAsNonRoot", "true"},
		{"spec/containers/securityContext/capabilities/drop", "[\"ALL\"]"},
		{"spec/containers/resources/limits",
			"{\"cpu\":\"2\",\"memory\":\"1073741824\",\"nvidia.com/gpu\":\"1\"}"},
		{"spec/containers/volumeMounts/mountPath", "\"/w%n\""},
		{"spec/volumes/persistentVolumeClaim", "{\"claimName\":\"acp-1\"}"}, {NULL, NULL}};
	static const struct expected claim[] = {{"kind", "\"PersistentVolumeClaim\""},
		{"metadata/name", "\"acp-1\""}, {"spec/storageClassName", "\"fast\""},
		{"spec/resources/requests/storage", "\"10737418240\""}, {NULL, NULL}};
	struct error err;
	char *both = manifest_of(keys, EXEC_START), *one = manifest_of(keys, EXEC_RESTART);
	struct json_doc *doc = json_doc_parse(span_of(both), &err);
	assert_non_null(doc);
	json_node first = json_first(doc, json_get(doc, 0, "items"));
	assert_int_equal(json_count(doc, json_get(doc, 0, "items")), 2);
	check_values(doc, first, pod);
	check_values(doc, json_next(doc, first), claim);
	assert_true(span_is(json_raw(doc, first), one)); // the next pod is made in the same way
	json_doc_destroy(doc);
	free(both);
	free(one);
}

static void test_a_value_is_neither_an_option_nor_more_json(void **state)
{
	static const char *const cases[][2] = {{"context", "a\nb"}, {"namespace", "--x"},
		{"namespace", "a b"}, {"namespace", ""}, {"image", "-x"}, {"image", "a\"b"},
		{"storage-class", "a\\b"}, {"service-account", "\xc3\xa4"}, {"resource", "gpu"},
		{"resource", "=1"}, {"resource", "gpu="}, {"resource", "gpu=1=2"},
		{"node-selector", "a=b c"}, {"runtime-root", "~/x"}, {"runtime-root", "/a:b"}};
	struct exec_profile profile;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		const char *const keys[] = {PLACE, "storage", "1g", cases[i][0], cases[i][1], NULL};
		const struct error *err = read_keys(&profile, keys);
		assert_non_null(err);
		assert_int_equal(err->code, ERROR_CONFIG);
		assert_names(err->text, cases[i][0]);
	}
}

static void test_the_place_must_be_named(void **state)
{
	static const char *const keys[] = {PLACE, NULL};
	struct exec_profile profile;
	for (size_t missing = 0; missing < 6; missing += 2) {
		const char *some[7] = {NULL};
		size_t count = 0;
		for (size_t i = 0; i < 6; i++) {
			if (i / 2 != missing / 2) {
				some[count++] = keys[i];
			}
		}
		const struct error *err = read_keys(&profile, some);
		assert_non_null(err);
		assert_names(err->text, keys[missing]);
	}
	static const char *const alone[] = {PLACE, "storage-class", "fast", NULL};
	const struct error *err = read_keys(&profile, alone);
	assert_non_null(err);
	assert_names(err->text, "storage-class | storage");
}

static void test_another_pod_or_place_is_another_sandbox(void **state)
{
	static const char *const keys[][9] = {{PLACE, NULL}, {PLACE, "cpu", "2", NULL},
		{PLACE, "context", "test", NULL}, {PLACE, "namespace", "x", NULL},
		{PLACE, "storage", "1g", NULL}};
	char *seen[ARRAY_LENGTH(keys)];
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		struct exec_profile profile;
		assert_null(read_keys(&profile, keys[i]));
		seen[i] = mem_strdup(profile.variant);
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(seen[i], seen[k]);
		}
		exec_profile_finish(&profile);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		free(seen[i]);
	}
}

/* ---- what kubectl get prints ---- */

#define LIST(items) "{\"kind\":\"List\",\"items\":[" items "]}"
#define CLAIM "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\"}}"
#define ENDING_CLAIM                                                                               \
	"{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"deletionTimestamp\":\"t\"}}"
#define POD(name, created, status)                                                                 \
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"creationTimestamp\":\"" created   \
	"\"},\"status\":{" status "}}"
#define DELETED(status)                                                                            \
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"d\",\"deletionTimestamp\":\"t\"},"             \
	"\"status\":{" status "}}"
#define PHASE(phase) "\"phase\":\"" phase "\""
#define CONTAINER(state) "\"containerStatuses\":[{\"state\":{" state "}}]"
#define WAITING(reason)                                                                            \
	PHASE("Pending")                                                                           \
	"," CONTAINER("\"waiting\":{\"reason\":\"" reason "\",\"message\":"                        \
		      "\"m\"}")
#define TERMINATED(reason, code)                                                                   \
	PHASE("Failed")                                                                            \
	"," CONTAINER("\"terminated\":{\"reason\":\"" reason "\",\"exitCode\":" code "}")
#define CONDITION(type, value, reason)                                                             \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"" type              \
	"\",\"status\":\"" value "\",\"reason\":\"" reason "\",\"message\":\"m\"}]"

static const struct {
	const char *out;
	int state; // -1: none
	const char *says, *name;
} cases[] = {
	{LIST(""), EXEC_STATE_GONE, NULL, ""},
	{LIST(CLAIM), EXEC_STATE_STOPPED, NULL, ""},
	{LIST(ENDING_CLAIM), EXEC_STATE_WAITING, NULL, ""},
	{LIST(POD("p", "1", PHASE("Running"))), EXEC_STATE_RUNNING, "Running", "p"},
	{LIST(CLAIM "," POD("p", "1", PHASE("Running"))), EXEC_STATE_RUNNING, "Running", "p"},
	{LIST(POD("p", "1", PHASE("Running") "," CONTAINER("\"running\":{}"))), EXEC_STATE_RUNNING,
		"Running", "p"},
	{LIST(POD("p", "1",
		 PHASE("Running") "," CONTAINER("\"terminated\":{\"reason\":\"Error\"}"))),
		EXEC_STATE_WAITING, "Running (Error)", ""},
	{LIST(POD("p", "1", PHASE("Pending"))), EXEC_STATE_WAITING, "Pending", ""},
	{LIST(POD("p", "1",
		 PHASE("Pending") "," CONDITION("PodScheduled", "False", "Unschedulable"))),
		EXEC_STATE_WAITING, "Pending (Unschedulable: m)", ""},
	{LIST(POD("p", "1", PHASE("Pending") "," CONDITION("PodScheduled", "True", ""))),
		EXEC_STATE_WAITING, "Pending", ""},
	{LIST(POD("p", "1", WAITING("ContainerCreating"))), EXEC_STATE_WAITING,
		"Pending (ContainerCreating: m)", ""},
	{LIST(POD("p", "1", WAITING("ErrImagePull"))), EXEC_STATE_WAITING,
		"Pending (ErrImagePull: m)", ""},
	{LIST(POD("p", "1", WAITING("ImagePullBackOff"))), EXEC_STATE_GONE,
		"Pending (ImagePullBackOff: m)", ""},
	{LIST(POD("p", "1",
		 WAITING("InvalidImageName") "," CONDITION(
			 "PodScheduled", "False", "Unschedulable"))),
		EXEC_STATE_GONE, "Pending (InvalidImageName: m)", ""},
	{LIST(CLAIM "," POD("p", "1", WAITING("CreateContainerConfigError"))), EXEC_STATE_STOPPED,
		"Pending (CreateContainerConfigError: m)", ""},
	{LIST(POD("p", "1", TERMINATED("OOMKilled", "137"))), EXEC_STATE_GONE,
		"Failed (OOMKilled), exit status 137", ""},
	{LIST(CLAIM "," POD("p", "1", TERMINATED("OOMKilled", "137"))), EXEC_STATE_STOPPED,
		"Failed (OOMKilled), exit status 137", ""},
	{LIST(POD("p", "1",
		 "\"reason\":\"Evicted\",\"message\":\"low\"," TERMINATED("Error", "137"))),
		EXEC_STATE_GONE, "Failed (Evicted: low)", ""},
	{LIST(POD("p", "1", "\"reason\":\"DeadlineExceeded\"," PHASE("Failed"))), EXEC_STATE_GONE,
		"Failed (DeadlineExceeded)", ""},
	{LIST(POD("p", "1",
		 CONDITION("DisruptionTarget", "True", "PreemptionByScheduler") "," TERMINATED(
			 "Error", "143"))),
		EXEC_STATE_GONE, "Failed (PreemptionByScheduler: m)", ""},
	{LIST(POD("p", "1", PHASE("Succeeded"))), EXEC_STATE_GONE, "Succeeded", ""},
	{LIST(POD("p", "1", PHASE("Unknown"))), EXEC_STATE_WAITING, "Unknown", ""},
	{LIST(DELETED(PHASE("Running"))), EXEC_STATE_WAITING, "Terminating", ""},
	{LIST(DELETED(PHASE("Failed"))), EXEC_STATE_GONE, "Failed", ""},
	{LIST(DELETED(PHASE("Running")) "," POD("p", "2", PHASE("Running"))), EXEC_STATE_RUNNING,
		"Running", "p"},
	{LIST(POD("p", "1", PHASE("Running")) "," POD("q", "2", PHASE("Failed"))),
		EXEC_STATE_RUNNING, "Running", "p"},
	{LIST(POD("p", "2", PHASE("Failed")) "," POD("q", "1", PHASE("Succeeded"))),
		EXEC_STATE_GONE, "Failed", ""},
	{LIST(POD("p", "1", PHASE("Running")) "," POD("q", "2", PHASE("Running"))),
		EXEC_STATE_RUNNING, "Running", "q"},
	{LIST(POD("p", "1", "\"reason\":\"a\\u001b[2Jb\"," PHASE("Failed"))), EXEC_STATE_GONE,
		"Failed (a [2Jb)", ""},
	{"", -1, "", ""},
	{"No resources found", -1, "", ""},
	{"{}", -1, "", ""},
	{LIST("{}"), -1, "", ""},
	{LIST("1"), -1, "", ""},
	{LIST("{\"kind\":\"Secret\"}"), -1, "", ""},
	{LIST(POD("p", "1", PHASE("Asleep"))), -1, "", ""},
	{LIST(POD("p", "1", PHASE("Running"))) "x", -1, "", ""},
};

static void test_the_state_is_that_of_the_pod_that_has_not_ended(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		enum exec_state found = EXEC_STATE_GONE;
		char says[EXEC_SAYS_SIZE] = "";
		struct span out = span_of(cases[i].out);
		bool ok = kubernetes_platform.read_state(out, &found, says);
		assert_int_equal(ok ? (int)found : -1, cases[i].state);
		if (cases[i].says) {
			assert_string_equal(says, cases[i].says); // exact: the API's own words
		}
		assert_true(span_is(kubernetes_platform.read_name(out), cases[i].name));
	}
}

static void test_a_long_message_keeps_its_beginning(void **state)
{
	char out[8192], says[EXEC_SAYS_SIZE] = "", long_text[4096];
	enum exec_state found;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	snprintf(out, sizeof(out),
		LIST(POD("p", "1", "\"reason\":\"Evicted\",\"message\":\"%s\"," PHASE("Failed"))),
		long_text);
	assert_true(kubernetes_platform.read_state(span_of(out), &found, says));
	assert_int_equal(strncmp(says, "Failed (Evicted: xxx", 20), 0);
	assert_int_equal(says[strlen(says) - 1], ')');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_claim_outlives_the_pod_and_ends_with_the_sandbox),
		cmocka_unit_test(test_without_a_claim_nothing_outlives_the_pod),
		cmocka_unit_test(test_a_pod_has_no_rights_and_its_name_and_labels_are_the_sandbox),
		cmocka_unit_test(test_every_key_is_in_the_manifest),
		cmocka_unit_test(test_a_value_is_neither_an_option_nor_more_json),
		cmocka_unit_test(test_the_place_must_be_named),
		cmocka_unit_test(test_another_pod_or_place_is_another_sandbox),
		cmocka_unit_test(test_the_state_is_that_of_the_pod_that_has_not_ended),
		cmocka_unit_test(test_a_long_message_keeps_its_beginning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
