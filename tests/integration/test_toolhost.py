#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an agent asks of the ToolHost and no agent should: the broker bears it, and goes on."""

import json

from acp import RpcError
from case import Case, main

MIB = 1 << 20


class ToolHost(Case):
    def open(self, *flags, **keys):
        client = self.broker(*flags, options=self.config(toolhost='broker', **keys))
        client.initialize()
        return client, client.new_session(self.work)

    def request(self, session, method, **params):
        return f'request {method} ' + json.dumps({'sessionId': session, **params})

    def answers(self):
        return [json.loads(line) for line in self.journal('<') if b'"method"' not in line]


class Names(ToolHost):
    def test_a_terminal_s_name_without_an_end_is_not_known(self):
        client, session = self.open()
        for method in ('output', 'wait_for_exit', 'kill', 'release'):
            client.prompt(session, self.request(
                session, f'terminal/{method}', terminalId='x' * (2 * MIB)))
            error = self.answers()[-1]['error']
            self.assertEqual(error['data']['code'], 'INVALID_PARAMS')
            self.assertIn('"xxx', error['message'])
            self.assertLess(len(error['message']), 200)
        client.prompt(session, 'say after')

    def test_a_terminal_of_an_agent_started_anew_is_no_other_s(self):
        """The editor has one of the first agent's on its screen, in the same session."""
        client = self.broker(options=self.config(toolhost='broker'))
        client.initialize({'_meta': {'terminal_output': True}})
        session = client.new_session(self.work)
        for number in (1, 2):
            client.prompt(session, self.request(session, 'terminal/create', command='echo hi'))
            terminal = self.answers()[-1]['result']['terminalId']
            client.prompt(session, 'update ' + json.dumps({
                'sessionUpdate': 'tool_call', 'toolCallId': f'call-{number}', 'title': 'Run',
                'content': [{'type': 'terminal', 'terminalId': terminal}]}))
            with self.assertRaises(RpcError):
                client.prompt(session, 'exit 3')
        shown = [message.params['update']['_meta']['terminal_info']['terminal_id']
                 for message in client.received if message.method == 'session/update'
                 and 'terminal_info' in message.params['update'].get('_meta', {})]
        self.assertEqual(len(shown), 2)
        self.assertEqual(len(set(shown)), 2, shown)
        client.prompt(session, self.request(session, 'terminal/output', terminalId=shown[0]))
        self.assertIn('was released, or is none', self.answers()[-1]['error']['message'])


if __name__ == '__main__':
    main()
