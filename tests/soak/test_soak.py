#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A short soak, and a check that it notices everything that it counts."""

import fcntl
import os
import subprocess
import unittest

import places  # first: it says where the others are
import growth
import kinds
import left
import processes
import repositories
import soak
from case import main
import stint

KILLS = 3  # on each provider


class Short(unittest.TestCase):
    def test_nothing_is_left(self):
        names = places.that_can_be_started()
        lines = []
        wrong = soak.soak(KILLS * len(names), names, '7', 3, lines.append)
        self.assertEqual(wrong, 0, '\n'.join(lines))
        self.assertIn(f'soak: {KILLS * len(names)} of {KILLS * len(names)} kills, 0 left, 0 wrong',
                      lines[-1])


class Growth(unittest.TestCase):
    def test_what_stays_as_it_is_has_not_grown(self):
        self.assertIsNone(growth.verdict([(500, 30), (700, 31), (900, 40)] + [(950, 40)] * 17))
        self.assertIsNone(growth.verdict([(950 + 90 * (i % 3), 40) for i in range(20)]))

    def test_what_grows_to_the_end_is_found(self):
        self.assertIn('KiB', growth.verdict([(500 + 100 * i, 40) for i in range(20)]))
        self.assertIn('open files', growth.verdict([(500, 40 + i) for i in range(20)]))


class Counts(unittest.TestCase):
    """Things that are planted in a finished stint are counted, each under its own kind."""

    def setUp(self):
        self.stint = stint.Stint('copy', '7', 0)
        self.stint.setUp()
        self.addCleanup(self.stint.doCleanups)
        self.stint.edit()
        self.stint.open()
        self.stint.close()

    def assert_counted(self, kind):
        self.stint.left_seconds = 5
        found = {what for what, items in left.count(self.stint).items() if items}
        self.assertEqual(found, {kind} if kind else set())

    def test_nothing(self):
        self.assert_counted(None)

    def test_a_process(self):
        process = subprocess.Popen(['sleep', '100'], env=self.stint.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assert_counted('processes')
        process.kill()

    def test_an_edit(self):
        (self.stint.work / 'here').write_text('another\n')
        self.assert_counted('lost edits')

    def test_a_parked_edit(self):
        (self.stint.work / 'here.x.acp-conflict').write_text('x')
        self.assert_counted('parked edits')

    def test_a_parked_file(self):
        file = self.stint.state / 'stores/x/parked/20260101T000000-0/000001/runtime/here'
        file.parent.mkdir(parents=True)
        file.write_text('x')
        self.assert_counted('parked edits')

    def test_a_temporary_file(self):
        (self.stint.work / '.acp-broker-1').write_text('x')
        self.assert_counted('temporary files')

    def test_a_folder_of_a_run(self):
        (self.stint.dir / f'acp-broker.{32 * "a"}').mkdir()
        self.assert_counted('temporary files')

    def test_a_lock(self):
        path = next((self.stint.state / 'stores').glob('*/*.lock'))
        with open(path, 'w', encoding='utf-8') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assert_counted('held locks')

    def test_a_record_that_is_open(self):
        self.stint.launch(spared=False)
        client = self.stint.client
        client.initialize()
        self.stint.session = client.new_session(self.stint.work)
        def is_written():
            return left.open_records(self.stint) and not left.temporary(self.stint)
        self.stint.recover()
        self.assertTrue(processes.wait_until(is_written, 20))
        os.kill(client.pid, 9)
        client.wait()
        self.assert_counted('open records')

    def test_a_sandbox_that_is_not_listed(self):
        self.stint.place.unlisted = lambda listed: ['box'] if 'box' not in listed else []
        self.assert_counted('unlisted sandboxes')

    def test_a_broker_that_grows(self):
        result = stint.Result('copy', '7')
        result.lives = [(12, 0, []), (12, 9 << 20, []), (12, 0, ['a'] * 5), (12, 0, ['a'] * 4)]
        self.assertEqual(len(soak.growth([result])), 2)


class Repositories(unittest.TestCase):
    def test_two_kinds_are_as_a_plain_clone(self):
        lines = []
        wrong = repositories.soak(['plain', 'case'], 2, 2, lines.append)
        self.assertEqual(wrong, 0, '\n'.join(lines))
        self.assertIn('2 kinds, 2 turns each, 0 differ', lines[-1])

    def test_a_difference_is_told_in_both_directions(self):
        play = repositories.Play('sha256', repositories.TURNS)
        play.found = {'here status': 'turn 1'}
        told = play.judge()
        self.assertEqual(len(told), 1 + len(kinds.KINDS['sha256'].differs))
        self.assertIn('here status differs', told[0])
        play.found = dict.fromkeys(play.kind.differs, 'turn 1')
        self.assertEqual(play.judge(), [])


if __name__ == '__main__':
    main()
