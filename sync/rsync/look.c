/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/machine.h"
#include "sync/id.h"
#include "sync/rsync/rsync.h"

/*
 * A look at the runtime root is one script, and a pull is several round trips more. What a look
 * says right before a pull is therefore kept in our folder, in "print", with the tree that the
 * pull ended with and the id of this machine's boot; and the rules it was made by, in "seen".
 * Where the next look says the same, by the same rules, with the mirror as that pull left it, a
 * pull would find nothing: the pull has seen what the first look saw. "print" goes before the
 * mirror is changed by anybody, so that another broker, or a cut, leaves none that is wrong.
 */
enum {
	ANSWER_MAX = 64 << 10,
	LINE_MAX = PRINT_TEXT_MAX + 128,
	LOOK_TIMEOUT_MS = 20000,
	LOOK_SLOW_S = 2, // and slower than the pull: not worth it
};

/* ---- what is kept ---- */

static void read_small(int folder, const char *name, char *text, size_t size)
{
	int fd ATTR_CLEANUP(fd_cleanup) = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, size - 1);
	text[count > 0 ? count : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

bool rsync_forget_print(struct rsync_transport *rsync, struct error *err)
{
	return unlinkat(rsync->mirror.fd, "print", 0) == 0 || errno == ENOENT ||
	       error_set_errno(err, errno, "removing %s/print", rsync->mirror.folder);
}

bool rsync_keep_print(struct rsync_transport *rsync, const git_oid *tree, struct error *err)
{
	char line[LINE_MAX], id[GIT_OID_HEXSZ + 1], boot[BOOT_ID_SIZE], print[PRINT_TEXT_MAX];
	int folder = rsync->mirror.fd;
	if (!rsync->looking.has_print || !print_is_settled(&rsync->looking.print)) {
		return true;
	}
	boot_id_read(boot);
	print_format(&rsync->looking.print, print);
	snprintf(line, sizeof(line), "%s %s %s\n",
		rsync->store.git->oid_tostr(id, sizeof(id), tree), *boot ? boot : "-", print);
	if (renameat(folder, "filter", folder, "seen") < 0) {
		return error_set_errno(err, errno, "renaming %s/filter", rsync->mirror.folder);
	}
	int fd ATTR_CLEANUP(fd_cleanup) = openat(
		folder, "print.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing %s/print", rsync->mirror.folder);
	}
	return fd_write_all(fd, span_of(line), err) &&
	       (renameat(folder, "print.new", folder, "print") == 0 ||
		       error_set_errno(err, errno, "writing %s/print", rsync->mirror.folder));
}

/* ---- what is compared ---- */

static bool is_same_file(int folder, const char *one, const char *other)
{
	char a[4096], b[4096];
	int from ATTR_CLEANUP(fd_cleanup) = openat(folder, one, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int to ATTR_CLEANUP(fd_cleanup) = openat(folder, other, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	for (off_t at = 0; from >= 0 && to >= 0;) {
		ssize_t count = pread(from, a, sizeof(a), at);
		if (count < 0 || pread(to, b, sizeof(b), at) != count ||
			memcmp(a, b, (size_t)count) != 0) {
			return false;
		}
		if (count == 0) {
			return true;
		}
		at += count;
	}
	return false;
}

/*
 * The line is of the tree that the mirror is and of this boot - the mirror is not synced to the
 * disk: after a start of this machine it may have holes -; the rest of it is the print.
 */
static bool read_kept(struct rsync_transport *rsync, struct print *print)
{
	char line[LINE_MAX], id[GIT_OID_HEXSZ + 1], boot[BOOT_ID_SIZE], prefix[128];
	git_oid is;
	if (mirror_state(&rsync->mirror, &rsync->store, &is) != MIRROR_IS) {
		return false;
	}
	boot_id_read(boot);
	snprintf(prefix, sizeof(prefix), "%s %s ", rsync->store.git->oid_tostr(id, sizeof(id), &is),
		boot);
	read_small(rsync->mirror.fd, "print", line, sizeof(line));
	return *boot && strncmp(line, prefix, strlen(prefix)) == 0 &&
	       print_parse(print, line + strlen(prefix));
}

static bool work_look(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct rsync_looking *looking = &rsync->looking;
	struct buf answer;
	struct print kept;
	buf_init(&answer, ANSWER_MAX);
	looking->has_print = rsync_read_answer(ends, &answer, err) &&
	                     print_read(&looking->print, buf_span(&answer));
	buf_finish(&answer);
	looking->is_same = looking->has_print && read_kept(rsync, &kept) &&
	                   print_is_same(&kept, &looking->print) &&
	                   is_same_file(rsync->mirror.fd, "filter", "seen");
	return true;
}

/* ---- the step ---- */

static bool work_forget(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	return rsync_forget_print(rsync, err);
}

static void looked(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->took_s = ev_time() - looking->began;
	looking->is_off = looking->is_off || !looking->has_print;
	if (looking->is_same) {
		rsync_do(rsync, looking->same, looking->ended);
	} else {
		looking->began = ev_time();
		rsync_do(rsync, work_forget, looking->differs);
	}
}

void rsync_look(
	struct rsync_transport *rsync, rsync_work *same, rsync_then *ended, rsync_then *differs)
{
	struct rsync_looking *looking = &rsync->looking;
	const char *argv[] = {"sh", "-c", rsync_look_script, "acp-broker-sync",
		rsync->request.runtime_root, rsync->side, NULL};
	looking->same = same;
	looking->ended = ended;
	looking->differs = differs;
	looking->has_print = looking->is_same = false;
	looking->began = ev_time();
	if (looking->is_off) {
		rsync_do(rsync, work_forget, differs);
	} else {
		rsync_try_script(rsync, argv, LOOK_TIMEOUT_MS, work_look, looked);
	}
}

void rsync_has_pulled(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->is_off = looking->is_off || (looking->took_s > LOOK_SLOW_S &&
						     looking->took_s > ev_time() - looking->began);
}
