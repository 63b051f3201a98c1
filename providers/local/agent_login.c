/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_login.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/confine.h"
#include "base/file_io.h"
#include "providers/local/json_pick.h"

#define LOOK_AFTER_S 0.3 // limits the cost of an agent that writes all the time

enum {
	READS_MAX = 64, // per look: an agent can make events faster than we read them
	LOCK_TRIES = 100,
	LOCK_PAUSE_MS = 10,
};

/* The part that a worker may use. */
struct agent_login {
	struct pool_job job;
	struct ev_loop *loop;
	struct pool *pool;
	const struct agent_file *file; // from the table
	char *home;                    // the user's home
	int home_fd;                   // the same folder
	int cell_fd;                   // the cell's home
	struct owner owner;            // of the cell's files: its file system knows no other user
	ev_io changed;                 // inotify, on the folders of both files
	ev_timer look;
	uint64_t users;     // hash of the user's login as last read or written here
	bool is_distrusted; // no login is copied from the cell any more
	bool is_due;        // it changed while the worker looked
	bool failed;        // the worker's last look failed
	bool has_told;      // a failure was logged; an agent could cause one again and again
	struct error err;
};

/* ---- a worker ---- */

static int open_folder(int home_fd, const struct agent_file *file)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(file->path, '/');
	text_whole(folder, sizeof(folder), "%.*s", (int)(slash - file->path), file->path);
	return beneath_open(home_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/*
 * Locks the folder of the user's file, so that only one broker compares and writes at a time.
 * Returns a descriptor, or -1 after a short wait; going on without the lock is safe, because each
 * write replaces the whole file.
 */
static int lock_users(const struct agent_login *login)
{
	int folder = open_folder(login->home_fd, login->file);
	for (int i = 0; folder >= 0 && i < LOCK_TRIES; i++) {
		if (lock_file_try(folder, LOCK_ALONE) != LOCK_ELSEWHERE) {
			break;
		}
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return folder;
}

/*
 * Hashes only the keys that are copied back, because the other keys change without a login. False:
 * the text is not JSON.
 */
static bool hash_login(const struct agent_login *login, struct span text, uint64_t *out)
{
	struct buf picked;
	struct error err;
	buf_init(&picked, AGENT_FILE_MAX);
	bool is_hashed = json_pick(text, login->file->back, &picked, &err);
	if (is_hashed) {
		*out = hash_bytes(HASH_START, buf_span(&picked));
	}
	buf_wipe(&picked);
	return is_hashed;
}

/* Refuses if the file has become a link. */
static bool renew_users(
	struct agent_login *login, struct span text, struct span from, struct error *err)
{
	struct buf renewed;
	struct confine *none = confine_create();
	struct confine *confine = confine_extend(none, login->home, login->home);
	char *path = path_join(login->home, login->file->path);
	buf_init(&renewed, (size_t)2 * AGENT_FILE_MAX);
	bool is_done = json_renew(text, from, login->file->back, &renewed, err) &&
	               file_write(confine, path, FILE_LINKS_REFUSED, buf_span(&renewed), err) &&
	               hash_login(login, buf_span(&renewed), &login->users);
	buf_wipe(&renewed);
	free(path);
	confine_release(confine);
	confine_release(none);
	return is_done;
}

/*
 * Programs in the cell may have put anything beside the file, so the file is replaced by its own
 * name.
 */
static bool renew_cells(const struct agent_login *login, struct span text, struct error *err)
{
	static const char draft[] = ".acp-broker-login";
	const char *name = path_last_part(login->file->path);
	struct buf picked;
	ATTR_CLEANUP(fd_cleanup) int folder = open_folder(login->cell_fd, login->file);
	ATTR_CLEANUP(fd_cleanup) int fd = -1;
	(void)unlinkat(folder, draft, 0);
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a file");
	}
	buf_init(&picked, AGENT_FILE_MAX);
	bool is_done = json_pick(text, login->file->keys, &picked, err) &&
	               fd_write_all(fd, buf_span(&picked), err);
	buf_wipe(&picked);
	if (is_done && renameat(folder, draft, folder, name) != 0) {
		is_done = error_set_errno(err, errno, "replacing it");
	}
	return is_done;
}

/*
 * If the user or another cell has logged in meanwhile, that login wins even if the cell's login has
 * a later time, because an agent can write any time into its file. From then on we copy no login
 * from such a cell.
 */
static bool compare(
	struct agent_login *login, struct span users, struct span cells, struct error *err)
{
	const char *newer = login->file->newer;
	uint64_t now;
	if (!hash_login(login, users, &now)) {
		return true; // somebody is writing it
	}
	bool is_changed = now != login->users;
	bool is_newer = json_is_newer(users, cells, newer);
	login->users = now;
	login->is_distrusted = login->is_distrusted || (is_changed && is_newer);
	if (is_newer && !login->is_distrusted) {
		return renew_users(login, users, cells, err);
	}
	if (!is_changed && !json_is_newer(cells, users, newer)) {
		return true;
	}
	bool is_done = owner_enter(&login->owner, err) && renew_cells(login, users, err);
	owner_leave(&login->owner);
	return is_done;
}

/* Ignores a side that has no login or is being written. */
static void look(struct agent_login *login)
{
	struct buf users, cells;
	const char *path = login->file->path;
	int lock = lock_users(login);
	buf_init(&users, AGENT_FILE_MAX + 1);
	buf_init(&cells, AGENT_FILE_MAX + 1);
	bool are_read = agent_home_read(login->home_fd, path, &users, &login->err) &&
	                agent_home_read(login->cell_fd, path, &cells, &login->err);
	login->failed =
		are_read && !compare(login, buf_span(&users), buf_span(&cells), &login->err);
	buf_wipe(&users);
	buf_wipe(&cells);
	fd_close(&lock);
}

static void on_run(struct pool_job *job)
{
	look(CONTAINER_OF(job, struct agent_login, job));
}

/* ---- the loop ---- */

static void tell(struct agent_login *login)
{
	if (login->failed && !login->has_told) {
		login->has_told = true;
		log_warning("the login in %s/%s and the login of a confined agent cannot be kept "
			    "equal: %s",
			login->home, login->file->path, login->err.text);
	}
}

static void login_free(struct agent_login *login)
{
	fd_close(&login->home_fd);
	fd_close(&login->cell_fd);
	free(login->home);
	free(login);
}

static void on_drop(struct pool_job *job)
{
	struct agent_login *login = CONTAINER_OF(job, struct agent_login, job);
	look(login);
	tell(login);
	login_free(login);
}

static void submit(struct agent_login *login)
{
	struct error err;
	login->is_due = pool_has(&login->job);
	if (!login->is_due && !pool_submit(login->pool, &login->job, &err)) {
		log_debug("looking for a refreshed login: %s", err.text);
	}
}

static void on_done(struct pool_job *job)
{
	struct agent_login *login = CONTAINER_OF(job, struct agent_login, job);
	tell(login);
	if (login->is_due) {
		submit(login);
	}
}

/*
 * One look covers all changes so far, however many events there are, so the other events are
 * discarded.
 */
static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct agent_login *login = CONTAINER_OF(timer, struct agent_login, look);
	char names[16384];
	for (int i = 0; i < READS_MAX && read(login->changed.fd, names, sizeof(names)) > 0; i++) {
	}
	ev_io_start(loop, &login->changed);
	submit(login);
}

