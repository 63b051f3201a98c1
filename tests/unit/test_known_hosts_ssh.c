/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/sshd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/base64.h"
#include "providers/ssh/known_hosts.h"

/* The verdict about a host's key must be that of ssh(1), with a real sshd. */
enum { TEXT_MAX = 4096 };

static struct sshd sshd;
static char file[SSHD_PATH_MAX + 16];
static char offered[512];  // "ssh-ed25519 AAAA…", the host's
static char stranger[512]; // of the same type
static char other[512];    // of another
static struct host_key key;

/* The first line that a shell command prints. */
static void run(char *text, size_t size, const char *command)
{
	FILE *pipe = popen(command, "re"); // NOLINT(bugprone-command-processor): fixed texts
	assert_non_null(pipe);
	size_t len = fread(text, 1, size - 1, pipe);
	text[len] = '\0';
	pclose(pipe);
}

static void make_key(char *text, size_t size, const char *kind)
{
	char command[TEXT_MAX];
	snprintf(command, sizeof(command),
		"cd %s && ssh-keygen -q -t %s -N '' -f %s.other && cut -d' ' -f1,2 %s.other.pub",
		sshd.folder, kind, kind, kind);
	run(text, size, command);
	text[strcspn(text, "\n")] = '\0';
}

static int setup(void **state)
{
	char command[TEXT_MAX];
	uint8_t *blob;
	size_t len;
	sshd_start(&sshd, NULL);
	snprintf(file, sizeof(file), "%s/kh.test", sshd.folder);
	snprintf(command, sizeof(command), "grep -h ssh-ed25519 %s | head -n 1 | cut -d' ' -f2,3",
		sshd.known_hosts);
	run(offered, sizeof(offered), command);
	offered[strcspn(offered, "\n")] = '\0';
	make_key(stranger, sizeof(stranger), "ed25519");
	make_key(other, sizeof(other), "ecdsa");
	assert_non_null(strchr(offered, ' '));
	assert_true(base64_decode(span_of(strchr(offered, ' ') + 1), &blob, &len));
	key = (struct host_key){"ssh-ed25519", {(const char *)blob, len}};
	return 0;
}

static int teardown(void **state)
{
	free((void *)key.blob.data);
	sshd_stop(&sshd);
	return 0;
}

/* $P is the port, $K the host's key, $S a stranger, $O a key of another type. */
static void write_known(const char *text)
{
	FILE *known = fopen(file, "w");
	assert_non_null(known);
	for (; *text; text++) {
		const char *part = NULL;
		if (*text == '$') {
			part = *++text == 'K' ? offered : *text == 'S' ? stranger : other;
		}
		if (*text == 'P' && text[-1] == '$') {
			fprintf(known, "%d", sshd.port);
		} else if (part) {
			fputs(part, known);
		} else {
			fputc(*text, known);
		}
	}
	assert_int_equal(fclose(known), 0);
}

static enum known_hosts_verdict ask_ssh(const char *alias)
{
	char command[TEXT_MAX];
	char text[TEXT_MAX];
	snprintf(command, sizeof(command),
		"ssh -F none -p %d -i %s -o BatchMode=yes -o StrictHostKeyChecking=yes "
		"-o HostKeyAlgorithms=ssh-ed25519 -o UserKnownHostsFile=%s "
		"-o GlobalKnownHostsFile=/dev/null %s%s %s@127.0.0.1 echo accepted 2>&1",
		sshd.port, sshd.key, file, alias ? "-o HostKeyAlias=" : "", alias ? alias : "",
		sshd.user);
	run(text, sizeof(text), command);
	if (strstr(text, "accepted")) {
		return KNOWN_HOSTS_MATCH;
	}
	assert_non_null(strstr(text, "Host key verification failed"));
	return strstr(text, "REVOKED")   ? KNOWN_HOSTS_REVOKED
	       : strstr(text, "CHANGED") ? KNOWN_HOSTS_MISMATCH
	                                 : KNOWN_HOSTS_UNKNOWN;
}

