/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/fd.h"
#include "base/text.h"
#include "broker/cli/trial.h"

/* Syncs the scratch workspace with the sandbox, as the broker does with a real one. */

/* ---- the workspace here ---- */

static bool write_here(const struct trial *trial, const char *name, mode_t mode,
	struct span content, struct error *err)
{
	char path[PATH_MAX + 64];
	text_whole(path, sizeof(path), "%s/%s", trial->scratch.workspace, name);
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing %s", path);
	}
	return fd_write_all(fd, content, err) || error_prefix(err, "writing %s", path);
}

static bool expect_here(
	const struct trial *trial, const char *name, const char *content, struct error *err)
{
	char path[PATH_MAX + 64];
	char text[256] = "";
	text_whole(path, sizeof(path), "%s/%s", trial->scratch.workspace, name);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0) {
		return error_set_errno(err, errno, "%s did not come back from the sandbox", path);
	}
	return strcmp(text, content) == 0 ||
	       error_set(err, ERROR_PROTOCOL, "%s came back with other content", path);
}

/* ---- the keeper ---- */

static void on_ended(void *data, const struct keeper_event *event, const struct sync_result *result,
	const struct error *err)
{
}

/* The checks delete nothing by themselves, so any question is unexpected. */
static void on_question(
	void *data, const struct keeper_event *event, const struct deletions *deletions)
{
}

static const struct keeper_listener listener = {.on_ended = on_ended, .on_question = on_question};

static bool wait_sync(struct trial *trial, struct error *err)
{
	/* A transfer without progress fails by itself; a whole sync takes several transfers. */
	int timeout_ms = trial->means->config->profile.sync.timeout_ms;
	return trial_wait_outcome(trial, timeout_ms, "sync-timeout", err);
}

/* Its records and its store lie in the scratch folder, and are removed with it. */
static struct keeper *make_keeper(struct trial *trial)
{
	const struct test_provider_means *means = trial->means;
	const struct profile *profile = &means->config->profile;
	return keeper_create(&(struct keeper_config){
		.loop = means->loop,
		.pool = means->pool,
		.sandbox = trial->sandbox,
		.settings = &profile->sync,
		.profile = profile->name,
		.backend = profile->backend,
		.state_folder = trial->scratch.folder,
		.home = environment_get(means->environment, "HOME"),
		.tools = means->tools,
		.listener = &listener,
		.data = trial,
	});
}

bool trial_check_first_sync(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	char link[PATH_MAX + 64];
	struct kept kept;
	text_whole(link, sizeof(link), "%s/link", trial->scratch.workspace);
	if (!conformance_tidy(&trial->place, err) ||
		!write_here(trial, "stays", 0600, SPAN_LITERAL("same\n"), err) ||
		!write_here(trial, "goes", 0600, SPAN_LITERAL("gone\n"), err) ||
		!write_here(trial, "runs", 0755, SPAN_LITERAL("#!/bin/sh\necho it runs\n"), err)) {
		return false;
	}
	if (symlink("stays", link) != 0) {
		return error_set_errno(err, errno, "linking %s", link);
	}
	trial->keeper = make_keeper(trial);
	keeper_open(trial->keeper, (char *[]){trial->scratch.workspace, NULL}, trial_on_done,
		trial_begin(trial));
	if (!wait_sync(trial, err) ||
		!conformance_shell(&trial->place,
			"test \"$(cat stays goes link)\" = \"$(printf 'same\\ngone\\nsame')\" &&"
			"test -L link && test -x runs && test ! -x stays",
			NULL, err)) {
		return false;
	}
	if (keeper_at(trial->keeper, 0, &kept) && kept.transport) {
		text_format(note, TRIAL_NOTE_MAX, "by %s", kept.transport);
	}
	return true;
}

bool trial_check_changes(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	struct sync_order order = {.reason = SYNC_REASON_TURN, .deletions = SYNC_DELETIONS_KEEP};
	char gone[PATH_MAX + 64];
	text_whole(gone, sizeof(gone), "%s/goes", trial->scratch.workspace);
	if (unlink(gone) != 0) {
		return error_set_errno(err, errno, "removing %s", gone);
	}
	if (!write_here(trial, "here", 0600, SPAN_LITERAL("from here\n"), err) ||
		!conformance_shell(
			&trial->place, "echo from there >there && echo more >>stays", NULL, err)) {
		return false;
	}
	keeper_sync(trial->keeper, NULL, &order, trial_on_done, trial_begin(trial));
	return wait_sync(trial, err) && expect_here(trial, "there", "from there\n", err) &&
	       expect_here(trial, "stays", "same\nmore\n", err) &&
	       conformance_shell(&trial->place,
		       "test \"$(cat here)\" = 'from here' && test ! -e goes", NULL, err);
}
