#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The control of a run, alone, in each shell that must be able to run it: how it begins, and where.
"""

import os
import pathlib
import secrets
import subprocess

import processes

from case import ROOT, Case, main

SHELLS = (('/bin/dash',), ('/bin/bash',), ('/usr/bin/busybox', 'sh'))
REMOTE = ROOT / 'providers/ssh/remote'
TOKEN = secrets.token_hex(16)  # no other test's


def quoted(text):
    """The text in quotes, in the form in which it travels: on one line."""
    return "'" + text.replace("'", "'\\''").replace('\n', "'\"$acp_n\"'") + "'"


class Control(Case):
    """The shell of the first channel, up to the word with which it reports."""

    def setUp(self):
        super().setUp()
        library, login, control = (
            ''.join((REMOTE / f'{name}.sh').read_text() for name in names) for names in
            (('members', 'process', 'freeze', 'watch', 'earlier'), ('login',), ('control',)))
        self.line = ("acp_n=$(printf '\\nx'); acp_n=${acp_n%x}; "
                     f'acp_token={TOKEN}; acp_grace=60; acp_sh=/bin/sh; '
                     f'acp_library={quoted(library)}; acp_login={quoted(login)}; '
                     'acp_earlier() { :; }; '
                     f'eval {quoted(control)}\n')
        self.bases = [self.dir / name for name in ('one', 'two')]
        for base in self.bases:
            base.mkdir()
        self.said = []  # lines before that word
        self.env = {'XDG_RUNTIME_DIR': str(self.bases[0]), 'TMPDIR': str(self.bases[1]),
                    'ACP_BROKER_RUN': TOKEN}

    def control(self, shell, before='', **options):
        """
        Runs the control until it reports that it is ready or that it cannot be; a shell runs
        `before` first.
        """
        argv = (*shell, '-c', 'read -r acp_line; eval "$acp_line"')
        if before:
            argv = ('unshare', '-rm', '/bin/sh', '-c', f'{before}; exec "$@"', 'before', *argv)
        process = subprocess.Popen(
            argv, env={**self.environment(), **self.env}, cwd=self.dir, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, **{'start_new_session': True, **options})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        process.stdin.write(self.line.encode())
        process.stdin.flush()
        for line in process.stdout:
            word, _, rest = line.decode().rstrip('\n').partition(' ')
            if word in ('ready', 'fatal', 'left'):
                return process, word, rest
            self.said.append(f'{word} {rest}')
        self.fail(f'it ended with {process.wait()} and without a word')

    def assert_run_in(self, base, word, run):
        self.assertEqual(word, 'ready')
        self.assertTrue(run.startswith(f'{base}/acp-broker.{TOKEN}.'), run)

    def end(self, process, run):
        process.stdin.close()
        self.assertEqual(process.wait(processes.PATIENCE), 0)
        self.assertFalse(os.path.exists(run))

    def each(self, scene):
        for shell in SHELLS:
            with self.subTest(shell=shell[0]):
                scene(shell)

    def check_group(self, start_new_session):
        """
        The control leads a session and a group, whatever the server gave it, and answers orders
        that were written before that.
        """
        def scene(shell):
            process, word, run = self.control(shell, start_new_session=start_new_session)
            self.assert_run_in(self.bases[0], word, run)
            self.assertEqual(os.getpgid(process.pid), process.pid)
            self.assertEqual(os.getsid(process.pid), process.pid)
            process.stdin.write(b'sync 7\n')
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b'7 synced\n')
            self.end(process, run)
        self.each(scene)

    def test_with_a_session_of_its_own(self):
        self.check_group(start_new_session=True)

    def test_without_one_it_makes_one(self):
        self.check_group(start_new_session=False)

    def hide(self, *names):
        """Sets a PATH with all programs except these."""
        folder = self.dir / 'bin'
        folder.mkdir()
        for path in (*pathlib.Path('/bin').iterdir(), *pathlib.Path('/usr/bin').iterdir()):
            if path.name not in names and not (folder / path.name).is_symlink():
                (folder / path.name).symlink_to(path)
        self.env['PATH'] = str(folder)
        return folder

    def test_without_setsid_it_is_said(self):
        self.hide('setsid')

        def scene(shell):
            if 'busybox' in shell[0]:
                return  # busybox itself has setsid
            process, word, why = self.control(shell, start_new_session=False)
            self.assertEqual(word, 'fatal')
            self.assertIn('setsid', why)
            self.assertEqual(process.wait(processes.PATIENCE), 1)
        self.each(scene)

    def test_a_folder_without_fifos_is_passed_over(self):
        mkfifo = self.hide('mkfifo') / 'mkfifo'
        mkfifo.write_text(f'#!/bin/sh\ncase $1 in {self.bases[0]}/*) exit 1 ;; esac\n'
                          'exec /usr/bin/mkfifo "$@"\n')
        mkfifo.chmod(0o755)

        def scene(shell):
            process, word, run = self.control(shell)
            self.assert_run_in(self.bases[1], word, run)
            self.assertEqual(list(self.bases[0].iterdir()), [])
            self.end(process, run)
        self.each(scene)

    def need_mounts(self):
        if subprocess.run(['unshare', '-rm', 'true'], capture_output=True).returncode != 0:
            self.skipTest('no file system can be mounted here')

    def test_a_full_folder_is_passed_over(self):
        self.need_mounts()
        full = f'mount -t tmpfs -o size=8k full {self.bases[0]} && cd {self.bases[0]}'

        def scene(shell):
            process, word, run = self.control(shell, full)
            self.assert_run_in(self.bases[1], word, run)
            self.assertEqual(os.listdir(f'/proc/{process.pid}/cwd'), [])
            self.end(process, run)
        self.each(scene)

    def test_where_all_are_full_it_is_said_which(self):
        self.need_mounts()
        folders = [*self.bases, '/var/tmp', self.dir / 'home']
        full = 'mount -t tmpfs -o size=8k full /tmp && ' + '&& '.join(
            f'mkdir -p {folder} && mount -t tmpfs -o size=8k full {folder}' for folder in folders)

        def scene(shell):
            process, word, why = self.control(shell, full)
            self.assertEqual(word, 'fatal')
            for folder in (*folders, '/tmp'):
                self.assertIn(f'{folder} (no room)', why)
            self.assertEqual(process.wait(processes.PATIENCE), 1)
        self.each(scene)

    def check_grep(self, condition, expected):
        grep = self.hide('grep') / 'grep'
        grep.write_text(f'#!/bin/sh\ncase "$*" in {condition}) exit 1 ;; esac\n'
                        'exec /bin/grep "$@"\n')
        grep.chmod(0o755)

        def scene(shell):
            process, word, why = self.control(shell)
            self.assertEqual(word, 'fatal')
            self.assertIn('grep', why)
            self.assertIn(expected, why)
            self.assertEqual(process.wait(30), 1)
            self.assertEqual(list(self.bases[0].iterdir()), [])
        self.each(scene)

    def test_a_grep_that_finds_no_mark_is_refused(self):
        self.check_grep('-Fls*', 'environment')

    def test_a_grep_that_finds_no_session_is_refused(self):
        self.check_grep('*/stat', 'session')

    # ---- what a lost connection left ----

    def here(self):
        """BOOT.NAMESPACE, as in the name of a run's folder."""
        boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().partition('-')[0]
        return f"{boot}.{os.readlink('/proc/self/ns/pid')[5:-1]}"

    def after(self, folder, node, how):
        self.line = self.line.replace(
            '{ :; }', f"{{ : && acp_end_earlier '{folder}' '{node}' {how}; }}")

    def left_by(self, token, place):
        folder = self.bases[0] / f'acp-broker.{token}.1.{place}'
        folder.mkdir()
        return folder

    def unseen(self, line):
        """
        Leaves a run in another namespace, and tells the next control about it; returns its folder.
        """
        folder = self.left_by(secrets.token_hex(16), self.here().partition('.')[0] + '.1')
        os.mkfifo(folder / 'alive')
        self.line = line
        self.after(folder, os.uname().nodename, 'lost')
        return folder

    def test_what_runs_there_is_ended_first(self):
        line = self.line

        def scene(shell):
            token = secrets.token_hex(16)
            folder = self.left_by(token, self.here())
            self.line = line
            self.after(folder, os.uname().nodename, 'lost')
            left = subprocess.Popen(
                ['setsid', 'sleep', '600'],
                env={**self.environment(), 'ACP_BROKER_RUN': f'{token}.1.'})
            self.addCleanup(left.kill)
            process, word, run = self.control(shell)
            self.assert_run_in(self.bases[0], word, run)
            self.assertEqual(left.wait(30), -9)
            self.assertIn('ended 1', self.said)
            self.assertFalse(folder.exists())
            self.end(process, run)
        self.each(scene)

    def test_a_run_that_is_not_to_be_seen_is_told_to_end(self):
        line = self.line

        def scene(shell):
            folder = self.unseen(line)
            watch = subprocess.Popen(
                ['sh', '-c', f'read -r line <{folder}/alive && rm -r {folder}'])
            self.addCleanup(watch.kill)
            process, word, run = self.control(shell)
            self.assert_run_in(self.bases[0], word, run)
            self.assertEqual(watch.wait(30), 0)
            self.end(process, run)
        self.each(scene)

    def test_one_that_nobody_watches_any_more_is_over(self):
        line = self.line

        def scene(shell):
            folder = self.unseen(line)
            process, word, run = self.control(shell)
            self.assert_run_in(self.bases[0], word, run)
            self.assertFalse(folder.exists())
            self.end(process, run)
        self.each(scene)

    def check_machine(self, node, how, expected):
        line = self.line

        def scene(shell):
            self.line = line
            self.after(f'/tmp/acp-broker.{secrets.token_hex(16)}.1.00000000.1', node, how)
            process, word, rest = self.control(shell)
            self.assertEqual(word, expected)
            if word == 'left':
                self.assertIn(node, rest)
                self.assertEqual(process.wait(30), 1)
                self.assertEqual(list(self.bases[0].iterdir()), [])
            else:
                self.end(process, rest)
        self.each(scene)

    def test_another_machine_of_the_same_name_cannot_end_it(self):
        self.check_machine('elsewhere', 'lost', 'left')

    def test_nor_need_it_once_it_has_ended_by_itself(self):
        self.check_machine('elsewhere', 'over', 'ready')

    def test_a_machine_that_was_started_anew_has_nothing_of_it(self):
        self.check_machine(os.uname().nodename, 'lost', 'ready')


if __name__ == '__main__':
    main()
