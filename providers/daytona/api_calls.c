/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_impl.h"
#include "providers/daytona/api_read.h"
#include "providers/daytona/api_write.h"

/* ---- results ---- */

static bool read_sandbox(
	struct daytona_call *call, const struct http_answer *answer, struct error *err)
{
	struct daytona_told_sandbox told;
	if (!daytona_read_sandbox(answer->body, &told, err)) {
		return false;
	}
	daytona_sandbox_done *done = call->raise.sandbox;
	void *data = call->data;
	daytona_call_free(call);
	done(data, &told.sandbox, NULL);
	daytona_told_sandbox_finish(&told);
	return true;
}

static void fail_sandbox(struct daytona_call *call, const struct error *err)
{
	daytona_sandbox_done *done = call->raise.sandbox;
	void *data = call->data;
	daytona_call_free(call);
	done(data, NULL, err);
}

static bool read_access(
	struct daytona_call *call, const struct http_answer *answer, struct error *err)
{
	struct daytona_told_access told;
	if (!daytona_read_access(answer->body, &told, err)) {
		return false;
	}
	daytona_access_done *done = call->raise.access;
	void *data = call->data;
	daytona_call_free(call);
	done(data, &told.access, NULL);
	daytona_told_access_finish(&told);
	return true;
}

static void fail_access(struct daytona_call *call, const struct error *err)
{
	daytona_access_done *done = call->raise.access;
	void *data = call->data;
	daytona_call_free(call);
	done(data, NULL, err);
}

static void fail_permissions(struct daytona_call *call, const struct error *err)
{
	daytona_permissions_done *done = call->raise.permissions;
	void *data = call->data;
	daytona_call_free(call);
	done(data, 0, err);
}

static bool read_permissions(
	struct daytona_call *call, const struct http_answer *answer, struct error *err)
{
	unsigned int permissions;
	if (!daytona_read_permissions(answer->body, &permissions, err)) {
		return false;
	}
	daytona_permissions_done *done = call->raise.permissions;
	void *data = call->data;
	daytona_call_free(call);
	done(data, permissions, NULL);
	return true;
}

static void fail_done(struct daytona_call *call, const struct error *err)
{
	daytona_done *done = call->raise.done;
	void *data = call->data;
	daytona_call_free(call);
	done(data, err);
}

/* The answer to these calls may be empty or differ from the documentation, so it is not read. */
static bool read_done(
	struct daytona_call *call, const struct http_answer *answer, struct error *err)
{
	fail_done(call, NULL);
	return true;
}

/* ---- calls ---- */

struct daytona_call *daytona_create(struct daytona_api *api, const struct daytona_create *create,
	daytona_sandbox_done *done, void *data)
{
	static const struct daytona_call_kind kind = {
		"POST", DAYTONA_CALL_ONCE | DAYTONA_CALL_CREATION, read_sandbox, fail_sandbox};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.sandbox = done;
	bool ok = buf_append(&call->path, SPAN_LITERAL("/sandbox"), &call->unfit) &&
	          daytona_write_create(&call->body, create, &call->unfit);
	return daytona_call_begin(call, ok);
}

struct daytona_call *daytona_get(
	struct daytona_api *api, const char *id_or_name, daytona_sandbox_done *done, void *data)
{
	static const struct daytona_call_kind kind = {"GET", 0, read_sandbox, fail_sandbox};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.sandbox = done;
	return daytona_call_begin(
		call, daytona_write_path(&call->path, &call->unfit, id_or_name, "%s", ""));
}

struct daytona_call *daytona_act(struct daytona_api *api, enum daytona_act act, const char *id,
	daytona_sandbox_done *done, void *data)
{
	static const struct daytona_call_kind post = {"POST", 0, read_sandbox, fail_sandbox};
	static const struct daytona_call_kind erase = {"DELETE", 0, read_sandbox, fail_sandbox};
	static const char *const paths[] = {
		[DAYTONA_START] = "/start",
		[DAYTONA_STOP] = "/stop",
		[DAYTONA_ARCHIVE] = "/archive",
		[DAYTONA_DELETE] = "",
		[DAYTONA_RECOVER] = "/recover",
	};
	struct daytona_call *call =
		daytona_call_create(api, act == DAYTONA_DELETE ? &erase : &post, data);
	call->raise.sandbox = done;
	return daytona_call_begin(
		call, daytona_write_path(&call->path, &call->unfit, id, "%s", paths[act]));
}

