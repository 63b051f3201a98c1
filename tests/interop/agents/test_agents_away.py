#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Today's agents on a host whose connection is lost in the middle of a turn (`outlives = auto`). The
command that the agent has begun ends while nobody is connected, and the agent itself asks the model
for the next step. What it needs from the user or the broker waits until the connection is back.
"""

import pathlib
import signal
import sys
import unittest

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from pair import NODE  # noqa: E402
import net  # noqa: E402
import processes  # noqa: E402
from agent_case import NEEDED, SECONDS  # noqa: E402
from case import main  # noqa: E402
from link_case import LinkCase  # noqa: E402
from model import Model  # noqa: E402
from todays_agents import (  # noqa: E402
    CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, QWEN, opencode_variables)

LAST_WORDS = 'So it is.'


def quoted(name, value):
    """A line "NAME=VALUE" as a value of the configuration."""
    escaped = f'{name}={value}'.replace('\\', '\\\\').replace('"', '\\"')
    return f'"{escaped}"'


@NEEDED
@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Away(LinkCase):
    """The model is on the host: only the editor and the broker are away."""

    def setUp(self):
        super().setUp()
        with self.chain.entered(1):
            self.model = Model([], LAST_WORDS)
        self.model.without_tools = '<severity>0</severity>'
        self.addCleanup(self.model.close)

    def begin(self, agent, variables=None):
        for name, text in agent.settings.items():
            path = self.sshd.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        env = {'PATH': f'{NODE.parent}:/usr/local/bin:/usr/bin:/bin',
               **(variables or agent.variables(self.model.url))}
        options = self.config(env=[quoted(*each) for each in env.items()], stop_eof_timeout='5s')
        self.client = self.broker(options=options, agent=agent.command)
        told = self.client.initialize(capabilities={}, seconds=SECONDS)['agentInfo']
        self.assertEqual((told['name'], told['version']), (agent.name, agent.version))
        self.session = self.client.call(
            'session/new', {'cwd': str(self.work), 'mcpServers': []}, SECONDS)['sessionId']
        if agent.asking and agent.start not in agent.asking:
            self.client.call('session/set_mode', {
                'sessionId': self.session, 'modeId': agent.asking[0]}, SECONDS)
        self.root = self.runtime(self.client, self.session)

    def wait(self, condition, what):
        self.assertTrue(processes.wait_until(condition, SECONDS),
                        f'{what}\n{self.model.requests}\n{self.client.stderr}')

    def questions(self):
        return [params for method, params in self.client.host.seen
                if method == 'session/request_permission']

    def answers(self, first, kind):
        """How many of the model's answers since this request call a tool, or are the last words."""
        return sum(block['type'] == kind and block.get('text', LAST_WORDS) == LAST_WORDS
                   for _, _, block in self.model.requests[first:])

    def said(self, place):
        return ''.join(message.text or '' for message in self.client.received[place:])

    def begin_turn(self, agent, number, *steps):
        """
        A turn whose first step is a command. Returns when the command runs and waits for end_it.
        """
        self.begun, self.go, self.ran = (
            self.sshd.home / f'{name}-{number}' for name in ('begun', 'go', 'ran'))
        self.model.steps = [agent.run(
            f'echo > {self.begun}; while ! [ -e {self.go} ]; do sleep 0.1; done; '
            f'echo > {self.ran}'), *steps]
        self.place, self.first = len(self.client.received), len(self.model.requests)
        self.asked = len(self.questions())
        self.waiting = self.client.start_prompt(self.session, 'Please go on')
        self.wait(self.begun.exists, 'the command was not started')

    def end_command(self):
        self.go.write_text('')
        self.wait(self.ran.exists, 'the command did not end')

    def end_turn(self, questions):
        self.assertEqual(self.client.answer(self.waiting, SECONDS)['stopReason'], 'end_turn')
        self.assertEqual(self.model.problems, [])
        self.assertEqual(self.said(self.place).count(LAST_WORDS), 1)
        self.assertEqual(len(self.questions()) - self.asked, questions)

    def end_away(self, agent):
        """The link is down. The turn ends there, and its answer comes later."""
        self.begin_turn(agent, 1)
        self.chain.set_link(0, 'down')
        self.wait_lost(1)
        self.end_command()
        self.wait(lambda: self.answers(self.first, 'text'), 'the agent did not go on')
        self.assertEqual(self.returns(), 0)
        self.chain.set_link(0, 'up')
        self.wait_back(1)
        self.end_turn(1)

    def ask_away(self, agent):
        """The connection was killed, and the host takes no other one. A question waits."""
        written = self.root / 'written.txt'
        self.begin_turn(agent, 2, agent.write(str(written)))
        processes.kill(self.sshd.process.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        self.wait_lost(2)
        self.end_command()
        self.wait(lambda: self.answers(self.first, 'tool_use') == 2, 'the agent did not go on')
        self.assertEqual(self.returns(), 1)
        processes.kill(self.sshd.process.pid, signal.SIGCONT)
        self.wait_back(2)
        self.end_turn(2)
        self.assertEqual((self.work / written.name).read_text(), 'written\n')

    def check(self, agent, by_broker, variables=None):
        """`by_broker`: the agent lets the broker write its files."""
        self.begin(agent, variables)
        self.end_away(agent)
        self.ask_away(agent)
        calls = self.client.call('_broker/usage', {'sessionId': self.session})['toolCalls']
        self.assertEqual(calls['fs/write_text_file'], 1 if by_broker else 0)
        self.assertEqual(calls['terminal/create'], 0)
        self.assertEqual(self.client.stderr.count('agent 2'), 0)
        self.client.close_stdin()
        self.assertEqual(self.client.wait(), 0, self.client.stderr)
        self.assert_nothing_runs()

    def test_codex(self):
        self.check(CODEX, False)

    def test_claude(self):
        self.check(CLAUDE, False)

    def test_gemini(self):
        self.check(GEMINI, True)

    def test_qwen(self):
        self.check(QWEN, True)

    def test_copilot(self):
        self.check(COPILOT, False)

    def test_opencode(self):
        self.check(OPENCODE, True,
                   opencode_variables(self.model.url, permission={'*': 'ask'}))


if __name__ == '__main__':
    main()
