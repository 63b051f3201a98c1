/* SPDX-License-Identifier: MIT */
#include "providers/local/net/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

#include <cmocka.h>

#include "base/fd.h"

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

static pid_t parent; // a process that a process of its user may signal
static int file;     // opened before the confinement

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
		file = memfd_create("file", MFD_CLOEXEC);
		CHECK(file >= 0);
		CHECK(confinement_apply(kind, &err));
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What neither of the two processes may do. */
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

static void check_relay_opens_nothing(void)
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
}

static void check_relay_has_streams_alone(void)
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

static void check_relay(void)
{
	check_others();
	check_relay_opens_nothing();
	check_relay_has_streams_alone();
}

static void test_the_relay_has_sockets_of_ip_and_nothing_else(void **state)
{
	run(CONFINEMENT_RELAY, check_relay);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_relay_has_sockets_of_ip_and_nothing_else),
		cmocka_unit_test(test_the_lookup_reads_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
