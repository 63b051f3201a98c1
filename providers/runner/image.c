/* SPDX-License-Identifier: MIT */
#include "providers/runner/image.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/hex.h"

#ifdef ACP_RUNNER_MACHINE

extern const char acp_runner_begin[];
extern const char acp_runner_end[];

static size_t aligned(size_t size)
{
	return (size + 3) / 4 * 4;
}

static bool take_id(const char *note, size_t size, struct runner_image *out)
{
	ElfW(Nhdr) head;
	while (size >= sizeof(head)) {
		memcpy(&head, note, sizeof(head));
		size_t id_at = sizeof(head) + aligned(head.n_namesz);
		size_t next_at = id_at + aligned(head.n_descsz);
		if (next_at > size) {
			return false;
		}
		if (head.n_type == NT_GNU_BUILD_ID && head.n_descsz <= sizeof(out->build) / 2) {
			hex_write(out->build, note + id_at, head.n_descsz);
			return true;
		}
		note += next_at;
		size -= next_at;
	}
	return false;
}

static bool read_build(struct runner_image *out)
{
	ElfW(Ehdr) file;
	ElfW(Phdr) part;
	memcpy(&file, out->bytes.data, sizeof(file));
	for (size_t i = 0; i < file.e_phnum; i++) {
		memcpy(&part, out->bytes.data + file.e_phoff + i * file.e_phentsize, sizeof(part));
		if (part.p_type == PT_NOTE &&
			take_id(out->bytes.data + part.p_offset, part.p_filesz, out)) {
			return true;
		}
	}
	return false;
}

bool runner_image_find(const char *machine, struct runner_image *out)
{
	size_t size = (size_t)((uintptr_t)acp_runner_end - (uintptr_t)acp_runner_begin);
	out->bytes = (struct span){acp_runner_begin, size};
	return strcmp(machine, ACP_RUNNER_MACHINE) == 0 && read_build(out);
}

void runner_image_drop(const struct runner_image *image)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)image->bytes.data / page * page;
	/* The data is part of a file that is only read, so the pages can be read again later. */
	madvise((void *)begin, (uintptr_t)image->bytes.data + image->bytes.len - begin, // NOLINT
		MADV_DONTNEED);
}

#else

bool runner_image_find(const char *machine, struct runner_image *out)
{
	return false;
}

void runner_image_drop(const struct runner_image *image)
{
}

#endif
