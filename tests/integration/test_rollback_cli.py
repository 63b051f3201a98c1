#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker checkpoints rollback` and `restore`: `test_rollback_cli.py [BROKER]`, or the binary
that ACP_BROKER names."""

import fcntl
import json
import os
import signal
import subprocess
import sys

if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
    os.environ['ACP_BROKER'] = sys.argv.pop(1)

import processes
import sync_room
from acp import RpcError
from case import BROKER, main
from store_case import DEADLINE, Store
from processes import PATIENCE
from sync_case import SyncCase
from sync_room import POINTS


class Rollback(Store):
    def rolled(self, number, kept):
        text = self.answer('checkpoints', 'rollback', str(number))
        self.assertIn(f'as in checkpoint {number} of ', text)
        self.assertNames(text, f'there before | checkpoint {kept}')

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
        self.assertNames(self.answer('checkpoints', 'rollback', '-1'),
                         'Nothing to do | checkpoint 3')
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
                waiting, given_up = result.stderr.decode().splitlines(keepends=True)
                self.check_line(waiting, 'waiting | another acp-broker')
                self.check_line(given_up, f'{self.work} | another acp-broker | 1 s | '
                                'sync-lock-timeout | nothing was changed')
                self.assertEqual((result.returncode, result.stdout), (1, b''))
            # Commands that only read the store do not wait for the lock.
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
            self.assertTrue(lines[0].startswith('acp-broker: a '), lines)
            self.assertNames(lines[1], 'rollback to 1 | 0 written | 1 deleted | 1 not changed | '
                             'before is checkpoint 2')
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

    def test_undelete_brings_back_what_is_not_here_any_more(self):
        self.three_checkpoints()
        (self.work / 'sub' / 'd').unlink()
        self.write(a='three\n')
        self.assertNames(self.answer('checkpoints', 'undelete', '3'), '1 written | 0 deleted')
        self.assertEqual(self.files(), {'a': 'three\n', 'c': 'new\n', 'sub/d': 'deep\n'})
        self.answer('checkpoints', 'undelete', '1')
        self.assertEqual(self.files(), {'a': 'three\n', 'b': 'same\n', 'c': 'new\n',
                                        'sub/d': 'deep\n'})
        self.assertEqual([c['reason'] for c in self.checkpoints()][3:],
                         ['before undelete from 3', 'after undelete from 3',
                          'after undelete from 1'])
        self.assertNames(self.answer('checkpoints', 'undelete', '1'), 'Nothing to do | 1')

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


class Beside(SyncCase):
    """Commands beside a session whose agent works in a copy."""

    def argv_beside(self, *words):
        return ['--config', str(self.dir / 'config-copy'), '--profile', 'copy', *words]

    def try_beside(self, *words):
        """Runs a command in the workspace, with the session's profile."""
        return subprocess.run([BROKER, *self.argv_beside(*words)], stdin=subprocess.DEVNULL,
                              capture_output=True, cwd=self.work, env=self.environment(),
                              timeout=DEADLINE, check=False)

    def run_beside(self, *words):
        result = self.try_beside(*words)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        return result.stdout.decode()


