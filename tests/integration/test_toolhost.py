#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an agent asks of the ToolHost and no agent should: the broker bears it, and goes on."""

import json

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


if __name__ == '__main__':
    main()
