#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Prompts, answers and the syncs between them: slow syncs, failed ones, and prompts that nobody waits
for any more.
"""

import os
import signal

import case
import processes

from acp import RpcError
from host import NEVER
from processes import PATIENCE
from sync_case import RUNNING, TurnCase

class Shown(TurnCase):
    def test_a_slow_sync_before_a_prompt_is_shown_until_it_has_ended(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say on')
            self.wait_running(client, session)
            self.assertEqual(self.heard('session/prompt'), 0)
        client.answer(prompt, PATIENCE)
        (_, kind, number, _, status), (_, kind2, number2, title2, status2) = \
            self.shown(client, session)[:2]
        self.assertEqual([kind, status, kind2, status2],
                         ['tool_call', 'in_progress', 'tool_call_update', 'completed'])
        self.assertEqual(number, number2)
        self.assertIn(f'{self.work}: synced (turn)', title2)
        kinds = [m.params['update'].get('title') or m.text for m in client.received
                 if m.method == 'session/update']
        self.assertLess(kinds.index(title2), kinds.index('on'))

    def test_a_slow_sync_after_a_prompt_is_shown_before_the_answer(self):
        client, session = self.opened()
        release = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission go', 'say done')
        client.wait_text('done', PATIENCE)
        place = client.messages.index(self.wait_held(client, session))
        release()
        answer = client.response(prompt, PATIENCE)
        self.assertEqual(answer.value['result'], {'stopReason': 'end_turn'})
        end = client.wait_for(lambda m: m.method == 'session/update'
                              and m.params['update'].get('status') == 'completed', 1, place)
        self.assertLess(client.messages.index(end), client.messages.index(answer))
        self.assertEqual([entry[1] for entry in self.shown(client, session)][-2:],
                         ['tool_call', 'tool_call_update'])

    def test_the_news_of_a_slow_sync_are_its_end(self):
        (self.work / 'text').write_text('base\n')
        client, session = self.opened()
        (self.runtime(client, session) / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        with self.held_store():
            prompt = client.start_prompt(session, 'say on')
            self.wait_running(client, session)
        client.answer(prompt, PATIENCE)
        first, second = self.shown(client, session)[:2]
        self.assertEqual(first[3], RUNNING)
        self.assertEqual((second[1], second[2], second[4]),
                         ('tool_call_update', first[2], 'completed'))
        self.assertIn('changed on both sides', second[3])
        self.assertEqual(len(self.notices(client)), 1)

    def test_what_the_last_collect_found_is_told_to_the_last_session(self):
        (self.work / 'text').write_text('base\n')
        client, session = self.opened()
        client.prompt(session, 'say on', seconds=PATIENCE)
        (self.runtime(client, session) / 'text').write_text('agent\n')
        (self.work / 'text').write_text('person\n')
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        client.wait_for(lambda m: m.method == 'session/update' and 'changed on both sides'
                        in m.params['update'].get('title', ''), PATIENCE)


class Failed(TurnCase):
    def broken_runtime(self, client, session):
        """Takes away the folder in which the agent works; the test can put it back."""
        runtime = self.runtime(client, session)
        away = runtime.with_name('away')
        runtime.rename(away)
        return lambda: away.rename(runtime)

    def test_a_failure_before_a_prompt_fails_it_and_the_next_one_works(self):
        client, session = self.opened(sync_lock_timeout='100ms')
        with self.held_store():
            with self.assertRaises(RpcError) as failed:
                client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(failed.exception.data['code'], 'TIMEOUT_EXCEEDED')
        self.assertEqual(failed.exception.data['stage'], 'sync')
        self.assertIs(failed.exception.data['retryable'], True)
        self.assertNames(failed.exception.message,
                         f'{self.work} | sync-lock-timeout | not sent')
        self.assertEqual(self.heard('session/prompt'), 0)
        self.assertEqual([entry[4] for entry in self.shown(client, session)][-1], 'failed')
        (self.work / 'a').write_text('1')
        client.prompt(session, 'terminal cat a', seconds=PATIENCE)
        self.assertIsNone(self.status(client, session)['lastSync']['error'])

    def test_a_runtime_that_is_gone_fails_the_prompt_and_deletes_nothing(self):
        (self.work / 'a').write_text('1')
        client, session = self.opened()
        put_back = self.broken_runtime(client, session)
        with self.assertRaises(RpcError) as failed:
            client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(failed.exception.data['stage'], 'sync')
        self.assertEqual(self.tree(), {'a': '1'})
        put_back()
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '1'})

    def test_a_failure_after_a_prompt_is_reported_with_its_answer(self):
        client, session = self.opened(sync_lock_timeout='100ms')
        release = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission go', 'terminal echo 1 > a')
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        (_, _, _, title, status) = self.shown(client, session)[-1]
        self.assertEqual(status, 'failed')
        self.assertIn('sync-lock-timeout', title)
        self.assertEqual(self.tree(), {})
        release()
        client.prompt(session, 'say on', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '1\n'})

    def test_a_session_that_could_not_be_opened_is_no_hindrance_to_another(self):
        other = self.dir / 'other'
        other.mkdir()
        client = self.copied(max_files='2')
        for name in 'abc':
            (self.work / name).write_text(name)
        with self.assertRaises(RpcError) as refused:
            client.new_session(self.work)
        self.assertEqual(refused.exception.data['stage'], 'sync')
        self.assertIn('max-files', refused.exception.message)
        session = client.new_session(other)
        client.prompt(session, 'terminal echo 1 > a', seconds=PATIENCE)
        self.assertEqual((other / 'a').read_text(), '1\n')
        (self.work / 'c').unlink()
        client.prompt(client.new_session(self.work), 'terminal echo 1 > a', seconds=PATIENCE)
        self.assertEqual(self.tree(), {'a': '1\n', 'b': 'b'})

    def test_directories_that_are_no_project_are_refused(self):
        for where in ('/', '/etc', self.dir / 'home', '/tmp'):
            with self.subTest(where):
                client = self.copied()
                with self.assertRaises(RpcError) as refused:
                    client.new_session(where)
                self.assertNames(refused.exception.message, 'project\'s own directory')
                self.assertEqual(refused.exception.data['stage'], 'sync')
                self.ended(client)
        self.assertEqual(list(self.state.rglob('objects')), [])

    def test_a_directory_that_is_not_here_leaves_no_record(self):
        for where, words in ((self.dir / 'none', f'{self.dir}/none | make it'),
                             (self.dir / 'none/below', f'{self.dir}/none | make it'),
                             ('work', 'begins with /')):
            with self.subTest(where):
                client = self.copied()
                with self.assertRaises(RpcError) as refused:
                    client.new_session(where)
                self.assertNames(refused.exception.message, words)
                self.ended(client)
        for mode in ('none', 'session-bidirectional'):
            with self.subTest(mode):
                client = self.copied(sync=mode)
                with self.assertRaises(RpcError):
                    client.new_session('work')
                self.ended(client)
        self.assertEqual(list((self.state / 'sessions').glob('*.json')), [])

    def test_a_state_folder_that_cannot_be_made_is_told_with_what_decides_on_it(self):
        (self.dir / 'home').mkdir(exist_ok=True)
        (self.dir / 'home/state').write_text('a file in its place')
        with self.assertRaises(RpcError) as refused:
            self.copied().new_session(self.work)
        self.assertIn(str(self.dir / 'home/state'), refused.exception.message)
        self.assertIn('XDG_STATE_HOME names another place', refused.exception.message)

    def test_what_the_copies_are_in_is_not_copied_either(self):
        client = self.copied(sync='none')
        with self.assertRaises(RpcError) as refused:
            client.new_session(self.dir / 'home')
        self.assertNames(refused.exception.message, 'contains | copies')
        self.assertEqual(list((self.state / 'copies').glob('*/*/home')), [])


class Overlapping(TurnCase):
    def test_prompts_of_two_sessions_are_both_answered(self):
        client, one = self.opened()
        two = client.new_session(self.work)
        prompts = []
        for turn in range(3):
            prompts += [client.start_prompt(one, f'terminal echo {turn} > one{turn}'),
                        client.start_prompt(two, f'terminal echo {turn} > two{turn}')]
        for prompt in prompts:
            self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(self.tree(), {f'{name}{turn}': f'{turn}\n' for turn in range(3)
                                       for name in ('one', 'two')})
        found = client.call('_broker/checkpoint/list', {'sessionId': one})['checkpoints']
        numbers = [checkpoint['checkpoint'] for checkpoint in found]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_a_rollback_waits_for_no_prompt_that_waits_for_a_sync(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say on')
            self.wait_running(client, session)
            with self.assertRaises(RpcError) as refused:
                client.call('_broker/checkpoint/rollback',
                            {'sessionId': session, 'checkpoint': 1})
        self.assertEqual(refused.exception.data['code'], 'TOOLS_IN_FLIGHT')
        self.assertIn(session, refused.exception.message)
        client.answer(prompt, PATIENCE)

    def test_a_prompt_during_a_rollback_is_refused(self):
        client, session = self.opened()
        with self.held_store():
            rollback = client.start('_broker/checkpoint/rollback',
                                    {'sessionId': session, 'checkpoint': 1})
            with self.assertRaises(RpcError) as refused:
                client.prompt(session, 'say on')
        self.assertEqual(refused.exception.data['code'], 'ROLLBACK_IN_PROGRESS')
        client.answer(rollback, PATIENCE)
        client.prompt(session, 'say on', seconds=PATIENCE)

    def test_no_more_prompts_wait_than_the_limit_says(self):
        client, session = self.opened(max_requests='2')
        with self.held_store():
            waiting = [client.start_prompt(session, 'say on') for _ in range(2)]
            with self.assertRaises(RpcError) as refused:
                client.prompt(session, 'say too much')
        self.assertEqual(refused.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertEqual(refused.exception.data['stage'], 'sync')
        for prompt in waiting:
            client.answer(prompt, PATIENCE)


class Cancelled(TurnCase):
    def check_unheard(self, client, session, prompt):
        """Checks that the prompt was answered as cancelled while its sync waited."""
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'cancelled'})

    def next_prompt_works(self, client, session):
        client.prompt(session, 'say after', seconds=PATIENCE)
        self.assertEqual(client.texts(session), ['after'])
        self.assertEqual(self.heard('session/prompt'), 1)
        self.assertEqual(self.heard('session/cancel'), 0)
        self.assertEqual(self.heard('$/cancel_request'), 0)

    def test_a_cancel_during_the_sync_before_a_prompt_answers_it_at_once(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            self.wait_running(client, session)
            client.notify('session/cancel', {'sessionId': session})
            self.check_unheard(client, session, prompt)
            self.assertEqual(self.shown(client, session)[-1][4], 'failed')
        self.next_prompt_works(client, session)

    def test_a_prompt_that_waits_can_be_cancelled_by_its_id(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say never', request_id=b'"x\\u0031"')
            client.notify('$/cancel_request', {'requestId': 'unknown'})
            client.send_line(b'{"jsonrpc":"2.0","method":"$/cancel_request",'
                             b'"params":{"requestId":"x\\u0031"}}')
            self.check_unheard(client, session, prompt)
        self.next_prompt_works(client, session)

    def test_a_prompt_waits_for_the_mode_that_changed_during_its_sync(self):
        config = self.dir / 'config-copy'
        values = dict(case.DEADLINES, **{'isolation': 'copy', 'start-timeout': '4s'})
        config.write_text('\n'.join([
            '[profile "copy"]', *(f'\t{name} = {value}' for name, value in values.items()),
            '[policy "copy"]', '\tmode = pass']) + '\n')
        client = self.broker('--silent-modes',
                             options=['--config', str(config), '--profile', 'copy'])
        client.initialize()
        session = client.new_session(self.work)
        client.host.replies['session/request_permission'] = NEVER
        update = '{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}'
        first = client.start_prompt(session, 'permission go', f'update {update}', 'say yolo',
                                    'hang')
        question = client.wait_for(lambda m: m.method == 'session/request_permission', PATIENCE)
        with self.held_store():
            second = client.start_prompt(session, 'say two')
            self.wait_running(client)
            client.send({'jsonrpc': '2.0', 'id': question.value['id'],
                         'result': {'outcome': {'outcome': 'cancelled'}}})
            client.wait_text('yolo', PATIENCE)
        self.failure(client.response(second, PATIENCE), 'PERMISSION_DENIED')
        self.assertEqual(client.answer(first, PATIENCE), {'stopReason': 'cancelled'})
        self.assertEqual(self.heard('session/prompt'), 1)

    def test_only_the_sessions_own_prompt_is_cancelled(self):
        client, one = self.opened()
        two = client.new_session(self.work)
        with self.held_store():
            first = client.start_prompt(one, 'say one')
            second = client.start_prompt(two, 'say two')
            client.notify('session/cancel', {'sessionId': two})
            self.check_unheard(client, two, second)
        self.assertEqual(client.answer(first, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(client.texts(), ['one'])

    def test_a_cancel_during_the_sync_after_a_prompt_changes_nothing(self):
        client, session = self.opened()
        release = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission go', 'terminal echo 1 > a', 'say done')
        self.wait_held(client, session)
        client.notify('session/cancel', {'sessionId': session})
        client.send_line(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":'
                         b'{"requestId":%s}}' % prompt)
        release()
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(self.tree(), {'a': '1\n'})
        client.prompt(session, 'say after', seconds=PATIENCE)
        self.assertIn('after', client.texts(session))


class Interrupted(TurnCase):
    def test_an_agent_that_dies_during_the_sync_before_a_prompt_answers_it(self):
        client, session = self.opened()
        (self.runtime(client, session) / 'late').write_text('late')
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            self.wait_running(client, session)
            os.kill(self.agent_pids()[-1], signal.SIGKILL)
            self.failure(client.response(prompt, PATIENCE), 'AGENT_EXITED')
        self.assertTrue(processes.wait_until((self.work / 'late').exists, PATIENCE))
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, PATIENCE)
        self.assertEqual(client.prompt(session, 'say back', seconds=PATIENCE),
                         {'stopReason': 'end_turn'})

    def test_an_agent_that_dies_during_the_sync_after_a_prompt_has_answered_it(self):
        client, session = self.opened()
        release = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission go', 'terminal echo 1 > a', 'say done')
        self.wait_held(client, session)
        os.kill(self.agent_pids()[-1], signal.SIGKILL)
        self.assertTrue(processes.wait_until(
            lambda: 'SIGKILL' in client.stderr, PATIENCE), client.stderr)
        release()
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(self.tree(), {'a': '1\n'})

    def interrupt(self, end):
        """
        Ends a broker whose prompt waits for a sync; checks that everything is collected all the
        same.
        """
        client, session = self.opened()
        (self.runtime(client, session) / 'late').write_text('late')
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            self.wait_running(client, session)
            end(client)
            self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'cancelled'})
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual(self.tree(), {'late': 'late'})
        self.assertEqual(self.heard('session/prompt'), 0)
        record, = self.records()
        self.assertEqual(record['state'], 'stopped')

    def test_the_editor_may_leave_during_a_sync(self):
        self.interrupt(lambda client: client.close_stdin())

    def test_the_broker_may_be_ended_during_a_sync(self):
        self.interrupt(lambda client: os.kill(client.pid, signal.SIGTERM))

    def test_a_second_signal_hurries_a_last_collect_that_waits_for_another_broker(self):
        client, session = self.opened()
        runtime = self.runtime(client, session)
        (runtime / 'late').write_text('late')
        with self.held_store():
            os.kill(client.pid, signal.SIGTERM)
            self.assertTrue(processes.wait_until(
                lambda: [r['state'] for r in self.records()] == ['collecting'], PATIENCE))
            os.kill(client.pid, signal.SIGTERM)
            client.wait(PATIENCE)
        self.assertNames(client.stderr, 'next session')
        self.assertEqual((self.tree(), (runtime / 'late').read_text()), ({}, 'late'))
        record, = self.records()
        self.assertEqual(record['state'], 'failed')
        self.opened()
        self.assertEqual(self.tree(), {'late': 'late'})

    def interrupt_answer(self, end):
        client, session = self.opened()
        release = self.hold_when_asked(client)
        prompt = client.start_prompt(session, 'permission go', 'terminal echo 1 > a', 'say done')
        self.wait_held(client, session)
        end(client)
        release()
        self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'end_turn'})
        self.assertEqual(client.wait(PATIENCE), 0)
        self.assertEqual(self.tree(), {'a': '1\n'})

    def test_the_editor_may_leave_before_an_answer_that_waits(self):
        self.interrupt_answer(lambda client: client.close_stdin())

    def test_the_broker_may_be_ended_before_an_answer_that_waits(self):
        self.interrupt_answer(lambda client: os.kill(client.pid, signal.SIGTERM))


if __name__ == '__main__':
    case.main()
