/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_H
#define PROVIDERS_DAYTONA_API_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

struct daytona_key_command;
struct ev_loop;

/*
 * The calls of Daytona's REST interface that the broker makes, and their answers. We know them from
 * observing version 0.190 of the service and from the document of 0.205. Where these differ, we
 * follow the service. Knows nothing of how a sandbox is used.
 *
 * Loop thread. Every call raises its done exactly once, but not before it returns, and not after it
 * was cancelled. Each try has a deadline (try_timeout_ms; the service needs up to 30 s to create or
 * start a sandbox). All tries together have one, too (timeout_ms), which for a list covers all its
 * pages.
 *
 * A call is tried again after 409 "state change in progress", after 429, and if there was no
 * connection. The pause before the next try grows and is partly random, or is as long as a
 * Retry-After header asks for. A call that may be made twice is also tried again after 408, 502,
 * 503, 504, a broken connection and a missed deadline; after 500 there are up to three tries. So a
 * call may fail because an earlier try took effect and its answer was lost: a delete with
 * SANDBOX_NOT_FOUND, a stop with DAYTONA_REJECTED. A caller that must know the outcome asks for the
 * state.
 *
 * Errors name the call, the status and the service's own message; never a key, a token or a header.
 * Codes and reasons (docs/errors.md):
 *
 *   ERROR_DENIED       DAYTONA_UNAUTHORIZED    401, 403
 *   ERROR_LIMIT        DAYTONA_QUOTA_EXCEEDED  403 that names a quota or a limit
 *   ERROR_NOT_FOUND    SANDBOX_NOT_FOUND       404 in the service's own words, except of a create
 *   ERROR_DENIED       DAYTONA_REJECTED        400, other 4xx, 3xx: asking again cannot help;
 *                                              403 if one sandbox may never have so much
 *   ERROR_UNAVAILABLE  DAYTONA_CONFLICT        409: the name is taken
 *   ERROR_LIMIT        DAYTONA_RATE_LIMITED    429 with a pause that is longer than the deadline
 *   ERROR_DENIED       DAYTONA_UNTRUSTED       a certificate that cannot be verified
 *   ERROR_UNAVAILABLE  DAYTONA_UNAVAILABLE     408, 5xx, no connection, an unreadable answer,
 *                                              400 "No available runners"
 *   ERROR_TIMEOUT      TIMEOUT_EXCEEDED        a deadline; 409 "state change in progress"
 */
struct daytona_api_config {
	struct ev_loop *loop;
	const char *url;          // "https://app.daytona.io/api"; http only for a loopback host
	const char *key;          // API key or JWT; copied, wiped at the end
	const char *organization; // sent with a JWT; NULL: none; copied
	/*
	 * The command that prints a new key if the service refuses this one (401). A call runs it
	 * at most once and is then sent again. The wait for the command does not count for the
	 * call's deadlines. Copied; NULL: none.
	 */
	const struct daytona_key_command *command;
	/*
	 * Where to look up https_proxy, all_proxy, no_proxy (also in capitals), CURL_CA_BUNDLE,
	 * SSL_CERT_FILE and SSL_CERT_DIR; borrowed during creation. NULL: nowhere.
	 */
	const char *const *environment;
	long long try_timeout_ms;
	long long timeout_ms;
	long long pause_ms; // before the second try, doubled for each later one; 0: 500 ms
};

struct daytona_api;
struct daytona_call;

/*
 * Whether the key is a JWT (RFC 7519): three parts with dots between them. An API key has no dot.
 */
bool daytona_key_is_jwt(const char *key);

/*
 * Loads libcurl if it is not loaded yet. From then on core dumps of this process leave out its
 * memory, so that none contains the key. ERROR_CONFIG for an invalid URL or key.
 */
struct daytona_api *daytona_api_create(
	const struct daytona_api_config *config, struct error *err) ATTR_NODISCARD;
void daytona_api_destroy(struct daytona_api *api);   // cancels its calls; NULL is fine
void daytona_call_cancel(struct daytona_call *call); // NULL is fine

const char *daytona_api_key(const struct daytona_api *api); // the present one; borrowed

/*
 * How long the last answer asked the caller to wait (Retry-After) before it repeats the call; 0: it
 * did not ask.
 */
long long daytona_api_asked_ms(const struct daytona_api *api);

/*
 * Whether the last failed call may still have taken effect, or may take effect later: its answer
 * was lost, or does not say whether it did.
 */
bool daytona_api_may_be_done(const struct daytona_api *api);

/* The status of the last answer; 0 if a try ended without one. */
int daytona_api_status(const struct daytona_api *api);

/* A name and a value: a label, a variable. A list ends with a NULL name. */
struct daytona_pair {
	const char *name, *value;
};

/*
 * A sandbox as the service describes it. A text is "" if the service sent null or nothing. Borrowed
 * while done runs.
 */
struct daytona_sandbox {
	const char *id, *name;
	const char *state, *desired_state; // as the service says it; may be unknown to us
	const char *error_reason;
	const char *user, *target, *snapshot, *created_at, *sandbox_class;
	const char *image;                 // if it was built from the one line "FROM IMAGE"
	int cpu, memory_gib, disk_gib;     // 0: not given
	const struct daytona_pair *labels; // those with a string as value
	bool has_odd_labels; // a label whose value is not a string: the gateway refuses every
	                     // connection
	bool is_recoverable;
	int auto_stop_min, auto_archive_min, auto_delete_min; // -1: not given, and: never
	bool is_public, blocks_network; // false and "" if not given, as in lists
	const char *network_allow_list, *domain_allow_list;
};

