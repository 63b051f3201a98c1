/* SPDX-License-Identifier: MIT */
#include "providers/local/net/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/netfilter_ipv4.h> // after netinet/in.h

#include <cmocka.h>

#include "base/fd.h"

enum { ORDINARY_USER = 12345 };

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__,      \
				#condition, errno);                                                \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK_REFUSED(call) CHECK((call) == -1 && errno == EPERM)

static pid_t parent;               // who may be signalled by its user
static int file;                   // opened before, as is all that follows
static int listener;               // on 127.0.0.1
static int unused;                 // so, too, and nobody connects to it
static int client;                 // connected to the listener
static int control[2];             // a pair; a message with a descriptor waits at its first end
static struct sockaddr_in address; // the listener's

static int listen_on_loopback(struct sockaddr_in *out)
{
	socklen_t len = sizeof(*out);
	*out = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)out, len) == 0 && listen(fd, 8) == 0 &&
		getsockname(fd, (struct sockaddr *)out, &len) == 0);
	return fd;
}

static void send_descriptor(int to, int fd)
{
	char byte = 'd';
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} space = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			   .cmsg_level = SOL_SOCKET,
			   .cmsg_type = SCM_RIGHTS}};
	struct iovec bytes = {&byte, 1};
	const struct msghdr message = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &space,
		.msg_controllen = sizeof(space.room)};
	memcpy(CMSG_DATA(&space.header), &fd, sizeof(fd));
	CHECK(sendmsg(to, &message, 0) == 1);
}

