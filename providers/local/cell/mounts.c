/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell/kernel.h"
#include "providers/local/net/ports.h"

static const struct kernel_change plain = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
static const struct kernel_change read_only = {
	.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .is_deep = true};
static const struct kernel_change kept = {
	.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	.clear = MOUNT_ATTR_RDONLY,
	.is_deep = true};
static const struct kernel_change writable = {
	.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .clear = MOUNT_ATTR_RDONLY, .is_deep = true};

/* All writable ones together can hold less than this machine's memory. */
static const struct kernel_room home_room = {"30%", 1 << 19};
static const struct kernel_room large_room = {"25%", 1 << 18};
static const struct kernel_room middle_room = {"10%", 1 << 16};
static const struct kernel_room small_room = {"2%", 1 << 14};

/* Folders that are always the cell's own. */
static const struct {
	const char *path;
	const char *mode;
	bool is_writable;
	const struct kernel_room *room;
} own_folders[] = {
	{"/tmp", "1777", true, &large_room},
	{"/var/tmp", "1777", true, &middle_room},
	{"/run", "0755", true, &small_room},
	{"/var/run", "0755", true, &small_room}, // unless it is a link to the one above
	{"/home", "0755", false, &small_room},
	{"/root", "0755", false, &small_room},
	/* Daemons that change their root or namespace have sockets here. */
	{"/var/spool", "0755", false, &small_room},
	{"/var/snap", "0755", false, &small_room},
	{"/var/lib/docker", "0755", false, &small_room},
	{"/var/lib/incus", "0755", false, &small_room},
	{"/var/lib/libvirt", "0755", false, &small_room},
	{"/var/lib/lxd", "0755", false, &small_room},
};

/* ---- places ---- */

static bool make_name(int folder, const char *name, bool is_folder)
{
	if (is_folder) {
		return mkdirat(folder, name, 0755) == 0 || errno == EEXIST;
	}
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool made = fd >= 0 || errno == EEXIST;
	fd_close(&fd);
	return made;
}

/*
 * Opens a mount point, which is made if it is missing. This never makes a file on this machine's
 * disks: check_places keeps mount points out of the plan's writable folders, and everything else
 * except the cell's own folders is read-only. -1 with errno.
 */
static int open_place(int root_fd, const char *path, bool is_folder, bool follows_links)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	int fd = kernel_open_in(root_fd, path, O_PATH, follows_links);
	if (fd >= 0 || errno != ENOENT || len >= sizeof(part)) {
		return fd;
	}
	for (size_t end = 1; end <= len; end++) {
		if (path[end] != '/' && path[end] != '\0') {
			continue;
		}
		text_whole(part, sizeof(part), "%.*s", (int)end, path);
		fd_close(&fd);
		fd = kernel_open_in(root_fd, part, O_PATH, follows_links);
		if (fd >= 0) {
			continue;
		}
		char *name = strrchr(part, '/');
		*name = '\0';
		ATTR_CLEANUP(fd_cleanup)
		int above = kernel_open_in(
			root_fd, part[0] ? part : "/", O_RDONLY | O_DIRECTORY, follows_links);
		if (above < 0 || !make_name(above, name + 1, is_folder || path[end] == '/')) {
			return -1;
		}
		*name = '/';
		fd = kernel_open_in(root_fd, part, O_PATH, follows_links);
		if (fd < 0) {
			return -1;
		}
	}
	return fd;
}

static bool attach_at(
	int root_fd, int mount_fd, const char *path, bool follows_links, struct error *err)
{
	struct stat status;
	if (fstat(mount_fd, &status) != 0) {
		return error_set_errno(err, errno, "showing %s", path);
	}
	ATTR_CLEANUP(fd_cleanup)
	int place = open_place(root_fd, path, S_ISDIR(status.st_mode), follows_links);
	if (place < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s in the cell", path);
	}
	return kernel_attach(mount_fd, place, err) || error_prefix(err, "%s in the cell", path);
}

static bool put_at(int root_fd, int mount_fd, const char *path, struct error *err)
{
	return attach_at(root_fd, mount_fd, path, true, err);
}

/* Mounts a folder in memory at a path. */
static bool put_tmpfs(int root_fd, const char *path, const char *mode,
	const struct kernel_room *room, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = kernel_new_tmpfs(mode, room, plain.set, err);
	return fd >= 0 && put_at(root_fd, fd, path, err);
}

