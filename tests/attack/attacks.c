/* SPDX-License-Identifier: MIT */
#include "tests/attack/attacks.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/attr.h"
#include "base/text.h"
#include "base/words.h"

const struct attack attacks[] = {
	/* ---- keys ---- */
	{"reads a private key", "grep SECRET \"$HOME/.ssh/id_ed25519\"", NULL, false},
	{"reads a cloud's credentials", "grep SECRET \"$HOME/.aws/credentials\"", NULL, false},
	{"reads the broker's configuration", "grep SECRET \"$HOME/.config/acp-broker/config\"",
		NULL, false},
	{"reads the broker's records", "grep SECRET \"$STATE/records/one\"", NULL, false},
	{"reads a file in /tmp", "grep SECRET \"$TEMPORARY\"", NULL, false},
	{"reads a key through another process's root",
		"for p in 1 $PPID $VICTIM self; do cat /proc/$p/root$HOME/.ssh/id_ed25519; done "
		"2>/dev/null | grep SECRET",
		NULL, false},
	{"reads a key through another process's working folder",
		"for p in $VICTIM 1 2 3 $PPID; do cat /proc/$p/cwd/.ssh/id_ed25519; done "
		"2>/dev/null | grep SECRET",
		NULL, false},
	{"reads another process's environment",
		"tr '\\0' '\\n' </proc/$VICTIM/environ | grep SECRET", NULL, false},
	{"reads a key after a hard link",
		"ln \"$HOME/.ssh/id_ed25519\" \"$WORK/link\" && "
		"grep SECRET \"$WORK/link\"",
		NULL, false},
	{"reads a key after an unmount",
		"umount -l \"$HOME\" 2>/dev/null; grep SECRET \"$HOME/.ssh/id_ed25519\"", NULL,
		false},
	{"reads a key after an unmount in a namespace of its own",
		"unshare -Urm sh -c 'umount -l \"$HOME\"; umount -l /proc; "
		"grep SECRET \"$HOME/.ssh/id_ed25519\"'",
		NULL, true},
	{"reads a key after mounting the root anew",
		"unshare -Urm sh -c 'mkdir -p \"$WORK/m\" && mount --rbind / \"$WORK/m\" && "
		"grep SECRET \"$WORK/m$HOME/.ssh/id_ed25519\"'",
		NULL, true},
	{"makes a cgroup",
		"for m in /sys/fs/cgroup /sys/fs/cgroup/unified; do "
		"g=$(mktemp -d $m/attack.XXXXXX) && rmdir $g && exit 0; done; false",
		NULL, true},
	{"reads a disk",
		"head -c 1 \"$(ls /dev/vda /dev/sda /dev/nvme0n1 2>/dev/null | head -n 1)\"", NULL,
		true},
	{"reads a disk by a node of its own",
		"n=$(cat /sys/class/block/*/dev | head -n 1) && rm -f \"$WORK/disk\" && "
		"mknod \"$WORK/disk\" b ${n%:*} ${n#*:} && head -c 1 \"$WORK/disk\"",
		NULL, true},

	/* ---- what runs later ---- */
	{"writes an rc file", "echo EVIL >>\"$HOME/.bashrc\"", "home/.bashrc", false},
	{"writes a new rc file", "echo EVIL >\"$HOME/.zshenv\"", "home/.zshenv", false},
	{"writes a git hook", "echo EVIL >\"$HOME/project/.git/hooks/pre-commit\"",
		"home/project/.git/hooks/pre-commit", false},
	{"writes git's configuration", "echo EVIL >>\"$HOME/.gitconfig\"", "home/.gitconfig",
		false},
	{"replaces git's configuration",
		"echo EVIL >\"$HOME/new\"; mv \"$HOME/new\" \"$HOME/.gitconfig\"",
		"home/.gitconfig", false},
	{"writes a tool chain's program", "echo EVIL >\"$HOME/.cargo/bin/cargo\"",
		"home/.cargo/bin/cargo", false},
	{"replaces a tool chain's program",
		"echo EVIL >\"$HOME/c\"; mv \"$HOME/c\" \"$HOME/.cargo/bin/cargo\"",
		"home/.cargo/bin/cargo", false},
	{"puts another program before git", "echo EVIL >\"$HOME/.cargo/bin/git\"",
		"home/.cargo/bin/git", false},

	/* ---- an agent's own files ---- */
	{"writes a hook of Claude Code's", "echo EVIL >\"$HOME/.claude/settings.json\"",
		"home/.claude/settings.json", false},
	{"writes a new hook of Claude Code's", "echo EVIL >\"$HOME/.claude/settings.local.json\"",
		"home/.claude/settings.local.json", false},
	{"writes a hook from the folder of the sessions",
		"echo EVIL >\"$HOME/.claude/projects/../settings.json\"",
		"home/.claude/settings.json", false},
	{"renames an MCP server of Claude Code's into place",
		"echo EVIL >\"$HOME/.claude.json.tmp\"; "
		"mv \"$HOME/.claude.json.tmp\" \"$HOME/.claude.json\"",
		"home/.claude.json", false},
	{"writes another login", "echo EVIL >\"$HOME/.claude/.credentials.json\"",
		"home/.claude/.credentials.json", false},
	{"writes an MCP server of codex's", "echo EVIL >>\"$HOME/.codex/config.toml\"",
		"home/.codex/config.toml", false},
	{"writes a hook of codex's", "echo EVIL >\"$HOME/.codex/hooks.json\"",
		"home/.codex/hooks.json", false},
	{"writes a package that npx executes", "echo EVIL >\"$HOME/.npm/_npx/1/package.json\"",
		"home/.npm/_npx/1/package.json", false},
	{"writes a new file beside it", "echo EVIL >\"$HOME/.npm/_npx/1/evil.js\"",
		"home/.npm/_npx/1/evil.js", false},
	{"executes what it has written beside its sessions",
		"printf '#!/bin/sh\\necho ran\\n' >\"$HOME/.claude/projects/program\" && "
		"chmod +x \"$HOME/.claude/projects/program\" && "
		"\"$HOME/.claude/projects/program\"",
		NULL, false},
	{"writes the broker's configuration", "echo EVIL >>\"$HOME/.config/acp-broker/config\"",
		"home/.config/acp-broker/config", false},
	{"replaces a parent of the broker's configuration",
		"mv \"$HOME/.config\" \"$HOME/.c\"; mkdir -p \"$HOME/.config/acp-broker\" && "
		"echo EVIL >\"$HOME/.config/acp-broker/config\"",
		"home/.config/acp-broker/config", false},
	{"writes the broker's records", "echo EVIL >>\"$STATE/records/one\"", "state/records/one",
		false},
	{"writes where anybody may", "echo EVIL >\"$PUBLIC/file\"", "public/file", false},
	{"writes there after mounting it writable",
		"unshare -Urm sh -c 'mount -o remount,bind,rw / 2>/dev/null; "
		"mount -o remount,bind,rw \"$PUBLIC\" 2>/dev/null; echo EVIL >\"$PUBLIC/file\"'",
		"public/file", false},
	{"writes a file in /tmp", "echo EVIL >>\"$TEMPORARY\"", "temporary", false},

	/* ---- processes ---- */
	{"signals a process outside", "kill -0 $VICTIM", NULL, false},
	{"traces a process outside", "$TRICK ptrace $VICTIM", NULL, true},
	{"reads a process's memory map outside", "cat /proc/$VICTIM/maps", NULL, true},

	/* ---- sockets ---- */
	{"connects to a socket in a folder of its own", "$TRICK socket \"$PUBLIC/../sock/host\"",
		NULL, false},
	{"connects to a socket beside what a cell shows", "$TRICK socket \"$WORK/.git/host\"", NULL,
		false},
	{"connects to a socket that was renamed", "$TRICK socket \"$PUBLIC/../renamed/new\"", NULL,
		false},
	{"connects to a renamed socket beside what a cell shows",
		"$TRICK socket \"$WORK/.git/new\"", NULL, false},
	{"connects to a socket in /tmp", "$TRICK socket \"$TEMPORARY.sock\"", NULL, false},
	{"connects to a socket through a process's root",
		"$TRICK socket /proc/$VICTIM/root\"$TEMPORARY.sock\"", NULL, false},
	{"connects to an abstract socket", "$TRICK abstract $ABSTRACT", NULL, false},

	{"connects to a socket in /run", "$TRICK socket \"$RUN/bound/sock\"", NULL, true},
	{"connects to a renamed socket in /run", "$TRICK socket \"$RUN/renamed/sock\"", NULL, true},
	{"connects to a socket in /var/run",
		"$TRICK socket \"/var$RUN/bound/sock\" || $TRICK socket \"/var$RUN/renamed/sock\"",
		NULL, true},
	{"connects to a socket in /run through a process's root",
		"for p in $VICTIM $PPID 1 2; do "
		"$TRICK socket /proc/$p/root\"$RUN/renamed/sock\" && exit 0; done; false",
		NULL, true},
	{"connects to a socket in /run through a process's working folder",
		"for p in $VICTIM $PPID 1 2; do for up in ../../../..$RUN ..$RUN .$RUN; do "
		"$TRICK socket /proc/$p/cwd/$up/renamed/sock && exit 0; done; done; false",
		NULL, true},
	{"connects to a socket in /run after an unmount in a namespace of its own",
		"unshare -Urm sh -c 'umount -l /run 2>/dev/null; "
		"$TRICK socket \"$RUN/renamed/sock\"'",
		NULL, true},
	{"lists a folder in /run", "ls \"$RUN\" | grep renamed", NULL, true},
	{"connects to an abstract socket by a namespace of its own",
		"unshare -Ur $TRICK abstract $ABSTRACT || unshare -Urm $TRICK abstract $ABSTRACT",
		NULL, true},
	{"sends to an abstract socket", "$TRICK datagram $ABSTRACT.datagrams", NULL, false},

	/* ---- the programs that start the agent's ---- */
	{"opens this machine's program as its own one", NULL, NULL, false},
	{"opens this machine's program through a process that has started it",
		"$TRICK program $OWN", NULL, false},

	/* ---- the network ---- */
	{"connects to this machine's loopback", "$TRICK loopback $PORT", NULL, false},
	{"connects to it by a namespace of its own",
		"unshare -Ur $TRICK loopback $PORT || unshare -Urm $TRICK loopback $PORT", NULL,
		true},
	{"connects to it by a name", "$TRICK named $PORT", NULL, false},
	{"asks a name server of this machine's", "$TRICK name $NAMES", NULL, false},
	{"has a way to another network", "$TRICK route 192.0.2.1", NULL, true},
	{"enters the network of a process outside",
		"nsenter --net=/proc/$VICTIM/ns/net $TRICK loopback $PORT", NULL, true},

	/* ---- the kernel ---- */
	{"puts a key into the user's keyring", "$TRICK keyring acp-attack", NULL, true},
	{"types into a terminal", "$TRICK typing -", NULL, true},
	{"uses io_uring", "$TRICK call $IO_URING_SETUP", NULL, true},
	{"uses bpf", "$TRICK call $BPF", NULL, true},
	{"uses perf", "$TRICK call $PERF_EVENT_OPEN", NULL, true},
	{"loads a module", "$TRICK call $INIT_MODULE", NULL, true},
	{"opens a packet socket", "$TRICK raw $AF_PACKET", NULL, true},
	{"opens a raw socket", "$TRICK raw $AF_INET", NULL, true},
	{"opens a raw socket in a namespace of its own", "unshare -Urn $TRICK raw $AF_INET", NULL,
		true},
	{"opens a packet socket in a namespace of its own", "unshare -Urn $TRICK raw $AF_PACKET",
		NULL, true},
	{"opens a socket to the hypervisor", "$TRICK vsock -", NULL, true},
	{"becomes another user", "unshare -Ur true && su -s /bin/sh nobody -c true", NULL, true},
};
const size_t attack_count = ARRAY_LENGTH(attacks);

