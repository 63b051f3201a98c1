/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_REMOTE_CARRIER_H
#define PROVIDERS_REMOTE_CARRIER_H

#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * A carrier reaches a machine: it opens a byte stream to a command there. An SSH channel is one; a
 * gateway or `podman exec -i` could be another. A carrier knows nothing of the runner, and the code
 * above it does not know how the bytes travel.
 *
 * Loop thread. Nothing blocks, and nothing is raised before a function returns. A handler may close
 * the stream for which it is raised.
 */
struct carrier;
struct carrier_stream;

struct carrier_listener {
	/* Bytes from the command's stdout, never empty. The handler must take all of them. */
	void (*on_bytes)(void *data, struct span bytes);
	void (*on_writable)(void *data); // after carrier_write took fewer than all bytes
	/*
	 * The stream has ended, or could not be opened (has_begun is false); `err` gives the
	 * reason. LINK_LOST: the whole carrier is lost. Nothing follows; close the stream.
	 */
	void (*on_closed)(void *data, bool has_begun, const struct error *err);
};

struct carrier_impl {
	const char *name; // "libssh2", "openssh"
	size_t line_max;  // longest command
	struct carrier_stream *(*open)(struct carrier *carrier, const char *line,
		const struct carrier_listener *listener, void *data, struct error *err);
	/* Optional: the same for a program and its arguments, without a shell. */
	struct carrier_stream *(*start)(struct carrier *carrier, const char *const *argv,
		const struct carrier_listener *listener, void *data, struct error *err);
	size_t (*write)(struct carrier_stream *stream, struct span bytes);
	void (*close)(struct carrier_stream *stream);
};

/* Embed both by value as the first member. */
struct carrier {
	const struct carrier_impl *impl;
};

struct carrier_stream {
	const struct carrier *carrier;
};

/* Runs a command line of printable ASCII with the login shell of that machine. */
static inline struct carrier_stream *carrier_open(struct carrier *carrier, const char *line,
	const struct carrier_listener *listener, void *data, struct error *err)
{
	return carrier->impl->open(carrier, line, listener, data, err);
}

/* Runs a program there. Only for carriers that can (carrier_impl.start). */
static inline struct carrier_stream *carrier_start(struct carrier *carrier, const char *const *argv,
	const struct carrier_listener *listener, void *data, struct error *err)
{
	return carrier->impl->start(carrier, argv, listener, data, err);
}

/*
 * Takes as many bytes for the command's stdin as fit. If it takes fewer than all, wait for
 * on_writable.
 */
static inline size_t carrier_write(struct carrier_stream *stream, struct span bytes)
{
	return stream->carrier->impl->write(stream, bytes);
}

/* Frees the stream and raises nothing more; the other side is notified. NULL is fine. */
static inline void carrier_close(struct carrier_stream *stream)
{
	if (stream) {
		stream->carrier->impl->close(stream);
	}
}

#endif
