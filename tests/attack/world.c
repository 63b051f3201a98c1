/* SPDX-License-Identifier: MIT */
#include "tests/attack/world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/remove_folder.h"
#include "base/text.h"

enum { ATTACKED_USER = 12345 };

static const char *const folders[] = {"home", "home/.ssh", "home/.aws", "home/.config",
	"home/.config/acp-broker", "home/.cargo", "home/.cargo/bin", "home/.claude",
	"home/.claude/projects", "home/.codex", "home/.npm", "home/.npm/_npx", "home/.npm/_npx/1",
	"kept", "home/project", "home/project/.git", "home/project/.git/hooks", "state",
	"state/records", "state/shown", "public", "work", "work/.git", "sock", "renamed",
	"relative", "bin"};

static const char *const files[] = {"home/.ssh/id_ed25519", "home/.aws/credentials",
	"home/.config/acp-broker/config", "state/records/one", "home/.gitconfig", "home/.bashrc",
	"home/.cargo/bin/cargo", "home/.claude/settings.json", "home/.claude.json",
	"home/.claude/.credentials.json", "home/.codex/config.toml",
	"home/.npm/_npx/1/package.json"};

void world_path(const struct world *world, const char *name, char out[PATH_MAX])
{
	bool is_temporary = strcmp(name, "temporary") == 0;
	assert_true(is_temporary ? text_whole(out, PATH_MAX, "%s", world->temporary)
				 : text_whole(out, PATH_MAX, "%s/%s", world->folder, name));
}

static void write_file(const char *path, const char *content)
{
	struct error err;
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), &err));
}

static void give(const struct world *world, const char *path)
{
	if (geteuid() == 0) {
		assert_int_equal(lchown(path, world->uid, world->gid), 0);
	}
}

void world_restore(const struct world *world)
{
	static const char *const made[] = {"home/.zshenv", "public/file", "work/link", "work/disk",
		"work/m", "home/project/.git/hooks/pre-commit", "home/.claude/settings.local.json",
		"home/.codex/hooks.json", "home/.npm/_npx/1/evil.js", "home/.cargo/bin/git",
		"kept/program"};
	char path[PATH_MAX], aside[PATH_MAX];
	struct error err;
	world_path(world, "home/.c", aside);
	if (access(aside, F_OK) == 0) {
		world_path(world, "home/.config", path);
		assert_true(remove_folder(path, &err));
		assert_int_equal(rename(aside, path), 0);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		world_path(world, made[i], path);
		(void)(unlink(path) != 0 && rmdir(path) != 0);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		world_path(world, files[i], path);
		write_file(path, "SECRET\n");
		give(world, path);
	}
	write_file(world->temporary, "SECRET\n");
	give(world, world->temporary);
}

bool world_has_evil(const struct world *world, const char *name)
{
	char path[PATH_MAX];
	char text[4096] = "";
	world_path(world, name, path);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "EVIL");
}

static int open_unix(const struct world *world, const char *path, bool is_abstract, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t skipped = is_abstract ? 1 : 0;
	assert_true(text_whole(
		address.sun_path + skipped, sizeof(address.sun_path) - skipped, "%s", path));
	size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)len), 0);
	if (!is_abstract) {
		give(world, path);
	}
	return fd;
}

static int listen_unix(const struct world *world, const char *path, bool is_abstract)
{
	int fd = open_unix(world, path, is_abstract, SOCK_STREAM);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

/* The kernel's table keeps the first name. */
static int listen_renamed(const struct world *world, const char *path, const char *new_path)
{
	int fd = listen_unix(world, path, false);
	assert_int_equal(rename(path, new_path), 0);
	return fd;
}

static int listen_renamed_in(const struct world *world, const char *name, const char *later)
{
	char path[PATH_MAX], new_path[PATH_MAX];
	world_path(world, name, path);
	world_path(world, later, new_path);
	return listen_renamed(world, path, new_path);
}

/* One where the table says, and one where it does not. */
static void open_sockets_in_run(struct world *world)
{
	char path[PATH_MAX], new_path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/bound/sock", world->run);
	world->sockets[7] = listen_unix(world, path, false);
	text_whole(path, sizeof(path), "%s/bound/old", world->run);
	text_whole(new_path, sizeof(new_path), "%s/renamed/sock", world->run);
	world->sockets[9] = listen_renamed(world, path, new_path);
}

static int listen_loopback(struct world *world)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	text_whole(world->port, sizeof(world->port), "%d", ntohs(address.sin_port));
	return fd;
}

/* A child answers every question until this process ends. */
static void serve_names(struct world *world)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	unsigned char packet[512];
	pid_t parent = getpid();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	text_whole(world->names, sizeof(world->names), "%d", ntohs(address.sin_port));
	world->name_server = fork();
	assert_true(world->name_server >= 0);
	while (world->name_server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		len = sizeof(address);
		ssize_t size =
			recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&address, &len);
		if (size < 0 || getppid() != parent) {
			_exit(1);
		}
		packet[2] |= 0x80; // an answer (RFC 1035, section 4.1.1)
		sendto(fd, packet, (size_t)size, 0, (struct sockaddr *)&address, len);
	}
	close(fd);
}

