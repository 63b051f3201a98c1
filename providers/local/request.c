/* SPDX-License-Identifier: MIT */
#include "providers/local/request.h"

#include <string.h>
#include <strings.h>

#include "base/hex.h"

enum {
	BAD = 400,
	NO_METHOD = 405,
	NO_EXPECTATION = 417,
	TOO_LARGE = 431,
	NO_CODING = 501,
	NO_VERSION = 505
};

/* Not TRACE, which would send a key back, and not CONNECT, which is not a request to a server. */
static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};

/*
 * The fields that concern only one connection (or are written anew), besides those that begin with
 * "proxy-" and those that Connection lists.
 */
static const char *const of_hop[] = {
	"connection",
	"content-length",
	"host",
	"keep-alive",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
};

/* The other fields that we do not send on with a key. */
static const char *const ours[] = {
	"accept-encoding", // we search the answer for the key
	"api-key",
	"authorization",
	"expect",
	"forwarded",
	"max-forwards",
	"via",
	"x-api-key",
	"x-goog-api-key",
	"x-http-method",
	"x-http-method-override",
	"x-method-override",
	"x-original-url",
	"x-rewrite-url",
};

/* ---- characters ---- */

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!is_token_char(text.data[i])) {
			return false;
		}
	}
	return text.len > 0;
}

static bool is_value(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if ((c < ' ' && c != '\t') || c == 0x7f) {
			return false;
		}
	}
	return true;
}

static bool is_name(struct span name, const char *other)
{
	return name.len == strlen(other) && strncasecmp(name.data, other, name.len) == 0;
}

static struct span trim(struct span text)
{
	while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
		text = (struct span){text.data + 1, text.len - 1};
	}
	while (text.len > 0 &&
		(text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t')) {
		text.len--;
	}
	return text;
}

/* ---- the target ---- */

/* The characters of a path and a query in RFC 3986, and a few that browsers do not escape. */
static bool is_target(struct span target)
{
	if (target.len == 0 || target.data[0] != '/') {
		return false;
	}
	for (size_t i = 0; i < target.len; i++) {
		char c = target.data[i];
		bool is_escape = c == '%' && i + 2 < target.len &&
		                 hex_digit(target.data[i + 1]) >= 0 &&
		                 hex_digit(target.data[i + 2]) >= 0;
		if (c <= ' ' || c >= 0x7f || strchr("\"#<>\\^`{}", c) || (c == '%' && !is_escape)) {
			return false;
		}
	}
	return true;
}

/* Reads the character at *at of a path as the most lenient server would. */
static char take_letter(struct span path, size_t *at)
{
	char c = path.data[(*at)++];
	if (c == '%' && *at + 1 < path.len && hex_digit(path.data[*at]) >= 0 &&
		hex_digit(path.data[*at + 1]) >= 0) {
		c = (char)(hex_digit(path.data[*at]) * 16 + hex_digit(path.data[*at + 1]));
		*at += 2;
	}
	return (char)(c == '\\' ? '/' : c);
}

/* Whether the path has a segment "." or "..", or one with parameters, such as "..;x". */
static bool has_dots(struct span path)
{
	size_t dots = 0;
	bool is_dots = true;
	for (size_t at = 0; at < path.len;) {
		char c = take_letter(path, &at);
		if (c == '\0') {
			return true; // some servers stop reading the path here
		}
		if (c == '/' || c == ';') {
			if (is_dots && dots > 0 && dots <= 2) {
				return true;
			}
			dots = 0;
			is_dots = c == '/';
		} else if (c == '.') {
			dots++;
		} else {
			is_dots = false;
		}
	}
	return is_dots && dots > 0 && dots <= 2;
}

bool request_is_below(struct span target, const char *path)
{
	const char *query = memchr(target.data, '?', target.len);
	struct span of_path = {target.data, query ? (size_t)(query - target.data) : target.len};
	struct span base = span_of(path);
	return span_starts_with(of_path, base) && !has_dots(of_path) &&
	       (of_path.len == base.len || of_path.data[base.len] == '/');
}

/* ---- the head ---- */

size_t request_head_size(struct span bytes, size_t seen)
{
	static const char end[] = "\r\n\r\n";
	size_t from = seen > 3 ? seen - 3 : 0;
	const char *found =
		bytes.len > from ? memmem(bytes.data + from, bytes.len - from, end, 4) : NULL;
	return found ? (size_t)(found - bytes.data) + 4 : 0;
}

