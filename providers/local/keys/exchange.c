/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/tcp.h"
#include "base/text.h"
#include "providers/local/keys/reply.h"
#include "providers/local/request.h"

enum {
	IN_MAX = REQUEST_HEAD_MAX,
	READ_BYTES = 16 << 10,
	OUT_HIGH = 64 << 10, // libcurl waits while more than this is unread
	OUT_MAX = OUT_HIGH + REPLY_HEAD_MAX + (64 << 10),
	HELD_MAX = (64 << 10) + 6 * KEY_SECRET_MAX, // a chunk after the possible start of a key
	URL_MAX = REQUEST_HEAD_MAX + KEY_URL_SIZE,
	HTTP_UNAUTHORIZED = 401,
	HTTP_FORBIDDEN = 403,
	HTTP_BAD_GATEWAY = 502,
};

enum exchange_state { READING, RESOLVING, RUNNING, CLOSING };

struct exchange {
	struct list link; // exchanges.list
	struct exchanges *all;
	uint32_t id;
	size_t index;
	const struct keys_place *place; // from `start`
	enum exchange_state state;
	ev_io client;      // owns its descriptor
	ev_timer deadline; // for the state; while running, since the last byte
	struct buf in;     // from the program, not yet used
	size_t seen;       // bytes in which we have searched for the end of the head
	struct request_body body;
	bool is_body_whole;
	bool is_upload_paused;
	struct buf out;  // for the program
	struct buf held; // the end of the answer so far; it may be the start of a key
	bool is_download_paused;
	struct reply reply;
	bool is_proxied;   // by this machine's proxy; set with `easy`
	bool is_head;      // the method is HEAD
	bool has_answered; // the head of the answer is in `out`
	bool is_chunked;   // the answer's body is sent in chunks
	bool is_closing;   // we write nothing more
	CURL *easy;
	struct curl_slist *fields;       // with the key
	struct curl_slist *proxy_fields; // for this machine's proxy alone; NULL: none
	struct curl_slist *addresses;
	const char *why; // why a callback of libcurl has failed; or NULL
	char curl_says[CURL_ERROR_SIZE];
};

/* ---- the end ---- */

static void drop_transfer(struct exchange *exchange)
{
	const struct curl_loop *curl = &exchange->all->curl;
	if (exchange->easy) {
		curl->curl->multi_remove_handle(curl->multi, exchange->easy);
		curl->curl->easy_cleanup(exchange->easy);
		curl->curl->slist_free_all(exchange->fields);
		curl->curl->slist_free_all(exchange->proxy_fields);
		curl->curl->slist_free_all(exchange->addresses);
		exchange->easy = NULL;
	}
}

static void end(struct exchange *exchange)
{
	struct exchanges *all = exchange->all;
	drop_transfer(exchange);
	ev_timer_stop(all->loop, &exchange->deadline);
	io_close(all->loop, &exchange->client);
	buf_finish(&exchange->in);
	buf_finish(&exchange->out);
	buf_wipe(&exchange->held);
	reply_finish(&exchange->reply);
	list_remove(&exchange->link);
	free(exchange);
	all->count--;
	all->listener->on_ended(all->data);
}

/* Resets the connection, so that the program sees an error and not the end of an answer. */
static void reset(struct exchange *exchange)
{
	tcp_make_abrupt(exchange->client.fd);
	end(exchange);
}

static void set_deadline(struct exchange *exchange, int ms)
{
	struct ev_loop *loop = exchange->all->loop;
	ev_timer_stop(loop, &exchange->deadline);
	ev_timer_set(&exchange->deadline, (double)ms / 1000., 0.);
	ev_timer_start(loop, &exchange->deadline);
}

/* ---- the program's side ---- */

/* Also notices when the program closes the connection after its request. */
static void watch(struct exchange *exchange)
{
	struct ev_loop *loop = exchange->all->loop;
	bool has_room = exchange->is_body_whole || exchange->in.len < IN_MAX;
	int events = (has_room ? EV_READ : 0) | (exchange->out.len > 0 ? EV_WRITE : 0);
	if ((exchange->client.events & (EV_READ | EV_WRITE)) != events ||
		!ev_is_active(&exchange->client)) {
		ev_io_stop(loop, &exchange->client);
		ev_io_set(&exchange->client, exchange->client.fd, events);
		ev_io_start(loop, &exchange->client);
	}
}

