/* SPDX-License-Identifier: MIT */
#include "tests/unit/process_record.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/cell/cell.h"
#include "providers/local/cell/inside.h"
#include "providers/local/net/relay.h"
#include "tests/attack/attacks.h"
#include "tests/attack/cell_record.h"
#include "tests/attack/linked_homes.h"
#include "tests/attack/named_network.h"
#include "tests/attack/tricks.h"
#include "tests/attack/world.h"
#include "tests/support/facts.h"

enum { OUTPUT_MAX = 4096, BOMB_SIZE = 40 };

static struct world world;
static struct record victim;
static struct spawner *machine; // outside of every cell

/* ---- a cell ---- */

enum reach { REACH_NONE, REACH_MACHINE, REACH_NAMED };

static void start_cell(struct cell_record *record, const struct cell_entry *entries, size_t count,
	enum reach reach)
{
	char home[PATH_MAX], name[PATH_MAX];
	struct error err;
	world_path(&world, "home", home);
	text_whole(name, sizeof(name), "%s.home", world.temporary); // a link may have been there
	const struct cell_plan plan = {.user = "attacked",
		.home = home,
		.home_name = name,
		.uid = world.uid,
		.gid = world.gid,
		.has_network = reach == REACH_MACHINE,
		.has_ports = reach == REACH_NAMED,
		.entries = entries,
		.entry_count = count};
	*record = (struct cell_record){.cell = NULL};
	record->cell = cell_create(loop, machine, &plan, &cell_listener, record, &err);
	assert_non_null(record->cell);
}

static void make_cell(struct cell_record *record, enum reach reach)
{
	char state[PATH_MAX], work[PATH_MAX], config[PATH_MAX], tools[PATH_MAX];
	char programs[PATH_MAX], sessions[PATH_MAX], kept[PATH_MAX], login[PATH_MAX];
	world_path(&world, "state", state);
	world_path(&world, "home/.claude/projects", sessions);
	world_path(&world, "home/.claude/.credentials.json", login);
	world_path(&world, "kept", kept);
	world_path(&world, "work", work);
	world_path(&world, "home/.gitconfig", config);
	world_path(&world, "home/.cargo", tools);
	world_path(&world, "bin", programs);
	const struct cell_entry entries[] = {{.rule = CELL_HIDE, .path = state},
		{.rule = CELL_READ, .path = config}, {.rule = CELL_READ, .path = tools},
		{.rule = CELL_READ, .path = programs},
		{.rule = CELL_READ, .path = "/opt/is-not-there"},
		{.rule = CELL_PUT, .path = login, .source = "{\"key\":\"LOGIN\"}"},
		{.rule = CELL_KEEP, .path = sessions, .source = kept},
		{.rule = CELL_WRITE, .path = work}};
	start_cell(record, entries, ARRAY_LENGTH(entries), reach);
}

static void open_cell(struct cell_record *record, enum reach reach)
{
	make_cell(record, reach);
	wait_for_cell(record);
	assert_string_equal(record->err.text, "");
	assert_true(record->is_ready);
}

/* ---- running ---- */

/* Its exit status; its output, stderr too, in text. */
static int run_words(struct spawner *where, const char *const *argv, char text[OUTPUT_MAX])
{
	struct record record = {0};
	struct error err;
	char **env = attack_environment(&world, victim.pid);
	int fds[2];
	char work[PATH_MAX];
	world_path(&world, "work", work);
	assert_true(fd_pipe(fds, &err));
	const struct process_spec spec = {.argv = argv,
		.env = (const char *const *)env,
		.cwd = work,
		.in = -1,
		.out = fds[1],
		.err = fds[1]};
	record.process = process_start(where, &spec, &listener, &record, &err);
	if (!record.process) {
		fail_msg("%s", err.text);
	}
	close(fds[1]);
	words_free(env);
	run_until(&record, "sxe");
	read_all(fds[0], text, OUTPUT_MAX);
	process_destroy(record.process);
	return record.status.signal ? 128 + record.status.signal : record.status.code;
}

