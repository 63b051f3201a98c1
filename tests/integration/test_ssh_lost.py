#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A session's connection is lost before its end. The broker connects to the host once more, and brings
the changes here before it ends. If the host cannot be reached, the next start brings them.
"""

import json
import os
import shutil
import signal
import subprocess

import processes

from processes import PATIENCE
from case import BROKER, SANITIZED, main
from ssh_case import GRACE
from ssh_scene import Scene
from together import Together

AT_ONCE = 6
SHORT = '10s'  # for a connection that falls silent; even a busy machine can connect within it
LOST = 'connection to box | was lost'
REACHING = 'once more'


class Lost(Scene):
    transport = 'git'
    persistence = 'reuse'

    def begin(self, **keys):
        """The folder on the host has an edit that no turn has brought here."""
        self.keys = {'transport': self.transport, 'persistence': self.persistence, **GRACE, **keys}
        self.client, self.session = self.opened(**self.keys)
        self.root = self.runtime(self.client, self.session)
        (self.root / 'late').write_text('late\n')

    def lose(self):
        self.sshd.kill_connections()
        self.client.wait_log(LOST, PATIENCE)

    def end(self, status):
        self.assertEqual(self.client.wait(PATIENCE), status, self.client.stderr)
        self.assert_nothing_runs()

    def records(self):
        return [json.loads(path.read_text()) for path in (self.state / 'sessions').glob('*.json')]

    def check_collected(self):
        self.end(0)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        records = [one for one in self.records() if one['runtimeRoot']]
        self.assertEqual({(one['state'], one['error']) for one in records}, {('stopped', None)})
        self.assertTrue(all(one['receipt']['runtimeTree'] for one in records), records)
        self.check_kept()

    def check_kept(self):
        """
        Checks that a transient folder is gone once everything is here, and that a reused one stays.
        """
        is_there = self.root.parent.exists()
        self.assertEqual(is_there, self.persistence == 'reuse', self.client.stderr)

    def check_left(self, why):
        """
        Checks that the broker says why it could not collect, that nothing is lost, and that the
        next start brings the edit.
        """
        self.end(1)
        said = self.client.stderr.splitlines()[-1]
        self.assertNames(said, why)
        self.assertNames(said, 'next start | acp-broker sessions collect')
        self.assertFalse((self.work / 'late').exists())
        self.assertEqual([record['state'] for record in self.records()], ['failed'])
        self.heal()
        self.client, _ = self.opened(**{**self.keys, 'prepare_timeout': '10m'})
        if self.persistence == 'transient':  # this session has a folder of its own
            self.client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.client.close_stdin()
        self.end(0)
        self.check_kept()


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
        self.lose()
        self.open_gates()
        self.check_collected()

    def test_a_prompt_goes_on_in_the_same_folder(self):
        self.begin()
        self.lose()
        self.client.prompt(self.session, 'say back')
        self.assertEqual(self.runtime(self.client, self.session), self.root)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        (self.root / 'later').write_text('later\n')
        self.client.close_stdin()
        self.check_collected()
        self.assertEqual((self.work / 'later').read_text(), 'later\n')


class ReachedByOpenssh(Reached):
    ssh_client = 'openssh'


class ReachedForRsync(Reached):
    transport = 'rsync'


class ReachedForRsyncByOpenssh(ReachedByOpenssh):
    transport = 'rsync'


class ReachedOfTransient(Reached):
    persistence = 'transient'

    def test_while_it_is_removed(self):
        self.begin()
        self.shut('destroy')
        self.client.close_stdin()
        self.wait_reached('destroy')
        self.lose()
        self.open_gates()
        self.check_collected()


class ReachedOfTransientForRsync(ReachedOfTransient):
    transport = 'rsync'


class Killed(Lost):
    """The broker is killed, and the next one finds the transient folder by the record."""

    persistence = 'transient'

    def setUp(self):
        super().setUp()
        self.other = self.dir / 'other'
        self.other.mkdir()

    def kill(self):
        self.assertTrue(processes.wait_until(  # the records name their sessions
            lambda: all(one['sessions'] for one in self.records()), PATIENCE), self.records())
        os.kill(self.client.pid, signal.SIGKILL)
        self.client.wait(PATIENCE)
        self.assert_nothing_runs()

    def sessions(self, *words, status=0):
        done = subprocess.run([BROKER, *self.config(**self.keys)[:2], 'sessions', *words],
                              cwd=self.dir, env=self.environment(), text=True, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def start_elsewhere(self):
        """
        Starts the next broker with the configuration in another workspace, and waits until it has
        collected.
        """
        self.client = self.broker(options=self.config(**self.keys))
        self.client.initialize()
        self.client.new_session(self.other)
        self.client.wait_log('is collected', PATIENCE)
        self.client.close_stdin()

    def test_the_next_start_collects_it(self):
        self.begin()
        self.kill()
        self.start_elsewhere()
        self.check_collected()

    def test_the_next_start_in_the_same_workspace_collects_it_beside_its_own(self):
        self.begin()
        self.kill()
        self.client, session = self.opened(**self.keys)
        self.assertNotEqual(self.runtime(self.client, session), self.root)
        self.client.wait_log('is collected', PATIENCE)
        self.client.close_stdin()
        self.check_collected()

    def test_who_loads_the_session_has_another_and_it_is_collected_beside_it(self):
        self.begin()
        self.kill()
        self.client = self.broker(options=self.config(**self.keys))
        self.client.initialize()
        self.client.call('session/load', {
            'sessionId': self.session, 'cwd': str(self.work), 'mcpServers': []})
        self.assertNotEqual(self.runtime(self.client, self.session), self.root)
        self.client.wait_log(f'{self.root} | collected | background', PATIENCE)
        self.client.wait_log('broker is gone | is collected', PATIENCE)
        self.client.prompt(self.session, 'say back')
        there = self.runtime(self.client, self.session)
        self.assertEqual((there / 'late').read_text(), 'late\n')
        self.client.close_stdin()
        self.check_collected()

    def test_sessions_collect_does(self):
        self.begin()
        self.kill()
        self.assertIn('collected', self.sessions('collect'))
        self.check_collected()

    def check_collected(self):
        if self.client.process.poll() is None:
            super().check_collected()
        else:
            self.assertEqual((self.work / 'late').read_text(), 'late\n')
            self.assertEqual([one['state'] for one in self.records()], ['stopped'])
            self.check_kept()

    def test_one_that_was_lost_before_and_went_on_is_collected_once(self):
        """
        Two records name the folder. The first collect ends it, and also counts for the other
        record.
        """
        self.begin()
        self.lose()
        self.client.prompt(self.session, 'say back')
        (self.root / 'later').write_text('later\n')
        self.kill()
        self.assertEqual(len(self.records()), 2)
        self.sessions('collect')
        self.assertEqual((self.work / 'later').read_text(), 'later\n')
        self.assertEqual({one['state'] for one in self.records()}, {'stopped'})
        self.check_kept()

    def test_discard_removes_it(self):
        self.begin()
        self.kill()
        self.sessions('discard', self.records()[0]['id'])
        self.assertFalse((self.work / 'late').exists())
        self.assertEqual(self.records(), [])
        self.check_kept()

    def test_one_that_is_gone_is_said_and_not_made_anew(self):
        self.begin()
        self.kill()
        shutil.rmtree(self.root.parent)
        said = self.sessions('collect', status=1)
        self.assertNames(said, f'{self.root.parent} | no longer exists')
        record, = self.records()
        self.assertEqual(record['state'], 'failed')
        self.check_kept()
        self.sessions('discard', record['id'])
        self.assertEqual(self.records(), [])
        self.check_kept()


class Ends(Lost):
    def test_the_editor_leaves_while_the_host_is_connected_to_again(self):
        self.begin()
        self.lose()
        self.shut('login')
        prompt = self.client.start_prompt(self.session, 'say back')
        self.wait_reached('login')
        self.client.close_stdin()
        self.client.response(prompt, PATIENCE)
        self.open_gates()
        self.check_collected()

    def test_a_host_that_refuses_is_left_to_the_next_start(self):
        self.begin()
        self.lose()
        self.proxy.refuses = True
        self.client.close_stdin()
        self.check_left('connecting to')

    def test_a_host_that_refuses_while_it_is_removed(self):
        self.begin(persistence='transient')
        self.shut('destroy')
        self.client.close_stdin()
        self.wait_reached('destroy')
        self.proxy.refuses = True
        self.lose()
        self.open_gates()
        self.end(1)
        said = self.client.stderr.splitlines()[-1]
        self.assertNames(said, 'next start | acp-broker sessions collect')
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.heal()
        self.client, _ = self.opened(**self.keys)
        self.client.wait_log('is collected', PATIENCE)
        self.client.close_stdin()
        self.end(0)
        self.assertFalse(self.root.parent.exists())

    def test_a_host_that_is_silent_is_given_up_in_time(self):
        self.begin(prepare_timeout=SHORT)
        self.lose()
        self.proxy.stall()
        self.client.close_stdin()
        self.client.wait_log(REACHING, PATIENCE)
        self.check_left('prepare-timeout')

    def test_a_second_signal_leaves_it_to_the_next_start(self):
        self.begin()
        self.lose()
        self.proxy.stall()
        os.kill(self.client.pid, signal.SIGTERM)
        self.client.wait_log(REACHING, PATIENCE)
        os.kill(self.client.pid, signal.SIGTERM)
        self.check_left('no connection to box')

    def test_a_host_that_was_waited_for_is_not_waited_for_twice(self):
        self.begin(prepare_timeout=SHORT)
        self.lose()
        self.proxy.stall()
        before = self.client.stderr.count('Connecting to box')
        prompt = self.client.start_prompt(self.session, 'say back')
        self.assertTrue(processes.wait_until(
            lambda: self.client.stderr.count('Connecting to box') > before, PATIENCE))
        self.client.close_stdin()
        self.client.response(prompt, PATIENCE)
        self.end(1)
        self.assertNotIn(REACHING, self.client.stderr)
        self.check_left('no connection to box')


class EndsOfTransient(Ends):
    persistence = 'transient'


class EndsByOpenssh(Ends):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    classes = [Reached, ReachedForRsync, ReachedOfTransient, Killed, Ends, EndsOfTransient]
    if not SANITIZED:
        classes += [ReachedByOpenssh, ReachedForRsyncByOpenssh, ReachedOfTransientForRsync,
                    EndsByOpenssh]
    return Together(AT_ONCE, (test for one in classes
                              for test in loader.loadTestsFromTestCase(one)))


if __name__ == '__main__':
    main()
