/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "providers/ssh/target.h"
#include "providers/ssh/target_name.h"
#include "tests/fuzz/fuzz.h"

/*
 * Reads the output of ssh -G as a target; and the first line of the input as a destination and as a
 * list of jump hosts.
 */
static const char *const environment[] = {
	"HOME=/home/kim", "LOGNAME=kim", "SSH_AUTH_SOCK=/run/agent", "KEYS=/keys", NULL};

/* "~name" alone makes the C library look users up, which is slow and shows nothing here. */
static bool names_a_user(struct span text)
{
	for (size_t i = 0; i + 1 < text.len; i++) {
		if (text.data[i] == '~' && text.data[i + 1] != '/') {
			return true;
		}
	}
	return false;
}

static bool is_list(char *const *list, size_t max)
{
	return list && words_count(list) <= max;
}

static void check_target(const struct ssh_target *target)
{
	FUZZ_CHECK(target->host && target->host[0] && target->alias);
	FUZZ_CHECK(target->user && target->user[0]);
	FUZZ_CHECK(target->port > 0 && target->port < 65536);
	FUZZ_CHECK(target->connect_timeout_ms > 0 && target->auth_timeout_ms > 0);
	FUZZ_CHECK(target->alive_interval_ms > 0 && target->alive_count_max > 0);
	FUZZ_CHECK(is_list(target->identity_files, 100) && is_list(target->set_env, 1024));
	FUZZ_CHECK(is_list(target->user_known_hosts_files, 32));
	FUZZ_CHECK(is_list(target->global_known_hosts_files, 32));
	FUZZ_CHECK(!target->via && !target->host_key_pin && !target->password_command);
	for (char **entry = target->set_env; *entry; entry++) {
		FUZZ_CHECK(strchr(*entry, '=') != NULL);
	}
	for (char **file = target->user_known_hosts_files; *file; file++) {
		FUZZ_CHECK((*file)[0] != '~' && (*file)[0] != '\0');
	}
}

static void check_reading(struct span text)
{
	struct ssh_target target;
	struct error err = {0};
	char *jumps = NULL;
	if (ssh_target_read(text, environment, &target, &jumps, &err)) {
		check_target(&target);
		FUZZ_CHECK(!jumps || jumps[0]);
		ssh_target_finish(&target);
	} else {
		FUZZ_CHECK((err.code == ERROR_CONFIG || err.code == ERROR_LIMIT) && err.text[0]);
		FUZZ_CHECK(!jumps);
	}
	free(jumps);
}

static void check_name(const struct ssh_target_name *name)
{
	FUZZ_CHECK(name->host[0] && name->host[0] != '-' && !strpbrk(name->host, " \t\r\n"));
	FUZZ_CHECK(!name->user || (name->user[0] && name->user[0] != '-'));
	FUZZ_CHECK(name->port >= 0 && name->port < 65536);
}

static void check_names(const char *text)
{
	struct ssh_target_name name;
	struct error err;
	char *before = NULL;
	if (ssh_target_name_read(text, &name, &err)) {
		check_name(&name);
		FUZZ_CHECK(name.port == 0 || strncmp(text, "ssh://", 6) == 0);
		ssh_target_name_finish(&name);
	}
	if (ssh_target_name_read_jump(text, &name, &before, &err)) {
		check_name(&name);
		FUZZ_CHECK((before != NULL) == (strchr(text, ',') != NULL));
		ssh_target_name_finish(&name);
	}
	free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
	char *first = mem_strndup((struct span){text.data, end ? (size_t)(end - text.data) : size});
	check_names(first);
	free(first);
	if (!names_a_user(text)) {
		check_reading(text);
	}
	return 0;
}
