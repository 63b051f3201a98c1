#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A confined agent in the workspace itself (isolation = none): which files it may write there, and
which not. As root the whole test becomes another user, because no process of root can be confined.
"""

import errno
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import case
import confinement
import processes

from acp import RpcError
from sync_case import SyncCase
from worktree_attacks import Scene, forge_repository

# The programs are where every user may execute them, and where no cell hides them.
PROGRAMS = pathlib.Path(tempfile.mkdtemp(prefix='acp-programs-', dir='/opt' if
                                         os.access('/opt', os.W_OK) else None))
PROGRAMS.chmod(0o755)
BROKER = shutil.copy(case.BROKER, PROGRAMS)
AGENT = shutil.copy(case.AGENT, PROGRAMS)


# A program that executes another one in a user namespace that allows only a few inotify watches.
FEW_WATCHES = """
import ctypes, os, sys
uid, gid = os.getuid(), os.getgid()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0, os.strerror(ctypes.get_errno())
for name, text in (('self/setgroups', 'deny'), ('self/uid_map', f'{uid} {uid} 1'),
                   ('self/gid_map', f'{gid} {gid} 1'), ('sys/user/max_inotify_watches', '8')):
    with open('/proc/' + name, 'w') as file:
        file.write(text)
os.execv(sys.argv[1], sys.argv[1:])
"""

# Once the file "go" exists, takes all watches that it can get, and keeps them. The file "said" has
# the error that stopped it. The folder is in the cell only once there is a session.
TAKES_WATCHES = """
import ctypes, os, pathlib, signal, tempfile, time
folder = pathlib.Path({folder!r})
libc = ctypes.CDLL(None, use_errno=True)
fd, count = libc.inotify_init1(0), 0
while not (folder / 'go').exists():
    time.sleep(0.05)
while libc.inotify_add_watch(fd, tempfile.mkdtemp().encode(), 0x100) >= 0 and count < 100:
    count += 1
