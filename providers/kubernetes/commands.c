/* SPDX-License-Identifier: MIT */
#include "providers/kubernetes/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/words.h"
#include "providers/kubernetes/spec.h"
#include "providers/kubernetes/state.h"

enum {
	NAME_MAX_BYTES = 253,
	WORD_MAX = 512,
	VARIANT_MAX = 2 * KUBERNETES_SPEC_MAX,
	QUOTED_MAX = 96,
	USER_MAX = 2147483647
};

enum {
	KEY_CONTEXT,
	KEY_NAMESPACE,
	KEY_IMAGE,
	KEY_STORAGE,
	KEY_STORAGE_CLASS,
	KEY_CPU,
	KEY_MEMORY,
	KEY_RESOURCE,
	KEY_NODE_SELECTOR,
	KEY_SERVICE_ACCOUNT,
	KEY_USER,
	KEY_TIME,
	KEY_POD_TIMEOUT,
	KEY_RUNTIME_ROOT
};

const struct setting_key kubernetes_keys[KUBERNETES_KEYS] = {
	[KEY_CONTEXT] = {.name = "context",
		.type = SETTING_TEXT,
		.help = "the context of kubectl's configuration, which names the cluster"},
	[KEY_NAMESPACE] = {.name = "namespace",
		.type = SETTING_TEXT,
		.help = "the namespace of the pods"},
	[KEY_IMAGE] = {.name = "image", .type = SETTING_TEXT, .help = "the image of the pods"},
	[KEY_STORAGE] = {.name = "storage",
		.type = SETTING_BYTES,
		.min = 1 << 20,
		.max = 1LL << 50,
		.help = "size of a volume claim for the files, which outlives the pod"},
	[KEY_STORAGE_CLASS] = {.name = "storage-class",
		.type = SETTING_TEXT,
		.help = "the storage class of the volume claim; by default the cluster's own"},
	[KEY_CPU] = {.name = "cpu",
		.type = SETTING_COUNT,
		.min = 1,
		.max = 4096,
		.help = "processor time of everything in a pod, in processors"},
	[KEY_MEMORY] = {.name = "memory",
		.type = SETTING_BYTES,
		.min = 6 << 20,
		.max = 1LL << 50,
		.help = "memory of everything in a pod together"},
	[KEY_RESOURCE] = {.name = "resource",
		.type = SETTING_LIST,
		.help = "a further resource of the pod, such as nvidia.com/gpu=1"},
	[KEY_NODE_SELECTOR] = {.name = "node-selector",
		.type = SETTING_LIST,
		.help = "a label that the node must have, such as disk=ssd"},
	[KEY_SERVICE_ACCOUNT] = {.name = "service-account",
		.type = SETTING_TEXT,
		.help = "the service account of the pod, which gets no token of it"},
	[KEY_USER] = {.name = "user",
		.type = SETTING_COUNT,
		.min = 1,
		.max = USER_MAX,
		.help = "the user id in the pod; by default the image's user"},
	[KEY_TIME] = {.name = "time",
		.type = SETTING_DURATION,
		.min = EXEC_SECOND,
		.max = 24LL * EXEC_DAY,
		.help = "after which Kubernetes ends the pod"},
	[KEY_POD_TIMEOUT] = {.name = "pod-timeout",
		.type = SETTING_DURATION,
		.fallback = "10m",
		.min = EXEC_SECOND,
		.max = 7LL * EXEC_DAY,
		.help = "for a new pod, until it runs"},
	[KEY_RUNTIME_ROOT] = {.name = "runtime-root",
		.type = SETTING_TEXT,
		.fallback = "/acp-broker",
		.help = "the folder of the pod in which its volume is, with the workspaces"},
	EXEC_LINK_KEYS,
};

static const char *value_of(const struct settings *settings, int key)
{
	return settings_get(settings, kubernetes_keys[key].name);
}

static long long number_of(const struct settings *settings, int key, long long fallback)
{
	return value_of(settings, key) ? settings_number(settings, &kubernetes_keys[key])
	                               : fallback;
}

/* ---- values ---- */

