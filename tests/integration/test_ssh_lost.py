#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A session whose connection is lost before its end: the broker reaches for the host once more, and
what is there is here when it has ended; where the host is out of reach, the next start does that.
"""

import json
import os
import signal

import processes

from case import PATIENCE, SANITIZED, main
from ssh_scene import Scene
from together import Together

AT_ONCE = 6
END_SECONDS = 30
LONG = '300s'  # over everything that a test waits for
LOST = 'the connection to box was lost'
REACHING = 'reaching for it once more'


class Lost(Scene):
    transport = 'git'

    def begin(self, **keys):
        """In the folder there is an edit that no turn has brought here."""
        self.keys = {**self.deadlines, 'transport': self.transport, **keys}
        self.client, self.session = self.opened(**self.keys)
        self.root = self.runtime(self.client, self.session)
        (self.root / 'late').write_text('late\n')

    def lose(self):
        self.sshd.kill_connections()
        self.client.wait_log(LOST, END_SECONDS * PATIENCE)

    def end(self, status):
        self.assertEqual(self.client.wait(END_SECONDS * PATIENCE), status, self.client.stderr)
        self.assert_nothing_runs(self.left_seconds)

    def records(self):
        return [json.loads(path.read_text()) for path in (self.state / 'sessions').glob('*.json')]

    def check_collected(self):
        self.end(0)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        records = [one for one in self.records() if one['runtimeRoot']]
        self.assertEqual({(one['state'], one['error']) for one in records}, {('stopped', None)})
        self.assertTrue(all(one['receipt']['runtimeTree'] for one in records), records)

    def check_left(self, why):
        """It is said, nothing is lost, and the next start brings it."""
        self.end(1)
        said = self.client.stderr.splitlines()[-1]
        self.assertIn(why, said)
        self.assertIn('the next start tries again, or acp-broker sessions collect', said)
        self.assertFalse((self.work / 'late').exists())
        self.assertEqual([record['state'] for record in self.records()], ['failed'])
        self.heal()
        self.client, _ = self.opened(**{**self.keys, 'prepare_timeout': LONG})
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.client.close_stdin()
        self.end(0)


class Reached(Lost):
    def test_while_nobody_asks_for_anything(self):
        self.begin()
        self.lose()
        self.client.close_stdin()
        self.check_collected()

    def test_while_it_is_collected(self):
        self.begin()
        self.shut('collect')
        self.client.close_stdin()
        self.wait_reached('collect')
        self.open_gates()
        self.lose()
        self.check_collected()


class ReachedByOpenssh(Reached):
    ssh_client = 'openssh'


class ReachedForRsync(Reached):
    transport = 'rsync'


class ReachedForRsyncByOpenssh(ReachedByOpenssh):
    transport = 'rsync'


class Ends(Lost):
    def test_the_editor_leaves_while_the_host_is_connected_to_again(self):
        self.begin()
        self.lose()
        self.shut('login')
        prompt = self.client.start_prompt(self.session, 'say back')
        self.wait_reached('login')
        self.client.close_stdin()
        self.client.response(prompt, END_SECONDS * PATIENCE)
        self.open_gates()
        self.check_collected()

    def test_a_host_that_refuses_is_left_to_the_next_start(self):
        self.begin()
        self.lose()
        self.proxy.refuses = True
        self.client.close_stdin()
        self.check_left('connecting to')

    def test_a_host_that_is_silent_is_given_up_in_time(self):
        self.begin(connect_timeout=LONG, auth_timeout=LONG, prepare_timeout='5s')
        self.lose()
        self.proxy.stall()
        self.client.close_stdin()
        self.client.wait_log(REACHING, END_SECONDS * PATIENCE)
        self.check_left('prepare-timeout')

    def test_a_second_signal_leaves_it_to_the_next_start(self):
        self.begin(connect_timeout=LONG, auth_timeout=LONG, prepare_timeout=LONG)
        self.lose()
        self.proxy.stall()
        os.kill(self.client.pid, signal.SIGTERM)
        self.client.wait_log(REACHING, END_SECONDS * PATIENCE)
        os.kill(self.client.pid, signal.SIGTERM)
        self.check_left('there is no connection to box')

    def test_a_host_that_was_waited_for_is_not_waited_for_twice(self):
        self.begin(connect_timeout=LONG, auth_timeout=LONG, prepare_timeout='5s')
        self.lose()
        self.proxy.stall()
        prompt = self.client.start_prompt(self.session, 'say back')
        self.assertTrue(processes.wait_until(
            lambda: self.client.stderr.count('Connecting to box') == 2, END_SECONDS * PATIENCE))
        self.client.close_stdin()
        self.client.response(prompt, END_SECONDS * PATIENCE)
        self.end(1)
        self.assertNotIn(REACHING, self.client.stderr)
        self.check_left('there is no connection to box')


class EndsByOpenssh(Ends):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    classes = [Reached, ReachedForRsync, Ends]
    if not SANITIZED:
        classes += [ReachedByOpenssh, ReachedForRsyncByOpenssh, EndsByOpenssh]
    return Together(AT_ONCE, (test for one in classes
                              for test in loader.loadTestsFromTestCase(one)))


if __name__ == '__main__':
    main()
