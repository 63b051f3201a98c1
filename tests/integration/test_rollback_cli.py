#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker checkpoints rollback` and `restore`: `test_rollback_cli.py [BROKER]`, or the binary
that ACP_BROKER names."""

import fcntl
import os
import subprocess
import sys

if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
    os.environ['ACP_BROKER'] = sys.argv.pop(1)

from case import BROKER, main
from store_case import DEADLINE, Store
from test_sync import SyncCase


class Rollback(Store):
    def rolled(self, number, kept):
        text = self.answer('checkpoints', 'rollback', str(number))
        self.assertIn(f'as in checkpoint {number} of ', text)
        self.assertIn(f'What was there before is checkpoint {kept}.\n', text)

    def test_the_directory_becomes_what_it_was(self):
        self.three_checkpoints()
        self.rolled(1, 3)
        self.assertEqual(self.files(), {'a': 'one\n', 'b': 'same\n'})
        self.assertFalse((self.work / 'sub').exists())

    def test_what_was_there_is_kept_and_comes_back(self):
        self.three_checkpoints()
        self.write(a='not in any checkpoint\n', e='neither\n')
        before = self.files()
        self.rolled(2, 4)
        self.assertEqual([c['reason'] for c in self.checkpoints()][3:],
                         ['before rollback to 2', 'after rollback to 2'])
        self.assertEqual(self.files(), {'a': 'two\n', 'b': 'same\n', 'c': 'new\n'})
        self.rolled(4, 5)
        self.assertEqual(self.files(), before)

    def test_nothing_to_do(self):
        self.three_checkpoints()
        self.assertEqual(self.answer('checkpoints', 'rollback', '-1'),
                         'Nothing to do: it is as in checkpoint 3.\n')
        self.assertEqual(len(self.checkpoints()), 3)

    def test_modes_and_links_come_back(self):
        self.write(run='#!/bin/sh\n')
        (self.work / 'run').chmod(0o755)
        (self.work / 'link').symlink_to('run')
        self.make('checkpoint', 'start')
        (self.work / 'run').chmod(0o644)
        (self.work / 'link').unlink()
        self.write(link='a file now\n')
        self.rolled(1, 2)
        self.assertTrue(os.access(self.work / 'run', os.X_OK))
        self.assertEqual(self.files()['link'], '-> run')

    def test_git_is_not_touched(self):
        env = self.environment()
        env.update({'GIT_CONFIG_NOSYSTEM': '1', 'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@b',
                    'GIT_COMMITTER_NAME': 'A', 'GIT_COMMITTER_EMAIL': 'a@b'})
        self.write(a='one\n')

        def git(*words):
            subprocess.run(['git', *words], cwd=self.work, env=env, timeout=DEADLINE, check=True,
                           capture_output=True)
        git('init', '-q')
        git('add', 'a')
        git('commit', '-q', '-m', 'first')
        self.make('checkpoint', 'start')
        self.write(a='two\n')
        git('add', 'a')
        git('commit', '-q', '-m', 'second')

        def repository():
            return {str(path): path.read_bytes()
                    for path in (self.work / '.git').rglob('*') if path.is_file()}
        before = repository()
        self.rolled(1, 2)
        self.assertEqual((self.work / 'a').read_text(), 'one\n')
        self.assertEqual(repository(), before)

    def test_ignored_files_stay(self):
        self.write(**{'.gitignore': 'out\n', 'a': 'one\n'})
        self.make('checkpoint', 'start')
        self.write(a='two\n', out='built\n')
        self.rolled(1, 2)
        self.assertEqual(self.files(), {'.gitignore': 'out\n', 'a': 'one\n', 'out': 'built\n'})

    def test_what_the_profile_excludes_stays(self):
        options = self.config(exclude='secret')
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        self.write(a='two\n', secret='mine\n')
        self.answer('checkpoints', 'rollback', '1', *options)
        self.assertEqual(self.files(), {'a': 'one\n', 'secret': 'mine\n'})

    def test_a_broker_that_syncs_is_waited_for_and_not_disturbed(self):
        self.three_checkpoints()
        before = self.files()
        options = self.config(sync_lock_timeout='1s')
        with open(os.path.join(self.make('path'), 'acp-broker.lock'), 'w',
                  encoding='ascii') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for words in (['checkpoints', 'rollback', '1'], ['checkpoints', 'restore', '1', 'a'],
                          ['checkpoints', 'diff', '1']):
                result = self.run_broker(*words, *options)
                self.assertEqual(
                    result.stderr.decode(),
                    'acp-broker: waiting for another acp-broker that is syncing this workspace\n'
                    f'acp-broker: {self.work}: another acp-broker has been syncing it for 1 s '
                    '(sync-lock-timeout); nothing was changed: try again when it is done\n')
                self.assertEqual((result.returncode, result.stdout), (1, b''))
            # What only looks at the store waits for nobody.
            self.assertEqual(len(self.checkpoints()), 3)
            self.answer('checkpoints', 'diff', '1', '2')
        self.assertEqual(self.files(), before)
        self.rolled(1, 3)

    def test_what_cannot_be_changed_is_named(self):
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        self.write(a='two\n', b='new\n')
        with open(self.work / 'a', 'a', encoding='utf-8'):
            result = self.run_broker('checkpoints', 'rollback', '1')
            self.assertEqual(result.returncode, 1)
            lines = result.stderr.decode().splitlines()
            self.assertEqual(len(lines), 2, lines)
            self.assertTrue(lines[0].startswith('acp-broker: a is left as it is: '), lines)
            self.assertIn('rollback to 1: 0 written, 1 deleted, 1 left as they are; what was '
                          'before is checkpoint 2: try again', lines[1])
        self.assertEqual(self.files(), {'a': 'two\n'})
        self.rolled(1, 3)

    def test_restore_brings_back_what_is_named_alone(self):
        self.three_checkpoints()
        self.write(a='three\n', c='changed\n')
        text = self.answer('checkpoints', 'restore', '1', 'a', 'b')
        self.assertIn('2 written, 0 deleted: as in checkpoint 1 of ', text)
        self.assertEqual(self.files(), {'a': 'one\n', 'b': 'same\n', 'c': 'changed\n',
                                        'sub/d': 'deep\n'})
        self.assertEqual([c['reason'] for c in self.checkpoints()][3:],
                         ['before restore from 1', 'after restore from 1'])

    def test_restore_of_a_directory_makes_it_what_it_was(self):
        self.three_checkpoints()
        self.write(**{'sub/d': 'other\n', 'sub/e': 'later\n', 'a': 'three\n'})
        self.answer('checkpoints', 'restore', '3', 'sub/')
        self.assertEqual(self.files(), {'a': 'three\n', 'c': 'new\n', 'sub/d': 'deep\n'})
        self.answer('checkpoints', 'restore', '4', '.')
        self.assertEqual(self.files()['sub/e'], 'later\n')

    def test_restore_takes_paths_as_the_directory_has_them(self):
        self.three_checkpoints()
        sub = self.work / 'sub'
        said = f'acp-broker: the workspace is {self.work}\n'
        self.write(**{'sub/d': 'other\n'})
        self.answer('checkpoints', 'restore', '3', 'd', cwd=sub, said=said)
        self.assertEqual(self.files()['sub/d'], 'deep\n')
        self.answer('checkpoints', 'restore', '1', '../b', cwd=sub, said=said)
        self.assertEqual(self.files()['b'], 'same\n')
        (self.work / 'b').unlink()
        self.answer('checkpoints', 'restore', '1', str(self.work / 'b'), cwd=sub, said=said)
        self.assertEqual(self.files()['b'], 'same\n')

    def test_restore_of_one_wrong_path_restores_nothing(self):
        self.three_checkpoints()
        before = self.files()
        self.mistake(1, 'checkpoint 1: there is no c', 'checkpoints', 'restore', '1', 'a', 'c')
        self.mistake(1, 'checkpoint 1: there is no .git/config',
                     'checkpoints', 'restore', '1', '.git/config')
        self.assertEqual(self.files(), before)
        self.assertEqual(len(self.checkpoints()), 3)

    def test_nothing_configured_is_needed_and_secrets_neither(self):
        self.three_checkpoints()
        options = self.config(secret_env='NOT_SET_HERE')
        self.answer('checkpoints', 'list', *options)


class Live(SyncCase):
    """Beside a session whose agent works in a copy."""

    def run_beside(self, *words):
        """Runs a command in the workspace, with the profile of the session."""
        result = subprocess.run([BROKER, '--config', str(self.dir / 'config-copy'),
                                 '--profile', 'copy', *words], stdin=subprocess.DEVNULL,
                                capture_output=True, cwd=self.work, env=self.environment(),
                                timeout=DEADLINE, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        return result.stdout.decode()

    def test_the_sandbox_follows_with_its_next_sync(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        for turn in '12':
            client.prompt(session, f'terminal echo {turn} > a; echo {turn} > new{turn}')
        runtime = self.runtime(client, session)
        self.run_beside('checkpoints', 'rollback', '2')
        self.assertEqual(self.tree(), {'a': '1\n', 'new1': '1\n'})
        self.assertEqual((runtime / 'a').read_text(), '2\n')
        client.prompt(session, 'terminal cp a seen')
        self.assertEqual(self.tree(), {'a': '1\n', 'new1': '1\n', 'seen': '1\n'})
        self.assertFalse((runtime / 'new2').exists())
        self.run_beside('checkpoints', 'restore', '3', 'new2')
        client.prompt(session, 'terminal cat new2 > seen')
        self.assertEqual(self.tree(), {'a': '1\n', 'new1': '1\n', 'new2': '2\n',
                                       'seen': '2\n'})
        self.assertEqual(list(self.work.glob('*.acp-conflict')), [])

    def test_a_conflict_of_a_session_is_ended_beside_it(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        client.prompt(session, f'terminal echo theirs > a; echo mine > {self.work}/a')
        self.assertEqual((self.work / 'a').read_text(), 'mine\n')
        self.assertIn('-mine\n+theirs\n', self.run_beside('conflicts', 'show', 'a'))
        self.run_beside('conflicts', 'take', 'a', 'runtime')
        self.assertEqual(self.tree(), {'a': 'theirs\n'})
        client.prompt(session, 'terminal cp a seen')
        self.assertEqual(self.tree(), {'a': 'theirs\n', 'seen': 'theirs\n'})


if __name__ == '__main__':
    main()
