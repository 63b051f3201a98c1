/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "providers/ssh/files_impl.h"

/* The build makes each text from file_common.sh and the script's own file. */
static const char *const texts[] = {
	[FILE_SCRIPT_READ] =
#include "providers/ssh/remote/file_common.sh.inc"
#include "providers/ssh/remote/file_read.sh.inc"
		,
	[FILE_SCRIPT_WRITE] =
#include "providers/ssh/remote/file_common.sh.inc"
#include "providers/ssh/remote/file_write.sh.inc"
		,
	[FILE_SCRIPT_STAT] =
#include "providers/ssh/remote/file_common.sh.inc"
#include "providers/ssh/remote/file_stat.sh.inc"
		,
	[FILE_SCRIPT_RESOLVE] =
#include "providers/ssh/remote/file_common.sh.inc"
#include "providers/ssh/remote/file_resolve.sh.inc"
		,
};

const char *file_script_text(enum file_script script)
{
	return texts[script];
}

static const struct span content_head = {"content", sizeof("content")};
static const struct span content_end = {"\0whole", sizeof("\0whole")};

static bool fail_cut(const char *path, const char *words, struct error *err)
{
	return error_set(err, ERROR_UNAVAILABLE,
		"%s: the sandbox's answer is incomplete%s%s%s (it needs a POSIX sh "
		"and coreutils)",
		path, *words ? " (" : "", words, *words ? ")" : "");
}

/* Sets the error for the answer of a script that failed. */
static bool fail_told(const char *path, size_t max_bytes, const char *what, const char *detail,
	const char *words, struct error *err)
{
	if (strcmp(what, "refused") == 0) {
		return error_set_reason(
			err, ERROR_DENIED, "SECURITY_VIOLATION", "%s: refused, %s", path, detail);
	}
	if (strcmp(what, "missing") == 0) {
		return error_set(err, ERROR_NOT_FOUND, "%s: %s", path, detail);
	}
	if (strcmp(what, "large") == 0) {
		return error_set(err, ERROR_LIMIT, "%s: it has %s bytes, more than the allowed %zu",
			path, detail, max_bytes);
	}
	if (strcmp(what, "failed") == 0) {
		return error_set(err, ERROR_SYSTEM, "%s: %s%s%s%s", path, detail,
			*words ? " (" : "", words, *words ? ")" : "");
	}
	return fail_cut(path, words, err);
}

static bool read_content(const char *path, size_t max_bytes, struct buf *output, const char *words,
	struct error *err)
{
	struct span bytes = buf_span(output);
	size_t frame = content_head.len + content_end.len;
	bool is_whole = bytes.len >= frame && memcmp(bytes.data + bytes.len - content_end.len,
						      content_end.data, content_end.len) == 0;
	if (!is_whole) {
		return *words ? error_set(err, ERROR_SYSTEM, "reading %s: %s", path, words)
		              : fail_cut(path, words, err);
	}
	buf_consume(output, content_head.len);
	output->len -= content_end.len;
	return output->len <= max_bytes ||
	       error_set(err, ERROR_LIMIT, "%s: it has more than the allowed %zu bytes", path,
		       max_bytes);
}

static bool read_facts(const char *text, struct stat *out)
{
	unsigned mode, uid, gid;
	unsigned long long links, inode, device, accessed, modified, changed, blocks, block_size;
	long long size;
	if (sscanf(text, "%x %lld %u %u %llu %llu %llu %llu %llu %llu %llu %llu", &mode, &size,
		    &uid, &gid, &links, &inode, &device, &accessed, &modified, &changed, &blocks,
		    &block_size) != 12) {
		return false;
	}
	*out = (struct stat){.st_mode = mode,
		.st_size = size,
		.st_uid = uid,
		.st_gid = gid,
		.st_nlink = (nlink_t)links,
		.st_ino = inode,
		.st_dev = device,
		.st_blocks = (blkcnt_t)blocks,
		.st_blksize = (blksize_t)block_size};
	out->st_atim.tv_sec = (time_t)accessed;
	out->st_mtim.tv_sec = (time_t)modified;
	out->st_ctim.tv_sec = (time_t)changed;
	return true;
}

static bool read_result(
	enum file_script script, const char *what, const char *detail, struct file_answer *out)
{
	switch (script) {
	case FILE_SCRIPT_STAT:
		return strcmp(what, "facts") == 0 && read_facts(detail, &out->status);
	case FILE_SCRIPT_RESOLVE:
		return strcmp(what, "path") == 0 && snprintf(out->path, sizeof(out->path), "%s",
							    detail) < (int)sizeof(out->path);
	default:
		return strcmp(what, "written") == 0;
	}
}

bool file_answer_read(enum file_script script, const char *path, size_t max_bytes,
	struct buf *output, const char *words, struct file_answer *out_answer, struct error *err)
{
	struct span rest = buf_span(output);
	const char *what, *detail, *last;
	if (script == FILE_SCRIPT_READ && span_starts_with(rest, content_head)) {
		return read_content(path, max_bytes, output, words, err);
	}
	if (!(what = span_take_text(&rest)) || !(detail = span_take_text(&rest))) {
		return fail_cut(path, words, err);
	}
	bool is_bare = strcmp(detail, "end") == 0 && rest.len == 0;
	if (!is_bare &&
		(!(last = span_take_text(&rest)) || strcmp(last, "end") != 0 || rest.len > 0)) {
		return fail_cut(path, words, err);
	}
	if (read_result(script, what, detail, out_answer)) {
		return true;
	}
	return fail_told(path, max_bytes, what, is_bare ? "" : detail, words, err);
}
