/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_tls_fixture.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { LOG_MAX = 1 << 20 };

struct tls_ports tls_ports;
static char folder[] = "/tmp/daytona-tls-XXXXXX";
static char path[sizeof(folder) + 32];
static char log_text[LOG_MAX];
static pid_t process;
static int input;

static int start(const char *script)
{
	struct error err;
	int in[2];
	int out[2];
	bool ok = fd_pipe(in, &err) && fd_pipe(out, &err);
	assert(ok);
	(void)ok;
	process = fork();
	assert(process >= 0);
	if (process == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/usr/bin/python3", "/usr/bin/python3", "-B", script, folder, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	input = in[1];
	return out[0];
}

void tls_begin(const char *script)
{
	bool ok = mkdtemp(folder) != NULL;
	assert(ok);
	FILE *file = fdopen(start(script), "r");
	char line[128] = "";
	int *const ports[] = {&tls_ports.right, &tls_ports.wrong, &tls_ports.proxy,
		&tls_ports.refusing, &tls_ports.plain};
	if (!file || !fgets(line, sizeof(line), file)) {
		fprintf(stderr, "%s did not start\n", script);
		exit(1);
	}
	char *at = line;
	for (size_t i = 0; i < ARRAY_LENGTH(ports); i++) {
		*ports[i] = (int)strtol(at, &at, 10);
	}
	fclose(file);
	(void)ok;
}

static const char *path_of(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

void tls_end(void)
{
	static const char *const names[] = {"ca.key", "ca.pem", "right.key", "right.pem",
		"wrong.key", "wrong.pem", "requests.log", "proxy.log"};
	close(input);
	waitpid(process, NULL, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		unlink(path_of(names[i]));
	}
	rmdir(folder);
}

const char *tls_authority(void)
{
	return path_of("ca.pem");
}

const char *tls_log(const char *name)
{
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, log_text, sizeof(log_text) - 1) : 0;
	log_text[len > 0 ? len : 0] = '\0';
	fd_close(&fd);
	return log_text;
}

void tls_forget(void)
{
	unlink(path_of("requests.log"));
	unlink(path_of("proxy.log"));
}
