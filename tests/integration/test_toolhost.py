#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Requests to the ToolHost that no agent should send: the broker survives them and goes on."""

import json
import os
import signal

import processes
from acp import RpcError
from case import SANITIZED, Case, main
from test_backpressure import Gauge

MIB = 1 << 20


class ToolHost(Case):
    def open(self, *flags, **keys):
        client = self.broker(*flags, options=self.config(toolhost='broker', **keys))
        client.initialize()
        return client, client.new_session(self.work)

    def request(self, session, method, **params):
        return f'request {method} ' + json.dumps({'sessionId': session, **params})

    def answer_lines(self):
        return [line for line in self.journal('<') if b'"method"' not in line]

    def answers(self):
        return [json.loads(line) for line in self.answer_lines()]


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
        """The editor shows a terminal of the first agent, in the same session."""
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
        self.assertNames(self.answers()[-1]['error']['message'], 'was released | another session')


class Unread(ToolHost):
    """An agent that sends one request after the other and does not read the answers."""

    COUNT = 100

    def unheard(self, client):
        """The bytes that the agent has sent and the broker has not read."""
        heard = client.call('_broker/usage')['bytes']['fromAgents']
        return sum(len(sent) + 1 for sent in self.journal('>')) - heard

    def ask_unread(self, line, count=COUNT, unheard=None, **keys):
        """
        Sends requests without reading the answers; returns the answers once it reads. The broker
        stops reading before, with more than `unheard` bytes left to read.
        """
        client, session = self.open(**keys)
        (self.work / 'file').write_text('y' * MIB)
        agent = self.agent_pids()[-1]
        gauge = Gauge(client.pid)
        before = len(self.answers())
        prompt = client.start_prompt(session, 'stop-reading', *[line(session)] * count)
        if unheard is not None:
            self.assertTrue(processes.wait_until(lambda: self.unheard(client) > unheard, step=0.2))
        processes.wait_at_rest(self.journal_path().stat)
        above = gauge.above_idle()
        if unheard is not None:
            self.assertGreater(self.unheard(client), unheard)
        os.kill(agent, signal.SIGUSR1)
        self.assertEqual(client.answer(prompt)['stopReason'], 'end_turn')
        self.assertTrue(processes.wait_until(
            lambda: len(self.answer_lines()) >= before + count, step=0.2), before)
        answers = self.answers()[before:]
        self.assertEqual(len({answer['id'] for answer in answers}), count)
        if not SANITIZED:
            self.assertLess(above, 40 * MIB, f'{above / MIB:.1f} MiB')
        client.prompt(session, 'say after')
        return answers

    def test_files_are_read_once_it_reads(self):
        answers = self.ask_unread(lambda session: self.request(
            session, 'fs/read_text_file', path=str(self.work / 'file')).replace(
                'request', 'fire', 1))
        self.assertEqual({len(answer['result']['content']) for answer in answers}, {MIB})

    def test_it_is_heard_no_more_where_even_short_answers_are_too_many(self):
        answers = self.ask_unread(lambda session: self.request(
            session, 'terminal/kill', terminalId='x' * 100).replace('request', 'fire', 1),
            count=40_000, max_queue='64k', unheard=100_000)  # more than a pipe holds
        self.assertEqual({answer['error']['data']['code'] for answer in answers},
                         {'INVALID_PARAMS'})


if __name__ == '__main__':
    main()
