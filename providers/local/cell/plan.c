/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/plan.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

/*
 * The block: this header, the user, the home, its other path, then for each entry a letter, its
 * path and its source.
 */
struct block_header {
	uint32_t uid;
	uint32_t gid;
	uint32_t has_network;
	uint32_t has_ports;
	uint32_t service_count;
	uint32_t key_count;
	uint32_t forward_count;
	uint16_t forwards[CELL_FORWARDS_MAX];
	uint16_t services[PORTS_SERVICES_MAX];
	uint32_t entry_count;
};

enum { BLOCK_MAX = 8 << 20 };

static bool append_text(struct buf *block, const char *text, struct error *err)
{
	return buf_append(block, (struct span){text, strlen(text) + 1}, err);
}

static bool append_plan(struct buf *block, const struct cell_plan *plan, struct error *err)
{
	struct block_header header = {.uid = plan->uid,
		.gid = plan->gid,
		.has_network = plan->has_network,
		.has_ports = plan->has_ports,
		.service_count = (uint32_t)plan->service_count,
		.key_count = (uint32_t)plan->key_count,
		.forward_count = (uint32_t)plan->forward_count,
		.entry_count = (uint32_t)plan->entry_count};
	assert(plan->service_count <= PORTS_SERVICES_MAX && plan->key_count <= PORTS_KEYS_MAX &&
		plan->forward_count <= CELL_FORWARDS_MAX &&
		!(plan->has_network && (plan->has_ports || plan->forward_count > 0)));
	memcpy(header.forwards, plan->forwards, sizeof(header.forwards));
	memcpy(header.services, plan->services, sizeof(header.services));
	if (!buf_append(block, (struct span){(const char *)&header, sizeof(header)}, err) ||
		!append_text(block, plan->user, err) || !append_text(block, plan->home, err) ||
		!append_text(block, plan->home_name ? plan->home_name : "", err)) {
		return false;
	}
	for (size_t i = 0; i < plan->entry_count; i++) {
		assert(plan->entries[i].path[0] == '/');
		const char rule = (char)('0' + plan->entries[i].rule);
		const char *source = plan->entries[i].source;
		if (!buf_append(block, (struct span){&rule, 1}, err) ||
			!append_text(block, plan->entries[i].path, err) ||
			!append_text(block, source ? source : "", err)) {
			return false;
		}
	}
	return true;
}

int cell_plan_pack(const struct cell_plan *plan, struct error *err)
{
	struct buf block;
	int fd = -1;
	if (plan->entry_count > CELL_ENTRIES_MAX) {
		error_set(err, ERROR_LIMIT, "a cell can have at most %d paths, not %zu",
			CELL_ENTRIES_MAX, plan->entry_count);
		return -1;
	}
	buf_init(&block, BLOCK_MAX);
	if (append_plan(&block, plan, err)) {
		fd = memfd_create("acp-broker-cell", MFD_CLOEXEC);
		if (fd < 0 || !fd_write_all(fd, buf_span(&block), err)) {
			error_set(err, ERROR_SYSTEM, "making a memory file for the plan of a cell");
			fd_close(&fd);
		}
	}
	buf_finish(&block);
	return fd;
}

static const char *take_text(const char **at, const char *end)
{
	const char *text = *at;
	if (text < end) {
		*at += strlen(text) + 1;
	}
	return text;
}

static bool take_entries(struct cell_read_plan *read, const char *at, const char *end)
{
	size_t count = read->plan.entry_count;
	read->entries = mem_alloc_zero((count + 1) * sizeof(*read->entries));
	for (size_t i = 0; i < count; i++) {
		const char *line = take_text(&at, end);
		unsigned rule = (unsigned)(unsigned char)line[0] - '0';
		if (at >= end || rule >= CELL_RULES || line[1] != '/') {
			return false;
		}
		const char *source = take_text(&at, end);
		read->entries[i] = (struct cell_entry){
			.rule = rule, .path = line + 1, .source = source[0] ? source : NULL};
	}
	read->plan.entries = read->entries;
	return at == end;
}

bool cell_plan_unpack(struct cell_read_plan *read, int memory_fd, struct error *err)
{
	struct stat status;
	struct block_header header;
	*read = (struct cell_read_plan){.block = NULL};
	if (fstat(memory_fd, &status) != 0 || status.st_size < (off_t)sizeof(header) ||
		status.st_size > BLOCK_MAX) {
		return error_set(err, ERROR_SYSTEM, "reading the plan of a cell");
	}
	size_t size = (size_t)status.st_size;
	read->block = mem_alloc_zero(size + 2);
	if (pread(memory_fd, read->block, size, 0) != (ssize_t)size) {
		return error_set(err, ERROR_SYSTEM, "reading the plan of a cell");
	}
	memcpy(&header, read->block, sizeof(header));
	const char *at = read->block + sizeof(header);
	const char *end = read->block + size;
	read->plan = (struct cell_plan){.uid = header.uid,
		.gid = header.gid,
		.has_network = header.has_network != 0,
		.has_ports = header.has_ports != 0,
		.service_count = header.service_count,
		.key_count = header.key_count,
		.forward_count = header.forward_count,
		.entry_count = header.entry_count};
	memcpy(read->plan.services, header.services, sizeof(header.services));
	memcpy(read->plan.forwards, header.forwards, sizeof(header.forwards));
	read->plan.user = take_text(&at, end);
	read->plan.home = take_text(&at, end);
	const char *home_name = take_text(&at, end);
	read->plan.home_name = home_name[0] ? home_name : NULL;
	return (header.entry_count <= CELL_ENTRIES_MAX &&
		       header.service_count <= PORTS_SERVICES_MAX &&
		       header.key_count <= PORTS_KEYS_MAX &&
		       header.forward_count <= CELL_FORWARDS_MAX && take_entries(read, at, end)) ||
	       error_set(err, ERROR_SYSTEM, "reading the plan of a cell: it is incomplete");
}

void cell_plan_finish(struct cell_read_plan *read)
{
	free(read->block);
	free(read->entries);
}