static enum known_hosts_verdict ask_us(const char *alias)
{
	char *files[] = {file, NULL};
	char host[] = "127.0.0.1";
	struct ssh_target target = {.host = host,
		.port = sshd.port,
		.host_key_alias = (char *)alias,
		.user_known_hosts_files = files};
	struct known_hosts_finding finding;
	struct error err;
	assert_true(known_hosts_check(&target, &key, &finding, &err));
	return finding.verdict;
}

static const struct {
	const char *known, *alias;
	enum known_hosts_verdict verdict;
} cases[] = {
	{"", NULL, KNOWN_HOSTS_UNKNOWN},
	{"[127.0.0.1]:$P $K\n", NULL, KNOWN_HOSTS_MATCH},
	{"[127.0.0.1]:$P $S\n", NULL, KNOWN_HOSTS_MISMATCH},
	{"[127.0.0.1]:$P $S\n[127.0.0.1]:$P $K", NULL, KNOWN_HOSTS_MATCH},
	{"[127.0.0.1]:$P $O\n", NULL, KNOWN_HOSTS_MISMATCH},
	{"127.0.0.1 $K\n", NULL, KNOWN_HOSTS_MATCH},
	{"127.0.0.1 $S\n", NULL, KNOWN_HOSTS_UNKNOWN},
	{"127.0.0.1 $K\n[127.0.0.1]:$P $O\n", NULL, KNOWN_HOSTS_MISMATCH},
	{"[127.0.0.*]:* $K\n", NULL, KNOWN_HOSTS_MATCH},
	{"* $K\n", NULL, KNOWN_HOSTS_MATCH},
	{"*,![127.*]:* $K\n", NULL, KNOWN_HOSTS_MATCH}, // by the name without a port
	{"*,!127.* $K\n", NULL, KNOWN_HOSTS_MATCH},     // by the name with a port
	{"*,!*127.* $K\n", NULL, KNOWN_HOSTS_UNKNOWN},
	{"@revoked * $K\n[127.0.0.1]:$P $K\n", NULL, KNOWN_HOSTS_REVOKED},
	{"@revoked * $S\n[127.0.0.1]:$P $K\n", NULL, KNOWN_HOSTS_MATCH},
	{"@cert-authority * $K\n", NULL, KNOWN_HOSTS_UNKNOWN},
	{"[127.0.0.1]:$P $O extra\n# [127.0.0.1]:$P $S\n\t[127.0.0.1]:$P\t$K\tme\n", NULL,
		KNOWN_HOSTS_MATCH},
	{"box $K\n127.0.0.1 $S\n", "BOX", KNOWN_HOSTS_MATCH},
	{"[box]:$P $K\n[127.0.0.1]:$P $K\n", "box", KNOWN_HOSTS_UNKNOWN},
	{"box $S\n", "box", KNOWN_HOSTS_MISMATCH},
};

static void test_what_is_decided_is_what_ssh_decides(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		write_known(cases[i].known);
		enum known_hosts_verdict theirs = ask_ssh(cases[i].alias);
		enum known_hosts_verdict ours = ask_us(cases[i].alias);
		if (theirs != cases[i].verdict || ours != cases[i].verdict) {
			fail_msg("%s: ssh decides %d, we %d", cases[i].known, theirs, ours);
		}
	}
}

/* One difference is intended: a key that is revoked for the host is revoked on every port. */
static void test_a_key_revoked_without_the_port_is_revoked(void **state)
{
	write_known("@revoked 127.0.0.1 $K\n[127.0.0.1]:$P $K\n");
	assert_int_equal(ask_us(NULL), KNOWN_HOSTS_REVOKED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_decided_is_what_ssh_decides),
		cmocka_unit_test(test_a_key_revoked_without_the_port_is_revoked),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
