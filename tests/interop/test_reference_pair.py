#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The reference pair: the client acpx and the agent claude-code-acp, offline, with a scripted model.
The agent reads, edits and writes a file, asks for permission, runs two commands, kills one, and
answers: directly, through the broker, and with the broker serving files and terminals.
"""

import json
import re
import shlex
import shutil

from pair import NEEDED, NODE, Pair, conversation, path_of
from model import Model, Step
import rawjson
import served
from case import main, program
from compare import compare_hops

AGENT = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]
CLIENT = [str(NODE), path_of('acpx/dist/cli.js')]
FAR_BROKER = program('ACP_BROKER_FAKE', 'tests/support/fake/acp-broker-fake')

# Every method that this pair uses between client and agent.
METHODS = served.METHODS | {'initialize', 'session/new', 'session/prompt', 'session/update',
                            'session/request_permission'}


def steady(lines):
    """
    The lines without the agent's echo of a tool's answer, which the agent leaves out when it is
    slow.
    """
    return conversation([line for line in lines if b'"toolResponse"' not in line[1]])


@NEEDED
class ReferencePair(Pair):
    def setUp(self):
        super().setUp()
        self.shell = None
        self.root = self.work  # the agent's path of the workspace
        self.model = Model([], 'All of it is done.')
        self.addCleanup(self.model.close)

    def steps(self):
        notes, new = str(self.root / 'notes.txt'), str(self.root / 'new.txt')
        return [
            Step('Read', file_path=notes),
            Step('Edit', file_path=notes, old_string='eins', new_string='one'),
            Step('Write', file_path=new, content='neu\n'),
            Step('Bash', command='echo hello && pwd | cat', description='hello', timeout=60000),
            Step('Bash', command='exec sleep 60', description='sleep', timeout=60000,
                 run_in_background=True),
            Step('BashOutput', task_id=self.find_shell, block=False, timeout=1000),
            Step('KillShell', shell_id=lambda _: self.shell),
        ]

    def find_shell(self, text):
        self.shell = re.search('with id: ([0-9a-zA-Z-]+)', text).group(1)
        return self.shell

    def run_pair(self, through_broker, *client_options):
        self.model.steps = self.steps()
        command = shlex.join(self.agent_command(AGENT, through_broker))
        result = self.run_program(
            [*CLIENT, *client_options, '--cwd', str(self.work), '--approve-all', '--format',
             'json', '--agent', command, 'exec', 'Please do it all'],
            ANTHROPIC_BASE_URL=self.model.url, ANTHROPIC_API_KEY='x', DISABLE_AUTOUPDATER='1',
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC='1')
        self.assertEqual(self.model.problems, [])
        self.assertEqual((self.root / 'notes.txt').read_text(), 'one\nzwei\n')
        self.assertEqual((self.root / 'new.txt').read_text(), 'neu\n')
        self.assertIn('"stopReason":"end_turn"', result.stdout)
        self.assert_nothing_runs()

    def run_direct(self):
        self.fresh()
        self.run_pair(through_broker=False)
        checked = self.check_schema('direct')
        self.assertEqual(self.used('direct'), METHODS)
        self.assertEqual(checked.unknown, set())

    def used(self, hop):
        return {message['method'] for message in map(json.loads, (line for _, line in
                                                                  self.lines(hop)))
                if 'method' in message}


class Relayed(ReferencePair):
    def test_the_pair_direct_and_through_the_broker(self):
        self.run_direct()
        self.fresh()
        self.run_pair(through_broker=True)
        self.check_schema('editor')
        self.check_schema('agent')
        compare_hops(self.lines('editor'), self.lines('agent'))
        self.check_trace()
        direct, through = steady(self.lines('direct')), steady(self.lines('editor'))
        for one, other in zip(direct, through):
            self.assertEqual(one, other)


class Served(ReferencePair):
    """The broker serves files and terminals; the editor serves none."""

    def check(self, capabilities=None):
        """
        Checks that the conversation is the direct one, except for the table of edits.
        `capabilities` is what the editor said that it can do, if it said something else than
        directly.
        """
        self.check_schema('editor')
        self.check_schema('agent')
        self.check_trace()
        self.assertEqual(self.used('agent'), METHODS)
        self.assertEqual(self.used('editor'), METHODS - served.METHODS)
        self.check_calls()
        direct_calls, direct = served.take_calls(self.lines('direct'))
        calls, agent = served.take_calls(self.lines('agent'))
        agent, terminals = served.hide_terminals(agent)
        self.assertEqual(len(terminals), 2)
        editor = self.lines('editor')
        if capabilities is not None:
            editor = self.replace_capabilities(editor, agent, capabilities)
        agent = self.as_the_editor_calls_it(agent)
        shown, editor = served.take_shown(
            editor, {line for _, line in self.as_the_editor_calls_it(
                [(False, line) for line in terminals])})
        self.check_shown(shown, editor)
        compare_hops(editor, agent)
        direct, _ = served.hide_terminals(direct)
        for one, other in zip(steady(served.name_terminals(direct, direct_calls)),
                              steady(served.name_terminals(self.rooted(editor), calls))):
            self.assertEqual(one, other)

    def as_the_editor_calls_it(self, lines):
        return lines

    def rooted(self, lines):
        """The lines, with the agent's path of the workspace replaced by the workspace's."""
        return served.with_names(lines, [(str(self.root), str(self.work))])

    def replace_capabilities(self, editor, agent, capabilities):
        """Replaces what the agent was told about capabilities by what the editor said."""
        said, told = (json.loads(lines[0][1])['params']['clientCapabilities']
                      for lines in (editor, agent))
        self.assertEqual(said, capabilities)
        self.assertEqual(told['fs'], {'readTextFile': True, 'writeTextFile': True})
        self.assertIs(told['terminal'], True)
        line = rawjson.replace(editor[0][1], 'params.clientCapabilities',
                               rawjson.raw(agent[0][1], 'params.clientCapabilities'))
        return [(True, line), *editor[1:]]

    def check_calls(self):
        """
        Checks that the agent made the same calls as directly, and that files had the same content.
        """
        def comparable(lines):
            calls, _ = served.take_calls(self.rooted(lines))
            calls, _ = served.take_calls(served.name_terminals(self.rooted(lines), calls))
            for call in calls:
                call.params.pop('sessionId')
            return calls

        def asked(calls):
            """
            The calls without repeated releases: the agent releases a terminal that it has killed
            once or twice.
            """
            texts = [json.dumps([call.method, call.params], sort_keys=True) for call in calls]
            releases = {text for text in texts if '"terminal/release"' in text}
            return sorted([*releases, *(text for text in texts if text not in releases)])

        direct, through = comparable(self.lines('direct')), comparable(self.lines('agent'))
        self.assertEqual(asked(direct), asked(through))
        first = '<terminal 0>'  # this one ends by itself
        answers = [[call.answer for call in calls if call.method.startswith('fs/')
                    or call.params.get('terminalId') == first] for calls in (direct, through)]
        self.assertEqual(*([{**answer, 'id': None} for answer in side] for side in answers))
        killed = [call.result for call in through if call.method == 'terminal/wait_for_exit'][1]
        self.assertEqual(killed, {'exitCode': None, 'signal': 'SIGKILL'})

    def check_shown(self, shown, editor):
        """Checks that the last state of both terminals came before the prompt's answer."""
        texts = {call: [item['content']['text'] for item in contents[-1]]
                 for call, contents in shown.items()}
        killed, = texts.pop('toolu_05')
        self.assertTrue(killed.startswith('(no output)\n\n'), killed)
        self.assertNames(killed, 'killed by SIGKILL')
        self.assertEqual(texts, {'toolu_04': [f'```\nhello\n{self.root}\n```']})
        self.assertIn(b'"stopReason"', self.lines('editor')[-1][1])
        self.assertEqual(editor[-1], self.lines('editor')[-1])



