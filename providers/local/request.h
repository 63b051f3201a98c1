/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_REQUEST_H
#define PROVIDERS_LOCAL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * Reads an HTTP request (RFC 9112) that a confined program sends to a server behind a key, or to a
 * proxy. Hostile programs write it, and a server receives it, perhaps with a key. If the two
 * readers understood it differently, that would allow request smuggling. So a request with more
 * than one possible reading is refused: it must be HTTP/1.1, its lines must end with CR LF, and its
 * body must have one length.
 */
enum {
	REQUEST_HEAD_MAX = 64 << 10,
	REQUEST_FIELDS_MAX = 128,
};

struct request_field {
	struct span name;  // as written
	struct span value; // without surrounding blanks
};

/* All spans are borrowed from the head. */
struct request {
	struct span method;    // one of GET, HEAD, POST, PUT, PATCH, DELETE
	struct span target;    // "/path?query"
	struct span authority; // of a URL: visible characters; request_read leaves it empty
	struct request_field fields[REQUEST_FIELDS_MAX];
	size_t field_count;
	bool is_chunked; // the body comes in chunks; otherwise it has `length` bytes
	uint64_t length;
	bool has_body;          // is_chunked, or it gives a length
	bool awaits_a_go_ahead; // Expect: 100-continue
};

/*
 * Returns the size of the head, with its empty line; 0 if it is incomplete. The first `seen` bytes
 * were searched before.
 */
size_t request_head_size(struct span bytes, size_t seen);

/*
 * Reads a complete head, whose target must be a path. Returns 0, or the HTTP status with which to
 * refuse the request.
 */
int request_read(struct request *out, struct span head);

/* The same for a request to a proxy: its target must be a URL, http://AUTHORITY/PATH. */
int request_read_url(struct request *out, struct span head);

/*
 * Whether a target lies below a path ("" or "/v1") for every possible server, even one that reads
 * %2f, %5c and \ as a slash and %2e as a dot.
 */
bool request_is_below(struct span target, const char *path);

/*
 * Whether a field concerns only this connection, or must be written anew when the request is sent
 * on (Host, Content-Length).
 */
bool request_field_is_of_hop(const struct request *request, struct span name);

/*
 * Whether we do not send the field on with a key. These are the fields of request_field_is_of_hop,
 * those that carry a key, and those that could change how the server reads the request.
 */
bool request_field_is_ours(const struct request *request, struct span name);

/* The value of the first field with this name; an empty span: there is none. */
struct span request_find(const struct request *request, const char *name);

/* ---- the body ---- */

struct request_body {
	bool is_chunked;
	int state;       // an enum of request.c
	uint64_t left;   // bytes left in the chunk or in the body
	unsigned digits; // of a chunk's size
};

enum request_step {
	REQUEST_MORE,  // the body continues
	REQUEST_END,   // the body is complete
	REQUEST_WRONG, // the body is invalid
};

void request_body_begin(struct request_body *body, const struct request *request);

/*
 * Reads some bytes of the body; *out_used of them were read. Writes the content to `out`, which has
 * room for `size` bytes; *out_len of them were written.
 */
enum request_step request_body_read(struct request_body *body, struct span bytes, size_t *out_used,
	char *out, size_t size, size_t *out_len);

#endif
