#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""acp-broker test-provider: what it finds in good sandboxes, and in others."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import case
import processes
from case import Case
from ssh_case import SshCase
from sshd import free_port
from processes import PATIENCE

NAMES = ['prepare', 'capabilities', 'root', 'outlives', 'exit-status', 'streams', 'half-close',
         'bytes', 'arguments', 'environment', 'directory', 'not-started', 'kill', 'parallel',
         'files',
         'modes', 'parents', 'stat', 'reading', 'special', 'names', 'confinement', 'relative',
         'links', 'inner-links', 'dots', 'missing', 'overlong', 'network',
         'first-sync', 'changes', 'remove']
OF_A_COPY = ['first-sync', 'changes']


class Trial:
    def trial(self, *options, status=0):
        """The outcome of each check by its name, and the reason of each one that is not ok."""
        done = subprocess.run([case.BROKER, *options, 'test-provider', '--json'], cwd=self.work,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=3 * PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        self.report = json.loads(done.stdout)
        checks = self.report['checks']
        self.assertEqual([check['name'] for check in checks], NAMES)
        self.assertEqual(self.report['failed'],
                         sum(check['outcome'] == 'failed' for check in checks))
        self.assert_nothing_stays()
        return ({check['name']: check['outcome'] for check in checks},
                {check['name']: check['why'] for check in checks if check['outcome'] != 'ok'})

    def assert_nothing_stays(self):
        self.assertEqual(list(self.dir.glob('acp-broker-trial-*')), [])
        self.assertEqual(list(self.work.iterdir()), [])
        state = self.dir / 'home/state/acp-broker'
        self.assertEqual([p for p in state.rglob('*') if p.is_file()
                          and p.name != 'machine-id'], [])  # a container makes it once

    def assert_all_ok(self, outcomes, but=()):
        self.assertEqual({n: o for n, o in outcomes.items() if o != 'ok'},
                         {name: 'skipped' for name in (*but, 'network')}, self.report)


class Here(Trial, Case):
    def test_the_workspace_itself(self):
        outcomes, why = self.trial(*self.config())
        self.assert_all_ok(outcomes, OF_A_COPY)
        self.assertIn('itself', why['first-sync'])

    def test_a_copy(self):
        self.assert_all_ok(self.trial(*self.config(isolation='copy', transport='git'))[0])
        note, = [c['note'] for c in self.report['checks'] if c['name'] == 'first-sync']
        self.assertEqual(note, 'by git')

    def test_a_copy_by_rsync_and_one_that_is_not_synced(self):
        self.assert_all_ok(self.trial(*self.config(isolation='copy', transport='rsync'))[0])
        outcomes, why = self.trial(*self.config(isolation='copy', sync='none'))
        self.assert_all_ok(outcomes, OF_A_COPY)
        self.assertEqual(why['changes'], 'sync = none')

    def test_a_network_that_nobody_enforces(self):
        outcomes, why = self.trial(*self.config(network='blocked'), status=1)
        self.assertEqual(outcomes['network'], 'failed')
        self.assertIn('network = blocked', why['network'])

    def test_lines_for_people(self):
        done = subprocess.run([case.BROKER, *self.config(), 'test-provider'], cwd=self.work,
                              env=self.environment(), text=True, capture_output=True,
                              check=True, timeout=PATIENCE)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[1] for line in lines], NAMES)
        self.assertEqual({line.split()[0] for line in lines}, {'ok', 'skipped'})

    def test_what_is_wrong_on_the_command_line(self):
        for words in (['--profile', 'none', 'test-provider'], ['test-provider', 'more'],
                      ['test-provider', '--stat']):
            done = subprocess.run([case.BROKER, *words], env=self.environment(), text=True,
                                  capture_output=True, check=False, timeout=3 * PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (2, ''), words)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_signal_ends_it_tidily(self):
        slow = self.dir / 'programs'
        slow.mkdir()
        (slow / 'cat').write_text('#!/bin/sh\nexec sleep 100\n')
        (slow / 'cat').chmod(0o755)
        env = self.environment()
        env['PATH'] = f'{slow}:{env["PATH"]}'
        trial = subprocess.Popen([case.BROKER, *self.config(isolation='copy'), 'test-provider'],
                                 cwd=self.work, env=env, text=True, stdout=subprocess.PIPE)
        with trial:
            for line in trial.stdout:
                if 'streams' in line:
                    break
            trial.send_signal(signal.SIGINT)
            rest = trial.stdout.read()
        self.assertEqual(trial.returncode, 1)
        self.assertIn('interrupted', rest)
        self.assertIn('ok       remove', rest)
        self.assert_nothing_stays()