static bool is_there(int root_fd, const char *path)
{
	ATTR_CLEANUP(fd_cleanup) int fd = kernel_open_in(root_fd, path, O_PATH, true);
	return fd >= 0;
}

/* ---- the cell's own files ---- */

static bool is_same(int root_fd, const char *path, const struct stat *outside)
{
	struct stat inside;
	ATTR_CLEANUP(fd_cleanup) int fd = kernel_open_in(root_fd, path, O_PATH, true);
	return fd >= 0 && fstat(fd, &inside) == 0 && inside.st_dev == outside->st_dev &&
	       inside.st_ino == outside->st_ino;
}

/* Whether this is a folder of this machine and none of the cell's own. */
static bool is_machines(int root_fd, const char *path)
{
	struct stat outside;
	return stat(path, &outside) == 0 && is_same(root_fd, path, &outside);
}

/*
 * Follows links, because /home is a link on some machines. Its target may already be the cell's
 * own.
 */
static bool put_own_folders(int root_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(own_folders); i++) {
		const char *path = own_folders[i].path;
		if (is_machines(root_fd, path) &&
			!put_tmpfs(root_fd, path, own_folders[i].mode, own_folders[i].room, err)) {
			return false;
		}
	}
	return true;
}

static bool put_link(int root_fd, const char *path, const char *target, struct error *err)
{
	char folder[PATH_MAX];
	text_whole(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	ATTR_CLEANUP(fd_cleanup)
	int above = open_place(root_fd, folder[0] ? folder : "/", true, true);
	if (above < 0 || symlinkat(target, above, path_last_part(path)) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s in the cell", path);
	}
	return true;
}

/* The home's other path may be a link in one of the cell's own folders. */
static bool put_home(int root_fd, const struct cell_plan *plan, struct error *err)
{
	const char *name = plan->home_name;
	return put_tmpfs(root_fd, plan->home, "0700", &home_room, err) &&
	       (!name || is_there(root_fd, name) || put_link(root_fd, name, plan->home, err));
}

static bool put_proc(int root_fd, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = kernel_new_proc(err);
	return fd >= 0 && put_at(root_fd, fd, "/proc", err);
}

static bool put_devices(int root_fd, struct error *err)
{
	static const char *const nodes[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
	const struct kernel_change node = {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
	for (size_t i = 0; i < ARRAY_LENGTH(nodes); i++) {
		ATTR_CLEANUP(fd_cleanup)
		int fd = kernel_copy_mounts(AT_FDCWD, nodes[i], err);
		if (fd < 0 || !kernel_change(fd, &node, err) ||
			!put_at(root_fd, fd, nodes[i], err)) {
			return false;
		}
	}
	return true;
}

static bool put_dev_links(int dev_fd, struct error *err)
{
	static const char *const links[][2] = {{"/proc/self/fd", "fd"},
		{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
		{"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};
	for (size_t i = 0; i < ARRAY_LENGTH(links); i++) {
		if (symlinkat(links[i][0], dev_fd, links[i][1]) != 0) {
			return error_set_errno(err, errno, "making /dev/%s", links[i][1]);
		}
	}
	return true;
}

static bool put_dev(int root_fd, int *out_dev, struct error *err)
{
	*out_dev =
		kernel_new_tmpfs("0755", &small_room, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	if (*out_dev < 0 || !put_at(root_fd, *out_dev, "/dev", err) || !put_devices(root_fd, err) ||
		!put_dev_links(*out_dev, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int pts = kernel_new_devpts(err);
	return pts >= 0 && put_at(root_fd, pts, "/dev/pts", err) &&
	       put_tmpfs(root_fd, "/dev/shm", "1777", &middle_room, err);
}

/* ---- files that we write ---- */

/* Mounts a read-only file with this content. */
static bool attach_file(
	int dev_fd, int place, const char *path, struct span content, struct error *err)
{
	static const char name[] = ".file"; // temporary
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(dev_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0 || !fd_write_all(fd, content, err)) {
		return error_set(err, ERROR_SYSTEM, "making %s for the cell", path);
	}
	ATTR_CLEANUP(fd_cleanup) int mount_fd = kernel_copy_mounts(dev_fd, name, err);
	bool is_put =
		mount_fd >= 0 && kernel_change(mount_fd, &read_only, err) &&
		(kernel_attach(mount_fd, place, err) || error_prefix(err, "%s in the cell", path));
	unlinkat(dev_fd, name, 0); // the mount keeps the file
	return is_put;
}

/* The same at a path, which is made if it is missing. */
static bool put_file(
	int root_fd, int dev_fd, const char *path, struct span content, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int place = open_place(root_fd, path, false, true);
	if (place < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s in the cell", path);
	}
	return attach_file(dev_fd, place, path, content, err);
}

/* ssh(1) and other programs refuse to work for a user without a name. */
static bool put_users(int root_fd, int dev_fd, const struct cell_plan *plan, struct error *err)
{
	struct buf text;
	buf_init(&text, 3 * PATH_MAX);
	bool is_put = buf_append_format(&text, err,
			      "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
			      "%s:x:%u:%u::%s:/bin/sh\n",
			      plan->user, (unsigned)plan->uid, (unsigned)plan->gid, plan->home) &&
	              put_file(root_fd, dev_fd, "/etc/passwd", buf_span(&text), err);
	buf_clear(&text);
	is_put = is_put &&
	         buf_append_format(&text, err, "root:x:0:\nnogroup:x:65534:\n%s:x:%u:\n",
			 plan->user, (unsigned)plan->gid) &&
	         put_file(root_fd, dev_fd, "/etc/group", buf_span(&text), err);
	buf_finish(&text);
	return is_put;
}

/*
 * Replaces this machine's file, even behind a link. If this machine has no such file, C libraries
 * use a default that works in the cell as well.
 */
static bool replace(
	int root_fd, int dev_fd, const char *path, const char *content, struct error *err)
{
	char real[PATH_MAX];
	return !realpath(path, real) || put_file(root_fd, dev_fd, real, span_of(content), err);
}

/*
 * Configures how programs look up names if the sockets of net/ports.h answer: only by DNS, because
 * this machine's other ways are sockets and files of its own.
 */
static bool put_names(int root_fd, int dev_fd, struct error *err)
{
	static const char resolver[] = "nameserver " PORTS_GATE "\noptions ndots:1\n";
	static const char ways[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
				   "networks: files\nprotocols: files\nservices: files\n";
	static const char hosts[] = "127.0.0.1 localhost\n";
	return replace(root_fd, dev_fd, "/etc/resolv.conf", resolver, err) &&
	       replace(root_fd, dev_fd, "/etc/nsswitch.conf", ways, err) &&
	       replace(root_fd, dev_fd, "/etc/hosts", hosts, err);
}

/*
 * On some machines this file lies in /run, which is the cell's own; without it no name would be
 * resolved.
 */
static bool put_resolver(int root_fd, int dev_fd, struct error *err)
{
	char real[PATH_MAX];
	char content[16384];
	ATTR_CLEANUP(fd_cleanup) int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || is_there(root_fd, "/etc/resolv.conf") ||
		!realpath("/etc/resolv.conf", real)) {
		return true;
	}
	ssize_t count = read(fd, content, sizeof(content));
	return count < 0 ||
	       put_file(root_fd, dev_fd, real, (struct span){content, (size_t)count}, err);
}

/* ---- entries of the plan ---- */

/* A path in a writable folder could lead through a link that an agent made there. */
static bool check_places(const struct cell_plan *plan, struct error *err)
{
	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct cell_entry *outer = &plan->entries[i];
		bool is_open = outer->rule == CELL_WRITE || outer->rule == CELL_KEEP;
		for (size_t j = i + 1; is_open && j < plan->entry_count; j++) {
			const char *path = plan->entries[j].path;
			if (path_is_at_or_below(path, outer->path)) {
				return error_set(err, ERROR_CONFIG,
					"%s is in %s, which is writable, so a link in it could "
					"lead elsewhere",
					path, outer->path);
			}
		}
	}
	return true;
}

static bool is_no_folder(int root_fd, const char *path)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = kernel_open_in(root_fd, path, O_PATH, true);
	return fd >= 0 && fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode);
}

static bool put_hidden(int root_fd, int dev_fd, const char *path, struct error *err)
{
	if (is_no_folder(root_fd, path)) {
		return put_file(root_fd, dev_fd, path, (struct span){"", 0}, err);
	}
	if (put_tmpfs(root_fd, path, "0755", &small_room, err)) {
		return true;
	}
	/* a path that is missing and cannot be made is as good as hidden */
	return !is_there(root_fd, path);
}

/* Makes a file that the cell's user may change and replace. */
static bool put_own_file(int root_fd, const struct cell_entry *entry, struct error *err)
{
	char folder[PATH_MAX];
	const char *name = strrchr(entry->path, '/') + 1;
	text_whole(folder, sizeof(folder), "%.*s", (int)(name - 1 - entry->path), entry->path);
	ATTR_CLEANUP(fd_cleanup) int place = open_place(root_fd, folder, true, false);
	ATTR_CLEANUP(fd_cleanup) int fd = -1;
	if (place >= 0) {
		fd = openat(
			place, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s in the cell", entry->path);
	}
	return fd_write_all(fd, (struct span){entry->source, strlen(entry->source)}, err) ||
	       error_prefix(err, "%s in the cell", entry->path);
}

static const struct kernel_change *change_of(enum cell_rule rule)
{
	return rule == CELL_WRITE ? &writable : rule == CELL_KEEP ? &kept : &read_only;
}

static int copy_source(const struct cell_entry *entry, struct error *err)
{
	return kernel_copy_mounts(AT_FDCWD, entry->source ? entry->source : entry->path, err);
}

/* `taken` is the descriptor from mounts_take, or -1. */
static bool put_binding(int root_fd, int taken, const struct cell_entry *entry, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = taken >= 0 ? taken : copy_source(entry, err);
	if (fd < 0) {
		return entry->rule == CELL_READ && (errno == ENOENT || errno == EACCES);
	}
	return kernel_change(fd, change_of(entry->rule), err) &&
	       attach_at(root_fd, fd, entry->path, false, err);
}

static bool put_entries(const struct mounts_taken *taken, int dev_fd, const struct cell_plan *plan,
	struct error *err)
{
	int root_fd = taken->root_fd;
	if (!check_places(plan, err)) {
		return false;
	}
	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct cell_entry *entry = &plan->entries[i];
		bool is_put = entry->rule == CELL_HIDE
		                      ? put_hidden(root_fd, dev_fd, entry->path, err)
		              : entry->rule == CELL_PUT
		                      ? put_own_file(root_fd, entry, err)
		                      : put_binding(root_fd, taken->sources[i], entry, err);
		if (!is_put) {
			return false;
		}
	}
	return true;
}

/* ---- sockets ---- */

struct hiding {
	int root_fd;
	int dev_fd;
	const struct cell_plan *plan;
	struct error *err;
};

static bool is_above(const char *folder, const char *path)
{
	return path_is_at_or_below(path, folder);
}

/* Whether the folder has files that every program needs. */
static bool is_system(const char *folder)
{
	static const char *const needed[] = {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
		"/lib64", "/libx32", "/mnt", "/media", "/opt", "/proc", "/sbin", "/srv", "/sys",
		"/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/sbin", "/var/lib"};
	bool is = false;
	for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
		is = is || is_above(folder, needed[i]);
	}
	return is;
}

/*
 * Whether a cell needs other files in the folder. For example, the .git of a repository that is
 * shown may contain a socket; the folder then stays.
 */
static bool is_needed(const struct cell_plan *plan, const char *folder)
{
	bool is = is_system(folder) || is_above(folder, plan->home);
	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct cell_entry *entry = &plan->entries[i];
		bool is_shown = entry->rule != CELL_HIDE && is_above(entry->path, folder);
		is = is || is_shown || is_above(folder, entry->path);
	}
	return is;
}

static bool is_socket(int folder, const char *name)
{
	struct stat status;
	return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(status.st_mode);
}

/* Whether the plan shows exactly this socket. */
static bool is_bound(const struct cell_plan *plan, const char *folder, const char *name)
{
	char path[PATH_MAX];
	bool is = false;
	bool fits = text_whole(path, sizeof(path), "%s/%s", folder, name);
	for (size_t i = 0; fits && i < plan->entry_count; i++) {
		const struct cell_entry *entry = &plan->entries[i];
		is = is || (entry->rule == CELL_READ && strcmp(entry->path, path) == 0);
	}
	return is;
}

/* Mounts an empty file over it. */
static bool cover(const struct hiding *hiding, int folder, const char *name)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int place = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 || fstat(place, &status) != 0 || !S_ISSOCK(status.st_mode)) {
		return true;
	}
	return attach_file(hiding->dev_fd, place, name, (struct span){"", 0}, hiding->err);
}

static bool empty(const struct hiding *hiding, int folder, const char *path)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = kernel_new_tmpfs("0555", &small_room, plain.set, hiding->err);
	return fd >= 0 && (kernel_attach(fd, folder, hiding->err) ||
				  error_prefix(hiding->err, "%s in the cell", path));
}

/*
 * Hides the sockets in a folder, whatever their names are: empties the folder or, if the cell needs
 * its other files, covers each socket. In a folder that we cannot list, only the socket with the
 * known name is found.
 */
static bool hide_in_folder(
	const struct hiding *hiding, const char *path, const char *name, bool is_kept)
{
	bool is_done = true;
	ATTR_CLEANUP(fd_cleanup)
	int folder = kernel_open_in(hiding->root_fd, path, O_PATH | O_DIRECTORY, true);
	if (folder < 0) {
		return true;
	}
	int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = listed >= 0 ? fdopendir(listed) : NULL;
	struct dirent *entry;
	if (!names && is_socket(folder, name) && !is_bound(hiding->plan, path, name)) {
		fd_close(&listed);
		return is_kept ? cover(hiding, folder, name) : empty(hiding, folder, path);
	}
	while (is_done && names && (entry = readdir(names))) {
		if (!is_socket(folder, entry->d_name) ||
			is_bound(hiding->plan, path, entry->d_name)) {
			continue;
		}
		if (!is_kept) {
			is_done = empty(hiding, folder, path);
			break;
		}
		is_done = cover(hiding, folder, entry->d_name);
	}
	if (names) {
		closedir(names);
	}
	return is_done;
}

static bool hide_sockets(const struct hiding *hiding, const struct mounts_taken *taken)
{
	bool is_done = true;
	for (size_t i = 0; i < taken->folder_count && is_done; i++) {
		const struct mounts_folder *folder = &taken->folders[i];
		if (!is_same(hiding->root_fd, folder->real, &folder->status)) {
			continue;
		}
		bool is_kept = strcmp(folder->real, "/") == 0 ||
		               is_needed(hiding->plan, folder->real) ||
		               is_needed(hiding->plan, folder->said);
		is_done = hide_in_folder(hiding, folder->real, folder->name, is_kept);
	}
	return is_done;
}

/* Adds the folder of each path once, by its path without links. */
static void take_folders(struct mounts_taken *taken, struct span paths)
{
	char **seen = NULL;
	char said[PATH_MAX], real[PATH_MAX];
	struct stat status;
	while (paths.len > 0) {
		const char *path = paths.data;
		size_t size = strlen(path) + 1;
		const char *name = strrchr(path, '/') + 1;
		paths = (struct span){paths.data + size, paths.len - size};
		text_whole(said, sizeof(said), "%.*s", (int)(name - 1 - path), path);
		if (!realpath(said[0] ? said : "/", real) || stat(real, &status) != 0 ||
			words_contain((const char *const *)seen, real)) {
			continue;
		}
		words_append(&seen, real);
		size_t count = taken->folder_count++;
		taken->folders = mem_realloc(taken->folders, (count + 1) * sizeof(*taken->folders));
		taken->folders[count] = (struct mounts_folder){.said = mem_strdup(said),
			.real = mem_strdup(real),
			.name = name,
			.status = status};
	}
	words_free(seen);
}

/* ---- the two namespaces ---- */

static int copy_machine(struct error *err)
{
	const struct kernel_change apart = {.propagation = MS_PRIVATE, .is_deep = true};
	ATTR_CLEANUP(fd_cleanup) int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (host < 0 || !kernel_change(host, &apart, err)) {
		return -1;
	}
	int root = kernel_copy_mounts(AT_FDCWD, "/", err);
	if (root >= 0 &&
		(!kernel_change(root, &read_only, err) || !kernel_attach(root, host, err))) {
		fd_close(&root);
	}
	return root;
}

bool mounts_take(struct mounts_taken *taken, const struct cell_plan *plan, struct span sockets,
	bool takes_sources, struct error *err)
{
	struct error ignored;
	*taken = (struct mounts_taken){.root_fd = copy_machine(err)};
	for (size_t i = 0; i < ARRAY_LENGTH(taken->sources); i++) {
		bool is_wanted = takes_sources && i < plan->entry_count &&
		                 plan->entries[i].rule != CELL_HIDE &&
		                 plan->entries[i].rule != CELL_PUT;
		taken->sources[i] = is_wanted ? copy_source(&plan->entries[i], &ignored) : -1;
	}
	take_folders(taken, sockets);
	return taken->root_fd >= 0;
}

bool mounts_build(const struct mounts_taken *taken, const struct cell_plan *plan, struct error *err)
{
	const struct kernel_change shared = {.propagation = MS_SHARED, .is_deep = true};
	ATTR_CLEANUP(fd_cleanup) int dev = -1;
	int root = taken->root_fd;
	if (is_system(plan->home)) {
		return error_set(err, ERROR_CONFIG,
			"the home folder %s is a system folder: no file in it could be hidden",
			plan->home);
	}
	mode_t before = umask(0);
	bool is_built =
		put_own_folders(root, err) && put_proc(root, err) && put_dev(root, &dev, err) &&
		put_home(root, plan, err) && put_entries(taken, dev, plan, err) &&
		put_users(root, dev, plan, err) &&
		(plan->has_ports ? put_names(root, dev, err) : put_resolver(root, dev, err));
	const struct hiding hiding = {.root_fd = root, .dev_fd = dev, .plan = plan, .err = err};
	is_built = is_built && hide_sockets(&hiding, taken) && kernel_change(root, &shared, err);
	umask(before);
	return is_built;
}

/* Whether the folder is mounted here already: renames between two mounts of it would fail. */
static bool is_shown(int place, const struct stat *wanted)
{
	struct stat status;
	struct statvfs limits;
	return fstat(place, &status) == 0 && status.st_dev == wanted->st_dev &&
	       status.st_ino == wanted->st_ino && fstatvfs(place, &limits) == 0 &&
	       (limits.f_flag & ST_RDONLY) == 0;
}

bool mounts_attach(int root_fd, int mount_fd, const char *path, struct error *err)
{
	return attach_at(root_fd, mount_fd, path, false, err);
}

bool mounts_has(int root_fd, const char *path)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int place = kernel_open_in(root_fd, path, O_PATH, false);
	return place >= 0 && stat(path, &status) == 0 && is_shown(place, &status);
}

