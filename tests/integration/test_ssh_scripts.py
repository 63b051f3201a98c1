#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The scripts that run on a host, alone, in each shell that must be able to run them."""

import os
import re
import signal
import subprocess

import processes

from case import ROOT, Case, main

SHELLS = (('/bin/dash',), ('/bin/bash',), ('/usr/bin/busybox', 'sh'))
MEMBERS = ROOT / 'providers/ssh/remote/members.sh'
PROCESS = ROOT / 'providers/ssh/remote/process.sh'
WATCH = ROOT / 'providers/ssh/remote/watch.sh'
TOKEN = 'f' * 32


class End(Case):
    """A run with one process, and shells that end it."""

    def setUp(self):
        super().setUp()
        self.run_folder = self.dir / f'acp-broker.{TOKEN}'
        self.run_folder.mkdir()
        self.spawned = []

    def spawn(self, *argv, mark=None):
        env = self.environment()
        if mark:
            env['ACP_BROKER_RUN'] = mark
        process = subprocess.Popen(argv, env=env, cwd=self.dir, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.spawned.append(process)
        return process

    def dead_pid(self):
        dead = subprocess.Popen(['/bin/true'])
        dead.wait()
        return dead.pid

    def spawn_ender(self, shell, prelude=''):
        script = f'. {MEMBERS}; {prelude} acp_run=$0 acp_token={TOKEN}; acp_end'
        return self.spawn(*shell, '-c', script, str(self.run_folder), mark=TOKEN)

    def wait_ended(self, *processes_):
        self.assertTrue(processes.wait_until(
            lambda: all(process.poll() is not None for process in processes_), 30))

    def each(self, scene):
        for shell in SHELLS:
            with self.subTest(shell=shell[0]):
                self.run_folder.mkdir(exist_ok=True)
                scene(shell)
                self.assertFalse(self.run_folder.exists())

    def test_what_is_marked_is_killed_and_the_folder_goes(self):
        def scene(shell):
            member = self.spawn('sleep', '100', mark=f'{TOKEN}.1.')
            other = self.spawn('sleep', '100', mark='e' * 32)
            ender = self.spawn_ender(shell)
            self.wait_ended(member, ender)
            self.assertEqual(ender.returncode, 0)
            self.assertIsNone(other.poll())
        self.each(scene)

    def test_who_comes_second_waits_and_takes_over_from_the_dead(self):
        def scene(shell):
            member = self.spawn('sleep', '100', mark=f'{TOKEN}.1.')
            first = self.spawn('sleep', '100')
            dead = self.dead_pid()
            (self.run_folder / 'ending').symlink_to(str(dead))
            (self.run_folder / f'after.{dead}').symlink_to(str(first.pid))
            second = self.spawn_ender(shell)
            self.assertFalse(processes.wait_until(
                lambda: processes.stat_of(member.pid)[1] in 'TZ', 1))
            first.kill()
            first.wait()
            self.wait_ended(member, second)
        self.each(scene)

    def test_who_is_killed_while_all_stand_still_has_an_heir(self):
        dies = 'kill() { command kill "$@"; [ "$1" != -STOP ] || command kill -KILL $$; };'

        def scene(shell):
            members = [self.spawn('sleep', '100', mark=f'{TOKEN}.{number}.') for number in (1, 2)]
            ender = self.spawn_ender(shell, dies)
            self.wait_ended(ender, *members)
            self.assertEqual(ender.returncode, -signal.SIGKILL)
            self.assertTrue(processes.wait_until(lambda: not self.run_folder.exists(), 30))
        self.each(scene)

    def test_an_heir_ends_with_who_has_it(self):
        def scene(shell):
            self.wait_ended(self.spawn_ender(shell))
            mark = f'ACP_BROKER_RUN={TOKEN}'.encode()
            self.assertTrue(processes.wait_until(lambda: not any(
                mark in processes.read_file(f'/proc/{pid}/environ')
                for pid in processes.all_pids()), 30))
        self.each(scene)

    def spawn_sweep(self, shell, own):
        script = f'. {MEMBERS}; . {WATCH}; acp_run=$0 acp_token={TOKEN}; acp_sweep'
        return self.spawn(*shell, '-c', script, str(own), mark=TOKEN)

    def place(self):
        """The part of a folder's name that identifies this machine."""
        boot = processes.read_file('/proc/sys/kernel/random/boot_id').decode()
        return boot.split('-')[0] + '.' + re.search('[0-9]+', os.readlink('/proc/self/ns/pid'))[0]

    def test_a_sweep_leaves_its_own_run_to_the_watches(self):
        """
        The run's control died while the sweep looked. If the sweep ended its own run, it would end
        itself, too.
        """
        def scene(shell):
            own = self.dir / f'acp-broker.{TOKEN}.{self.dead_pid()}.{self.place()}'
            own.mkdir()
            member = self.spawn('sleep', '100', mark=f'{TOKEN}.1.')
            self.wait_ended(self.spawn_sweep(shell, own))
            self.assertIsNone(member.poll())
            self.wait_ended(member, self.spawn_ender(shell))
            own.rmdir()
        self.each(scene)

    def test_a_sweep_ends_the_runs_that_are_no_more(self):
        """It also ends a run that was killed when its folder was made but still empty."""
        def scene(shell):
            self.run_folder.rmdir()
            control = self.spawn('sleep', '100', mark='b' * 32)
            own = self.dir / f'acp-broker.{TOKEN}.{os.getpid()}.{self.place()}'
            others = [self.dir / f'acp-broker.{name}' for name in (
                f'{"a" * 32}', f'{"b" * 32}.{control.pid}.{self.place()}',
                f'{"c" * 32}.{self.dead_pid()}.0{self.place()}', f'{"d" * 32}.x.{self.place()}')]
            dead = self.dir / f'acp-broker.{"e" * 32}.{self.dead_pid()}.{self.place()}'
            taken = self.dir / f'acp-broker.{"0" * 32}.{control.pid}.{self.place()}'
            for folder in (own, dead, taken, *others):
                folder.mkdir()
            kept = [self.spawn('sleep', '100', mark=f'{letter * 32}.1.') for letter in 'abcd']
            ended = [self.spawn('sleep', '100', mark=f'{letter * 32}.1.') for letter in 'e0']
            self.wait_ended(self.spawn_sweep(shell, own), *ended)
            self.assertEqual([folder.name for folder in (own, *others) if not folder.exists()], [])
            self.assertFalse(dead.exists() or taken.exists())
            for process in (*kept, control):
                self.assertIsNone(process.poll())
                process.kill()
            for folder in (own, *others):
                folder.rmdir()
        self.each(scene)

    def test_three_at_once_end_it(self):
        def scene(shell):
            members = [self.spawn('sleep', '100', mark=f'{TOKEN}.1.') for _ in range(4)]
            self.wait_ended(*members, *[self.spawn_ender(shell) for _ in range(3)])
        self.each(scene)


class Ends(Case):
    """What the shell of a process reports about the end of the process."""

    def told(self, shell, words, before=''):
        """Everything that the shell reports, in order; `before` is shell code that runs first."""
        run = self.dir / f'acp-broker.{TOKEN}'
        run.mkdir(exist_ok=True)
        script = (f'. {MEMBERS}; . {PROCESS}; exec 9>&1; acp_n=\'\n\' acp_run=$0 '
                  f'acp_token={TOKEN} acp_id=1 acp_in=0 acp_merge=1 acp_apart=0 acp_dir=/ '
                  'acp_path=/bin:/usr/bin; acp_launch() { exec "$@" 9>&-; }; '
                  f'{before} acp_start "$@"')
        done = subprocess.run([*shell, '-c', script, str(run), *words], env=self.environment(),
                              cwd=self.dir, capture_output=True, text=True, timeout=30,
                              start_new_session=True, check=True)
        self.assertEqual(list(run.iterdir()), [])
        started, *rest = done.stdout.splitlines()
        self.assertRegex(started, '^1 started [0-9]+$')
        self.assertEqual(rest.pop(), '1 emptied')
        return rest

    def check(self, *expected, before=''):
        for shell in SHELLS:
            for words, end in zip((('exit 3',), ('exit 143',), ('kill -TERM $$',)), expected):
                with self.subTest(shell=shell[0], words=words):
                    self.assertEqual(self.told(shell, ('sh', '-c', *words), before), [f'1 {end}'])

    def test_a_status_and_a_signal_are_told_apart(self):
        self.check('exited code 3', 'exited code 143', 'exited signal 15')

    def test_where_nothing_can_be_written_down_what_is_sure_is_told(self):
        self.check('exited code 3', 'exited unclear 143', 'exited unclear 143',
                   before="trap '' XFSZ; ulimit -f 0;")


if __name__ == '__main__':
    main()
