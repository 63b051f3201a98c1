/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_HTTP_IMPL_H
#define PROVIDERS_DAYTONA_HTTP_IMPL_H

#include "base/buf.h"
#include "base/list.h"
#include "providers/daytona/curl.h"
#include "providers/daytona/http.h"

/* What the files of http share. */
struct http {
	const struct curl *curl;
	struct ev_loop *loop;
	CURLM *multi;
	char **headers;        // owned, wiped; of every request
	struct ev_timer timer; // libcurl's next deadline
	struct list sockets;   // of struct http_socket
	struct list transfers; // of struct http_transfer
	char *url;             // without a slash at its end
	char *host;
	bool has_authorities; // a file of them: libcurl's own, or the environment's
	char *proxy;          // "": none
	char *no_proxy, *authorities, *authorities_folder; // NULL: libcurl's own
};

/* Takes the URL apart into url and host, and looks up what of the environment it needs. */
bool http_read_place(
	struct http *http, const struct http_config *config, struct error *err) ATTR_NODISCARD;

/* Looks which transfers have ended. */
void http_check(struct http *http);

/* The headers of an answer, line by line. */
struct http_headers {
	size_t size;
	bool is_whole;        // the empty line after them has come
	long long retry_in_s; // -1: none
	long long date;       // the server's clock; -1: not told
	long long retry_at;   // -1: none
};
void http_headers_begin(struct http_headers *headers);
void http_headers_line(struct http_headers *headers, const struct curl *curl, struct span line);
long long http_headers_retry_in_s(const struct http_headers *headers);

#endif