static void on_changed(struct ev_loop *loop, ev_io *io, int events)
{
	struct agent_login *login = CONTAINER_OF(io, struct agent_login, changed);
	ev_io_stop(loop, io);
	ev_timer_set(&login->look, LOOK_AFTER_S, 0.);
	ev_timer_start(loop, &login->look);
}

/* Watches by descriptor, because the agent may have put a link on the path by now. */
static void watch(struct agent_login *login, int home_fd)
{
	char name[64];
	ATTR_CLEANUP(fd_cleanup) int folder = open_folder(home_fd, login->file);
	text_whole(name, sizeof(name), "/proc/self/fd/%d", folder);
	if (folder < 0 || inotify_add_watch(login->changed.fd, name,
				  IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
		log_debug("a login that is refreshed in a cell is copied back only when the cell "
			  "ends");
	}
}

/* A broker that was killed may have left a temporary file with tokens beside the user's file. */
static void sweep(const struct agent_login *login)
{
	ATTR_CLEANUP(fd_cleanup) int folder = open_folder(login->home_fd, login->file);
	if (folder >= 0 && lock_file_try(folder, LOCK_ALONE) == LOCK_TAKEN) {
		file_sweep_drafts(folder);
	}
}

/* Remembers the login with which the cell starts. */
static void remember_users(struct agent_login *login)
{
	struct buf users;
	struct error err;
	buf_init(&users, AGENT_FILE_MAX + 1);
	if (!agent_home_read(login->home_fd, login->file->path, &users, &err) ||
		!hash_login(login, buf_span(&users), &login->users)) {
		login->users = 0;
	}
	buf_wipe(&users);
}

static const struct agent_file *find_file(const struct agent_home *agent)
{
	for (size_t i = 0; agent->files && i < AGENT_FILES_MAX; i++) {
		if (agent->files->files[i].back) {
			return &agent->files->files[i];
		}
	}
	return NULL;
}

struct agent_login *agent_login_start(
	struct ev_loop *loop, struct pool *pool, const struct agent_home *agent, int cell_fd)
{
	const struct agent_file *file = find_file(agent);
	int home_fd = file ? open(agent->home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	int copy_fd = home_fd >= 0 ? fcntl(cell_fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (copy_fd < 0) {
		fd_close(&home_fd);
		return NULL;
	}
	struct agent_login *login = mem_alloc_zero(sizeof(*login));
	login->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = on_drop};
	login->loop = loop;
	login->pool = pool;
	login->file = file;
	login->home = mem_strdup(agent->home);
	login->home_fd = home_fd;
	login->cell_fd = copy_fd;
	login->owner = agent->owner;
	sweep(login);
	remember_users(login);
	ev_timer_init(&login->look, on_look, LOOK_AFTER_S, 0.);
	ev_io_init(&login->changed, on_changed, inotify_init1(IN_NONBLOCK | IN_CLOEXEC), EV_READ);
	if (login->changed.fd >= 0) {
		watch(login, home_fd);
		watch(login, copy_fd);
		ev_io_start(loop, &login->changed);
	}
	return login;
}

void agent_login_end(struct agent_login *login)
{
	if (!login) {
		return;
	}
	ev_timer_stop(login->loop, &login->look);
	ev_io_stop(login->loop, &login->changed);
	fd_close(&login->changed.fd);
	pool_leave(&login->job);
}
