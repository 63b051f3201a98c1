/* SPDX-License-Identifier: MIT */
#include "tests/unit/process_record.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell/cell.h"
#include "providers/local/cell/inside.h"
#include "tests/attack/world.h"
#include "tests/support/facts.h"

/*
 * What an agent that works in the workspace itself may not write there: each attack works on this
 * machine, and fails in a cell that pins these paths.
 */

enum { OUTPUT_MAX = 8192, NOTICES_MAX = 16 };

static struct world world;
static struct spawner *machine; // outside of every cell

/* ---- a cell with a pinned folder ---- */

struct cell_record {
	struct cell *cell;
	bool is_ready;
	bool has_ended;
	bool is_shown;
	struct error err;
	char *notices[NOTICES_MAX];
	size_t notice_count;
};

static struct cell_record pinned;

static void on_ready(void *data)
{
	((struct cell_record *)data)->is_ready = true;
}

static void on_ended(void *data, const struct error *err)
{
	struct cell_record *record = data;
	record->has_ended = true;
	record->err = *err;
}

static void on_notice(void *data, const char *text)
{
	struct cell_record *record = data;
	assert_true(record->notice_count < NOTICES_MAX);
	record->notices[record->notice_count++] = mem_strdup(text);
}

static const struct cell_listener cell_listener = {
	.on_ready = on_ready, .on_ended = on_ended, .on_notice = on_notice};

static void on_shown(void *data, const struct error *err)
{
	struct cell_record *record = data;
	record->is_shown = true;
	if (err) {
		record->err = *err;
	}
}

static void turn_once(void)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &tick);
}

static void turn_until(const bool *is_so)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!*is_so && clock_now_ms() < deadline_ms) {
		turn_once();
	}
	assert_true(*is_so);
}

static const struct {
	enum cell_rule rule;
	const char *path;
} shown[] = {
	{CELL_WRITE, "work"},
	{CELL_READ, "work/.envrc"},
	{CELL_READ, "work/.git"},
	{CELL_READ, "work/.vscode"},
	{CELL_WRITE, "work/packages"},
	{CELL_WRITE, "work/packages/app"},
	{CELL_READ, "work/packages/app/.envrc"},
	{CELL_READ, "work/.is-not-there"},
};

static void show_pinned(struct cell_record *record)
{
	static char paths[ARRAY_LENGTH(shown)][PATH_MAX];
	struct cell_entry list[ARRAY_LENGTH(shown)];
	for (size_t i = 0; i < ARRAY_LENGTH(shown); i++) {
		world_path(&world, shown[i].path, paths[i]);
		list[i] = (struct cell_entry){.rule = shown[i].rule, .path = paths[i]};
	}
	record->is_shown = false;
	assert_true(cell_show_pinned(
		record->cell, list, ARRAY_LENGTH(list), on_shown, record, &record->err));
	turn_until(&record->is_shown);
	assert_string_equal(record->err.text, "");
}

static void open_cell(void)
{
	char home[PATH_MAX], programs[PATH_MAX];
	struct error err;
	world_path(&world, "home", home);
	world_path(&world, "bin", programs);
	const struct cell_entry entries[] = {{.rule = CELL_READ, .path = programs}};
	const struct cell_plan plan = {.user = "attacked",
		.home = home,
		.uid = world.uid,
		.gid = world.gid,
		.entries = entries,
		.entry_count = ARRAY_LENGTH(entries)};
	pinned = (struct cell_record){.cell = NULL};
	pinned.cell = cell_create(loop, machine, &plan, &cell_listener, &pinned, &err);
	assert_non_null(pinned.cell);
	while (!pinned.is_ready && !pinned.has_ended) {
		turn_once(); // its own deadline ends this
	}
	assert_string_equal(pinned.err.text, "");
	show_pinned(&pinned);
}

static void close_cell(void)
{
	cell_destroy(pinned.cell);
	for (size_t i = 0; i < pinned.notice_count; i++) {
		free(pinned.notices[i]);
	}
}

/* ---- running ---- */

static void set(char ***env, const char *name, const char *value)
{
	char text[PATH_MAX + 64];
	text_whole(text, sizeof(text), "%s=%s", name, value);
	words_append(env, text);
}