static int run_line(struct spawner *where, const char *line, char text[OUTPUT_MAX])
{
	return run_words(where, (const char *[]){"sh", "-c", line, NULL}, text);
}

/* Who starts it executes its own program, whose file its /proc/self/exe is then. */
static int run_own(struct spawner *where, const char *trick, const char *argument, char *text)
{
	const char *argv[] = {"/proc/self/exe", "--trick", trick, argument, NULL};
	return run_words(where, argv, text);
}

/* ---- the attacks ---- */

static struct cell_record closed; // has no network

/* A cell with network = allow, if this kernel supports it. */
static struct cell_record named;
static struct named_network network;

static bool succeeds(struct spawner *where, const struct attack *attack, char text[OUTPUT_MAX])
{
	world_restore(&world);
	int status = attack->script ? run_line(where, attack->script, text)
	                            : run_own(where, "program", world.own, text);
	/* A write that went to a file of the cell's own has spoiled nothing. */
	bool is_done = attack->spoiled ? world_has_evil(&world, attack->spoiled) : status == 0;
	world_restore(&world);
	return is_done;
}

/* Whether it attacks something to which network = allow may have a way. */
static bool is_of_network(const struct attack *attack)
{
	const char *script = attack->script ? attack->script : "";
	return strstr(script, "$PORT") || strstr(script, "$NAMES");
}

static void test_attack(void **state)
{
	const struct attack *attack = *state;
	char text[OUTPUT_MAX];
	if (!succeeds(machine, attack, text)) {
		if (!attack->may_lack) {
			fail_msg("it fails outside, too: %s", text);
		}
		print_message("not shown: it fails outside, too: %s", text);
		skip();
	}
	if (succeeds(cell_spawner(closed.cell), attack, text)) {
		fail_msg("it succeeds in a cell: %s", text);
	}
	if (is_of_network(attack) && named.is_ready &&
		succeeds(cell_spawner(named.cell), attack, text)) {
		fail_msg("it succeeds in a cell with network = allow: %s", text);
	}
}

/* ---- what a cell is ---- */

static void assert_inside(struct spawner *where, const char *line)
{
	char text[OUTPUT_MAX];
	if (run_line(where, line, text) != 0) {
		fail_msg("%s: %s", line, text);
	}
}

static void test_cell_shows_what_the_plan_says(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	assert_inside(inside, "grep SECRET \"$HOME/.gitconfig\"");
	assert_inside(inside, "grep SECRET \"$HOME/.cargo/bin/cargo\"");
	assert_inside(inside, "test \"$(ls -A \"$STATE\")\" = ''");
	assert_inside(inside, "echo ok >\"$WORK/made\" && rm \"$WORK/made\"");
	assert_inside(inside, "test \"$(id -un)\" = attacked");
	assert_inside(inside, "test \"$(id -u)\" -ne 0");
	assert_inside(inside, "test \"$(getent passwd attacked | cut -d: -f6)\" = \"$HOME\"");
}

/* Programs replace such a file by renaming another one to its name. */
static void test_an_agents_files_are_the_cells_own(void **state)
{
	struct cell_record record;
	open_cell(&record, REACH_NONE);
	struct spawner *inside = cell_spawner(record.cell);
	char kept[PATH_MAX];
	char text[8] = "";
	assert_inside(inside, "grep LOGIN \"$HOME/.claude/.credentials.json\" && "
			      "test \"$(stat -c %a \"$HOME/.claude/.credentials.json\")\" = 600");
	assert_inside(inside, "cd \"$HOME/.claude\" && cp .credentials.json new && "
			      "mv new .credentials.json && grep LOGIN .credentials.json");
	assert_inside(inside, "echo x >\"$HOME/.claude/new.json\"");
	assert_inside(inside, "echo session >\"$HOME/.claude/projects/one\"");
	world_path(&world, "kept/one", kept);
	ATTR_CLEANUP(fd_cleanup) int fd = open(kept, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text));
	assert_memory_equal(text, "session\n", sizeof(text));
	cell_destroy(record.cell);
	/* The folder stays for the next cell, but that file is again what the plan says. */
	open_cell(&record, REACH_NONE);
	inside = cell_spawner(record.cell);
	assert_inside(inside, "grep session \"$HOME/.claude/projects/one\"");
	assert_inside(inside, "test \"$(cat \"$HOME/.claude/.credentials.json\")\" = "
			      "'{\"key\":\"LOGIN\"}'");
	assert_inside(inside, "test ! -e \"$HOME/.claude/new.json\"");
	cell_destroy(record.cell);
}

