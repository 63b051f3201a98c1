/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_KEPT_HOSTS_H
#define BROKER_POLICY_KEPT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/timestamp.h"

/*
 * The hosts for which the user has answered "always" when the broker asked about a connection
 * (`network = ask`). One file in the state folder has these answers, for all brokers of the user.
 * An answer holds for one profile, one host and one port. All functions block for a moment, to read
 * or replace one short file.
 */
enum {
	KEPT_HOSTS_MAX = 1024,            // in all profiles; a further one is refused
	KEPT_HOSTS_FILE_MAX = 512 * 1024, // bytes
	KEPT_HOSTS_LOCK_MS = 2000,        // wait for another broker that is changing the file
};

struct kept_host {
	char *profile; // owned
	char *host;    // owned; a name or an address
	uint16_t port;
	char since[TIMESTAMP_SIZE]; // RFC 3339
};

struct kept_hosts {
	struct kept_host *items; // oldest first
	size_t count;
	struct stat status; // state of the file that was read; zeroed: there was none
};

/*
 * Reads the file into a list, which may be zeroed or come from an earlier call. Does nothing if the
 * file has not changed since. A missing file has no hosts. ERROR_CONFIG names a file that cannot be
 * understood; the list is empty then.
 */
bool kept_hosts_read(
	struct kept_hosts *hosts, const char *state_folder, struct error *err) ATTR_NODISCARD;
void kept_hosts_finish(struct kept_hosts *hosts); // fine for a zeroed one

bool kept_hosts_have(
	const struct kept_hosts *hosts, const char *profile, const char *host, uint16_t port);

/*
 * Adds a host to the file, unless the file has it. ERROR_LIMIT; ERROR_TIMEOUT; ERROR_CONFIG as
 * above.
 */
bool kept_hosts_add(const char *state_folder, const char *profile, const char *host, uint16_t port,
	struct error *err) ATTR_NODISCARD;

/*
 * Removes the entries of a host from the file. profile NULL: of every profile; port 0: of every
 * port. *out_count is the number of removed entries.
 */
bool kept_hosts_forget(const char *state_folder, const char *profile, const char *host,
	uint16_t port, size_t *out_count, struct error *err) ATTR_NODISCARD;

#endif
