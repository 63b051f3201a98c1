/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PIN_NEWS_H
#define PROVIDERS_LOCAL_PIN_NEWS_H

#include "base/buf.h"
#include "providers/local/pin_list.h"

/*
 * What a workspace contained when a confined agent got it, and what the user was told since: which
 * files without a pin the user's tools run commands from. It knows neither how a pin works nor when
 * somebody looks.
 */
struct pin_news {
	struct pin_list known;
	size_t known_first; // the first known_first are pinned
	bool is_renewed;    // a pin follows its path if another file takes its place there
	bool writes_git;    // repositories are not pinned
};

enum { PIN_NEWS_MAX = 64 * 1024 }; // bytes of a text

/*
 * Takes the list over, which leaves an empty one. Everything in it is pinned, except links: they
 * are news like later files.
 */
void pin_news_begin(struct pin_news *news, struct pin_list *list);
void pin_news_finish(struct pin_news *news); // zeroed is fine

/* Notes that everything in the list, except links, is pinned now. Call it after pin_news_write. */
void pin_news_pin(struct pin_news *news, const struct pin_list *list);

/*
 * Appends a text for the user about what is in the list and was not told before, with a NUL. False:
 * there is nothing new, or the text does not fit. `local` names the workspace.
 */
bool pin_news_write(struct pin_news *news, const char *local, const struct pin_list *list,
	struct buf *text) ATTR_NODISCARD;

/* Notes that the pin of a path is lost, so that the next look finds that this is new. */
void pin_news_lose(struct pin_news *news, const char *root, const char *path);

/* Whether a path is pinned or lies in a pinned folder. `root` is the workspace, without links. */
bool pin_news_has(const struct pin_news *news, const char *root, const char *path);

#endif
