#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A workspace and its isolated copy, synced around the turns of a session."""

import json
import os
import shutil
import signal
import subprocess
import threading

import case
import processes
import sync_room

from acp import RpcError
from processes import PATIENCE
from sync_case import SyncCase, fitting


class Turns(SyncCase):
    programs = None  # a folder of programs that goes before all others in PATH

    def environment(self):
        env = super().environment()
        if self.programs:
            env['PATH'] = f'{self.programs}:{env["PATH"]}'
        return env

    def test_what_the_agent_does_is_here_when_its_answer_is(self):
        (self.work / 'a.txt').write_text('mine\n')
        client, session = self.opened()
        client.prompt(session, 'terminal cat a.txt; echo new > b.txt; mkdir d; echo x > d/c.txt')
        self.assertIn('mine', client.wait_text('terminal/output ->'))
        self.assertEqual(self.tree(), {'a.txt': 'mine\n', 'b.txt': 'new\n', 'd/c.txt': 'x\n'})
        self.assertNotEqual(self.runtime(client, session), self.work)

    def test_what_is_ignored_is_written_down_there_once(self):
        def written(root):
            path, = root.parent.glob('.acp-broker/sync/*/info/exclude')
            return path.stat().st_ino, path.read_text().split('\n')
        files = []
        subprocess.run(['git', 'init', '-q', str(self.work)], check=True)
        for words in ('*.log', '*.log', '*.o'):
            (self.work / '.git/info/exclude').write_text(f'{words}\n')
            client, session = self.opened()
            root = self.runtime(client, session)
            client.close_stdin()
            self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
            files.append(written(root))
            self.assertIn(words, files[-1][1])
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[1], files[2])

    def test_what_the_user_does_is_there_before_the_prompt(self):
        client, session = self.opened()
        (self.work / 'later.txt').write_text('later\n')
        client.prompt(session, 'terminal cat later.txt')
        self.assertIn('later', client.wait_text('terminal/output ->'))

    def test_deletions_and_renames_travel_both_ways(self):
        for name in 'abc':
            (self.work / name).write_text(name)
        client, session = self.opened()
        client.prompt(session, 'terminal rm a; mv b b2')
        self.assertEqual(self.tree(), {'b2': 'b', 'c': 'c'})
        (self.work / 'c').unlink()
        client.prompt(session, 'terminal ls')
        self.assertNotIn('c', client.wait_text('terminal/output ->').split('"output"')[1]
                         .split('truncated')[0].replace('exitCode', ''))

    def test_changes_on_both_sides_of_a_file_are_merged(self):
        lines = [f'line {number}\n' for number in range(20)]
        (self.work / 'text').write_text(''.join(lines))
        client, session = self.opened()
        (self.runtime(client, session) / 'text').write_text(
            ''.join(['agent\n', *lines[1:]]))
        (self.work / 'text').write_text(''.join([*lines[:-1], 'person\n']))
        client.prompt(session, 'say x')
        merged = ''.join(['agent\n', *lines[1:-1], 'person\n'])
        self.assertEqual((self.work / 'text').read_text(), merged)
        self.assertEqual((self.runtime(client, session) / 'text').read_text(), merged)
        self.assertEqual(self.notices(client), [])

    def test_a_conflict_keeps_both_versions_and_is_told_once(self):
        (self.work / 'text').write_text('base\n')
        client, session = self.opened()
        (self.runtime(client, session) / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        client.prompt(session, 'say x')
        self.assertEqual((self.work / 'text').read_text(), 'person\n')
        self.assertEqual(list(self.tree()), ['text'])
        parked, = sync_room.parked_files(self.state)
        self.assertEqual((parked.name, parked.read_text()), ('text', 'agent\n'))
        client.prompt(session, 'say y')
        self.assertEqual(len(self.notices(client)), 1)
        self.assertNames(self.notices(client)[0], f'text | {parked}')
        self.assertEqual((self.runtime(client, session) / 'text').read_text(), 'person\n')
        self.assertEqual([path.name for path in self.runtime(client, session).iterdir()],
                         ['text'])

    def test_a_conflict_that_was_decided_is_none_any_more(self):
        (self.work / 'text').write_text('base\n')
        client, session = self.opened()
        (self.runtime(client, session) / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        client.prompt(session, 'say x')
        taken = subprocess.run([case.BROKER, 'conflicts', 'take', 'text', 'runtime'], cwd=self.work,
                               env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                               capture_output=True, check=False, timeout=processes.PATIENCE)
        self.assertEqual(taken.returncode, 0, taken.stderr)
        for _ in range(2):
            client.prompt(session, 'say y')
            self.assertEqual(self.tree(), {'text': 'agent\n'})
            self.assertEqual((self.runtime(client, session) / 'text').read_text(), 'agent\n')
        self.assertEqual(len(self.notices(client)), 1)
        listed = subprocess.run([case.BROKER, 'conflicts', 'list', '--json'], cwd=self.work,
                                env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                                capture_output=True, check=True, timeout=processes.PATIENCE)
        self.assertEqual(json.loads(listed.stdout)['conflicts'], [])

    def test_few_scripts_are_run_in_the_sandbox(self):
        started = self.dir / 'started'
        script = self.dir / 'bin/sh'
        script.parent.mkdir()
        script.write_text(f'#!/bin/sh\n[ "$3" != acp-broker-sync ] || echo x >> {started}\n'
                          'exec /bin/sh "$@"\n')
        script.chmod(0o755)
        self.programs = script.parent
        for number in range(20):
            (self.work / f'f{number}').write_text('1')
        client, session = self.opened()
        for edited, most in ((None, 1), (self.runtime(client, session), 1), (self.work, 2)):
            for number in range(10 if edited else 0):
                (edited / f'f{number}').write_text(f'{edited}')
            started.write_text('')
            client.call('_broker/sync', {'sessionId': session})
            count = len(started.read_text().split())
            self.assertTrue(1 <= count <= most, f'{edited}: {count}')
            self.assertEqual((self.runtime(client, session) / 'f3').read_text(),
                             (self.work / 'f3').read_text())

    def test_ignored_files_do_not_come_back(self):
        subprocess.run(['git', 'init', '-q', str(self.work)], check=True)
        (self.work / '.gitignore').write_text('node_modules/\n*.log\n')
        (self.work / 'node_modules/x').mkdir(parents=True)
        (self.work / 'node_modules/x/index.js').write_text('here')
        client, session = self.opened()
        client.prompt(session, 'terminal cat node_modules/x/index.js; '
                      'echo there > node_modules/x/index.js; echo l > a.log; echo k > kept')
        self.assertIn('here', client.wait_text('terminal/output ->'))
        self.assertEqual(self.tree(), {'.gitignore': 'node_modules/\n*.log\n', 'kept': 'k\n',
                                       'node_modules/x/index.js': 'here'})

    def test_the_users_repository_is_never_written(self):
        run = lambda *words: subprocess.run(
            ['git', '-C', str(self.work), '-c', 'user.name=A', '-c', 'user.email=a@b', *words],
            check=True, stdout=subprocess.PIPE).stdout.decode()
        run('init', '-q')
        (self.work / 'a').write_text('1')
        run('add', 'a')
        run('commit', '-qm', 'first')
        before = {str(path): path.read_bytes() for path in (self.work / '.git').rglob('*')
                  if path.is_file()}
        client, session = self.opened()
        client.prompt(session, 'terminal git log --oneline; git status --short; echo 2 > a; '
                      'git -c user.name=B -c user.email=b@b commit -qam second')
        self.assertIn('first', client.wait_text('terminal/output ->'))
        self.assertEqual((self.work / 'a').read_text(), '2\n')
        after = {str(path): path.read_bytes() for path in (self.work / '.git').rglob('*')
                 if path.is_file()}
        self.assertEqual(before, after)

    def test_session_mode_syncs_at_the_start_and_at_the_end_only(self):
        (self.work / 'a').write_text('1')
        client, session = self.opened(sync='session-bidirectional')
        client.prompt(session, 'terminal echo 2 > a')
        self.assertEqual((self.work / 'a').read_text(), '1')
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertEqual((self.work / 'a').read_text(), '2\n')

    def test_mode_none_moves_nothing(self):
        (self.work / 'a').write_text('1')
        client, session = self.opened(sync='none')
        client.prompt(session, 'terminal ls -A; echo 2 > b')
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertEqual(self.tree(), {'a': '1'})
        self.assertFalse((self.state / 'stores').exists())


class Ends(SyncCase):
    def test_the_last_edits_are_collected_when_the_editor_leaves(self):
        client, session = self.opened()
        client.prompt(session, 'say x')
        (self.runtime(client, session) / 'late').write_text('late')
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertEqual((self.work / 'late').read_text(), 'late')
        record, = self.records()
        self.assertEqual(record['state'], 'stopped')
        self.assertEqual(record['receipt']['conflicts'], 0)
        self.assertEqual(record['sessions'], [session])

    def test_a_transient_copy_is_gone_after_it_was_collected(self):
        client, session = self.opened(persistence='transient')
        runtime = self.runtime(client, session)
        (runtime / 'late').write_text('late')
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertEqual((self.work / 'late').read_text(), 'late')
        self.assertFalse(runtime.exists())

    def test_a_transient_copy_that_is_made_anew_takes_nothing_away(self):
        subprocess.run(['git', 'init', '-q', str(self.work)], check=True)
        (self.work / '.gitignore').write_text('node_modules/\n')
        (self.work / 'node_modules').mkdir()
        (self.work / 'node_modules/x').write_text('x')
        (self.work / 'a').write_text('a')
        for turn in '12':
            client, session = self.opened(persistence='transient')
            client.prompt(session, f'terminal cat a; echo {turn} > b{turn}')
            client.close_stdin()
            self.assertEqual(client.wait(), 0)
        self.assertEqual(self.tree(), {'.gitignore': 'node_modules/\n', 'node_modules/x': 'x',
                                       'a': 'a', 'b1': '1\n', 'b2': '2\n'})

    def test_a_reused_copy_is_found_again_with_what_is_in_it(self):
        client, session = self.opened()
        runtime = self.runtime(client, session)
        client.prompt(session, 'terminal mkdir build; echo built > build/out')
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        client, session = self.opened()
        self.assertEqual(self.runtime(client, session), runtime)
        self.assertEqual((runtime / 'build/out').read_text(), 'built\n')

    def test_an_agent_that_dies_has_its_edits_collected(self):
        client, session = self.opened()
        client.prompt(session, 'say x')
        (self.runtime(client, session) / 'late').write_text('late')
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.assertTrue(processes.wait_until(lambda: (self.work / 'late').exists(), 30))

    def test_killed_brokers_lose_nothing(self):
        client, session = self.opened()
        (self.runtime(client, session) / 'late').write_text('late')
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        client, session = self.opened()
        self.assertEqual((self.work / 'late').read_text(), 'late')


class Renamed(SyncCase):
    """One side renames a folder while the other edits in it."""

    LINES = [f'line {number}\n' for number in range(20)]

    def setUp(self):
        super().setUp()
        (self.work / 'old').mkdir()
        for name in ('a.c', 'b.c'):
            (self.work / 'old' / name).write_text(''.join(self.LINES))

    def edited(self, first=None, last=None):
        return ''.join([first or self.LINES[0], *self.LINES[1:-1], last or self.LINES[-1]])

    def check(self, edits_here, edits_there):
        """
        One side edits the first line of old/a.c, the other the last; both sides end with all of it
        in new/.
        """
        client, session = self.opened()
        prompt = client.start_prompt(session, f'terminal {edits_there}', 'say edited', 'hang')
        client.wait_text('edited')
        subprocess.run(['sh', '-c', edits_here], cwd=self.work, check=True)
        client.notify('session/cancel', {'sessionId': session})
        client.answer(prompt)
        wanted = {'new/a.c': self.edited('first\n', 'last\n'), 'new/b.c': self.edited(),
                  'new/added': 'added\n'}
        self.assertEqual(self.tree(), wanted)
        self.assertEqual(self.notices(client), [])
        client.prompt(session, 'terminal find . -type f -not -path "./.git/*" | sort; cat new/a.c')
        runtime = self.runtime(client, session)
        self.assertEqual({str(path.relative_to(runtime)): path.read_text()
                          for path in runtime.rglob('*')
                          if path.is_file() and '.git' not in path.parts}, wanted)
        self.assertEqual(self.tree(), wanted)

    EDITS = "sed -i '$s/.*/last/' old/a.c; echo added > old/added"
    RENAMES = "mv old new; sed -i '1s/.*/first/' new/a.c"

    def test_the_agents_edits_follow_the_user(self):
        self.check(self.RENAMES, self.EDITS)

    def test_the_users_edits_follow_the_agent(self):
        self.check(self.EDITS, self.RENAMES)


class Checkpoints(SyncCase):
    def list(self, client, session):
        return fitting('checkpoint-list', client.call(
            '_broker/checkpoint/list', {'sessionId': session}))['checkpoints']

    def test_each_turn_is_one_and_one_can_go_back(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        for turn in '12':
            client.prompt(session, f'terminal echo {turn} > a; echo {turn} > new{turn}')
        found = self.list(client, session)
        self.assertEqual([c['turn'] for c in found], [None, 1, 2])
        diff = client.call('_broker/checkpoint/diff', {'sessionId': session, 'from': 1, 'to': 2})
        fitting('checkpoint-diff', diff)
        self.assertIn('-0\n+1\n', diff['diff'])
        status = client.call('_broker/checkpoint/rollback',
                             {'sessionId': session, 'checkpoint': 2})
        self.assertEqual(self.tree(), {'a': '1\n', 'new1': '1\n'})
        self.assertFalse((self.runtime(client, session) / 'new2').exists())
        client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 3})
        self.assertEqual(self.tree(), {'a': '2\n', 'new1': '1\n', 'new2': '2\n'})
        self.assertIsNone(fitting('session-status', status)['lastSync']['error'])

    def reasons(self, client, session):
        return [(c['reason'], c['turn']) for c in self.list(client, session)]

    def test_each_turn_has_one_however_many_syncs_there_were(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        client.prompt(session, 'terminal echo 1 > a')
        (self.work / 'mine').write_text('1\n')  # before a turn that changes nothing
        client.prompt(session, 'say  nothing', 'say more')
        client.call('_broker/sync', {'sessionId': session})
        prompt = client.start_prompt(session, 'terminal echo 3 > a', 'say on', 'hang')
        client.wait_text('on')
        (self.work / 'mine').write_text('2\n')
        client.call('_broker/sync', {'sessionId': session})
        client.notify('session/cancel', {'sessionId': session})
        self.assertEqual(client.answer(prompt)['stopReason'], 'cancelled')
        wanted = [('start', None), ('turn 1: terminal echo 1 > a', 1), ('before turn 2', None),
                  ('turn 2: say nothing say more', 2), ('sync', None),
                  ('turn 3: terminal echo 3 > a say on hang', 3)]
        self.assertEqual(self.reasons(client, session), wanted)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        self.check_count_goes_on(session, wanted)

    def check_count_goes_on(self, session, wanted):
        """Another broker loads the session, and goes on counting its turns."""
        client = self.copied()
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, PATIENCE)
        (self.work / 'mine').write_text('3\n')
        client.prompt(session, 'terminal cat mine > a')
        other = client.new_session(self.work)
        client.prompt(other, 'say on')
        wanted = [*wanted[1:], ('before turn 4', None), ('turn 4: terminal cat mine > a', 4),
                  ('turn 1: say on', 1)]
        found = self.reasons(client, session)
        self.assertEqual([one for one in found if one[0] != 'start'], wanted)
        before, = [c for c in self.list(client, session) if c['reason'] == 'before turn 4']
        client.call('_broker/checkpoint/rollback',
                    {'sessionId': session, 'checkpoint': before['checkpoint']})
        self.assertEqual(self.tree(), {'a': '3\n', 'mine': '3\n'})

    def test_what_was_not_synced_yet_can_be_had_back_after_a_rollback(self):
        (self.work / 'a').write_text('0\n')
        client, session = self.opened()
        (self.work / 'a').write_text('unsynced\n')
        client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': '1'})
        self.assertEqual((self.work / 'a').read_text(), '0\n')
        before = self.list(client, session)[-2]
        self.assertIn('before', before['reason'])
        client.call('_broker/checkpoint/rollback',
                    {'sessionId': session, 'checkpoint': before['checkpoint']})
        self.assertEqual((self.work / 'a').read_text(), 'unsynced\n')

    def test_none_is_rolled_back_while_a_prompt_runs(self):
        client, session = self.opened()
        prompt = client.start('session/prompt', {
            'sessionId': session, 'prompt': [{'type': 'text', 'text': 'say on\nhang'}]})
        client.wait_text('on')
        with self.assertRaises(RpcError) as refused:
            client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 1})
        self.assertEqual(refused.exception.data['code'], 'TOOLS_IN_FLIGHT')
        client.notify('session/cancel', {'sessionId': session})
        self.assertEqual(client.answer(prompt)['stopReason'], 'cancelled')

    def test_a_named_one_is_made_on_demand(self):
        client, session = self.opened()
        (self.work / 'a').write_text('x')
        client.call('_broker/checkpoint/create', {'sessionId': session, 'name': 'before lunch'})
        self.assertEqual(self.list(client, session)[-1]['reason'], 'before lunch')

    def test_wrong_ones_are_refused(self):
        client, session = self.opened()
        for which in (99, 'x', 0):
            with self.assertRaises(RpcError):
                client.call('_broker/checkpoint/rollback',
                            {'sessionId': session, 'checkpoint': which})
        with self.assertRaises(RpcError) as refused:
            client.call('_broker/checkpoint/rollback', {'sessionId': session})
        self.assertEqual(refused.exception.data['code'], 'INVALID_PARAMS')


