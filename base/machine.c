/* SPDX-License-Identifier: MIT */
#include "base/machine.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

void machine_id_read(char machine[MACHINE_ID_SIZE])
{
	ATTR_CLEANUP(fd_cleanup) int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, machine, MACHINE_ID_SIZE - 1);
	machine[len > 0 ? len : 0] = '\0';
	machine[strcspn(machine, "\n")] = '\0';
	if (!machine[0] && gethostname(machine, MACHINE_ID_SIZE - 1) != 0) {
		machine[0] = '\0';
	}
	machine[MACHINE_ID_SIZE - 1] = '\0';
}

void boot_id_read(char boot[BOOT_ID_SIZE])
{
	char text[BOOT_ID_SIZE];
	ATTR_CLEANUP(fd_cleanup)
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	memset(boot, 0, BOOT_ID_SIZE);
	memcpy(boot, text, strcspn(text, "\n"));
}

uint64_t hash_text(uint64_t hash, const char *text)
{
	do {
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	} while (*text++);
	return hash;
}
