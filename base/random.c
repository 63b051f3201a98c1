/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/log.h"

static void fill_from_device(uint8_t *out, size_t size)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	while (fd != -1 && size > 0) {
		ssize_t len = read(fd, out, size);
		if (len == 0 || (len < 0 && errno != EINTR)) {
			break;
		}
		out += len > 0 ? len : 0;
		size -= len > 0 ? (size_t)len : 0;
	}
	if (fd == -1 || size > 0) {
		log_error("this system has no random bytes: neither getrandom nor /dev/urandom");
		abort();
	}
	close(fd);
}

void random_fill(void *out, size_t size)
{
	uint8_t *at = out;
	while (size > 0) {
		ssize_t len = getrandom(at, size, 0);
		if (len < 0 && errno != EINTR) {
			fill_from_device(at, size);
			return;
		}
		at += len > 0 ? len : 0;
		size -= len > 0 ? (size_t)len : 0;
	}
}

void random_fill_hex(char *out, size_t digits)
{
	uint8_t bytes[64];
	size_t count = digits / 2;
	assert(digits % 2 == 0 && count <= sizeof(bytes));
	random_fill(bytes, count);
	hex_write(out, bytes, count);
}
