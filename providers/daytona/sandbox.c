/* SPDX-License-Identifier: MIT */
#include "providers/daytona/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/daytona/sandbox_impl.h"
#include "providers/ssh/sandbox.h"

enum {
	CHANNELS_MAX = 256, // over the single connection: the gateway has no limit of its own
	ALIVE_INTERVAL_MS = 15000,
	ALIVE_COUNT = 4,
	PATH_SIZE = 4096,
	CONNECTS_MAX = 4,
	FIRST_CHANNEL_MS = 2000, // for a sandbox that has just started; doubled each time
	SHORT_MS = 5000,         // a failure within this time is a quick one
};

static const double connect_pause_s = 0.3; // doubled each time

struct daytona_place *daytona_place_of(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct daytona_place, sandbox);
}

/* The caller must return at once, because the place may be freed. */
void daytona_place_fail(struct daytona_place *place, const struct error *err)
{
	struct error copy = *err;
	place->is_over = true;
	place->listener->on_failed(place->data, &copy);
}

static void on_progress(void *data, const char *text)
{
	struct daytona_place *place = data;
	if (place->listener->on_progress && !place->is_ending) {
		place->listener->on_progress(place->data, text);
	}
}

static void on_warning(void *data, const char *text)
{
	struct daytona_place *place = data;
	sandbox_warn(&place->sandbox, text);
}

static const struct sandbox_impl runner_impl;

/* ---- inside ---- */

/*
 * While nobody is connected, the service stops the sandbox after auto-stop, and all in it ends. It
 * counts from the last activity that we have reported.
 */
static void tell_outlives(struct daytona_place *place)
{
	const char *text = sandbox_outlives(place->inner);
	long long auto_stop = daytona_auto_stop_seconds(place);
	long long seconds = auto_stop - daytona_touch_seconds(place);
	place->sandbox.outlives = text;
	if (place->inner->capabilities.outlives && seconds > 0 &&
		seconds < place->profile.grace_ms / 1000) {
		text_format(place->outlives, sizeof(place->outlives),
			"%llds, because of auto-stop = %llds, which is shorter than %s", seconds,
			auto_stop, text);
		place->sandbox.outlives = place->outlives;
	}
}

static void on_inner_ready(void *data)
{
	struct daytona_place *place = data;
	struct sandbox *sandbox = &place->sandbox;
	const struct sandbox *inner = place->inner;
	sandbox->home = inner->home;
	sandbox->environment = inner->environment;
	sandbox->capabilities = inner->capabilities;
	sandbox->capabilities.has_terminals = false;
	sandbox->no_terminals = "the login would get another sandbox than the agent";
	tell_outlives(place);
	sandbox->impl = inner->impl->forward ? &runner_impl : sandbox->impl;
	sandbox->reference = place->reference;
	sandbox->instance = daytona_box_id(place->box);
	sandbox->was_ready = true;
	const char *const *warnings = sandbox_warnings(inner);
	for (; warnings && *warnings; warnings++) {
		sandbox_warn(sandbox, *warnings);
	}
	char *remark = sandbox_take_remark(place->inner);
	if (remark) {
		sandbox_remark(sandbox, remark);
	}
	free(remark);
	daytona_touch_start(place);
	place->listener->on_ready(place->data);
}

/*
 * The service says that a sandbox runs before its sshd listens, and a gateway may be unreachable
 * for a moment. So after a quick failure, before anything was done in the sandbox, it connects
 * again a few times, each time with a new token. The same applies if our own short deadline for the
 * first channel has passed, however long connecting took.
 */
static bool connects_again(struct daytona_place *place, const struct error *err)
{
	long long now = clock_now_ms();
	double pause = connect_pause_s * (double)(1 << (place->connects - 1));
	bool is_hurried = place->is_hurried && err->code == ERROR_TIMEOUT;
	bool is_short = is_hurried || now - place->connect_ms < SHORT_MS;
	bool is_late =
		place->prepare_until_ms > 0 &&
		now + (long long)(pause * 1000) + FIRST_CHANNEL_MS >= place->prepare_until_ms;
	if (place->sandbox.was_ready || place->is_ending || place->is_lost || !is_short ||
		is_late || place->connects == CONNECTS_MAX ||
		(err->code != ERROR_UNAVAILABLE && err->code != ERROR_TIMEOUT)) {
		return false;
	}
	log_failure(LOG_LEVEL_INFO, err, "sandbox %s: %s: connecting again",
		daytona_box_name(place->box), err->text);
	ev_now_update(place->context->loop);
	ev_timer_set(&place->again, pause, 0.);
	ev_timer_start(place->context->loop, &place->again);
	return true;
}

