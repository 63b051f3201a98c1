#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The same conversation directly and through the broker: both ends must see the same bytes, except for
the broker's table of edits (compare.py).
"""

import json
import unittest

from acp import RpcError
from case import Case, main
from compare import Side, compare_hops, compare_side
from host import NEVER

ODD_IDS = (b'"a"', b'""', b'-5', b'0', b'1.5', b'1e2', b'9007199254740993', b'null',
           b'123456789012345678901234567890', '"é-日本-😀"'.encode(), b'"\\u0061\\n\\""',
           b'"' + b'x' * 200 + b'"')


class Transcript(Case):
    def prepare(self):
        """Makes the files that a conversation may read, anew before each of the two."""
        for path in self.work.iterdir():
            path.unlink()
        (self.work / 'notes.txt').write_text('eins\nzwei\n')

    def run_once(self, start, conversation, flags):
        self.prepare()
        client = start(*flags)
        conversation(client)
        client.close_stdin()
        client.wait()
        editor = Side([self.shown(message) for message in client.received],
                      [message.line for message in client.sent])
        agent = Side(*([self.near(line) for line in self.journal(direction)]
                       for direction in '<>'))
        client.finish()
        initialize = next((message.id for message in client.sent
                           if message.method == 'initialize'), None)
        return editor, agent, initialize

    def there(self):
        """The agent's name of the workspace."""
        return self.work

    def near(self, line):
        """A line of the agent's, with the editor's names of the directories."""
        return line

    def shown(self, message):
        """A line that came to the editor."""
        return message.line

    def same(self, conversation, *flags, hops=True):
        editor, agent, initialize = self.run_once(self.direct, conversation, flags)
        through_editor, through_agent, _ = self.run_once(self.broker, conversation, flags)
        compare_side(editor, through_editor, initialize)
        compare_side(agent, through_agent)
        if hops:
            journal = self.journal_path().read_bytes().split(b'\n')[:-1]
            compare_hops([(message.sent, self.near(message.line))
                          for message in self.clients[-1].messages],
                         [(line.startswith(b'< '), self.near(line[2:])) for line in journal])

    def open(self, client):
        client.initialize()
        return client.new_session(self.work)

    def refused(self, client, method, params):
        with self.assertRaises(RpcError) as caught:
            client.call(method, params)
        return caught.exception.code


class Methods(Transcript):
    """Every method and notification of the protocol, in both directions."""

    def test_every_method_of_the_editor(self):
        def conversation(client):
            client.initialize()
            client.call('authenticate', {'methodId': 'token'})
            session = client.new_session(self.work, additionalDirectories=['/usr/share'])
            client.call('session/set_mode', {'sessionId': session, 'modeId': 'code'})
            client.call('session/set_config_option',
                        {'sessionId': session, 'configId': 'model', 'value': 'large'})
            client.prompt(session, 'say one', 'think two', 'plan three')
            client.call('session/list', {'cwd': str(self.work)})
            client.call('session/close', {'sessionId': session})
            client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                         'mcpServers': []})
            client.call('session/resume', {'sessionId': session, 'cwd': str(self.work)})
            client.call('session/delete', {'sessionId': session})
            client.call('session/delete', {'sessionId': 'never-seen'})
            client.call('logout')
        self.same(conversation)

    def test_null_results_stay_null(self):
        def conversation(client):
            session = self.open(client)
            client.call('session/set_mode', {'sessionId': session, 'modeId': 'code'})
            client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                         'mcpServers': []})
            client.host.replies['fs/write_text_file'] = b'null'
            client.prompt(session, f'write {self.there()}/a.txt x')
            client.call('logout')
        self.same(conversation, '--null-results')

    def test_every_method_of_the_agent(self):
        def conversation(client):
            session = self.open(client)
            client.prompt(
                session, f'read {self.there()}/notes.txt', f'read {self.there()}/missing.txt',
                f'write {self.there()}/out.txt some text', 'permission Change it?',
                'terminal printf "a\\nb\\n"; exit 3', 'terminal-kill sleep 60', 'elicit Who?',
                'elicit-url https://example.org/?a=1', 'cancel-request')
        self.same(conversation)

    def test_a_question_about_a_request_names_the_editor_s_own_id(self):
        def conversation(client):
            session = self.open(client)
            for raw_id in (b'"prompt-1"', b'77', b'"\\u0071"', b'1e1'):
                client.answer(client.start_prompt(session, 'elicit-request Who?',
                                                  request_id=raw_id))
        self.same(conversation)

    def test_unknown_methods_and_extensions(self):
        def conversation(client):
            session = self.open(client)
            self.refused(client, 'session/teleport', {'sessionId': session, 'to': [1, 2]})
            client.call('_echo', {'deep': [{'er': None}], 'sessionId': session})
            self.refused(client, '_vendor/thing', {})
            client.notify('some/notification', {'sessionId': session})
            client.notify('_mirror', {'x': [1, {'y': 'z'}]})
            client.wait_for(lambda m: m.method == '_mirrored')
            client.prompt(session, 'request _agent/extension {"a":[1,2,{"b":null}]}',
                          'request fs/teleport {"sessionId":"sess-1"}',
                          'notify _agent/noticed {"x":1}', 'notify unheard/of {"y":2}',
                          'notify mcp/message {"requestId":"not-ours"}')
        self.same(conversation)

    def test_terminal_authentication_is_offered_with_a_marker(self):
        def conversation(client):
            client.initialize({'auth': {'terminal': True}})
        self.same(conversation, '--terminal-auth')

    def test_a_meta_object_of_the_agent_s_own_is_kept(self):
        def conversation(client):
            client.initialize()
        self.same(conversation, '--meta', '{"agent": {"a" :1},"trace":[ ]}')
        self.same(conversation, '--meta', '{}')

    def test_an_editor_that_asks_for_a_later_version_is_answered_one(self):
        for version in (2, 99, 0):
            def conversation(client, version=version):
                client.initialize(version=version)
            self.same(conversation)