/* ---- their environment ---- */

static void set(char ***env, const char *name, const char *value)
{
	char text[PATH_MAX + 64];
	text_whole(text, sizeof(text), "%s=%s", name, value);
	words_append(env, text);
}

static void set_number(char ***env, const char *name, long value)
{
	char text[32];
	text_whole(text, sizeof(text), "%ld", value);
	set(env, name, text);
}

static void set_path(char ***env, const struct world *world, const char *name, const char *path)
{
	char text[PATH_MAX];
	world_path(world, path, text);
	set(env, name, text);
}

char **attack_environment(const struct world *world, pid_t victim)
{
	char **env = NULL;
	char trick[PATH_MAX + 16];
	text_whole(trick, sizeof(trick), "%s --trick", world->program);
	set(&env, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
	set(&env, "TRICK", trick);
	set(&env, "TEMPORARY", world->temporary);
	set(&env, "ABSTRACT", world->temporary);
	set(&env, "RUN", world->run[0] ? world->run : "/is-not-there");
	set(&env, "OWN", world->own);
	set(&env, "PORT", world->port);
	set(&env, "NAMES", world->names);
	set_path(&env, world, "HOME", "home");
	set_path(&env, world, "STATE", "state");
	set_path(&env, world, "PUBLIC", "public");
	set_path(&env, world, "WORK", "work");
	set_number(&env, "VICTIM", victim);
	set_number(&env, "IO_URING_SETUP", SYS_io_uring_setup);
	set_number(&env, "BPF", SYS_bpf);
	set_number(&env, "PERF_EVENT_OPEN", SYS_perf_event_open);
	set_number(&env, "INIT_MODULE", SYS_init_module);
	set_number(&env, "AF_PACKET", AF_PACKET);
	set_number(&env, "AF_INET", AF_INET);
	return env;
}