static bool is_made_of(struct span text, const char *more, size_t max)
{
	static const char alphanumeric[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	for (size_t i = 0; i < text.len; i++) {
		bool is_plain = memchr(alphanumeric, text.data[i], sizeof(alphanumeric) - 1);
		if (!is_plain && (i == 0 || !text.data[i] || !strchr(more, text.data[i]))) {
			return false;
		}
	}
	return text.len > 0 && text.len <= max;
}

static bool refuse(int key, const char *expected, const char *value, struct error *err)
{
	char quoted[QUOTED_MAX];
	return error_set(err, ERROR_CONFIG, "%s: expected %s, got %s", kubernetes_keys[key].name,
		expected, setting_quote(quoted, sizeof(quoted), value));
}

/*
 * kubectl's current context and its namespace change whenever the user chooses others. Then the
 * broker would look for a running pod in another place, not find it there, and forget it.
 */
static bool check_place(const struct settings *settings, struct error *err)
{
	static const int needed[] = {KEY_CONTEXT, KEY_NAMESPACE, KEY_IMAGE};
	for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
		if (!value_of(settings, needed[i])) {
			return error_set(err, ERROR_CONFIG,
				"backend = kubernetes needs context, namespace and image, and "
				"there is no %s; kubectl config get-contexts prints the contexts",
				kubernetes_keys[needed[i]].name);
		}
	}
	const char *context = value_of(settings, KEY_CONTEXT);
	bool is_plain = strlen(context) <= WORD_MAX;
	for (const char *at = context; *at; at++) {
		is_plain = is_plain && (unsigned char)*at >= ' ' && *at != 0x7f;
	}
	return is_plain || refuse(KEY_CONTEXT, "the name of a context", context, err);
}

static bool check_names(const struct settings *settings, struct error *err)
{
	static const struct {
		int key;
		const char *more, *expected;
	} rows[] = {{KEY_NAMESPACE, "-", "the name of a namespace (letters, digits and -)"},
		{KEY_IMAGE, "._-/:@",
			"the name of an image (letters, digits and . _ - / : @, the first a letter "
			"or a digit)"},
		{KEY_STORAGE_CLASS, ".-", "the name of a storage class (letters, digits, . and -)"},
		{KEY_SERVICE_ACCOUNT, ".-",
			"the name of a service account (letters, digits, . and -)"}};
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		const char *value = value_of(settings, rows[i].key);
		if (value && !is_made_of(span_of(value), rows[i].more, WORD_MAX)) {
			return refuse(rows[i].key, rows[i].expected, value, err);
		}
	}
	return true;
}

static bool check_pairs(int key, char *const *pairs, const char *expected, struct error *err)
{
	for (; pairs && *pairs; pairs++) {
		size_t len = strcspn(*pairs, "=");
		const char *value = *pairs + len;
		if (!is_made_of((struct span){*pairs, len}, "._-/", NAME_MAX_BYTES) || !*value ||
			!is_made_of(span_of(value + 1), "._-", NAME_MAX_BYTES)) {
			return refuse(key, expected, *pairs, err);
		}
	}
	return true;
}

static bool check_settings(
	const struct settings *settings, const struct kubernetes_spec *spec, struct error *err)
{
	if (spec->storage_class && spec->storage == 0) {
		return error_set(err, ERROR_CONFIG,
			"storage-class needs storage, the size of the volume claim");
	}
	if (spec->folder[0] != '/' || strchr(spec->folder, ':')) {
		return refuse(
			KEY_RUNTIME_ROOT, "an absolute path without a colon", spec->folder, err);
	}
	return check_place(settings, err) && check_names(settings, err) &&
	       check_pairs(KEY_RESOURCE, spec->resources, "NAME=AMOUNT, such as nvidia.com/gpu=1",
		       err) &&
	       check_pairs(KEY_NODE_SELECTOR, spec->node_selector, "LABEL=VALUE, such as disk=ssd",
		       err);
}

/* ---- the commands ---- */

static void set_words(struct exec_profile *profile, const struct settings *settings,
	enum exec_verb verb, const char *const *more)
{
	char ***words = &profile->words[verb];
	words_append(words, "kubectl");
	exec_add_literal(words, "--context=", value_of(settings, KEY_CONTEXT));
	exec_add_literal(words, "--namespace=", value_of(settings, KEY_NAMESPACE));
	words_append_all(words, more);
}

/*
 * The user's own defaults for kubectl (kuberc) may ask before they delete, and then delete nothing.
 * Without a claim there is nothing to which a stopped sandbox could return, so its pod stays until
 * it is destroyed.
 */
static void add_commands(
	struct exec_profile *profile, const struct settings *settings, bool has_claim)
{
	static const char container[] = "--container=" KUBERNETES_CONTAINER;
	static const char selector[] = "--selector=" KUBERNETES_SANDBOX "=%n";
	static const char names[] = "--output=go-template={{.metadata.name}}{{\"\\n\"}}";
	const char *kinds = has_claim ? "pods,persistentvolumeclaims" : "pods";
	const char *const create[] = {"create", "--filename=-", names, NULL};
	const char *const exec[] = {"exec", "--stdin", container, "%i", "--", NULL};
	const char *const stop[] = {
		"delete", "pods", selector, "--wait=true", "--interactive=false", NULL};
	const char *const destroy[] = {
		"delete", kinds, selector, "--wait=true", "--interactive=false", NULL};
	const char *const state[] = {"get", kinds, selector, "--output=json", NULL};
	set_words(profile, settings, EXEC_START, create);
	set_words(profile, settings, EXEC_EXEC, exec);
	if (has_claim) {
		set_words(profile, settings, EXEC_RESTART, create);
		set_words(profile, settings, EXEC_STOP, stop);
	}
	set_words(profile, settings, EXEC_DESTROY, destroy);
	set_words(profile, settings, EXEC_STATE, state);
}

