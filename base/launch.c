/* SPDX-License-Identifier: MIT */
#include "base/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/cgroup.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/text.h"

/* The block: this header, then cwd, argv and env, each text with its NUL. */
struct block_header {
	uint32_t argv_count;
	uint32_t env_count;
	uint32_t cwd_root;
};

enum { BLOCK_MAX = 64 << 20, DEFAULT_STATUS = 127 };

static const char default_path[] = "/bin:/usr/bin"; // as in execvp(3) if PATH is not set

static size_t texts_size(const char *const *texts, uint32_t *out_count)
{
	size_t size = 0;
	uint32_t count = 0;
	for (; texts[count]; count++) {
		size += strlen(texts[count]) + 1;
	}
	*out_count = count;
	return size;
}

static char *put_text(char *at, const char *text)
{
	return stpcpy(at, text) + 1;
}

static char *put_texts(char *at, const char *const *texts)
{
	for (; *texts; texts++) {
		at = put_text(at, *texts);
	}
	return at;
}

int launch_pack(const struct process_spec *spec, struct error *err)
{
	struct block_header header = {.cwd_root = (uint32_t)spec->cwd_root};
	size_t size = sizeof(header) + strlen(spec->cwd) + 1;
	size += texts_size(spec->argv, &header.argv_count);
	size += texts_size(spec->env, &header.env_count);
	if (size > BLOCK_MAX) {
		error_set(err, ERROR_LIMIT, "arguments and environment take %zu bytes", size);
		return -1;
	}
	char *block = mem_alloc(size);
	memcpy(block, &header, sizeof(header));
	put_texts(put_texts(put_text(block + sizeof(header), spec->cwd), spec->argv), spec->env);

	int fd = memfd_create("acp-broker-launch", MFD_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a memory file");
	} else if (!fd_write_all(fd, (struct span){block, size}, err)) {
		fd_close(&fd);
	}
	explicit_bzero(block, size); // the environment may contain secrets
	free(block);
	return fd;
}

static bool read_block(struct launch *launch, int memory_fd)
{
	struct stat status;
	if (fstat(memory_fd, &status) != 0 || status.st_size < (off_t)sizeof(struct block_header) ||
		status.st_size > BLOCK_MAX) {
		return false;
	}
	launch->block_size = (size_t)status.st_size;
	launch->block = mem_alloc(launch->block_size + 1);
	ssize_t count = pread(memory_fd, launch->block, launch->block_size, 0);
	launch->block[launch->block_size] = '\0';
	return count == (ssize_t)launch->block_size;
}

static char **take_texts(char **at, const char *end, uint32_t count)
{
	char **texts = mem_alloc_zero((count + 1UL) * sizeof(*texts));
	for (uint32_t i = 0; i < count && *at < end; i++) {
		texts[i] = *at;
		*at += strlen(*at) + 1;
	}
	return texts;
}

bool launch_unpack(struct launch *launch, int memory_fd, struct error *err)
{
	errno = 0;
	if (!read_block(launch, memory_fd)) {
		int errnum = errno != 0 ? errno : EBADMSG;
		return error_set_errno(err, errnum, "starting a process: reading its arguments");
	}
	struct block_header header;
	memcpy(&header, launch->block, sizeof(header));
	char *at = launch->block + sizeof(header);
	const char *end = launch->block + launch->block_size;
	launch->cwd = at;
	launch->cwd_root = header.cwd_root < strlen(at) ? header.cwd_root : 0;
	at += strlen(at) + 1;
	launch->argv = take_texts(&at, end, header.argv_count);
	launch->env = take_texts(&at, end, header.env_count);
	return true;
}

void launch_finish(struct launch *launch)
{
	free(launch->argv);
	free(launch->env);
	free(launch->block);
	*launch = (struct launch){0};
}

void launch_reset_signals(void)
{
	for (int number = 1; number < NSIG; number++) {
		signal(number, SIG_DFL); // fails for KILL, STOP and libc's own two
	}
}

static void unblock_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void fail(int status_fd, enum launch_step step, int errnum, const char *path) ATTR_NORETURN;
static void fail(int status_fd, enum launch_step step, int errnum, const char *path)
{
	struct launch_failure failure = {.step = step, .errnum = errnum};
	char cwd[PATH_MAX] = "";
	bool is_relative = *path && *path != '/' && getcwd(cwd, sizeof(cwd));
	text_format(
		failure.path, sizeof(failure.path), "%s%s%s", cwd, is_relative ? "/" : "", path);
	struct error ignored;
	if (!fd_write_all(
		    status_fd, (struct span){(const char *)&failure, sizeof(failure)}, &ignored)) {
		_exit(DEFAULT_STATUS);
	}
	_exit(DEFAULT_STATUS);
}