static void open_sockets(struct world *world)
{
	char path[PATH_MAX];
	world_path(world, "sock/host", path);
	world->sockets[0] = listen_unix(world, path, false);
	world_path(world, "work/.git/host", path);
	world->sockets[1] = listen_unix(world, path, false);
	world->sockets[5] = listen_renamed_in(world, "renamed/old", "renamed/new");
	world->sockets[6] = listen_renamed_in(world, "work/.git/old", "work/.git/new");
	text_whole(path, sizeof(path), "%s.sock", world->temporary);
	world->sockets[2] = listen_unix(world, path, false);
	world->sockets[3] = listen_unix(world, world->temporary, true);
	world->sockets[4] = listen_loopback(world);
	if (world->run[0]) {
		open_sockets_in_run(world);
	}
	text_whole(path, sizeof(path), "%s.datagrams", world->temporary);
	world->sockets[8] = open_unix(world, path, true, SOCK_DGRAM);
	serve_names(world);
}

static void copy_program(struct world *world)
{
	char bytes[65536];
	ssize_t count;
	struct error err;
	world_path(world, "bin/attacks", world->program);
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(world->program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_true(from >= 0 && to >= 0);
	while ((count = read(from, bytes, sizeof(bytes))) > 0) {
		assert_true(fd_write_all(to, (struct span){bytes, (size_t)count}, &err));
	}
	assert_int_equal(count, 0);
	close(from);
	close(to);
}

static void make_folder(struct world *world)
{
	static const char *const places[] = {"/opt", "/srv", "/tmp"};
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		text_whole(world->folder, sizeof(world->folder), "%s/acp-attack-XXXXXX", places[i]);
		if (mkdtemp(world->folder)) {
			return;
		}
	}
	fail_msg("no place for the test's folder");
}

static void fill_run(const struct world *world)
{
	static const char *const below[] = {"", "/bound", "/renamed"};
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LENGTH(below); i++) {
		text_whole(path, sizeof(path), "%s%s", world->run, below[i]);
		assert_true(i == 0 || mkdir(path, 0755) == 0);
		assert_int_equal(chmod(path, 0755), 0);
		give(world, path);
	}
}

/* Only root may write /run itself, but other folders in it are everybody's or the user's. */
static void make_run(struct world *world)
{
	char user[32];
	text_whole(user, sizeof(user), "/run/user/%u", (unsigned)geteuid());
	const char *const places[] = {"/run", user, "/run/lock"};
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		text_whole(world->run, sizeof(world->run), "%s/acp-attack-XXXXXX", places[i]);
		if (mkdtemp(world->run)) {
			fill_run(world);
			return;
		}
	}
	assert_int_not_equal(geteuid(), 0);
	world->run[0] = '\0';
}

static void name_own(struct world *world)
{
	struct stat status;
	assert_int_equal(stat("/proc/self/exe", &status), 0);
	text_whole(world->own, sizeof(world->own), "%llu:%llu", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino);
}

void world_make(struct world *world)
{
	char path[PATH_MAX];
	bool is_root = geteuid() == 0;
	umask(022);
	make_folder(world);
	world->uid = is_root ? ATTACKED_USER : geteuid();
	world->gid = is_root ? ATTACKED_USER : getegid();
	assert_int_equal(chmod(world->folder, 0755), 0);
	give(world, world->folder);
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		world_path(world, folders[i], path);
		assert_int_equal(mkdir(path, 0755), 0);
		give(world, path);
	}
	world_path(world, "public", path);
	assert_int_equal(chmod(path, 0777), 0);
	copy_program(world);
	make_run(world);
	name_own(world);
	text_whole(world->temporary, sizeof(world->temporary), "/tmp/acp-attack-XXXXXX");
	close(mkstemp(world->temporary));
	give(world, world->temporary);
}

void world_enter(struct world *world, bool becomes_user)
{
	if (becomes_user) {
		assert_int_equal(setgroups(1, &world->gid), 0);
		assert_int_equal(setresgid(world->gid, world->gid, world->gid), 0);
		assert_int_equal(setresuid(world->uid, world->uid, world->uid), 0);
		prctl(PR_SET_DUMPABLE, 1);
	}
	open_sockets(world);
	world_restore(world);
}

void world_leave(const struct world *world)
{
	assert_int_equal(kill(world->name_server, SIGKILL), 0);
	assert_int_equal(waitpid(world->name_server, NULL, 0), world->name_server);
}

void world_remove(const struct world *world)
{
	char path[PATH_MAX];
	struct error err;
	text_whole(path, sizeof(path), "%s.sock", world->temporary);
	unlink(path);
	unlink(world->temporary);
	if (world->run[0]) {
		assert_true(remove_folder(world->run, &err));
	}
	assert_true(remove_folder(world->folder, &err));
}

int world_main(struct world *world, bool becomes_user, int (*run_suite)(void))
{
	if (becomes_user && geteuid() != 0) {
		print_message("1 test skipped: only root can become another user\n");
		return 77;
	}
	world_make(world);
	pid_t pid = fork();
	if (pid == 0) {
		world_enter(world, becomes_user);
		exit(run_suite());
	}
	int status = 1;
	waitpid(pid, &status, 0);
	world_remove(world);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