static void test_the_home_has_its_other_name(void **state)
{
	assert_inside(cell_spawner(closed.cell),
		"grep SECRET \"$TEMPORARY.home/.gitconfig\" && cd \"$TEMPORARY.home\" && "
		"test \"$(pwd -P)\" = \"$HOME\"");
}

static void test_cell_has_folders_of_its_own(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	assert_inside(inside, "for f in \"$HOME\" /tmp /var/tmp /dev/shm /run; do "
			      "echo x >$f/own && rm $f/own || exit 1; done");
	assert_inside(inside, "for f in /home /root /dev \"$STATE\" /etc /usr /opt; do "
			      "! echo x >$f/own || exit 1; done 2>/dev/null");
	assert_inside(inside, "echo x >/dev/null && head -c 1 /dev/zero /dev/urandom >/dev/null");
	assert_inside(inside, "test ! -e /dev/mem && test ! -e /dev/kmsg && test ! -e /dev/fuse");
	assert_inside(inside, "test \"$(ls /proc | grep -c '^[0-9]')\" -lt 12");
}

static void test_cell_has_no_capability_and_no_new_privileges(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	assert_inside(inside, "grep -q '^NoNewPrivs:\t1$' /proc/self/status");
	assert_inside(inside, "! grep '^Cap' /proc/self/status | grep -v ':\t0*$'");
	assert_inside(inside, "grep -q '^Seccomp:\t2$' /proc/self/status");
}

static void test_agents_keep_the_sockets_they_need(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	char line[64];
	text_whole(line, sizeof(line), "$TRICK needed %d && $TRICK needed %d", AF_UNIX, AF_NETLINK);
	assert_inside(inside, line);
	assert_inside(inside, "unshare -Urm true");
}

/* The first process has control of the whole cell. */
static void test_cells_own_processes_are_out_of_reach(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	assert_inside(inside, "test \"$(cat /proc/1/comm)\" = acp-guard");
	assert_inside(inside, "! ls /proc/1/root/ /proc/1/fd/ 2>/dev/null | grep .");
	assert_inside(inside, "! cat /proc/1/exe /proc/2/exe 2>/dev/null | head -c 1 | grep -q .");
	assert_inside(inside, "! $TRICK ptrace 1 2>/dev/null && ! $TRICK ptrace $PPID 2>/dev/null");
	assert_inside(inside, "! cat /proc/$PPID/environ 2>/dev/null | grep -q .");
}

static void test_the_program_of_the_cells_own_processes_is_not_changed(void **state)
{
	char text[OUTPUT_MAX];
	assert_inside(machine, "cp \"$HOME/.bashrc\" \"$WORK/made\" && "
			       "$TRICK overwrite \"$WORK/made\" && rm \"$WORK/made\"");
	int status = run_own(cell_spawner(closed.cell), "overwrite", "-", text);
	assert_int_equal(status, TRICK_REFUSED);
}

static void test_only_three_descriptors_go_in(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	assert_inside(inside, "test \"$(ls /proc/self/fd | wc -l)\" -le 4");
	assert_inside(inside, "for n in 0 1 2; do readlink /proc/self/fd/$n; done | "
			      "grep -v '^pipe:' | grep -v '^/dev/null$'; test $? = 1");
}

