#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Big files, and many files, synced over a real sshd on loopback by both transports."""

import os
import subprocess
import time

import case
import processes

from test_ssh_sync import MIB, FarSync, look, put

HELD_MAX_KIB = 100 << 10  # the broker's memory, whatever the size of a file
WHOLE = case.WHOLE and not case.SANITIZED
SPARSE = (2048 if WHOLE else 256) * MIB  # the size of a file that has 2 MiB of data
FOLDERS = 500 if WHOLE else 50  # of a hundred files
HOLDS_MAX = 8 * MIB  # its size on the disk


class Sizes(FarSync):
    def test_a_large_sparse_file_travels_both_ways_with_its_holes_and_little_memory(self):
        here = self.work / 'sparse'
        self.write_sparse(here, SPARSE // 2, SPARSE)
        begin = time.monotonic()
        client, session, root = self.opened()
        there = root / 'sparse'
        self.assert_alike_and_sparse(here, there)
        self.write_sparse(there, SPARSE // 4 - 5, SPARSE + MIB)
        self.sync(client, session)
        self.assert_alike_and_sparse(here, there)
        self.assertEqual(here.stat().st_size, SPARSE + MIB)
        print(f'{self.id()}: {time.monotonic() - begin:.1f} s, {self.held(client)} KiB')
        if not case.SANITIZED:
            self.assertLess(self.held(client), HELD_MAX_KIB)
        self.end(client)

    def write_sparse(self, path, place, size):
        """Writes data in the middle; a hole is at the end."""
        with open(path, 'r+b' if path.exists() else 'wb') as file:
            file.truncate(size)
            file.seek(place)
            file.write(os.urandom(MIB))

    def assert_alike_and_sparse(self, here, there):
        """
        Checks that the files are equal and sparse, and that the store's copies are sparse, too.
        """
        self.assertEqual(subprocess.run(['cmp', here, there], check=False).returncode, 0)
        stored = [path for store in (self.state / 'stores').iterdir()
                  for path in store.rglob('*') if path.is_file()
                  and path.stat().st_size >= SPARSE]
        self.assertGreater(len(stored), 0)
        for path in (here, there, *stored):
            self.assertLess(path.stat().st_blocks * 512, HOLDS_MAX, path)

    def held(self, client):
        """The largest amount of memory that the broker has had, in KiB."""
        text = processes.read_file(f'/proc/{client.pid}/status').decode()
        return int(text.split('VmHWM:')[1].split()[0])

    def test_many_small_files_travel_both_ways(self):
        for folder in range(FOLDERS):
            for number in range(100):
                put(self.work, b'%d/%d' % (folder, number), b'%d %d' % (folder, number))
        client, session, root = self.opened()
        self.assert_alike(root)
        for number in range(100):
            put(root, b'7/%d' % number, b'agent')
            put(self.work, b'8/%d' % number, b'person')
            os.unlink(root / f'9/{number}')
        self.sync(client, session)
        self.assert_alike(root)
        self.assertEqual(len(look(root)), FOLDERS * 100 - 100)
        self.end(client)


class SizesByRsync(Sizes):
    transport = 'rsync'


del FarSync  # it has no tests to run

if __name__ == '__main__':
    case.main()