class Bytes(Transcript):
    """Odd spellings stay as they are."""

    def test_unknown_members_and_kinds_of_update(self):
        def conversation(client):
            session = self.open(client)
            client.prompt(
                session,
                'update {"sessionUpdate":"hologram","x":{"y":[1,2,3]},"sessionId":"not this"}',
                'update {"sessionUpdate":"agent_message_chunk","content":{"type":"text",'
                '"text":"a","_meta":{"k":1},"unknown":[]},"messageId":"m-1","more":{}}',
                'update {"sessionUpdate":"usage_update","used":1,"size":2,"cost":'
                '{"amount":0.10,"currency":"EUR"}}',
                'raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1",'
                '"update":{"sessionUpdate":"plan","entries":[]},"_meta":{"traceparent":"00-1"},'
                '"foreign":true},"extra":{"root":"member"}}')
        self.same(conversation)

    def test_order_white_space_and_escapes_of_the_agent(self):
        def conversation(client):
            session = self.open(client)
            client.prompt(
                session,
                'raw  { "params" : {"update":{"content":{"text":"\\u00e9\\ud83d\\ude00 é 😀 \\/ /",'
                '"type":"text"},"sessionUpdate":"agent_message_chunk"} , "sessionId":"sess-1"},'
                '"method":"session/update","jsonrpc":"2.0" }',
                'raw {"jsonrpc":"2.0","method":"session\\/update","params":{"sessionId":"sess-1",'
                '"update":{"sessionUpdate":"x","numbers":[1e2,1.0,-0,1E-7,0.1e+3,'
                '123456789012345678901234567890,3.14159265358979323846264338327950288]}}}',
                'raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-1",'
                '"update":{"sessionUpdate":"lone","text":"\\ud800 \\u0000 \\u2028"}}}',
                'crlf', 'say after crlf', 'banner ', 'say after a blank line')
        self.same(conversation)

    def test_order_white_space_and_escapes_of_the_editor(self):
        def conversation(client):
            session = self.open(client)
            lines = (
                b'{"method":"_echo","id":"x1","params":{"a":1e2,"b":[-0,1.0,1E5],'
                b'"c":123456789012345678901234567890},"jsonrpc":"2.0"}',
                b'  {"params" : { "sessionId" : "sess-1" , "x" : "\\u0041\\/" } ,\t"id":"x2", '
                b'"jsonrpc" : "2.0", "method":"_echo" }  ',
                b'{"jsonrpc":"2.0","id":"x3","method":"_\\u0065cho","params":["positional"]}',
                b'{"jsonrpc":"2.0","id":"x4","method":"_echo","params":{"\\u0069d":1,"id":2},'
                b'"unknown":[{}]}\r',
                '{"jsonrpc":"2.0","id":"x5","method":"_echo","params":{"é":"日本 😀"}}'.encode())
            for number, line in enumerate(lines, 1):
                client.send_line(line)
                client.send_bytes(b'\n\r\n  \n')
                client.response(b'"x%d"' % number)
            self.assertTrue(session)
        self.same(conversation)

    def test_ids_of_the_editor(self):
        def conversation(client):
            session = self.open(client)
            for raw_id in ODD_IDS:
                client.answer(client.start('_echo', {'n': 1}, request_id=raw_id))
                client.answer(client.start_prompt(session, 'say hi', request_id=raw_id))
        self.same(conversation)

    def test_ids_of_the_agent(self):
        def conversation(client):
            session = self.open(client)
            path = self.there() / 'notes.txt'
            for raw_id in ODD_IDS:
                spelled = raw_id.decode()
                if ' ' in spelled:
                    continue
                client.prompt(session, f'raw-request {spelled} {{"params":{{"sessionId":"sess-1",'
                              f'"path":"{path}"}},"method":"fs/read_text_file","id":{spelled},'
                              '"jsonrpc":"2.0"}')
        self.same(conversation)

    passes_unknown_sessions = True

    def test_results_and_errors_are_passed_as_they_are(self):
        def conversation(client):
            session = self.open(client)
            for error in ('{"code":-32000,"message":"Authentication required"}',
                          '{"message":"odd","code":1e3,"data":{"a":[1.0,null]},"more":true}',
                          '{"code":-32603,"message":"","data":"text"}'):
                client.response(client.start('_refuse', json.loads(error)))
                client.response(client.start_prompt(session, f'error {error}'))
            client.prompt(session, 'result {"stopReason":"end_turn","usage":{"x":1e2},"_meta":{}}')
            client.prompt(session, 'stop max_tokens')
            client.host.replies['_ask'] = b'{"a" : 1.50,"b":[ ]}'
            client.prompt(session, 'request _ask {}')

            def refuse(params):
                raise RpcError(-32099, 'no \u00e9', {'why': ['a', None]})
            client.host.replies['_ask'] = refuse
            client.prompt(session, 'request _ask {}')
            if self.passes_unknown_sessions:
                self.refused(client, 'session/prompt', {'sessionId': 'gone', 'prompt': []})
        self.same(conversation)

    def test_authentication_required_reaches_the_editor(self):
        def conversation(client):
            client.initialize()
            self.refused(client, 'session/new', {'cwd': str(self.work), 'mcpServers': []})
            client.call('authenticate', {'methodId': 'token'})
            client.new_session(self.work)
        self.same(conversation, '--need-auth')

    def test_large_messages(self):
        def conversation(client):
            session = self.open(client)
            client.prompt(session, 'diff 1048576', 'members 50000', 'big-request 3000000',
                          'stream 2000 200')
            client.call('_echo', {'text': 'y' * 2_000_000})
        self.same(conversation)


