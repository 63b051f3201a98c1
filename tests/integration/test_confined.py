#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An agent in a cell: everything that it starts is there, too, and its copy is synced. As root the
whole test becomes another user, because no process of root can be confined.
"""

import errno
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import case
import processes

from acp import RpcError
from confinement import (CONFINE, FSOPEN, INNER_TARGETS, LANDLOCK_CREATE_RULESET, become_user,
                         leaving, own_sandboxes, refusing, USE_SERVER)
from processes import PATIENCE
from sync_case import SyncCase

# The programs are where every user may execute them, and where no cell hides them.
PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix='acp-programs-', dir='/opt' if
                                         os.access('/opt', os.W_OK) else None))
PROGRAMS.chmod(0o755)
BROKER = shutil.copy(case.BROKER, PROGRAMS)
AGENT = shutil.copy(case.AGENT, PROGRAMS)

# A folder of every user, which cells show unless it is below /tmp.
SHOWN = pathlib.Path(tempfile.mkdtemp(prefix='acp-shown-', dir=PROGRAMS.parent))
SHOWN.chmod(0o777)


# What each process that lets itself be looked at has open; none of the cell's own does.
LIST_DESCRIPTORS = (
    'for p in /proc/[0-9]*; do name=$(cat $p/comm); name=${name%%-*}; '
    'ls $p/fd/ >/dev/null 2>&1 || echo refused ${p#/proc/}; '
    'for f in $p/fd/*; do t=$(readlink $f) && echo "${p#/proc/} $name ${f##*/} <$t>"; done; done')


class Confined(SyncCase):
    def setUp(self):
        super().setUp()
        home = self.dir / 'home'
        (home / '.ssh').mkdir(parents=True)
        (home / '.ssh/id_ed25519').write_text('SECRET\n')
        (home / '.gitconfig').write_text('[user]\n\tname = u\n\temail = u@example.org\n')
        (home / '.bashrc').write_text('mine\n')
        (self.work / 'file').write_text('one\n')

    def environment(self):
        return {**super().environment(), 'DISPLAY': ':0', 'TMUX': '/tmp/t,1,0', 'USER': 'tester',
                **getattr(self, 'extra', {})}

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), BROKER, *options, '--', *agent]

    def start_confined(self, *flags, confine=CONFINE, **keys):
        options = self.config(confine=confine, allow_read=str(PROGRAMS), **keys)
        client = self.broker(options=options, agent=[AGENT, *flags])
        return client, client.initialize()

    def confined(self, **keys):
        client, self.answer = self.start_confined(**keys)
        return client, client.new_session(self.work)

    def shell(self, client, session, line):
        """Runs the line in a terminal of the agent; returns its output."""
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line}')
        return '\n'.join(client.texts(session)[before:])

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()

    # ---- what the agent is told, and what it may do ----

    def test_the_editor_is_told_and_nothing_is_left_running(self):
        client, session = self.confined()
        can = self.answer['_meta']['broker']['capabilities']
        self.assertEqual((can['confined'], can['separate_files'], can['isolated']),
                         (True, True, True))
        client.prompt(session, 'double-fork')
        self.ends(client)

    @unittest.skipIf(case.SANITIZED, 'LeakSanitizer does not work below strace')
    def test_a_start_executes_only_the_broker_its_copy_and_the_agent(self):
        """Each further program, and a large library, would take a part of the start's time."""
        trace = self.dir / 'trace'
        self.wrapper = ('strace', '-f', '-qq', '-o', str(trace), '-e',
                        'trace=execve,execveat,openat')
        client, answer = self.start_confined(network='blocked')
        self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
        self.ends(client)
        lines = trace.read_text(errors='replace').splitlines()
        executed = [line for line in lines
                    if re.search(r'\bexecve(at)?\b', line) and line.endswith('= 0')]
        self.assertEqual(len(executed), 3, executed)
        self.assertEqual([line for line in lines if 'libgit2' in line], [])

    def test_the_broker_s_mcp_server_is_reached_and_its_commands_are_in_the_cell(self):
        (self.work / 'use.py').write_text(USE_SERVER)
        client, _ = self.start_confined('--journal', '/tmp/journal', mcp_exec='yes')
        session = client.new_session(self.work)
        said = self.shell(client, session, '/usr/bin/python3 use.py sh -c '
                          f'"cat file {self.dir}/home/.ssh/id_ed25519"')
        self.assertIn('stdout: one', said)
        self.assertIn('id_ed25519: No such file', said)
        self.assertNotIn('SECRET', said)
        self.ends(client)

    def test_a_broker_in_the_home_folder_is_shown_as_the_mcp_server(self):
        folder = self.dir / 'home/bin'
        folder.mkdir()
        (folder / 'other').write_text('SECRET\n')
        (self.work / 'use.py').write_text(USE_SERVER)
        options = self.config(confine=CONFINE, allow_read=str(PROGRAMS), mcp_exec='yes')
        client = self.start([shutil.copy(BROKER, folder), *options, '--', AGENT,
                             '--journal', '/tmp/journal'])
        client.initialize()
        session = client.new_session(self.work)
        said = self.shell(client, session, f'/usr/bin/python3 use.py ls {folder}')
        self.assertIn('stdout: acp-broker >', said)
        self.ends(client)

    def test_a_broker_in_tmp_and_a_socket_below_a_link_are_reached(self):
        (self.work / 'use.py').write_text(USE_SERVER)
        (self.dir / 'real').mkdir()
        (self.dir / 'link').symlink_to('real')
        self.extra = {'XDG_RUNTIME_DIR': '', 'TMPDIR': str(self.dir / 'link')}
        folder = pathlib.Path(tempfile.mkdtemp(prefix='acp-program-', dir='/tmp'))
        self.addCleanup(shutil.rmtree, folder)
        options = self.config(confine=CONFINE, allow_read=str(PROGRAMS), mcp_exec='yes')
        client = self.start([shutil.copy(BROKER, folder), *options, '--', AGENT,
                             '--journal', '/tmp/journal'])
        client.initialize()
        session = client.new_session(self.work)
        said = self.shell(client, session, '/usr/bin/python3 use.py cat file')
        self.assertIn('stdout: one', said)
        self.ends(client)

    def test_a_home_that_goes_up_is_its_folder(self):
        home = self.dir / 'home'
        (home / 'x').mkdir()
        self.extra = {'HOME': f'{home}/x/..'}
        client, session = self.confined()
        self.assertIn('example.org', self.shell(client, session, 'git config user.email'))
        self.assertIn(f'<{home}>', self.shell(client, session, 'cd && echo "<$(pwd -P)>"'))
        self.ends(client)

    def test_agent_and_terminals_see_no_key_and_change_no_file(self):
        client, session = self.confined()
        home = self.dir / 'home'
        self.assertNotIn('SECRET', self.shell(client, session, f'cat {home}/.ssh/id_ed25519'))
        self.shell(client, session, f'echo EVIL >>{home}/.bashrc')
        self.shell(client, session, f'ls -a {home} {self.state}')
        self.assertEqual((home / '.bashrc').read_text(), 'mine\n')
        said = self.shell(client, session, 'ls -A "$HOME" && echo "<$DISPLAY$TMUX>"')
        self.assertNotIn('.ssh', said)
        self.assertIn('<>', said)
        self.assertIn('example.org', self.shell(client, session, 'git config user.email'))
        self.assertNotIn('sessions', self.shell(client, session, f'ls -A {self.state}'))
        self.assertIn('acp-guard', self.shell(client, session, 'cat /proc/1/comm'))
        client.prompt(session, 'pid')
        self.assertLess(int(re.search(r'\d+', client.texts(session)[-1])[0]), 1000)
        self.ends(client)

    def moved_config(self, folder, **keys):
        """A configuration in another folder, and the options that name it."""
        options = self.config(**{'confine': CONFINE, **keys})
        path = folder / 'acp.conf'
        path.write_text((self.dir / 'config').read_text() + '# SECRET\n')
        self.addCleanup(path.unlink, missing_ok=True)
        return ['--config', str(path), *options[2:]]

    def test_a_configuration_in_another_folder_is_hidden(self):
        options = self.moved_config(SHOWN, allow_read=str(PROGRAMS))
        (SHOWN / 'beside').write_text('beside\n')
        self.addCleanup((SHOWN / 'beside').unlink)
        client = self.broker(options=options, agent=[AGENT])
        client.initialize()
        session = client.new_session(self.work)
        said = self.shell(client, session, f'cat {SHOWN}/beside {SHOWN}/acp.conf')
        self.assertEqual('beside' in said, SHOWN.parent != pathlib.Path('/tmp'))
        self.assertNotIn('SECRET', said)
        self.ends(client)
        refused = self.broker(options=self.moved_config(SHOWN, allow_read=[str(PROGRAMS),
                                                                           str(SHOWN)]),
                              agent=[AGENT])
        with self.assertRaises(RpcError) as caught:
            refused.initialize()
        self.assertNames(caught.exception.message, f'allow-read = {SHOWN} | {SHOWN}/acp.conf')
        refused.close_stdin()
        refused.wait()

    def test_no_copy_contains_the_configuration(self):
        (self.work / 'sub').mkdir()
        for keys in ({}, {'confine': 'no', 'isolation': 'copy'}):
            options = self.moved_config(self.work / 'sub', allow_read=str(PROGRAMS), **keys)
            client = self.broker(options=options, agent=[AGENT])
            client.initialize()
            with self.assertRaises(RpcError) as caught:
                client.new_session(self.work)
            self.assertNames(caught.exception.message,
                             f'{self.work} | {self.work}/sub/acp.conf | --config')
            self.ends(client)

    def test_a_link_leads_the_brokers_file_operations_nowhere(self):
        client, session = self.confined()
        key = self.dir / 'home/.ssh/id_ed25519'
        self.shell(client, session, f'ln -s {key} key; ln -s {key.parent} folder')
        for name in ('key', 'folder/id_ed25519'):
            client.prompt(session, f'read {self.work}/{name}')
        client.prompt(session, f'terminal cd .. && mv work aside && ln -s {key.parent} work',
                      f'read {self.work}/id_ed25519')
        self.assertNotIn('SECRET', '\n'.join(client.texts(session)))
        client.close_stdin()
        client.wait()

    def command(self, *words):
        """Runs a command of the broker's; returns its stdout and stderr."""
        done = subprocess.run([BROKER, '--config', str(self.dir / 'config'), *words], cwd=self.dir,
                              env=self.environment(), capture_output=True, check=False, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_what_it_puts_beside_its_copy_stops_nobody(self):
        client, session = self.confined()
        self.shell(client, session, 'rm ../.made; mkfifo ../.made; echo two >>file')
        self.ends(client)
        self.assertNames(self.command('du')[0], 'copy')
        client, session = self.confined()
        self.assertIn('two', self.shell(client, session, 'cat file'))
        self.assertNames(self.command('du')[0], f'copy | {self.work}')
        self.ends(client)

    def test_a_write_that_is_refused_is_offered_as_a_line(self):
        home = self.dir / 'home'
        (home / 'shared').mkdir()
        options = self.config(confine=CONFINE, allow_read=[str(PROGRAMS), '~/shared'])
        client = self.broker(options=options, agent=[AGENT])
        client.initialize()
        session = client.new_session(self.work)
        said = self.shell(client, session, f'touch {home}/shared/new /etc/new')
        self.assertIn('shared/new', said)
        lies = [f'{path}/new: Read-only file system' for path in (
            f'{home}/.ssh', home, self.state, self.work, f'{home}/.config/acp-broker')]
        self.shell(client, session, f'printf "%s\\n" {" ".join(map(repr, lies))}')
        told = [title for title in self.notices(client) if 'allow-write' in title]
        self.assertEqual(len(told), 1, told)
        self.assertIn(f'allow-write = {home}/shared ', told[0])
        self.assertFalse((home / 'shared/new').exists())
        self.ends(client)

    def test_nobody_in_the_cell_has_a_file_a_folder_or_a_terminal_open(self):
        key = self.dir / 'home/.ssh/id_ed25519'
        self.wrapper = leaving(key)
        client, session = self.confined()
        self.assertEqual(os.readlink(f'/proc/{client.pid}/fd/7'), str(key))
        said = self.shell(client, session, LIST_DESCRIPTORS)
        found = re.findall(r'(\d+) (\w+) (\d+) <([^>]*)>', said)
        names = {name for _, name, _, _ in found}
        self.assertLessEqual({'scripted', 'sh'}, names, said)
        for pid, name, fd, target in found:
            self.assertRegex(target, INNER_TARGETS, (pid, name, fd))
        self.assertIn('refused 1\\n', said)  # the spawner and the guards as well
        self.ends(client)

    def test_an_agents_own_sandbox_works_as_outside_and_shows_no_more_than_the_cell(self):
        """docs/confinement.md: it can be made in the cell where the kernel allows it."""
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)
        key = self.dir / 'home/.ssh/id_ed25519'
        lines = own_sandboxes(self.work, key, listener.getsockname()[1])
        outside = {name: subprocess.run(['sh', '-c', line], cwd=self.work, check=False, text=True,
                                        capture_output=True, env=self.environment()).stdout
                   for name, line in lines.items()}
        if not all('key yes' in said for said in outside.values()):
            self.skipTest(f'no sandbox can be made here outside either: {outside}')
        (self.work / 'made').unlink()
        for network in ('open', 'blocked', 'allow'):
            hosts = {'allow_host': 'example.com'} if network == 'allow' else {}
            client, session = self.confined(network=network, **hosts)
            for name, line in lines.items():
                said = self.shell(client, session, f'rm -f made; {line}')
                wanted = re.search('<(.*)>', outside[name])[1].replace('key yes', 'key ENOENT')
                self.assertIn(f'<{wanted}>', said, (network, name))
            self.ends(client)

    # ---- its network ----

    def test_a_blocked_network_has_its_own_loopback_alone(self):
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)
        host, port = listener.getsockname()
        reach = self.dir / 'work/reach.py'
        reach.write_text('import socket, sys\ntry:\n    socket.create_connection((sys.argv[1], '
                         'int(sys.argv[2]))).close()\n    print("reached")\n'
                         'except OSError as failed:\n    print("error", failed.errno)\n')
        expected = {'open': 'reached', 'blocked': f'error {errno.ECONNREFUSED}'}
        for network, said in expected.items():
            client, session = self.confined(network=network)
            self.assertIn(said, self.shell(client, session, f'python3 reach.py {host} {port}'))
            self.ends(client)

    def test_a_blocked_network_takes_no_landlock(self):
        self.wrapper = refusing(LANDLOCK_CREATE_RULESET, errno.ENOSYS)
        client, answer = self.start_confined(confine='required', network='blocked')
        self.assertEqual(answer['_meta']['broker']['warnings'], [])
        self.ends(client)

    def test_a_network_that_cannot_be_blocked_is_never_open(self):
        self.wrapper = refusing(FSOPEN, errno.EPERM)
        refusal = self.refusal(confine='yes', network='blocked')
        self.assertEqual(refusal.data['code'], 'CELL_UNAVAILABLE')
        self.assertNames(refusal.message, 'seccomp')
        client, answer = self.start_confined(confine='yes')
        self.assertNames(answer['_meta']['broker']['warnings'][0], 'not confined | seccomp')
        self.ends(client)

    # ---- what is kept of an agent's files ----

    def test_sessions_are_kept_and_nothing_that_executes(self):
        claude = self.dir / 'home/.claude'
        claude.mkdir()
        (claude / 'settings.json').write_text('{"model": "m", "hooks": {}, "env": {"A": "SECRET"}}')
        (claude / '.credentials.json').write_text(
            '{"claudeAiOauth": {"accessToken": "LOGIN"}, "mcpOAuth": {"a": "SECRET"}}')
        before = {path.name: path.read_text() for path in claude.iterdir()}
        client, session = self.confined(agent_state='claude')
        said = self.shell(client, session, 'cd; cat .claude/*.json .claude/.credentials.json')
        self.assertIn('LOGIN', said)
        self.assertIn('{\\"model\\":\\"m\\"}', said)
        self.assertNotIn('SECRET', said)
        self.shell(client, session, 'cd ~/.claude && echo one >projects/session && '
                   'for f in settings.json ../.claude.json ../.bashrc; do '
                   'echo EVIL >new && mv new $f || exit; done')
        self.ends(client)
        client, session = self.confined(agent_state='claude')
        said = self.shell(client, session, 'cd; cat .claude/projects/session; ls -A; '
                          'cat .claude/settings.json')
        self.assertIn('one', said)
        self.assertNotIn('EVIL', said)
        self.assertNotIn('.claude.json', said)
        self.ends(client)
        self.assertEqual({path.name: path.read_text() for path in claude.iterdir()}, before)
        self.assertFalse((self.dir / 'home/.claude.json').exists())

    def test_two_cells_of_a_profile_share_sessions_and_no_login(self):
        (one, first), (two, second) = (self.confined(agent_state='codex') for _ in range(2))
        self.shell(one, first, 'cd ~/.codex && echo one >sessions/1 && echo {} >auth.json')
        said = self.shell(two, second, 'cd ~/.codex && ls -A . && cat sessions/1 && '
                          'echo two >sessions/2')
        self.assertIn('one', said)
        self.assertNotIn('auth.json', said)
        self.assertIn('two', self.shell(one, first, 'cat ~/.codex/sessions/2'))
        for client in (one, two):
            client.close_stdin()
            self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()
        kept = self.state / 'homes'
        self.assertEqual({path.name for path in kept.rglob('*') if path.is_file()}, {'1', '2'})
        self.assertEqual(kept.stat().st_mode & 0o777, 0o700)

    def test_what_is_kept_is_counted_and_pruned(self):
        def home():
            found, = (each for each in json.loads(self.command('du', '--json')[0])['holdings']
                      if each['kind'] == 'home')
            return found
        client, session = self.confined(agent_state='codex')
        # As an agent may leave it: with a large file, and with a folder that nobody may enter.
        self.shell(client, session, 'cd ~/.codex/sessions && head -c 300000 /dev/zero >1 && '
                   'mkdir -p a/b && echo >a/b/2 && chmod 0 a')
        path = home()['path']
        self.assertEqual(pathlib.Path(path).parent, self.state / 'homes')
        self.assertEqual(home()['state'], 'in use')
        self.assertGreater(home()['bytes'], 290000)
        self.assertNames(self.command('prune', '--older', '0s')[1], f'home {path} | in use')
        self.ends(client)
        self.assertEqual(home()['state'], 'needed')
        self.assertNames(self.command('du')[0], f'home | {path} | session')
        leftover = pathlib.Path(path + '.gone')
        (leftover / 'rest').mkdir(parents=True)
        said, _ = self.command('prune', '--older', '0s')
        self.assertNames(said, f'removed the home {path}')
        self.assertEqual(list((self.state / 'homes').iterdir()), [])
        client, session = self.confined(agent_state='codex')
        self.assertIn('sessions', self.shell(client, session, 'ls ~/.codex'))
        self.ends(client)

    def test_a_refreshed_login_reaches_the_home_and_the_other_cell(self):
        """
        The agent renames a file into place, as Claude Code does; the file has more than a login.
        """
        def login(token, time, **more):
            return json.dumps({'claudeAiOauth': {'accessToken': token, 'expiresAt': time}, **more})
        path = self.dir / 'home/.claude/.credentials.json'
        path.parent.mkdir()
        path.write_text(login('old', 5, mcpOAuth={'x': 'mine'}))
        (one, first), (two, second) = (self.confined(agent_state='claude') for _ in range(2))
        (self.work / 'new').write_text(login('new', 6, mcpOAuth={'x': 'EVIL'}, hooks={}))
        self.shell(one, first, 'cp new ~/.claude/n && mv ~/.claude/n ~/.claude/.credentials.json')
        processes.wait_until(lambda: 'new' in path.read_text())
        self.assertEqual(json.loads(path.read_text()),
                         json.loads(login('new', 6, mcpOAuth={'x': 'mine'})))
        said = self.shell(two, second, 'until grep new ~/.claude/.credentials.json; do '
                          'sleep 0.05; done')
        self.assertIn('new', said)
        self.assertNotIn('mine', said)
        for client in (one, two):
            client.close_stdin()
            self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()

    def test_who_is_not_logged_in_is_told_how(self):
        """
        The editor gets no login in a terminal, because the agent's commands would run outside of
        the cell.
        """
        for state, facts in (('codex', 'codex-acp login | agent-state = codex'),
                             ('gemini', 'gemini | Sign in with Google | agent-state = gemini'),
                             ('none', 'agent-state = NAME | secret-env = NAME')):
            client, answer = self.start_confined('--need-auth', '--terminal-auth',
                                                 agent_state=state)
            self.assertNotIn('terminal', [each.get('type') for each in answer['authMethods']])
            with self.assertRaises(RpcError) as caught:
                client.new_session(self.work)
            self.assertEqual(caught.exception.code, -32000)
            self.assertNames(caught.exception.message, facts)
            client.close_stdin()
            client.wait()

    def test_the_agents_name_says_whose_files_it_has(self):
        programs = self.dir / 'bin'
        programs.mkdir()
        claude = shutil.copy(AGENT, programs / 'claude-agent-acp')
        client = self.broker(options=self.config(confine=CONFINE, allow_read=str(programs)),
                             agent=[claude])
        client.initialize()
        session = client.new_session(self.work)
        self.assertIn('projects', self.shell(client, session, 'ls ~/.claude'))
        self.ends(client)

    # ---- its copy ----

    def test_edits_travel_both_ways(self):
        client, session = self.confined()
        self.shell(client, session, 'echo two >>file; mkdir folder; echo new >folder/new')
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.assertEqual((self.work / 'folder/new').read_text(), 'new\n')
        (self.work / 'file').write_text('three\n')
        self.assertIn('three', self.shell(client, session, 'cat file'))
        self.ends(client)

    def test_a_second_broker_finds_the_copy(self):
        for word in ('one', 'two'):
            client, session = self.confined()
            self.assertIn('file', self.shell(client, session, f'ls; echo x >{word}'))
            self.ends(client)
        self.assertTrue((self.work / 'one').exists() and (self.work / 'two').exists())

    def test_setup_runs_in_the_cell(self):
        client, session = self.confined(setup='"cat /proc/1/comm >here; pwd >>here"')
        self.assertIn('acp-guard', self.shell(client, session, 'cat "$HOME/here"'))
        self.assertFalse((self.dir / 'home/here').exists())
        self.ends(client)

    def test_what_the_profile_allows_is_shown(self):
        shown = self.dir / 'home/notes'
        shown.mkdir()
        (shown / 'a').write_text('text\n')
        client, session = self.confined(allow_write='~/notes')
        self.assertIn('text', self.shell(client, session, 'cat ~/notes/a; echo b >~/notes/b'))
        self.assertEqual((shown / 'b').read_text(), 'b\n')
        self.ends(client)

    def test_an_allowed_socket_is_shown_and_told(self):
        path = str(self.dir / 'home/agent')
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            self.extra = {'SSH_AUTH_SOCK': path, 'OTHER_AUTH_SOCK': path + '.other'}
            client, session = self.confined(allow_socket='$SSH_AUTH_SOCK')
            warning = self.answer['_meta']['broker']['warnings'][0]
            self.assertNames(warning, f'allow-socket = $SSH_AUTH_SOCK | {path}')
            said = self.shell(client, session, 'test -S "$SSH_AUTH_SOCK" && '
                                               'echo "<$SSH_AUTH_SOCK|$OTHER_AUTH_SOCK>"')
            self.assertIn(f'<{path}|>', said)
            self.ends(client)

    def test_a_folder_above_the_brokers_own_is_refused(self):
        (self.dir / 'home/.config').mkdir(exist_ok=True)
        for confine in ('required', 'yes'):
            with self.assertRaises(RpcError) as caught:
                self.start_confined(confine=confine, allow_write='~/.config')
            self.assertNames(str(caught.exception), 'allow-write = ~/.config | acp-broker')

    # ---- how it ends ----

    def test_all_ends_with_a_killed_broker(self):
        client, session = self.confined()
        client.prompt(session, 'double-fork')
        processes.kill(client.pid)
        client.wait()
        self.assert_nothing_runs()

    def test_an_agent_that_kills_its_cell_ends_its_sandbox_alone(self):
        client, session = self.confined()
        client.start_prompt(session, 'terminal kill -KILL -1')
        client.wait_log('the cell has ended')
        client.close_stdin()
        client.wait()
        self.assert_nothing_runs()

    # ---- where no cell can be made ----

    def test_required_fails_and_yes_tells(self):
        self.wrapper = refusing(FSOPEN, errno.EPERM)
        refusal = self.refusal(confine='required')
        self.assertEqual(refusal.data['code'], 'CELL_UNAVAILABLE')
        self.assertNames(str(refusal), 'seccomp')
        client, answer = self.start_confined(confine='yes')
        warning, = answer['_meta']['broker']['warnings']
        self.assertNames(warning, 'not confined | seccomp')
        self.assertFalse(answer['_meta']['broker']['capabilities']['confined'])
        self.ends(client)

    def test_without_scopes_required_fails_and_yes_tells(self):
        self.wrapper = refusing(LANDLOCK_CREATE_RULESET, errno.ENOSYS)
        refusal = self.refusal(confine='required')
        self.assertEqual(refusal.data['code'], 'CELL_UNAVAILABLE')
        self.assertNames(str(refusal), 'abstract sockets | seccomp')
        client, answer = self.start_confined(confine='yes')
        warning, = answer['_meta']['broker']['warnings']
        self.assertNames(warning, 'abstract sockets')
        self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
        self.ends(client)

    def test_what_an_agent_can_use_up_leaves_no_other_one_unconfined(self):
        self.wrapper = refusing(FSOPEN, errno.ENOMEM)
        for confine in ('required', 'yes'):
            refusal = self.refusal(confine=confine)
            self.assertNotEqual(refusal.data['code'], 'CELL_UNAVAILABLE')
            self.assertNames(str(refusal), 'confining')

    def test_an_agent_that_the_cell_hides_is_told_with_what_shows_it(self):
        installed = self.dir / 'home/.tools'
        (installed / 'bin').mkdir(parents=True)
        shutil.copy(AGENT, installed / 'agent')
        (installed / 'bin/agent').symlink_to('../agent')
        self.extra = {'PATH': f'{installed}/bin:/usr/bin:/bin'}
        for agent in 'agent', f'{installed}/bin/agent':
            client = self.broker(options=self.config(confine=CONFINE), agent=[agent])
            with self.assertRaises(RpcError) as caught:
                client.initialize()
            self.assertEqual(caught.exception.data['code'], 'AGENT_NOT_FOUND')
            self.assertNames(caught.exception.message, f'allow-read = {installed} in')
            client.close_stdin()
            client.wait()
        client = self.broker(options=self.config(confine=CONFINE, allow_read=str(installed)),
                             agent=['agent'])
        client.initialize()
        self.ends(client)

    def test_the_option_is_required(self):
        options = [*self.config(allow_read=str(PROGRAMS)), '--confine']
        client = self.broker(options=options, agent=[AGENT])
        answer = client.initialize()
        self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
        self.ends(client)
        self.wrapper = refusing(FSOPEN, errno.EPERM)
        client = self.broker(options=options, agent=[AGENT])
        with self.assertRaises(RpcError) as caught:
            client.initialize()
        self.assertEqual(caught.exception.data['code'], 'CELL_UNAVAILABLE')
        client.close_stdin()
        client.wait()

    def test_a_configuration_that_confines_nothing_is_refused(self):
        self.extra = {'HOME': '/usr', 'XDG_STATE_HOME': str(self.dir / 'home/state')}
        for confine in ('required', 'yes'):
            self.assertNames(str(self.refusal(confine=confine)), 'home folder /usr')

    def refusal(self, **keys):
        """The error of a broker that refuses to start the agent."""
        client = self.broker(options=self.config(**keys), agent=[AGENT])
        with self.assertRaises(RpcError) as caught:
            client.initialize()
        client.close_stdin()
        client.wait()
        return caught.exception


if __name__ == '__main__':
    become_user(PROGRAMS, SHOWN)
    case.main()