class Plain(SyncCase):
    """The agent works in the workspace itself."""

    def plain(self, **keys):
        client = self.broker(options=self.config(checkpoints='true', **keys))
        client.initialize()
        return client, client.new_session(self.work)

    def test_checkpoints_are_kept_where_they_are_asked_for(self):
        (self.work / 'a').write_text('0')
        client, session = self.plain()
        for turn in '12':
            (self.work / 'a').write_text(turn)
            client.prompt(session, f'say {turn}')
        found = client.call('_broker/checkpoint/list', {'sessionId': session})['checkpoints']
        self.assertEqual([c['reason'] for c in found], ['start', 'before turn 1', 'turn 1: say 1',
                                                        'before turn 2', 'turn 2: say 2'])
        client.call('_broker/checkpoint/rollback', {'sessionId': session, 'checkpoint': 1})
        self.assertEqual(self.tree(), {'a': '0'})
        self.assertEqual(self.status(client, session)['runtimeRoot'], str(self.work))

    def test_the_editor_still_serves_and_nothing_else_is_changed(self):
        (self.work / 'a').write_text('0')
        client, session = self.plain()
        client.prompt(session, f'read {self.work}/a', f'write {self.work}/b x')
        self.assertEqual([method for method, _ in client.host.seen],
                         ['fs/read_text_file', 'fs/write_text_file'])
        self.assertEqual(self.tree(), {'a': '0', 'b': 'x'})


