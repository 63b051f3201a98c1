#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent does not start: the error comes within its deadline and says which step failed."""

import os

from case import AGENT, Case, main
from host import RpcError


# Answers session/new as an agent does whose own program has just refused to run.
REFUSING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {'jsonrpc': '2.0', 'id': asked['id']}
    if asked['method'] == 'initialize':
        answer['result'] = {'protocolVersion': 1, 'agentCapabilities': {}}
    else:
        print(sys.argv[1], file=sys.stderr, flush=True)
        answer['error'] = {'code': -32603, 'message': 'Internal error'}
    print(json.dumps(answer), flush=True)
"""


class Start(Case):
    def refused(self, code, agent=None, flags=(), **keys):
        """The error that answers `initialize`."""
        client = self.broker(*flags, agent=agent, options=self.config(**keys))
        raw_id = client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        answer = client.response(raw_id)
        error = self.failure(answer, code)
        self.assertEqual(len([m for m in client.received if m.is_response]), 1)
        client.close_stdin()
        self.assertEqual(client.wait(), 1)
        self.assertNames(client.stderr.splitlines()[-1], f'no agent has started | {code}')
        return error

    def told(self, error):
        return error['message'] + ' ' + error['data'].get('detail', '')

    def test_a_command_that_is_nowhere_on_path(self):
        error = self.refused('AGENT_NOT_FOUND', agent=['no-such-agent-anywhere', '--flag'])
        self.assertIn('no-such-agent-anywhere', error['message'])
        self.assertIn(os.environ['PATH'][:200], self.told(error))
        self.assertNames(error['message'], 'install it | full path')
        self.assertFalse(error['data']['retryable'])

    def test_a_path_where_nothing_is(self):
        error = self.refused('AGENT_NOT_FOUND', agent=['/no/such/agent'])
        self.assertIn('/no/such/agent', error['message'])

    def test_a_file_that_may_not_be_executed(self):
        path = self.dir / 'agent.txt'
        path.write_text('#!/bin/sh\nexit 0\n')
        error = self.refused('AGENT_NOT_EXECUTABLE', agent=[str(path)])
        self.assertIn(str(path), error['message'])

    def test_the_editor_hears_that_an_agent_refuses_root(self):
        agent = ['python3', '-c', REFUSING, 'x cannot be used with root\x1b[2J "privileges"']
        client = self.broker(agent=agent)
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertEqual(caught.exception.code, -32603)
        facts = 'Internal error | cannot be used with root^[[2J "privileges" | not root'
        self.assertNames(caught.exception.message,
                         facts if os.geteuid() == 0 else 'Internal error')
        self.assertEqual('root' in caught.exception.message, os.geteuid() == 0)

    def test_an_internal_error_about_something_else_passes_as_it_is(self):
        client = self.broker(agent=['python3', '-c', REFUSING, 'the root of all evil'])
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.new_session(self.work)
        self.assertEqual(caught.exception.message, 'Internal error')

    def test_a_directory(self):
        error = self.refused('AGENT_NOT_EXECUTABLE', agent=[str(self.work)])
        self.assertIn(str(self.work), error['message'])

    def test_a_script_whose_interpreter_is_missing(self):
        path = self.dir / 'agent'
        path.write_text('#!/no/such/interpreter\n')
        path.chmod(0o755)
        client = self.broker(agent=[str(path)])
        answer = client.response(client.start('initialize', {'protocolVersion': 1}))
        error = answer.value['error']
        self.assertIn(error['data']['code'], ('AGENT_NOT_FOUND', 'AGENT_NOT_EXECUTABLE'))
        self.assertIn(str(path), error['message'])

    def test_an_agent_that_ends_at_once(self):
        error = self.refused('AGENT_EXITED', flags=('--exit-at-once', '7'))
        self.assertIn('exited with status 7', self.told(error))
        self.assertIn('leaving at once', error['data']['detail'])
        self.assertIn('initialize', self.told(error) + error['data']['stage'])
        self.assertIn('scripted-agent', error['message'])

    def test_an_agent_that_never_answers(self):
        error = self.refused('TIMEOUT_EXCEEDED', flags=('--never-answer',), start_timeout='700ms')
        self.assertIn('initialize', self.told(error))
        self.assertIn('scripted-agent', error['message'])
        self.assertTrue(error['data']['retryable'])

    def test_an_agent_that_prints_garbage_and_never_answers(self):
        error = self.refused('TIMEOUT_EXCEEDED', flags=('--never-answer', '--garbage-first'),
                             start_timeout='3s')
        self.assertIn('to the scripted agent', self.told(error))

    def test_an_agent_that_prints_garbage_and_ends(self):
        error = self.refused('AGENT_EXITED', agent=['/bin/sh', '-c', 'echo no agent here; exit 5'])
        self.assertIn('no agent here', self.told(error))
        self.assertIn('exited with status 5', self.told(error))

    def test_a_program_that_reads_and_says_nothing(self):
        error = self.refused('TIMEOUT_EXCEEDED', agent=['/bin/sleep', '60'], start_timeout='700ms')
        self.assertIn('sleep', error['message'])

    def test_an_agent_of_another_version(self):
        error = self.refused('PROTOCOL_UNSUPPORTED', flags=('--protocol-version', '2'))
        self.assertIn('2', error['message'])

    def test_requests_that_wait_for_the_start_are_answered_too(self):
        client = self.broker('--never-answer', options=self.config(start_timeout='700ms'))
        first = client.start('initialize', {'protocolVersion': 1})
        second = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
        for raw_id in (first, second):
            self.assertIn('error', client.response(raw_id).value)

    def test_the_editor_may_try_again(self):
        """Somebody installs the missing agent in the meantime."""
        path = self.dir / 'late-agent'
        client = self.broker(agent=[str(path)])
        self.failure(client.response(client.start('initialize', {'protocolVersion': 1})),
                     'AGENT_NOT_FOUND')
        path.symlink_to(AGENT)
        client.initialize()
        client.prompt(client.new_session(self.work), 'say here at last')
        self.assertEqual(client.texts(), ['here at last'])

    def test_a_directory_that_does_not_exist_is_the_agent_s_to_refuse(self):
        client = self.broker()
        client.initialize()
        session = client.new_session(self.dir / 'gone')
        client.prompt(session, 'say fine with me')
        self.assertEqual(client.texts(), ['fine with me'])

    def test_the_start_may_take_its_time(self):
        agent = ' '.join(f"'{word}'" for word in self.agent_argv())
        client = self.broker(agent=['/bin/sh', '-c', f'sleep 1; exec {agent}'])
        client.initialize()
        client.prompt(client.new_session(self.work), 'say slow but sure')


if __name__ == '__main__':
    main()
