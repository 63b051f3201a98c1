/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "sync/id.h"
#include "sync/rsync/rsync.h"

/*
 * A look at the runtime root is one script, while a pull takes several more round trips. So the
 * result of a look right before a pull is kept in our folder: in "print", with the tree after the
 * pull and the id of this machine's boot. "seen" has the rules with which it was made. If the next
 * look gives the same result, with the same rules and an unchanged mirror, a pull would find
 * nothing. If the result differs, the script has kept lists of what it saw, and reports in which
 * folders to pull. "print" is removed before a pull changes the mirror, so that another broker, or
 * an interruption, never leaves a wrong one; during a delivery "state" says that it is busy.
 */
enum {
	LINE_MAX = PRINT_TEXT_MAX + 160,
	LOOK_TIMEOUT_MS = 20000,
	LOOK_SLOW_S =
		2, // a look that takes longer than this, and longer than the pull, is not worth it
};

/* ---- the kept look ---- */

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

/*
 * The id of this boot, and a hash for the profile's patterns, because the rules do not contain them
 * all.
 */
static void format_prefix(const struct rsync_transport *rsync, char prefix[LINE_MAX])
{
	char boot[BOOT_ID_SIZE];
	uint64_t patterns = HASH_START;
	const char *const *lists[] = {rsync->request.include, rsync->request.exclude};
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		for (const char *const *pattern = lists[i]; pattern && *pattern; pattern++) {
			patterns = hash_text(patterns, *pattern);
		}
		patterns = hash_text(patterns, "");
	}
	boot_id_read(boot);
	text_whole(prefix, LINE_MAX, " %s %016" PRIx64 " ", *boot ? boot : "-", patterns);
}

static bool write_print(struct rsync_transport *rsync, const git_oid *tree,
	const struct print *print, struct error *err)
{
	char line[2 * LINE_MAX], id[GIT_OID_HEXSZ + 1], prefix[LINE_MAX], text[PRINT_TEXT_MAX];
	int folder = rsync->mirror.fd;
	format_prefix(rsync, prefix);
	print_format(print, text);
	text_whole(line, sizeof(line), "%s%s%s\n",
		rsync->store.git->oid_tostr(id, sizeof(id), tree), prefix, text);
	int fd ATTR_CLEANUP(fd_cleanup) = openat(
		folder, "print.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing %s/print", rsync->mirror.folder);
	}
	return fd_write_all(fd, span_of(line), err) &&
	       (renameat(folder, "print.new", folder, "print") == 0 ||
		       error_set_errno(err, errno, "writing %s/print", rsync->mirror.folder));
}

bool rsync_keep_print(struct rsync_transport *rsync, const git_oid *tree, struct error *err)
{
	int folder = rsync->mirror.fd;
	if (!rsync->looking.has_print || !print_is_settled(&rsync->looking.print)) {
		return true;
	}
	if (renameat(folder, "filter", folder, "seen") < 0) {
		return error_set_errno(err, errno, "renaming %s/filter", rsync->mirror.folder);
	}
	return write_print(rsync, tree, &rsync->looking.print, err);
}

/*
 * Accepts the line only for this tree, this boot and these patterns; the rest of the line is the
 * print. The boot matters because the mirror is not synced to the disk: after a restart it may have
 * holes.
 */
static void read_kept(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	char line[2 * LINE_MAX], prefix[LINE_MAX];
	format_prefix(rsync, prefix);
	read_small(rsync->mirror.fd, "print", line, sizeof(line));
	char *rest = line + strcspn(line, " ");
	bool is_ours = strncmp(prefix, " - ", 3) != 0 && strncmp(rest, prefix, strlen(prefix)) == 0;
	*rest = '\0';
	looking->has_kept = is_ours && strlen(line) == GIT_OID_HEXSZ &&
	                    rsync->store.git->oid_fromstr(&looking->kept_of, line) == 0 &&
	                    print_parse(&looking->kept, rest + strlen(prefix));
}