/* Moves the three file descriptors to 0, 1 and 2; they may have these numbers already. */
static bool place_descriptors(const struct launch *launch)
{
	int moved[3];
	for (int i = 0; i < 3; i++) {
		int fd = launch->fds[i];
		moved[i] = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
		if (fd < 0) {
			ATTR_CLEANUP(fd_cleanup)
			int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
			moved[i] = null_fd < 0 ? -1 : fcntl(null_fd, F_DUPFD_CLOEXEC, 3);
		}
		if (moved[i] < 0) {
			return false;
		}
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(moved[i], i) < 0) {
			return false;
		}
	}
	libc_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); // since Linux 5.11; ours are CLOEXEC already
	return true;
}

/* A script without a "#!" line is run by the shell, as in execvp(3); a binary file is not. */
static bool is_shell_text(const char *path)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[256];
	ssize_t count = fd < 0 ? -1 : read(fd, head, sizeof(head));
	return count >= 0 && !memchr(head, '\0', (size_t)count);
}

static int execute_by_shell(const struct launch *launch, const char *path)
{
	size_t count = 0;
	while (launch->argv[count]) {
		count++;
	}
	char **argv = mem_alloc_zero((count + 2) * sizeof(*argv));
	argv[0] = (char *)"/bin/sh";
	argv[1] = (char *)path;
	for (size_t i = 1; i < count; i++) {
		argv[i + 1] = launch->argv[i];
	}
	execve(argv[0], argv, launch->env);
	int errnum = errno;
	free(argv);
	return errnum;
}

/* Returns only on failure, with the errno. ENOENT only if the file itself is missing. */
static int execute_file(const struct launch *launch, const char *path)
{
	execve(path, launch->argv, launch->env);
	int errnum = errno;
	if (errnum == ENOEXEC && is_shell_text(path)) {
		return execute_by_shell(launch, path);
	}
	if (errnum == ENOENT && access(path, F_OK) == 0) {
		return ELIBBAD; // the file exists, so its interpreter is missing
	}
	return errnum == ENOTDIR ? ENOENT : errnum;
}

/* Returns only on failure, with the errno. */
static int execute_program(const struct launch *launch, int program)
{
	while (flock(program, LOCK_SH) != 0) {
		if (errno != EINTR) {
			return errno;
		}
	}
	int seals = fcntl(program, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SEAL)) {
		return ENOEXEC; // whoever was writing it has ended
	}
	syscall(SYS_execveat, program, "", launch->argv, launch->env, AT_EMPTY_PATH);
	return errno;
}

static const char *search_path(char *const *env)
{
	for (; *env; env++) {
		if (strncmp(*env, "PATH=", 5) == 0) {
			return *env + 5;
		}
	}
	return default_path;
}

/*
 * Tries each folder of PATH. A file that was found but cannot be executed is kept for the message.
 */
static void execute_by_search(const struct launch *launch, int status_fd) ATTR_NORETURN;
static void execute_by_search(const struct launch *launch, int status_fd)
{
	char found[PATH_MAX] = "";
	int found_errnum = ENOENT;
	const char *folder = search_path(launch->env);
	for (;;) {
		size_t len = strcspn(folder, ":");
		char path[PATH_MAX];
		int written = snprintf(path, sizeof(path), "%.*s%s%s", (int)len, folder,
			len > 0 ? "/" : "", launch->argv[0]);
		int errnum = written < (int)sizeof(path) ? execute_file(launch, path) : ENOENT;
		if (errnum != ENOENT && access(path, F_OK) == 0) {
			if (found_errnum == ENOENT) {
				text_whole(found, sizeof(found), "%s", path);
				found_errnum = errnum;
			}
			if (errnum != EACCES && errnum != ELIBBAD) {
				break; // errors such as E2BIG would come in every folder
			}
		}
		if (folder[len] == '\0') {
			break;
		}
		folder += len + 1;
	}
	fail(status_fd, found_errnum == ENOENT ? LAUNCH_FIND : LAUNCH_EXECUTE, found_errnum, found);
}

/* Below the root, the folder must be reached without symbolic links, as it was checked. */
static bool enter_folder(const struct launch *launch)
{
	if (launch->cwd_root == 0) {
		return chdir(launch->cwd) == 0;
	}
	char root[PATH_MAX];
	const char *rest = launch->cwd + launch->cwd_root;
	if (snprintf(root, sizeof(root), "%.*s/", (int)launch->cwd_root, launch->cwd) >=
		(int)sizeof(root)) {
		errno = ENAMETOOLONG;
		return false;
	}
	int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	rest += strspn(rest, "/");
	if (folder >= 0 && *rest) {
		folder = beneath_open(folder, rest, O_PATH | O_DIRECTORY);
	}
	return folder >= 0 && fchdir(folder) == 0; // exec closes the file descriptors
}

