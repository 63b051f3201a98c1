#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
How the next connection ends the runner of a lost one (providers/ssh/remote/earlier.sh), in each
shell that has to do. The runner is a stand-in; test_ssh_dropped.py has the real one.
"""

import os
import pathlib
import secrets
import subprocess

from concurrent.futures import ThreadPoolExecutor

import processes

from case import ROOT, Case, main
from test_ssh_control import SHELLS

REMOTE = ROOT / 'providers/ssh/remote'
SHORT = 5  # tenths of a second, for a runner that does not end
LONG = 600

# Holds the FIFO as a runner does, until the order comes.
RUNNER = '''exec 5<>"$0/held" 6<>"$0/alive"
echo up
while read -r line <&6; do
	[ "$line" != over ] || exit 0
done
'''
# A broker uses it: it says so to everybody who asks, and ends only at the other order.
USED = RUNNER.replace(
    'done', '\tcase $line in "orphan "*) echo "used ${line#* }" >&5 ;; esac\ndone')
# Nobody uses it.
UNUSED = RUNNER.replace('done', '\tcase $line in "orphan "*) exit 0 ;; esac\ndone')
# Neither reads the order, nor ends.
DEAF = 'exec 5<>"$0/held" 6<>"$0/alive"; echo up; exec sleep 600'


class Earlier(Case):
    def setUp(self):
        super().setUp()
        self.env = {}
        boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().partition('-')[0]
        self.here = f"{boot}.{os.readlink('/proc/self/ns/pid')[5:-1]}"
        self.unseen = f'{boot}.1'  # another namespace
        self.script = ''.join((REMOTE / f'{name}.sh').read_text()
                              for name in ('members', 'earlier'))

    def make_run(self, place):
        token = secrets.token_hex(16)
        folder = self.dir / f'alive.{token}.1.{place}'
        folder.mkdir()
        os.mkfifo(folder / 'alive')
        os.mkfifo(folder / 'held')
        return folder, token

    def hold(self, folder, program, token=''):
        env = {**self.environment(), **({'ACP_BROKER_RUN': f'{token}.1.'} if token else {})}
        runner = subprocess.Popen(['sh', '-c', program, str(folder)], env=env,
                                  stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(runner.wait)
        self.addCleanup(runner.kill)
        self.addCleanup(runner.stdout.close)
        self.assertEqual(runner.stdout.readline(), b'up\n')
        return runner

    def end(self, shell, folder, how='lost', patience=LONG, node=os.uname().nodename):
        """The status, and what it says."""
        token = secrets.token_hex(16)
        line = (f'{self.script}\nacp_token={token} acp_patience={patience}\n'
                f'acp_run=/acp-broker.{token}.$$.{self.here}\n'
                f"acp_end_earlier '{folder}' '{node}' {how}\n")
        done = subprocess.run([*shell, '-c', line],
                              env={**self.environment(), 'ACP_BROKER_RUN': token, **self.env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=processes.PATIENCE)
        return done.returncode, done.stdout

    def each(self, scene):
        for shell in SHELLS:
            with self.subTest(shell=shell[0]):
                scene(shell)

    def assert_left(self, result, *facts):
        self.assertEqual(result[0], 1, result)
        self.assertEqual(result[1].split()[0], 'left')
        for fact in facts:
            self.assertIn(str(fact), result[1])

    # ---- a runner that cannot be seen ----

    def test_it_is_told_to_end(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            runner = self.hold(folder, RUNNER)
            self.assertEqual(self.end(shell, folder), (0, 'ended 1\n'))
            self.assertEqual(runner.wait(processes.PATIENCE), 0)
            self.assertFalse(folder.exists())
        self.each(scene)

    def test_what_others_have_written_does_not_matter(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            runner = self.hold(folder, f'sleep 0.2; {RUNNER}')
            with open(folder / 'alive', 'w', encoding='ascii') as fifo:
                fifo.write('no newline')
                fifo.flush()
                self.assertEqual(self.end(shell, folder), (0, 'ended 1\n'))
            self.assertEqual(runner.wait(processes.PATIENCE), 0)
        self.each(scene)

    def test_one_that_nobody_holds_has_ended(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            self.assertEqual(self.end(shell, folder), (0, ''))
            self.assertFalse(folder.exists())
        self.each(scene)

    def test_one_that_does_not_end_is_left(self):
        def scene(shell):
            for how in ('lost', 'idle', 'over'):
                folder, _ = self.make_run(self.unseen)
                runner = self.hold(folder, DEAF)
                self.assert_left(self.end(shell, folder, how, SHORT), 'request')
                self.assertIsNone(runner.poll())
                self.assertTrue((folder / 'held').exists())
        self.each(scene)

    def test_one_whose_folder_is_gone_is_left_until_it_has_ended_by_itself(self):
        def scene(shell):
            folder = self.dir / f'alive.{secrets.token_hex(16)}.1.{self.unseen}'
            self.assert_left(self.end(shell, folder), folder)
            for how in ('idle', 'over'):  # it has removed the folder
                self.assertEqual(self.end(shell, folder, how), (0, ''))
        self.each(scene)

    def test_one_that_could_not_end_everything_is_left(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            (folder / 'left').touch()
            self.assert_left(self.end(shell, folder), folder)
            self.assertTrue(folder.exists())
        self.each(scene)

    def test_one_that_finds_out_at_its_end_that_something_is_left(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            self.hold(folder, RUNNER.replace('exit 0', '{ : >"$0/left"; exit 1; }'))
            self.assert_left(self.end(shell, folder), folder)
        self.each(scene)

    def test_one_without_a_folder_is_left_until_it_has_ended_by_itself(self):
        def scene(shell):
            name = f'/acp-broker.{secrets.token_hex(16)}.1.{self.unseen}'
            for how in ('lost', 'idle'):
                self.assert_left(self.end(shell, name, how))
            self.assertEqual(self.end(shell, name, 'over'), (0, ''))
        self.each(scene)

    # ---- one that can ----

    def test_one_that_can_be_seen_is_told_to_end_too(self):
        def scene(shell):
            folder, token = self.make_run(self.here)
            runner = self.hold(folder, RUNNER, token)
            self.assertEqual(self.end(shell, folder), (0, 'ended 1\n'))
            self.assertEqual(runner.wait(processes.PATIENCE), 0)
            self.assertFalse(folder.exists())
        self.each(scene)

    def test_one_that_does_not_end_is_killed(self):
        def scene(shell):
            folder, token = self.make_run(self.here)
            runner = self.hold(folder, DEAF, token)
            self.assertEqual(self.end(shell, folder, 'lost', SHORT), (0, 'ended 1\n'))
            self.assertEqual(runner.wait(processes.PATIENCE), -9)
            self.assertFalse(folder.exists())
        self.each(scene)

    # ---- runs that killed brokers have left ----

    def test_one_that_a_broker_uses_is_kept(self):
        def scene(shell):
            for place in (self.here, self.unseen):
                folder, token = self.make_run(place)
                runner = self.hold(folder, USED, token)
                self.assertEqual(self.end(shell, folder, 'orphan'), (0, f'kept {token} used\n'))
                self.assertIsNone(runner.poll())
                self.assertEqual(self.end(shell, folder, 'dead'), (0, 'ended 1\n'))
                self.assertEqual(runner.wait(processes.PATIENCE), 0)
        self.each(scene)

    def test_all_that_ask_at_once_are_answered(self):
        def scene(shell):
            folder, token = self.make_run(self.unseen)
            self.hold(folder, USED)
            with ThreadPoolExecutor(4) as pool:
                results = pool.map(lambda _: self.end(shell, folder, 'orphan'), range(4))
                self.assertEqual(list(results), [(0, f'kept {token} used\n')] * 4)
            self.assertFalse((folder / 'asking').exists())
        self.each(scene)

    def test_who_was_killed_while_it_asked_keeps_no_other_waiting(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            (folder / 'asking').mkdir()
            self.hold(folder, UNUSED)
            self.assertEqual(self.end(shell, folder, 'orphan'), (0, 'ended 1\n'))
        self.each(scene)

    def test_the_answer_to_another_does_not_matter(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            self.hold(folder, UNUSED.replace('echo up', 'echo used another >&5; echo up'))
            self.assertEqual(self.end(shell, folder, 'orphan'), (0, 'ended 1\n'))
        self.each(scene)

    def test_one_that_nobody_uses_is_ended(self):
        def scene(shell):
            for place in (self.here, self.unseen):
                folder, token = self.make_run(place)
                runner = self.hold(folder, UNUSED, token)
                self.assertEqual(self.end(shell, folder, 'orphan'), (0, 'ended 1\n'))
                self.assertEqual(runner.wait(processes.PATIENCE), 0)
                self.assertFalse(folder.exists())
        self.each(scene)

    def test_an_unread_answer_does_not_matter(self):
        def scene(shell):
            folder, _ = self.make_run(self.unseen)
            self.hold(folder, USED.replace('echo up', 'echo used >&5; echo up'))
            self.assertEqual(self.end(shell, folder, 'dead'), (0, 'ended 1\n'))
        self.each(scene)

    def test_one_that_does_not_answer_is_kept_or_left(self):
        def scene(shell):
            folder, token = self.make_run(self.unseen)
            runner = self.hold(folder, DEAF)
            self.assertEqual(self.end(shell, folder, 'orphan', SHORT),
                             (0, f'kept {token} unseen\n'))
            self.assert_left(self.end(shell, folder, 'dead', SHORT), 'request')
            self.assertIsNone(runner.poll())
        self.each(scene)

    def test_nothing_is_killed_that_another_broker_may_use(self):
        def scene(shell):
            folder, token = self.make_run(self.here)
            runner = self.hold(folder, DEAF, token)
            self.assertEqual(self.end(shell, folder, 'orphan', SHORT),
                             (0, f'kept {token} unseen\n'))
            self.assertIsNone(runner.poll())
            self.assertTrue(folder.exists())
        self.each(scene)

    def test_one_whose_runner_was_killed_is_kept_while_its_processes_run(self):
        def scene(shell):
            folder, token = self.make_run(self.here)
            left = self.hold(folder, 'echo up; exec sleep 600', token)
            self.assertEqual(self.end(shell, folder, 'orphan'), (0, f'kept {token} unseen\n'))
            self.assertIsNone(left.poll())
            self.assertTrue(folder.exists())
        self.each(scene)

    def test_one_without_a_folder_may_have_ended(self):
        def scene(shell):
            for how in ('dead', 'orphan'):
                token = secrets.token_hex(16)
                gone = self.dir / f'alive.{token}.1.{self.unseen}'
                self.assertEqual(self.end(shell, gone, how), (0, ''))
                self.assertEqual(self.end(shell, f'/acp-broker.{token}.1.{self.here}', how),
                                 (0, ''))
                self.assertEqual(self.end(shell, f'/acp-broker.{token}.1.{self.unseen}', how),
                                 (0, f'kept {token} unseen\n'))
        self.each(scene)

    def test_one_on_another_machine_is_kept(self):
        def scene(shell):
            for how in ('dead', 'orphan'):
                folder, token = self.make_run('0.1')
                self.assertEqual(self.end(shell, folder, how, node='elsewhere'),
                                 (0, f'kept {token} elsewhere\n'))
                self.assertEqual(self.end(shell, folder, how), (0, ''))  # it was restarted
        self.each(scene)

    # ---- a grep that finds nothing in /proc ----

    def break_grep(self):
        folder = self.dir / 'bin'
        folder.mkdir()
        (folder / 'grep').write_text('#!/bin/sh\nexit 1\n')
        (folder / 'grep').chmod(0o755)
        self.env['PATH'] = f"{folder}:{os.environ['PATH']}"

    def test_without_grep_the_folder_is_proof_enough(self):
        self.break_grep()

        def scene(shell):
            folder, token = self.make_run(self.here)
            runner = self.hold(folder, RUNNER, token)
            self.assertEqual(self.end(shell, folder)[0], 0)
            self.assertEqual(runner.wait(processes.PATIENCE), 0)
        self.each(scene)

    def test_without_grep_and_proof_it_is_left(self):
        self.break_grep()

        def scene(shell):
            name = f'/acp-broker.{secrets.token_hex(16)}.1.{self.here}'
            self.assert_left(self.end(shell, name), 'grep')
            self.assertEqual(self.end(shell, name, 'over'), (0, ''))
            folder, token = self.make_run(self.here)
            self.hold(folder, DEAF, token)
            self.assert_left(self.end(shell, folder, 'lost', SHORT), 'grep')
        self.each(scene)


if __name__ == '__main__':
    main()
