/* SPDX-License-Identifier: MIT */
#include "sync/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ignore_rules.h"
#include "base/text.h"
#include "sync/store_impl.h"

static const char exclude_path[] = "info/exclude";

static bool is_same_text(const char *path, struct span text)
{
	struct stat status;
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0 || (size_t)status.st_size != text.len) {
		return false;
	}
	char *old = mem_alloc(text.len);
	bool is_same = pread(fd, old, text.len, 0) == (ssize_t)text.len &&
	               (text.len == 0 || memcmp(old, text.data, text.len) == 0);
	free(old);
	return is_same;
}

static bool write_rules(struct store *store, struct span rules, struct error *err)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", store->path, exclude_path);
	if (is_same_text(path, rules)) {
		return true;
	}
	struct temp temp = {.fd = -1};
	bool written = temp_create(store, &temp, err) && fd_write_all(temp.fd, rules, err) &&
	               temp_publish(store, &temp, exclude_path, err);
	temp_discard(store, &temp);
	return written;
}

/* libgit2 1.5 leaks some memory if it is set to the same value again. */
static bool set_work_tree(struct store *store, const char *top, struct error *err)
{
	const char *now = store->git->repository_workdir(store->repository);
	size_t length = strlen(top);
	if (now && strncmp(now, top, length) == 0 && strcmp(now + length, "/") == 0) {
		return true;
	}
	return store->git->repository_set_workdir(store->repository, top, 0) == 0 ||
	       error_set_git(store->git, err, "reading the ignore rules of %s", top);
}

static bool use_rules(struct ignore *ignore, struct store *store, struct buf *rules,
	const char *top, struct error *err)
{
	*ignore = (struct ignore){store};
	bool written = write_rules(store, buf_span(rules), err);
	buf_finish(rules);
	if (!written) {
		return false;
	}
	store->git->attr_cache_flush(store->repository);
	return set_work_tree(store, top, err);
}

bool ignore_init(struct ignore *ignore, struct store *store,
	const struct user_repository *repository, const char *home, struct error *err)
{
	struct buf rules;
	buf_init(&rules, IGNORE_RULES_MAX);
	ignore_rules_of_top(repository, home, &rules);
	return use_rules(ignore, store, &rules, repository->top, err);
}

bool ignore_init_elsewhere(struct ignore *ignore, struct store *store,
	const struct ignore_elsewhere *places, const char *home, struct error *err)
{
	struct buf rules;
	buf_init(&rules, IGNORE_RULES_MAX);
	ignore_rules_read(places->rules_of, home, &rules);
	return use_rules(ignore, store, &rules, places->top, err);
}

bool ignore_matches(struct ignore *ignore, const char *path, bool is_folder)
{
	char with_slash[PATH_MAX + 1];
	int ignored = 0;
	text_whole(with_slash, sizeof(with_slash), "%s%s", path, is_folder ? "/" : "");
	const struct git *git = ignore->store->git;
	return git->ignore_path_is_ignored(&ignored, ignore->store->repository, with_slash) == 0 &&
	       ignored;
}