/* False: the program has closed the connection. */
static bool flush(struct exchange *exchange)
{
	while (exchange->out.len > 0) {
		struct span span = buf_span(&exchange->out);
		ssize_t size =
			send(exchange->client.fd, span.data, span.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (size < 0 && io_is_transient(errno)) {
			break;
		}
		if (size < 0) {
			return false;
		}
		buf_consume(&exchange->out, (size_t)size);
		set_deadline(exchange, EXCHANGE_IDLE_MS);
	}
	if (exchange->out.len == 0 && exchange->state == CLOSING && !exchange->is_closing) {
		exchange->is_closing = true;
		shutdown(exchange->client.fd, SHUT_WR);
		set_deadline(exchange, EXCHANGE_LINGER_MS);
	}
	watch(exchange);
	return true;
}

/*
 * Waits before closing and discards what the program still sends: otherwise the kernel would drop
 * bytes that the program has not read.
 */
static void close_slowly(struct exchange *exchange)
{
	exchange->state = CLOSING;
	drop_transfer(exchange);
	buf_clear(&exchange->in);
	exchange->is_body_whole = true;
	set_deadline(exchange, EXCHANGE_IDLE_MS);
	if (!flush(exchange)) {
		end(exchange);
	}
}

static void refuse(struct exchange *exchange, int status, const char *text)
{
	reply_write_error(status, text, &exchange->out);
	close_slowly(exchange);
}

/* ---- the request to the server ---- */

static size_t on_upload(char *out, size_t size, size_t count, void *data)
{
	struct exchange *exchange = data;
	size_t used = 0;
	size_t len = 0;
	enum request_step step = request_body_read(
		&exchange->body, buf_span(&exchange->in), &used, out, size * count, &len);
	if (step == REQUEST_WRONG) {
		exchange->why = "the request's body is invalid";
		return CURL_READFUNC_ABORT;
	}
	buf_consume(&exchange->in, used);
	exchange->is_body_whole = step == REQUEST_END;
	set_deadline(exchange, EXCHANGE_IDLE_MS);
	watch(exchange);
	if (len == 0 && step == REQUEST_MORE) {
		exchange->is_upload_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	return len;
}

/* ---- the server's answer ---- */

static void tell_answered(const struct exchange *exchange, int status, const char *text)
{
	struct keys_message message = {.kind = KEYS_ANSWERED,
		.index = (uint32_t)exchange->index,
		.status = (uint32_t)status};
	text_format(message.text, sizeof(message.text), "%s", text);
	exchange->all->listener->on_answered(exchange->all->data, &message);
}

/* A server may send the key back; in JSON, characters of it may be escaped. */
static bool has_key(const struct exchange *exchange, struct span bytes)
{
	struct buf copy;
	buf_init(&copy, bytes.len + 1);
	buf_add(&copy, bytes);
	secrets_mask_text(exchange->all->secrets[exchange->index], &copy, false);
	bool has = !span_equals(buf_span(&copy), bytes);
	buf_wipe(&copy);
	return has;
}

/* Passes on the held bytes, except those at the end that may be the start of the key. */
static bool pass_on(struct exchange *exchange, bool is_end)
{
	struct span span = buf_span(&exchange->held);
	const struct secrets *secrets = exchange->all->secrets[exchange->index];
	if (has_key(exchange, span)) {
		exchange->why = "the server's answer contains the key";
		return false;
	}
	size_t kept = is_end ? 0 : secrets_begun(secrets, span);
	span.len -= kept;
	if (span.len > 0 && exchange->is_chunked) {
		reply_write_chunk(span, &exchange->out);
	} else {
		buf_add(&exchange->out, span);
	}
	buf_consume(&exchange->held, span.len);
	return true;
}

static size_t on_download(char *bytes, size_t size, size_t count, void *data)
{
	struct exchange *exchange = data;
	struct span span = {bytes, size * count};
	if (exchange->out.len >= OUT_HIGH) {
		exchange->is_download_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	set_deadline(exchange, EXCHANGE_IDLE_MS);
	bool is_passed = buf_append(&exchange->held, span, NULL) && pass_on(exchange, false);
	return is_passed && flush(exchange) ? span.len : 0;
}

static bool begin_answer(struct exchange *exchange)
{
	const struct reply *reply = &exchange->reply;
	if (has_key(exchange, buf_span(&reply->fields))) {
		exchange->why = "the server's answer contains the key";
		return false;
	}
	exchange->has_answered = true;
	exchange->is_chunked = reply_has_body(reply, exchange->is_head) && !reply->has_length;
	reply_write_head(reply, exchange->is_head, &exchange->out);
	tell_answered(exchange, reply->status, "");
	return flush(exchange);
}

/* Leaves out lines that come after the body (trailers). */
static size_t on_header(char *bytes, size_t size, size_t count, void *data)
{
	struct exchange *exchange = data;
	struct span line = {bytes, size * count};
	struct error err;
	if (exchange->has_answered) {
		return line.len;
	}
	if (!reply_add_line(&exchange->reply, line, &err)) {
		exchange->why = "the server's answer is not valid HTTP, or too long";
		return 0;
	}
	return !exchange->reply.is_whole || begin_answer(exchange) ? line.len : 0;
}

static void finish_answer(struct exchange *exchange)
{
	if (!pass_on(exchange, true)) {
		reset(exchange);
		return;
	}
	if (exchange->is_chunked) {
		reply_write_chunk((struct span){"", 0}, &exchange->out);
	}
	close_slowly(exchange);
}

/* The end of a transfer, for curl_loop. */
static void on_done(void *data, CURLcode result)
{
	struct exchange *exchange = data;
	char text[HELPER_TEXT_SIZE];
	const char *why = exchange->why ? exchange->why : exchange->curl_says;
	if (result == CURLE_OK && exchange->has_answered) {
		finish_answer(exchange);
		return;
	}
	if (exchange->has_answered) {
		if (exchange->why) {
			tell_answered(exchange, 0, exchange->why);
		}
		reset(exchange);
		return;
	}
	if (why[0] == '\0') {
		why = exchange->all->curl.curl->easy_strerror(result);
	}
	text_format(text, sizeof(text), "%s cannot be reached with the key: %s",
		exchange->place->host, why);
	tell_answered(exchange, 0, text);
	refuse(exchange, HTTP_BAD_GATEWAY, text);
}

/* ---- the transfer ---- */

static curl_socket_t on_socket_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static void add_field(struct exchange *exchange, const char *format, ...) ATTR_PRINTF(2, 3);
static void add_field(struct exchange *exchange, const char *format, ...)
{
	char text[REQUEST_HEAD_MAX + KEY_SECRET_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	exchange->fields = exchange->all->curl.curl->slist_append(exchange->fields, text);
	explicit_bzero(text, sizeof(text));
}

/*
 * A field with an empty value needs another form: libcurl would take it as an order to omit its own
 * field.
 */
static void set_fields(struct exchange *exchange, const struct request *request)
{
	const struct keys_place *place = exchange->place;
	add_field(exchange, "Expect:");
	add_field(exchange, "Accept-Encoding: identity");
	if (!request_find(request, "accept").data) {
		add_field(exchange, "Accept:");
	}
	if (place->header[0]) {
		add_field(exchange, "%s: %s", place->header, place->secret);
	} else {
		add_field(exchange, "Authorization: Bearer %s", place->secret);
	}
	for (size_t i = 0; i < request->field_count; i++) {
		const struct request_field *field = &request->fields[i];
		if (field->value.len > 0 && !request_field_is_ours(request, field->name)) {
			add_field(exchange, "%.*s: %.*s", (int)field->name.len, field->name.data,
				(int)field->value.len, field->value.data);
		}
	}
	exchange->all->curl.curl->easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields);
}

static void set_method(struct exchange *exchange, const struct request *request)
{
	const struct curl *curl = exchange->all->curl.curl;
	char method[16];
	CURL *easy = exchange->easy;
	if (exchange->is_head) {
		curl->easy_setopt(easy, CURLOPT_NOBODY, 1L);
		return;
	}
	if (request->has_body) {
		curl_off_t size = request->is_chunked ? -1 : (curl_off_t)request->length;
		curl->easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl->easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, size);
	}
	text_whole(method, sizeof(method), "%.*s", (int)request->method.len, request->method.data);
	curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

/*
 * Sets the URL, which is the only place to which the request goes: libcurl follows no redirect and
 * does not change the path.
 */
static void set_place(struct exchange *exchange, const struct request *request)
{
	const struct curl *curl = exchange->all->curl.curl;
	const struct keys_place *place = exchange->place;
	char url[URL_MAX];
	CURL *easy = exchange->easy;
	text_whole(url, sizeof(url), "https://%s:%u%.*s", place->host, (unsigned)place->port,
		(int)request->target.len, request->target.data);
	curl->easy_setopt(easy, CURLOPT_URL, url);
	curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl->easy_setopt(easy, CURLOPT_CAINFO, NULL);
	curl->easy_setopt(easy, CURLOPT_CAPATH, NULL);
	curl->easy_setopt(easy, CURLOPT_CAINFO_BLOB, &exchange->all->authorities);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)EXCHANGE_CONNECT_MS);
	curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_open);
}

