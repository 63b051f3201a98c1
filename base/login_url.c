/* SPDX-License-Identifier: MIT */
#include "base/login_url.h"

#include <string.h>

#include "base/hex.h"

static const char *const schemes[] = {"https://", "http://"};

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* RFC 3986, 2 "Characters", without the apostrophe, which rather ends a URL in a text. */
static const char url_characters[] = LETTERS_AND_DIGITS "-._~:/?#[]@!$&()*+,;=%";

/* An authority without user information. */
static const char site_characters[] = LETTERS_AND_DIGITS "-._:[]";

static bool is_one_of(const char *characters, char c)
{
	return c != '\0' && strchr(characters, c) != NULL;
}

static bool has_only(struct span text, const char *characters)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!is_one_of(characters, text.data[i])) {
			return false;
		}
	}
	return true;
}

static struct span skip(struct span text, size_t count)
{
	return (struct span){text.data + count, text.len - count};
}

/* Removes `beginning` from the text; false if the text begins otherwise. */
static bool take(struct span *text, const char *beginning)
{
	struct span wanted = span_of(beginning);
	if (!span_starts_with(*text, wanted)) {
		return false;
	}
	*text = skip(*text, wanted.len);
	return true;
}

/* Removes and returns everything before the first of these characters. */
static struct span take_until(struct span *text, const char *characters)
{
	size_t len = 0;
	while (len < text->len && !is_one_of(characters, text->data[len])) {
		len++;
	}
	struct span taken = {text->data, len};
	*text = skip(*text, len);
	return taken;
}

/* ---- one URL ---- */

/* Decodes %XX once. False for a broken one, and for one of anything but a visible character. */
static bool decode(struct span text, char out[LOGIN_URL_MAX], size_t *out_len)
{
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '%') {
			int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
			int low = i + 2 < text.len ? hex_digit(text.data[i + 2]) : -1;
			if (high < 0 || low < 0) {
				return false;
			}
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (c <= ' ' || c >= 0x7f) {
			return false;
		}
		out[len++] = c;
	}
	*out_len = len;
	return true;
}

/* A decimal number without leading zeros, up to the path, the query or the end. */
static bool read_port(struct span text, uint16_t *out)
{
	struct span digits = take_until(&text, "/?");
	unsigned port = 0;
	if (digits.len < 4 || digits.len > 5 || digits.data[0] == '0' ||
		!has_only(digits, "0123456789")) {
		return false;
	}
	for (size_t i = 0; i < digits.len; i++) {
		port = port * 10 + (unsigned)(digits.data[i] - '0');
	}
	*out = (uint16_t)port;
	return port >= LOGIN_URL_PORT_MIN && port <= UINT16_MAX;
}

static bool read_redirect(struct span value, uint16_t *out_port)
{
	char text[LOGIN_URL_MAX];
	struct span rest = {text, 0};
	return decode(value, text, &rest.len) && !memchr(text, '#', rest.len) &&
	       take(&rest, "http://") &&
	       (take(&rest, "localhost:") || take(&rest, "127.0.0.1:") || take(&rest, "[::1]:")) &&
	       read_port(rest, out_port);
}

/* The only redirect_uri of a query; false if there is none or a second. */
static bool find_redirect(struct span query, struct span *out_value)
{
	int count = 0;
	while (query.len > 0) {
		struct span member = take_until(&query, "&");
		query = skip(query, query.len > 0 ? 1 : 0);
		if (take(&member, "redirect_uri=")) {
			*out_value = member;
			count++;
		}
	}
	return count == 1;
}

bool login_url_read(struct span url, struct login_url *out)
{
	struct login_url login = {.port = 0};
	struct span value = {NULL, 0};
	if (url.len > LOGIN_URL_MAX || !has_only(url, url_characters) ||
		(!take(&url, schemes[0]) && !take(&url, schemes[1]))) {
		return false;
	}
	struct span site = take_until(&url, "/?#");
	take_until(&url, "?#");
	take(&url, "?");
	struct span query = take_until(&url, "#");
	if (site.len == 0 || site.len >= sizeof(login.site) || !has_only(site, site_characters) ||
		!find_redirect(query, &value) || !read_redirect(value, &login.port)) {
		return false;
	}
	memcpy(login.site, site.data, site.len);
	*out = login;
	return true;
}

/* ---- a text in pieces ---- */

static bool is_begun(const struct login_scan *scan, const char *scheme)
{
	return scan->len <= strlen(scheme) && memcmp(scan->text, scheme, scan->len) == 0;
}

static bool is_scheme(const struct login_scan *scan, const char *scheme)
{
	return scan->len == strlen(scheme) && is_begun(scan, scheme);
}

/*
 * Takes one more character of what may become a scheme. If it does not fit, only this character can
 * begin a scheme: the first letter of a scheme is nowhere else in it.
 */
static void add_to_scheme(struct login_scan *scan, char c)
{
	scan->text[scan->len++] = c;
	if (!is_begun(scan, schemes[0]) && !is_begun(scan, schemes[1])) {
		scan->len = 0;
		if (c == schemes[0][0]) {
			scan->text[scan->len++] = c;
		}
	}
	scan->is_inside = is_scheme(scan, schemes[0]) || is_scheme(scan, schemes[1]);
}

void login_scan_end(struct login_scan *scan, login_url_found *found, void *data)
{
	struct login_url login;
	struct span url = {scan->text, scan->len};
	while (url.len > 0 && is_one_of(".,;:!)", url.data[url.len - 1])) {
		url.len--; // of the sentence around it
	}
	bool is_one = scan->is_inside && !scan->is_too_long && login_url_read(url, &login);
	scan->len = 0;
	scan->is_inside = false;
	scan->is_too_long = false;
	if (is_one) {
		found(data, &login);
	}
}

void login_scan_feed(struct login_scan *scan, struct span piece, login_url_found *found, void *data)
{
	for (size_t i = 0; i < piece.len; i++) {
		if (scan->len == 0) { // skips what cannot begin a scheme
			const char *next = memchr(piece.data + i, schemes[0][0], piece.len - i);
			if (!next) {
				return;
			}
			i = (size_t)(next - piece.data);
		}
		char c = piece.data[i];
		if (!scan->is_inside) {
			add_to_scheme(scan, c);
		} else if (!is_one_of(url_characters, c)) {
			login_scan_end(scan, found, data);
		} else if (scan->len < sizeof(scan->text)) {
			scan->text[scan->len++] = c;
		} else {
			scan->is_too_long = true;
		}
	}
}