/* Starts the line; returns a descriptor that reads its output. */
static int start_line(struct record *record, struct spawner *where, const char *line)
{
	struct error err;
	const char *argv[] = {"sh", "-c", line, NULL};
	char **env = NULL;
	int fds[2];
	char work[PATH_MAX], home[PATH_MAX];
	world_path(&world, "work", work);
	world_path(&world, "home", home);
	set(&env, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
	set(&env, "HOME", home);
	set(&env, "WORK", work);
	assert_true(fd_pipe(fds, &err));
	const struct process_spec spec = {.argv = argv,
		.env = (const char *const *)env,
		.cwd = work,
		.in = -1,
		.out = fds[1],
		.err = fds[1]};
	record->process = process_start(where, &spec, &listener, record, &err);
	if (!record->process) {
		fail_msg("%s", err.text);
	}
	close(fds[1]);
	words_free(env);
	return fds[0];
}

static int run_line(struct spawner *where, const char *line, char text[OUTPUT_MAX])
{
	struct record record = {0};
	int out = start_line(&record, where, line);
	run_until(&record, "sxe");
	read_all(out, text, OUTPUT_MAX);
	process_destroy(record.process);
	return record.status.signal ? 128 + record.status.signal : record.status.code;
}

static void assert_runs(struct spawner *where, const char *line)
{
	char text[OUTPUT_MAX];
	if (run_line(where, line, text) != 0) {
		fail_msg("%s: %s", line, text);
	}
}

static void assert_fails(struct spawner *where, const char *line)
{
	char text[OUTPUT_MAX];
	if (run_line(where, line, text) == 0) {
		fail_msg("it succeeds: %s: %s", line, text);
	}
}

/* If the test is root, the files belong to the user. */
static void make_workspace(void)
{
	assert_runs(machine, "cd / && for f in \"$WORK\"/* \"$WORK\"/.[a-z]*; do rm -rf \"$f\"; "
			     "done; cd \"$WORK\" && "
			     "mkdir -p .git/hooks .vscode packages/app packages/other && "
			     "printf '[core]\\n\\tbare = false\\n' >.git/config && "
			     "for f in .envrc .vscode/tasks.json packages/app/.envrc file "
			     ".git/hooks/post-commit; do "
			     "echo mine >$f; done && chown -R --reference=. . ");
}

static bool has_evil(void)
{
	char text[OUTPUT_MAX];
	return run_line(machine,
		       "cat .envrc .git/config .git/hooks/* .vscode/* packages/app/.envrc "
		       "2>/dev/null "
		       "| grep EVIL",
		       text) == 0;
}

/* ---- attacks ---- */

static const struct {
	const char *name;
	const char *script;
	bool may_lack; // an ordinary user may be unable to do it outside as well
} attacks[] = {
	{"writes a hook", "echo EVIL >.git/hooks/pre-commit", false},
	{"changes git's configuration", "echo EVIL >>.git/config", false},
	{"replaces git's configuration", "echo EVIL >.git/x && mv .git/x .git/config", false},
	{"moves the repository away", "mv .git .g; mkdir -p .git/hooks; echo EVIL >.git/hooks/x",
		false},
	{"removes the repository", "rm -rf .git; mkdir -p .git/hooks; echo EVIL >.git/hooks/x",
		false},
	{"writes a guarded file", "echo EVIL >>.envrc", false},
	{"replaces a guarded file", "echo EVIL >x && mv -f x .envrc", false},
	{"removes a guarded file", "rm -f .envrc; echo EVIL >.envrc", false},
	{"swaps a guarded file with a folder's", "mv .envrc old; echo EVIL >.envrc", false},
	{"writes through a hard link", "ln .envrc other && echo EVIL >other", false},
	{"writes a new file of a guarded folder", "echo EVIL >.vscode/settings.json", false},
	{"moves a parent of a guarded file",
		"mv packages p; mkdir -p packages/app; echo EVIL >packages/app/.envrc", false},
	{"moves the folder of a guarded file",
		"mv packages/app packages/a; mkdir -p packages/app; echo EVIL >packages/app/.envrc",
		false},
	{"puts a folder in a parent's place",
		"mkdir -p n/app; echo EVIL >n/app/.envrc; mv -T packages p; mv -T n packages",
		false},
	{"puts a link in a parent's place",
		"mkdir -p n/app; echo EVIL >n/app/.envrc; rm -rf packages; ln -s n packages",
		false},
	{"unmounts the pins in a namespace of its own",
		"unshare -Urm sh -c 'umount -l .envrc .git 2>/dev/null; echo "
		"EVIL >>.envrc; "
		"echo EVIL >.git/hooks/x'",
		true},
	{"mounts the pins writable",
		"unshare -Urm sh -c 'mount -o remount,bind,rw .git "
		"2>/dev/null; "
		"mount -o remount,bind,rw .envrc 2>/dev/null; echo EVIL >>.envrc; "
		"echo EVIL >.git/hooks/x'",
		true},
	{"mounts the folder without its pins",
		"mkdir m; unshare -Urm sh -c 'mount --bind . m && echo EVIL "
		">>m/.envrc && "
		"echo EVIL >m/.git/hooks/x'",
		true},
	{"mounts the folder with its pins elsewhere",
		"mkdir m; unshare -Urm sh -c 'mount --rbind . m && umount -l "
		"m/.envrc 2>/dev/null; "
		"echo EVIL >>m/.envrc; echo EVIL >m/.git/hooks/x'",
		true},
	{"lays another folder over it",
		"mkdir -p l w m; unshare -Urm sh -c 'mount -t overlay overlay "
		"-o userxattr,lowerdir=l,upperdir=packages,workdir=w m && "
		"rm m/app/.envrc; echo EVIL >m/app/.envrc'",
		true},
	{"writes through another process's root",
		"for p in 1 2 $PPID self; do echo EVIL >>/proc/$p/root$WORK/.envrc; done "
		"2>/dev/null",
		false},
	{"writes through another process's working folder",
		"for p in 1 2 $PPID self; do echo EVIL >>/proc/$p/cwd/.envrc; done 2>/dev/null",
		false},
};

static void test_attack(void **state)
{
	size_t i = (size_t)(uintptr_t)*state;
	char text[OUTPUT_MAX];
	make_workspace();
	run_line(machine, attacks[i].script, text);
	if (!has_evil()) {
		if (!attacks[i].may_lack) {
			fail_msg("it fails outside, too: %s", text);
		}
		print_message("not shown: it fails outside, too: %s", text);
		skip();
	}
	make_workspace();
	open_cell();
	run_line(cell_spawner(pinned.cell), attacks[i].script, text);
	bool is_done = has_evil();
	close_cell();
	if (is_done) {
		fail_msg("it succeeds in a cell: %s", text);
	}
}

/* ---- what remains possible ---- */

static void test_all_else_can_be_written(void **state)
{
	make_workspace();
	open_cell();
	struct spawner *inside = cell_spawner(pinned.cell);
	assert_runs(inside, "echo x >file && echo x >new && mv new newer && mkdir a && mv a b && "
			    "mv b/../newer b/n && rm -r b && echo x >packages/app/f && "
			    "mv packages/app/f packages/app/g");
	assert_runs(inside, "cat .envrc .git/config .vscode/tasks.json packages/app/.envrc");
	assert_runs(inside, "mv packages/app/g packages/other/g && test -f packages/other/g");
	assert_int_equal(pinned.notice_count, 0);
	close_cell();
}

/* Without a file there is no mount: the pin makes no missing file, here or there. */
static void test_what_is_missing_is_not_made(void **state)
{
	make_workspace();
	open_cell();
	assert_runs(machine, "test ! -e .is-not-there");
	close_cell();
}

static void test_a_second_showing_changes_nothing(void **state)
{
	make_workspace();
	open_cell();
	show_pinned(&pinned);
	assert_runs(cell_spawner(pinned.cell),
		"test \"$(grep -c \"$WORK \" /proc/self/mountinfo)\" = 1");
	close_cell();
}

/* ---- namespaces of its own ---- */

static void wait_for_notices(size_t count)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (pinned.notice_count < count && clock_now_ms() < deadline_ms) {
		turn_once();
	}
	assert_int_equal(pinned.notice_count, count);
}