/* Takes a line. False if it does not end with CR LF, or contains a single CR or LF. */
static bool take_line(struct span *rest, struct span *out)
{
	const char *end = memmem(rest->data, rest->len, "\r\n", 2);
	if (!end) {
		return false;
	}
	*out = (struct span){rest->data, (size_t)(end - rest->data)};
	*rest = (struct span){end + 2, rest->len - out->len - 2};
	return memchr(out->data, '\r', out->len) == NULL &&
	       memchr(out->data, '\n', out->len) == NULL;
}

static bool is_visible(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f) {
			return false;
		}
	}
	return text.len > 0;
}

/* Takes "http://AUTHORITY" from the front of the target; the rest is "/" if nothing is left. */
static bool take_authority(struct request *request)
{
	static const char scheme[] = "http://";
	const size_t len = sizeof(scheme) - 1;
	struct span url = request->target;
	if (url.len <= len || strncasecmp(url.data, scheme, len) != 0) {
		return false;
	}
	struct span rest = {url.data + len, url.len - len};
	const char *slash = memchr(rest.data, '/', rest.len);
	size_t end = slash ? (size_t)(slash - rest.data) : rest.len;
	request->authority = (struct span){rest.data, end};
	request->target = slash ? (struct span){slash, rest.len - end} : SPAN_LITERAL("/");
	return is_visible(request->authority);
}

static int read_first_line(struct request *request, struct span line, bool has_url)
{
	const char *first = memchr(line.data, ' ', line.len);
	const char *last = memrchr(line.data, ' ', line.len);
	if (!first || first == last) {
		return BAD;
	}
	const char *end = line.data + line.len;
	struct span version = {last + 1, (size_t)(end - last) - 1};
	request->method = (struct span){line.data, (size_t)(first - line.data)};
	request->target = (struct span){first + 1, (size_t)(last - first) - 1};
	if (has_url && !take_authority(request)) {
		return BAD;
	}
	if (!span_is(version, "HTTP/1.1")) {
		return span_starts_with(version, SPAN_LITERAL("HTTP/")) ? NO_VERSION : BAD;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (span_is(request->method, methods[i])) {
			return is_target(request->target) ? 0 : BAD;
		}
	}
	return is_token(request->method) ? NO_METHOD : BAD;
}

/*
 * Reads a field: a name at the start of the line, directly followed by ":", and a value without
 * control characters.
 */
static int read_field(struct request *request, struct span line)
{
	const char *colon = memchr(line.data, ':', line.len);
	if (!colon) {
		return BAD;
	}
	size_t len = (size_t)(colon - line.data);
	struct request_field field = {.name = {line.data, len},
		.value = trim((struct span){colon + 1, line.len - len - 1})};
	if (!is_token(field.name) || !is_value(field.value)) {
		return BAD;
	}
	if (request->field_count == REQUEST_FIELDS_MAX) {
		return TOO_LARGE;
	}
	request->fields[request->field_count++] = field;
	return 0;
}

static bool read_length(struct span text, uint64_t *out)
{
	uint64_t length = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return false;
		}
		length = length * 10 + (uint64_t)(text.data[i] - '0');
	}
	*out = length;
	return text.len > 0 && text.len <= 18;
}

/* Accepts only one of the fields that give the body's length, and only once. */
static int read_framing(struct request *request)
{
	bool has_length = false;
	for (size_t i = 0; i < request->field_count; i++) {
		const struct request_field *field = &request->fields[i];
		if (is_name(field->name, "transfer-encoding")) {
			if (request->is_chunked || !is_name(field->value, "chunked")) {
				return NO_CODING;
			}
			request->is_chunked = true;
		} else if (is_name(field->name, "content-length")) {
			if (has_length || !read_length(field->value, &request->length)) {
				return BAD;
			}
			has_length = true;
		} else if (is_name(field->name, "expect")) {
			if (!is_name(field->value, "100-continue")) {
				return NO_EXPECTATION;
			}
			request->awaits_a_go_ahead = true;
		}
	}
	request->has_body = request->is_chunked || has_length;
	bool has_none = span_is(request->method, "GET") || span_is(request->method, "HEAD");
	bool is_long = request->is_chunked || request->length > 0;
	return (request->is_chunked && has_length) || (has_none && is_long) ? BAD : 0;
}

/* RFC 9112, section 3.2: a request with no Host or with two is answered with 400. */
static bool has_one_host(const struct request *request)
{
	size_t count = 0;
	for (size_t i = 0; i < request->field_count; i++) {
		count += is_name(request->fields[i].name, "host");
	}
	return count == 1;
}