static void on_inner_failed(void *data, const struct error *err)
{
	if (!connects_again(data, err)) {
		daytona_place_lose(data, err);
	}
}

static void on_notice(void *data, const char *text)
{
	struct daytona_place *place = data;
	if (place->listener->on_notice && !place->is_ending) {
		place->listener->on_notice(place->data, text);
	}
}

static void on_inner_link_lost(void *data, const char *name, const struct error *why)
{
	struct daytona_place *place = data;
	sandbox_note_link(&place->sandbox, false);
	daytona_gate_look(place->gate);
	if (place->listener->on_link_lost && !place->is_ending) {
		place->listener->on_link_lost(place->data, daytona_box_name(place->box), why);
	}
}

static void on_inner_link_back(void *data)
{
	struct daytona_place *place = data;
	sandbox_note_link(&place->sandbox, true);
	if (place->listener->on_link_back && !place->is_ending) {
		place->listener->on_link_back(place->data);
	}
}

static const struct sandbox_listener inner_listener = {
	.on_link_lost = on_inner_link_lost,
	.on_link_back = on_inner_link_back,
	.on_progress = on_progress,
	.on_notice = on_notice,
	.on_ready = on_inner_ready,
	.on_failed = on_inner_failed,
};

/* What `ssh -G` would print; the user's own ssh_config does not apply to this host. */
static void fill_target(struct daytona_place *place, struct ssh_target *target)
{
	const struct daytona_profile *profile = &place->profile;
	char known_hosts[PATH_SIZE];
	text_whole(known_hosts, sizeof(known_hosts), "%s/daytona/known_hosts",
		place->context->state_folder);
	*target = (struct ssh_target){.alias = mem_strdup(daytona_gate_host(place->gate)),
		.host = mem_strdup(daytona_gate_host(place->gate)),
		.port = daytona_gate_port(place->gate),
		.user = mem_strdup(""),
		.user_is_secret = true,
		.identity_files = mem_alloc_zero(sizeof(char *)),
		.identities_only = true,
		.global_known_hosts_files = mem_alloc_zero(sizeof(char *)),
		.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW,
		.host_key_pin = mem_strdup_or_null(profile->host_key),
		.set_env = mem_alloc_zero(sizeof(char *)),
		.connect_timeout_ms = profile->connect_timeout_ms,
		.auth_timeout_ms = profile->auth_timeout_ms,
		.alive_interval_ms = ALIVE_INTERVAL_MS,
		.alive_count_max = ALIVE_COUNT,
		.client = SSH_CLIENT_LIBSSH2,
		.allows_none = true};
	words_append(&target->user_known_hosts_files, known_hosts);
}

static void open_inner(struct daytona_place *place)
{
	const struct daytona_profile *profile = &place->profile;
	struct error err;
	struct ssh_target target;
	struct sandbox_request request = {.profile = profile->name,
		.settings = &profile->settings,
		.for_session = place->is_for_session};
	bool is_last = place->connects == CONNECTS_MAX - 1;
	bool is_young = daytona_box_has_acted(place->box) && !is_last;
	long long first_ms = is_young ? (long long)FIRST_CHANNEL_MS << place->connects : 0;
	struct ssh_sandbox_settings settings = {
		.first_timeout_ms = first_ms < profile->channel_timeout_ms ? first_ms : 0,
		.runtime_root = profile->runtime_root,
		.grace_ms = profile->grace_ms,
		.channel_timeout_ms = profile->channel_timeout_ms,
		.login_timeout_ms = profile->login_timeout_ms,
		.max_connections = 1,
		.wants_runner = profile->wants_runner,
		.outlives = profile->outlives,
		.names_outlives = profile->outlives,
		.orphan_ms = profile->orphan_ms,
		.connect = ssh_connect,
		.admission = &daytona_admission,
		.admission_data = place->gate,
		.stderr_apart = true,
		.max_channels = CHANNELS_MAX,
		.runs = &place->shared->runs,
		.place = daytona_box_id(place->box)};
	fill_target(place, &target);
	place->is_hurried = settings.first_timeout_ms > 0;
	place->connects++;
	place->connect_ms = clock_now_ms();
	place->inner = ssh_sandbox_open(
		place->context, &request, &settings, &target, &inner_listener, place, &err);
	if (!place->inner) {
		daytona_place_fail(place, &err);
	}
}

