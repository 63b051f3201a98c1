/* SPDX-License-Identifier: MIT */
#include "providers/local/net/program.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/utf8.h"

enum { PATH_SIZE = 64, LINK_SIZE = 64 };

ino_t program_namespace(int socket_fd)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = ioctl(socket_fd, SIOCGSKNS);
	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/* ---- the socket ---- */

/* The field with this number, counted from 0; "" if there are fewer. */
static const char *find_field(const char *line, int number)
{
	line += strspn(line, " ");
	for (; number > 0; number--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

/*
 * "   1: 0100007F:1F90 0100007F:C350 01 tx:rx tr:tm retransmits uid timeout inode …"
 * (proc_pid_net(5)). 0 if the line is about another port, or no process has the socket any more.
 */
static ino_t inode_of_line(const char *line, uint16_t port)
{
	const char *local = find_field(line, 1);
	const char *colon = local + strcspn(local, ": ");
	bool is_its = *colon == ':' && strtoul(colon + 1, NULL, 16) == port;
	return is_its ? (ino_t)strtoull(find_field(line, 9), NULL, 10) : 0;
}

static ino_t find_inode(const char *pid, const char *table, uint16_t port)
{
	char path[PATH_SIZE], line[512];
	size_t total = 0;
	ino_t inode = 0;
	text_whole(path, sizeof(path), "/proc/%s/net/%s", pid, table);
	FILE *file = fopen(path, "re");
	while (file && inode == 0 && total < PROGRAM_TABLE_MAX && fgets(line, sizeof(line), file)) {
		total += strlen(line);
		inode = inode_of_line(line, port);
	}
	if (file) {
		fclose(file);
	}
	return inode;
}

/* ---- the process ---- */

static bool link_is(int folder, const char *name, const char *wanted)
{
	char target[LINK_SIZE];
	ssize_t len = readlinkat(folder, name, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	return strcmp(target, wanted) == 0;
}

static bool has_socket(const char *pid, ino_t inode, size_t *files)
{
	char path[PATH_SIZE], wanted[LINK_SIZE];
	bool has = false;
	text_whole(path, sizeof(path), "/proc/%s/fd", pid);
	text_whole(wanted, sizeof(wanted), "socket:[%ju]", (uintmax_t)inode);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && !has && *files > 0 && (entry = readdir(folder))) {
		--*files;
		has = link_is(dirfd(folder), entry->d_name, wanted);
	}
	if (folder) {
		closedir(folder);
	}
	return has;
}

static void read_command_line(const char *pid, char out[PROGRAM_SIZE])
{
	char path[PATH_SIZE];
	text_whole(path, sizeof(path), "/proc/%s/cmdline", pid);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, out, PROGRAM_SIZE - 1) : 0;
	size_t size = len > 0 ? (size_t)len : 0;
	size = size == PROGRAM_SIZE - 1 ? utf8_whole_length((struct span){out, size}) : size;
	while (size > 0 && out[size - 1] == '\0') {
		size--;
	}
	for (size_t i = 0; i < size; i++) {
		if (!out[i]) {
			out[i] = ' ';
		}
	}
	out[size] = '\0';
}

void program_find(ino_t network_namespace, uint16_t port, char out[PROGRAM_SIZE])
{
	char wanted[LINK_SIZE], name[PATH_SIZE];
	size_t processes = PROGRAM_PROCESSES_MAX;
	size_t files = PROGRAM_FILES_MAX;
	ino_t inode = 0;
	bool is_found = false;
	out[0] = '\0';
	text_whole(wanted, sizeof(wanted), "net:[%ju]", (uintmax_t)network_namespace);
	DIR *proc = network_namespace != 0 ? opendir("/proc") : NULL;
	struct dirent *entry;
	while (proc && !is_found && processes > 0 && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
			!text_whole(name, sizeof(name), "%.20s/ns/net", entry->d_name)) {
			continue;
		}
		processes--;
		if (!link_is(dirfd(proc), name, wanted)) {
			continue;
		}
		inode = inode != 0 ? inode : find_inode(entry->d_name, "tcp", port);
		inode = inode != 0 ? inode : find_inode(entry->d_name, "tcp6", port);
		is_found = inode != 0 && has_socket(entry->d_name, inode, &files);
		if (is_found) {
			read_command_line(entry->d_name, out);
		}
	}
	if (proc) {
		closedir(proc);
	}
}

/* ---- on the pool ---- */

struct program_search {
	struct pool_job job;
	ino_t network_namespace;
	uint16_t port;
	char program[PROGRAM_SIZE];
	program_found *found;
	void *data;
};

static void run(struct pool_job *job)
{
	struct program_search *search = CONTAINER_OF(job, struct program_search, job);
	program_find(search->network_namespace, search->port, search->program);
}

static void on_done(struct pool_job *job)
{
	struct program_search *search = CONTAINER_OF(job, struct program_search, job);
	search->found(search->data, search->program);
	free(search);
}

static void on_dropped(struct pool_job *job)
{
	free(CONTAINER_OF(job, struct program_search, job));
}

struct program_search *program_search_start(
	struct pool *pool, ino_t network_namespace, uint16_t port, program_found *found, void *data)
{
	struct error ignored;
	struct program_search *search = mem_alloc_zero(sizeof(*search));
	search->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = on_done, .drop = on_dropped};
	search->network_namespace = network_namespace;
	search->port = port;
	search->found = found;
	search->data = data;
	if (pool_submit(pool, &search->job, &ignored)) {
		return search;
	}
	free(search);
	return NULL;
}

void program_search_leave(struct program_search *search)
{
	if (search) {
		pool_leave(&search->job);
	}
}
