/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RESOLVE_FIXTURE_H
#define TESTS_UNIT_RESOLVE_FIXTURE_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/provider.h"
#include "providers/ssh/target.h"

/* Hosts resolved by the real ssh, from files that it reads. For one .c file. */
enum { DEADLINE_MS = 30000 };

static char folder[] = "/tmp/test-target-XXXXXX";
static char config[PATH_MAX];
static struct spawner *spawner;
static struct ev_loop *loop;
static struct settings settings;
static const char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/kim",
	"LOGNAME=kim", "SSH_AUTH_SOCK=/run/agent", NULL};
static struct provider_context context = {.environment = environment};

/* ---- one resolving ---- */

static struct ssh_target target;
static struct error failure;
static int raised;

static inline void on_done(void *data, struct ssh_target *found, const struct error *err)
{
	raised++;
	assert_ptr_equal(data, &raised);
	assert_int_equal(found == NULL, err != NULL);
	if (found) {
		target = *found;
	} else {
		failure = *err;
	}
}

static inline void on_deadline(struct ev_loop *ticking, ev_timer *timer, int events)
{
	ev_break(ticking, EVBREAK_ONE);
}

static inline void run(void)
{
	ev_timer timer;
	ev_timer_init(&timer, on_deadline, 0.05, 0.05);
	ev_timer_start(loop, &timer);
	long long end_ms = clock_now_ms() + DEADLINE_MS;
	while (raised == 0 && clock_now_ms() < end_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &timer);
}

static inline bool resolve(void)
{
	raised = 0;
	ssh_target_finish(&target);
	struct ssh_resolving *resolving =
		ssh_target_resolve(&context, &settings, on_done, &raised, &failure);
	assert_int_equal(raised, 0);
	if (!resolving) {
		return false;
	}
	run();
	assert_int_equal(raised, 1);
	return target.host != NULL;
}

static inline void set(const char *key, const char *value)
{
	const struct setting_key *found =
		setting_key_find(ssh_target_keys, ssh_target_key_count, key);
	struct error err;
	assert_non_null(found);
	assert_true(setting_check(found, value, &err));
	settings_add(&settings, key, value, "test");
}

/* Writes a configuration of ssh, and makes the profile that names it. */
static inline void configure(const char *host, const char *text)
{
	FILE *file = fopen(config, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	set("host", host);
	set("ssh-config", config);
}

static inline void assert_failure(const char *part)
{
	assert_false(resolve());
	if (!strstr(failure.text, part)) {
		fail_msg("\"%s\" is not in: %s", part, failure.text);
	}
}

static inline int setup(void **state)
{
	struct error err;
	spawner = spawner_create(&err);
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!spawner || !loop || !mkdtemp(folder)) {
		return -1;
	}
	spawner_attach(spawner, loop);
	context.loop = loop;
	context.spawner = spawner;
	snprintf(config, sizeof(config), "%s/config", folder);
	return 0;
}

static inline int teardown(void **state)
{
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	rmdir(folder);
	return 0;
}

static inline int begin(void **state)
{
	environment[0] = "PATH=/usr/local/bin:/usr/bin:/bin";
	settings_init(&settings);
	return 0;
}

static inline int clean(void **state)
{
	ssh_target_finish(&target);
	settings_finish(&settings);
	unlink(config);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, clean)

#endif
