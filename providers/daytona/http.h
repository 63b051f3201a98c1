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
 * HTTP requests to one server, by libcurl on the loop. Verifies TLS, treats redirects as ordinary
 * answers, and bounds the answer's size. Does not know what is requested. Loop thread; only loading
 * libcurl blocks.
 */
enum {
	HTTP_ANSWER_MAX = 8 << 20,  // bytes of a body
	HTTP_HEADERS_MAX = 1 << 16, // bytes of all header lines
};

struct http;

struct http_config {
	struct ev_loop *loop;
	const char *url;            // see http_create
	const char *const *headers; // of every request, "Name: value"; copied, wiped
	const char *const
		*environment; // for proxies and certificate authorities; borrowed; may be NULL
};

/*
 * Fails with ERROR_CONFIG if the URL is invalid, is neither http nor https, or has a user, a query
 * or a fragment. Because http is not encrypted, it also fails for http to a host that is not a
 * loopback, and http to a loopback uses no proxy.
 */
struct http *http_create(const struct http_config *config, struct error *err) ATTR_NODISCARD;
void http_set_headers(struct http *http, const char *const *headers); // from the next request on
void http_destroy(struct http *http); // after its transfers have ended; NULL is fine

const char *http_host(const struct http *http); // for texts

struct http_request {
	const char *method;
	const char *path; // with its query; appended to the URL's path, begins with "/"; copied
	struct span body; // JSON; borrowed until the end; data is NULL: none
	long long timeout_ms;
	bool is_fresh; // over a new connection, because libcurl repeats a request if an old one is
	               // dead
};

enum http_trouble {
	HTTP_FINE,      // the server answered with a status
	HTTP_NOT_MADE,  // no connection
	HTTP_UNTRUSTED, // the certificate could not be verified, or no authority could be read
	HTTP_LATE,      // timeout_ms has passed
	HTTP_BROKEN,    // the connection ended before the answer did
	HTTP_UNREADABLE // not HTTP, or too large
};

/* Borrowed while done runs. */
struct http_answer {
	enum http_trouble trouble;
	const char *why; // libcurl's words for the failure
	bool was_sent;   // with a failure: the server may have seen some of the request
	int status;
	int proxy_status;     // of a proxy that refused to connect; 0: none
	struct span body;     // wiped after done
	long long retry_in_s; // the longest wait in a header Retry-After or Retry-After-X; -1: none
};

struct http_transfer;
typedef void http_done(void *data, const struct http_answer *answer);

/* Raises done once, not before it returns; never after http_cancel. */
struct http_transfer *http_start(
	struct http *http, const struct http_request *request, http_done *done, void *data);
void http_cancel(struct http_transfer *transfer); // only before done; NULL is fine

#endif