class Near(Served):
    def settings(self):
        return dict(super().settings(), toolhost='broker')

    def test_by_the_broker_on_this_machine(self):
        self.run_direct()
        self.fresh()
        self.run_pair(through_broker=True)
        self.check()

    def test_for_an_editor_that_offers_neither(self):
        self.run_direct()
        self.fresh()
        self.run_pair(True, '--no-fs', '--no-terminal')
        self.check(capabilities={'fs': {'readTextFile': False, 'writeTextFile': False},
                                 'terminal': False})



class Far(Served):
    """
    The same in a sandbox in which every path is different: the broker serves without a setting.
    """

    backend = 'fake'

    def settings(self):
        return dict(super().settings(), runtime_root=str(self.root.parent), sync='none')

    def broker_argv(self, *options, agent):
        return [FAR_BROKER, *options, '--', *agent]

    def as_the_editor_calls_it(self, lines):
        """Translates the places that the table of edits names, and no others."""
        translated = []
        for to_agent, line in lines:
            if to_agent:
                line = self.translate(line, 'params.cwd')
            for owner in ('params.update', 'params.toolCall'):
                for name in ('locations', 'content'):
                    line = self.translate_paths(line, f'{owner}.{name}')
            translated.append((to_agent, line))
        return translated

    def translate(self, data, place):
        raw = rawjson.raw(data, place)
        return data if raw is None else rawjson.replace(
            data, place, raw.replace(str(self.root).encode(), str(self.work).encode()))

    def translate_paths(self, line, place):
        span = rawjson.find(line, place)
        for start, end in reversed(list(rawjson.elements(line, span[0]) if span else ())):
            line = line[:start] + self.translate(line[start:end], 'path') + line[end:]
        return line

    def test_by_the_broker_where_every_path_is_another(self):
        self.run_direct()
        self.fresh()
        self.root = self.dir / 'inside' / '0'
        self.root.mkdir(parents=True)
        shutil.copy(self.work / 'notes.txt', self.root)
        self.run_pair(through_broker=True)
        self.check()
        self.assertEqual([path.name for path in self.work.iterdir()], ['notes.txt'])
        self.assertEqual((self.work / 'notes.txt').read_text(), 'eins\nzwei\n')
        opened = [json.loads(line)['params']['cwd'] for _, line in self.lines('agent')
                  if b'"session/new"' in line]
        self.assertEqual(opened, [str(self.root)])


if __name__ == '__main__':
    main()
