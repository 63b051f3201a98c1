#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that somebody writes to all the time, on either side, do not disturb anything else."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

import case

from sync_case import PATIENCE, TurnCase

MIB = 1 << 20
WRITER = case.program('ACP_BUSY_WRITER', 'tests/support/writer/libbusy-writer.so')

# Writes rows until its stdin ends, each in its own transaction, and prints a line after it has
# begun. It writes at most 900 rows, 18 MB, so that even on a fast disk the file stays small enough.
INSERTS = """
import sqlite3, sys, threading
base = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
base.execute('pragma journal_mode=wal')
base.execute('create table if not exists rows (id integer primary key, text)')
done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
count = 0
while not done.is_set():
    if count < 900:
        base.execute('insert into rows (text) values (?)', ('x' * 20000,))
    else:
        base.execute('update rows set text = ? where id = ?',
                     (str(count % 10) * 20000, count % 900 + 1))
    count += 1
    if count == 50:
        print('writing', flush=True)
    if count % 300 == 0:
        base.execute('pragma wal_checkpoint(truncate)')
base.close()
print(min(count, 900), flush=True)
"""

# A git that dies the first time that it runs one of three commands.
DYING_GIT = """#!/bin/sh
case "$*" in
*write-tree*|*diff-files*|*force-remove*)
	mkdir "{folder}/$1.died" 2>/dev/null && kill -BUS $$ ;;
esac
exec {git} "$@"
"""


