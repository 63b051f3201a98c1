/* SPDX-License-Identifier: MIT */
#include "sync/git/remotes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- URLs ---- */

/* The part before "://"; empty if there is none. */
static struct span scheme_of(const char *url)
{
	size_t length = 0;
	while ((url[length] >= 'a' && url[length] <= 'z') ||
		(url[length] >= 'A' && url[length] <= 'Z') ||
		(url[length] >= '0' && url[length] <= '9') ||
		(url[length] && strchr("+-.", url[length]))) {
		length++;
	}
	return (struct span){url, strncmp(url + length, "://", 3) == 0 ? length : 0};
}

static bool is_scheme(struct span scheme, const char *end)
{
	size_t length = strlen(end);
	return scheme.len >= length &&
	       strncasecmp(scheme.data + scheme.len - length, end, length) == 0;
}

static const char *find_last(struct span text, char what)
{
	return text.len > 0 ? memrchr(text.data, what, text.len) : NULL;
}

/* Whether it is HOST or HOST:PORT: a password with a slash in it looks like a strange port. */
static bool is_host(struct span host)
{
	const char *end = host.data + host.len;
	const char *bracket = find_last(host, ']');
	const char *from = bracket ? bracket : host.data;
	const char *colon = memchr(from, ':', (size_t)(end - from));
	for (const char *at = colon ? colon + 1 : end; at < end; at++) {
		if (*at < '0' || *at > '9') {
			return false;
		}
	}
	return true;
}

/* A user without a password may be a token, except for SSH. */
static struct span user_of(struct span userinfo, bool is_plain)
{
	const char *colon = memchr(userinfo.data, ':', userinfo.len);
	size_t length = colon ? (size_t)(colon - userinfo.data) : userinfo.len;
	return (struct span){userinfo.data, is_plain ? length : 0};
}

static char *clean_with_scheme(struct span scheme, const char *authority)
{
	bool has_plain_user = is_scheme(scheme, "sh"); // logs in with a key
	bool is_whole = has_plain_user || is_scheme(scheme, "file");
	const char *path = authority + strcspn(authority, "/?#\\");
	size_t length = is_whole ? strlen(path) : strcspn(path, "?#");
	struct span whole = {authority, (size_t)(path - authority)}, user = {authority, 0};
	const char *at = find_last(whole, '@');
	struct span host = whole;
	if (at) {
		host = (struct span){at + 1, (size_t)(path - at - 1)};
		user = user_of((struct span){authority, (size_t)(at - authority)}, has_plain_user);
	}
	struct span rest = {path, length};
	if (!is_host(host) || (strstr(path, "://") && strchr(path, '@'))) {
		return NULL; // the rest is a URL in another URL's path
	}
	struct buf text;
	buf_init(&text, strlen(scheme.data) + 1);
	bool fits = buf_append(&text, (struct span){scheme.data, scheme.len + 3}, NULL) &&
	            buf_append(&text, user, NULL) &&
	            (user.len == 0 || buf_append(&text, SPAN_LITERAL("@"), NULL)) &&
	            buf_append(&text, host, NULL) && buf_append(&text, rest, NULL);
	char *clean = fits ? mem_strndup(buf_span(&text)) : NULL;
	buf_finish(&text);
	return clean;
}

char *remote_url_clean(const char *url)
{
	struct span scheme = scheme_of(url);
	if (scheme.len > 0) {
		return clean_with_scheme(scheme, url + scheme.len + 3);
	}
	/* A path, or HOST:PATH as in scp(1), or a helper's URL. */
	const char *colon = strchr(url, ':');
	return colon && (colon[1] == ':' || strchr(colon, '@')) ? NULL : mem_strdup(url);
}

/* ---- the configuration ---- */

static bool is_one_line(const char *text)
{
	size_t length = strlen(text);
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == '\x7f') {
			return false;
		}
	}
	return length > 0 && text[0] != ' ' && text[length - 1] != ' ';
}

/* NAME in "remote.NAME.KEY" if it can be part of a ref's name; empty: it is another key. */
static struct span remote_of(const char *setting, const char *key)
{
	static const char section[] = "remote.";
	const char *name = setting + sizeof(section) - 1, *end = strrchr(setting, '.');
	if (strncmp(setting, section, sizeof(section) - 1) != 0 || end <= name || *name == '-' ||
		strcmp(end + 1, key) != 0) {
		return (struct span){0};
	}
	for (const char *at = name; at < end; at++) {
		if ((unsigned char)*at <= ' ' || strchr("~^:?*[\\\"\x7f", *at)) {
			return (struct span){0};
		}
	}
	return (struct span){name, (size_t)(end - name)};
}

static bool has_url(const char *setting)
{
	return remote_of(setting, "url").len > 0 || remote_of(setting, "pushurl").len > 0;
}

char *remotes_promisor(const struct user_config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		const char *key = config->settings[i].key;
		struct span name = remote_of(key, "promisor");
		if (name.len > 0 && user_config_is_true(config, key)) {
			return mem_strndup(name);
		}
	}
	return mem_strdup("");
}

void remotes_read(const struct user_config *config, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i < config->count; i++) {
		const struct user_setting *setting = &config->settings[i];
		const char *url = setting->value;
		if (!setting->is_certain || !url || !has_url(setting->key) || !is_one_line(url) ||
			*url == '-') { // never an option of git-config(1)
			continue;
		}
		char *clean = remote_url_clean(url);
		if (clean) {
			(void)!buf_append_format(out, NULL, "%s %s\n", setting->key, clean);
		}
		free(clean);
	}
}
