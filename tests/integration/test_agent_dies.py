#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent dies in mid-session: every request is answered, and the next session has a new agent."""

import os
import signal

import processes
from acp import RpcError
from case import STUBBORN, Case, main
from host import NEVER


class Dying(Case):
    deadlines = {}

    def setUp(self):
        super().setUp()
        self.client = self.broker(options=self.config(**self.deadlines))
        self.client.initialize()
        self.session = self.client.new_session(self.work)

    def die(self, *lines, session=None):
        """Sends a prompt in which the agent dies, and returns its error."""
        prompt = self.client.start_prompt(session or self.session, *lines)
        error = self.failure(self.client.response(prompt), 'AGENT_EXITED')
        self.assertTrue(error['data']['retryable'])
        return error

    def works_again(self):
        """A new session starts a fresh agent, which is initialized like the first one."""
        session = self.client.new_session(self.work)
        self.client.prompt(session, 'say alive')
        self.assertEqual(self.client.texts()[-1], 'alive')
        received = self.journal('<')
        greetings = [line for line in received if b'"initialize"' in line]
        self.assertEqual(len(greetings), 2)
        self.assertEqual(*(line[line.index(b'"method"'):] for line in greetings))


class AgentDies(Dying):
    def test_how_it_ended_and_its_last_words(self):
        error = self.die('log first words', 'log last words', 'exit 3')
        told = error['message'] + error['data'].get('detail', '')
        self.assertIn('exited with status 3', told)
        self.assertIn('last words', error['data']['detail'])
        self.assertIn('scripted-agent', told)
        self.works_again()

    def test_death_by_a_signal_is_named(self):
        error = self.die('log so this is it', 'crash')
        self.assertIn('SIGABRT', error['message'] + error['data'].get('detail', ''))
        self.works_again()

    def test_an_end_with_status_0_is_a_death_as_well(self):
        error = self.die('exit 0')
        self.assertIn('exited with status 0', error['message'] + error['data'].get('detail', ''))
        self.works_again()

    def test_the_tail_of_stderr_is_its_end(self):
        error = self.die('stderr 5000', 'exit 1')
        detail = error['data']['detail']
        self.assertIn('stderr line 5000 of 5000', detail)
        self.assertLess(len(detail), 10000)
        self.assertNotIn('stderr line 1 of', detail)

    def test_what_it_said_before_comes_before_the_error(self):
        prompt = self.client.start_prompt(self.session, 'stream 5000 200', 'exit 4')
        self.failure(self.client.response(prompt), 'AGENT_EXITED')
        texts = self.client.texts(self.session)
        self.assertEqual([int(text[:8]) for text in texts], list(range(5000)))

    def test_every_open_request_is_answered_once(self):
        second = self.client.new_session(self.work)
        self.client.host.replies['session/request_permission'] = NEVER
        waiting = [self.client.start_prompt(self.session, 'hang'),
                   self.client.start_prompt(second, 'permission May I?'),
                   self.client.start_prompt(second, 'hang', request_id=b'"third"')]
        asked = self.client.wait_for(lambda m: m.method == 'session/request_permission')
        os.kill(self.agent_pids()[0], signal.SIGKILL)
        for raw_id in waiting:
            error = self.failure(self.client.response(raw_id), 'AGENT_EXITED')
            self.assertIn('SIGKILL', error['message'] + error['data'].get('detail', ''))
        withdrawn = self.client.wait_for(lambda m: m.method == '$/cancel_request')
        self.assertEqual(withdrawn.params, {'requestId': int(asked.id)})
        # The user answers the question after the broker has withdrawn it.
        self.client.send_line(b'{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":'
                              b'"cancelled"}}}' % asked.id)
        self.works_again()
        answers = [message.id for message in self.client.received if message.is_response]
        self.assertEqual(len(answers), len(set(answers)))
        self.assertFalse(any(b'"outcome"' in line for line in self.journal('<')))

    def test_the_old_session_may_be_loaded_by_the_editor(self):
        self.die('exit 1')
        self.client.call('session/load', {'sessionId': self.session, 'cwd': str(self.work),
                                          'mcpServers': []})
        self.client.prompt(self.session, 'say back again')
        self.assertEqual(self.client.texts()[-1], 'back again')

    def test_it_may_die_again_and_again(self):
        for _ in range(5):
            self.die('say hello', 'exit 1', session=self.session)
            self.session = self.client.new_session(self.work)
        self.client.prompt(self.session, 'say still here')
        self.assertTrue(processes.wait_until(lambda: self.locks() == 1))
        files = processes.open_files(self.client.pid)
        for _ in range(5):
            self.die('exit 1', session=self.session)
            self.session = self.client.new_session(self.work)
        self.assertTrue(processes.wait_until(
            lambda: processes.open_files(self.client.pid) <= files))

    def locks(self):
        """The number of sessions' records that the broker holds; it takes them after the answer."""
        return sum(name.endswith('.lock') for name in processes.files_of(self.client.pid))

    def test_a_session_that_cannot_be_loaded_is_not_papered_over(self):
        client = self.broker('--need-auth')
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertEqual(caught.exception.code, -32000)

    def test_authentication_is_repeated_for_the_fresh_agent(self):
        client = self.broker('--need-auth')
        client.initialize()
        client.call('authenticate', {'methodId': 'token'})
        session = client.new_session(self.work)
        prompt = client.start_prompt(session, 'exit 1')
        self.failure(client.response(prompt), 'AGENT_EXITED')
        client.prompt(client.new_session(self.work), 'say alive')
        self.assertEqual(client.texts()[-1], 'alive')


class LeavesSomething(Dying):
    """A process or descriptor of the agent stays, for longer than any test waits."""

    deadlines = {**STUBBORN, 'drain_timeout': '500ms'}

    def test_a_child_that_holds_its_stdout_delays_nothing_for_long(self):
        self.die('hold-stdout', 'exit 2')
        self.works_again()

    def test_what_it_left_behind_is_ended(self):
        self.die('double-fork', 'hold-stdout', 'exit 2')
        left = self.agent_pids()[:3]
        gone = processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in left))
        self.assertTrue(gone, processes.describe(left))
        self.works_again()

    def test_an_agent_that_closes_its_stdout_is_of_no_use(self):
        self.die('close-stdout', 'deaf', 'hang')
        self.works_again()


if __name__ == '__main__':
    main()