struct daytona_create {
	const char *name;
	const char *snapshot, *image; // at most one; NULL: the service's default
	const char *target;           // region; may be NULL
	const char *user;             // may be NULL
	const struct daytona_pair *env, *labels;
	int cpu, memory_gib, disk_gib;         // 0: the service's choice; only with an image
	int auto_stop_min;                     // 0: never
	int auto_archive_min, auto_delete_min; // -1: not sent
	int ttl_min;                           // 0: not sent; 0.190 ignores it
	const char *sandbox_class;             // not sent, because its source decides; NULL: any
	bool is_public;                        // public ingress
	bool blocks_network;
	const char *network_allow_list; // CIDRs with commas; NULL: not sent
	const char *domain_allow_list;  // host names with commas; NULL: not sent
};

/* `sandbox` is NULL if there is an error. */
typedef void daytona_sandbox_done(
	void *data, const struct daytona_sandbox *sandbox, const struct error *err);

/*
 * The answer shows the sandbox before it has started, so ask again later (daytona_get). A call that
 * may have taken effect is not repeated; ask for the name before you call again.
 */
struct daytona_call *daytona_create(struct daytona_api *api, const struct daytona_create *create,
	daytona_sandbox_done *done, void *data);
struct daytona_call *daytona_get(
	struct daytona_api *api, const char *id_or_name, daytona_sandbox_done *done, void *data);

enum daytona_act { DAYTONA_START, DAYTONA_STOP, DAYTONA_ARCHIVE, DAYTONA_DELETE, DAYTONA_RECOVER };
struct daytona_call *daytona_act(struct daytona_api *api, enum daytona_act act, const char *id,
	daytona_sandbox_done *done, void *data);

/*
 * Calls back for each sandbox with these labels, page by page, and once at the end.
 * RESOURCE_LIMIT_EXCEEDED if there are more than DAYTONA_LIST_MAX. The newest sandboxes may still
 * be missing.
 */
enum { DAYTONA_LIST_MAX = 2000 };
struct daytona_list_listener {
	void (*on_sandbox)(void *data, const struct daytona_sandbox *sandbox);
	void (*on_done)(void *data, const struct error *err);
};
struct daytona_call *daytona_list(struct daytona_api *api, const struct daytona_pair *labels,
	const struct daytona_list_listener *listener, void *data);

typedef void daytona_done(void *data, const struct error *err);

struct daytona_call *daytona_set_labels(struct daytona_api *api, const char *id,
	const struct daytona_pair *labels, daytona_done *done, void *data); // replaces all labels

enum daytona_interval {
	DAYTONA_AUTO_STOP,
	DAYTONA_AUTO_ARCHIVE,
	DAYTONA_AUTO_DELETE,
	DAYTONA_TTL, // from now on; DAYTONA_REJECTED or SANDBOX_NOT_FOUND if the service lacks this
	             // call
};
struct daytona_call *daytona_set_interval(struct daytona_api *api, const char *id,
	enum daytona_interval interval, int minutes, daytona_done *done, void *data); // -1: never

/* Sets what programs in the sandbox can reach. This replaces the settings of its creation. */
struct daytona_network {
	bool blocks_network;
	/*
	 * As in daytona_create. NULL is not sent, so the list in force stays; "" empties the list
	 * of domains. Without a list of networks, blocks_network clears the CIDRs in force; with
	 * such a list it must be false.
	 */
	const char *network_allow_list, *domain_allow_list;
};
struct daytona_call *daytona_set_network(struct daytona_api *api, const char *id,
	const struct daytona_network *network, daytona_done *done, void *data);

/* Sets whether anybody may reach services in the sandbox. */
struct daytona_call *daytona_set_public(
	struct daytona_api *api, const char *id, bool is_public, daytona_done *done, void *data);

/*
 * Reports activity now. Takes the id, because for a name the service answers yes and does nothing.
 */
struct daytona_call *daytona_touch(
	struct daytona_api *api, const char *id, daytona_done *done, void *data);

/*
 * A token for the SSH gateway; it makes all earlier tokens of the sandbox invalid. The token is a
 * secret. Host and port come from the service's own command line ("" and 0 if that has none).
 * Borrowed while done runs.
 */
struct daytona_access {
	const char *token, *host, *expires_at;
	int port;
};
typedef void daytona_access_done(
	void *data, const struct daytona_access *access, const struct error *err);
struct daytona_call *daytona_ask_access(struct daytona_api *api, const char *id, int minutes,
	daytona_access_done *done, void *data);
struct daytona_call *daytona_revoke_access(
	struct daytona_api *api, const char *id, daytona_done *done, void *data);

/*
 * The permissions of the key (GET /api-keys/current in the document of 0.205); not for a JWT. If a
 * service lacks this call, its error says nothing about the key.
 */
enum daytona_permission {
	DAYTONA_MAY_WRITE = 1 << 0,  // write:sandboxes
	DAYTONA_MAY_DELETE = 1 << 1, // delete:sandboxes
};
typedef void daytona_permissions_done(
	void *data, unsigned int permissions, const struct error *err);
struct daytona_call *daytona_ask_permissions(
	struct daytona_api *api, daytona_permissions_done *done, void *data);

#endif
