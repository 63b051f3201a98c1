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
 * The calls of Daytona's REST interface that the broker makes, and what they answer. Observed at
 * an API of version 0.190 and read in the document of 0.205; where both differ the service is
 * believed. Knows nothing of what a sandbox is used for.
 *
 * Loop thread. Every call raises its done exactly once, not before it returns, or never once it
 * was cancelled. Each try has a deadline (try_timeout_ms; creating and starting take the service
 * up to 30 s), and all of them together (timeout_ms; of a list, all its pages).
 * Tried again, with pauses that grow, jitter, and what the service's Retry-After headers ask for:
 * 409 "state change in progress", 429, connections that were not made, and, of calls that may be
 * made twice, 502, 503, 504, connections that broke and tries that met their deadline; and 500,
 * but no more than three tries of it. Nothing else. So a call may fail because an earlier try of it
 * was done and its answer lost: a delete with SANDBOX_NOT_FOUND, a stop with DAYTONA_REJECTED. Who
 * minds asks for the state.
 *
 * Errors say the call, the status and the service's own message; never a key, a token or a
 * header. Codes and reasons (docs/errors.md):
 *   ERROR_DENIED       DAYTONA_UNAUTHORIZED   401, 403
 *   ERROR_LIMIT        DAYTONA_QUOTA_EXCEEDED 403 that says so
 *   ERROR_NOT_FOUND    SANDBOX_NOT_FOUND      404 in the service's own words, but of a create
 *   ERROR_DENIED       DAYTONA_REJECTED       400, other 4xx, 3xx: asking again cannot help
 *   ERROR_UNAVAILABLE  DAYTONA_CONFLICT       409: the name is taken
 *   ERROR_LIMIT        DAYTONA_RATE_LIMITED   429, and its pause is longer than the deadline
 *   ERROR_DENIED       DAYTONA_UNTRUSTED      a certificate that cannot be verified
 *   ERROR_UNAVAILABLE  DAYTONA_UNAVAILABLE    5xx, no connection, an answer that cannot be read,
 *                                             400 "No available runners"
 *   ERROR_TIMEOUT      TIMEOUT_EXCEEDED       also of 409 "state change in progress"
 */
struct daytona_api_config {
	struct ev_loop *loop;
	const char *url; // "https://app.daytona.io/api"; http only where the host is a loopback
	const char *key; // API key or JWT; copied, wiped at the end
	const char *organization; // sent with a JWT; NULL: none; copied
	/* What prints another key when this one is not taken (401): a call asks it once, waits for
	 * that besides its deadlines, and is made again. Copied; NULL: nothing. */
	const struct daytona_key_command *command;
	/* Where https_proxy, all_proxy, no_proxy (or in capitals), CURL_CA_BUNDLE, SSL_CERT_FILE
	 * and SSL_CERT_DIR are looked up; borrowed while it is created. NULL: none of them. */
	const char *const *environment;
	long long try_timeout_ms;
	long long timeout_ms;
	long long pause_ms; // before the second try, doubled for each later one; 0: 500
};

struct daytona_api;
struct daytona_call;

/* RFC 7519: three parts with dots between; an API key has none. */
bool daytona_key_is_jwt(const char *key);

/*
 * Loads libcurl when it is first needed, and from then on a core of this process has none of its
 * memory, so that none has the key. ERROR_CONFIG for a URL or a key that cannot be one.
 */
struct daytona_api *daytona_api_create(
	const struct daytona_api_config *config, struct error *err) ATTR_NODISCARD;
void daytona_api_destroy(struct daytona_api *api);   // cancels its calls; NULL is fine
void daytona_call_cancel(struct daytona_call *call); // NULL is fine

const char *daytona_api_key(const struct daytona_api *api); // the last one; borrowed

/* How long the last answer asked to wait (Retry-After), for who makes a call anew; 0: not said. */
long long daytona_api_asked_ms(const struct daytona_api *api);

/*
 * What the last call that failed asked for may be done all the same, now or later: its answer was
 * lost, or says nothing about that.
 */
bool daytona_api_may_be_done(const struct daytona_api *api);

/* The status of the last answer; 0 where a try ended without one. */
int daytona_api_status(const struct daytona_api *api);

/* A text and another: label, variable. Lists of them end with a NULL name. */
struct daytona_pair {
	const char *name, *value;
};

