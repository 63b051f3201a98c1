/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/sshd.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tree.h"

/*
 * For tests that connect by libssh2: its version 1.10 forgets memory that libcrypto holds for it
 * (tests/support/tools/valgrind.supp); LeakSanitizer does not see libcrypto's callers.
 */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libcrypto.so\n";
}

enum { TRIES = 5, START_MS = 30000, STOP_MS = 10000, STEP_MS = 10, LOG_MAX = 64 * 1024 };

static void pause_ms(int ms)
{
	usleep((useconds_t)ms * 1000);
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

/* A port that nobody uses now; another process may take it before sshd does. */
static int free_port(void)
{
	int fd ATTR_CLEANUP(fd_cleanup) = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(0);
	socklen_t len = sizeof(address);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	return ntohs(address.sin_port);
}

static bool is_listening(int port)
{
	int fd ATTR_CLEANUP(fd_cleanup) = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(port);
	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static void set_path(char path[SSHD_PATH_MAX], const struct sshd *sshd, const char *name)
{
	snprintf(path, SSHD_PATH_MAX, "%s/%s", sshd->folder, name);
}

static void make_folder(struct sshd *sshd, const struct sshd_spec *spec)
{
	snprintf(sshd->folder, sizeof(sshd->folder), "/tmp/sshd-XXXXXX");
	assert_non_null(mkdtemp(sshd->folder));
	set_path(sshd->home, sshd, "home");
	set_path(sshd->config, sshd, "ssh_config");
	set_path(sshd->key, sshd, "id");
	set_path(sshd->known_hosts, sshd, "known_hosts");
	set_path(sshd->log, sshd, "log");
	if (spec->config) {
		char path[SSHD_PATH_MAX];
		set_path(path, sshd, "extra_config");
		FILE *file = fopen(path, "we");
		assert_non_null(file);
		assert_true(fputs(spec->config, file) >= 0);
		assert_int_equal(fclose(file), 0);
	}
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static void remove_folder(struct sshd *sshd)
{
	nftw(sshd->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void start_once(struct sshd *sshd, const struct sshd_spec *spec)
{
	make_folder(sshd, spec);
	sshd->port = free_port();
	char port[16];
	snprintf(port, sizeof(port), "%d", sshd->port);
	sshd->pid = fork();
	assert_true(sshd->pid >= 0);
	if (sshd->pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", SSHD_SCRIPT, sshd->folder, port, spec->shell, (char *)NULL);
		_exit(127);
	}
}

/* Returns false if sshd has ended because another process has the port. */
static bool wait_until_listening(struct sshd *sshd)
{
	long long deadline_ms = clock_now_ms() + START_MS;
	while (clock_now_ms() < deadline_ms) {
		if (sshd_has_logged(sshd, "Server listening") && is_listening(sshd->port)) {
			return true;
		}
		if (waitpid(sshd->pid, NULL, WNOHANG) == sshd->pid) {
			sshd->pid = 0;
			return false;
		}
		pause_ms(STEP_MS);
	}
	sshd_print_log(sshd);
	fail_msg("sshd does not listen");
	return false;
}

void sshd_start(struct sshd *sshd, const struct sshd_spec *spec)
{
	const struct sshd_spec defaults = {0};
	*sshd = (struct sshd){0};
	const struct passwd *user = getpwuid(getuid());
	assert_non_null(user);
	snprintf(sshd->user, sizeof(sshd->user), "%s", user->pw_name);
	for (int i = 0; i < TRIES; i++) {
		start_once(sshd, spec ? spec : &defaults);
		if (wait_until_listening(sshd)) {
			return;
		}
		if (!sshd_has_logged(sshd, "Address already in use")) {
			break;
		}
		remove_folder(sshd);
	}
	sshd_print_log(sshd);
	remove_folder(sshd);
	fail_msg("sshd has ended");
}

/* ---- its processes ---- */

static struct tree scan(const struct sshd *sshd)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	tree_mark_below(&tree, sshd->pid, NULL, 0);
	return tree;
}

static void signal_below(const struct sshd *sshd, int number)
{
	struct tree tree = scan(sshd);
	for (size_t i = 0; i < tree.count; i++) {
		if (tree.items[i].is_below) {
			kill(tree.items[i].pid, number);
		}
	}
	tree_finish(&tree);
}

/* If the test is a subreaper, the processes below sshd become its children. */
static void reap(const struct tree *tree)
{
	long long deadline_ms = clock_now_ms() + STOP_MS;
	for (size_t i = 0; i < tree->count; i++) {
		if (!tree->items[i].is_below) {
			continue;
		}
		while (waitpid(tree->items[i].pid, NULL, WNOHANG) == 0 &&
			clock_now_ms() < deadline_ms) {
			pause_ms(1);
		}
	}
}

/*
 * If a connection ends while it is stopped, its processes stay stopped, and are no longer below
 * sshd. This finds them by the sessions that were seen there.
 */
static void kill_sessions(const struct tree *seen)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	for (size_t i = 0; i < tree.count; i++) {
		for (size_t j = 0; j < seen->count; j++) {
			if (seen->items[j].is_below && seen->items[j].session != getsid(0) &&
				seen->items[j].session == tree.items[i].session) {
				kill(tree.items[i].pid, SIGKILL);
				break;
			}
		}
	}
	tree_finish(&tree);
}

void sshd_stop(struct sshd *sshd)
{
	if (sshd->pid > 0) {
		kill(sshd->pid, SIGSTOP); // it takes no further connection
		struct tree tree = scan(sshd);
		for (int i = 0; i < 100 && tree_kill(sshd->pid, NULL, 0) > 0; i++) {
			pause_ms(1);
		}
		kill(sshd->pid, SIGKILL);
		waitpid(sshd->pid, NULL, 0);
		kill_sessions(&tree);
		reap(&tree);
		tree_finish(&tree);
	}
	if (sshd->folder[0]) {
		remove_folder(sshd);
	}
	*sshd = (struct sshd){0};
}

void sshd_freeze(struct sshd *sshd)
{
	kill(sshd->pid, SIGSTOP);
	signal_below(sshd, SIGSTOP);
}

void sshd_thaw(struct sshd *sshd)
{
	signal_below(sshd, SIGCONT);
	kill(sshd->pid, SIGCONT);
}

void sshd_kill_connections(struct sshd *sshd)
{
	for (int i = 0; i < 100 && tree_kill(sshd->pid, NULL, 0) > 0; i++) {
		pause_ms(1);
	}
}

size_t sshd_count_connections(const struct sshd *sshd)
{
	struct tree tree = scan(sshd);
	size_t count = 0;
	for (size_t i = 0; i < tree.count; i++) {
		count += tree.items[i].is_below && tree.items[i].parent == sshd->pid;
	}
	tree_finish(&tree);
	return count;
}

/* ---- its files ---- */

void sshd_add_client_config(struct sshd *sshd, const char *lines)
{
	FILE *file = fopen(sshd->config, "ae");
	assert_non_null(file);
	assert_true(fputs(lines, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* The log so far, terminated; the caller frees it. */
static char *read_log(const struct sshd *sshd)
{
	char *text = calloc(1, LOG_MAX + 1);
	assert_non_null(text);
	FILE *file = fopen(sshd->log, "re");
	if (file) {
		size_t len = fread(text, 1, LOG_MAX, file);
		text[len] = '\0';
		fclose(file);
	}
	return text;
}

size_t sshd_count_logged(const struct sshd *sshd, const char *words)
{
	char *text = read_log(sshd);
	size_t count = 0;
	for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) {
		count++;
	}
	free(text);
	return count;
}

bool sshd_has_logged(const struct sshd *sshd, const char *words)
{
	return sshd_count_logged(sshd, words) > 0;
}

void sshd_print_log(const struct sshd *sshd)
{
	char *text = read_log(sshd);
	fprintf(stderr, "%s", text);
	free(text);
}
