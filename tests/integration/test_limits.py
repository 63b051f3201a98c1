#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What an agent and its terminals may use on this machine, and who is told which limit they met."""

import json
import os

from acp import RpcError
from case import Case, main


class Limits(Case):
    def open(self, **keys):
        client = self.broker(options=self.config(toolhost='broker', **keys))
        client.initialize()
        return client, client.new_session(self.work)

    def terminal(self, client, session, command):
        """Runs it to its end: its exit, and its output."""
        def ask(method, **params):
            client.prompt(session, f'request terminal/{method} ' + json.dumps(
                {'sessionId': session, **params}))
            return [json.loads(line) for line in self.journal('<')
                    if b'"method"' not in line][-1]['result']
        name = ask('create', command=command)['terminalId']
        end = ask('wait_for_exit', terminalId=name)
        return end, ask('output', terminalId=name)['output']

    def test_a_terminal_that_burns_cpu_time_and_a_file_that_grows(self):
        client, session = self.open(cpu_time='1s', file_size='64k', open_files='64')
        end, output = self.terminal(client, session, 'while :; do :; done')
        self.assertEqual(end['signal'], 'SIGXCPU')
        self.assertEqual(end['_meta']['broker']['limit'], 'cpu-time')
        self.assertGreaterEqual(end['_meta']['broker']['cpuMs'], 300)
        self.assertNames(output, 'cpu-time = 1s')
        end, output = self.terminal(
            client, session, 'exec dd if=/dev/zero of=grown bs=32k count=4')
        self.assertEqual(end['_meta']['broker']['limit'], 'file-size')
        self.assertNames(output, 'file-size = 64k')
        self.assertEqual(os.path.getsize(os.path.join(self.work, 'grown')), 65536)
        end, output = self.terminal(client, session, 'ulimit -n')
        self.assertEqual(output, '64\n')
        self.assertNotIn('limit', end['_meta']['broker'])

    def test_an_agent_that_burns_cpu_time_and_its_next_one(self):
        client, session = self.open(cpu_time='1s')
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'burn')
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, 'cpu-time = 1s')
        client.prompt(session, 'say again')

    def test_setup_has_the_limits(self):
        self.open(isolation='copy', open_files='64', setup=f'ulimit -n > {self.dir}/files')
        self.assertEqual((self.dir / 'files').read_text(), '64\n')

    def test_wall_ends_an_agent_and_what_it_runs(self):
        client, session = self.open(wall='1s')
        with self.assertRaises(RpcError) as raised:
            client.prompt(session, 'hang')
        self.assertEqual(raised.exception.data['code'], 'RESOURCE_LIMIT_EXCEEDED')
        self.assertNames(raised.exception.message, 'wall = 1s')
        client.prompt(session, 'say again')

    def test_without_limits_nothing_is_said_of_them(self):
        client, session = self.open()
        end, _ = self.terminal(client, session, 'true')
        self.assertEqual(end, {'exitCode': 0, 'signal': None})


if __name__ == '__main__':
    main()