/* The namespace holds the folder by its own bind mount, like a sandbox in the cell. */
static void test_a_later_pin_reaches_other_namespaces(void **state)
{
	static const char waiting[] =
		"mkdir -p m; unshare -Urm --propagation slave sh -c 'mount --rbind . m && "
		"mount --make-rslave / && mount --make-rshared m; : >ready; "
		"until test -e go; do sleep 0.01; done; "
		"echo EVIL >>.envrc; echo EVIL >>m/.envrc; echo EVIL >m/.git/hooks/x'";
	struct record record = {0};
	char text[OUTPUT_MAX];
	make_workspace();
	open_cell();
	int out = start_line(&record, cell_spawner(pinned.cell), waiting);
	assert_runs(machine, "until test -e ready; do sleep 0.01; done");
	assert_runs(machine, "echo other >n && mv n .envrc && mv .git .g && mkdir -p .git/hooks && "
			     "chown -R --reference=. .git .envrc");
	wait_for_notices(2);
	assert_runs(machine, ": >go");
	run_until(&record, "sxe");
	read_all(out, text, OUTPUT_MAX);
	process_destroy(record.process);
	bool is_done = has_evil();
	close_cell();
	if (is_done) {
		fail_msg("it succeeds in a namespace: %s", text);
	}
}

