/* SPDX-License-Identifier: MIT */
#include "tests/attack/tricks.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/text.h"

static int judge(bool is_done)
{
	int errnum = errno;
	if (is_done) {
		return TRICK_DONE;
	}
	fprintf(stderr, "%s\n", strerror(errnum));
	if (errnum == ENOSYS || errnum == EAFNOSUPPORT || errnum == EPROTONOSUPPORT) {
		return TRICK_LACKS;
	}
	bool is_refused = errnum == EPERM || errnum == EACCES || errnum == ENOENT ||
	                  errnum == ESRCH || errnum == ECONNREFUSED || errnum == EROFS ||
	                  errnum == ENETUNREACH;
	return is_refused ? TRICK_REFUSED : TRICK_FAILED;
}

static int connect_unix(const char *path, bool is_abstract)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char *name = address.sun_path + (is_abstract ? 1 : 0);
	size_t room = sizeof(address.sun_path) - 1;
	if (!text_whole(name, room, "%s", path)) {
		return TRICK_FAILED;
	}
	size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return judge(fd >= 0 && connect(fd, (struct sockaddr *)&address, (socklen_t)len) == 0);
}

static int trick_socket(const char *path)
{
	return connect_unix(path, false);
}

static int trick_abstract(const char *name)
{
	return connect_unix(name, true);
}

static int trick_datagram(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!text_whole(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name)) {
		return TRICK_FAILED;
	}
	size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	return judge(
		fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&address, (socklen_t)len) == 1);
}

static int trick_loopback(const char *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return judge(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

/* The same with a name. */
static int trick_named(const char *port)
{
	const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	if (getaddrinfo("localhost", port, &wanted, &found) != 0) {
		errno = ECONNREFUSED;
		return judge(false);
	}
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int status = judge(fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0);
	freeaddrinfo(found);
	return status;
}

/* Asks a name server for the address of a name (RFC 1035, section 4.1). */
static int trick_name(const char *port)
{
	static const unsigned char question[] =
		"\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1";
	const struct timeval patience = {.tv_sec = 10};
	unsigned char reply[512];
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
		connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		send(fd, question, sizeof(question) - 1, 0) < 0) {
		return judge(false);
	}
	ssize_t size = recv(fd, reply, sizeof(reply), 0);
	return judge(size > 2 && reply[0] == 0x12 && reply[1] == 0x34 && (reply[2] & 0x80));
}

/* Whether there is a route to an address; this sends nothing. */
static int trick_route(const char *ip)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	return judge(fd >= 0 && inet_pton(AF_INET, ip, &address.sin_addr) == 1 &&
		     connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

static int trick_ptrace(const char *pid)
{
	return judge(ptrace(PTRACE_SEIZE, (pid_t)strtol(pid, NULL, 10), NULL, NULL) == 0);
}

static int trick_keyring(const char *description)
{
	long key = syscall(SYS_add_key, "user", description, "x", 1, KEY_SPEC_USER_KEYRING);
	int status = judge(key >= 0);
	if (key >= 0) {
		syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
	}
	return status;
}

/* Types into a terminal, as an agent could into a terminal that it shares with somebody. */
static int trick_typing(const char *ignored)
{
	int leader = posix_openpt(O_RDWR | O_NOCTTY);
	if (leader < 0 || grantpt(leader) != 0 || unlockpt(leader) != 0) {
		return judge(false);
	}
	setsid();
	int terminal = open(ptsname(leader), O_RDWR);
	if (terminal < 0) {
		return judge(false);
	}
	bool is_typed = ioctl(terminal, TIOCSTI, "x") == 0;
	if (!is_typed && errno == EIO) {
		return TRICK_LACKS; // dev.tty.legacy_tiocsti is 0
	}
	return judge(is_typed);
}

static int trick_call(const char *number)
{
	char zeros[256] = {0};
	long result = syscall(strtol(number, NULL, 10), 1, zeros, 0, 0, 0);
	/* Its arguments are wrong; the kernel says so only to callers that may make the call. */
	bool is_made = result >= 0 || errno == EINVAL || errno == EFAULT || errno == E2BIG ||
	               errno == EBADF || errno == ENOEXEC || errno == ENOTSUP || errno == ENOENT;
	return judge(is_made);
}

static int trick_raw(const char *family)
{
	int domain = (int)strtol(family, NULL, 10);
	return judge(socket(domain, SOCK_RAW, domain == AF_INET ? IPPROTO_ICMP : 0) >= 0);
}

static int trick_vsock(const char *ignored)
{
	return judge(socket(AF_VSOCK, SOCK_STREAM, 0) >= 0);
}

/*
 * Opens the program of a process, which must be this device:inode. To have it open is enough: who
 * waits until nobody executes it writes it through /proc/self/fd (CVE-2019-5736).
 */
static int trick_program(const char *id)
{
	char path[64], found[48];
	struct stat status;
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool is_found = false;
	while (processes && !is_found && (entry = readdir(processes))) {
		text_whole(path, sizeof(path), "/proc/%.16s/exe", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &status) != 0) {
			continue;
		}
		text_whole(found, sizeof(found), "%llu:%llu", (unsigned long long)status.st_dev,
			(unsigned long long)status.st_ino);
		close(fd);
		is_found = strcmp(found, id) == 0;
	}
	if (processes) {
		closedir(processes);
	}
	errno = EACCES;
	return judge(is_found);
}

/* Whether a file can be written now, or as soon as nobody executes it. */
static bool is_writable(const char *path)
{
	enum { HELD = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW };
	int reading = open(path, O_RDONLY | O_CLOEXEC);
	int writing = open(path, O_RDWR | O_CLOEXEC);
	int seals = reading >= 0 ? fcntl(reading, F_GET_SEALS) : -1;
	bool is_held = (seals & HELD) == HELD && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
	return (writing >= 0 && write(writing, "EVIL", 4) == 4) ||
	       (writing >= 0 && fallocate(writing, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					4096) == 0) ||
	       (writing >= 0 && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writing, 0) !=
					MAP_FAILED) ||
	       truncate(path, 0) == 0 || (seals >= 0 && !is_held);
}

