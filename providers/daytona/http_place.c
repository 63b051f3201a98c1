/* SPDX-License-Identifier: MIT */
#include "providers/daytona/http_impl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of the first of two variables that is set and not empty, or NULL. */
static char *look_up(const char *const *environment, const char *name, const char *other)
{
	const char *const names[] = {name, other};
	for (size_t i = 0; environment && i < ARRAY_LENGTH(names); i++) {
		size_t len = strlen(names[i]);
		for (const char *const *entry = environment; *entry; entry++) {
			if (strncmp(*entry, names[i], len) == 0 && (*entry)[len] == '=' &&
				(*entry)[len + 1] != '\0') {
				return mem_strdup(*entry + len + 1);
			}
		}
	}
	return NULL;
}

static bool is_loopback(const char *host)
{
	struct in_addr address;
	return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

/* A part that the URL has; the caller frees it with libcurl. */
static char *part_of(const struct curl *curl, CURLU *url, CURLUPart part)
{
	char *text = NULL;
	return curl->url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool has_part(const struct curl *curl, CURLU *url, CURLUPart part)
{
	char *text = part_of(curl, url, part);
	curl->free(text);
	return text != NULL;
}

static bool check_url(struct http *http, CURLU *url, const char *text, struct error *err)
{
	const struct curl *curl = http->curl;
	static const CURLUPart unwanted[] = {
		CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT};
	for (size_t i = 0; i < ARRAY_LENGTH(unwanted); i++) {
		if (has_part(curl, url, unwanted[i])) { // may be a secret, so it is not repeated
			return error_set(
				err, ERROR_CONFIG, "the URL may have no user, query or fragment");
		}
	}
	char *scheme = part_of(curl, url, CURLUPART_SCHEME);
	char *host = part_of(curl, url, CURLUPART_HOST);
	bool is_http = scheme && strcmp(scheme, "http") == 0;
	bool is_https = scheme && strcmp(scheme, "https") == 0;
	http->host = mem_strdup(host ? host : "");
	curl->free(scheme);
	curl->free(host);
	if ((!is_http && !is_https) || http->host[0] == '\0') {
		return error_set(err, ERROR_CONFIG,
			"\"%s\" is not the URL of a server: expected https://HOST/PATH", text);
	}
	if (is_http && !is_loopback(http->host)) {
		return error_set(err, ERROR_CONFIG,
			"\"%s\" would send the key in the clear: use https (http is only for "
			"localhost, 127.0.0.1 and [::1])",
			text);
	}
	http->proxy = is_http ? mem_strdup("") : NULL;
	return true;
}

static void drop_slashes(char *url)
{
	size_t len = strlen(url);
	while (len > 0 && url[len - 1] == '/') {
		len--;
	}
	url[len] = '\0';
}

bool http_read_place(struct http *http, const struct http_config *config, struct error *err)
{
	const struct curl *curl = http->curl;
	CURLU *url = curl->url();
	CURLUcode failed = curl->url_set(url, CURLUPART_URL, config->url, 0);
	bool ok = failed == CURLUE_OK
	                  ? check_url(http, url, config->url, err)
	                  : error_set(err, ERROR_CONFIG, "not a URL: expected https://HOST/PATH");
	if (ok) {
		char *whole = part_of(curl, url, CURLUPART_URL);
		http->url = mem_strdup(whole ? whole : config->url);
		curl->free(whole);
		drop_slashes(http->url);
	}
	curl->url_cleanup(url);
	if (!ok) {
		return false;
	}
	const char *const *environment = config->environment;
	if (!http->proxy) {
		http->proxy = look_up(environment, "https_proxy", "HTTPS_PROXY");
	}
	if (!http->proxy) {
		http->proxy = look_up(environment, "all_proxy", "ALL_PROXY");
	}
	if (!http->proxy) {
		http->proxy = mem_strdup("");
	}
	http->no_proxy = look_up(environment, "no_proxy", "NO_PROXY");
	http->authorities = look_up(environment, "CURL_CA_BUNDLE", "SSL_CERT_FILE");
	http->has_authorities = http->authorities || curl->version_info(CURLVERSION_NOW)->cainfo;
	http->authorities_folder = look_up(environment, "SSL_CERT_DIR", "SSL_CERT_DIR");
	return true;
}
