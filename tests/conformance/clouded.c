/* SPDX-License-Identifier: MIT */
#include "tests/conformance/clouded.h"

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_doc.h"
#include "base/libc.h"
#include "providers/daytona/daytona.h"
#include "providers/impl.h"

enum { START_STEPS = 3000, STEP_US = 20000, READY_MAX = 16 * 1024, PATH_SIZE = 256 };

static const char stand_in[] = CLOUDED_FOLDER "/stand_in.mjs";

static struct {
	pid_t pid;
	char folder[64];
	char *api, *key; // owned
} cloud;

bool clouded_can_start(void)
{
	return access(CLOUDED_FOLDER "/node_modules/ssh2", F_OK) == 0;
}

/* Its stdin is a fifo that it keeps open itself, so that no case sees a descriptor of ours. */
static void run_stand_in(const char *fifo, const char *ready)
{
	char option[PATH_SIZE];
	int in = open(fifo, O_RDWR);
	int out = open(ready, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	snprintf(option, sizeof(option), "--dir=%s", cloud.folder);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0) {
		_exit(126);
	}
	libc_close_range(3, ~0U, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	execlp("node", "node", stand_in, option, (char *)NULL);
	_exit(127);
}

static bool read_ready(const char *path)
{
	char text[READY_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	close(fd);
	const char *end = len > 0 ? memchr(text, '\n', (size_t)len) : NULL;
	if (!end) {
		return false;
	}
	struct json_doc *doc = json_doc_parse((struct span){text, (size_t)(end - text)}, NULL);
	assert_non_null(doc);
	cloud.api = json_string(doc, json_get(doc, 0, "api"));
	cloud.key = json_string(doc, json_get(doc, 0, "apiKey"));
	json_doc_destroy(doc);
	return cloud.api && cloud.key;
}

static void start(void)
{
	char fifo[PATH_SIZE];
	char ready[PATH_SIZE];
	snprintf(cloud.folder, sizeof(cloud.folder), "/tmp/clouded-XXXXXX");
	assert_non_null(mkdtemp(cloud.folder));
	snprintf(fifo, sizeof(fifo), "%s/in", cloud.folder);
	snprintf(ready, sizeof(ready), "%s/ready", cloud.folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	cloud.pid = fork();
	assert_true(cloud.pid >= 0);
	if (cloud.pid == 0) {
		run_stand_in(fifo, ready);
	}
	for (int i = 0; i < START_STEPS && !read_ready(ready); i++) {
		assert_int_equal(waitpid(cloud.pid, NULL, WNOHANG), 0);
		usleep(STEP_US);
	}
	assert_non_null(cloud.key);
	assert_int_equal(setenv("DAYTONA_API_KEY", cloud.key, 1), 0);
}

void clouded_finish(void)
{
	char command[PATH_SIZE];
	if (cloud.pid > 0) {
		kill(cloud.pid, SIGTERM);
		waitpid(cloud.pid, NULL, 0);
		snprintf(command, sizeof(command), "rm -rf %s", cloud.folder);
		int status = system(command); // NOLINT(cert-env33-c): a folder of our own
		(void)status;
		free(cloud.api);
		free(cloud.key);
		cloud.pid = 0;
	}
}

/* The provider itself, with the keys and the variable that the cases do not know. */
struct clouded_provider {
	struct provider provider;
	struct provider_context context;
	struct provider *daytona; // owned
	struct settings settings, transient;
	bool was_asked;
};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct clouded_provider *self = CONTAINER_OF(provider, struct clouded_provider, provider);
	struct sandbox_request ours = {.profile = request->profile,
		.settings = self->was_asked ? &self->transient : &self->settings};
	self->was_asked = true;
	return sandbox_prepare(self->daytona, &ours, listener, data, err);
}

static void destroy(struct provider *provider)
{
	struct clouded_provider *self = CONTAINER_OF(provider, struct clouded_provider, provider);
	provider_destroy(self->daytona);
	settings_finish(&self->settings);
	settings_finish(&self->transient);
	free(self);
}

static const struct provider_impl impl = {
	.name = "daytona", .destroy = destroy, .prepare = prepare};

static struct provider *create(const struct provider_context *context, const char *runner)
{
	if (cloud.pid == 0) {
		start();
	}
	struct clouded_provider *self = mem_alloc_zero(sizeof(*self));
	self->provider.impl = &impl;
	self->context = *context;
	self->context.environment = (const char *const *)environ;
	self->daytona = daytona_provider_create(&self->context);
	/* A case may prepare a second sandbox besides its world's; that one may be destroyed. */
	struct settings *const both[] = {&self->settings, &self->transient};
	for (size_t i = 0; i < ARRAY_LENGTH(both); i++) {
		settings_init(both[i]);
		settings_add(both[i], "api-url", cloud.api, "test");
		settings_add(both[i], "runtime-root", "run time", "test");
		settings_add(both[i], "runner", runner, "test");
	}
	settings_add(&self->transient, "persistence", "transient", "test");
	return &self->provider;
}

struct provider *clouded_provider_create(const struct provider_context *context, const char *folder)
{
	return create(context, "never");
}

struct provider *clouded_provider_create_runner(
	const struct provider_context *context, const char *folder)
{
	return create(context, "auto");
}