class Sessions(Transcript):
    """Several sessions, several directories, and cancels."""

    def test_several_sessions_in_several_directories(self):
        other = self.dir / 'other'
        other.mkdir()

        def conversation(client):
            client.initialize()
            first, second = client.new_session(self.work), client.new_session(other)
            third = client.new_session(self.work)
            client.host.replies['session/request_permission'] = NEVER
            waiting = client.start_prompt(first, 'permission Wait for it')
            asked = client.wait_for(lambda m: m.method == 'session/request_permission')
            client.prompt(second, 'say two')
            client.send_line(b'{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":'
                             b'"selected","optionId":"yes"}}}' % asked.id)
            client.answer(waiting)
            client.prompt(third, 'say three')
            client.call('session/list', {})
            client.call('session/list', {'cwd': str(other), 'cursor': None})
            client.call('session/close', {'sessionId': second})
            client.prompt(first, 'say one again')
        self.same(conversation)

    def test_a_replay_comes_before_the_answer(self):
        def conversation(client):
            client.initialize()
            client.call('session/load', {'sessionId': 'older', 'cwd': str(self.work),
                                         'mcpServers': []})
            replayed = [message for message in client.received
                        if message.method == 'session/update']
            self.assertEqual(len(replayed), 3000)
            client.prompt('older', 'say and on')
        self.same(conversation, '--load-replay', '3000')

    def test_a_cancel_while_a_question_is_open(self):
        def conversation(client):
            session = self.open(client)
            client.host.replies['session/request_permission'] = NEVER
            prompt = client.start_prompt(session, 'say before', 'permission May I?')
            asked = client.wait_for(lambda m: m.method == 'session/request_permission')
            client.notify('session/cancel', {'sessionId': session})
            self.assertEqual(client.answer(prompt), {'stopReason': 'cancelled'})
            client.send_line(b'{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":'
                             b'"cancelled"}}}' % asked.id)
            client.prompt(session, 'say after')
        self.same(conversation)

    def test_a_request_is_cancelled_by_the_editor(self):
        def conversation(client):
            session = self.open(client)
            for raw_id in (b'"p"', b'4711', b'-3'):
                prompt = client.start_prompt(session, 'say before', 'hang', request_id=raw_id)
                client.wait_for(lambda m: m.method == 'session/update',
                                after=len(client.messages) - 1)
                client.send_line(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":'
                                 b'{"requestId":%s}}' % raw_id)
                with self.assertRaises(RpcError) as caught:
                    client.answer(prompt)
                self.assertEqual(caught.exception.code, -32800)
        self.same(conversation)

    def test_requests_under_way_at_once_with_the_same_id(self):
        def conversation(client):
            session = self.open(client)
            client.start_prompt(session, 'sleep 1500', 'say slow', request_id=b'"same"')
            client.start('_echo', {'n': 1}, request_id=b'"same"')
            client.wait_for(lambda m: m.is_response and 'stopReason' in m.value['result'])
        self.same(conversation, hops=False)

    def test_the_agent_s_surroundings_are_the_editor_s(self):
        def conversation(client):
            session = self.open(client)
            client.prompt(session, 'env', 'cwd')
        self.same(conversation)


if __name__ == '__main__':
    main()