static bool add_input(struct exec_profile *profile, enum exec_verb verb,
	const struct kubernetes_spec *spec, bool with_claim, struct error *err)
{
	struct buf text;
	buf_init(&text, KUBERNETES_SPEC_MAX);
	bool is_ok = kubernetes_spec_write(spec, with_claim, &text, err);
	if (is_ok) {
		profile->input[verb] = mem_strndup(buf_span(&text));
	}
	buf_finish(&text);
	return is_ok;
}

/* Another pod, or a pod in another place, is another sandbox. */
static void set_variant(struct exec_profile *profile, const struct settings *settings)
{
	struct buf text;
	buf_init(&text, VARIANT_MAX);
	(void)!buf_append_format(&text, NULL, "%s %s %s", value_of(settings, KEY_CONTEXT),
		value_of(settings, KEY_NAMESPACE), profile->input[EXEC_START]);
	profile->variant = mem_strndup(buf_span(&text));
	buf_finish(&text);
}

/* KUBECONFIG is part of it because several clusters may have a context of one name. */
static void set_reach(struct exec_profile *profile, const struct settings *settings, bool has_claim)
{
	const char *files = environment_get((const char *const *)profile->env, "KUBECONFIG");
	struct buf text;
	buf_init(&text, VARIANT_MAX);
	if (!buf_append_format(&text, NULL,
		    "context = %s, namespace = %s, %s storage, KUBECONFIG=%s",
		    value_of(settings, KEY_CONTEXT), value_of(settings, KEY_NAMESPACE),
		    has_claim ? "with" : "without", files ? files : "")) {
		buf_clear(&text);
	}
	profile->reach = mem_strndup(buf_span(&text));
	buf_finish(&text);
}

static bool read_spec(struct exec_profile *profile, const struct settings *settings,
	const struct kubernetes_spec *spec, struct error *err)
{
	bool has_claim = spec->storage > 0;
	if (!check_settings(settings, spec, err) ||
		!add_input(profile, EXEC_START, spec, has_claim, err) ||
		(has_claim && !add_input(profile, EXEC_RESTART, spec, false, err))) {
		return false;
	}
	add_commands(profile, settings, has_claim);
	set_variant(profile, settings);
	set_reach(profile, settings, has_claim);
	profile->wait_key = kubernetes_keys[KEY_POD_TIMEOUT].name;
	profile->wait_ms = settings_number(settings, &kubernetes_keys[KEY_POD_TIMEOUT]);
	profile->has_unknown_user = spec->user != KUBERNETES_IMAGE_USER;
	mem_set_text(&profile->runtime_root, spec->folder);
	return true;
}

static bool read_commands(struct exec_profile *profile, const struct settings *settings,
	const struct provider_context *context, struct error *err)
{
	const char *folder = value_of(settings, KEY_RUNTIME_ROOT);
	const struct kubernetes_spec spec = {.profile = profile->name,
		.image = value_of(settings, KEY_IMAGE),
		.folder = folder ? folder : kubernetes_keys[KEY_RUNTIME_ROOT].fallback,
		.service_account = value_of(settings, KEY_SERVICE_ACCOUNT),
		.storage_class = value_of(settings, KEY_STORAGE_CLASS),
		.node_selector =
			words_of_settings(settings, kubernetes_keys[KEY_NODE_SELECTOR].name),
		.resources = words_of_settings(settings, kubernetes_keys[KEY_RESOURCE].name),
		.cpu = number_of(settings, KEY_CPU, 0),
		.memory = number_of(settings, KEY_MEMORY, 0),
		.storage = number_of(settings, KEY_STORAGE, 0),
		.user = number_of(settings, KEY_USER, KUBERNETES_IMAGE_USER),
		.time_ms = number_of(settings, KEY_TIME, 0)};
	bool is_ok = read_spec(profile, settings, &spec, err);
	words_free(spec.node_selector);
	words_free(spec.resources);
	return is_ok;
}

const struct exec_platform kubernetes_platform = {
	.name = "kubernetes",
	.read = read_commands,
	.read_state = kubernetes_read_state,
	.read_name = kubernetes_read_name,
	.keeps_files = true,
};
