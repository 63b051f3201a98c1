# SPDX-License-Identifier: MIT
"""A session of one of today's agents through the broker, with the scripted model."""

import json
import pathlib
import sys
import unittest

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from pair import NODE  # noqa: E402
from model import Model  # noqa: E402
from policy_case import PolicyCase  # noqa: E402
import processes  # noqa: E402
from todays_agents import MODULES  # noqa: E402

SECONDS = 120

# The packages have 1.4 GB, so these tests run only if somebody asks for them.
NEEDED = unittest.skipUnless(MODULES.is_dir(), './dev test agents installs the agents')


@NEEDED
class AgentCase(PolicyCase):
    """
    The editor offers neither files nor terminals: the agent itself writes and runs commands. So
    only the agent's question stands between the model and the workspace.
    """

    def setUp(self):
        super().setUp()
        self.model = Model([], 'So it is.')
        # In its auto mode, Claude Code asks a model to grade each action of another one; here every
        # action is harmless.
        self.model.without_tools = '<severity>0</severity>'
        self.addCleanup(self.model.close)
        self.written = self.work / 'written.txt'
        self.ran = self.work / 'ran.txt'

    def environment(self):
        return dict(super().environment(), PATH=f'{NODE.parent}:/usr/local/bin:/usr/bin:/bin')

    def environment_of(self, agent, variables=None):
        """Writes the agent's files below HOME; returns its environment."""
        env = dict(self.environment(), **(variables or agent.variables(self.model.url)))
        for name, text in agent.settings.items():
            path = self.dir / 'home' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return env

    def options(self, **keys):
        return [*self.config(**keys), '--trace', str(self.dir / 'trace')]

    def begin(self, agent, variables=None, **keys):
        """
        A client and its session. Checks that the agent is the one in the table and has the table's
        modes.
        """
        client = self.broker(options=self.options(**keys), agent=agent.command,
                             env=self.environment_of(agent, variables))
        told = client.initialize(capabilities={}, seconds=SECONDS)['agentInfo']
        self.assertEqual((told['name'], told['version']), (agent.name, agent.version))
        opened = client.call('session/new', {'cwd': str(self.work), 'mcpServers': []}, SECONDS)
        self.check_modes(agent, opened)
        return client, opened['sessionId']

    def check_modes(self, agent, opened):
        """
        Checks that the agent's modes are those of the table, and that it starts in the table's
        mode.
        """
        option, = [option for option in opened['configOptions'] if option['id'] == 'mode'] \
            if 'configOptions' in opened else [None]
        modes = opened.get('modes') or {
            'currentModeId': option['currentValue'],
            'availableModes': [{'id': each['value']} for each in option['options']]}
        self.assertEqual({mode['id'] for mode in modes['availableModes']},
                         {*agent.asking, *agent.others})
        self.assertEqual(modes['currentModeId'], agent.start)

    def set_mode(self, client, session, mode):
        return client.response(client.start(
            'session/set_mode', {'sessionId': session, 'modeId': mode}), SECONDS).value

    def turn(self, client, session, *steps, is_offered=True):
        """
        Plays one prompt in which the model calls these tools; returns the questions that this
        caused. A mode may take tools away from the model.
        """
        self.model.steps, self.model.problems = steps, []
        place, begun = len(self.questions(client)), len(self.model.requests)
        client.prompt(session, 'Please go on', seconds=SECONDS)
        if is_offered:
            self.assertEqual(self.model.problems, [])
            called = [block['name'] for _, _, block in self.model.requests[begun:]
                      if block['type'] == 'tool_use']
            self.assertEqual(len(called), len(steps))
        return self.questions(client)[place:]

    def names(self):
        """The names in the workspace, except an agent's own folder."""
        return sorted(path.name for path in self.work.iterdir() if path.name[0] != '.')

    def sent_to_agent(self):
        """(method, mode) of each message that the broker has sent to the running agent."""
        records = [json.loads(line) for line in (self.dir / 'trace').read_text().splitlines()]
        messages = [record['message'] for record in records if record['hop'] == 'agent 1'
                    and record['direction'] == 'out' and 'method' in record['message']]
        sent = [(message['method'], message.get('params', {}).get('modeId'))
                for message in messages]
        start = max(place for place, (method, _) in enumerate(sent) if method == 'initialize')
        return sent[start:]

    def kill(self, agent):
        """
        Kills the process that the broker has started, and the processes below it. For three of the
        six agents, the first process only starts the one that speaks ACP, which would go on.
        """
        words = '\0'.join(agent.command).encode()
        found = [pid for pid in self.running()
                 if processes.read_file(f'/proc/{pid}/cmdline').startswith(words)]
        first, = [pid for pid in found if processes.parent_of(pid) not in found]
        for pid in (first, *processes.descendants(first)):
            processes.kill(pid)

    def kill_agent(self, client, agent):
        self.kill(agent)
        client.wait_log('<3> | SIGKILL', SECONDS)  # its output was read to the end
