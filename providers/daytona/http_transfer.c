/* SPDX-License-Identifier: MIT */
#include "providers/daytona/http_impl.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/soon.h"

enum { BODY_FIRST = 16 << 10 };

struct http_transfer {
	struct list link; // http.transfers
	struct http *http;
	CURL *easy;
	struct curl_slist *sent; // owned; the headers; libcurl wipes the memory that it frees
	http_done *done;
	void *data;
	struct soon ended; // raises `done` from the loop
	CURLcode result;
	struct http_headers headers;
	struct buf body; // wiped
	bool is_too_much;
	char why[CURL_ERROR_SIZE];
};

/* ---- receiving ---- */

/*
 * Like buf_append, but wipes the old memory when the buffer moves, because it may contain a token.
 */
static bool body_append(struct buf *body, struct span bytes)
{
	if (body->len + bytes.len > body->capacity) {
		struct buf moved;
		size_t size = 2 * (body->len + bytes.len);
		size = size < BODY_FIRST ? BODY_FIRST : size;
		buf_init(&moved, HTTP_ANSWER_MAX);
		if (!buf_reserve(&moved, size > HTTP_ANSWER_MAX ? HTTP_ANSWER_MAX : size, NULL) ||
			!buf_append(&moved, buf_span(body), NULL)) {
			buf_finish(&moved);
			return false;
		}
		buf_wipe(body);
		buf_move(body, &moved);
	}
	return buf_append(body, bytes, NULL);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *data)
{
	struct http_transfer *transfer = data;
	size_t len = size * count;
	if (transfer->body.len + len > HTTP_ANSWER_MAX ||
		!body_append(&transfer->body, (struct span){bytes, len})) {
		transfer->is_too_much = true;
		return 0;
	}
	return len;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *data)
{
	struct http_transfer *transfer = data;
	struct span line = {bytes, size * count};
	size_t all = transfer->headers.size + line.len;
	if (span_starts_with(line, SPAN_LITERAL("HTTP/"))) {
		http_headers_begin(&transfer->headers); // earlier headers belong to another answer,
		                                        // such as 1xx
	}
	transfer->headers.size = all;
	if (all > HTTP_HEADERS_MAX) {
		transfer->is_too_much = true;
		return 0;
	}
	http_headers_line(&transfer->headers, transfer->http->curl, line);
	return line.len;
}

/* The flags keep processes that we start from inheriting libcurl's sockets. */
static curl_socket_t on_socket_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	int type = address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(address->family, type, address->protocol);
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* ---- the end ---- */

static enum http_trouble trouble_of(const struct http_transfer *transfer)
{
	static const struct {
		CURLcode code;
		enum http_trouble trouble;
	} table[] = {
		{CURLE_OK, HTTP_FINE},
		{CURLE_COULDNT_RESOLVE_PROXY, HTTP_NOT_MADE},
		{CURLE_COULDNT_RESOLVE_HOST, HTTP_NOT_MADE},
		{CURLE_COULDNT_CONNECT, HTTP_NOT_MADE},
		{CURLE_PROXY, HTTP_NOT_MADE},
		{CURLE_SSL_CONNECT_ERROR, HTTP_NOT_MADE},
		{CURLE_PEER_FAILED_VERIFICATION, HTTP_UNTRUSTED},
		{CURLE_SSL_CACERT_BADFILE, HTTP_UNTRUSTED},
		{CURLE_SSL_ISSUER_ERROR, HTTP_UNTRUSTED},
		{CURLE_SSL_INVALIDCERTSTATUS, HTTP_UNTRUSTED},
		{CURLE_OPERATION_TIMEDOUT, HTTP_LATE},
		{CURLE_UNSUPPORTED_PROTOCOL, HTTP_UNREADABLE}, // HTTP/0.9 accepts any bytes
		{CURLE_WEIRD_SERVER_REPLY, HTTP_UNREADABLE},
		{CURLE_BAD_CONTENT_ENCODING, HTTP_UNREADABLE},
		{CURLE_FILESIZE_EXCEEDED, HTTP_UNREADABLE},
	};
	/* libcurl accepts an answer that ends in the middle of its headers. */
	if (transfer->result == CURLE_OK && !transfer->headers.is_whole) {
		return HTTP_BROKEN;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		if (table[i].code == transfer->result) {
			return table[i].trouble;
		}
	}
	return transfer->is_too_much ? HTTP_UNREADABLE : HTTP_BROKEN;
}

static void answer_fill(const struct http_transfer *transfer, struct http_answer *answer)
{
	const struct curl *curl = transfer->http->curl;
	long status = 0;
	long proxy_status = 0;
	long sent = 0;
	curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	curl->easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	curl->easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &sent);
	const char *why = transfer->why[0] ? transfer->why : curl->easy_strerror(transfer->result);
	if (transfer->is_too_much) {
		why = "the answer is too long";
	} else if (transfer->result == CURLE_OK) {
		why = "the connection ended within the answer's headers";
	}
	*answer = (struct http_answer){
		.trouble = trouble_of(transfer),
		.why = why,
		.was_sent = sent > 0,
		.status = (int)status,
		.proxy_status = proxy_status / 100 == 2 ? 0 : (int)proxy_status,
		.body = buf_span(&transfer->body),
		.retry_in_s = http_headers_retry_in_s(&transfer->headers),
	};
}