(folder / 'said').write_text(f'error {{ctypes.get_errno()}}.')
signal.pause()
"""


class ConfinedHere(SyncCase):
    def setUp(self):
        super().setUp()
        (self.dir / 'home').mkdir(exist_ok=True)
        self.git('init', '-q')
        (self.work / '.envrc').write_text('mine\n')
        (self.work / '.vscode').mkdir()
        (self.work / 'file').write_text('one\n')

    def git(self, *words):
        subprocess.run(['git', '-c', 'user.name=u', '-c', 'user.email=u@example.org', *words],
                       cwd=self.work, check=True, capture_output=True)

    def environment(self):
        return {**super().environment(), 'USER': 'tester'}

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), BROKER, *options, '--', *agent]

    def confined(self, agent=(AGENT,), **keys):
        options = self.config(confine=confinement.CONFINE, isolation='none',
                              allow_read=str(PROGRAMS), **keys)
        client = self.broker(options=options, agent=agent)
        answer = client.initialize()
        return client, answer['_meta']['broker']

    def shell(self, client, session, line):
        """Runs the line in a terminal of the agent; returns its output."""
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line}')
        return '\n'.join(client.texts(session)[before:])

    def wait_notices(self, client, count):
        processes.wait_until(lambda: len(self.notices(client)) >= count)
        return self.notices(client)

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()

    def test_the_workspace_is_written_and_what_tools_run_is_not(self):
        client, told = self.confined()
        can = told['capabilities']
        self.assertEqual((can['confined'], can['separate_files'], can['isolated']),
                         (True, False, False))
        session = client.new_session(self.work)
        said = self.shell(client, session, 'pwd; echo two >>file; echo EVIL >>.envrc; '
                                           'echo EVIL >.vscode/tasks.json; '
                                           'echo EVIL >.git/hooks/post-commit; git status -s; '
                                           'mv .git .g; git commit -q --allow-empty -m x')
        self.assertIn(str(self.work), said)
        self.assertIn('?? file', said)
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
        self.assertEqual((self.work / '.envrc').read_text(), 'mine\n')
        self.assertEqual(list((self.work / '.vscode').iterdir()), [])
        self.assertFalse((self.work / '.git/hooks/post-commit').exists())
        # The broker does not write these files for the agent either, and asks nobody.
        client.prompt(session, f'write {self.work}/.envrc EVIL',
                      f'write {self.work}/.vscode/tasks.json EVIL',
                      f'write {self.work}/new text')
        self.assertEqual((self.work / '.envrc').read_text(), 'mine\n')
        self.assertEqual(list((self.work / '.vscode').iterdir()), [])
        self.assertTrue((self.work / 'new').exists())
        self.ends(client)

    def test_what_comes_is_told(self):
        client, _ = self.confined()
        session = client.new_session(self.work)
        self.shell(client, session, 'mkdir sub; git init -q sub; echo EVIL >sub/.envrc')
        told, = self.wait_notices(client, 1)
        self.assertNames(told, 'sub/.git | git | sub/.envrc | direnv')
        (self.work / 'n').write_text('other\n')
        (self.work / 'n').rename(self.work / '.envrc')
        told = self.wait_notices(client, 2)[-1]
        self.assertNames(told, f'{self.work}/.envrc')
        self.ends(client)

    def test_lost_pins_are_told_when_the_agent_has_used_up_all_watches(self):
        self.wrapper = (sys.executable, '-c', FEW_WATCHES)
        for folder in (self.work / 'sub', self.dir / 'unwatched'):
            folder.mkdir()
            (folder / '.envrc').write_text(f'{folder.name}\n')
        script = shlex.join([sys.executable, '-c', TAKES_WATCHES.format(folder=str(self.work))])
        waking = 'while :; do kill -CHLD 1; sleep 0.2; done'  # the cell's first process
        client, _ = self.confined(
            agent=['/bin/sh', '-c', f'{script} & {{ {waking}; }} & exec {AGENT}'])
        session = client.new_session(self.work)
        (self.work / 'go').touch()
        said = self.work / 'said'
        self.assertTrue(processes.wait_until(
            lambda: said.exists() and said.read_text().endswith('.')))
        self.assertEqual(said.read_text(), f'error {errno.ENOSPC}.')
        (self.work / 'sub').rename(self.work / 'old')
        (self.dir / 'unwatched').rename(self.work / 'sub')
        told = self.wait_notices(client, 2)
        self.assertNames(' '.join(told), f'max_user_watches | {self.work}/sub/.envrc')
        for i in range(5):  # a look may come in the middle of such a rename
            (self.work / 'n').write_text(f'{i}\n')
            (self.work / 'n').rename(self.work / 'sub/.envrc')
            self.assertTrue(processes.wait_until(lambda: 'refused' in self.shell(
                client, session, 'true >>sub/.envrc || echo re""fused')))
        self.assertNotIn('mounting', ' '.join(self.notices(client)))  # none was told to be lost
        self.ends(client)

    def test_what_comes_between_two_turns_is_told_when_the_next_one_begins(self):
        between = (f'until [ -e {self.work}/go ]; do sleep 0.1; done; cd {self.work}; '
                   'echo EVIL >.mcp.json; touch made')
        client, _ = self.confined(agent=['/bin/sh', '-c', f'({between}) & exec {AGENT}'])
        session = client.new_session(self.work)
        client.prompt(session, 'hello')
        (self.work / 'go').touch()
        self.assertTrue(processes.wait_until((self.work / 'made').exists))
        turn = client.start_prompt(session, 'terminal until [ -e end ]; do sleep 0.1; done')
        self.assertNames(self.wait_notices(client, 1)[0], '.mcp.json')
        (self.work / 'end').touch()
        client.answer(turn)
        self.assertEqual(len(self.notices(client)), 1)
        self.ends(client)

    def test_a_second_session_pins_what_has_come(self):
        client, _ = self.confined()
        session = client.new_session(self.work)
        (self.work / 'sub/deep').mkdir(parents=True)
        for name in ('.mcp.json', 'sub/deep/.envrc'):
            (self.work / name).write_text('mine\n')
        self.shell(client, session, 'mkdir .husky; echo made >.husky/pre-commit')
        before = self.wait_notices(client, 2)  # when the turn begins, and when it ends
        self.assertNames(' '.join(before), '.mcp.json | sub/deep/.envrc | .husky')
        (self.work / '.zed').mkdir()
        (self.work / '.zed/tasks.json').write_text('mine\n')
        other = client.new_session(self.work)
        self.assertNames(self.wait_notices(client, 2)[-1], '.zed | Zed')
        for name in (session, other):
            self.shell(client, name, 'for f in .mcp.json sub/deep/.envrc .husky/pre-commit .envrc '
                       '.zed/tasks.json; do echo EVIL >>$f; mv $f gone; done; mv sub aside; '
                       'mv .husky aside; echo two >>file')
        client.prompt(other, f'write {self.work}/.zed/tasks.json EVIL')
        for name in ('.mcp.json', 'sub/deep/.envrc', '.zed/tasks.json'):
            self.assertEqual((self.work / name).read_text(), 'mine\n')
        self.assertEqual((self.work / '.husky/pre-commit').read_text(), 'made\n')
        self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\ntwo\n')
        self.assertEqual(len(self.notices(client)), 3)
        (self.work / 'n').write_text('other\n')
        (self.work / 'n').rename(self.work / '.zed/tasks.json')
        (self.work / 'n').write_text('other\n')
        (self.work / 'n').rename(self.work / '.mcp.json')  # later pins are renewed, too
        self.assertNames(self.wait_notices(client, 4)[-1], f'{self.work}/.mcp.json')
        self.shell(client, other, 'echo EVIL >>.mcp.json')
        self.assertEqual((self.work / '.mcp.json').read_text(), 'other\n')
        self.ends(client)

    def test_decoys_hide_nothing_that_another_program_reads(self):
        client, _ = self.confined()
        session = client.new_session(self.work)
        self.shell(client, session, 'for i in $(seq 25); do mkdir a$i; echo >a$i/.envrc; done; '
                   'mkdir -p z/.zed; echo EVIL >z/.zed/tasks.json')
        told, = self.wait_notices(client, 1)
        self.assertNames(told, 'z/.zed | Zed | 17 more')
        self.ends(client)

    def test_git_write_lets_it_commit(self):
        client, _ = self.confined(git_write='yes')
        session = client.new_session(self.work)
        self.shell(client, session, 'git add file; git -c user.name=a -c user.email=a@example.org '
                                    'commit -q -m first')
        self.git('rev-parse', 'HEAD')
        self.ends(client)

    def test_what_the_users_git_reads_is_not_written(self):
        """The workspace has the user's own configuration of git, as a folder of dotfiles may."""
        home = self.dir / 'home'
        mine = {'dots/gitconfig': '[include]\n\tpath = ~nobody/x\n'  # hides nothing
                                  f'[core]\n\texcludesFile = {self.work}/dots/ignore\n'
                                  f'\tattributesFile = {self.work}/dots/attributes\n'
                                  f'[include]\n\tpath = {self.work}/dots/more\n',
                'dots/more': '[user]\n\tname = u\n', 'dots/ignore': 'o\n',
                'dots/attributes': '*.o binary\n', 'scripts/pre-commit': '#!/bin/sh\n'}
        for name, text in mine.items():
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text(text)
        (home / '.gitconfig').symlink_to(self.work / 'dots/gitconfig')
        self.git('config', 'core.hooksPath', 'scripts')
        attack = ('for f in ' + ' '.join(mine) + '; do echo EVIL >>$f; mv $f gone; '
                  'echo EVIL >new; mv new $f; done; mv dots d; mv scripts s; echo two >>file')
        subprocess.run(['sh', '-c', attack], cwd=shutil.copytree(self.work, self.dir / 'other'),
                       check=True)
        for name in mine:  # where nothing is pinned
            self.assertFalse((self.dir / 'other' / name).exists())
        for git_write in ('no', 'yes'):
            (self.work / 'file').write_text('one\n')
            client, _ = self.confined(git_write=git_write)
            session = client.new_session(self.work)
            self.shell(client, session, attack)
            self.assertEqual({name: (self.work / name).read_text() for name in mine}, mine)
            self.assertEqual((self.work / 'file').read_text(), 'one\ntwo\n')
            self.ends(client)

    def test_a_link_on_the_way_to_the_hooks_is_told(self):
        for name in ('real', 'real/hooks', 'evil', 'evil/hooks'):
            (self.work / name).mkdir()
        (self.work / 'tools').symlink_to('real')
        self.git('config', 'core.hooksPath', 'tools/hooks')
        client, _ = self.confined()
        session = client.new_session(self.work)
        self.shell(client, session, 'echo EVIL >tools/hooks/pre-commit; ln -sfn evil tools')
        told = self.wait_notices(client, 2)  # as it was when the turn began, and as it is now
        for text in told:
            self.assertNames(text, 'tools: a symbolic link')
        self.assertFalse((self.work / 'real/hooks/pre-commit').exists())
        self.assertEqual((self.work / 'tools').readlink().name, 'evil')
        self.ends(client)

    def test_a_configuration_that_cannot_be_read_hides_nothing(self):
        client, _ = self.confined()
        session = client.new_session(self.work)
        self.shell(client, session, 'mkdir -p sub bare/objects bare/refs; echo EVIL >sub/.envrc; '
                                    'echo >bare/HEAD; echo % >bare/config')
        told = self.wait_notices(client, 2)
        self.assertNames(told[0], 'sub/.envrc | direnv')
        self.assertNames(told[1], f'cannot look in {self.work} | {self.work}/bare/config | line 1')
        self.ends(client)
        client, _ = self.confined()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertNames(str(caught.exception),
                         f'{self.work}/bare/config | line 1 | isolation = copy')
        (self.work / 'bare/config').write_text('')
        client.new_session(self.work)
        self.ends(client)

    def test_a_worktree_reads_its_repository(self):
        self.git('add', 'file')
        self.git('commit', '-q', '-m', 'first')
        self.git('worktree', 'add', '-q', str(self.dir / 'home/tree'))
        client, _ = self.confined()
        session = client.new_session(self.dir / 'home/tree')
        self.assertIn('first', self.shell(client, session, 'git log --format=%s'))
        self.ends(client)

    def test_an_agent_in_a_worktree_writes_nothing_into_its_repository(self):
        scene = Scene(self.dir / 'home', self.work)
        scene.outside(self)
        client, _ = self.confined()
        session = client.new_session(self.work)
        scene.attack(self, client, session)
        self.ends(client)

    def test_a_forged_repository_shows_nothing(self):
        """Agents of two workspaces in one folder make that folder look like a repository."""
        home = self.dir / 'home'
        tree = forge_repository(home)
        (home / 'file').write_text('mine\n')
        for git_write in ('no', 'yes'):
            client, _ = self.confined(git_write=git_write)
            session = client.new_session(tree)
            said = self.shell(client, session, f'cat {home}/file; echo EVIL >>{home}/file; pwd')
            self.assertIn(f'{tree}\\n', said)
            self.assertNotIn('mine', said)
            self.assertEqual((home / 'file').read_text(), 'mine\n')
            self.ends(client)

    def test_git_write_lets_an_agent_in_a_worktree_commit(self):
        scene = Scene(self.dir / 'home', self.work)
        client, _ = self.confined(git_write='yes')
        session = client.new_session(self.work)
        self.shell(client, session, 'echo three >>file; git commit -q -a -m third')
        self.assertEqual(scene.run('git log -1 --format=%s').stdout, b'third\n')
        self.ends(client)

    def test_what_would_undo_the_confinement_is_refused(self):
        (self.dir / 'link').symlink_to(self.work)
        client, _ = self.confined()
        for folder, facts in ((self.dir / 'home', 'home'), (self.work / '.git', '.git'),
                              (self.state, 'contains'), (self.dir / 'link', 'symbolic link')):
            with self.assertRaises(RpcError) as caught:
                client.new_session(folder)
            self.assertNames(str(caught.exception), f'{folder} | {facts}')
        self.ends(client)

    def test_a_workspace_does_not_contain_the_brokers_own_files(self):
        """The configuration lies elsewhere, but a link on the way to it is in the workspace."""
        (self.work / 'sub').mkdir()
        (self.work / 'sub/link').symlink_to(self.dir / 'config')
        options = self.config(confine=confinement.CONFINE, isolation='none',
                              allow_read=str(PROGRAMS))
        client = self.broker(options=['--config', str(self.work / 'sub/link'), *options[2:]],
                             agent=[AGENT])
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertNames(str(caught.exception), f'{self.work} | {self.work}/sub/link')
        client.new_session(self.work / '.vscode')
        self.ends(client)


if __name__ == '__main__':
    confinement.become_user(PROGRAMS)
    case.main()
