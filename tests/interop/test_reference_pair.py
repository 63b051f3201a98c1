#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The reference pair: the client acpx and the agent claude-code-acp, offline, with a scripted model.
It reads, edits and writes a file, asks permission, runs two commands, kills one, and answers.
"""

import re
import shlex

from pair import NEEDED, NODE, Pair, conversation, path_of
from model import Model, Step
from case import main
from compare import compare_hops

AGENT = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]
CLIENT = [str(NODE), path_of('acpx/dist/cli.js')]

# Every method that this pair uses between client and agent.
METHODS = {'initialize', 'session/new', 'session/prompt', 'session/update',
           'session/request_permission', 'fs/read_text_file', 'fs/write_text_file',
           'terminal/create', 'terminal/output', 'terminal/wait_for_exit', 'terminal/kill',
           'terminal/release'}


class ReferencePair(Pair):
    def setUp(self):
        super().setUp()
        self.shell = None
        notes, new = str(self.work / 'notes.txt'), str(self.work / 'new.txt')
        self.model = Model([
            Step('Read', file_path=notes),
            Step('Edit', file_path=notes, old_string='eins', new_string='one'),
            Step('Write', file_path=new, content='neu\n'),
            Step('Bash', command='echo hello && pwd | cat', description='hello', timeout=60000),
            Step('Bash', command='exec sleep 60', description='sleep', timeout=60000,
                 run_in_background=True),
            Step('BashOutput', task_id=self.find_shell, block=False, timeout=1000),
            Step('KillShell', shell_id=lambda _: self.shell),
        ], 'All of it is done.')
        self.addCleanup(self.model.close)

    def find_shell(self, text):
        self.shell = re.search('with id: ([0-9a-zA-Z-]+)', text).group(1)
        return self.shell

    def run_pair(self, through_broker):
        self.fresh()
        command = shlex.join(self.agent_command(AGENT, through_broker))
        result = self.run_program(
            [*CLIENT, '--cwd', str(self.work), '--approve-all', '--format', 'json', '--agent',
             command, 'exec', 'Please do it all'],
            ANTHROPIC_BASE_URL=self.model.url, ANTHROPIC_API_KEY='x', DISABLE_AUTOUPDATER='1',
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC='1')
        self.assertEqual(self.model.problems, [])
        self.assertEqual((self.work / 'notes.txt').read_text(), 'one\nzwei\n')
        self.assertEqual((self.work / 'new.txt').read_text(), 'neu\n')
        self.assertIn('"stopReason":"end_turn"', result.stdout)

    @NEEDED
    def test_the_pair_direct_and_through_the_broker(self):
        self.run_pair(through_broker=False)
        checked = self.check_schema('direct')
        self.assertEqual(self.used(), METHODS)
        self.assertEqual(checked.unknown, set())
        self.assert_nothing_runs(15)

        self.run_pair(through_broker=True)
        self.check_schema('editor')
        self.check_schema('agent')
        compare_hops(self.lines('editor'), self.lines('agent'))
        self.check_trace()
        direct, through = conversation(self.lines('direct')), conversation(self.lines('editor'))
        for one, other in zip(direct, through):
            self.assertEqual(one, other)
        self.assert_nothing_runs(5)

    def used(self):
        return {request['method'] for part in conversation(self.lines('direct'))
                for _, request, *_ in part}


if __name__ == '__main__':
    main()
