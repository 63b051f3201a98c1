/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_HTTP_H
#define PROVIDERS_DAYTONA_HTTP_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * HTTP requests to one server, by libcurl on the loop: TLS is verified, redirects are answers
 * like any other, and the answer is bounded. Knows nothing of what is asked. Loop thread; never
 * blocks, but for libcurl being loaded.
 */
enum {
	HTTP_ANSWER_MAX = 8 << 20,  // bytes of a body
	HTTP_HEADERS_MAX = 1 << 16, // bytes of all header lines
};

struct http;

struct http_config {
	struct ev_loop *loop;
	const char *url;                // see http_create
	const char *const *headers;     // of every request, "Name: value"; copied, wiped
	const char *const *environment; // for proxies and authorities; borrowed; may be NULL
};

/*
 * ERROR_CONFIG where the URL is none, names neither http nor https, has a user, a query or a
 * fragment, or is http to a host that is not a loopback: what is sent would travel in the clear. To
 * a loopback no proxy is used for http, for the same reason.
 */
struct http *http_create(const struct http_config *config, struct error *err) ATTR_NODISCARD;
void http_set_headers(struct http *http, const char *const *headers); // from the next request on
void http_destroy(struct http *http); // no transfer is under way; NULL is fine

const char *http_host(const struct http *http); // for texts

struct http_request {
	const char *method;
	const char *path; // with its query; after the URL's own, from "/" on; copied
	struct span body; // JSON; borrowed until it has ended; data is NULL: none
	long long timeout_ms;
	bool is_fresh; // over a new connection: libcurl sends a second time when an old one is dead
};

enum http_trouble {
	HTTP_FINE,      // there is a status
	HTTP_NOT_MADE,  // no connection
	HTTP_UNTRUSTED, // the certificate is not verified, or no authority could be read
	HTTP_LATE,      // timeout_ms has passed
	HTTP_BROKEN,    // the connection ended before the answer did
	HTTP_UNREADABLE // no HTTP, or more than is taken
};

/* Borrowed while done runs. */
struct http_answer {
	enum http_trouble trouble;
	const char *why; // of trouble, in libcurl's words
	bool was_sent;   // with trouble: whether the server may have seen the request, or a part
	int status;
	int proxy_status; // of a proxy's refusal to connect, 0: none
	struct span body; // wiped after done
	long long
		retry_in_s; // the longest that a header Retry-After or Retry-After-X says; -1: none
};

struct http_transfer;
typedef void http_done(void *data, const struct http_answer *answer);

/* Raises done once, not before it returns; never once it was cancelled. */
struct http_transfer *http_start(
	struct http *http, const struct http_request *request, http_done *done, void *data);
void http_cancel(struct http_transfer *transfer); // before done; NULL is fine

#endif