/* Descriptors as these processes have them. */
static void open_before(void)
{
	struct sockaddr_in other;
	file = memfd_create("file", MFD_CLOEXEC);
	listener = listen_on_loopback(&address);
	unused = listen_on_loopback(&other);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(client, (const struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(file >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
	send_descriptor(control[1], client);
}

/* Confinement is for good: each test is a child. */
static void run(enum confinement_kind kind, void (*test)(void))
{
	int status;
	struct error err;
	assert_true(confinement_prepare(&err));
	parent = getpid();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGXFSZ, SIG_IGN);
		open_before();
		CHECK(confinement_apply(kind, &err));
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What none of them may do. */
static void check_others(void)
{
	char program[] = "/bin/true";
	char *const argv[] = {program, NULL};
	char byte = 0;
	struct iovec own = {&byte, 1};
	CHECK_REFUSED(execve(argv[0], argv, NULL));
	CHECK_REFUSED(syscall(SYS_execveat, AT_FDCWD, argv[0], argv, NULL, 0));
	CHECK_REFUSED(kill(parent, 0));
	CHECK_REFUSED(syscall(SYS_tkill, parent, 0));
	CHECK_REFUSED(syscall(SYS_tgkill, parent, parent, 0));
	CHECK_REFUSED(syscall(SYS_pidfd_open, parent, 0));
	CHECK_REFUSED(fcntl(0, F_SETOWN, parent));
	CHECK_REFUSED(fcntl(0, F_SETSIG, SIGKILL));
	CHECK_REFUSED(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
	CHECK_REFUSED(process_vm_readv(parent, &own, 1, &own, 1, 0));
	CHECK_REFUSED(process_vm_writev(parent, &own, 1, &own, 1, 0));
	CHECK_REFUSED(unshare(CLONE_NEWUSER));
	CHECK_REFUSED(open("/dev/null", O_RDWR));
	CHECK_REFUSED(open("/dev/null", O_WRONLY));
	CHECK_REFUSED(unlink("/is-not-there"));
	CHECK_REFUSED(rename("/is-not-there", "/is-neither"));
	CHECK_REFUSED(mkdir("/is-not-there", 0700));
	CHECK_REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
	CHECK(write(file, "x", 1) == -1 && errno == EFBIG);
}

/* What the processes that have a list of allowed calls may not do. */
static void check_opens_nothing(void)
{
	int sockets[2];
	CHECK_REFUSED(open("/dev/null", O_RDONLY));
	CHECK_REFUSED(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY));
	CHECK_REFUSED(syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0));
	CHECK_REFUSED(fork());
	CHECK_REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	CHECK_REFUSED(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
				      MAP_FAILED
			      ? -1
			      : 0);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK_REFUSED(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	CHECK_REFUSED(ftruncate(file, 0));
	CHECK_REFUSED(pwrite(file, "x", 1, 0));
	CHECK_REFUSED(fchmod(file, 0600));
	CHECK_REFUSED(dup(file));
	CHECK_REFUSED(fcntl(file, F_DUPFD_CLOEXEC, 0));
	CHECK_REFUSED(memfd_create("other", MFD_CLOEXEC));
	CHECK_REFUSED(syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", &page, sizeof(page)));
	CHECK_REFUSED(syscall(SYS_statx, AT_FDCWD, "/", 0, 0, NULL));
	CHECK_REFUSED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	CHECK_REFUSED(syscall(SYS_prlimit64, 0, 0, NULL, NULL));
	CHECK_REFUSED(syscall(SYS_ioctl, listener, 0, NULL));
}

/* What all of these do with the descriptors that they have. */
static void check_uses_its_descriptors(void)
{
	char bytes[8];
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec vector = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room)};
	int on = 1, failure;
	socklen_t len = sizeof(failure);
	int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK(server >= 0);
	CHECK(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	CHECK(getsockopt(server, SOL_SOCKET, SO_ERROR, &failure, &len) == 0 && failure == 0);
	CHECK(send(client, "ask", 3, MSG_DONTWAIT | MSG_NOSIGNAL) == 3);
	CHECK(shutdown(client, SHUT_WR) == 0);
	CHECK(read(server, bytes, sizeof(bytes)) == 3);
	CHECK(write(server, "answer", 6) == 6);
	CHECK(recv(client, bytes, sizeof(bytes), 0) == 6);
	CHECK(recvmsg(control[0], &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message));
	CHECK_REFUSED(bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	CHECK_REFUSED(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(close(server) == 0);
}

static void check_has_streams_alone(void)
{
	static const int refused[][3] = {
		{AF_INET, SOCK_DGRAM, 0},
		{AF_INET, SOCK_RAW, IPPROTO_ICMP},
		{AF_INET6, SOCK_DGRAM, 0},
		{AF_INET, SOCK_STREAM, 262}, // IPPROTO_MPTCP
		{AF_UNIX, SOCK_STREAM, 0},
		{AF_NETLINK, SOCK_RAW, 0},
		{AF_PACKET, SOCK_RAW, 0},
	};
	const struct sockaddr_in name = {.sin_family = AF_INET};
	for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
		CHECK_REFUSED(socket(refused[i][0], refused[i][1], refused[i][2]));
	}
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	CHECK(fd >= 0);
	CHECK_REFUSED(bind(fd, (const struct sockaddr *)&name, sizeof(name)));
	CHECK_REFUSED(listen(fd, 1));
	CHECK_REFUSED(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	CHECK(shutdown(fd, SHUT_WR) == -1 && errno == ENOTCONN);
	CHECK(close(fd) == 0);
}

static void check_connects(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(close(fd) == 0);
}

static void check_relay(void)
{
	struct sockaddr_in name;
	struct pollfd polled = {.fd = control[0], .events = POLLOUT};
	socklen_t len = sizeof(name);
	check_others();
	check_opens_nothing();
	check_uses_its_descriptors();
	check_has_streams_alone();
	check_connects();
	CHECK_REFUSED(getsockname(listener, (struct sockaddr *)&name, &len));
	CHECK_REFUSED(fcntl(client, F_SETFL, O_NONBLOCK));
	CHECK_REFUSED(poll(&polled, 1, 0));
}

static void test_the_relay_has_sockets_of_ip_and_nothing_else(void **state)
{
	run(CONFINEMENT_RELAY, check_relay);
}

/* As libcurl and OpenSSL do. */
static void check_keys(void)
{
	struct sockaddr_in name = {.sin_family = AF_UNSPEC};
	struct pollfd polled = {.fd = control[0], .events = POLLOUT};
	socklen_t len = sizeof(name);
	int seconds = 60;
	check_others();
	check_opens_nothing();
	check_uses_its_descriptors();
	check_has_streams_alone();
	check_connects();
	CHECK(getsockname(listener, (struct sockaddr *)&name, &len) == 0);
	CHECK(name.sin_port == address.sin_port);
	CHECK(fcntl(client, F_SETFL, O_NONBLOCK) == 0);
	CHECK(fcntl(client, F_GETFL) & O_NONBLOCK);
	CHECK(poll(&polled, 1, 0) == 1);
	CHECK(setsockopt(client, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)) == 0);
	CHECK(setsockopt(client, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds)) == 0);
	CHECK_REFUSED(setsockopt(client, IPPROTO_TCP, TCP_ULP, "tls", 3));
	CHECK_REFUSED(setsockopt(client, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
}

static void test_the_holder_of_keys_has_what_libcurl_needs_and_nothing_else(void **state)
{
	run(CONFINEMENT_KEYS, check_keys);
}

static void check_makes_no_connection(void)
{
	static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
	const struct sockaddr *to = (const struct sockaddr *)&address;
	struct iovec bytes = {(char[]){"x"}, 1};
	const struct msghdr message = {.msg_name = &address,
		.msg_namelen = sizeof(address),
		.msg_iov = &bytes,
		.msg_iovlen = 1};
	for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
		CHECK_REFUSED(socket(families[i], SOCK_STREAM, 0));
	}
	/* A listener that was shut down can be connected again. */
	CHECK(shutdown(unused, SHUT_RDWR) == 0);
	CHECK_REFUSED(connect(unused, to, sizeof(address)));
	CHECK_REFUSED(sendto(unused, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, to, sizeof(address)));
	CHECK_REFUSED(sendmsg(unused, &message, MSG_FASTOPEN | MSG_NOSIGNAL));
}

static void check_forward(void)
{
	struct sockaddr_in name;
	struct pollfd polled = {.fd = control[0], .events = POLLOUT};
	socklen_t len = sizeof(name);
	check_others();
	check_opens_nothing();
	check_uses_its_descriptors();
	check_makes_no_connection();
	CHECK(poll(&polled, 1, 0) == 1);
	CHECK_REFUSED(getsockname(listener, (struct sockaddr *)&name, &len));
	CHECK_REFUSED(getsockopt(client, SOL_IP, SO_ORIGINAL_DST, &name, &len));
	CHECK_REFUSED(fcntl(client, F_SETFL, O_NONBLOCK));
}

static void test_who_forwards_makes_neither_sockets_nor_connections(void **state)
{
	run(CONFINEMENT_FORWARD, check_forward);
}

static void check_lookup(void)
{
	char byte;
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_DUMPABLE) == 0);
	check_others();
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(read(fd, &byte, 1) == 0);
	CHECK(close(fd) == 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(fd >= 0);
	CHECK(close(fd) == 0);
	CHECK_REFUSED(chmod("/is-not-there", 0600));
	CHECK_REFUSED(open("/dev/null", O_RDONLY | O_TRUNC));
	CHECK_REFUSED(open("/is-not-there", O_RDONLY | O_CREAT, 0600));
	CHECK_REFUSED(syscall(SYS_openat, AT_FDCWD, "/is-not-there", O_RDONLY | O_CREAT, 0600));
	CHECK_REFUSED(setxattr("/is-not-there", "user.a", "b", 1, 0));
	CHECK_REFUSED(utimensat(AT_FDCWD, "/is-not-there", NULL, 0));
}

static void test_the_lookup_reads_and_changes_nothing(void **state)
{
	run(CONFINEMENT_LOOKUP, check_lookup);
}

/* Says that it is confined, or not if `kind` is NULL, and waits. Never as root. */
static pid_t start_waiting(const enum confinement_kind *kind, int ready[2], int go[2])
{
	struct error err;
	char byte = 'x';
	assert_true(confinement_prepare(&err));
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(go[1]);
		CHECK(geteuid() != 0 ||
			setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER) == 0);
		CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0); // becoming a user has reset it
		CHECK(!kind || confinement_apply(*kind, &err));
		CHECK(write(ready[1], &byte, 1) == 1);
		CHECK(read(go[0], &byte, 1) == 0);
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	return pid;
}

static void read_proc(pid_t pid, const char *name, char text[8192])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, 8191);
	assert_true(size > 0);
	text[size] = '\0';
	close(fd);
}

