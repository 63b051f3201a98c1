/* SPDX-License-Identifier: MIT */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

/*
 * What tells this machine from others: /etc/machine-id, or its name where there is none. It is
 * for hashes alone: machine-id(5) asks that it leaves the machine in no other way. Blocks.
 */
enum { MACHINE_ID_SIZE = 64 };
void machine_id_read(char machine[MACHINE_ID_SIZE]);

/* The id of this boot, padded with NULs; "" where the system has none. Blocks. */
enum { BOOT_ID_SIZE = 40 };
void boot_id_read(char boot[BOOT_ID_SIZE]);

/*
 * FNV-1a of a text and its terminating NUL, after others, so that "ab" "c" is not "a" "bc":
 * begin with HASH_START.
 */
#define HASH_START UINT64_C(14695981039346656037)
uint64_t hash_text(uint64_t hash, const char *text);

#endif
