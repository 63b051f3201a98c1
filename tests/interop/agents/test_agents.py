#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Today's agents under a policy. The table of their modes (broker/policy/modes.c) is true: in each
mode in which it says that the agent asks, the agent writes nothing and runs nothing unless the user
or the policy agreed.
"""

from agent_case import AgentCase
from todays_agents import CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, QWEN, opencode_variables
from case import main


class Asked:
    """Tests for an agent that has a mode in which it asks."""

    agent = None

    def test_nothing_happens_without_the_policys_word(self):
        agent = self.agent
        client, session = self.begin(agent, policy=('mode = ask-all', 'deny = terminal'))
        self.chooses(client, 'reject_once')
        for mode in agent.asking:
            is_first = mode == agent.asking[0]  # the other modes are for planning
            if not is_first:
                self.assertIn('result', self.set_mode(client, session, mode))
            asked = self.turn(client, session, agent.write(str(self.written)),
                              is_offered=is_first)
            if is_first:
                self.assertEqual(len(asked), 1)
            self.assertEqual(self.names(), [], mode)
            asked = self.turn(client, session, agent.run(f'echo ran > {self.ran}'),
                              is_offered=is_first)
            self.assertEqual((asked, self.names()), ([], []), mode)  # the policy answers
        self.check_refused_modes(client, session)
        self.check_start(client)
        self.check_yes(client, session)

    def check_refused_modes(self, client, session):
        for mode in self.agent.others:
            error = self.set_mode(client, session, mode)['error']
            self.assertEqual(error['data']['code'], 'PERMISSION_DENIED', mode)
        self.assertEqual(self.names(), [])

    def check_start(self, client):
        """Checks that an agent that starts in another mode was set back before its first prompt."""
        sent = [method for method, _ in self.sent_to_agent()
                if method in ('session/set_mode', 'session/prompt')]
        is_asking = self.agent.start in self.agent.asking
        self.assertEqual(sent[0], 'session/prompt' if is_asking else 'session/set_mode')
        self.assertEqual(len(self.notices(client)), 0 if is_asking else 1)

    def check_yes(self, client, session):
        """
        Checks that the refused actions work when the user says yes: the script's tools are real.
        """
        self.assertIn('result', self.set_mode(client, session, self.agent.asking[0]))
        self.chooses(client, 'allow_once')
        asked = self.turn(client, session, self.agent.write(str(self.written)))
        self.assertEqual(len(asked), 1)
        self.assertEqual(self.written.read_text(), 'written\n')


class Restored:
    """Tests for an agent that is killed in the mode that the user has chosen, without a policy."""

    agent, quiet = None, 'plan'

    def before_it_is_back(self):
        pass

    def test_it_comes_back_in_its_mode(self):
        client, session = self.begin(self.agent)
        self.assertIn('result', self.set_mode(client, session, self.quiet))
        self.chooses(client, 'reject_once')
        self.turn(client, session)
        self.kill_agent(client, self.agent)
        self.before_it_is_back()
        for step in (self.agent.write(str(self.written)), self.agent.run(f'echo > {self.ran}')):
            self.turn(client, session, step, is_offered=False)
        self.assertEqual(self.names(), [])
        initialize, opened, *then = self.sent_to_agent()[:4]
        self.assertEqual(initialize[0], 'initialize')
        self.assertIn(opened[0], ('session/load', 'session/resume'))
        self.assertEqual(then, [('session/set_mode', self.quiet), ('session/prompt', None)])


class Codex(Asked, Restored, AgentCase):
    agent, quiet = CODEX, 'read-only'


class Claude(Asked, Restored, AgentCase):
    agent, quiet = CLAUDE, 'default'


class Gemini(Asked, Restored, AgentCase):
    agent = GEMINI

    def before_it_is_back(self):
        """
        Version 0.61.0 keeps a session in a file whose name has the minute, and a session/load
        within the same minute overwrites it. So this gives the file an older name.
        """
        for path in (self.dir / 'home/.gemini/tmp').rglob('chats/session-*.jsonl'):
            path.rename(path.with_name(f'session-2000-01-01T00-00-{path.stem[-8:]}.jsonl'))


class Qwen(Asked, Restored, AgentCase):
    agent = QWEN


class Copilot(Asked, Restored, AgentCase):
    agent, quiet = COPILOT, COPILOT.asking[1]


class OpenCode(AgentCase):
    """OpenCode has no mode in which it asks; its own configuration can make it ask."""

    def test_it_gets_no_prompt(self):
        client, session = self.begin(OPENCODE, policy=('mode = ask-all',))
        self.model.steps = [OPENCODE.write(str(self.written))]
        for mode in OPENCODE.others:
            error = self.set_mode(client, session, mode)['error']
            self.assertEqual(error['data']['code'], 'PERMISSION_DENIED', mode)
        self.failure(client.response(client.start_prompt(session, 'go')), 'PERMISSION_DENIED')
        self.assertEqual((self.names(), self.model.requests), ([], []))

    def test_its_own_configuration_has_it_ask(self):
        variables = opencode_variables(self.model.url, permission={'*': 'ask'})
        client, session = self.begin(
            OPENCODE, variables,
            policy=('mode = ask-all', 'deny = terminal', 'agent-modes = allow'))
        self.chooses(client, 'reject_once')
        self.assertEqual(len(self.turn(client, session, OPENCODE.write(str(self.written)))), 1)
        self.assertEqual(
            self.turn(client, session, OPENCODE.run(f'echo ran > {self.ran}')), [])
        self.assertEqual(self.names(), [])


if __name__ == '__main__':
    main()