static void assert_refused(struct spawner *where, int fd, bool foreground)
{
	struct record record = {0};
	struct error err = {0};
	const char *argv[] = {"true", NULL};
	const struct process_spec spec = {.argv = argv,
		.env = plain_env,
		.cwd = "/",
		.in = -1,
		.out = fd,
		.err = -1,
		.foreground = foreground};
	assert_null(process_start(where, &spec, &listener, &record, &err));
	assert_names(err.text, "true | confined");
}

static void test_files_folders_and_terminals_do_not_go_in(void **state)
{
	char path[PATH_MAX];
	world_path(&world, "public/log", path);
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(file >= 0 && folder >= 0 && terminal >= 0);
	assert_refused(cell_spawner(closed.cell), file, false);
	assert_refused(cell_spawner(closed.cell), folder, false);
	assert_refused(cell_spawner(closed.cell), terminal, false);
	assert_refused(cell_spawner(closed.cell), -1, true);
	close(file);
	close(folder);
	close(terminal);
	unlink(path);
}

static void show(struct cell_record *record, const char *path)
{
	struct error err;
	int before = record->shown;
	assert_true(cell_show(record->cell, path, on_shown, record, &err));
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (record->shown == before && clock_now_ms() < deadline_ms) {
		run_for(1);
	}
}

static void test_a_folder_is_shown_later(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	char path[PATH_MAX];
	world_path(&world, "state/shown", path);
	assert_inside(inside, "test ! -e \"$STATE/shown\"");
	show(&closed, path);
	assert_int_equal(closed.shown, 1);
	assert_inside(inside, "echo EVIL >\"$STATE/shown/file\" && test ! -e \"$STATE/records\"");
	assert_true(world_has_evil(&world, "state/shown/file"));
	show(&closed, path);
	assert_int_equal(closed.shown, 2);
	assert_inside(inside, "test \"$(grep -c /state/shown /proc/self/mountinfo)\" = 1");
	assert_inside(inside, "! mv \"$STATE/shown\" \"$STATE/other\" 2>/dev/null");
	assert_inside(inside, "! rmdir \"$STATE/shown\" 2>/dev/null");
}

/* Processes in the cell choose no place for a mount, neither on this machine nor in the cell. */
static void test_a_folder_is_shown_through_no_link(void **state)
{
	struct cell_record record;
	char path[PATH_MAX];
	open_cell(&record, REACH_NONE);
	assert_inside(cell_spawner(record.cell), "ln -s /etc \"$HOME/project\"");
	world_path(&world, "home/project/.git", path);
	show(&record, path);
	assert_int_equal(record.shown, -1);
	assert_names(record.err.text, path);
	cell_destroy(record.cell);
}

/* A link on this machine has the name of a folder in the cell. */
static void test_a_folder_is_taken_through_no_link(void **state)
{
	struct cell_record record;
	char link[PATH_MAX], path[PATH_MAX];
	open_cell(&record, REACH_NONE);
	world_path(&world, "home/link", link);
	world_path(&world, "home/link/.ssh", path);
	assert_int_equal(symlink(".", link), 0);
	assert_inside(cell_spawner(record.cell), "mkdir -p \"$HOME/link/.ssh\"");
	show(&record, path);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(record.shown, -1);
	assert_names(record.err.text, path);
	assert_inside(cell_spawner(record.cell), "! test -e \"$HOME/link/.ssh/id_ed25519\"");
	cell_destroy(record.cell);
}

static void assert_no_cell(
	const struct cell_entry *entries, size_t count, enum error_code code, const char *facts)
{
	struct cell_record record;
	start_cell(&record, entries, count, REACH_NONE);
	wait_for_cell(&record);
	assert_false(record.is_ready);
	assert_int_equal(record.err.code, code);
	assert_names(record.err.text, facts);
	cell_destroy(record.cell);
}