/* ---- this machine's proxy ---- */

static bool needs_proxy(const struct exchange *exchange)
{
	const struct keys_place *place = exchange->place;
	struct proxy_target target = {.port = (uint16_t)place->port};
	target.is_address = address_parse(&target.address, place->host);
	if (!target.is_address) {
		text_whole(target.name, sizeof(target.name), "%s", place->host);
	}
	return upstream_takes(&exchange->all->start->upstream, &target);
}

/* TLS is between us and the server, so the proxy sees neither the key nor the answer. */
static void set_proxy(struct exchange *exchange)
{
	const struct curl *curl = exchange->all->curl.curl;
	const struct upstream *upstream = &exchange->all->start->upstream;
	char host[NAME_SIZE], authority[NAME_SIZE + 16], url[NAME_SIZE + 32];
	char field[UPSTREAM_KEY_SIZE + 64];
	CURL *easy = exchange->easy;
	exchange->is_proxied = needs_proxy(exchange);
	if (!exchange->is_proxied) {
		curl->easy_setopt(easy, CURLOPT_PROXY, "");
		return;
	}
	proxy_print_host(&upstream->place, host);
	text_host_port(authority, sizeof(authority), host, upstream->place.port);
	text_whole(url, sizeof(url), "http://%s", authority);
	if (upstream->key[0]) {
		text_whole(field, sizeof(field), "Proxy-Authorization: Basic %s", upstream->key);
		exchange->proxy_fields = curl->slist_append(NULL, field);
		explicit_bzero(field, sizeof(field));
	}
	curl->easy_setopt(easy, CURLOPT_PROXY, url);
	curl->easy_setopt(easy, CURLOPT_NOPROXY, "");
	curl->easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl->easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	curl->easy_setopt(easy, CURLOPT_PROXYHEADER, exchange->proxy_fields);
	curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void make_transfer(struct exchange *exchange, const struct request *request)
{
	const struct curl *curl = exchange->all->curl.curl;
	exchange->easy = curl->easy_init();
	assert(exchange->easy); // out of memory aborts
	set_place(exchange, request);
	set_proxy(exchange);
	set_method(exchange, request);
	set_fields(exchange, request);
	curl->easy_setopt(exchange->easy, CURLOPT_PRIVATE, exchange);
	curl->easy_setopt(exchange->easy, CURLOPT_ERRORBUFFER, exchange->curl_says);
	curl->easy_setopt(exchange->easy, CURLOPT_READFUNCTION, on_upload);
	curl->easy_setopt(exchange->easy, CURLOPT_READDATA, exchange);
	curl->easy_setopt(exchange->easy, CURLOPT_WRITEFUNCTION, on_download);
	curl->easy_setopt(exchange->easy, CURLOPT_WRITEDATA, exchange);
	curl->easy_setopt(exchange->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl->easy_setopt(exchange->easy, CURLOPT_HEADERDATA, exchange);
}

/* The host to which we connect; returns its port. */
static unsigned put_first_host(const struct exchange *exchange, char out[NAME_SIZE])
{
	const struct proxy_target *proxy = &exchange->all->start->upstream.place;
	if (exchange->is_proxied) {
		proxy_print_host(proxy, out);
		return proxy->port;
	}
	text_whole(out, NAME_SIZE, "%s", exchange->place->host);
	return exchange->place->port;
}

/* libcurl must not resolve names itself, because it would open files. */
static struct curl_slist *list_addresses(
	const struct exchange *exchange, const struct lookup_answer *answer)
{
	char text[NAME_SIZE + LOOKUP_ADDRESSES_MAX * (ADDRESS_TEXT_SIZE + 3) + 16];
	char host[NAME_SIZE];
	size_t len = 0;
	unsigned port = put_first_host(exchange, host);
	text_whole(text, sizeof(text), "%s:%u:", host, port);
	for (uint32_t i = 0; i < answer->count; i++) {
		char address[ADDRESS_TEXT_SIZE];
		bool is_six = answer->found[i].address.family == AF_INET6;
		address_print(&answer->found[i].address, address);
		len = strlen(text);
		text_whole(text + len, sizeof(text) - len, "%s%s%s%s", i > 0 ? "," : "",
			is_six ? "[" : "", address, is_six ? "]" : "");
	}
	return exchange->all->curl.curl->slist_append(NULL, text);
}

static void run(struct exchange *exchange)
{
	const struct curl_loop *curl = &exchange->all->curl;
	exchange->state = RUNNING;
	set_deadline(exchange, EXCHANGE_IDLE_MS);
	CURLMcode failed = curl->curl->multi_add_handle(curl->multi, exchange->easy);
	assert(failed == CURLM_OK);
	(void)failed;
}

void exchanges_found(struct exchanges *exchanges, const struct lookup_answer *answer)
{
	struct exchange *exchange = NULL;
	LIST_FOR_EACH(at, &exchanges->list, struct exchange, link) {
		exchange = at->id == answer->id && at->state == RESOLVING ? at : exchange;
	}
	if (!exchange) {
		return;
	}
	if (answer->count == 0) {
		text_format(exchange->curl_says, sizeof(exchange->curl_says), "%s has no address",
			exchange->is_proxied ? "this machine's proxy" : "the name");
		on_done(exchange, CURLE_COULDNT_RESOLVE_HOST);
		return;
	}
	exchange->addresses = list_addresses(exchange, answer);
	exchanges->curl.curl->easy_setopt(exchange->easy, CURLOPT_RESOLVE, exchange->addresses);
	run(exchange);
}

/* libcurl takes a proxy that is an address as it is, and would not find [::1] in our list. */
static void resolve(struct exchange *exchange)
{
	struct lookup_request request = {.id = exchange->id};
	if (exchange->is_proxied && exchange->all->start->upstream.place.is_address) {
		run(exchange);
		return;
	}
	(void)put_first_host(exchange, request.name);
	exchange->state = RESOLVING;
	set_deadline(exchange, EXCHANGE_LOOKUP_MS);
	if (!exchange->all->listener->on_lookup(exchange->all->data, &request)) {
		refuse(exchange, HTTP_BAD_GATEWAY, "too many names are being looked up");
	}
}

/* ---- the head ---- */

/* The time of the comparison does not depend on the bytes. */
static bool is_placeholder(const struct keys_place *place, struct span text)
{
	size_t len = strlen(place->placeholder);
	unsigned char differs = 0;
	for (size_t i = 0; text.len == len && i < len; i++) {
		differs = (unsigned char)(differs | (text.data[i] ^ place->placeholder[i]));
	}
	return text.len == len && differs == 0;
}

/*
 * Only the cell's programs know the placeholder. If the cell shares this machine's network, other
 * programs can reach the socket, too; this check keeps them out.
 */
static bool shows_placeholder(const struct keys_place *place, const struct request *request)
{
	static const char *const names[] = {"x-api-key", "x-goog-api-key", "api-key"};
	struct span value = request_find(request, "authorization");
	if (value.len > 7 && strncasecmp(value.data, "bearer ", 7) == 0) {
		value = (struct span){value.data + 7, value.len - 7};
	}
	bool shows = is_placeholder(place, value);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		shows = is_placeholder(place, request_find(request, names[i])) || shows;
	}
	return shows;
}

static void take_head(struct exchange *exchange, size_t size)
{
	struct request request;
	int status = request_read(&request, (struct span){buf_span(&exchange->in).data, size});
	if (status != 0) {
		refuse(exchange, status,
			"acp-broker: the request is of a kind that acp-broker does not pass on");
		return;
	}
	if (!shows_placeholder(exchange->place, &request)) {
		refuse(exchange, HTTP_UNAUTHORIZED,
			"acp-broker: the request does not contain the placeholder of the key");
		return;
	}
	if (!request_is_below(request.target, exchange->place->path)) {
		refuse(exchange, HTTP_FORBIDDEN, "acp-broker: the key is not for this path");
		return;
	}
	exchange->is_head = span_is(request.method, "HEAD");
	request_body_begin(&exchange->body, &request);
	exchange->is_body_whole = !request.is_chunked && request.length == 0;
	make_transfer(exchange, &request);
	if (request.awaits_a_go_ahead) {
		buf_add(&exchange->out, SPAN_LITERAL("HTTP/1.1 100 Continue\r\n\r\n"));
	}
	buf_consume(&exchange->in, size);
	if (flush(exchange)) {
		resolve(exchange);
	} else {
		end(exchange);
	}
}

static void read_head(struct exchange *exchange)
{
	size_t size = request_head_size(buf_span(&exchange->in), exchange->seen);
	exchange->seen = exchange->in.len;
	if (size > 0) {
		take_head(exchange, size);
	} else if (exchange->in.len == IN_MAX) {
		refuse(exchange, 431, "acp-broker: the head of the request is too long");
	}
}

/* ---- events ---- */

/* Bytes after the request end the exchange, because one connection carries one request. */
static void take_rest(struct exchange *exchange)
{
	if (exchange->state == CLOSING) {
		buf_clear(&exchange->in);
	} else if (exchange->is_body_whole) {
		reset(exchange);
	} else {
		watch(exchange);
		if (exchange->is_upload_paused) {
			exchange->is_upload_paused = false;
			exchange->all->curl.curl->easy_pause(exchange->easy,
				exchange->is_download_paused ? CURLPAUSE_RECV : CURLPAUSE_CONT);
		}
	}
}

static void read_client(struct exchange *exchange)
{
	size_t room = IN_MAX - exchange->in.len;
	char *at = buf_reserve(&exchange->in, room < READ_BYTES ? room : READ_BYTES, NULL);
	assert(at);
	ssize_t size =
		recv(exchange->client.fd, at, room < READ_BYTES ? room : READ_BYTES, MSG_DONTWAIT);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	if (size <= 0) {
		end(exchange);
		return;
	}
	buf_commit(&exchange->in, (size_t)size);
	if (exchange->state == READING) {
		read_head(exchange);
	} else {
		take_rest(exchange);
	}
}

static void write_client(struct exchange *exchange)
{
	if (!flush(exchange)) {
		end(exchange);
	} else if (exchange->is_download_paused && exchange->out.len < OUT_HIGH / 2) {
		exchange->is_download_paused = false;
		exchange->all->curl.curl->easy_pause(exchange->easy,
			exchange->is_upload_paused ? CURLPAUSE_SEND : CURLPAUSE_CONT);
	}
}

static void on_client(struct ev_loop *loop, ev_io *io, int events)
{
	struct exchange *exchange = CONTAINER_OF(io, struct exchange, client);
	if (events & EV_READ) {
		read_client(exchange); // this may end the exchange; it writes at the next event
	} else {
		write_client(exchange);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct exchange *exchange = CONTAINER_OF(timer, struct exchange, deadline);
	reset(exchange);
}

/* ---- life ---- */

void exchanges_init(struct exchanges *exchanges, const struct curl *curl)
{
	list_init(&exchanges->list);
	curl_loop_init(&exchanges->curl, exchanges->loop, curl, EXCHANGES_MAX, on_done);
	for (size_t i = 0; i < exchanges->start->count; i++) {
		char entry[KEY_SECRET_MAX + 8];
		const char *const environment[] = {entry, NULL};
		const char *const names[] = {"KEY", NULL};
		text_whole(entry, sizeof(entry), "KEY=%s", exchanges->start->places[i].secret);
		exchanges->secrets[i] = secrets_create(environment, names);
		explicit_bzero(entry, sizeof(entry));
	}
}

void exchanges_add(struct exchanges *exchanges, int client, size_t index)
{
	struct exchange *exchange = mem_alloc_zero(sizeof(*exchange));
	exchange->all = exchanges;
	exchange->id = ++exchanges->last_id;
	exchange->index = index;
	exchange->place = &exchanges->start->places[index];
	buf_init(&exchange->in, IN_MAX);
	buf_init(&exchange->out, OUT_MAX);
	buf_init(&exchange->held, HELD_MAX);
	reply_init(&exchange->reply);
	ev_io_init(&exchange->client, on_client, client, EV_READ);
	ev_timer_init(&exchange->deadline, on_deadline, 0., 0.);
	ev_io_start(exchanges->loop, &exchange->client);
	set_deadline(exchange, EXCHANGE_HEAD_MS);
	list_append(&exchanges->list, &exchange->link);
	exchanges->count++;
}