static void on_gate_open(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (err) {
		daytona_place_lose(place, err);
	} else {
		open_inner(place);
	}
}

/* ---- on the platform ---- */

static void on_claimed_again(void *data, const struct error *err);

/* The sandbox is gone. Its note is gone too, unless the broker could not remove it. */
static void on_forgotten(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (place->is_over) {
		daytona_end_without(place);
	} else {
		daytona_place_fail(place, &place->lost);
	}
}

static void on_alone_without(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (err) {
		on_forgotten(place, NULL);
	} else {
		daytona_claim_forget(place->claim, on_forgotten);
	}
}

static void open_gate(struct daytona_place *place)
{
	mem_set_text(&place->reference, daytona_box_name(place->box));
	place->gate = daytona_gate_open(
		&(struct daytona_gate_config){
			.context = place->context,
			.api = place->api,
			.profile = &place->profile,
			.id = daytona_box_id(place->box),
			.name = daytona_box_name(place->box),
			.data = place,
		},
		on_gate_open);
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct daytona_place *place = CONTAINER_OF(timer, struct daytona_place, again);
	sandbox_close(place->inner);
	place->inner = NULL;
	daytona_gate_destroy(place->gate);
	place->gate = NULL;
	open_gate(place);
}

static void on_adopted(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (place->is_over) {
		daytona_end_go_on(place);
	} else if (err) {
		daytona_place_fail(place, err);
	} else {
		open_gate(place);
	}
}

static void on_brought(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	bool is_others = daytona_claim_others(place->claim) != NULL;
	bool is_gone = err && err->code == ERROR_NOT_FOUND && !daytona_box_is_another(place->box);
	if (is_gone && place->has_reference && !is_others) {
		place->lost = *err; // its note is removed, too
		daytona_claim_take_alone(place->claim, on_alone_without);
		return;
	}
	if (err) {
		daytona_place_fail(place, err);
		return;
	}
	if (!*daytona_box_id(place->box)) {
		daytona_claim_take(place->claim, daytona_box_name(place->box), on_claimed_again);
		return;
	}
	if (is_others) {
		daytona_claim_adopt(place->claim, on_adopted);
	} else {
		open_gate(place);
	}
}

static void on_claimed_again(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (place->is_over) {
		daytona_end_go_on(place);
	} else if (err) {
		daytona_place_fail(place, err);
	} else {
		daytona_box_bring(place->box, on_brought);
	}
}

static void on_claimed(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	if (place->is_over) {
		return; // withdrawn before anything was done, so nothing has to wait for its end
	}
	if (err) {
		daytona_place_fail(place, err);
		return;
	}
	const struct daytona_identity *identity = daytona_claim_identity(place->claim);
	bool is_new = place->profile.end == DAYTONA_END_DELETE;
	daytona_wanted_name(&place->wanted, &place->profile, identity);
	place->box = daytona_box_create(&(struct daytona_box_config){
		.loop = place->context->loop,
		.api = place->api,
		.profile = &place->profile,
		.identity = identity,
		.name = identity->name,
		.instance = place->instance,
		.create = place->has_reference ? NULL : &place->wanted.create,
		.wanted = &place->wanted.create,
		.network_is_required = place->wanted.policy.is_required,
		.query = place->has_reference || is_new ? NULL : place->wanted.query,
		.others = daytona_claim_others(place->claim),
		.on_progress = on_progress,
		.on_warning = on_warning,
		.data = place,
	});
	daytona_box_bring(place->box, on_brought);
}

static void claim(struct daytona_place *place)
{
	bool is_new = place->profile.end == DAYTONA_END_DELETE;
	struct daytona_account account;
	daytona_profile_account(&place->profile, &account);
	place->claim = daytona_claim_create(&(struct daytona_claim_config){
		.context = place->context,
		.profile = place->profile.name,
		.account = &account,
		.directory = place->directory,
		.reference = place->wanted_name,
		.is_new = is_new,
		.is_transient = is_new,
		.timeout_ms = place->profile.stop_timeout_ms,
		.data = place,
	});
	daytona_account_finish(&account);
	daytona_claim_take(place->claim, NULL, on_claimed);
}

