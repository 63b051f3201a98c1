/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/hex.h"
#include "providers/runner/runner.h"

static size_t aligned(size_t size)
{
	return (size + 3) / 4 * 4;
}

static void print_note(const unsigned char *id, size_t size, char text[BUILD_ID_SIZE])
{
	size_t most = (BUILD_ID_SIZE - 1) / 2;
	hex_write(text, id, size < most ? size : most);
}

static void read_notes(const char *at, size_t size, char text[BUILD_ID_SIZE])
{
	ElfW(Nhdr) note;
	while (size >= sizeof(note)) {
		memcpy(&note, at, sizeof(note));
		size_t name_at = sizeof(note);
		size_t id_at = name_at + aligned(note.n_namesz);
		size_t next_at = id_at + aligned(note.n_descsz);
		if (next_at > size) {
			return;
		}
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
			memcmp(at + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
			print_note((const unsigned char *)at + id_at, note.n_descsz, text);
		}
		at += next_at;
		size -= next_at;
	}
}

/* The first object is the program itself. */
static int on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type == PT_NOTE) {
			// NOLINTNEXTLINE(performance-no-int-to-ptr): how the interface has it
			read_notes((const char *)(info->dlpi_addr + header->p_vaddr),
				header->p_memsz, data);
		}
	}
	return 1;
}

void build_id_read(char text[BUILD_ID_SIZE])
{
	text[0] = '\0';
	dl_iterate_phdr(on_object, text);
}