/* Releases everything except the body. */
static void detach(struct http_transfer *transfer)
{
	struct http *http = transfer->http;
	soon_stop(&transfer->ended);
	list_remove(&transfer->link);
	http->curl->multi_remove_handle(http->transport.multi, transfer->easy);
	http->curl->easy_cleanup(transfer->easy);
	http->curl->slist_free_all(transfer->sent);
}

static void transfer_free(struct http_transfer *transfer)
{
	buf_wipe(&transfer->body);
	free(transfer);
}

static void raise_done(struct http_transfer *transfer)
{
	struct http_answer answer;
	answer_fill(transfer, &answer);
	detach(transfer);
	transfer->done(transfer->data, &answer);
	transfer_free(transfer);
}

static void on_ended(struct soon *soon)
{
	raise_done(CONTAINER_OF(soon, struct http_transfer, ended));
}

void http_cancel(struct http_transfer *transfer)
{
	if (transfer) {
		detach(transfer);
		transfer_free(transfer);
	}
}

/* Each is raised in a separate turn, because its handler may end this transfer, others, or all. */
void http_transfer_done(void *data, CURLcode result)
{
	struct http_transfer *transfer = data;
	transfer->result = result;
	soon_start(&transfer->ended);
}

/* ---- start ---- */

static void set_trust(struct http *http, CURL *easy)
{
	const struct curl *curl = http->curl;
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl->easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, 1L);
	curl->easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, 2L);
	if (http->authorities) {
		curl->easy_setopt(easy, CURLOPT_CAINFO, http->authorities);
		curl->easy_setopt(easy, CURLOPT_PROXY_CAINFO, http->authorities);
	}
	/*
	 * The file of authorities is read for the first connection, which takes tens of
	 * milliseconds, and cached. Caching does not work with a folder, which libcurl's default
	 * may use.
	 */
	if (http->authorities_folder || http->has_authorities) {
		curl->easy_setopt(easy, CURLOPT_CAPATH, http->authorities_folder);
		curl->easy_setopt(easy, CURLOPT_PROXY_CAPATH, http->authorities_folder);
	}
}

static void set_way(struct http *http, CURL *easy)
{
	const struct curl *curl = http->curl;
	curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl->easy_setopt(easy, CURLOPT_PROXY, http->proxy);
	curl->easy_setopt(easy, CURLOPT_NOPROXY, http->no_proxy ? http->no_proxy : "");
	curl->easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_open);
	curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Otherwise cancelling a transfer would wait for the thread that resolves its name. */
	curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

static struct curl_slist *slist_of(const struct http *http, const char *content_type)
{
	struct curl_slist *list = http->curl->slist_append(NULL, content_type);
	list = http->curl->slist_append(list, "Expect:"); // avoids the round trips of 100-continue
	for (char **header = http->headers; *header; header++) {
		list = http->curl->slist_append(list, *header);
	}
	return list;
}

static void set_request(struct http_transfer *transfer, const struct http_request *request)
{
	const struct curl *curl = transfer->http->curl;
	CURL *easy = transfer->easy;
	struct buf url;
	buf_init(&url, SIZE_MAX);
	bool ok = buf_append_format(&url, NULL, "%s%s%c", transfer->http->url, request->path, '\0');
	assert(ok);
	(void)ok;
	curl->easy_setopt(easy, CURLOPT_URL, url.data);
	buf_finish(&url);
	transfer->sent = slist_of(transfer->http,
		request->body.data ? "Content-Type: application/json" : "Content-Type:");
	curl->easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->sent);
	curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->timeout_ms);
	curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->is_fresh ? 1L : 0L);
	bool is_get = strcmp(request->method, "GET") == 0;
	if (!is_get) {
		/* A POST without a body has length 0, because some servers require a length. */
		curl->easy_setopt(easy, CURLOPT_POST, 1L);
		curl->easy_setopt(
			easy, CURLOPT_POSTFIELDS, request->body.data ? request->body.data : "");
		curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
		curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	}
	curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->why);
	curl->easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	curl->easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)HTTP_ANSWER_MAX);
	curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl->easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl->easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
}

struct http_transfer *http_start(
	struct http *http, const struct http_request *request, http_done *done, void *data)
{
	struct http_transfer *transfer = mem_alloc_zero(sizeof(*transfer));
	transfer->http = http;
	transfer->done = done;
	transfer->data = data;
	transfer->easy = http->curl->easy_init();
	assert(transfer->easy); // out of memory aborts
	http_headers_begin(&transfer->headers);
	buf_init(&transfer->body, HTTP_ANSWER_MAX);
	soon_init(&transfer->ended, http->loop, on_ended);
	list_append(&http->transfers, &transfer->link);
	set_trust(http, transfer->easy);
	set_way(http, transfer->easy);
	set_request(transfer, request);
	CURLMcode failed = http->curl->multi_add_handle(http->transport.multi, transfer->easy);
	assert(failed == CURLM_OK);
	(void)failed;
	return transfer;
}