/* An agent of an earlier cell has made the link in a place where it may write. */
static void test_what_is_writable_leads_nowhere(void **state)
{
	char work[PATH_MAX], link[PATH_MAX], hidden[PATH_MAX];
	char text[OUTPUT_MAX];
	world_path(&world, "work", work);
	world_path(&world, "work/link", link);
	world_path(&world, "work/not/there", hidden);
	assert_int_equal(run_line(machine, "ln -s \"$HOME\" \"$WORK/link\"", text), 0);
	const struct cell_entry inner[] = {
		{.rule = CELL_WRITE, .path = work}, {.rule = CELL_WRITE, .path = link}};
	assert_no_cell(inner, ARRAY_LENGTH(inner), ERROR_CONFIG, link);
	assert_no_cell(inner + 1, 1, ERROR_SYSTEM, link);
	/* To hide it, the cell would have to make it on this machine's disk. */
	const struct cell_entry hiding[] = {
		{.rule = CELL_WRITE, .path = work}, {.rule = CELL_HIDE, .path = hidden}};
	assert_no_cell(hiding, ARRAY_LENGTH(hiding), ERROR_CONFIG, hidden);
	assert_int_equal(run_line(machine, "test ! -e \"$WORK/not\"", text), 0);
	world_restore(&world);
}

/* A cell has a /tmp of its own, so these tests would show nothing there. */
static void need_world_outside_of_tmp(void)
{
	if (strncmp(world.folder, "/tmp/", 5) == 0) {
		print_message("not shown: /opt and /srv cannot be written\n");
		skip();
	}
}

static void test_a_file_is_hidden(void **state)
{
	struct cell_record record;
	char path[PATH_MAX];
	need_world_outside_of_tmp();
	world_path(&world, "state/records/one", path);
	const struct cell_entry entry = {.rule = CELL_HIDE, .path = path};
	start_cell(&record, &entry, 1, REACH_NONE);
	wait_for_cell(&record);
	assert_string_equal(record.err.text, "");
	assert_inside(cell_spawner(record.cell),
		"test -f \"$STATE/records/one\" && ! test -s \"$STATE/records/one\" && "
		"! echo x >\"$STATE/records/one\"");
	cell_destroy(record.cell);
}

static void test_open_network_is_this_machines(void **state)
{
	struct cell_record record;
	open_cell(&record, REACH_MACHINE);
	assert_inside(cell_spawner(record.cell), "$TRICK loopback $PORT");
	cell_destroy(record.cell);
}

static void test_abstract_sockets_are_kept_apart_or_told(void **state)
{
	struct cell_record record;
	struct error err;
	char text[OUTPUT_MAX];
	open_cell(&record, REACH_MACHINE);
	static const char *const lines[] = {"$TRICK abstract $ABSTRACT",
		"$TRICK datagram $ABSTRACT.datagrams", "unshare -Ur $TRICK abstract $ABSTRACT",
		"unshare -Urm $TRICK datagram $ABSTRACT.datagrams"};
	bool keeps = cell_keeps_abstract_sockets(record.cell, &err);
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		assert_int_equal(run_line(cell_spawner(record.cell), lines[i], text) != 0, keeps);
	}
	assert_true(cell_keeps_abstract_sockets(closed.cell, &err));
	cell_destroy(record.cell);
}

static void test_a_socket_with_a_relative_name_is_hidden(void **state)
{
	struct cell_record record;
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "named"};
	char folder[PATH_MAX], text[OUTPUT_MAX];
	static const char line[] = "$TRICK socket \"$PUBLIC/../relative/named\"";
	world_path(&world, "relative", folder);
	assert_int_equal(chdir(folder), 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	open_cell(&record, REACH_MACHINE);
	assert_inside(machine, line);
	assert_int_not_equal(run_line(cell_spawner(record.cell), line, text), 0);
	cell_destroy(record.cell);
	assert_int_equal(chdir("/"), 0);
	close(fd);
}

/*
 * One socket is in a folder that every cell has for itself, the other in a folder of this
 * machine's.
 */
