#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The scripts that run on a host, by themselves, in each shell that has to do."""

import os
import subprocess

import processes

from case import ROOT, Case, main

SHELLS = (('/bin/dash',), ('/bin/bash',), ('/usr/bin/busybox', 'sh'))
MEMBERS = ROOT / 'providers/ssh/remote/members.sh'
WATCH = ROOT / 'providers/ssh/remote/watch.sh'
TOKEN = 'f' * 32


class End(Case):
    """A run of one member, and shells that end it."""

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

    def spawn_ender(self, shell):
        script = f'. {MEMBERS}; acp_run=$0 acp_token={TOKEN}; acp_end'
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
            (self.run_folder / 'ending').mkdir()
            (self.run_folder / 'ending/by').write_text(f'{first.pid}\n')
            second = self.spawn_ender(shell)
            self.assertFalse(processes.wait_until(
                lambda: processes.stat_of(member.pid)[1] in 'TZ', 1))
            first.kill()
            first.wait()
            self.wait_ended(member, second)
        self.each(scene)

    def test_a_sweep_leaves_its_own_run_to_the_watches(self):
        """Its control has died while it looked: it would have stopped itself, and all with it."""
        dead = subprocess.Popen(['/bin/true'])
        dead.wait()
        script = f'. {MEMBERS}; . {WATCH}; acp_run=$0 acp_token={TOKEN}; acp_sweep {dead.pid}'

        def scene(shell):
            member = self.spawn('sleep', '100', mark=f'{TOKEN}.1.')
            old = self.dir / f'acp-broker.{"a" * 32}'
            old.mkdir()
            old_member = self.spawn('sleep', '100', mark=f'{"a" * 32}.1.')
            sweep = self.spawn(*shell, '-c', script, str(self.run_folder), mark=TOKEN)
            boot = processes.read_file('/proc/sys/kernel/random/boot_id').decode().strip()
            self.assertTrue(processes.wait_until(
                lambda: boot in processes.read_file(self.run_folder / 'control').decode(), 30))
            self.wait_ended(sweep)
            self.assertIsNone(member.poll())
            self.assertIsNone(old_member.poll())  # nobody knows who controlled it
            self.wait_ended(member, self.spawn_ender(shell))
            old.rmdir()
        self.each(scene)

    def test_three_at_once_end_it(self):
        def scene(shell):
            members = [self.spawn('sleep', '100', mark=f'{TOKEN}.1.') for _ in range(4)]
            self.wait_ended(*members, *[self.spawn_ender(shell) for _ in range(3)])
        self.each(scene)


if __name__ == '__main__':
    main()
