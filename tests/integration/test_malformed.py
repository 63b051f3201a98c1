#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Lines that are not messages, from either side: the broker answers or logs them, and the session goes
on.
"""

from case import Case, main
from host import NEVER

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
MAX_MESSAGE = 65536


class Malformed(Case):
    def setUp(self):
        super().setUp()
        self.client = self.broker(options=self.config(max_message='64k'))
        self.client.initialize()
        self.session = self.client.new_session(self.work)

    def goes_on(self):
        """Checks that the session still works, and that the agent got nothing else."""
        before = len(self.client.texts())
        self.client.prompt(self.session, 'say still here')
        self.assertEqual(self.client.texts()[before:], ['still here'])

    def answer_to(self, line):
        """Sends a line; returns the next answer."""
        place = len(self.client.messages)
        self.client.send_line(line)
        return self.client.wait_for(lambda m: m.is_response, after=place)

    def refused(self, line, code, raw_id):
        answer = self.answer_to(line)
        self.assertEqual(answer.value['error']['code'], code, (line, answer))
        self.assertEqual(answer.id, raw_id, (line, answer))
        return answer


class FromTheEditor(Malformed):
    def test_what_is_no_json_is_a_parse_error(self):
        for line in (b'hello', b'{', b'{"jsonrpc":"2.0"', b'{"a":1,}', b'{"a" 1}', b'{"a":01}',
                     b'{"a":1}{"b":2}', b'{"a":"\x01"}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}',
                     b"{'a':1}", b'{"a":tru}', b'{"a":+1}', b'{"a":.5}', b'{"a":"\\x"}', b'\x00',
                     b'{"a":"' + b'\xc0\xaf' + b'"}', b'\xef\xbb\xbf{}', b'[' * 300 + b']' * 300):
            self.refused(line, PARSE_ERROR, b'null')
        self.goes_on()

    def test_a_parse_error_carries_the_id_where_there_is_one(self):
        for raw_id in (b'5', b'"five"', b'-7', b'1.50'):
            self.refused(b'{"jsonrpc":"2.0","id":%s,"method":"session/list","params":{,}}' % raw_id,
                         PARSE_ERROR, raw_id)
        self.goes_on()

    def test_a_batch_is_an_invalid_request(self):
        for line in (b'[]', b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]',
                     b' [ {"jsonrpc":"2.0","id":1,"method":"_echo"},'
                     b'{"jsonrpc":"2.0","id":2,"method":"_echo"}]'):
            self.refused(line, INVALID_REQUEST, b'null')
        self.goes_on()

    def test_json_that_is_no_json_rpc_is_an_invalid_request(self):
        for line, raw_id in ((b'1', b'null'), (b'"text"', b'null'), (b'null', b'null'),
                             (b'{}', b'null'), (b'{"id":3,"method":"_echo"}', b'3'),
                             (b'{"jsonrpc":"1.0","id":4,"method":"_echo"}', b'4'),
                             (b'{"jsonrpc":2.0,"id":4,"method":"_echo"}', b'4'),
                             (b'{"jsonrpc":"2.0","id":5}', b'5'),
                             (b'{"jsonrpc":"2.0","id":6,"method":7}', b'6'),
                             (b'{"jsonrpc":"2.0","id":8,"method":"_echo","params":9}', b'8'),
                             (b'{"jsonrpc":"2.0","id":{"a":1},"method":"_echo"}', b'null'),
                             (b'{"jsonrpc":"2.0","id":true,"method":"_echo"}', b'null')):
            self.refused(line, INVALID_REQUEST, raw_id)
        self.goes_on()

    def test_a_member_of_the_envelope_may_not_come_twice(self):
        for line in (b'{"jsonrpc":"2.0","id":8,"method":"_echo","id":9}',
                     b'{"jsonrpc":"2.0","id":8,"method":"_echo","meth\\u006fd":"session/list"}',
                     b'{"jsonrpc":"2.0","id":8,"method":"_echo","params":{},"params":{}}'):
            answer = self.answer_to(line)
            self.assertIn(answer.value['error']['code'], (PARSE_ERROR, INVALID_REQUEST))
            self.assertIn(answer.id, (b'8', b'null'))
        self.goes_on()

    def test_nothing_malformed_reaches_the_agent(self):
        for line in (b'hello', b'[]', b'{"id":1}', b'{"jsonrpc":"2.0","id":2,"method":7}'):
            self.answer_to(line)
        self.goes_on()
        methods = [b'initialize', b'session/new', b'session/prompt']
        self.assertEqual(len(self.journal('<')), len(methods))
        for line, method in zip(self.journal('<'), methods):
            self.assertIn(method, line)

    def test_a_request_that_is_too_long_is_refused_by_its_id(self):
        filler = b'x' * (2 * MAX_MESSAGE)
        for raw_id in (b'11', b'"twelve"'):
            first = b'{"jsonrpc":"2.0","id":%s,"method":"_echo","params":{"x":"%s"}}'
            last = b'{"jsonrpc":"2.0","method":"_echo","params":{"x":"%s"},"id":%s}'
            for line in (first % (raw_id, filler), last % (filler, raw_id)):
                answer = self.answer_to(line)
                self.assertEqual(answer.id, raw_id)
                error = self.failure(answer, 'MESSAGE_TOO_LONG')
                self.assertIn(str(MAX_MESSAGE), error['message'])
        self.goes_on()

    def test_a_notification_that_is_too_long_is_skipped(self):
        self.client.send_line(b'{"jsonrpc":"2.0","method":"_mirror","params":{"x":"%s"}}'
                              % (b'x' * (2 * MAX_MESSAGE)))
        self.goes_on()
        self.assertFalse(any(b'_mirror' in line for line in self.journal('<')))

    def test_an_answer_that_is_too_long_fails_the_request_it_belongs_to(self):
        self.client.host.replies['_ask'] = lambda params: {'text': 'x' * (2 * MAX_MESSAGE)}
        self.client.prompt(self.session, 'request _ask {}')
        self.assertIn('_ask -> error', self.client.texts()[-1])
        self.assertIn('MESSAGE_TOO_LONG', self.client.texts()[-1])
        self.goes_on()

    def test_a_message_of_the_longest_length_passes(self):
        frame = b'{"jsonrpc":"2.0","id":"x","method":"_echo","params":{"x":"%s"}}'
        line = frame % (b'x' * (MAX_MESSAGE - len(frame) + 2))
        self.assertEqual(len(line), MAX_MESSAGE)
        self.client.send_line(line)
        self.assertIn('result', self.client.response(b'"x"').value)

    def test_answers_to_nothing_are_consumed(self):
        asked = self.client.start_prompt(self.session, 'request _ask {}', 'say after')
        question = self.client.wait_for(lambda m: m.method == '_ask')
        self.assertEqual(self.client.answer(asked)['stopReason'], 'end_turn')
        for line in (b'{"jsonrpc":"2.0","id":4711,"result":{}}',
                     b'{"jsonrpc":"2.0","id":"no such","error":{"code":1,"message":"x"}}',
                     b'{"jsonrpc":"2.0","id":%s,"result":{}}' % question.id,
                     b'{"jsonrpc":"2.0","id":null,"result":{}}'):
            self.client.send_line(line)
        self.goes_on()
        # The agent got the answer to its _ask once, and none of the answers above.
        self.assertEqual(sum(1 for line in self.journal('<') if b'method' not in line), 1)


class FromTheAgent(Malformed):
    def test_noise_goes_to_the_log_and_never_to_the_editor(self):
        before = len(self.client.received)
        self.client.prompt(self.session, 'garbage', 'banner plain text', 'say after')
        fresh = self.client.received[before:]
        self.assertEqual(len(fresh), 2, fresh)
        self.assertEqual(self.client.texts(), ['after'])
        self.client.wait_log('plain text')
        self.goes_on()

    def test_a_banner_before_everything(self):
        client = self.broker('--garbage-first')
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'say after')
        for message in client.received:
            self.assertEqual(message.value['jsonrpc'], '2.0')
        client.wait_log('scripted agent')

    def test_a_second_answer_is_consumed(self):
        self.assertEqual(self.client.prompt(self.session, 'answer-twice')['stopReason'], 'end_turn')
        self.goes_on()
        self.assertFalse(any(b'refusal' in message.line for message in self.client.received))

    def test_answers_to_nothing_are_consumed(self):
        before = len(self.client.received)
        self.client.prompt(self.session, 'raw {"jsonrpc":"2.0","id":4711,"result":{}}',
                           'raw {"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}',
                           'raw {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
                           'raw {"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}')
        self.assertEqual(len(self.client.received), before + 1)
        self.goes_on()

    def test_a_notification_that_is_too_long_is_skipped_and_logged(self):
        self.client.prompt(self.session, f'long {2 * MAX_MESSAGE}', 'say after')
        self.assertEqual(self.client.texts(), ['after'])
        self.client.wait_log(str(MAX_MESSAGE))
        self.goes_on()

    def test_an_answer_that_is_too_long_is_an_error_for_the_editor(self):
        prompt = self.client.start_prompt(self.session, f'long-answer {2 * MAX_MESSAGE}')
        self.failure(self.client.response(prompt), 'MESSAGE_TOO_LONG')
        self.goes_on()

    def test_a_request_that_is_too_long_is_an_error_for_the_agent(self):
        self.client.prompt(self.session, f'long-request {2 * MAX_MESSAGE}')
        self.assertIn('_long -> error', self.client.texts()[-1])
        self.assertIn('MESSAGE_TOO_LONG', self.client.texts()[-1])
        self.assertEqual(self.client.host.seen, [])
        self.goes_on()

    def test_its_stderr_is_drained_whatever_its_size(self):
        self.client.prompt(self.session, 'stderr 100000', 'say after')
        self.assertEqual(self.client.texts(), ['after'])

    def test_an_answer_of_the_editor_that_comes_late_is_consumed(self):
        self.client.host.replies['session/request_permission'] = NEVER
        prompt = self.client.start_prompt(self.session, 'permission May I?')
        asked = self.client.wait_for(lambda m: m.method == 'session/request_permission')
        self.client.notify('session/cancel', {'sessionId': self.session})
        self.assertEqual(self.client.answer(prompt)['stopReason'], 'cancelled')
        for _ in range(2):
            self.client.send_line(b'{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":'
                                  b'"cancelled"}}}' % asked.id)
        self.goes_on()
        answers = [line for line in self.journal('<') if b'"method"' not in line]
        self.assertEqual(len(answers), 1)


if __name__ == '__main__':
    main()
