/* SPDX-License-Identifier: MIT */
#include "providers/local/net/ports.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

enum { NO_NAMESPACE = 77 }; // this machine has none, or one without nf_tables
enum { ORIGINAL_DST = 80 }; // SO_ORIGINAL_DST; linux/netfilter_ipv4.h and netinet/in.h do not mix

/* Each test is a child in a network namespace of its own, which ends with the child. */
static bool enter_namespace(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	bool is_in = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
	ATTR_CLEANUP(fd_cleanup)
	int fd = is_in ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
}

static int opened[PORTS_MAX];
static const uint16_t services[] = {5432};

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__,      \
				#condition, errno);                                                \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void run(void (*test)(void))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct error err;
		if (!enter_namespace()) {
			_exit(NO_NAMESPACE);
		}
		if (!ports_open(services, 1, opened, &err)) {
			if (ports_are_unknown(errno)) {
				_exit(NO_NAMESPACE); // the kernel has no nf_tables
			}
			fprintf(stderr, "%s\n", err.text);
			_exit(1);
		}
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE) {
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct sockaddr_in place(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

static int connect_to(int type, uint32_t address, uint16_t port)
{
	struct sockaddr_in name = place(address, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
		int errnum = errno;
		close(fd);
		errno = errnum;
		return -1;
	}
	return fd;
}

static void check_arrives(uint32_t address, uint16_t port)
{
	struct sockaddr_in meant;
	socklen_t size = sizeof(meant);
	int fd = connect_to(SOCK_STREAM, address, port);
	CHECK(fd >= 0);
	int accepted = accept4(opened[PORTS_STREAMS], NULL, NULL, SOCK_CLOEXEC);
	CHECK(accepted >= 0);
	CHECK(getsockopt(accepted, IPPROTO_IP, ORIGINAL_DST, &meant, &size) == 0);
	CHECK(ntohl(meant.sin_addr.s_addr) == address && ntohs(meant.sin_port) == port);
	CHECK(write(accepted, "x", 1) == 1);
	char byte;
	CHECK(read(fd, &byte, 1) == 1 && byte == 'x');
	close(fd);
	close(accepted);
}

static void check_streams(void)
{
	check_arrives(0xc6120100, 443);
	check_arrives(0xc6120101, 22);
	check_arrives(0x01010101, 65535);
	check_arrives(PORTS_GATE_ADDRESS, PORTS_GATE_PORT);
	check_arrives(0xa9fea9fe, 80);
}

static void test_each_connection_arrives_and_says_where_it_goes(void **state)
{
	run(check_streams);
}

static void check_loopback(void)
{
	CHECK(connect_to(SOCK_STREAM, INADDR_LOOPBACK, 443) < 0 && errno == ECONNREFUSED);
	int fd = connect_to(SOCK_STREAM, INADDR_LOOPBACK, services[0]);
	CHECK(fd >= 0);
	int accepted = accept4(opened[PORTS_SERVICES], NULL, NULL, SOCK_CLOEXEC);
	CHECK(accepted >= 0);
	CHECK(accept4(opened[PORTS_STREAMS], NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN);
	close(fd);
	close(accepted);
}

static void test_the_loopback_stays_the_cells_own(void **state)
{
	run(check_loopback);
}

static void check_names(void)
{
	char bytes[8];
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	int fd = connect_to(SOCK_DGRAM, PORTS_GATE_ADDRESS, 53);
	CHECK(fd >= 0 && send(fd, "who", 3, 0) == 3);
	CHECK(recvfrom(opened[PORTS_NAMES], bytes, sizeof(bytes), 0, (struct sockaddr *)&from,
		      &size) == 3);
	close(fd);
}

static void test_a_question_for_a_name_arrives(void **state)
{
	run(check_names);
}

/* The refusal comes at once, so that QUIC does not wait before it falls back to TCP. */
static void check_datagrams(void)
{
	char byte;
	int fd = connect_to(SOCK_DGRAM, 0xc6120100, 443);
	CHECK(fd >= 0 && send(fd, "quic", 4, 0) == 4);
	CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED);
	close(fd);
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
	six.sin6_addr.s6_addr[0] = 0x20;
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd < 0 || (connect(fd, (const struct sockaddr *)&six, sizeof(six)) < 0 &&
				(errno == ENETUNREACH || errno == EADDRNOTAVAIL)));
}

static void test_other_datagrams_and_ipv6_are_refused_at_once(void **state)
{
	run(check_datagrams);
}

/* With these flags, C libraries first look whether the machine has such an address. */
static void check_is_found(void)
{
	const struct addrinfo wanted = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG | AI_NUMERICHOST};
	struct addrinfo *found = NULL;
	CHECK(getaddrinfo("198.18.1.0", "443", &wanted, &found) == 0);
	CHECK(found->ai_family == AF_INET);
	freeaddrinfo(found);
	struct ifaddrs *addresses;
	bool has_gate = false;
	CHECK(getifaddrs(&addresses) == 0);
	for (const struct ifaddrs *each = addresses; each; each = each->ifa_next) {
		struct sockaddr_in name;
		if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET) {
			memcpy(&name, each->ifa_addr, sizeof(name));
			has_gate = has_gate || ntohl(name.sin_addr.s_addr) == PORTS_GATE_ADDRESS;
		}
	}
	CHECK(has_gate);
	freeifaddrs(addresses);
}

static void test_programs_that_look_for_an_address_find_one(void **state)
{
	run(check_is_found);
}

static void check_all_ends(void)
{
	struct error err;
	int fds[PORTS_MAX];
	CHECK(!ports_open(services, 1, fds, &err) && err.code == ERROR_SYSTEM);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		CHECK(fds[i] == -1);
	}
	for (size_t i = 0; i < PORTS_MAX; i++) {
		CHECK((opened[i] >= 0) == (i < PORTS_SERVICES + 1));
	}
}

static void test_a_failure_leaves_nothing_open(void **state)
{
	run(check_all_ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_connection_arrives_and_says_where_it_goes),
		cmocka_unit_test(test_the_loopback_stays_the_cells_own),
		cmocka_unit_test(test_a_question_for_a_name_arrives),
		cmocka_unit_test(test_other_datagrams_and_ipv6_are_refused_at_once),
		cmocka_unit_test(test_programs_that_look_for_an_address_find_one),
		cmocka_unit_test(test_a_failure_leaves_nothing_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