/* Some agents bring bubblewrap: it works in the cell, and has the pins. */
static void test_bubblewrap_works_and_has_the_pins(void **state)
{
	static const char bubble[] =
		"bwrap --ro-bind / / --bind \"$WORK\" \"$WORK\" --dev /dev --proc /proc "
		"--unshare-all --die-with-parent --chdir \"$WORK\" sh -c";
	char text[OUTPUT_MAX], line[1024];
	if (run_line(machine, "command -v bwrap", text) != 0) {
		print_message("not shown: bubblewrap is not installed\n");
		skip();
	}
	make_workspace();
	open_cell();
	struct spawner *inside = cell_spawner(pinned.cell);
	text_whole(line, sizeof(line), "%s 'echo x >file && cat .envrc .git/config'", bubble);
	assert_runs(inside, line);
	text_whole(line, sizeof(line),
		"%s 'echo EVIL >>.envrc; echo EVIL >.git/hooks/x; mv .git .g; "
		"mv packages p; mkdir -p packages/app; echo EVIL >packages/app/.envrc'",
		bubble);
	run_line(inside, line, text);
	bool is_done = has_evil();
	close_cell();
	if (is_done) {
		fail_msg("it succeeds in bubblewrap: %s", text);
	}
}

/* ---- what happens on this machine ---- */

/* git writes a new file and renames it: the pin on the folder still holds. */
static void test_a_folders_pin_holds_while_its_files_are_replaced(void **state)
{
	make_workspace();
	open_cell();
	for (int i = 0; i < 3; i++) {
		assert_runs(machine, "echo mine >.git/n && mv .git/n .git/config");
		assert_fails(cell_spawner(pinned.cell), "echo EVIL >>.git/config");
	}
	assert_int_equal(pinned.notice_count, 0);
	close_cell();
}

static void test_a_replaced_file_is_pinned_again_and_told(void **state)
{
	make_workspace();
	open_cell();
	assert_runs(machine, "echo other >n && mv n .envrc");
	wait_for_notices(1);
	assert_names(pinned.notices[0], "work/.envrc | changed");
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >>.envrc");
	assert_fails(cell_spawner(pinned.cell), "mv .envrc e");
	assert_runs(machine, "echo other >n && mv n .envrc");
	wait_for_notices(2);
	assert_names(pinned.notices[1], "work/.envrc | same");
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >>.envrc");
	close_cell();
}

static void test_a_replaced_repository_is_pinned_again_and_told(void **state)
{
	make_workspace();
	open_cell();
	assert_runs(machine, "mv .git .g && mkdir -p .git/hooks && chown -R --reference=. .git");
	wait_for_notices(1);
	assert_names(pinned.notices[0], "work/.git");
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >.git/hooks/x");
	assert_fails(cell_spawner(pinned.cell), "mv .git .g2");
	close_cell();
}

static void test_a_replaced_parent_and_its_file_are_pinned_again(void **state)
{
	make_workspace();
	open_cell();
	assert_runs(machine, "mv packages p && mkdir -p packages/app && "
			     "echo x >packages/app/.envrc && chown -R --reference=. packages");
	wait_for_notices(1);
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >packages/app/.envrc");
	assert_fails(cell_spawner(pinned.cell), "mv packages p2");
	assert_fails(cell_spawner(pinned.cell), "mv packages/app packages/a");
	close_cell();
}