static void test_an_allowed_socket_can_be_used_and_no_other(void **state)
{
	struct cell_record record;
	char allowed[PATH_MAX], temporary[PATH_MAX], text[OUTPUT_MAX];
	need_world_outside_of_tmp();
	world_path(&world, "sock/host", allowed);
	text_whole(temporary, sizeof(temporary), "%s.sock", world.temporary);
	char program[PATH_MAX];
	world_path(&world, "bin", program);
	const struct cell_entry entries[] = {{.rule = CELL_READ, .path = allowed},
		{.rule = CELL_READ, .path = temporary}, {.rule = CELL_READ, .path = program}};
	start_cell(&record, entries, ARRAY_LENGTH(entries), REACH_NONE);
	wait_for_cell(&record);
	assert_string_equal(record.err.text, "");
	struct spawner *inside = cell_spawner(record.cell);
	assert_inside(inside, "$TRICK socket \"$PUBLIC/../sock/host\"");
	assert_inside(inside, "$TRICK socket \"$TEMPORARY.sock\"");
	assert_int_not_equal(run_line(inside, "$TRICK socket \"$PUBLIC/../renamed/new\"", text), 0);
	assert_int_not_equal(run_line(inside, "ls \"$TEMPORARY\"", text), 0);
	cell_destroy(record.cell);
}

static void test_homes_are_hidden_where_home_is_a_link(void **state)
{
	char folder[PATH_MAX];
	world_path(&world, "public", folder);
	int status = linked_homes(folder);
	if (status == LINKED_HOMES_UNKNOWN) {
		print_message("not shown: no namespace for another root folder can be made\n");
		skip();
	}
	assert_int_equal(status, LINKED_HOMES_HIDDEN);
}

/* A shown folder stays visible although there is a socket in it. */
static void test_a_folder_with_a_socket_stays_if_it_is_shown(void **state)
{
	assert_inside(cell_spawner(closed.cell),
		"echo x >\"$WORK/.git/file\" && rm \"$WORK/.git/file\" && "
		"test -f \"$WORK/.git/host\"");
}

/* Some agents bring a sandbox. */
static void test_a_sandbox_in_a_cell_can_be_made(void **state)
{
	struct spawner *inside = cell_spawner(closed.cell);
	char text[OUTPUT_MAX];
	assert_inside(inside, "unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs none /mnt && "
			      "mount --rbind \"$WORK\" /mnt && test -d /mnt/.git'");
	if (run_line(machine, "command -v bwrap", text) != 0) {
		print_message("not shown: bubblewrap is not installed\n");
		skip();
	}
	assert_inside(inside, "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all true");
}

static void test_an_allowed_network_has_names_and_no_more(void **state)
{
	if (!named.is_ready) {
		print_message("not shown: %s\n", named.err.text);
		skip();
	}
	struct spawner *inside = cell_spawner(named.cell);
	assert_inside(inside, "getent ahostsv4 other.example | grep '^198[.]1[89][.]'");
	assert_inside(inside, "test \"$(cat /etc/resolv.conf)\" = \"$(printf '%s\\n%s' "
			      "'nameserver 198.18.0.1' 'options ndots:1')\"");
	assert_inside(inside, "! echo x >>/etc/resolv.conf && ! echo x >>/etc/hosts");
	assert_inside(
		inside, "! ip route flush table all && ! unshare -Ur ip route flush table all");
	assert_inside(inside, "test \"$(ls /proc/sys/net/ipv4/conf | grep -v "
			      "-e all -e default)\" = lo");
}

static void test_closed_network_has_a_loopback(void **state)
{
	assert_inside(cell_spawner(closed.cell),
		"python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
		"socket.create_connection(s.getsockname())'");
	assert_inside(cell_spawner(closed.cell), "test \"$(ls /proc/sys/net/ipv4/conf | grep -v "
						 "-e all -e default)\" = lo");
}

