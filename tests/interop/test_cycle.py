#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The client acpx and the agent claude-code-acp, which works in a copy of the workspace: edits on both
sides, a conflict, a deletion, a rename, and a rollback to a checkpoint.
"""

import json
import shlex
import subprocess

from pair import NEEDED, NODE, Pair, path_of
from model import Model, Step
from acp import Client
from case import main
from host import Host

AGENT = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]
CLIENT = [str(NODE), path_of('acpx/dist/cli.js')]
MODULE = 'node_modules/m/index.js'


@NEEDED
class Cycle(Pair):
    def setUp(self):
        super().setUp()
        self.model = Model([], 'All of it is done.')
        self.addCleanup(self.model.close)
        self.fresh()
        subprocess.run(['git', 'init', '-q', str(self.work)], check=True)
        for name, text in {'.gitignore': 'node_modules/\n', 'both.txt': 'base\n', 'gone.txt': 'x\n',
                           'old.txt': 'moves\n', MODULE: 'here\n'}.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def settings(self):
        return dict(super().settings(), isolation='copy')

    def environment(self):
        return dict(super().environment(), ANTHROPIC_BASE_URL=self.model.url,
                    ANTHROPIC_API_KEY='x', DISABLE_AUTOUPDATER='1',
                    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC='1')

    @property
    def copy(self):
        """The path of the agent's workspace, once it exists."""
        return next((self.dir / 'home/state/acp-broker/copies').glob(f'*/*/{self.work.name}'))

    def tree(self, root):
        return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob('*'))
                if path.is_file() and '.git' not in path.relative_to(root).parts}

    def turn(self, *steps):
        """Plays one prompt of acpx; returns what the editor got."""
        self.model.steps = steps
        for hop in ('editor', 'agent'):
            self.log(hop).unlink(missing_ok=True)
        command = shlex.join(self.agent_command(AGENT, through_broker=True))
        result = self.run_program(
            [*CLIENT, '--cwd', str(self.work), '--approve-all', '--format', 'json', '--agent',
             command, 'exec', 'Please do it all'])
        self.assertEqual(self.model.problems, [])
        self.assertIn('"stopReason":"end_turn"', result.stdout)
        self.check_schema('editor')
        self.check_schema('agent')
        self.assert_nothing_runs()
        return [json.loads(line) for to_agent, line in self.lines('editor') if not to_agent]

    def shell(self, command):
        return Step('Bash', command=command, description='shell', timeout=60000)

    def both(self, _):
        """The user changes the file that the agent is about to change."""
        (self.work / 'both.txt').write_text('person\n')
        return str(self.copy / 'both.txt')

    def titles(self, messages):
        return [message['params']['update'].get('title') for message in messages
                if message.get('method') == 'session/update'
                and message['params']['update'].get('toolCallId', '').startswith('acp-broker')]

    def work_of_the_agent(self):
        notes = lambda _: str(self.copy / 'notes.txt')  # noqa: E731
        return self.turn(
            Step('Read', file_path=notes),
            Step('Edit', file_path=notes, old_string='eins', new_string='one'),
            Step('Read', file_path=lambda _: str(self.copy / 'both.txt')),
            Step('Edit', file_path=self.both, old_string='base', new_string='agent'),
            self.shell(f'rm gone.txt && mv old.txt new.txt && cat {MODULE} > seen.txt && '
                       f'echo there > {MODULE} && echo built > node_modules/built'))

    def test_the_whole_cycle(self):
        said = self.work_of_the_agent()
        here = self.tree(self.work)
        parked, = (self.dir / 'home/state/acp-broker/stores').glob('*/parked/*/*/runtime/*')
        self.assertEqual((parked.name, parked.read_text()), ('both.txt', 'agent\n'))
        first = {'.gitignore': 'node_modules/\n', 'both.txt': 'person\n', 'new.txt': 'moves\n',
                 'notes.txt': 'one\nzwei\n', 'seen.txt': 'here\n', MODULE: 'here\n'}
        self.assertEqual(here, first)
        self.assertEqual(len([title for title in self.titles(said) if 'both.txt' in title]), 1)
        there = self.tree(self.copy)
        self.assertEqual(there, {**first, MODULE: 'there\n', 'node_modules/built': 'built\n'})

        (self.work / 'notes.txt').write_text('one\ntwo\n')
        (self.work / 'new.txt').unlink()
        said = self.turn(self.shell('cat notes.txt > seen.txt; ls >> seen.txt'))
        self.assertFalse([title for title in self.titles(said) if 'both.txt' in title])
        self.assertEqual((self.work / 'seen.txt').read_text(),
                         'one\ntwo\nboth.txt\nnode_modules\nnotes.txt\nseen.txt\n')
        self.check_way_back(parked, first)

    def check_way_back(self, parked, first):
        """Goes back to the checkpoint after the first prompt, and from there forward again."""
        client = Client(self.agent_command(AGENT, through_broker=True), cwd=self.work,
                        env=self.environment(), host=Host(cwd=self.work))
        self.clients.append(client)
        client.initialize()
        session = client.call('session/new', {'cwd': str(self.work), 'mcpServers': []}, 120)
        params = {'sessionId': session['sessionId']}
        found = client.call('_broker/checkpoint/list', params, 120)['checkpoints']
        wanted = [point['checkpoint'] for point in found if point['turn']][0]
        now = self.tree(self.work)
        client.call('_broker/checkpoint/rollback', {**params, 'checkpoint': wanted}, 120)
        here = self.tree(self.work)
        self.assertEqual(parked.read_text(), 'agent\n')
        self.assertEqual(here, first)
        self.assertEqual({name: text for name, text in self.tree(self.copy).items()
                          if 'node_modules' not in name},
                         {name: text for name, text in first.items() if name != MODULE})
        client.call('_broker/checkpoint/rollback',
                    {**params, 'checkpoint': found[-1]['checkpoint']}, 120)
        self.assertEqual(self.tree(self.work), now)
        client.close_stdin()
        self.assertEqual(client.wait(), 0)
        self.assertEqual(self.tree(self.work), now)


if __name__ == '__main__':
    main()