/* Stops the cell's first process, which renews the pins, or continues it. */
static void signal_first_process(const char *name)
{
	char line[1024];
	text_whole(line, sizeof(line),
		"for s in /proc/[0-9]*/status; do "
		"p=$(awk '/^NSpid/ && NF == 3 && $3 == 1 {print $2}' $s 2>/dev/null); q=$p; "
		"while test \"${q:-0}\" -gt 1 && test $q != %d; do "
		"q=$(awk '/^PPid/ {print $2}' /proc/$q/status 2>/dev/null); done; "
		"if test \"${q:-0}\" = %d; then kill -%s $p && exit; fi; done; exit 1",
		(int)getpid(), (int)getpid(), name);
	assert_runs(machine, line);
}

/* Even if the agent is faster than the first process. */
static void test_what_comes_in_a_removed_ones_place_is_pinned_and_told(void **state)
{
	make_workspace();
	open_cell();
	signal_first_process("STOP");
	assert_runs(machine, "rm .envrc");
	assert_runs(cell_spawner(pinned.cell), "echo EVIL >.envrc");
	signal_first_process("CONT");
	wait_for_notices(1);
	assert_names(pinned.notices[0], "work/.envrc | again");
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >>.envrc");
	close_cell();
}

/*
 * Above a workspace in the home lies the cell's own memory, in which the agent may move anything.
 */
static void test_a_pin_is_renewed_after_the_agent_moved_what_is_above(void **state)
{
	char folder[PATH_MAX], file[PATH_MAX];
	make_workspace();
	assert_runs(machine, "mkdir -p $HOME/above/work && echo mine >$HOME/above/work/.envrc && "
			     "chown -R --reference=$HOME $HOME/above");
	world_path(&world, "home/above/work", folder);
	world_path(&world, "home/above/work/.envrc", file);
	const struct cell_entry list[] = {
		{.rule = CELL_WRITE, .path = folder}, {.rule = CELL_READ, .path = file}};
	open_cell();
	pinned.is_shown = false;
	assert_true(cell_show_pinned(
		pinned.cell, list, ARRAY_LENGTH(list), on_shown, &pinned, &pinned.err));
	turn_until(&pinned.is_shown);
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >>$HOME/above/work/.envrc");
	assert_runs(
		cell_spawner(pinned.cell), "mv $HOME/above $HOME/x && mkdir -p $HOME/above/work");
	assert_runs(machine, "cd $HOME/above/work && echo other >n && mv n .envrc && "
			     "chown --reference=$HOME .envrc");
	wait_for_notices(1);
	assert_names(pinned.notices[0], "above/work/.envrc");
	assert_fails(cell_spawner(pinned.cell), "echo EVIL >>$HOME/x/work/.envrc");
	close_cell();
}

/* ---- main ---- */

static int set_up(void **state)
{
	set_up_loop();
	machine = spawner;
	return 0;
}

static int tear_down(void **state)
{
	world_leave(&world);
	return tear_down_loop();
}

static int run_suite(void)
{
	static const struct CMUnitTest facts[] = {
		cmocka_unit_test(test_all_else_can_be_written),
		cmocka_unit_test(test_what_is_missing_is_not_made),
		cmocka_unit_test(test_a_second_showing_changes_nothing),
		cmocka_unit_test(test_a_later_pin_reaches_other_namespaces),
		cmocka_unit_test(test_bubblewrap_works_and_has_the_pins),
		cmocka_unit_test(test_a_folders_pin_holds_while_its_files_are_replaced),
		cmocka_unit_test(test_a_replaced_file_is_pinned_again_and_told),
		cmocka_unit_test(test_a_replaced_repository_is_pinned_again_and_told),
		cmocka_unit_test(test_a_replaced_parent_and_its_file_are_pinned_again),
		cmocka_unit_test(test_what_comes_in_a_removed_ones_place_is_pinned_and_told),
		cmocka_unit_test(test_a_pin_is_renewed_after_the_agent_moved_what_is_above),
	};
	struct CMUnitTest tests[ARRAY_LENGTH(attacks) + ARRAY_LENGTH(facts)];
	for (size_t i = 0; i < ARRAY_LENGTH(attacks); i++) {
		tests[i] = (struct CMUnitTest){.name = attacks[i].name,
			.test_func = test_attack,
			.initial_state = (void *)(uintptr_t)i};
	}
	memcpy(tests + ARRAY_LENGTH(attacks), facts, sizeof(facts));
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}

int main(int argc, char **argv)
{
	if (cell_is_asked(argc, argv)) {
		cell_run();
	}
	return world_main(&world, argc == 2 && strcmp(argv[1], "user") == 0, run_suite);
}