struct daytona_call *daytona_set_labels(struct daytona_api *api, const char *id,
	const struct daytona_pair *labels, daytona_done *done, void *data)
{
	static const struct daytona_call_kind kind = {"PUT", 0, read_done, fail_done};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.done = done;
	bool ok = daytona_write_path(&call->path, &call->unfit, id, "/labels") &&
	          daytona_write_labels(&call->body, labels, &call->unfit);
	return daytona_call_begin(call, ok);
}

static const struct daytona_call_kind plain_post = {"POST", 0, read_done, fail_done};

struct daytona_call *daytona_set_interval(struct daytona_api *api, const char *id,
	enum daytona_interval interval, int minutes, daytona_done *done, void *data)
{
	static const char *const names[] = {
		[DAYTONA_AUTO_STOP] = "autostop",
		[DAYTONA_AUTO_ARCHIVE] = "autoarchive",
		[DAYTONA_AUTO_DELETE] = "autodelete",
		[DAYTONA_TTL] = "ttl",
	};
	struct daytona_call *call = daytona_call_create(api, &plain_post, data);
	call->raise.done = done;
	return daytona_call_begin(call, daytona_write_path(&call->path, &call->unfit, id, "/%s/%d",
						names[interval], minutes));
}

struct daytona_call *daytona_set_network(struct daytona_api *api, const char *id,
	const struct daytona_network *network, daytona_done *done, void *data)
{
	struct daytona_call *call = daytona_call_create(api, &plain_post, data);
	call->raise.done = done;
	bool ok = daytona_write_path(&call->path, &call->unfit, id, "/network-settings") &&
	          daytona_write_network(&call->body, network, &call->unfit);
	return daytona_call_begin(call, ok);
}

struct daytona_call *daytona_set_public(
	struct daytona_api *api, const char *id, bool is_public, daytona_done *done, void *data)
{
	struct daytona_call *call = daytona_call_create(api, &plain_post, data);
	call->raise.done = done;
	return daytona_call_begin(call, daytona_write_path(&call->path, &call->unfit, id,
						"/public/%s", is_public ? "true" : "false"));
}

struct daytona_call *daytona_touch(
	struct daytona_api *api, const char *id, daytona_done *done, void *data)
{
	struct daytona_call *call = daytona_call_create(api, &plain_post, data);
	call->raise.done = done;
	return daytona_call_begin(
		call, daytona_write_path(&call->path, &call->unfit, id, "/last-activity"));
}

struct daytona_call *daytona_ask_access(
	struct daytona_api *api, const char *id, int minutes, daytona_access_done *done, void *data)
{
	static const struct daytona_call_kind kind = {
		"POST", DAYTONA_CALL_SECRET, read_access, fail_access};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.access = done;
	return daytona_call_begin(call, daytona_write_path(&call->path, &call->unfit, id,
						"/ssh-access?expiresInMinutes=%d", minutes));
}

struct daytona_call *daytona_revoke_access(
	struct daytona_api *api, const char *id, daytona_done *done, void *data)
{
	static const struct daytona_call_kind kind = {"DELETE", 0, read_done, fail_done};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.done = done;
	return daytona_call_begin(
		call, daytona_write_path(&call->path, &call->unfit, id, "/ssh-access"));
}

/*
 * This call is not about a sandbox, so 404 means that the service does not have it. According to
 * the documentation, the key in the answer is masked.
 */
struct daytona_call *daytona_ask_permissions(
	struct daytona_api *api, daytona_permissions_done *done, void *data)
{
	static const struct daytona_call_kind kind = {"GET",
		DAYTONA_CALL_CREATION | DAYTONA_CALL_SECRET, read_permissions, fail_permissions};
	struct daytona_call *call = daytona_call_create(api, &kind, data);
	call->raise.permissions = done;
	return daytona_call_begin(
		call, buf_append(&call->path, SPAN_LITERAL("/api-keys/current"), &call->unfit));
}