/* A file that is larger than its file system is refused before it takes any memory. */
static void test_what_is_in_memory_has_less_than_the_machines_together(void **state)
{
	static const char script[] =
		"total=0 inodes=0; for d in /tmp /var/tmp /dev/shm /run \"$HOME\"; do "
		"set -- $(stat -f -c '%b %S %c' $d); "
		"total=$((total + $1 * $2 / 1024)) inodes=$((inodes + $3)); "
		"fallocate -l $(($1 * $2 + 4096)) $d/x 2>&1 | grep -q 'No space' || echo $d; done; "
		"[ $total -lt $(awk '/^MemTotal/ {print $2}' /proc/meminfo) ] && echo $inodes";
	struct cell_record record;
	char text[OUTPUT_MAX];
	open_cell(&record, false);
	assert_int_equal(run_line(cell_spawner(record.cell), script, text), 0);
	assert_in_range(strtol(text, NULL, 10), 1, 1 << 20); // a folder's name: 0
	cell_destroy(record.cell);
}

/* ---- the end ---- */

/* Nobody waits for these processes, and each has a session and a group of its own. */
static void test_a_fork_bomb_ends_with_the_cell(void **state)
{
	struct cell_record record;
	struct record bomb = {0};
	struct error err;
	char line[64];
	char byte[4];
	int fds[2];
	open_cell(&record, REACH_NONE);
	text_whole(line, sizeof(line), "exec $TRICK bomb %d", BOMB_SIZE);
	const char *argv[] = {"sh", "-c", line, NULL};
	char **env = attack_environment(&world, victim.pid);
	assert_true(fd_pipe(fds, &err));
	const struct process_spec spec = {.argv = argv,
		.env = (const char *const *)env,
		.cwd = "/",
		.in = -1,
		.out = fds[1],
		.err = -1};
	bomb.process = process_start(cell_spawner(record.cell), &spec, &listener, &bomb, &err);
	assert_non_null(bomb.process);
	close(fds[1]);
	words_free(env);
	run_until(&bomb, "sx");
	assert_int_equal(read(fds[0], byte, 3), 3);
	process_destroy(bomb.process);
	cell_destroy(record.cell);
	assert_int_equal(read(fds[0], byte, 1), 0); // they all held the other end
	close(fds[0]);
}

static void test_who_kills_everything_ends_its_own_cell(void **state)
{
	struct cell_record record;
	struct record killer = {0};
	struct error err;
	int fds[2];
	const char *argv[] = {"sh", "-c", "read word; kill -STOP -1; kill -KILL -1", NULL};
	open_cell(&record, REACH_NONE);
	assert_true(fd_pipe(fds, &err));
	const struct process_spec spec = {
		.argv = argv, .env = plain_env, .cwd = "/", .in = fds[0], .out = -1, .err = -1};
	killer.process = process_start(cell_spawner(record.cell), &spec, &listener, &killer, &err);
	assert_non_null(killer.process);
	close(fds[0]);
	run_until(&killer, "s");
	assert_int_equal(write(fds[1], "now\n", 4), 4);
	close(fds[1]);
	turn_until(&record.has_ended);
	run_until(&killer, "sxe");
	assert_null(process_start(cell_spawner(record.cell), &spec, &listener, &killer, &err));
	process_destroy(killer.process);
	cell_destroy(record.cell);
}

static void test_nothing_that_is_root_is_confined(void **state)
{
	struct cell_record record = {0};
	struct error err;
	const struct cell_plan plan = {.user = "root", .home = "/root"};
	record.cell = cell_create(loop, machine, &plan, &cell_listener, &record, &err);
	assert_non_null(record.cell);
	turn_until(&record.has_ended);
	assert_int_equal(record.err.code, ERROR_DENIED);
	assert_names(record.err.text, "root");
	cell_destroy(record.cell);
}

/* ---- main ---- */

static void open_named_cell(void)
{
	make_cell(&named, REACH_NAMED);
	wait_for_cell(&named);
	if (named.is_ready) {
		named_network_open(&network, loop, machine, named.cell);
		turn_until(&network.is_ready);
	}
}

