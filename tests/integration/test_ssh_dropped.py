#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A flow is dropped for good while new connections work. The host does not learn that nobody listens,
and the processes of the lost connection go on. They have to end before another agent starts.
"""

import shutil
import subprocess

import processes

from case import SANITIZED, main
from ssh_case import SILENT
from ssh_scene import Scene
from together import Together, tests_of

AT_ONCE = 4
LONG = '300s'  # longer than any test waits
LOST = 'to box was lost'


class Dropped(Scene):
    def begin(self, **keys):
        self.client, self.session = self.opened(
            **{**SILENT, 'transport': 'git', 'link-grace': LONG, 'persistence': 'reuse',
               **keys})
        self.root = self.runtime(self.client, self.session)

    def agents(self):
        """As this machine sees them."""
        return [pid for pid in self.remote() if processes.name_of(pid) == 'scripted-agent']

    def run_folders(self):
        return sorted((self.sshd.home / '.cache').glob('acp-broker-*/alive.*'))

    def drop(self):
        before = self.client.stderr.count(LOST)
        self.proxy.drop()
        self.assertTrue(processes.wait_until(
            lambda: self.client.stderr.count(LOST) > before))

    def end(self):
        self.client.close_stdin()
        self.assertEqual(self.client.wait(), 0, self.client.stderr)
        self.assert_nothing_runs()

    def test_the_agent_that_goes_on_there_is_ended_before_another_is_started(self):
        self.begin()
        self.client.start_prompt(
            self.session,
            'terminal (setsid sh -c "while :; do date +%N >> busy; sleep 0.05; done" &)', 'hang')
        self.assertTrue(processes.wait_until((self.root / 'busy').exists))
        first = self.agents()
        self.drop()
        self.assertEqual(self.agents(), first, 'the host has learnt of it: this shows nothing')
        self.client.prompt(self.session, 'say back')
        self.assertEqual(len(self.agents()), 1)
        self.assertNotEqual(self.agents(), first)
        before = (self.root / 'busy').read_text()
        self.client.wait_for(lambda message: 'still ran there' in (message.params or {}).get(
            'update', {}).get('title', ''))
        self.assertEqual((self.root / 'busy').read_text(), before)
        self.end()

    def test_what_it_did_meanwhile_is_here_and_the_edits_of_the_user_too(self):
        (self.work / 'a.txt').write_text('one\ntwo\nthree\n')
        self.begin()
        self.drop()
        (self.root / 'late').write_text('late\n')
        (self.work / 'a.txt').write_text('mine\ntwo\nthree\n')
        self.client.prompt(self.session, 'say back')
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.assertEqual((self.work / 'a.txt').read_text(), 'mine\ntwo\nthree\n')
        self.end()

    def test_it_is_ended_where_nobody_asks_for_anything_more(self):
        self.begin()
        (self.root / 'late').write_text('late\n')
        self.drop()
        self.assertTrue(self.agents())
        self.end()
        self.assertEqual((self.work / 'late').read_text(), 'late\n')

    def test_a_connection_that_is_dropped_twice(self):
        self.begin()
        for number in range(2):
            self.drop()
            self.client.prompt(self.session, f'say back {number}')
            self.assertEqual(len(self.agents()), 1)
        self.end()

    def test_no_folder_of_a_run_is_left(self):
        self.begin()
        self.client.prompt(self.session, 'say back')
        self.assertEqual(len(self.run_folders()), 0 if self.runner else 1)
        self.end()
        self.assertEqual(self.run_folders(), [])


class DroppedByScripts(Dropped):
    ssh_client = 'openssh'
    runner = 'never'


class DroppedApart(Dropped):
    """
    Each command has a PID namespace of its own there, so that the next connection cannot see the
    processes of a lost one.
    """
    sshd_config = Dropped.sshd_config + (
        'ForceCommand exec unshare --pid --fork --kill-child --mount-proc '
        '/bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')

    def setUp(self):
        tried = ['unshare', '--pid', '--fork', '--mount-proc', 'true']
        if subprocess.run(tried, capture_output=True, check=False).returncode != 0:
            self.skipTest('there are no PID namespaces here')
        super().setUp()

    def runners(self):
        return [pid for pid in self.remote() if processes.name_of(pid).startswith('acp-runner')]

    def refused(self):
        text = self.failure(self.client.response(
            self.client.start_prompt(self.session, 'say back')), 'AGENT_STILL_RUNNING')
        self.assertEqual(len(self.agents()), 1)
        return text

    def test_a_run_without_processes_has_ended(self):
        """As in a container that was restarted."""
        self.begin()
        self.drop()
        for pid in self.runners():
            processes.kill(pid)
        self.assertTrue(processes.wait_until(lambda: not self.agents()))
        self.client.prompt(self.session, 'say back')
        self.end()

    def test_a_run_whose_folder_is_gone_may_still_run(self):
        """Nothing shows then whether it has ended."""
        self.begin()
        self.drop()
        folder, = self.run_folders()
        shutil.rmtree(folder)
        self.refused()
        for pid in self.runners():
            processes.kill(pid)
        self.client.close_stdin()
        self.client.wait()
        self.assert_nothing_runs()


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(
        loader, [Dropped, DroppedApart] if SANITIZED else
        [Dropped, DroppedApart, DroppedByScripts]))


if __name__ == '__main__':
    main()
