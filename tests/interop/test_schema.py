#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Checks every message of both hops of a session with every method against ACP's JSON schema, and
checks that this check notices mistakes.
"""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

import acp_schema  # noqa: E402
from acp_schema import TO_AGENT, TO_EDITOR, Hop, Schema  # noqa: E402
from case import Case, main  # noqa: E402

NEEDED = unittest.skipUnless(acp_schema.available() or acp_schema.required(),
                             'the npm packages of tests/interop are not installed')


def request(method, params, number=1):
    return json.dumps({'jsonrpc': '2.0', 'id': number, 'method': method,
                       'params': params}).encode()


@NEEDED
class Checker(unittest.TestCase):
    def setUp(self):
        self.hop = Hop(Schema())

    def test_it_accepts_what_is_right(self):
        self.hop.feed(TO_AGENT, request('session/new', {'cwd': '/tmp', 'mcpServers': []}))
        self.hop.feed(TO_EDITOR, b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}')
        self.assertEqual(self.hop.problems, [])
        self.assertEqual(self.hop.unanswered(), [])

    def test_it_complains_of_what_is_wrong(self):
        wrong = ((TO_AGENT, request('session/new', {'cwd': '/tmp'})),
                 (TO_AGENT, request('session/new', {'cwd': 1, 'mcpServers': []}, 2)),
                 (TO_EDITOR, b'{"jsonrpc":"2.0","method":"session/update","params":{}}'),
                 (TO_EDITOR, b'{"jsonrpc":"2.0","id":99,"result":{}}'),
                 (TO_EDITOR, b'{"jsonrpc":"2.0","id":1.5,"method":"_x"}'),
                 (TO_EDITOR, b'{"id":1,"method":"_x"}'),
                 (TO_EDITOR, b'[]'),
                 (TO_EDITOR, b'noise'))
        for number, (to, line) in enumerate(wrong, 1):
            self.hop.feed(to, line)
            self.assertGreaterEqual(len(self.hop.problems), number, line)

    def test_an_answer_is_checked_as_its_request_s(self):
        self.hop.feed(TO_AGENT, request('session/new', {'cwd': '/tmp', 'mcpServers': []}))
        self.hop.feed(TO_EDITOR, b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}')
        self.assertEqual(len(self.hop.problems), 1)

    def test_it_knows_every_method_of_the_protocol(self):
        schema = Schema()
        self.assertEqual(len(schema.methods('agent')), 14)
        self.assertEqual(len(schema.methods('client')), 12)


@NEEDED
class Traffic(Case):
    """A session with every method, directly and through the broker; both hops."""

    def conversation(self, client):
        (self.work / 'notes.txt').write_text('eins\n')
        client.initialize()
        client.call('authenticate', {'methodId': 'token'})
        session = client.new_session(self.work)
        client.call('session/set_mode', {'sessionId': session, 'modeId': 'code'})
        client.call('session/set_config_option',
                    {'sessionId': session, 'configId': 'model', 'value': 'large'})
        client.prompt(session, 'say one', 'think two', 'plan three',
                      f'read {self.work}/notes.txt', f'read {self.work}/missing.txt',
                      f'write {self.work}/out.txt text', 'permission Change it?',
                      'terminal echo hello', 'terminal-kill sleep 60', 'elicit Who?',
                      'elicit-request Who?', 'elicit-url https://example.org/', 'cancel-request',
                      'diff 1000')
        waiting = client.start_prompt(session, 'say x', 'hang')
        client.wait_text('x')
        client.notify('session/cancel', {'sessionId': session})
        client.answer(waiting)
        client.call('session/list', {})
        for method in ('session/load', 'session/resume'):
            client.call(method, {'sessionId': session, 'cwd': str(self.work), 'mcpServers': []})
        client.call('session/close', {'sessionId': session})
        client.call('session/delete', {'sessionId': session})
        client.call('logout')

    def check(self, client):
        self.conversation(client)
        client.close_stdin()
        client.wait()
        editor, agent = Hop(Schema()), Hop(Schema())
        for message in client.messages:
            editor.feed(TO_AGENT if message.sent else TO_EDITOR, message.line)
        for line in self.journal_path().read_bytes().split(b'\n')[:-1]:
            agent.feed(TO_AGENT if line.startswith(b'< ') else TO_EDITOR, line[2:])
        for hop in (editor, agent):
            self.assertEqual(hop.problems, [])
            self.assertEqual(hop.unanswered(), [])
            self.assertEqual(hop.unknown, set())
            checked = {name for name in hop.checked if name not in ('RequestId', 'Error')}
            # All except the editor's $/cancel_request: both sides share its definition.
            self.assertEqual(set(hop.schema.names.values()) - checked, set())

    def test_direct(self):
        self.check(self.direct())

    def test_through_the_broker(self):
        self.check(self.broker())


if __name__ == '__main__':
    main()
