#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The main use: a client on the protocol's own library and a real agent, through `acp-broker --` with
a policy. The agent is killed in the middle of a turn, and the next agent is in its mode before its
first prompt. ACP_SHOW=1 prints what the client saw.
"""

import json
import os

from agent_case import AgentCase, SECONDS
from todays_agents import CODEX, QWEN
from case import main
from pair import HERE, NODE
from model import Step


class Writing(Step):
    """Writes file-1, then file-2, and so on; calls `on_call` with the number before each."""

    def __init__(self, agent, folder, on_call):
        self.make = lambda number: agent.write(str(folder / f'file-{number}'))
        super().__init__(self.make(0).tool)
        self.number, self.on_call = 0, on_call

    def input(self, before):
        self.number += 1
        self.on_call(self.number)
        return self.make(self.number).input(before)


class Killed(AgentCase):
    def converse(self, agent, *script):
        """
        Returns the client's events. The agent is killed when the model is called for the second
        time.
        """
        self.model.steps = [Writing(
            agent, self.work, lambda number: number == 2 and self.kill(agent))]
        options = self.options(policy=('mode = ask-all', 'deny = terminal'))
        client = [str(NODE), str(HERE / 'script_client.mjs'), str(self.work), json.dumps(script)]
        process = self.start([*client, *self.broker_argv(*options, agent=agent.command)],
                             env=self.environment_of(agent))
        self.assertEqual(process.wait(SECONDS), 0, process.stderr)
        self.assertEqual(self.model.problems, [])
        events = [message.value for message in process.received]
        if os.environ.get('ACP_SHOW') == '1':
            print('\n'.join(json.dumps(event) for event in events), process.stderr, sep='\n')
        return events

    def said(self, events, key):
        return [event[key] for event in events if key in event]

    def prompt(self, text, answer):
        return {'prompt': text, 'answer': answer}

    def check(self, events, mode):
        """
        Checks that the prompt failed, and that the broker set the next agent's mode before its
        prompt.
        """
        self.assertEqual(self.said(events, 'failed'), ['AGENT_EXITED'])
        self.assertEqual(self.said(events, 'ended'), [{'code': 0, 'signal': None}])
        sent = self.sent_to_agent()
        self.assertLess(sent.index(('session/set_mode', mode)),
                        sent.index(('session/prompt', None)))

    def test_codex_still_asks_after_it_was_killed(self):
        """codex starts in `agent`, in which it asks nobody; the policy has set it back."""
        events = self.converse(CODEX, self.prompt('Write it', 'allow_once'),
                               self.prompt('Write more', 'allow_once'),
                               self.prompt('Write again', 'reject_once'))
        self.assertEqual(self.said(events, 'opened'), ['agent'])
        self.check(events, 'read-only')
        self.assertEqual(self.said(events, 'answered'), ['allow_once', 'reject_once'])
        self.assertEqual(self.names(), ['file-1'])

    def test_qwen_still_plans_after_it_was_killed(self):
        """
        qwen starts in `auto`, and the policy sets it back to `default`; the user chose `plan`.
        """
        events = self.converse(QWEN, self.prompt('Write it', 'allow_once'), {'mode': 'plan'},
                               self.prompt('Write more', 'allow_once'),
                               self.prompt('Write again', 'allow_once'))
        self.assertEqual(self.said(events, 'opened'), ['auto'])
        self.check(events, 'plan')
        self.assertEqual(self.said(events, 'answered'), ['allow_once'])
        self.assertEqual(self.names(), ['file-1'])


if __name__ == '__main__':
    main()
