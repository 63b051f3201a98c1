/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_HTTP_IMPL_H
#define PROVIDERS_DAYTONA_HTTP_IMPL_H

#include "base/buf.h"
#include "base/list.h"
#include "providers/curl_loop.h"
#include "providers/daytona/http.h"

/* Shared by the files of http. */
struct http {
	const struct curl *curl;
	struct ev_loop *loop;
	struct curl_loop transport;
	char **headers;        // owned, wiped; of every request
	struct list transfers; // struct http_transfer
	char *url;             // without a final slash
	char *host;
	bool has_authorities; // there is a file of authorities: libcurl's own, or the environment's
	char *proxy;          // "": none
	char *no_proxy, *authorities, *authorities_folder; // NULL: libcurl's own
};

/* Splits the URL into url and host, and looks up what it needs in the environment. */
bool http_read_place(
	struct http *http, const struct http_config *config, struct error *err) ATTR_NODISCARD;

/* Of curl_loop. */
void http_transfer_done(void *data, CURLcode result);

/* The headers of an answer, which come line by line. */
struct http_headers {
	size_t size;
	bool is_whole;        // the empty line after them has come
	long long retry_in_s; // -1: none
	long long date;       // the server's clock; -1: not given
	long long retry_at;   // -1: none
};
void http_headers_begin(struct http_headers *headers);
void http_headers_line(struct http_headers *headers, const struct curl *curl, struct span line);
long long http_headers_retry_in_s(const struct http_headers *headers);

#endif
