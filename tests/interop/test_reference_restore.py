#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The reference agent, claude-code-acp, restores its sessions: after it was killed, and through
another broker. The messages that it sends to its model show that it remembers.
"""

import os
import pathlib
import signal

from pair import NEEDED, NODE, Pair, path_of
from model import Model
import processes
from case import main

AGENT = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]
SECONDS = 120


@NEEDED
class Restore(Pair):
    isolation = 'none'

    def setUp(self):
        super().setUp()
        self.fresh()
        self.model = Model([], 'So it is.')
        self.addCleanup(self.model.close)

    def settings(self):
        return {**self.deadlines, 'isolation': self.isolation}

    def begin(self):
        env = dict(self.environment(), ANTHROPIC_BASE_URL=self.model.url, ANTHROPIC_API_KEY='x',
                   DISABLE_AUTOUPDATER='1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC='1')
        options = self.config(deadlines=False, **self.settings())
        client = self.broker(options=options, agent=AGENT, env=env)
        client.initialize(seconds=SECONDS)
        return client

    def new_session(self, client):
        return client.call('session/new', {'cwd': str(self.work), 'mcpServers': []},
                           SECONDS)['sessionId']

    def remembered(self, client, session, text):
        """
        The number of messages in the model's request for a prompt: this is the session as the agent
        has it.
        """
        before = len(self.model.requests)
        self.assertEqual(client.prompt(session, text, seconds=SECONDS)['stopReason'], 'end_turn')
        self.assertEqual(client.texts(session)[-1].strip(), 'is.')
        return max(count for _, count, _ in self.model.requests[before:])

    def await_written(self, session, text):
        """
        Waits until the agent has written the text into its file, which it does some time later.
        """
        home = pathlib.Path(self.environment()['HOME'])
        self.assertTrue(processes.wait_until(
            lambda: any(text in path.read_text() for path in home.rglob(f'{session}.jsonl')),
            SECONDS), f'{session} is in no file of {home}')

    def agent_of(self, client):
        """The agent's process, found by its command line."""
        found = [pid for pid in processes.descendants(client.pid)
                 if AGENT[1].encode() in processes.read_file(f'/proc/{pid}/cmdline')]
        self.assertEqual(len(found), 1, processes.describe(processes.descendants(client.pid)))
        return found[0]

    def test_after_it_was_killed(self):
        client = self.begin()
        session = self.new_session(client)
        self.assertEqual(self.remembered(client, session, 'one'), 1)
        agent = self.agent_of(client)
        self.await_written(session, 'one')
        os.kill(agent, signal.SIGKILL)
        self.assertTrue(processes.wait_until(
            lambda: agent not in processes.descendants(client.pid), SECONDS))
        self.assertIn(self.remembered(client, session, 'two'), [2, 3])  # with or without the answer
        self.assertNotEqual(self.agent_of(client), agent)

    def test_through_another_broker(self):
        """After an ordinary end, and after the kill of the broker."""
        client = self.begin()
        session = self.new_session(client)
        self.assertEqual(self.remembered(client, session, 'one'), 1)
        client.close_stdin()
        self.assertEqual(client.wait(SECONDS), 0, client.stderr)
        for method in ('session/load', 'session/resume'):
            client = self.begin()
            client.call(method, {'sessionId': session, 'cwd': str(self.work), 'mcpServers': []},
                        SECONDS)
            # 5 after the kill as well, if the agent had already written the last answer.
            self.assertIn(self.remembered(client, session, 'more'),
                          {'session/load': [3], 'session/resume': [3, 5]}[method])
            os.kill(client.pid, signal.SIGKILL)
            client.wait(SECONDS)
            self.assert_nothing_runs()


class RestoreInCopy(Restore):
    isolation = 'copy'


if __name__ == '__main__':
    main()
