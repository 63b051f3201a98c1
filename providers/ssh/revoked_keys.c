/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/known_hosts_file.h"
#include "providers/ssh/known_hosts_line.h"

static const char krl_magic[] = "SSHKRL\n";

/* A line of this file has no host names, because it applies to all hosts. */
static bool is_key(struct span line, const struct host_key *key)
{
	struct known_hosts_line read;
	struct buf text;
	struct error ignored;
	buf_init(&text, KNOWN_HOSTS_FILE_MAX + 2);
	bool is_same = buf_append(&text, SPAN_LITERAL("* "), &ignored) &&
	               buf_append(&text, line, &ignored) &&
	               known_hosts_line_read(buf_span(&text), &read);
	if (is_same) {
		is_same = read.blob_len == key->blob.len &&
		          memcmp(read.blob, key->blob.data, read.blob_len) == 0;
		known_hosts_line_finish(&read);
	}
	buf_finish(&text);
	return is_same;
}

static void search(
	struct span text, const struct host_key *key, struct known_hosts_finding *finding)
{
	size_t number = 0;
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		struct span line = {text.data, end ? (size_t)(end - text.data) : text.len};
		size_t taken = line.len + (end ? 1 : 0);
		number++;
		if (is_key(line, key)) {
			finding->verdict = KNOWN_HOSTS_REVOKED;
			finding->line = number;
			return;
		}
		text = (struct span){text.data + taken, text.len - taken};
	}
}

bool revoked_keys_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err)
{
	const char *path = target->revoked_host_keys;
	struct buf text;
	*out_finding = (struct known_hosts_finding){.verdict = KNOWN_HOSTS_UNKNOWN};
	if (!path) {
		return true;
	}
	text_format(out_finding->file, sizeof(out_finding->file), "%s", path);
	buf_init(&text, KNOWN_HOSTS_FILE_MAX);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool ok = fd >= 0 ? known_hosts_read_all(fd, &text, err)
	                  : error_set_errno(err, errno, "opening it");
	if (!ok) {
		error_prefix(err,
			"no host key is accepted while RevokedHostKeys (%s) cannot be read", path);
	} else if (span_starts_with(buf_span(&text), span_of(krl_magic))) {
		ok = error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"RevokedHostKeys (%s) is a KRL, which libssh2 cannot read: ssh-client = "
			"openssh can",
			path);
	} else {
		search(buf_span(&text), key, out_finding);
	}
	buf_finish(&text);
	return ok;
}
