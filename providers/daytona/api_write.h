/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_WRITE_H
#define PROVIDERS_DAYTONA_API_WRITE_H

#include "base/buf.h"
#include "providers/daytona/api.h"

/* Writes the calls: paths with queries, and bodies as in the service's document. */

enum { DAYTONA_BODY_MAX = 1 << 20, DAYTONA_PATH_MAX = 1 << 16, DAYTONA_PAGE_SIZE = 100 };

/*
 * Writes "/sandbox/ID" and the rest, which is a format; the id is escaped. ERROR_LIMIT if it gets
 * too long.
 */
bool daytona_write_path(struct buf *path, struct error *err, const char *id, const char *format,
	...) ATTR_PRINTF(4, 5) ATTR_NODISCARD;

/* Writes the query for one page of a list; `cursor` is NULL for the first. */
bool daytona_write_list_path(struct buf *path, const struct daytona_pair *labels,
	const char *cursor, struct error *err) ATTR_NODISCARD;

/* ERROR_CONFIG for an image that no line of a Dockerfile can name. */
bool daytona_write_create(
	struct buf *body, const struct daytona_create *create, struct error *err) ATTR_NODISCARD;
bool daytona_write_labels(
	struct buf *body, const struct daytona_pair *labels, struct error *err) ATTR_NODISCARD;
bool daytona_write_network(
	struct buf *body, const struct daytona_network *network, struct error *err) ATTR_NODISCARD;

#endif