bool rsync_carry_print(
	struct rsync_transport *rsync, const git_oid *from, const git_oid *to, struct error *err)
{
	read_kept(rsync);
	return !rsync->looking.has_kept || !id_equal(&rsync->looking.kept_of, from) ||
	       write_print(rsync, to, &rsync->looking.kept, err);
}

/* ---- comparing ---- */

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

/* Whether the mirror has the kept tree, and the rules are the same. */
static bool can_compare(const struct rsync_transport *rsync)
{
	const struct rsync_looking *looking = &rsync->looking;
	git_oid is;
	return looking->has_print && looking->has_kept &&
	       mirror_state(&rsync->mirror, (struct store *)&rsync->store, &is) == MIRROR_IS &&
	       id_equal(&is, &looking->kept_of) &&
	       print_is_comparable(&looking->kept, &looking->print) &&
	       is_same_file(rsync->mirror.fd, "filter", "seen");
}

static enum rsync_changed find_changed(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	reach_finish(&looking->reach);
	if (!can_compare(rsync)) {
		return CHANGED_SOMEWHERE;
	}
	if (print_is_same(&looking->kept, &looking->print)) {
		return CHANGED_NOTHING;
	}
	int mirror ATTR_CLEANUP(fd_cleanup) =
		openat(rsync->mirror.fd, "mirror", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return mirror >= 0 && print_is_settled(&looking->print) &&
	                       reach_read(&looking->reach, looking->differs, &rsync->filter.all,
				       mirror)
	               ? CHANGED_WITHIN_REACH
	               : CHANGED_SOMEWHERE;
}

static bool write_narrow(struct rsync_transport *rsync, struct error *err)
{
	struct filter narrow;
	filter_init(&narrow);
	reach_add_rules(&rsync->looking.reach, &rsync->filter.all, &narrow.all);
	bool written = filter_write(&narrow, rsync->mirror.fd, "narrow", err);
	filter_finish(&narrow);
	return written;
}

bool rsync_compare(struct rsync_transport *rsync, struct error *err)
{
	enum rsync_changed changed = find_changed(rsync);
	rsync->looking.changed = changed;
	return (changed == CHANGED_NOTHING || rsync_forget_print(rsync, err)) &&
	       (changed != CHANGED_WITHIN_REACH || write_narrow(rsync, err));
}

/* ---- the step ---- */

static bool work_look(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->has_print =
		rsync_read_answer(ends, &looking->answer, err) &&
		print_read(&looking->print, buf_span(&looking->answer), &looking->differs);
	return true;
}

static void looked(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->took_s = ev_time() - looking->began;
	looking->is_off = looking->is_off || !looking->has_print;
	looking->began = ev_time();
	looking->then(rsync);
}

static bool work_kept(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err)
{
	read_kept(rsync);
	return true;
}

static void look(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	const char *argv[] = {"sh", "-c", rsync_look_script, "acp-broker-sync",
		rsync->request.runtime_root, rsync->side,
		looking->has_kept ? looking->kept.sum : "", NULL};
	looking->began = ev_time();
	rsync_try_script(rsync, argv, LOOK_TIMEOUT_MS, work_look, looked);
}

void rsync_look(struct rsync_transport *rsync, rsync_then *then)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->then = then;
	looking->has_print = false;
	looking->began = ev_time();
	buf_clear(&looking->answer);
	if (looking->is_off || rsync->unreadable) { // a pull of everything is needed
		then(rsync);
	} else {
		rsync_do(rsync, work_kept, look);
	}
}

void rsync_has_pulled(struct rsync_transport *rsync)
{
	struct rsync_looking *looking = &rsync->looking;
	looking->is_off = looking->is_off || (looking->took_s > LOOK_SLOW_S &&
						     looking->took_s > ev_time() - looking->began);
}
