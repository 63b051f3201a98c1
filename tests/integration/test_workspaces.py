#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Workspaces in sync: repositories of all kinds, two roots, and files that are saved all the time.
"""

import fcntl
import os
import subprocess
import threading

import case

from acp import RpcError
from processes import PATIENCE
from sync_case import TurnCase
from sync_room import POINTS


class FirstCopy(TurnCase):
    """Ignored files are copied once, by the only broker that has the lock of the copy's folder."""

    def setUp(self):
        super().setUp()
        (self.work / '.gitignore').write_text('ignored\n')
        (self.work / 'ignored').write_text('of the workspace')

    def locked(self, **keys):
        """A copy that another broker is making: returns its root and the lock."""
        client, session = self.opened(**keys)
        root = self.runtime(client, session)
        self.ended(client)
        self.assertEqual((root / 'ignored').read_text(), 'of the workspace')
        (root.parent / '.made').unlink()
        (root / 'ignored').unlink()
        folder = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        return root, folder

    def test_who_comes_second_waits_and_finds_it_done(self):
        root, folder = self.locked()
        client = self.copied()
        opening = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
        (root / 'ignored').write_text('of the first')
        (root.parent / '.made').touch()
        fcntl.flock(folder, fcntl.LOCK_UN)
        client.answer(opening, PATIENCE)
        self.assertEqual((root / 'ignored').read_text(), 'of the first')

    def test_who_comes_second_waits_no_longer_than_is_said(self):
        root, folder = self.locked(prepare_timeout='3s')
        client = self.copied(prepare_timeout='3s')
        opening = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
        with self.assertRaises(RpcError) as refused:
            client.answer(opening, PATIENCE)
        self.assertEqual(refused.exception.data['code'], 'TIMEOUT_EXCEEDED')
        self.assertIn('prepare-timeout', str(refused.exception))
        self.assertFalse((root / 'ignored').exists())
        fcntl.flock(folder, fcntl.LOCK_UN)
        client.new_session(self.work)
        self.assertEqual((root / 'ignored').read_text(), 'of the workspace')

    def test_two_that_open_a_workspace_at_once_make_one_copy(self):
        (self.work / 'ignored').unlink()
        for number in range(300):
            (self.work / f'{number}.ignored').write_text(f'{number} ' * (number * 37 % 4000))
        (self.work / '.gitignore').write_text('*.ignored\n')
        clients = [self.copied(), self.copied()]
        openings = [client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
                    for client in clients]
        sessions = [client.answer(opening, PATIENCE)['sessionId']
                    for client, opening in zip(clients, openings)]
        root = self.runtime(clients[0], sessions[0])
        for number in range(300):
            self.assertEqual((root / f'{number}.ignored').read_text(),
                             (self.work / f'{number}.ignored').read_text())


class CutOff(TurnCase):
    """The broker is killed when the merge is here but not yet there."""

    START = '  x();\nint f() {\nb\nb\n}\n  return;\na\nd\n'
    END = 'a\n}\nb\n'

    def killed(self, point):
        """
        Kills the broker at a point. Both sides have changed a text; if it were merged again with
        the old base, a line would come twice.
        """
        path, when = self.work / 'text', self.dir / 'when'
        path.write_text(f'{self.START}e\n{self.END}')
        profile = self.dir / 'config-points'
        profile.write_text('[profile "copy"]\n\tisolation = copy\n')
        client = self.start(
            [POINTS, '--config', str(profile), '--profile', 'copy', '--', *self.agent_argv()],
            env={**self.environment(), 'ACP_POINT': f'{point}:1:kill',
                 'ACP_POINT_WHEN': str(when)})
        client.initialize()
        session = client.new_session(self.work)
        root = self.runtime(client, session)
        (root / 'text').write_text(f'{self.START}e\na\n{self.END}')
        path.write_text(f'{self.START}c\n{self.END}')
        when.touch()
        client.start_prompt(session, 'say never')
        client.wait(PATIENCE)
        self.assertEqual(path.read_text(), f'{self.START}c\na\n{self.END}')
        return root

    def test_what_was_merged_is_not_merged_again(self):
        root = self.killed('round.applied')
        self.opened()
        for side in (self.work, root):
            self.assertEqual((side / 'text').read_text(), f'{self.START}c\na\n{self.END}')

    def test_nor_is_it_where_both_go_on(self):
        root = self.killed('base.setting')
        (root / 'text').write_text(f'{self.START}e\na\n{self.END}agent\n')
        self.opened()
        for side in (self.work, root):
            self.assertEqual((side / 'text').read_text(),
                             f'{self.START}c\na\n{self.END}agent\n')


