/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_NET_FIXTURE_H
#define TESTS_UNIT_NET_FIXTURE_H

#include "tests/unit/process_record.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/random.h"
#include "base/text.h"
#include "providers/local/net/network.h"
#include "providers/local/net/relay.h"
#include "providers/local/net/wire.h"
#include "tests/unit/net_bytes.h"

/*
 * A test of a cell's network makes two network namespaces: a machine, in which it is itself and has
 * servers, and a cell, whose sockets it opens. The machine knows names by a file of its own. For
 * one .c file.
 */
enum { NOT_HERE = 77, USER = 1001, GARBAGE_GROUP = 4242 };
enum { OWN_LISTED = 0x0a090807, OWN_PRIVATE = 0x0a010203, OWN_PUBLIC = 0x08080808 };

static const char hosts[] = "10.9.8.7 good.example other.example\n"
			    "127.0.0.1 loop.example localhost\n"
			    "169.254.169.254 metadata.example\n"
			    "10.1.2.3 private.example\n"
			    "8.8.8.8 own.example\n"
			    "10.1.2.3 mixed.example\n"
			    "10.9.8.7 mixed.example\n"
			    "203.0.113.9 far.example\n";

static int machine_ns;
static int cell_ns;

/* ---- what the broker is told ---- */

enum { TELLS_MAX = 8 };

struct seen {
	struct network *network;
	bool is_ready;
	bool has_ended;
	struct error err;
	enum { ALLOWS, REFUSES, WAITS } mode;
	int asks;
	int gone;
	uint32_t ids[NETWORK_CONNECTIONS_MAX + 1];
	struct network_connection asked; // last
	char asked_name[NAME_SIZE];
	int tells;
	enum network_result result; // last
	char server_name[NAME_SIZE];
	int limits;
	enum network_limit limit;
};

static struct seen seen;

static inline void on_net_ready(void *data)
{
	((struct seen *)data)->is_ready = true;
}

static inline void on_ask(void *data, const struct network_connection *connection)
{
	struct seen *now = data;
	assert_true(now->asks < NETWORK_CONNECTIONS_MAX + 1);
	now->ids[now->asks++] = connection->id;
	now->asked = *connection;
	text_whole(now->asked_name, sizeof(now->asked_name), "%s", connection->name);
	if (now->mode != WAITS) {
		network_decide(now->network, connection->id, now->mode == ALLOWS);
	}
}

static inline void on_gone(void *data, uint32_t id)
{
	((struct seen *)data)->gone++;
}

static inline void on_tell(
	void *data, const struct network_connection *connection, enum network_result result)
{
	struct seen *now = data;
	assert_int_equal(connection->id, now->asked.id);
	now->tells++;
	now->result = result;
}

static inline void on_server_name(void *data, uint32_t id, const char *name)
{
	struct seen *now = data;
	assert_int_equal(id, now->asked.id);
	text_whole(now->server_name, sizeof(now->server_name), "%s", name);
}

static inline void on_net_limit(void *data, enum network_limit limit)
{
	struct seen *now = data;
	now->limits++;
	now->limit = limit;
}

static inline void on_end(void *data, const struct error *err)
{
	struct seen *now = data;
	assert_false(now->has_ended);
	now->has_ended = true;
	now->err = *err;
}

static const struct network_listener net_listener = {
	.on_ready = on_net_ready,
	.on_ask = on_ask,
	.on_gone = on_gone,
	.on_tell = on_tell,
	.on_server_name = on_server_name,
	.on_limit = on_net_limit,
	.on_end = on_end,
};

/* ---- the two namespaces ---- */

static inline bool write_file(const char *path, const char *text)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static inline bool become_user(void)
{
	char users[64], groups[64];
	text_whole(users, sizeof(users), "%d %u 1", USER, (unsigned)geteuid());
	text_whole(groups, sizeof(groups), "%d %u 1", USER, (unsigned)getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 &&
	       write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", users) && write_file("/proc/self/gid_map", groups);
}

/* A broker that is root has no user namespace, and its processes become USER. */
static inline bool stay_root(void)
{
	return unshare(CLONE_NEWNS | CLONE_NEWNET) == 0;
}

/* The machine's own files, in a file system that ends with us. */
static inline bool name_hosts(void)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/mnt", "tmpfs", 0, NULL) == 0 && write_file("/mnt/hosts", hosts) &&
	       write_file("/mnt/nsswitch.conf", "hosts: files\n") &&
	       mount("/mnt/hosts", "/etc/hosts", NULL, MS_BIND, NULL) == 0 &&
	       mount("/mnt/nsswitch.conf", "/etc/nsswitch.conf", NULL, MS_BIND, NULL) == 0;
}

