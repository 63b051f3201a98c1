/* SPDX-License-Identifier: MIT */
#include "providers/daytona/http.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "providers/daytona/http_impl.h"

enum { CONNECTIONS_MAX = 32 };

struct http *http_create(const struct http_config *config, struct error *err)
{
	const struct curl *curl = curl_open(err);
	if (!curl) {
		return NULL;
	}
	struct http *http = mem_alloc_zero(sizeof(*http));
	http->curl = curl;
	http->loop = config->loop;
	list_init(&http->transfers);
	if (!http_read_place(http, config, err)) {
		http_destroy(http);
		return NULL;
	}
	curl_loop_init(&http->transport, config->loop, curl, CONNECTIONS_MAX, http_transfer_done);
	http_set_headers(http, config->headers);
	return http;
}

void http_set_headers(struct http *http, const char *const *headers)
{
	words_wipe_free(http->headers);
	http->headers = words_copy(headers);
}

void http_destroy(struct http *http)
{
	if (!http) {
		return;
	}
	assert(list_is_empty(&http->transfers));
	curl_loop_finish(&http->transport);
	words_wipe_free(http->headers);
	mem_wipe_free(http->proxy); // may contain a password
	free(http->no_proxy);
	free(http->authorities);
	free(http->authorities_folder);
	free(http->host);
	free(http->url);
	free(http);
}

const char *http_host(const struct http *http)
{
	return http->host;
}