static int set_up(void **state)
{
	char home[PATH_MAX];
	struct error err;
	const char *argv[] = {"sleep", "600", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", "TOKEN=SECRET", NULL};
	set_up_loop();
	machine = spawner;
	world_path(&world, "home", home);
	const struct process_spec spec = {
		.argv = argv, .env = env, .cwd = home, .in = -1, .out = -1, .err = -1};
	victim.process = process_start(spawner, &spec, &listener, &victim, &err);
	assert_non_null(victim.process);
	run_until(&victim, "s");
	make_cell(&closed, REACH_NONE);
	wait_for_cell(&closed);
	if (!closed.is_ready) {
		print_error("no cell can be made here: %s\n", closed.err.text);
		return -1;
	}
	open_named_cell();
	return 0;
}

static int tear_down(void **state)
{
	cell_destroy(closed.cell);
	named_network_close(&network);
	cell_destroy(named.cell);
	process_destroy(victim.process);
	world_leave(&world);
	return tear_down_loop();
}

static int run_suite(void)
{
	static const struct CMUnitTest facts[] = {
		cmocka_unit_test(test_cell_shows_what_the_plan_says),
		cmocka_unit_test(test_an_agents_files_are_the_cells_own),
		cmocka_unit_test(test_the_home_has_its_other_name),
		cmocka_unit_test(test_cell_has_folders_of_its_own),
		cmocka_unit_test(test_cell_has_no_capability_and_no_new_privileges),
		cmocka_unit_test(test_agents_keep_the_sockets_they_need),
		cmocka_unit_test(test_cells_own_processes_are_out_of_reach),
		cmocka_unit_test(test_the_program_of_the_cells_own_processes_is_not_changed),
		cmocka_unit_test(test_only_three_descriptors_go_in),
		cmocka_unit_test(test_files_folders_and_terminals_do_not_go_in),
		cmocka_unit_test(test_a_folder_is_shown_later),
		cmocka_unit_test(test_a_folder_is_shown_through_no_link),
		cmocka_unit_test(test_a_folder_is_taken_through_no_link),
		cmocka_unit_test(test_what_is_writable_leads_nowhere),
		cmocka_unit_test(test_a_file_is_hidden),
		cmocka_unit_test(test_open_network_is_this_machines),
		cmocka_unit_test(test_abstract_sockets_are_kept_apart_or_told),
		cmocka_unit_test(test_a_socket_with_a_relative_name_is_hidden),
		cmocka_unit_test(test_an_allowed_socket_can_be_used_and_no_other),
		cmocka_unit_test(test_homes_are_hidden_where_home_is_a_link),
		cmocka_unit_test(test_a_folder_with_a_socket_stays_if_it_is_shown),
		cmocka_unit_test(test_a_sandbox_in_a_cell_can_be_made),
		cmocka_unit_test(test_closed_network_has_a_loopback),
		cmocka_unit_test(test_an_allowed_network_has_names_and_no_more),
		cmocka_unit_test(test_what_is_in_memory_has_less_than_the_machines_together),
		cmocka_unit_test(test_a_fork_bomb_ends_with_the_cell),
		cmocka_unit_test(test_who_kills_everything_ends_its_own_cell),
		cmocka_unit_test(test_nothing_that_is_root_is_confined),
	};
	enum { FACTS = ARRAY_LENGTH(facts) };
	size_t count = attack_count + FACTS;
	struct CMUnitTest *tests = mem_alloc_zero(count * sizeof(*tests));
	for (size_t i = 0; i < attack_count; i++) {
		tests[i] = (struct CMUnitTest){.name = attacks[i].name,
			.test_func = test_attack,
			.initial_state = (void *)&attacks[i]};
	}
	memcpy(tests + attack_count, facts, sizeof(facts));
	int status = run_with_spawner(tests, count, set_up, tear_down);
	free(tests);
	return status;
}

int main(int argc, char **argv)
{
	if (cell_is_asked(argc, argv)) {
		cell_run();
	}
	if (relay_is_asked(argc, argv)) {
		relay_run();
	}
	if (argc == 4 && strcmp(argv[1], "--trick") == 0) {
		return trick_run(argv[2], argv[3]);
	}
	return world_main(&world, argc == 2 && strcmp(argv[1], "user") == 0, run_suite);
}