static void assert_closed(const enum confinement_kind *kind)
{
	char path[64], text[8192];
	int ready[2], go[2], result;
	struct stat status;
	pid_t pid = start_waiting(kind, ready, go);
	/* proc(5): these files belong to root if the process is not dumpable. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_uid == 0, kind != NULL);
	read_proc(pid, "status", text);
	bool is_filtered = strstr(text, "\nNoNewPrivs:\t1\n") && strstr(text, "\nSeccomp:\t2\n");
	assert_int_equal(is_filtered, kind != NULL);
	read_proc(pid, "limits", text);
	const char *line = strstr(text, "\nMax core file size ");
	assert_non_null(line);
	line += strcspn(line, "0123456789u"); // past "Max core file size": the soft limit
	assert_true(!kind || strncmp(line, "0 ", 2) == 0);
	line += strcspn(line, " ");
	line += strspn(line, " ");
	assert_true(!kind || strncmp(line, "0 ", 2) == 0);
	close(go[1]);
	close(ready[0]);
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}

static void test_none_shows_its_memory_or_gains_a_privilege(void **state)
{
	static const enum confinement_kind kinds[] = {
		CONFINEMENT_RELAY, CONFINEMENT_LOOKUP, CONFINEMENT_KEYS, CONFINEMENT_FORWARD};
	assert_closed(NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		assert_closed(&kinds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_relay_has_sockets_of_ip_and_nothing_else),
		cmocka_unit_test(test_the_holder_of_keys_has_what_libcurl_needs_and_nothing_else),
		cmocka_unit_test(test_who_forwards_makes_neither_sockets_nor_connections),
		cmocka_unit_test(test_the_lookup_reads_and_changes_nothing),
		cmocka_unit_test(test_none_shows_its_memory_or_gains_a_privilege),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