class There(Trial, SshCase):
    def assert_nothing_stays(self):
        super().assert_nothing_stays()
        self.assertEqual(self.workspaces(), [])
        self.assertTrue(processes.wait_until(lambda: not self.remote(), processes.PATIENCE))

    def programs_there(self, *missing):
        """Makes the login shell's PATH a folder without these programs."""
        few = self.sshd.home / 'few'
        few.mkdir()
        for folder in ('/usr/bin', '/bin'):
            for program in pathlib.Path(folder).iterdir():
                link = few / program.name
                if program.name not in missing and not os.path.lexists(link):
                    link.symlink_to(program)
        (self.sshd.home / '.profile').write_text(f'PATH={few}; export PATH\n')

    def note(self, name):
        note, = [check['note'] for check in self.report['checks'] if check['name'] == name]
        return note

    def test_whether_what_runs_there_outlives_the_connection(self):
        # An idle runner may wait this long for its broker.
        outcomes, _ = self.trial(*self.config(outlives='auto', orphan_grace='1s'))
        self.assertEqual(outcomes['outlives'], 'ok')
        self.assertEqual(self.note('outlives'), 'link-grace = 600s')
        self.trial(*self.config(outlives='never'))
        self.assertNames(self.note('outlives'), 'no | outlives = never')

    def end_with_the_login(self):
        """Ends processes as logind does at a logout. Nobody can connect again before that."""
        processes.wait_until(self.sshd.connections)
        first = self.sshd.connections()
        processes.kill(self.sshd.process.pid, signal.SIGSTOP)
        processes.wait_until(lambda: not any(map(processes.is_running, first)))
        for pid in self.remote():
            processes.kill(pid)
        processes.kill(self.sshd.process.pid, signal.SIGCONT)

    def test_a_host_that_ends_what_a_login_has_started(self):
        logind = threading.Thread(target=self.end_with_the_login)
        self.assert_nothing_stays = lambda: None  # no process is left that could remove the folder
        logind.start()
        outcomes, why = self.trial(*self.config(outlives='auto'), status=1)
        logind.join()
        self.assertEqual(outcomes['outlives'], 'failed')
        self.assertNames(why['outlives'], 'KillUserProcesses')

    def test_a_host_whose_login_prints(self):
        for name in ('.profile', '.bashrc'):
            (self.sshd.home / name).write_text('echo welcome; echo be careful >&2\n')
        self.assert_all_ok(self.trial(*self.config())[0])

    def test_a_host_without_git_and_rsync(self):
        self.programs_there('git', 'rsync')
        outcomes, why = self.trial(*self.config(), status=1)
        self.assertEqual({n: o for n, o in outcomes.items() if o != 'ok'},
                         {'network': 'skipped', 'first-sync': 'failed', 'changes': 'skipped'},
                         why)
        self.assertIn('git', why['first-sync'])
        self.assertIn('rsync', why['first-sync'])

    def test_a_first_sync_that_takes_too_long_is_not_taken_for_the_end(self):
        self.programs_there('git')
        git = self.sshd.home / 'few/git'
        git.write_text(f'#!/bin/sh\nsleep 3\nexec {shutil.which("git")} "$@"\n')
        git.chmod(0o755)
        outcomes, why = self.trial(*self.config(sync_timeout='1s'), status=1)
        self.assertEqual({n: o for n, o in outcomes.items() if o != 'ok'},
                         {'network': 'skipped', 'first-sync': 'failed', 'changes': 'skipped'},
                         why)
        self.assertIn('sync-timeout', why['first-sync'])

    def test_nobody_there(self):
        path = self.dir / 'ssh_config'
        path.write_text(self.sshd.alias('box', port=free_port()))
        outcomes, why = self.trial(*self.config(ssh_config=path), status=1)
        self.assertEqual(outcomes.pop('prepare'), 'failed')
        self.assertEqual(set(outcomes.values()), {'skipped'})
        self.assertIn('refused', why['prepare'])


class OneAtATime(Trial, SshCase):
    sshd_config = 'MaxSessions 1'

    def test_the_runner_needs_no_more(self):
        self.assert_all_ok(self.trial(*self.config())[0])

    def test_the_scripts_need_more(self):
        outcomes, why = self.trial(*self.config(runner='never', channel_timeout='1s'), status=1)
        self.assertEqual({n: o for n, o in outcomes.items() if o != 'ok'},
                         {'network': 'skipped', 'parallel': 'failed'}, why)
        self.assertIn('MaxSessions', why['parallel'])


if __name__ == '__main__':
    case.main()
