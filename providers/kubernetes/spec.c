/* SPDX-License-Identifier: MIT */
#include "providers/kubernetes/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "providers/exec/profile.h"

enum { NUMBER_SIZE = 24, GRACE_S = 2, MS = 1000 };

static const char volume[] = "workspace";

/* Writes a text in which a "%" stands for itself. */
static void write_doubled(struct json_writer *writer, const char *key, const char *text)
{
	struct buf doubled;
	buf_init(&doubled, KUBERNETES_SPEC_MAX);
	exec_append_literal(&doubled, span_of(text));
	json_write_member_string(writer, key, buf_span(&doubled));
	buf_finish(&doubled);
}

static void write_amount(struct json_writer *writer, const char *key, long long amount)
{
	char number[NUMBER_SIZE];
	text_whole(number, sizeof(number), "%lld", amount);
	json_write_member(writer, key, number);
}

/* Members of the same object from words NAME=VALUE. */
static void write_pairs(struct json_writer *writer, char *const *pairs)
{
	for (; pairs && *pairs; pairs++) {
		size_t len = strcspn(*pairs, "=");
		char *name = mem_strndup((struct span){*pairs, len});
		write_doubled(writer, name, *pairs + len + 1);
		free(name);
	}
}

static void write_metadata(struct json_writer *writer, const struct kubernetes_spec *spec,
	const char *key, const char *name)
{
	json_write_key(writer, "metadata");
	json_write_object(writer);
	json_write_member(writer, key, name);
	json_write_key(writer, "labels");
	json_write_object(writer);
	json_write_member(writer, KUBERNETES_MANAGED_BY, "acp-broker");
	json_write_member(writer, KUBERNETES_SANDBOX, "%n");
	json_write_object_end(writer);
	json_write_key(writer, "annotations");
	json_write_object(writer);
	write_doubled(writer, "acp-broker/profile", spec->profile);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

/* A user of the profile's is never root by mistake, and owns the volume. */
static void write_pod_rights(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	json_write_key(writer, "securityContext");
	json_write_object(writer);
	if (spec->user != KUBERNETES_IMAGE_USER) {
		json_write_member_int(writer, "runAsUser", spec->user);
		json_write_member_int(writer, "runAsGroup", spec->user);
		json_write_member_int(writer, "fsGroup", spec->user);
		json_write_member_bool(writer, "runAsNonRoot", true);
	}
	json_write_key(writer, "seccompProfile");
	json_write_object(writer);
	json_write_member(writer, "type", "RuntimeDefault");
	json_write_object_end(writer);
	json_write_object_end(writer);
}

/* root of an image keeps what it needs to install packages. Another user needs no capability. */
static void write_rights(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	static const char *const all[] = {"ALL", NULL};
	json_write_key(writer, "securityContext");
	json_write_object(writer);
	json_write_member_bool(writer, "privileged", false);
	json_write_member_bool(writer, "allowPrivilegeEscalation", false);
	if (spec->user != KUBERNETES_IMAGE_USER) {
		json_write_key(writer, "capabilities");
		json_write_object(writer);
		json_write_member_words(writer, "drop", all);
		json_write_object_end(writer);
	}
	json_write_object_end(writer);
}

/* Requests default to the limits. */
static void write_resources(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	json_write_key(writer, "resources");
	json_write_object(writer);
	json_write_key(writer, "limits");
	json_write_object(writer);
	if (spec->cpu > 0) {
		write_amount(writer, "cpu", spec->cpu);
	}
	if (spec->memory > 0) {
		write_amount(writer, "memory", spec->memory);
	}
	write_pairs(writer, spec->resources);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

/*
 * The first process sleeps, and as the parent of orphans collects them. It ends at once when the
 * pod does.
 */
static void write_container(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	static const char *const sleep[] = {"/bin/sh", "-c",
		"trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done", NULL};
	json_write_key(writer, "containers");
	json_write_array(writer);
	json_write_object(writer);
	json_write_member(writer, "name", KUBERNETES_CONTAINER);
	write_doubled(writer, "image", spec->image);
	json_write_member_words(writer, "command", sleep);
	write_rights(writer, spec);
	write_resources(writer, spec);
	json_write_key(writer, "volumeMounts");
	json_write_array(writer);
	json_write_object(writer);
	json_write_member(writer, "name", volume);
	write_doubled(writer, "mountPath", spec->folder);
	json_write_object_end(writer);
	json_write_array_end(writer);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

static void write_volumes(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	json_write_key(writer, "volumes");
	json_write_array(writer);
	json_write_object(writer);
	json_write_member(writer, "name", volume);
	json_write_key(writer, spec->storage > 0 ? "persistentVolumeClaim" : "emptyDir");
	json_write_object(writer);
	if (spec->storage > 0) {
		json_write_member(writer, "claimName", "%n");
	}
	json_write_object_end(writer);
	json_write_object_end(writer);
	json_write_array_end(writer);
}

static void write_pod(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	json_write_object(writer);
	json_write_member(writer, "apiVersion", "v1");
	json_write_member(writer, "kind", "Pod");
	write_metadata(writer, spec, "generateName", "%n-");
	json_write_key(writer, "spec");
	json_write_object(writer);
	json_write_member(writer, "restartPolicy", "Never");
	json_write_member_bool(writer, "automountServiceAccountToken", false);
	json_write_member_bool(writer, "enableServiceLinks", false);
	json_write_member_int(writer, "terminationGracePeriodSeconds", GRACE_S);
	if (spec->time_ms > 0) {
		json_write_member_int(
			writer, "activeDeadlineSeconds", (spec->time_ms + MS - 1) / MS);
	}
	if (spec->service_account) {
		write_doubled(writer, "serviceAccountName", spec->service_account);
	}
	json_write_key(writer, "nodeSelector");
	json_write_object(writer);
	write_pairs(writer, spec->node_selector);
	json_write_object_end(writer);
	write_pod_rights(writer, spec);
	write_container(writer, spec);
	write_volumes(writer, spec);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

static void write_claim(struct json_writer *writer, const struct kubernetes_spec *spec)
{
	static const char *const modes[] = {"ReadWriteOnce", NULL};
	json_write_object(writer);
	json_write_member(writer, "apiVersion", "v1");
	json_write_member(writer, "kind", "PersistentVolumeClaim");
	write_metadata(writer, spec, "name", "%n");
	json_write_key(writer, "spec");
	json_write_object(writer);
	json_write_member_words(writer, "accessModes", modes);
	if (spec->storage_class) {
		write_doubled(writer, "storageClassName", spec->storage_class);
	}
	json_write_key(writer, "resources");
	json_write_object(writer);
	json_write_key(writer, "requests");
	json_write_object(writer);
	write_amount(writer, "storage", spec->storage);
	json_write_object_end(writer);
	json_write_object_end(writer);
	json_write_object_end(writer);
	json_write_object_end(writer);
}

bool kubernetes_spec_write(
	const struct kubernetes_spec *spec, bool with_claim, struct buf *out, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	if (!with_claim) {
		write_pod(&writer, spec);
		return json_write_end(&writer, err);
	}
	json_write_object(&writer);
	json_write_member(&writer, "apiVersion", "v1");
	json_write_member(&writer, "kind", "List");
	json_write_key(&writer, "items");
	json_write_array(&writer);
	write_pod(&writer, spec);
	write_claim(&writer, spec);
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}