static int read_head(struct request *out, struct span head, bool has_url)
{
	struct span rest = head;
	struct span line;
	*out = (struct request){.field_count = 0};
	int status = take_line(&rest, &line) ? read_first_line(out, line, has_url) : BAD;
	while (status == 0) {
		if (!take_line(&rest, &line)) {
			return BAD;
		}
		if (line.len == 0) {
			break;
		}
		status = read_field(out, line);
	}
	status = status != 0 ? status : read_framing(out);
	return status == 0 && (rest.len > 0 || !has_one_host(out)) ? BAD : status;
}

int request_read(struct request *out, struct span head)
{
	return read_head(out, head, false);
}

int request_read_url(struct request *out, struct span head)
{
	return read_head(out, head, true);
}

/* Whether Connection lists the field, which then concerns only this connection. */
static bool is_listed(const struct request *request, struct span name)
{
	for (size_t i = 0; i < request->field_count; i++) {
		struct span rest = request->fields[i].value;
		if (!is_name(request->fields[i].name, "connection")) {
			continue;
		}
		for (struct span word; (word = span_take_word(&rest, ", \t")).len > 0;) {
			if (word.len == name.len &&
				strncasecmp(word.data, name.data, name.len) == 0) {
				return true;
			}
		}
	}
	return false;
}

static bool is_one_of(struct span name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_name(name, names[i])) {
			return true;
		}
	}
	return false;
}

bool request_field_is_of_hop(const struct request *request, struct span name)
{
	static const char proxy[] = "proxy-";
	size_t len = sizeof(proxy) - 1;
	return (name.len >= len && strncasecmp(name.data, proxy, len) == 0) ||
	       is_one_of(name, of_hop, ARRAY_LENGTH(of_hop)) || is_listed(request, name);
}

bool request_field_is_ours(const struct request *request, struct span name)
{
	return is_one_of(name, ours, ARRAY_LENGTH(ours)) || request_field_is_of_hop(request, name);
}

struct span request_find(const struct request *request, const char *name)
{
	for (size_t i = 0; i < request->field_count; i++) {
		if (is_name(request->fields[i].name, name)) {
			return request->fields[i].value;
		}
	}
	return (struct span){NULL, 0};
}

/* ---- the body ---- */

enum state { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, ALL, END };
enum { SIZE_DIGITS_MAX = 12 };

void request_body_begin(struct request_body *body, const struct request *request)
{
	*body = (struct request_body){
		.is_chunked = request->is_chunked,
		.state = request->is_chunked   ? SIZE
	                 : request->length > 0 ? ALL
	                                       : END,
		.left = request->is_chunked ? 0 : request->length,
	};
}

/* Reads a character of the line with a chunk's size. Extensions are refused. */
static bool take_size(struct request_body *body, char c)
{
	int digit = hex_digit(c);
	if (c == '\r' && body->digits > 0) {
		body->state = SIZE_LF;
		return true;
	}
	if (digit < 0 || body->digits == SIZE_DIGITS_MAX) {
		return false;
	}
	body->left = body->left * 16 + (unsigned)digit;
	body->digits++;
	return true;
}

/* Reads a character between the contents of chunks. */
static bool take_mark(struct request_body *body, char c)
{
	static const struct {
		char letter;
		enum state next;
	} marks[] = {
		[SIZE_LF] = {'\n', DATA},
		[DATA_CR] = {'\r', DATA_LF},
		[DATA_LF] = {'\n', SIZE},
		[LAST_CR] = {'\r', LAST_LF}, // trailers are refused
		[LAST_LF] = {'\n', END},
	};
	if (body->state == SIZE) {
		return take_size(body, c);
	}
	if (c != marks[body->state].letter) {
		return false;
	}
	bool is_last = body->state == SIZE_LF && body->left == 0;
	body->digits = 0;
	body->state = is_last ? LAST_CR : (int)marks[body->state].next;
	return true;
}

enum request_step request_body_read(struct request_body *body, struct span bytes, size_t *out_used,
	char *out, size_t size, size_t *out_len)
{
	size_t at = 0;
	size_t len = 0;
	while (body->state != END && at < bytes.len) {
		if (body->state != DATA && body->state != ALL) {
			if (!take_mark(body, bytes.data[at])) {
				return REQUEST_WRONG;
			}
			at++;
			continue;
		}
		size_t count = bytes.len - at < size - len ? bytes.len - at : size - len;
		count = count < body->left ? count : (size_t)body->left;
		if (count == 0) {
			break; // `out` is full
		}
		memcpy(out + len, bytes.data + at, count);
		at += count;
		len += count;
		body->left -= count;
		if (body->left == 0) {
			body->state = body->state == ALL ? END : DATA_CR;
		}
	}
	*out_used = at;
	*out_len = len;
	return body->state == END ? REQUEST_END : REQUEST_MORE;
}
