#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A host whose disk is full: the broker removes what it has begun there, and the error says that the
disk is full, and where.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from acp import RpcError
from case import main
from ssh_case import SshCase

ROOM, TOO_MUCH = '8m', 24 * 1024 * 1024


@unittest.skipUnless(os.getuid() == 0, 'no file system can be mounted')
class Full(SshCase):
    transport = 'git'

    def make_sshd(self):
        """
        Below this folder there is little room. sshd starts after the mount, so it sees the small
        disk.
        """
        self.small = pathlib.Path(tempfile.mkdtemp(prefix='acp-small-'))
        self.addCleanup(shutil.rmtree, self.small, True)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={ROOM}', 'small', self.small],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest('no file system can be mounted here')
        self.addCleanup(subprocess.run, ['umount', '-l', self.small], check=False)
        return super().make_sshd()

    def git(self, *words):
        subprocess.run(['git', '-C', self.work, '-c', 'user.name=A', '-c', 'user.email=a@b',
                        *words], check=True, capture_output=True)

    def begun(self):
        return [path for pattern in ('tmp_*', '*.tmp', 'work.*', 'incoming')
                for path in self.small.rglob(pattern)]

    def refused(self, client):
        with self.assertRaises(RpcError) as raised:
            client.new_session(self.work)
        self.assertEqual(raised.exception.data['code'], 'DISK_FULL', raised.exception)
        self.assertIn(str(self.small), str(raised.exception))
        self.assertEqual(self.begun(), [])

    def check_works(self, client):
        session = client.new_session(self.work)
        client.prompt(session, 'say back')
        self.assertEqual((self.runtime(client, session) / 'a').read_text(), 'a')
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def copied(self):
        client = self.broker(options=self.config(
            transport=self.transport, persistence='reuse', runtime_root=self.small))
        client.initialize()
        return client

    def test_a_workspace_that_has_no_room_there(self):
        (self.work / 'a').write_text('a')
        for number in range(24):
            (self.work / f'big{number}').write_bytes(os.urandom(TOO_MUCH // 24))
        client = self.copied()
        self.refused(client)
        self.refused(client)
        for number in range(24):
            (self.work / f'big{number}').unlink()
        self.check_works(client)

    def test_a_disk_that_gets_full_is_for_the_agent_to_clean_up(self):
        (self.work / 'a').write_text('a')
        (self.work / 'b').write_text('b')
        client = self.copied()
        session = client.new_session(self.work)
        there = self.runtime(client, session)
        full = there.parent / 'full'
        with contextlib.suppress(OSError), open(full, 'wb', buffering=0) as file:
            for size in (1 << 16, 1):  # not even a byte more
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass
        (self.work / 'a').write_text('mine' * 10000)
        client.prompt(session, f'terminal rm {full}; echo its > b')
        self.assertEqual((there / 'a').read_text(), 'mine' * 10000)
        self.assertEqual((self.work / 'b').read_text(), 'its\n')
        titles = [m.params['update'].get('title', '') for m in client.received
                  if m.method == 'session/update']
        self.assertTrue([title for title in titles if 'full' in title and str(self.small) in title
                         or 'room' in title], titles)

    def test_a_history_that_has_no_room_there(self):
        self.git('init', '-q')
        (self.work / 'big').write_bytes(os.urandom(TOO_MUCH))
        self.git('add', '.')
        self.git('commit', '-qm', 'one')
        (self.work / 'big').unlink()
        (self.work / 'a').write_text('a')
        self.git('add', '.')
        self.git('commit', '-qam', 'two')
        client = self.copied()
        client.new_session(self.work)
        client.wait_log('the disk is full')
        self.assertEqual(self.begun(), [])
        self.check_works(client)


if __name__ == '__main__':
    main()