class Saving(TurnCase):
    def test_no_save_of_the_user_is_lost_while_the_agent_works(self):
        """An editor saves one file as fast as it can, in both of the ways in which editors save."""
        path = self.work / 'text'
        path.write_text('start\n')
        client, session = self.opened()
        stop, last = threading.Event(), ['start\n']

        def save():
            number = 0
            while not stop.wait(0.002):
                number += 1
                last[0] = f'person {number}\n'
                if number % 2:
                    path.write_text(last[0])
                else:
                    (self.work / 'text.new').write_text(last[0])
                    (self.work / 'text.new').rename(path)
        thread = threading.Thread(target=save)
        thread.start()
        try:
            for turn in range(4):
                prompt = client.start_prompt(
                    session, f'terminal echo agent {turn} > text; echo {turn} > other')
                try:
                    client.answer(prompt, PATIENCE)
                except RpcError as failed:  # the file was changed all the time
                    self.assertEqual(failed.data['code'], 'SYNC_BUSY')
        finally:
            stop.set()
            thread.join()
        self.assertEqual(path.read_text(), last[0])
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(path.read_text(), last[0])
        self.assertEqual((self.runtime(client, session) / 'text').read_text(), last[0])


class Workspaces(TurnCase):
    def git(self, where, *words):
        return subprocess.run(
            ['git', '-C', str(where), '-c', 'user.name=A', '-c', 'user.email=a@b',
             '-c', 'protocol.file.allow=always', *words],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode()

    def repository(self, where):
        where.mkdir(exist_ok=True)
        self.git(where, 'init', '-q')
        (where / 'a').write_text('1\n')
        self.git(where, 'add', 'a')
        self.git(where, 'commit', '-qm', 'first')

    def works(self, where):
        """A turn that changes a file, adds one and looks at the history."""
        client = self.copied()
        session = client.new_session(where)
        client.prompt(session, 'terminal cat a; echo 2 > a; echo new > b', seconds=PATIENCE)
        self.assertEqual((where / 'a').read_text(), '2\n')
        self.assertEqual((where / 'b').read_text(), 'new\n')
        (where / 'a').write_text('3\n')
        client.prompt(session, 'terminal cat a', seconds=PATIENCE)
        self.assertTrue([text for text in client.texts() if '"3\\\\n"' in text or '3\\n' in text],
                        client.texts())
        return client, session

    def test_a_directory_that_is_no_repository(self):
        (self.work / 'a').write_text('1\n')
        self.works(self.work)

    def test_a_worktree(self):
        self.repository(self.dir / 'main')
        self.git(self.dir / 'main', 'worktree', 'add', '-q', '-b', 'side', str(self.dir / 'tree'))
        client, session = self.works(self.dir / 'tree')
        client.prompt(session, 'terminal git log --oneline; git branch --show-current',
                      seconds=PATIENCE)
        self.assertTrue([text for text in client.texts() if 'first' in text and 'side' in text])
        self.assertEqual((self.dir / 'main' / 'a').read_text(), '1\n')
        self.assertTrue((self.dir / 'tree' / '.git').is_file())

    def test_a_submodule(self):
        self.repository(self.dir / 'inner')
        self.repository(self.work)
        self.git(self.work, 'submodule', 'add', '-q', str(self.dir / 'inner'), 'inner')
        self.git(self.work, 'commit', '-qm', 'second')
        self.works(self.work / 'inner')
        client, session = self.opened()
        client.prompt(session, 'terminal echo 9 > inner/a; echo 9 > a', seconds=PATIENCE)
        self.assertEqual((self.work / 'inner' / 'a').read_text(), '9\n')
        self.assertTrue((self.work / 'inner' / '.git').is_file())

    def test_a_name_that_is_also_one_of_the_brokers_own(self):
        for name in '.place', '.made', '.acp-broker':
            where = self.dir / name
            where.mkdir()
            (where / 'a').write_text('1\n')
            (where / '.gitignore').write_text('kept\n')
            (where / 'kept').write_text('ignored\n')
            client, session = self.works(where)
            self.assertEqual((self.runtime(client, session) / 'kept').read_text(), 'ignored\n')
            self.ended(client)

    def test_a_copy_is_filled_without_the_folders_that_an_agent_can_write(self):
        (self.work / '.gitignore').write_text('kept\n')
        (self.work / 'kept').write_text('ignored\n')
        client, session = self.opened()
        folder = self.runtime(client, session).parent
        self.ended(client)
        (folder / '.made').unlink()
        (folder / '.rules').mkdir()
        (folder / '.rules' / 'a').write_text('1\n')
        client, session = self.opened()
        self.assertEqual((folder / '.rules' / 'a').read_text(), '1\n')
        self.assertEqual((self.runtime(client, session) / 'kept').read_text(), 'ignored\n')
        self.ended(client)
        self.assertEqual([path for path in folder.parent.iterdir() if path != folder
                          and path.name.endswith('.rules')], [])

    def part_of_a_repository(self):
        """A workspace inside a larger repository, whose ignore rules are at its top."""
        self.repository(self.dir / 'whole')
        (self.dir / 'whole' / '.gitignore').write_text('node_modules/\n/parts/*/out\n!kept.log\n')
        (self.dir / 'whole' / '.git/info/exclude').write_text('/parts/web/private\n*.log\n')
        part = self.dir / 'whole' / 'parts' / 'web'
        (part / 'node_modules' / 'left').mkdir(parents=True)
        (part / 'node_modules' / 'left' / 'pad.js').write_text('pad')
        (part / 'a').write_text('1\n')
        return part

    def stays_there(self, **keys):
        """Files that rules above the workspace ignore are sent once, and never come back."""
        part = self.part_of_a_repository()
        client = self.copied(**keys)
        session = client.new_session(part)
        client.prompt(session, 'terminal cat node_modules/left/pad.js > found; echo 2 > a;'
                      ' mkdir -p out private node_modules/new deep/node_modules;'
                      ' echo x | tee out/x private/x node_modules/new/x deep/node_modules/x'
                      ' deep/kept.log kept.log lost.log; echo y > deep/out', seconds=PATIENCE)
        here = {str(path.relative_to(part)) for path in part.rglob('*') if path.is_file()}
        self.assertEqual(here, {'a', 'found', 'deep/out', 'deep/kept.log', 'kept.log',
                                'node_modules/left/pad.js'})
        self.assertEqual((part / 'found').read_text(), 'pad')

    def test_a_part_of_a_repository(self):
        self.stays_there()

    def test_a_part_of_a_repository_by_rsync(self):
        self.stays_there(transport='rsync')

    def test_two_roots_are_both_kept(self):
        other = self.dir / 'other'
        other.mkdir()
        (other / 'there').write_text('there')
        (self.work / 'here').write_text('here')
        client = self.copied()
        session = client.new_session(self.work, additionalDirectories=[str(other)])
        opened = next(line for line in self.journal('<') if b'"session/new"' in line)
        further = opened.split(b'additionalDirectories":["')[1].split(b'"')[0].decode()
        self.assertNotEqual(further, str(other))
        client.prompt(session, f'terminal mv {further}/there {further}/moved; rm here',
                      seconds=PATIENCE)
        self.assertEqual(self.tree(), {})
        self.assertEqual([path.name for path in other.iterdir()], ['moved'])
        (other / 'moved').write_text('edited')
        client.prompt(session, f'terminal cat {further}/moved', seconds=PATIENCE)
        self.assertTrue([text for text in client.texts() if 'edited' in text])

    def test_session_load_and_close(self):
        (self.work / 'a').write_text('1')
        client, session = self.opened()
        client.prompt(session, 'terminal echo 2 > a', seconds=PATIENCE)
        client.call('session/close', {'sessionId': session}, PATIENCE)
        (self.work / 'a').write_text('3')
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, PATIENCE)
        client.prompt(session, 'terminal cat a; echo 4 > a', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '4\n'})
        self.ended(client)
        client = self.copied()
        (self.work / 'a').write_text('5')
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, PATIENCE)
        self.assertEqual((self.runtime(client, session) / 'a').read_text(), '5')
        client.prompt(session, 'terminal echo 6 > a', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '6\n'})

    def test_a_session_that_is_closed_while_its_prompt_waits(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            self.wait_running(client, session)
            client.call('session/close', {'sessionId': session}, PATIENCE)
            self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'cancelled'})
        self.assertEqual(self.heard('session/prompt'), 0)

    def test_prompts_in_session_mode_wait_for_no_sync(self):
        (self.work / 'a').write_text('1')
        client, session = self.opened(sync='session-bidirectional')
        with self.held_store():
            (self.work / 'a').write_text('later')
            client.prompt(session, 'terminal cat a; echo 2 > b', seconds=PATIENCE)
        self.assertFalse([text for text in client.texts() if 'later' in text])
        self.assertEqual(self.tree(), {'a': 'later'})
        self.ended(client)
        self.assertEqual(self.tree(), {'a': 'later', 'b': '2\n'})
        self.assertEqual(self.shown(client), [])


if __name__ == '__main__':
    case.main()