int mounts_take_folder(const char *path)
{
	struct error ignored;
	return kernel_copy_mounts(AT_FDCWD, path, &ignored);
}

bool mounts_show(int root_fd, int taken, const char *path, struct error *err)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = taken >= 0 ? taken : kernel_copy_mounts(AT_FDCWD, path, err);
	if (fd < 0 || !kernel_change(fd, &writable, err)) {
		return false;
	}
	if (fstat(fd, &status) != 0 || !S_ISDIR(status.st_mode)) {
		return error_set(
			err, ERROR_DENIED, "showing %s in the cell: it is not a folder", path);
	}
	ATTR_CLEANUP(fd_cleanup) int place = open_place(root_fd, path, true, false);
	if (place < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s in the cell", path);
	}
	return is_shown(place, &status) || kernel_attach(fd, place, err);
}

static bool close_folder(const char *path, struct error *err)
{
	const struct kernel_change closed = {.set = MOUNT_ATTR_RDONLY};
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || kernel_change(fd, &closed, err) ||
	       error_prefix(err, "%s in the cell", path);
}

static bool is_shown_at(const struct cell_plan *plan, const char *path)
{
	bool is = false;
	for (size_t i = 0; i < plan->entry_count; i++) {
		const struct cell_entry *entry = &plan->entries[i];
		is = is || (entry->rule != CELL_HIDE && strcmp(entry->path, path) == 0);
	}
	return is;
}