/* With "-" the programs of this process and of those that have started it: only in a cell. */
static int trick_overwrite(const char *path)
{
	char parent[64];
	text_whole(parent, sizeof(parent), "/proc/%d/exe", (int)getppid());
	const char *const paths[] = {"/proc/self/exe", "/proc/1/exe", "/proc/2/exe", parent};
	bool is_done = path[0] == '/' && is_writable(path);
	for (size_t i = 0; i < ARRAY_LENGTH(paths) && path[0] == '-'; i++) {
		is_done = is_done || is_writable(paths[i]);
	}
	errno = EPERM;
	return judge(is_done);
}

/* Agents end without these. */
static int trick_needed(const char *family)
{
	return judge(socket((int)strtol(family, NULL, 10), SOCK_DGRAM, 0) >= 0);
}

/* Starts processes that nobody waits for, each in a session of its own; they hold stdout. */
static int trick_bomb(const char *count)
{
	for (long left = strtol(count, NULL, 10); left > 0; left--) {
		pid_t pid = fork();
		if (pid == 0) {
			setsid();
			if (fork() == 0) {
				pause();
			}
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return !write(STDOUT_FILENO, "up\n", 3);
}

static const struct {
	const char *name;
	int (*run)(const char *argument);
} tricks[] = {
	{"socket", trick_socket},
	{"abstract", trick_abstract},
	{"datagram", trick_datagram},
	{"program", trick_program},
	{"overwrite", trick_overwrite},
	{"loopback", trick_loopback},
	{"named", trick_named},
	{"name", trick_name},
	{"route", trick_route},
	{"ptrace", trick_ptrace},
	{"keyring", trick_keyring},
	{"typing", trick_typing},
	{"call", trick_call},
	{"raw", trick_raw},
	{"vsock", trick_vsock},
	{"needed", trick_needed},
	{"bomb", trick_bomb},
};

int trick_run(const char *name, const char *argument)
{
	for (size_t i = 0; i < ARRAY_LENGTH(tricks); i++) {
		if (strcmp(tricks[i].name, name) == 0) {
			return tricks[i].run(argument);
		}
	}
	fprintf(stderr, "no trick is called %s\n", name);
	return TRICK_FAILED;
}
