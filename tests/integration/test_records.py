#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Session records that nobody can read do not disturb other work; and limits on the number of
sessions.
"""

import contextlib
import fcntl
import json
import os

import case
from acp import RpcError
from sessions_case import SessionsCase
from processes import PATIENCE


class Unreadable(SessionsCase):
    def spoil(self):
        """Puts everything that may lie in a record's place beside a good record."""
        self.folder = self.state / 'sessions'
        good = self.the_one()['id']
        text = (self.folder / f'{good}.json').read_text()
        value = json.loads(text)
        contents = {
            '1': text[:len(text) // 2], '2': '', '3': json.dumps(dict(value, version=99)),
            '4': json.dumps(dict(value, state='sleeping', id='4' * 16)), '5': text,
            '6': '\0\xff{', '7': '[' * 100000, '8': ' ' * (2 << 20)}
        self.bad = {digit * 16: content for digit, content in contents.items()}
        for name, content in self.bad.items():
            (self.folder / f'{name}.json').write_text(content)
        self.odd = ['a' * 16, 'b' * 16, 'c' * 16]
        (self.folder / f'{self.odd[0]}.json').mkdir()
        os.mkfifo(self.folder / f'{self.odd[1]}.json')
        (self.folder / f'{self.odd[2]}.json').symlink_to('/etc/hostname')
        return good

    def assert_spoiled(self, others=0):
        """Checks that none of these files was changed or removed."""
        files = sorted(self.folder.glob('*.json'))
        self.assertEqual({p.stem: p.read_text() for p in files if p.stem in self.bad}, self.bad)
        left = [p.stem for p in files if p.stem not in self.bad]
        self.assertEqual([name for name in left if name in self.odd], self.odd)
        self.assertEqual(len(left), len(self.odd) + others)

    def test_each_is_named_by_every_command_and_stays(self):
        self.left()
        good = self.spoil()
        listed = {entry['id']: entry for entry in self.listed()}
        self.assertEqual(set(listed), {good, *self.bad, *self.odd})
        table = self.sessions('list')
        for name in (*self.bad, *self.odd):
            self.assertFalse(listed[name]['isReadable'])
            self.assertIn(name, listed[name]['problem'])
            self.assertIn(name, table)
            self.assertFalse(json.loads(self.sessions('show', '--json', name))['isReadable'])
        complaints = self.sessions('collect', status=1)
        for name in (*self.bad, *self.odd):
            self.assertIn(name, complaints)
        self.assert_both()
        self.sessions('prune', '0s')
        self.assert_spoiled()

    def test_a_start_passes_them_and_finishes_what_it_can(self):
        self.left()
        self.spoil()
        other = self.dir / 'other'
        other.mkdir()
        client = self.copied()
        session = client.new_session(other)
        client.prompt(session, 'say here')
        self.wait_good_is_stopped()
        self.assert_both()
        for name in (*self.bad, *self.odd):
            client.wait_log(f'session record {name}', PATIENCE)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assert_spoiled(others=2)

    def records(self):
        """The good records."""
        return [json.loads(path.read_text()) for path in (self.state / 'sessions').glob('*.json')
                if path.is_file() and not path.is_symlink()
                and path.stem not in getattr(self, 'bad', ())]

    def wait_good_is_stopped(self):
        self.wait_state('stopped')

    def transient(self):
        client, session = self.opened(persistence='transient')
        runtime = self.runtime(client, session)
        (runtime / 'there').write_text('there\n')
        self.wait_state('active')
        self.spoil()
        return client, runtime

    def test_the_end_of_a_sandbox_passes_them(self):
        client, runtime = self.transient()
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assertFalse(runtime.exists())
        self.assertEqual((self.work / 'there').read_text(), 'there\n')
        self.assert_spoiled(others=1)

    def test_a_sandbox_stays_for_a_broker_whose_record_cannot_be_read(self):
        """That broker may be a newer one that works in the sandbox."""
        client, runtime = self.transient()
        with contextlib.closing(open(self.folder / f'{"3" * 16}.lock', 'w')) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            client.close_stdin()
            self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assertTrue(runtime.exists())
        self.assertIn('3' * 16, client.stderr)
        self.assertEqual((self.work / 'there').read_text(), 'there\n')

    def test_what_is_no_name_of_a_session(self):
        self.left()
        for command in ('show', 'collect', 'stop', 'discard'):
            for word in ('', 'abc', '../../etc/x', 'BAD/NAME', '/', '.', '*', '0' * 17, 'g' * 16,
                         'a\nb', 'ä' * 8):
                self.assertNames(self.sessions(command, '--', word, status=2), 'name of a session')


class Limit(SessionsCase):
    def workspace(self, name):
        path = self.dir / name
        path.mkdir()
        return path

    def refused(self, client, folder):
        with self.assertRaises(RpcError) as refused:
            client.new_session(folder)
        self.assertEqual(refused.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        return refused.exception.message

    def test_brokers_of_a_profile_are_counted_together(self):
        one = self.copied(max_sessions=2)
        one.new_session(self.work)
        one.new_session(self.work)
        two = self.copied(max_sessions=2)
        two.new_session(self.workspace('b'))
        third = self.workspace('c')
        three = self.copied(max_sessions=2)
        for _ in range(2):
            message = self.refused(three, third)
            for words in ('max-sessions', str(self.work), f'process {one.pid}',
                          f'process {two.pid}'):
                self.assertIn(words, message)
        self.copied(profile='another', max_sessions=2).new_session(third)
        one.close_stdin()
        self.assertEqual(one.wait(PATIENCE), 0)
        three.new_session(third)
        self.assertEqual(len(self.records()), 4)

    def test_what_a_killed_broker_left_takes_no_place(self):
        self.left(max_sessions=1)
        client = self.copied(max_sessions=1)
        client.new_session(self.workspace('b'))

    def test_of_those_that_begin_at_once_one_gets_the_last_place(self):
        clients = [self.copied(max_sessions=1) for _ in range(4)]
        folders = [self.workspace(f'w{i}') for i in range(4)]
        asked = [client.start('session/new', {'cwd': str(folder), 'mcpServers': []})
                 for client, folder in zip(clients, folders)]
        answers = [client.response(raw, PATIENCE).value for client, raw in zip(clients, asked)]
        self.assertEqual(sum('result' in answer for answer in answers), 1, answers)


if __name__ == '__main__':
    case.main()
