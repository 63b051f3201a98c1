#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a profile brings into a sandbox before its agent starts: `copy` and `setup`."""

import os
import signal
import stat

import case
import processes

from acp import RpcError
from sync_case import SyncCase


class Provision(SyncCase):
    def write_config(self, *lines, isolation='copy'):
        text = [f'[profile "p"]\n\tisolation = {isolation}\n\tsync = none\n']
        text += [f'\t{name} = {value}\n' for name, value in case.DEADLINES.items()]
        text += [f'\t{line}\n' for line in lines]
        path = self.dir / 'config-p'
        path.write_text(''.join(text))
        return ['--config', str(path), '--profile', 'p']

    def play(self, *lines):
        """Plays one session; returns the sandbox's home."""
        client = self.broker(options=self.write_config(*lines))
        client.initialize()
        client.new_session(self.work)
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.log = client.stderr
        home, = (self.state / 'copies').iterdir()
        return home

    def fails(self, *lines):
        client = self.broker(options=self.write_config(*lines))
        with self.assertRaises(RpcError) as caught:
            client.initialize()
        client.close_stdin()
        client.wait()
        return caught.exception

    # ---- setup ----

    def test_lines_run_once_in_the_home_in_their_order(self):
        lines = ('setup = "echo one >> ran; cd /"', 'setup = "pwd >> ran"')
        home = self.play(*lines)
        self.assertEqual((home / 'ran').read_text(), f'one\n{home}\n')
        self.assertIn('setup, line 2 of 2: pwd >> ran', self.log)
        self.play(*lines)
        self.assertEqual((home / 'ran').read_text(), f'one\n{home}\n')
        self.play(*lines, 'setup = "echo three >> ran"')
        self.assertEqual((home / 'ran').read_text(), f'one\n{home}\n' * 2 + 'three\n')

    def test_a_line_has_the_agents_environment_and_no_input(self):
        home = self.play('env = A=1 2', 'setup = "echo \\"$A\\" > a; cat > b"')
        self.assertEqual((home / 'a').read_text(), '1 2\n')
        self.assertEqual((home / 'b').read_text(), '')

    def test_a_line_that_fails_is_told_with_its_last_words(self):
        error = self.fails('setup = true', 'setup = "echo out; echo it went wrong >&2; exit 7"')
        self.assertEqual(error.data['code'], 'SETUP_FAILED')
        self.assertEqual(error.data['stage'], 'prepare')
        for words in ('setup, line 2', 'exit 7', 'status 7', 'out it went wrong'):
            self.assertIn(words, str(error))
        self.assertEqual(self.journal('<'), [])
        home = self.play('setup = true', 'setup = "echo fine > ran"')  # the second try works
        self.assertTrue((home / 'ran').exists())

    def test_a_line_that_does_not_end_meets_its_deadline(self):
        error = self.fails('setup-timeout = 300ms', 'setup = "sleep 600"')
        self.assertEqual(error.data['code'], 'TIMEOUT_EXCEEDED')
        self.assertIn('setup, line 1 (sleep 600)', str(error))

    def test_what_a_killed_broker_left_is_in_nobodys_way(self):
        lines = ('setup = "echo ran >> ran; [ -e go ] || sleep 600"',)
        client = self.broker(options=self.write_config(*lines))
        client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        folder = self.state / 'copies'
        self.assertTrue(processes.wait_until(
            lambda: list(folder.glob('*/ran')), processes.PATIENCE))
        os.kill(client.pid, signal.SIGKILL)
        home, = folder.iterdir()
        (home / 'go').write_text('')
        self.assert_nothing_runs()
        self.play(*lines)
        self.assertEqual((home / 'ran').read_text(), 'ran\n' * 2)

    # ---- copy ----

    def put(self, name, text):
        path = self.dir / 'home' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_files_are_put_below_the_home_for_their_user_alone(self):
        self.put('.claude/.credentials.json', 'secret\n')
        self.put('b', '')
        other = self.put('other', 'other\n')
        target = self.dir / 'there'
        home = self.play('copy = ~/.claude/.credentials.json', f'copy = {other.parent}/b',
                         f'copy = {other}:~/x y/z', f'copy = ~/other:{target}')
        for path, text in ((home / '.claude/.credentials.json', 'secret\n'), (home / 'b', ''),
                           (home / 'x y/z', 'other\n'), (target, 'other\n')):
            self.assertEqual(path.read_text(), text)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE((home / '.claude').stat().st_mode), 0o700)
        self.assertNotIn('secret', self.log)
        self.assertEqual([str(p) for p in home.rglob('*.tmp')], [])

    def test_a_file_is_copied_again_only_when_it_changed_or_is_missing(self):
        self.put('token', 'one')
        home = self.play('copy = ~/token')
        (home / 'token').write_text('refreshed there')
        self.play('copy = ~/token')
        self.assertEqual((home / 'token').read_text(), 'refreshed there')
        self.put('token', 'two')
        self.play('copy = ~/token')
        self.assertEqual((home / 'token').read_text(), 'two')
        (home / 'token').unlink()
        self.play('copy = ~/token')
        self.assertEqual((home / 'token').read_text(), 'two')

    def test_files_are_there_before_the_lines_run(self):
        self.put('token', 'one\n')
        home = self.play('setup = "cat token > seen"', 'copy = ~/token')
        self.assertEqual((home / 'seen').read_text(), 'one\n')

    def test_a_file_that_cannot_be_copied_is_told(self):
        self.put('folder/x', '')
        self.put('large', 'x' * (1024 * 1024 + 1))
        for line, words in (('~/none', 'No such file'), ('~/folder', 'not a regular file'),
                            ('~/large', 'larger than the allowed')):
            error = self.fails(f'copy = {line}')
            self.assertEqual(error.data['code'], 'SETUP_FAILED')
            self.assertIn(f'copying {self.dir}/home/{line[2:]}', str(error))
            self.assertIn(words, str(error))

    # ---- mistakes in these keys ----

    def test_mistakes_are_one_line(self):
        for line, isolation, words in (
                ('setup = true', 'none', 'profile.p.setup | backend with sandboxes'),
                ('copy = ~/x', 'none', 'profile.p.copy | backend with sandboxes'),
                ('copy = x', 'copy', 'profile.p.copy | /PATH or ~/PATH'),
                ('copy = /etc/hosts', 'copy', 'expected /etc/hosts:TARGET'),
                ('copy = ~/x:../y', 'copy', 'without ".."'),
                ('copy = ~/x:y/', 'copy', 'name of a file')):
            client = self.broker(options=self.write_config(line, isolation=isolation))
            self.assertEqual(client.wait(), 2)
            client.wait_log(words)
            self.assertEqual(client.stderr.count('\n'), 1)

    def test_secrets_reach_the_agent_and_no_command_line(self):
        self.extra = {'THE_KEY': 'sesame-street'}
        with processes.Watcher('sesame-street') as watcher:
            home = self.play('secret-env = THE_KEY',
                             'setup = "echo \\"$THE_KEY\\" > key; sleep 0.3"')
        self.assertEqual((home / 'key').read_text(), 'sesame-street\n')
        self.assertEqual(watcher.found, [])
        self.assertGreater(watcher.looks, 10)
        self.assertNotIn('sesame', self.log)

    def environment(self):
        return {**super().environment(), **getattr(self, 'extra', {})}


if __name__ == '__main__':
    case.main()
