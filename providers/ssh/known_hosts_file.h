/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_KNOWN_HOSTS_FILE_H
#define PROVIDERS_SSH_KNOWN_HOSTS_FILE_H

#include "base/buf.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/known_hosts_line.h"

/* A line that names the target's host; borrowed. */
struct known_hosts_match {
	const char *file;
	size_t number; // of the line, from 1
	const struct known_hosts_line *line;
	bool is_bare; // it matches only by the host's name without the port
};

/* Reads the rest of the file, up to the size of the buffer. Blocks. */
bool known_hosts_read_all(int fd, struct buf *text, struct error *err) ATTR_NODISCARD;

typedef void known_hosts_visit(void *data, const struct known_hosts_match *match);

/* Calls back for every line of the target's files that names its host, in order. Blocks. */
bool known_hosts_each(const struct ssh_target *target, known_hosts_visit *visit, void *data,
	struct error *err) ATTR_NODISCARD;

#endif
