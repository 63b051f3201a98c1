#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A broker that runs as root: the owner of the workspace works in the cell, and never root."""

import errno
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import case
import processes

from acp import RpcError
from confinement import (CONFINE, FSOPEN, INNER_TARGETS, USER, leaving, own_sandboxes,
                         refusing, USE_SERVER)
from forwarding import SERVE, free_port, tell
from keys_server import ASK, Server, fields_of, make_certificates
from sync_case import SyncCase
from test_start import REFUSING
from worktree_attacks import Scene

OF_ROOTS = 65533  # the user in a cell whose workspace belongs to root

KEY = 'sk-real-0123456789abcdef-the-key'

# The program is in a place where every user may execute it, and where no cell hides it.
PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix='acp-programs-', dir='/opt' if
                                         os.access('/opt', os.W_OK) else None))
PROGRAMS.chmod(0o755)
AGENT = shutil.copy(case.AGENT, PROGRAMS)


def tearDownModule():
    shutil.rmtree(PROGRAMS)


@unittest.skipUnless(os.geteuid() == 0, 'only root can become another user')
class ConfinedRoot(SyncCase):
    def setUp(self):
        super().setUp()
        (self.dir / 'home').mkdir(exist_ok=True)
        (self.dir / 'home/key').write_text('SECRET\n')
        (self.work / 'file').write_text('one\n')
        (self.work / 'program').write_text('#!/bin/sh\n')
        (self.work / 'program').chmod(0o700)

    def give(self, user):
        for path in (self.work, *self.work.rglob('*')):
            os.chown(path, user, user, follow_symlinks=False)

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), case.BROKER, *options, '--', *agent]

    def environment(self):
        return {**super().environment(), 'USER': 'root', 'LOGNAME': 'root',
                **getattr(self, 'extra', {})}

    def confined(self, **keys):
        options = self.config(confine=CONFINE, allow_read=str(PROGRAMS), **keys)
        client = self.broker(options=options, agent=[AGENT])
        answer = client.initialize()
        self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
        self.warnings = answer['_meta']['broker']['warnings']
        return client, client.new_session(self.work)

    def test_the_other_user_reaches_the_broker_s_mcp_server(self):
        (self.work / 'use.py').write_text(USE_SERVER)
        self.give(USER)
        options = self.config(confine=CONFINE, allow_read=str(PROGRAMS), mcp_exec='yes')
        client = self.start([shutil.copy(case.BROKER, PROGRAMS), *options, '--', AGENT,
                             '--journal', '/tmp/journal'])
        client.initialize()
        session = client.new_session(self.work)
        said = self.shell(client, session, '/usr/bin/python3 use.py sh -c '
                          f'"id -u; cat file {self.dir}/home/key"')
        self.assertIn(f'stdout: {USER} one', said)
        self.assertNotIn('SECRET', said)
        self.ends(client)

    def test_its_agent_is_not_told_that_it_is_root(self):
        options = self.config(confine=CONFINE)
        client = self.broker(options=options, agent=['/usr/bin/python3', '-c', REFUSING,
                                                     'not as root'])
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertEqual(caught.exception.message, 'Internal error')

    def unconfined(self):
        client = self.broker(options=self.config(isolation='copy'), agent=[AGENT])
        client.initialize()
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

    def owner(self, name):
        status = (self.work / name).lstat()
        return status.st_uid, status.st_gid, oct(status.st_mode & 0o7777)

    def work_in(self, user, agent):
        """
        The agent edits its copy, by itself and through the broker; the workspace gets all of it.
        """
        client, session = self.confined()
        said = self.shell(client, session, f'echo "<$(id -u) $(id -G) $USER>"; cat {self.dir}/'
                          'home/key; grep -h "CapEff\\|CapBnd" /proc/self/status; '
                          'chown 0 file || echo two >>file; echo "exit" >>program; '
                          'mkdir folder; echo new >folder/new; ln -s new folder/link')
        self.assertIn(f'<{agent} {agent} user>', said)
        self.assertIn('CapEff:\\t0000000000000000', said.replace('\t', '\\t'))
        self.assertNotIn('SECRET', said)
        client.prompt(session, f'write {self.work}/one/two/written text')
        said = self.shell(client, session, 'echo more >>one/two/written; cat one/two/written')
        self.assertIn('more', said)
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o777 & ~mask
        kept = {'file': mode & 0o666, 'program': 0o700, 'folder': mode,
                'folder/new': mode & 0o666, 'one': mode, 'one/two/written': mode & 0o666}
        self.assertEqual({name: self.owner(name) for name in kept},
                         {name: (user, user, oct(bits)) for name, bits in kept.items()})
        self.ends(client)

    def test_a_users_workspace(self):
        subprocess.run(['git', 'init', '-q', self.work], check=True)
        self.give(USER)
        self.work_in(USER, USER)
        notice = next(text for text in self.notices(self.clients[-1]) if 'history' in text)
        self.assertNames(notice, f'git | user {USER}')

    def test_roots_own_workspace(self):
        self.work_in(0, OF_ROOTS)

    def test_the_option_starts(self):
        client = self.broker(options=[*self.config(allow_read=str(PROGRAMS)), '--confine'],
                             agent=[AGENT])
        self.assertTrue(client.initialize()['_meta']['broker']['capabilities']['confined'])
        self.ends(client)

    def test_an_agents_own_sandbox_works_as_the_users_does_outside(self):
        self.dir.chmod(0o755)
        lines = own_sandboxes(self.work, self.dir / 'home/key', 9)
        self.give(USER)
        outside = {name: subprocess.run(
            ['sh', '-c', line], cwd=self.work, check=False, text=True, capture_output=True,
            env=self.environment(), user=USER, group=USER, extra_groups=[]).stdout
                   for name, line in lines.items()}
        if not all('key yes' in said for said in outside.values()):
            self.skipTest(f'no sandbox can be made here outside either: {outside}')
        client, session = self.confined()
        for name, line in lines.items():
            said = self.shell(client, session, f'rm -f made; {line}')
            wanted = re.search('<(.*)>', outside[name])[1].replace('key yes', 'key ENOENT')
            self.assertIn(f'<{wanted}>', said, name)
        self.ends(client)

    def test_no_process_in_the_cell_has_a_file_a_folder_or_a_terminal_open(self):
        """Of this machine, root sees also the cell's own processes."""
        self.wrapper = leaving(self.dir / 'home/key')
        client, _ = self.confined()
        looked_at = {}
        for pid in processes.descendants(client.pid):
            status = pathlib.Path(f'/proc/{pid}/status').read_text()
            inner = re.search(r'(?m)^NSpid:.*\t(\d+)\t(\d+)$', status)
            targets = [os.readlink(path) for path in pathlib.Path(f'/proc/{pid}/fd').iterdir()]
            self.assertNotIn(str(self.dir / 'home/key'), targets)
            if inner:
                looked_at[int(inner[2])] = targets
        # The first one has the root folder of the cell, and is not within reach there.
        self.assertGreaterEqual(len(looked_at), 4)
        first = looked_at.pop(1)
        self.assertNotIn('/dev/ptmx', ' '.join(first))
        for pid, targets in looked_at.items():
            for target in targets:
                self.assertRegex(target, INNER_TARGETS, pid)
        self.ends(client)

    def test_where_no_cell_is_possible_nobody_is_started_with_a_key(self):
        self.wrapper = refusing(FSOPEN, errno.EPERM)
        self.extra = {'ANTHROPIC_API_KEY': 'sk-real-0123456789'}
        told = self.dir / 'told'
        for key, is_told in (({}, True), ({'key': 'ANTHROPIC_API_KEY'}, False)):
            options = self.config(confine='yes', setup=f'"env >{told}"', **key)
            client = self.broker(options=options, agent=[AGENT])
            if is_told:
                client.initialize()
                self.assertIn('sk-real-0123456789', told.read_text())
                told.unlink()
            else:
                with self.assertRaises(RpcError) as caught:
                    client.initialize()
                self.assertEqual(caught.exception.data['code'], 'CELL_UNAVAILABLE')
                self.assertFalse(told.exists())
            client.close_stdin()
            client.wait()

    def test_a_key_is_used_and_cannot_be_read(self):
        certificates = make_certificates()
        self.addCleanup(shutil.rmtree, certificates)
        server = Server(certificates, 'right')
        self.addCleanup(server.close)
        self.extra = {'ANTHROPIC_API_KEY': KEY, 'CURL_CA_BUNDLE': f'{certificates}/ca.pem'}
        (self.work / 'ask.py').write_text(ASK)
        for user, agent in ((0, OF_ROOTS), (USER, USER)):
            self.give(user)
            server.heads.clear()
            client, session = self.confined(
                network='blocked', key=f'ANTHROPIC_API_KEY for https://localhost:{server.port}')
            said = self.shell(client, session, 'python3 ask.py; env; cat /proc/[0-9]*/environ')
            self.assertIn('status 200', said)
            self.assertNotIn(KEY, said)
            self.assertEqual([fields_of(head)['x-api-key'] for head in server.heads], [KEY])
            holders = [pid for pid in processes.descendants(client.pid)
                       if b'\0--acp-broker-keys' in processes.read_file(f'/proc/{pid}/cmdline')]
            self.assertTrue(holders)
            users = {re.search(r'(?m)^Uid:\t(\d+)', pathlib.Path(
                f'/proc/{pid}/status').read_text())[1] for pid in holders}
            self.assertIn(str(agent), users)
            for pid in holders:  # the same user's other processes do not read it either
                done = subprocess.run(['cat', f'/proc/{pid}/maps'], user=agent, group=agent,
                                      extra_groups=[], check=False, capture_output=True)
                self.assertNotEqual(done.returncode, 0)
            self.ends(client)
            self.assertNotIn(KEY, ''.join(client.stderr))

    def test_a_port_leads_to_a_server_of_the_agents(self):
        (self.work / 'serve.py').write_text(SERVE)
        port = free_port()
        for user in (0, USER):
            self.give(user)
            client, session = self.confined(network='blocked', forward=port)
            client.start_prompt(session, f'terminal python3 serve.py 127.0.0.1 {port}')
            self.assertTrue(processes.wait_until(lambda: tell(port) == b'%d hello' % port))
            self.ends(client)
            self.assertIsNone(tell(port))

    def copy_of(self, client, session):
        said = self.shell(client, session, 'pwd')
        return pathlib.Path(re.search(r'/[^"]*/copies/\w+/\w+/work', said)[0])

    def test_what_root_has_left_in_a_copy_is_given(self):
        (self.work / '.gitignore').write_text('cache\n')
        (self.work / 'cache').mkdir()
        (self.work / 'cache/one').write_text('cached\n')
        client, session = self.confined()
        copy = self.copy_of(client, session)
        self.ends(client)
        (copy / 'cache/new').write_text('new\n')
        os.chown(copy / 'cache/one', 0, 0)
        (copy / 'cache/other').hardlink_to(copy / 'cache/one')
        client, session = self.confined()
        self.assertIn(f'{OF_ROOTS}', self.shell(client, session, 'stat -c %u . file .gitignore'))
        notice, = (text for text in self.notices(client) if 'hard links' in text)
        self.assertNames(notice, f'2 files | user {OF_ROOTS} | {copy}')
        self.assertEqual((copy / 'cache/one').stat().st_uid, 0)
        for name in ('cache', 'cache/new'):
            self.assertEqual((copy / name).stat().st_uid, OF_ROOTS)
        self.ends(client)

    def test_only_what_its_owner_can_read_is_in_the_copy(self):
        """An unconfined copy of root, made before with the same profile, has all files."""
        subprocess.run(['git', 'init', '-q', self.work], check=True)
        (self.work / '.gitignore').write_text('cache\n')
        for folder in ('cache', 'closed-folder', 'listed-folder'):
            (self.work / folder).mkdir()
        excludes = ['git', '-C', self.work, 'config', 'core.excludesFile', self.dir / 'home/key']
        subprocess.run(excludes, check=True)
        self.give(USER)
        closed = ['closed', 'cache/closed', 'closed-folder/inner', 'listed-folder/inner']
        for name in closed:
            (self.work / name).write_text('SECRET\n')
            (self.work / name).chmod(0o600 if name.endswith('closed') else 0o644)
        for name, mode in (('closed-folder', 0o700), ('listed-folder', 0o744)):
            os.chown(self.work / name, 0, 0)
            (self.work / name).chmod(mode)
        look = f'cat {" ".join(closed)}; grep -rs "SECRE[T]" .. | wc -l; echo two >>file'
        client, session = self.unconfined()
        roots = self.copy_of(client, session)
        self.assertEqual(self.shell(client, session, look).count('SECRET'), len(closed))
        self.ends(client)
        client, session = self.confined()
        said = self.shell(client, session, look)
        self.assertNotIn('SECRET', said)
        self.assertRegex(said, r'\\n0\\n')
        self.assertNotEqual(self.copy_of(client, session), roots)
        told = '\n'.join(self.notices(client))
        self.assertNames(told, f'3 that user {USER} | closed-folder | 1 ignored | {self.work}')
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\ntwo\n')
        # Files that the agent makes there under these names replace nothing, and it gets nothing by
        # a conflict.
        self.shell(client, session, 'mkdir -p cache listed-folder closed-folder; '
                   f'for f in {" ".join(closed)}; do echo EVIL >$f; done')
        said = self.shell(client, session, look)
        self.assertNotIn('SECRET', said)
        self.assertRegex(said, r'\\n0\\n')
        for name in closed:
            self.assertEqual((self.work / name).read_text(), 'SECRET\n')
            self.assertEqual((self.work / name).stat().st_uid, 0)
        self.assertNames(self.notices(client)[-1], '3 conflicts | closed | something is there now')
        self.ends(client)

    def test_what_an_agent_keeps_is_of_the_user(self):
        for user in (0, USER, 0):
            self.give(user)
            client, session = self.confined(agent_state='codex')
            said = self.shell(client, session, f'cat ~/.codex/sessions/*; '
                              f'echo of-{user} >>~/.codex/sessions/1')
            self.assertNotIn(f'of-{USER if user == 0 else 0}', said)
            self.ends(client)
        self.assertIn('of-0', said)

    def test_a_writable_folder_of_roots_is_told(self):
        (self.dir / 'home/notes').mkdir()
        client, session = self.confined(allow_write='~/notes')
        warning = next(text for text in self.warnings if 'notes' in text)
        self.assertNames(warning, f'allow-write = ~/notes | user {OF_ROOTS} | user 0')
        self.ends(client)

    def test_the_workspace_itself(self):
        self.dir.chmod(0o755)
        self.give(USER)
        (self.work / 'closed').write_text('SECRET\n')
        (self.work / 'closed').chmod(0o600)
        client, session = self.confined(isolation='none')
        said = self.shell(client, session, 'id -u; echo two >>file; echo new >new; cat closed')
        client.prompt(session, f'write {self.work}/written text', f'read {self.work}/closed')
        self.assertIn(str(USER), said)
        self.assertNotIn('SECRET', said + '\n'.join(client.texts(session)))
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.assertEqual([self.owner(name)[0] for name in ('file', 'new', 'written', 'closed')],
                         [USER, USER, USER, 0])
        self.ends(client)

    def test_an_agent_in_a_worktree_writes_nothing_into_its_repository(self):
        self.dir.chmod(0o755)
        scene = Scene(self.dir / 'home', self.work, USER)
        scene.outside(self)
        client, session = self.confined(isolation='none')
        scene.attack(self, client, session)
        self.ends(client)

    def test_roots_own_workspace_itself_is_refused(self):
        with self.assertRaises(RpcError) as caught:
            self.confined(isolation='none')
        self.assertNames(caught.exception.message, f'{self.work} | user 0 | user {OF_ROOTS} | '
                         'isolation = copy')
        self.clients[-1].close_stdin()
        self.clients[-1].wait()


if __name__ == '__main__':
    case.main()
