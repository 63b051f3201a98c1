#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The audit log: one line for each decision, and no secret."""

import json

from acp import RpcError
from processes import PATIENCE
from case import main
from host import NEVER
from policy_case import PolicyCase, no_window


class Audit(PolicyCase):
    def lines(self, name='audit'):
        path = self.dir / name
        return [json.loads(line) for line in path.read_text().splitlines()]

    def audited(self, policy, *flags, **keys):
        return self.open(*flags, policy=policy, broker=(f'audit = {self.dir}/audit',), **keys)

    def test_each_decision_is_one_line(self):
        client, session = self.audited(('mode = ask-all', 'deny = read **/secret'))
        self.chooses(client, 'allow_always')
        path = self.work / 'a.txt'
        client.prompt(session, f'write {path} x', f'write {path} y', f'read {path}',
                      f'read {self.work}/secret')
        self.chooses(client, 'reject_once')
        client.prompt(session, 'terminal echo a', 'permission May I?')
        client.host.replies['session/request_permission'] = no_window
        client.prompt(session, 'terminal echo b')
        rows = [(row['operation'], row['decision'], row['by']) for row in self.lines()]
        self.assertEqual(rows, [
            ('fs/write_text_file', 'allow-always', 'person'),
            ('fs/write_text_file', 'allow-always', 'remembered'),
            ('fs/read_text_file', 'allow-once', 'policy'),
            ('fs/read_text_file', 'reject-once', 'policy'),
            ('terminal/create', 'reject-once', 'person'),
            ('session/request_permission', 'reject-once', 'person'),
            ('terminal/create', 'reject-once', 'nobody'),
        ])
        self.assertEqual({row['session'] for row in self.lines()}, {session})
        self.assertEqual(self.lines()[0]['subject'], str(path))
        self.assertEqual(self.lines()[3]['rule'], 'deny = read **/secret')
        self.assertEqual((self.dir / 'audit').stat().st_mode & 0o777, 0o600)

    def test_a_request_without_an_id_is_dropped_and_that_is_one_line(self):
        client, session = self.audited(('mode = approve-all',))
        params = {'sessionId': session, 'path': f'{self.work}/a', 'content': 'x'}
        client.prompt(session, f'notify fs/write_text_file {json.dumps(params)}')
        self.assertEqual([(row['session'], row['operation'], row['decision'], row['by'])
                          for row in self.lines()],
                         [(session, 'fs/write_text_file', 'reject-once', 'policy')])
        client.wait_log('fs/write_text_file | no id')
        self.assertFalse((self.work / 'a').exists())
        self.assertEqual([method for method, _ in client.host.seen], [])

    def test_a_timeout_and_the_end_are_decisions_too(self):
        client, session = self.audited(('mode = ask-all',), permission_timeout='200ms')
        client.host.replies['session/request_permission'] = NEVER
        client.prompt(session, f'write {self.work}/a x', 'permission May I?')
        self.assertEqual([row['by'] for row in self.lines()], ['timeout', 'timeout'])
        client.start_prompt(session, 'permission May I?')
        seen = len(self.questions(client))
        client.wait_for(lambda m: len(self.questions(client)) > seen - 1)
        client.close_stdin()
        client.wait(PATIENCE)
        self.assertIn(self.lines()[-1]['by'], ('nobody', 'timeout'))

    def test_a_question_whose_agent_dies_was_decided_by_nobody(self):
        client, session = self.audited(('mode = ask-all',))
        other = client.new_session(self.work)
        client.host.replies['session/request_permission'] = NEVER
        client.start_prompt(session, f'write {self.work}/a x')
        question = client.wait_for(lambda m: m.method == 'session/request_permission')
        with self.assertRaises(RpcError):
            client.prompt(other, 'exit 3')
        client.send({'jsonrpc': '2.0', 'id': int(question.id), 'result': {
            'outcome': {'outcome': 'selected', 'optionId': 'allow'}}})
        client.wait_log('an answer | never made')
        self.assertEqual([(row['decision'], row['by']) for row in self.lines()],
                         [('reject-once', 'nobody')])
        self.assertFalse((self.work / 'a').exists())

    def test_secrets_contents_and_environments_are_not_in_it(self):
        env = dict(self.environment(), MY_TOKEN='sesame-"12345"')
        options = self.config(policy=('mode = approve-all',))
        path = self.dir / 'config'
        path.write_text(path.read_text() + f'[broker]\n\taudit = {self.dir}/audit\n')
        client = self.broker(options=options, env=env)
        client.initialize()
        session = client.new_session(self.work)
        params = json.dumps({'sessionId': session, 'command': 'echo', 'args': ['sesame-"12345"'],
                             'env': [{'name': 'A', 'value': 'hidden-value'}]})
        client.prompt(session, f'request terminal/create {params}',
                      f'write {self.work}/a.txt contents-of-it')
        text = (self.dir / 'audit').read_text()
        self.assertEqual(self.lines()[0]['subject'], 'echo ***')
        self.assertEqual(self.lines()[0]['variables'], ['A'])
        self.assertNotIn('variables', self.lines()[1])
        for hidden in ('sesame', 'hidden-value', 'contents-of-it'):
            self.assertNotIn(hidden, text)

    def test_a_refused_mode_is_a_decision(self):
        client, session = self.audited(('mode = pass',))
        with self.assertRaises(RpcError):
            client.call('session/set_mode', {'sessionId': session, 'modeId': 'yolo'})
        row, = self.lines()
        self.assertEqual((row['operation'], row['decision'], row['rule']),
                         ('session/set_mode', 'reject-once', 'mode = pass'))

    def test_a_log_that_cannot_be_written_is_a_mistake_of_the_configuration(self):
        options = self.config()
        path = self.dir / 'config'
        path.write_text(path.read_text() + f'[broker]\n\taudit = {self.dir}\n')
        client = self.broker(options=options)
        self.assertEqual(client.wait(PATIENCE), 2)
        self.assertIn('audit', client.stderr)


if __name__ == '__main__':
    main()