static inline bool set_address(const char *name, uint32_t address)
{
	struct ifreq request = {.ifr_flags = IFF_UP};
	ATTR_CLEANUP(fd_cleanup) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	text_whole(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (address == 0) {
		return ioctl(fd, SIOCSIFFLAGS, &request) == 0;
	}
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
	memcpy(&request.ifr_addr, &in, sizeof(in));
	return ioctl(fd, SIOCSIFADDR, &request) == 0;
}

static inline bool make_machine(bool is_root)
{
	bool is_made = (is_root ? stay_root() : become_user()) && name_hosts() &&
	               set_address("lo", 0) && set_address("lo:1", OWN_LISTED) &&
	               set_address("lo:2", OWN_PRIVATE) && set_address("lo:3", OWN_PUBLIC) &&
	               set_address("lo:4", 0xa9fea9fe);
	machine_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return is_made && machine_ns >= 0;
}

static inline void enter(int ns)
{
	assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

/* A new cell and its sockets. */
static inline bool make_cell(uint16_t service, int fds[PORTS_MAX])
{
	struct error err;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	cell_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(cell_ns >= 0 && set_address("lo", 0));
	bool is_open = ports_open(&service, 1, fds, &err);
	int errnum = errno;
	enter(machine_ns);
	if (!is_open && errnum != ENOENT && errnum != EOPNOTSUPP && errnum != EPROTONOSUPPORT) {
		fail_msg("%s", err.text);
	}
	return is_open; // or the kernel has no nf_tables
}

static inline int cell_socket(int type)
{
	enter(cell_ns);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	enter(machine_ns);
	assert_true(fd >= 0);
	return fd;
}

static inline struct sockaddr_in place(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
}

/* ---- a network ---- */

static int server; // of the machine, on each of its addresses
static uint16_t server_port;

static inline void open_server(void)
{
	struct sockaddr_in name = place(INADDR_ANY, 0);
	socklen_t size = sizeof(name);
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(server, (const struct sockaddr *)&name, size), 0);
	assert_int_equal(listen(server, 300), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&name, &size), 0);
	server_port = ntohs(name.sin_port);
}

static inline void turn(void)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.005, 0.);
	ev_timer_start(loop, &tick);
	ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &tick);
}

#define TURN_UNTIL(condition)                                                                      \
	do {                                                                                       \
		long long until_ms = clock_now_ms() + DEADLINE_MS;                                 \
		while (!(condition) && clock_now_ms() < until_ms) {                                \
			turn();                                                                    \
		}                                                                                  \
		assert_true(condition);                                                            \
	} while (0)

static inline void start_in(struct spawner *in, const int *fds, gid_t gid)
{
	static const struct address_network networks[] = {
		{.address = {.family = AF_INET, .bytes = {10, 9, 8, 7}}, .bits = 32},
		{.address = {.family = AF_INET, .bytes = {169, 254}}, .bits = 16},
		{.address = {.family = AF_INET, .bytes = {127}}, .bits = 8}};
	struct error err;
	const struct network_options options = {.fds = fds,
		.services = &server_port,
		.service_count = 1,
		.networks = networks,
		.network_count = ARRAY_LENGTH(networks)};
	seen = (struct seen){.mode = ALLOWS};
	const struct network_user user = {.uid = USER, .gid = gid};
	seen.network = network_create(loop, in, user, &net_listener, &seen, &err);
	assert_non_null(seen.network);
	assert_true(network_serve(seen.network, &options, &err));
}

static inline void start_for(void **state, gid_t gid)
{
	int fds[PORTS_MAX];
	open_server();
	if (!make_cell(server_port, fds)) {
		close(server);
		close(cell_ns);
		*state = NULL;
		skip();
	}
	start_in(spawner, fds, gid);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&fds[i]);
	}
}

static inline void begin(void **state)
{
	start_for(state, USER);
	TURN_UNTIL(seen.is_ready);
}

static inline void finish(void)
{
	network_stop(seen.network);
	close(server);
	close(cell_ns);
}

/* ---- what a program in the cell does ---- */

/* The address that the cell's DNS gives; 0: none. */
static inline uint32_t resolve(const char *name)
{
	char bytes[512];
	struct sockaddr_in gate = place(PORTS_GATE_ADDRESS, 53);
	const struct timeval patience = {.tv_sec = 60};
	int fd = cell_socket(SOCK_DGRAM);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (const struct sockaddr *)&gate, sizeof(gate)), 0);
	size_t size = net_question(name, bytes);
	assert_int_equal(send(fd, bytes, size, 0), size);
	ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
	close(fd);
	assert_true(got >= (ssize_t)size);
	uint32_t address = 0;
	if (bytes[7] == 1) {
		memcpy(&address, bytes + got - 4, sizeof(address));
	}
	return ntohl(address);
}

static inline int dial(uint32_t address, uint16_t port)
{
	struct sockaddr_in name = place(address, port);
	int fd = cell_socket(SOCK_STREAM);
	assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static inline int dial_name(const char *name)
{
	return dial(resolve(name), server_port);
}

static inline bool is_readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	return poll(&poll_fd, 1, 0) == 1;
}

static inline int accept_at_server(void)
{
	TURN_UNTIL(is_readable(server));
	int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The next bytes; -1 with errno. */
static inline ssize_t read_some(int fd, char *bytes, size_t size)
{
	TURN_UNTIL(is_readable(fd));
	return recv(fd, bytes, size, MSG_DONTWAIT);
}

static inline void expect(int fd, const char *text)
{
	size_t len = 0;
	char bytes[256];
	while (len < strlen(text)) {
		ssize_t got = read_some(fd, bytes + len, strlen(text) - len);
		assert_true(got > 0);
		len += (size_t)got;
	}
	assert_memory_equal(bytes, text, len);
}

static inline void expect_end(int fd)
{
	char byte;
	assert_int_equal(read_some(fd, &byte, 1), 0);
	close(fd);
}

static inline void expect_reset(int fd)
{
	char byte;
	assert_int_equal(read_some(fd, &byte, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline void reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

#endif