static void on_opened(void *data, struct daytona_api *api, const struct error *err)
{
	struct daytona_place *place = data;
	place->opening = NULL;
	place->api = api;
	if (err) {
		struct error copy = *err;
		error_prefix(&copy, "profile \"%s\"", place->profile.name);
		daytona_place_fail(place, &copy);
	} else {
		claim(place);
	}
}

/* ---- life ---- */

static void close_sandbox(struct sandbox *sandbox)
{
	struct daytona_place *place = daytona_place_of(sandbox);
	daytona_use_finish(place);
	daytona_lost_finish(place);
	ev_timer_stop(place->context->loop, &place->again);
	sandbox_close(place->inner);
	daytona_gate_destroy(place->gate);
	daytona_box_destroy(place->box);
	daytona_claim_destroy(place->claim);
	daytona_opening_cancel(place->opening);
	daytona_api_destroy(place->api);
	daytona_wanted_finish(&place->wanted);
	daytona_profile_finish(&place->profile);
	free(place->reference);
	free(place->instance);
	free(place->directory);
	free(place->wanted_name);
	free(place);
}

/* A file operation belongs to the inner sandbox, which cancels it. */
static void cancel_file_op(struct file_op *op)
{
	file_op_cancel(op);
}

#define COMMON_CALLS                                                                               \
	.add_root = daytona_add_root, .exec = daytona_start_exec, .read_file = daytona_read_file,  \
	.write_file = daytona_write_file, .stat_file = daytona_stat_file,                          \
	.resolve_path = daytona_resolve_path, .file_op_cancel = cancel_file_op,                    \
	.close = close_sandbox, .destroy = daytona_destroy, .rest = daytona_rest,                  \
	.withdraw = daytona_withdraw, .suspend = daytona_suspend, .resume = daytona_resume,        \
	.by_signals = daytona_by_signals

static const struct sandbox_impl sandbox_impl = {COMMON_CALLS};

static void note_turn(struct sandbox *sandbox, bool is_open)
{
	sandbox_note_turn(daytona_place_of(sandbox)->inner, is_open);
}

static void drop_link(struct sandbox *sandbox)
{
	sandbox_drop_link(daytona_place_of(sandbox)->inner);
}

/* The inner sandbox has the runner. */
static const struct sandbox_impl runner_impl = {COMMON_CALLS, .note_turn = note_turn,
	.drop_link = drop_link, .forward = daytona_forward, .unforward = daytona_unforward};

static bool begin(
	struct daytona_place *place, const struct sandbox_request *request, struct error *err)
{
	if (!daytona_profile_read(&place->profile, request->profile, request->settings,
		    place->context->environment, err) ||
		!daytona_wanted_init(&place->wanted, &place->profile, err)) {
		return false;
	}
	if (request->reference && !daytona_name_is_valid(request->reference)) {
		return error_set(
			err, ERROR_CONFIG, "%s is not a sandbox's name", request->reference);
	}
	place->has_reference = request->reference != NULL;
	place->is_for_session = request->for_session;
	place->instance = mem_strdup_or_null(request->instance);
	place->directory = mem_strdup_or_null(request->directory);
	place->wanted_name = mem_strdup_or_null(request->reference);
	place->opening =
		daytona_opening_start(place->shared, &place->profile, on_opened, place, err);
	return place->opening != NULL;
}

struct sandbox *daytona_sandbox_open(struct daytona_shared *shared,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	struct daytona_place *place = mem_alloc_zero(sizeof(*place));
	sandbox_init(&place->sandbox, &sandbox_impl, shared->context->loop);
	place->context = shared->context;
	place->shared = shared;
	place->listener = listener;
	place->data = data;
	list_init(&place->execs);
	list_init(&place->adding);
	daytona_lost_init(place);
	ev_init(&place->again, on_again);
	int prepare_ms = request->prepare_timeout_ms;
	place->prepare_until_ms = prepare_ms > 0 ? clock_now_ms() + prepare_ms : 0;
	if (!begin(place, request, err)) {
		error_prefix(err, "profile \"%s\"", request->profile);
		sandbox_close(&place->sandbox);
		return NULL;
	}
	place->is_fleeting = place->profile.end == DAYTONA_END_DELETE && !place->profile.is_synced;
	return &place->sandbox;
}