void launch_run(const struct launch *launch, int status_fd)
{
	if (launch->group_fd >= 0 && !cgroup_write(launch->group_fd, "cgroup.procs", "0")) {
		int errnum = errno;
		fail(status_fd, LAUNCH_LIMIT, errnum, "");
	}
	int status = fcntl(status_fd, F_DUPFD_CLOEXEC, 3);
	int program = launch->has_program ? fcntl(launch->program, F_DUPFD_CLOEXEC, 3) : -1;
	if (status < 0 || (launch->has_program && program < 0) ||
		(!launch->foreground && setsid() < 0) || !place_descriptors(launch) ||
		(launch->owns_terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)) {
		int errnum = errno;
		fail(status_fd, LAUNCH_PREPARE, errnum, "");
	}
	if (!enter_folder(launch)) {
		int errnum = errno;
		fail(status, LAUNCH_CHDIR, errnum, "");
	}
	if (!limits_set(&launch->limits)) {
		int errnum = errno;
		fail(status, LAUNCH_LIMIT, errnum, "");
	}
	unblock_signals();
	const char *command = launch->argv[0];
	if (launch->has_program) {
		int errnum = execute_program(launch, program);
		fail(status, LAUNCH_EXECUTE, errnum, command);
	}
	if (!strchr(command, '/') && *command) {
		execute_by_search(launch, status);
	}
	int errnum = execute_file(launch, command);
	fail(status, errnum == ENOENT ? LAUNCH_FIND : LAUNCH_EXECUTE, errnum, command);
}

/* Names the interpreter of a script if the script failed because it is missing. */
static bool describe_interpreter(const char *command, const char *path, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[256];
	ssize_t count = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (count <= 2 || line[0] != '#' || line[1] != '!') {
		return error_set(err, ERROR_DENIED,
			"starting \"%s\": %s cannot be executed: its interpreter does not exist",
			command, path);
	}
	line[count] = '\0';
	char *name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\r\n")] = '\0';
	return error_set(err, ERROR_DENIED,
		"starting \"%s\": %s cannot be executed: its interpreter \"%s\" does not exist",
		command, path, name);
}

static void describe_execute(const char *command, const char *path, int errnum, struct error *err)
{
	struct stat status;
	if (errnum == ELIBBAD) {
		describe_interpreter(command, path, err);
	} else if (errnum == EACCES && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		error_set(err, ERROR_DENIED, "starting \"%s\": %s is a directory", command, path);
	} else if (errnum == EACCES || errnum == EPERM || errnum == ENOEXEC) {
		error_set(err, ERROR_DENIED, "starting \"%s\": %s may not be executed: %s", command,
			path, libc_error_text(errnum));
	} else {
		error_set_errno(err, errnum, "starting \"%s\": executing %s", command, path);
	}
}

void launch_describe(
	const struct launch *launch, const struct launch_failure *failure, struct error *err)
{
	const char *command = launch->argv[0];
	bool has_no_folder = failure->errnum == ENOENT || failure->errnum == ENOTDIR;
	if (failure->step == LAUNCH_CHDIR && launch->cwd_root > 0 && failure->errnum == ELOOP) {
		error_set_reason(err, ERROR_DENIED, "SECURITY_VIOLATION",
			"starting \"%s\": changing to directory %s: refused, because the "
			"path now has a symbolic link",
			command, launch->cwd);
	} else if (failure->step == LAUNCH_CHDIR && has_no_folder) {
		error_set_reason(err, ERROR_NOT_FOUND, "DIRECTORY_NOT_FOUND",
			"starting \"%s\": changing to directory %s: %s", command, launch->cwd,
			libc_error_text(failure->errnum));
	} else if (failure->step == LAUNCH_CHDIR) {
		error_set_errno(err, failure->errnum, "starting \"%s\": changing to directory %s",
			command, launch->cwd);
	} else if (failure->step == LAUNCH_FIND && strchr(command, '/')) {
		error_set(err, ERROR_NOT_FOUND, "starting \"%s\": no such file", command);
	} else if (failure->step == LAUNCH_FIND) {
		error_set(err, ERROR_NOT_FOUND, "starting \"%s\": no such command in PATH %s",
			command, search_path(launch->env));
	} else if (failure->step == LAUNCH_EXECUTE) {
		describe_execute(command, failure->path, failure->errnum, err);
	} else if (failure->step == LAUNCH_LIMIT) {
		error_set_errno(
			err, failure->errnum, "starting \"%s\": setting its limits", command);
	} else {
		error_set_errno(err, failure->errnum, "starting \"%s\"", command);
	}
}