/*
 * Makes the folders read-only for everybody except the first process, which still makes mount
 * points in them.
 */
static bool close_folders(const struct cell_plan *plan, struct error *err)
{
	bool is_closed = close_folder("/dev", err);
	for (size_t i = 0; i < ARRAY_LENGTH(own_folders) && is_closed; i++) {
		is_closed = own_folders[i].is_writable ||
		            strcmp(own_folders[i].path, plan->home) == 0 ||
		            is_shown_at(plan, own_folders[i].path) ||
		            close_folder(own_folders[i].path, err);
	}
	for (size_t i = 0; i < plan->entry_count && is_closed; i++) {
		is_closed = plan->entries[i].rule != CELL_HIDE ||
		            close_folder(plan->entries[i].path, err);
	}
	return is_closed;
}

bool mounts_enter(int root_fd, const struct cell_plan *plan, struct error *err)
{
	const struct kernel_change slave = {.propagation = MS_SLAVE, .is_deep = true};
	/* A new namespace keeps only the root and the current folder as they are. */
	if (fchdir(root_fd) != 0 || unshare(CLONE_NEWNS) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a mount namespace");
	}
	ATTR_CLEANUP(fd_cleanup) int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return here >= 0 && kernel_change(here, &slave, err) && kernel_enter_root(err) &&
	       close_folders(plan, err);
}
