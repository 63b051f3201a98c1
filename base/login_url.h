/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOGIN_URL_H
#define BASE_LOGIN_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * Finds the addresses of login pages that send the browser back to a program on the same machine
 * (RFC 8252, 7.3 "Loopback Interface Redirection"): the query has
 * redirect_uri=http://localhost:PORT/…, or 127.0.0.1 or [::1] in place of localhost. The text is
 * foreign. Whatever two readers could understand differently is no such address: user information,
 * a second redirect_uri, a broken percent-encoding, an encoded control character, another spelling
 * of the host, and ports below 1024.
 */
enum {
	LOGIN_URL_MAX = 4096,      // bytes; a longer URL is ignored
	LOGIN_URL_SITE_SIZE = 260, // a name of DNS, and a port
	LOGIN_URL_PORT_MIN = 1024,
};

struct login_url {
	uint16_t port;                  // where the browser comes back to
	char site[LOGIN_URL_SITE_SIZE]; // host of the login page, with its port if the URL has one
};

/* False if the URL is not such an address. */
bool login_url_read(struct span url, struct login_url *out);

typedef void login_url_found(void *data, const struct login_url *login);

/* Looks for them in a text that comes in pieces. Zero-initialise. */
struct login_scan {
	char text[LOGIN_URL_MAX]; // the URL so far, or its beginning
	size_t len;
	bool is_inside;   // text has a scheme and "://"
	bool is_too_long; // the URL does not fit
};

/*
 * Reports each URL once a character follows that no URL has. The handler must not change or free
 * the scan.
 */
void login_scan_feed(
	struct login_scan *scan, struct span piece, login_url_found *found, void *data);

/* The text ends here. */
void login_scan_end(struct login_scan *scan, login_url_found *found, void *data);

#endif