class Two(SyncCase):
    def test_two_brokers_on_one_workspace_both_work(self):
        one, first = self.opened(profile='one')
        two, second = self.opened(profile='two')
        threads = [threading.Thread(target=client.prompt,
                                    args=(session, f"terminal echo {name} > {name}"))
                   for client, session, name in ((one, first, 'x'), (two, second, 'y'))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.tree(), {'x': 'x\n', 'y': 'y\n'})
        one.prompt(first, 'terminal cat y; echo seen')
        self.assertTrue([text for text in one.texts() if 'y\\nseen' in text], one.texts())


class Refusals(SyncCase):
    def test_the_home_directory_is_not_copied(self):
        client = self.copied()
        with self.assertRaises(RpcError) as refused:
            client.new_session(self.dir / 'home')
        self.assertIn('home', refused.exception.message)
        self.assertEqual(refused.exception.data['stage'], 'sync')

    def test_a_plain_session_has_nothing_to_sync(self):
        client = self.broker()
        client.initialize()
        session = client.new_session(self.work)
        with self.assertRaises(RpcError) as refused:
            client.call('_broker/sync', {'sessionId': session})
        self.assertEqual(refused.exception.data['code'], 'NOT_SYNCED')


class Gone(SyncCase):
    def test_an_agent_that_removes_its_own_directory_takes_nothing_along(self):
        (self.work / 'a.txt').write_text('mine\n')
        client, session = self.opened(sync='session-bidirectional')
        root = self.runtime(client, session)
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        shutil.rmtree(root)
        client, session = self.opened(sync='session-bidirectional')
        self.assertEqual((self.work / 'a.txt').read_text(), 'mine\n')
        self.assertEqual((root / 'a.txt').read_text(), 'mine\n')


if __name__ == '__main__':
    case.main()