/* As told; texts are "" where the service sent null or nothing, and borrowed while done runs. */
struct daytona_sandbox {
	const char *id, *name;
	const char *state, *desired_state; // in the service's words; may be unknown to us
	const char *error_reason;
	const char *user, *target, *snapshot, *created_at, *sandbox_class;
	const char *image;                 // of a build from one line "FROM IMAGE"
	int cpu, memory_gib, disk_gib;     // 0: not told
	const struct daytona_pair *labels; // those that are strings
	bool has_odd_labels; // one that is no string: the gateway refuses every connection
	bool is_recoverable;
	int auto_stop_min, auto_archive_min, auto_delete_min; // -1: not told, and never
	bool is_public, blocks_network; // false and "" where they are not told, as in lists
	const char *network_allow_list, *domain_allow_list;
};

struct daytona_create {
	const char *name;
	const char *snapshot, *image; // at most one; NULL: the service's default
	const char *target;           // region; may be NULL
	const char *user;             // may be NULL
	const struct daytona_pair *env, *labels;
	int cpu, memory_gib, disk_gib;         // 0: as the service likes; only with an image
	int auto_stop_min;                     // 0: never
	int auto_archive_min, auto_delete_min; // -1: not sent
	int ttl_min;                           // 0: not sent; 0.190 ignores it
	const char *sandbox_class; // not sent: what it is made of decides; NULL: whichever
	bool is_public;            // ingress
	bool blocks_network;
	const char *network_allow_list; // CIDRs, commas between; NULL: not sent
	const char *domain_allow_list;  // the same of names
};

/* `sandbox` is NULL with an error. */
typedef void daytona_sandbox_done(
	void *data, const struct daytona_sandbox *sandbox, const struct error *err);

/*
 * The answer is what it was before it started: ask again (daytona_get). Not tried again where it
 * may have been done: ask for the name first.
 */
struct daytona_call *daytona_create(struct daytona_api *api, const struct daytona_create *create,
	daytona_sandbox_done *done, void *data);
struct daytona_call *daytona_get(
	struct daytona_api *api, const char *id_or_name, daytona_sandbox_done *done, void *data);

enum daytona_act { DAYTONA_START, DAYTONA_STOP, DAYTONA_ARCHIVE, DAYTONA_DELETE, DAYTONA_RECOVER };
struct daytona_call *daytona_act(struct daytona_api *api, enum daytona_act act, const char *id,
	daytona_sandbox_done *done, void *data);

/*
 * All that bear these labels, page after page, then done: with RESOURCE_LIMIT_EXCEEDED where there
 * are more than DAYTONA_LIST_MAX. The service may not know its newest ones here yet.
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
	const struct daytona_pair *labels, daytona_done *done, void *data); // replaces all

enum daytona_interval {
	DAYTONA_AUTO_STOP,
	DAYTONA_AUTO_ARCHIVE,
	DAYTONA_AUTO_DELETE,
	DAYTONA_TTL, // from now on; DAYTONA_REJECTED or SANDBOX_NOT_FOUND where there is no such
	             // call
};
struct daytona_call *daytona_set_interval(struct daytona_api *api, const char *id,
	enum daytona_interval interval, int minutes, daytona_done *done, void *data); // -1: never

/* What may be reached from it; replaces what was set when it was created. */
struct daytona_network {
	bool blocks_network;
	/* As in daytona_create. NULL: not sent, and the domains stay; "": none from now on. Without
	 * a list blocks_network clears the CIDRs; with one it has to be false. */
	const char *network_allow_list, *domain_allow_list;
};
struct daytona_call *daytona_set_network(struct daytona_api *api, const char *id,
	const struct daytona_network *network, daytona_done *done, void *data);

/* Whether anybody may reach what listens in it. */
struct daytona_call *daytona_set_public(
	struct daytona_api *api, const char *id, bool is_public, daytona_done *done, void *data);

/* Now is activity. The id: of a name the service says yes and does nothing. */
struct daytona_call *daytona_touch(
	struct daytona_api *api, const char *id, daytona_done *done, void *data);

/*
 * A token for the SSH gateway; every earlier one of this sandbox is void from then on. The token is
 * a secret; host and port are those of the service's own command line ("" and 0 where that says
 * none). Borrowed while done runs.
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
 * What the key may do (GET /api-keys/current of the document 0.205); not for a JWT. A service
 * without that call answers with an error, which says nothing of the key.
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
