/* SPDX-License-Identifier: MIT */
#include "tests/unit/moment_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char *const before_lines[] = {"a=old a\n", "bin*=old bin\n", "d/gone=old gone\n",
	"d/kept=kept\n", "f=old f\n", "g/x=old x\n", "l@=old", "mode=mode\n", "Up=old up\n", NULL};
static const char *const after_lines[] = {"a=new a\n", "bin*=new bin\n", "d/kept=kept\n",
	"f/in/it=new\n", "g=new g\n", "l@=new", "mode*=mode\n", "n/e/w=new\n", "up=old up\n", NULL};

static void count_left(void *data, const char *path, const char *why)
{
	((struct moment *)data)->left++;
	snprintf(((struct moment *)data)->last_left, sizeof(((struct moment *)data)->last_left),
		"%s: %s", path, why);
}

void moment_reset(struct moment *moment, struct place *place)
{
	tree_clear(place->root);
	tree_write(place->root, before_lines);
	*moment = (struct moment){.place = place,
		.from = tree_make(&place->store, before_lines),
		.to = tree_make(&place->store, after_lines)};
}

bool moment_apply(struct moment *moment, const git_oid *from, const git_oid *to, struct error *err)
{
	struct apply_result result;
	struct apply_request request = {.root = moment->place->root,
		.from = *from,
		.to = *to,
		.on_left = count_left,
		.data = moment};
	return apply_run(&moment->place->store, &request, &result, err);
}

static void assert_no_temporary_file(struct place *place)
{
	assert_int_equal(tree_count(place->root, ".acp-", NULL), 0);
}

void moment_assert_finished(struct moment *moment)
{
	if (moment->left) {
		fail_msg("at call %d: %s", calls.at, moment->last_left);
	}
	git_oid now = tree_of_folder(&moment->place->store, moment->place->root);
	if (!tree_equal(&now, &moment->to)) {
		char *text = tree_text(&moment->place->store, &now);
		fail_msg("at call %d:\n%s", calls.at, text);
	}
	assert_no_temporary_file(moment->place);
}

/* valgrind ends a process that kills itself by kill(2), and then reports on it. */
void moment_be_killed(void *data)
{
	sigqueue(getpid(), SIGKILL, (union sigval){0});
}