class Busy:
    """The writer writes between two reads of a reader, so the test does not depend on timing."""

    transport = None

    def setUp(self):
        super().setUp()
        self.list = self.dir / 'written'

    def environment(self):
        return {**super().environment(), 'LD_PRELOAD': WRITER, 'ACP_WRITER': str(self.list)}

    def opened(self, **keys):
        return super().opened(transport=self.transport, **keys)

    def write_always(self, path, how):
        with open(self.list, 'a', encoding='utf-8') as written:
            written.write(f'{how} {path}\n')

    def rest(self):
        self.list.write_text('')

    def named(self, client, name):
        return [text for text in self.notices(client) if name in text]

    def turns(self, client, session):
        """Two turns, in which all other files travel."""
        runtime = self.runtime(client, session)
        for number in '12':
            (self.work / 'here').write_text(number)
            client.prompt(session, f'terminal cp here there{number}', seconds=PATIENCE)
            self.assertEqual((self.work / f'there{number}').read_text(), number)
            self.assertEqual((runtime / 'here').read_text(), number)

    def busy_here(self, how, size, **keys):
        first = b'first\n' * (size // 6)
        (self.work / 'log').write_bytes(first)
        client, session = self.opened(**keys)
        runtime = self.runtime(client, session)
        self.write_always(self.work / 'log', how)
        with open(self.work / 'log', 'ab') as log:
            log.write(b'second\n')
        self.turns(client, session)
        self.assertEqual((runtime / 'log').read_bytes(), first)
        self.assertEqual(len(self.named(client, 'log')), 1, self.notices(client))
        self.rest()
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assertEqual((runtime / 'log').read_bytes(), (self.work / 'log').read_bytes())
        self.write_always(self.work / 'log', how)
        with open(self.work / 'log', 'ab') as log:
            log.write(b'third\n')
        client.prompt(session, 'say y', seconds=PATIENCE)
        self.assertEqual(len(self.named(client, 'log')), 1, self.notices(client))

    def test_60_mib_here(self):
        self.busy_here('append', 60 * MIB)


class Here(Busy):
    def test_a_file_here_that_grows(self):
        self.busy_here('append', 5 * MIB)

    def test_a_file_here_that_is_written_in_place(self):
        self.busy_here('change', 5 * MIB)

    def test_a_big_file_here(self):
        self.busy_here('change', 6 * MIB, big_file='1m')

    def test_a_file_here_that_gets_shorter(self):
        self.busy_here('truncate', 5 * MIB)

    def test_a_big_file_here_that_gets_shorter(self):
        self.busy_here('truncate', 6 * MIB, big_file='1m')

    def test_a_file_here_is_written_before_the_session_begins(self):
        (self.work / 'log').write_bytes(b'x' * 5 * MIB)
        self.write_always(self.work / 'log', 'append')
        client, session = self.opened()
        self.turns(client, session)
        self.assertFalse((self.runtime(client, session) / 'log').exists())
        self.assertEqual(len(self.named(client, 'log')), 1, self.notices(client))
        self.rest()
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assertEqual((self.runtime(client, session) / 'log').read_bytes(),
                         (self.work / 'log').read_bytes())


class There(Busy):
    def busy_there(self, how, size, **keys):
        first = b'first\n' * (size // 6)
        (self.work / 'log').write_bytes(first)
        client, session = self.opened(**keys)
        log = self.runtime(client, session) / 'log'
        self.write_always(log, how)
        with open(log, 'ab') as file:
            file.write(b'second\n')
        self.turns(client, session)
        self.assertLessEqual(len(self.named(client, 'log')), 1, self.notices(client))
        was_left = (self.work / 'log').read_bytes() == first
        self.rest()
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assertEqual((self.work / 'log').read_bytes(), log.read_bytes())
        return was_left, self.named(client, 'log')

    def assert_left(self, *arguments, **keys):
        was_left, told = self.busy_there(*arguments, **keys)
        self.assertTrue(was_left)
        self.assertEqual(len(told), 1, told)

    def test_a_file_there_that_grows(self):
        self.busy_there('append', 5 * MIB)

    def test_a_file_there_that_is_written_in_place(self):
        self.busy_there('change', 5 * MIB)

    def test_a_file_there_that_gets_shorter(self):
        self.assert_left('truncate', 5 * MIB)

    def test_a_big_file_there(self):
        self.busy_there('append', 6 * MIB, big_file='1m')

    def test_a_big_file_there_that_is_written_in_place(self):
        self.busy_there('change', 6 * MIB, big_file='1m')

    def test_a_big_file_there_that_gets_shorter(self):
        self.assert_left('truncate', 6 * MIB, big_file='1m')

    def test_60_mib_there(self):
        self.busy_there('append', 60 * MIB)


@unittest.skipIf(case.SANITIZED, 'the sanitizer has to be loaded first')
class ByGit(Here, There, TurnCase):
    transport = 'git'


class Databases:
    """An SQLite database that an application works with."""

    transport = None

    @contextlib.contextmanager
    def written(self, path):
        with subprocess.Popen([sys.executable, '-c', INSERTS, path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as inserts:
            self.assertEqual(inserts.stdout.readline(), 'writing\n')
            try:
                yield
            finally:
                inserts.stdin.close()
            self.count = int(inserts.stdout.readline())

    def rows(self, path):
        base = sqlite3.connect(path)
        self.addCleanup(base.close)
        self.assertEqual(base.execute('pragma integrity_check').fetchall(), [('ok',)])
        return base.execute('select count(*) from rows').fetchone()[0]

    def assert_named_once(self, client):
        for name in 'base.db"', 'base.db-wal', 'base.db-shm':
            named = [text for text in self.notices(client) if name in text]
            self.assertLessEqual(len(named), 1, self.notices(client))

    def test_it_is_here(self):
        with self.written(self.work / 'base.db'):
            client, session = self.opened(transport=self.transport)
            for number in range(4):
                client.prompt(session, f'terminal echo {number} > there', seconds=PATIENCE)
                self.assertEqual((self.work / 'there').read_text(), f'{number}\n')
        self.assert_named_once(client)
        client.prompt(session, 'say x', seconds=PATIENCE)
        runtime = self.runtime(client, session)
        self.assertEqual(sorted(path.name for path in runtime.glob('base*')), ['base.db'])
        self.assertEqual(self.rows(runtime / 'base.db'), self.count)

    def test_it_is_there(self):
        client, session = self.opened(transport=self.transport)
        runtime = self.runtime(client, session)
        with self.written(runtime / 'base.db'):
            for number in range(4):
                (self.work / 'here').write_text(f'{number}\n')
                client.prompt(session, 'say x', seconds=PATIENCE)
                self.assertEqual((runtime / 'here').read_text(), f'{number}\n')
        self.assert_named_once(client)
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assertEqual(sorted(path.name for path in self.work.glob('base*')), ['base.db'])
        self.assertEqual(self.rows(self.work / 'base.db'), self.count)


class Dying(TurnCase):
    """
    A file that gets shorter while git reads it (for example as git writes its index) kills git.
    """

    def environment(self):
        folder = self.dir / 'programs'
        if not folder.exists():
            folder.mkdir()
            git = shutil.which('git')
            (folder / 'git').write_text(DYING_GIT.format(folder=folder, git=git))
            (folder / 'git').chmod(0o700)
        env = super().environment()
        return {**env, 'PATH': f'{folder}:{env["PATH"]}'}

    def test_it_is_asked_again(self):
        (self.work / 'gone').write_text('gone\n')
        client, session = self.opened(transport='git')
        client.prompt(session, 'terminal echo new > new; rm gone', seconds=PATIENCE)
        self.assertEqual(sorted(path.name for path in self.work.iterdir()), ['new'])
        died = {path.stem for path in (self.dir / 'programs').glob('*.died')}
        self.assertEqual(died, {'write-tree', 'diff-files', 'update-index'})
        failed = [text for text in self.notices(client) if 'status' in text]
        self.assertEqual(failed, [])


class DatabasesByGit(Databases, TurnCase):
    transport = 'git'


if __name__ == '__main__':
    case.main()
