/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Loaded by LD_PRELOAD: plays a program that writes a file whenever this process reads it. The
 * file that ACP_WRITER names has lines "HOW PATH". It is read anew each time; without it nothing is
 * written. After each read of more than a page from one of these paths, the file at the path is
 *
 *   append    longer by a line,
 *   change    of the same size with another first byte,
 *   truncate  shorter by two pages, or one page long if it had at most three.
 *
 * A mapping counts as such a read, although nothing has been read from it yet.
 */
enum { PAGE = 4096, LINE_SIZE = 4200 };

static void write_as(const char *how, const char *path)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) < 0) {
		abort(); // a test that writes nothing proves nothing
	}
	char first = 0;
	if (strcmp(how, "append") == 0) {
		(void)!pwrite(fd, "another line\n", 13, status.st_size);
	} else if (strcmp(how, "change") == 0) {
		ssize_t (*real)(int, void *, size_t, off_t) =
			(ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
		(void)!real(fd, &first, 1, 0);
		first++;
		(void)!pwrite(fd, &first, 1, 0);
	} else if (strcmp(how, "truncate") == 0) {
		(void)!ftruncate(fd, status.st_size > 3 * PAGE ? status.st_size - 2 * PAGE : PAGE);
	} else {
		abort();
	}
	close(fd);
}

static void write_to(int fd)
{
	char line[LINE_SIZE], link[64], path[LINE_SIZE];
	const char *list = getenv("ACP_WRITER");
	FILE *file = list ? fopen(list, "re") : NULL;
	if (!file) {
		return;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		char *name = strchr(line, ' ');
		if (name && strcmp(name + 1, path) == 0) {
			*name = '\0';
			write_as(line, path);
		}
	}
	fclose(file);
}

ssize_t read(int fd, void *to, size_t size)
{
	static ssize_t (*real)(int, void *, size_t);
	if (!real) {
		real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	}
	ssize_t count = real(fd, to, size);
	if (count > PAGE) {
		write_to(fd);
	}
	return count;
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{
	static ssize_t (*real)(int, void *, size_t, off64_t);
	if (!real) {
		real = (ssize_t(*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
	}
	ssize_t count = real(fd, to, size, at);
	if (count > PAGE) {
		write_to(fd);
	}
	return count;
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
	static void *(*real)(void *, size_t, int, int, int, off64_t);
	if (!real) {
		real = (void *(*)(void *, size_t, int, int, int, off64_t))dlsym(
			RTLD_NEXT, "mmap64");
	}
	void *mapping = real(at, size, protection, flags, fd, offset);
	if (fd >= 0 && size > PAGE && mapping != MAP_FAILED) {
		write_to(fd);
	}
	return mapping;
}