class Live(Beside):
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
        self.assertEqual(sync_room.parked_files(self.state), [])

    def test_a_conflict_of_a_session_is_ended_beside_it(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        client.prompt(session, f'terminal echo theirs > a; echo mine > {self.work}/a')
        self.assertEqual((self.work / 'a').read_text(), 'mine\n')
        self.assertIn('-0\n+theirs\n', self.run_beside('conflicts', 'show', 'a'))
        self.run_beside('conflicts', 'take', 'a', 'runtime')
        self.assertEqual(self.tree(), {'a': 'theirs\n'})
        client.prompt(session, 'terminal cp a seen')
        self.assertEqual(self.tree(), {'a': 'theirs\n', 'seen': 'theirs\n'})


class UnderWay(Beside):
    """An agent at work must not see half of a checkpoint."""

    def refused(self, what, *words):
        """Runs a command that must do nothing; returns the reason."""
        before, kept = self.tree(), self.run_beside('checkpoints', 'list', '--json')
        result = self.try_beside(*words)
        self.assertEqual((result.returncode, result.stdout), (1, b''))
        said = result.stderr.decode()
        self.assertTrue(said.startswith(f'acp-broker: {what}: in flight: '), said)
        self.assertEqual((self.tree(), self.run_beside('checkpoints', 'list', '--json')),
                         (before, kept))
        return said

    def both_refused(self, client, session):
        """Rollback and restore both do nothing, and name the prompt."""
        named = (f'prompt | session {session} | TOOLS_IN_FLIGHT | profile copy | '
                 f'process {client.pid} | nothing was changed')
        for what, words in (('rollback to 1', ('rollback', '1')),
                            ('restore from 1', ('restore', '1', 'a'))):
            said = self.refused(what, 'checkpoints', *words)
            self.check_line(said, f'{what} | {named}')

    def hanging(self, client, session):
        prompt = client.start_prompt(session, 'say on', 'hang')
        client.wait_text('on')
        return prompt

    def opened_at(self, **keys):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened(**keys)
        (self.work / 'a').write_text('1\n')
        return client, session

    def test_a_prompt(self):
        client, session = self.opened_at()
        prompt = self.hanging(client, session)
        self.both_refused(client, session)
        client.notify('session/cancel', {'sessionId': session})
        self.assertEqual(client.answer(prompt), {'stopReason': 'cancelled'})
        self.run_beside('checkpoints', 'rollback', '1')
        self.assertEqual(self.tree(), {'a': '0\n'})

    def test_a_prompt_whose_broker_syncs_no_turns(self):
        client, session = self.opened_at(sync='session-bidirectional')
        self.hanging(client, session)
        self.both_refused(client, session)

    def test_a_prompt_in_the_workspace_itself(self):
        (self.work / 'a').write_text('0\n')
        self.copied(isolation='none', checkpoints='true').close_stdin()  # writes the configuration
        client = self.broker(options=self.argv_beside())
        client.initialize()
        session = client.new_session(self.work)
        (self.work / 'a').write_text('1\n')
        self.hanging(client, session)
        self.both_refused(client, session)

    def test_nothing_is_under_way_once_the_agent_is_dead(self):
        client, session = self.opened_at()
        client.prompt(session, 'request terminal/create ' + json.dumps(
            {'sessionId': session, 'command': 'sleep', 'args': ['1000']}))
        self.assertIn('term-1', self.refused('rollback to 1', 'checkpoints', 'rollback', '1'))
        for pid in self.agent_pids():
            processes.kill(pid)
        client.wait_log(': synced (crash): ', PATIENCE)
        done = self.try_beside('checkpoints', 'rollback', '1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.tree(), {'a': '0\n'})

    def test_a_prompt_of_another_brokers(self):
        """Two brokers are on the workspace; the one that has a prompt counts."""
        self.opened_at()
        client, session = self.opened()
        self.hanging(client, session)
        self.both_refused(client, session)

    def test_a_terminal(self):
        client, session = self.opened_at()
        client.start_prompt(session, 'terminal echo >started; exec sleep 600')
        started = self.runtime(client, session) / 'started'
        self.assertTrue(processes.wait_until(started.exists, PATIENCE))
        said = self.refused('rollback to 1', 'checkpoints', 'rollback', '1')
        self.assertIn(f'a prompt in session {session}, term-1 in session {session} (', said)

    def test_a_broker_that_was_killed_has_nothing_under_way(self):
        client, session = self.opened_at()
        self.hanging(client, session)
        client.process.kill()
        client.wait()
        self.run_beside('checkpoints', 'rollback', '1')
        self.assertEqual(self.tree(), {'a': '0\n'})

    def halfway(self):
        """A rollback that has begun, and then stands still."""
        command = subprocess.Popen(
            [POINTS, *self.argv_beside('checkpoints', 'rollback', '1')], cwd=self.work,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.environment(), 'ACP_POINT': 'command.kept:1:stop'})
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)

        def is_stopped():
            with open(f'/proc/{command.pid}/stat', encoding='utf-8') as stat:
                return stat.read().rsplit(')', 1)[1].split()[0] == 'T'
        self.assertTrue(processes.wait_until(is_stopped, PATIENCE), 'it is not stopped')
        return command

    def ends_well(self, command):
        command.send_signal(signal.SIGCONT)
        out, err = command.communicate(timeout=DEADLINE)
        self.assertEqual((command.returncode, err), (0, b''), out)

    def test_a_prompt_that_begins_meanwhile_waits_with_its_sync(self):
        client, session = self.opened_at()
        command = self.halfway()
        prompt = client.start_prompt(session, 'terminal cp a seen')
        self.wait_running(client, session)
        self.ends_well(command)
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(self.tree(), {'a': '0\n', 'seen': '0\n'})

    def test_a_prompt_that_begins_meanwhile_without_a_sync_is_refused(self):
        client, session = self.opened_at(sync='session-bidirectional')
        command = self.halfway()
        with self.assertRaises(RpcError) as refused:
            client.prompt(session, 'say on')
        self.assertEqual(refused.exception.data['code'], 'ROLLBACK_IN_PROGRESS')
        self.assertTrue(refused.exception.data['retryable'])
        self.assertEqual(client.texts(session), [])
        self.ends_well(command)
        self.assertEqual(client.prompt(session, 'say on'), {'stopReason': 'end_turn'})

    def test_a_rollback_that_was_killed_holds_up_nobody(self):
        client, session = self.opened_at()
        command = self.halfway()
        command.kill()
        command.wait()
        self.assertEqual(client.prompt(session, 'say on', seconds=PATIENCE),
                         {'stopReason': 'end_turn'})


if __name__ == '__main__':
    main()
