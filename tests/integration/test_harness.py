#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The tools of the other tests: the scripted agent and the client, without a broker between them.
"""

import pathlib
import subprocess
import sys
import unittest

import compare
import processes
import rawjson
from acp import RpcError
from case import Case, main


class ScriptedAgent(Case):
    def setUp(self):
        super().setUp()
        (self.work / 'notes.txt').write_text('eins\nzwei\n')

    def test_a_turn_with_every_kind_of_call(self):
        client = self.direct()
        result = client.initialize()
        self.assertEqual(result['protocolVersion'], 1)
        session = client.new_session(self.work)
        self.assertEqual(session, 'sess-1')
        result = client.prompt(
            session, 'say hello', f'read {self.work}/notes.txt', 'permission Change it?',
            f'write {self.work}/out.txt some text', 'terminal echo from a terminal', 'elicit Who?',
            'elicit-url https://example.org/', 'elicit-request Who?')
        self.assertEqual(result, {'stopReason': 'end_turn'})
        self.assertEqual((self.work / 'out.txt').read_text(), 'some text')
        texts = client.texts(session)
        self.assertEqual(texts[0], 'hello')
        self.assertIn('fs/read_text_file -> {"content":"eins\\nzwei\\n"}', texts)
        self.assertTrue(any('"optionId":"yes"' in text for text in texts))
        self.assertTrue(any('from a terminal' in text for text in texts))

    def test_its_output_is_the_same_every_time(self):
        seen = []
        for _ in range(2):
            client = self.direct()
            client.initialize()
            session = client.new_session(self.work)
            client.prompt(session, 'say a', 'think b', 'plan c', 'stream 5 100', 'members 20')
            seen.append([message.line for message in client.received])
        self.assertEqual(seen[0], seen[1])

    def test_turns_run_side_by_side(self):
        client = self.direct()
        client.initialize()
        first, second = client.new_session(self.work), client.new_session(self.work)
        waiting = client.start_prompt(first, 'hang')
        self.assertEqual(client.prompt(second, 'say b')['stopReason'], 'end_turn')
        client.notify('session/cancel', {'sessionId': first})
        self.assertEqual(client.answer(waiting)['stopReason'], 'cancelled')

    def test_unknown_methods_and_sessions_are_refused(self):
        client = self.direct()
        client.initialize()
        with self.assertRaises(RpcError) as caught:
            client.call('no/such/method')
        self.assertEqual(caught.exception.code, -32601)
        with self.assertRaises(RpcError) as caught:
            client.prompt('sess-9', 'say a')
        self.assertEqual(caught.exception.code, -32002)

    def test_a_large_stream_arrives_whole(self):
        client = self.direct()
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'stream 5000 100')
        texts = client.texts(session)
        self.assertEqual([int(text[:8]) for text in texts], list(range(5000)))
        client.close_stdin()
        self.assertEqual(client.wait(), 0)


# A program whose tests leave processes: one with the environment of a test, one without.
LEAVES = '''
import subprocess, unittest
import case, processes

processes.wait_until = lambda condition, *_, **__: condition()

class OfACase(case.Case):
    def test_leaves(self):
        subprocess.Popen(['sleep', '600'], env=self.environment(), start_new_session=True)

class OfAnother(unittest.TestCase):
    def test_leaves(self):
        subprocess.Popen(['sleep', '601'], env=processes.marked_environment())

case.main()
'''


class Left(unittest.TestCase):
    def test_what_a_test_has_left_is_named_with_the_test_and_ended(self):
        done = subprocess.run([sys.executable, '-B', '-c', LEAVES], text=True, check=False,
                              capture_output=True, cwd=pathlib.Path(__file__).parent)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r'sleep 600 +\(of __main__\.OfACase\.test_leaves\)')
        self.assertRegex(done.stdout, r'sleep 601 +\(of .*\)')
        for line in (done.stderr + done.stdout).splitlines():
            if ' sleep 60' in line:
                pid = int(line.split()[0])
                self.assertTrue(processes.wait_until(lambda pid=pid: not processes.is_running(pid)))


class Comparator(unittest.TestCase):
    """The comparator allows the table of edits and nothing else."""

    INITIALIZE = (b'{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":1,"authMethods":'
                  b'[{"type":"terminal","id":"x"},{"id":"y"}]}}')

    def same(self, direct, broker, sent=(), initialize_id=None):
        compare.compare_side(compare.Side(direct, sent), compare.Side(broker, sent), initialize_id)

    def differ(self, direct, broker, sent=(), initialize_id=None):
        with self.assertRaises(compare.Difference):
            self.same(direct, broker, sent, initialize_id)

    def test_ids_of_requests_may_differ_and_ids_of_answers_may_not(self):
        self.same([b'{"id": "a","method":"x"}'], [b'{"id": 7,"method":"x"}'])
        self.differ([b'{"id": "a","method":"x"}'], [b'{"id":7,"method":"x"}'])
        self.differ([b'{"id": "a","method":"x"}'], [b'{"id": "b","method":"x"}'])
        self.differ([b'{"id":1,"result":{}}'], [b'{"id":2,"result":{}}'])
        self.differ([b'{"id":1e2,"result":{}}'], [b'{"id":100,"result":{}}'])

    def test_spelling_may_not_differ(self):
        for one, other in ((b'{"method":"x","p":{"a":1}}', b'{"method":"x","p":{"a":1.0}}'),
                           (b'{"method":"x","p":{"a":1}}', b'{"method":"x","p":{"a": 1}}'),
                           (b'{"method":"x"}', b'{"method":"x","params":{}}'),
                           (b'{"method":"x"}', b'{"method":"\\u0078"}'),
                           (b'{"a":1,"method":"x"}', b'{"method":"x","a":1}')):
            self.differ([one], [other])

    def test_a_message_may_not_be_missing_or_come_twice(self):
        line = b'{"method":"x"}'
        self.differ([line, line], [line])
        self.differ([line], [line, line])
        self.differ([b'{"method":"x"}', b'{"method":"y"}'], [b'{"method":"y"}', b'{"method":"x"}'])

    def test_a_cancelled_request_is_named_by_the_hop_s_own_id(self):
        def pair(number, named):
            return [b'{"id":%s,"method":"x"}' % number,
                    b'{"method":"$/cancel_request","params":{"requestId":%s}}' % named]
        self.same(pair(b'"a"', b'"a"'), pair(b'3', b'3'))
        self.differ(pair(b'"a"', b'"a"'), pair(b'3', b'"a"'))

    def test_initialize_may_carry_what_the_broker_adds(self):
        meta = b'"_meta":{"broker":{"version":"1","backend":"local","capabilities":{}}}'
        marked = self.INITIALIZE.replace(
            b'"id":"x"', b'"id":"x","args":[],"env":{"ACP_BROKER_LOGIN":"%s"}' % (b'0f' * 16))
        self.same([self.INITIALIZE], [marked[:-2] + b',' + meta + b'}}'], initialize_id=b'"a"')
        self.same([self.INITIALIZE], [marked.replace(b'"result":{', b'"result":{' + meta + b',')],
                  initialize_id=b'"a"')
        self.differ([self.INITIALIZE], [marked], initialize_id=b'"a"')
        self.differ([self.INITIALIZE], [self.INITIALIZE[:-2] + b',' + meta + b'}}'],
                    initialize_id=b'"a"')
        self.differ([self.INITIALIZE], [marked[:-2] + b',' + meta + b',"more":1}}'],
                    initialize_id=b'"a"')

    def test_a_member_is_cut_with_one_comma(self):
        for text, name, expected in ((b'{"a":1,"b":2}', 'a', b'{"b":2}'),
                                     (b'{"a":1,"b":2}', 'b', b'{"a":1}'),
                                     (b'{"a":{"x":[1,"}"]}}', 'a', b'{}'),
                                     (b'{"a":1}', 'c', b'{"a":1}')):
            self.assertEqual(rawjson.without_member(text, 0, name), expected)


if __name__ == '__main__':
    main()
