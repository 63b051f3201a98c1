#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A policy in a whole session: who is asked, what the agent is told, and what the editor never sees.
"""

import json

from case import Case, main
from host import NEVER

ONLY_ALLOW = ('request session/request_permission {"sessionId":"sess-1","toolCall":{"toolCallId":'
              '"c","title":"t"},"options":[{"optionId":"one","name":"A","kind":"allow_once"},'
              '{"optionId":"all","name":"B","kind":"allow_always"}]}')


class Policy(Case):
    def open(self, *policy):
        client = self.broker(options=self.config(policy=policy))
        client.initialize()
        (self.work / 'notes.txt').write_text('eins\n')
        self.client, self.session = client, client.new_session(self.work)
        return client

    def said(self, *lines):
        """
        Plays a turn; returns the agent's reports about the answers that it got, a text for each.
        """
        before = len(self.client.texts())
        self.client.prompt(self.session, *lines)
        return self.client.texts()[before:]

    def asked(self, method):
        return [params for seen, params in self.client.host.seen if seen == method]

    def assert_refused(self, text, method):
        self.assertTrue(text.startswith(f'{method} -> error'), text)
        self.assertIn('PERMISSION_DENIED', text)

    def test_ask_lets_the_user_decide(self):
        self.open('mode = pass')
        for kind, option in (('allow_once', 'yes'), ('reject_once', 'no'),
                             ('allow_always', 'always'), ('reject_always', 'never')):
            self.client.host.permission = kind
            self.assertIn(f'"optionId":"{option}"', self.said('permission May I?')[0])
        self.assertEqual(len(self.asked('session/request_permission')), 4)
        self.said(f'read {self.work}/notes.txt', f'write {self.work}/b.txt x', 'terminal true')
        self.assertEqual(len(self.asked('session/request_permission')), 4)
        self.assertEqual(len(self.asked('fs/write_text_file')), 1)

    def test_a_member_that_stands_twice_is_refused(self):
        hostile = ('request terminal/create {"sessionId":"sess-1","command":"git","args":'
                   '["status"],"env":[{"name":"LANG","value":"./e.so","name":"LD_PRELOAD"}]}')
        for toolhost in ('editor', 'broker'):
            with self.subTest(toolhost=toolhost):
                options = self.config(policy=('mode = deny-all', 'allow = terminal git status'),
                                      toolhost=toolhost)
                self.client = self.broker(options=options)
                self.client.initialize()
                self.session = self.client.new_session(self.work)
                text, = self.said(hostile)
                self.assertTrue(text.startswith('terminal/create -> error'), text)
                self.assertIn('INVALID_PARAMS', text)
                self.assertEqual(self.asked('terminal/create'), [])
                self.client.finish()

    def test_without_a_policy_such_a_request_passes_as_it_is(self):
        self.client = self.broker(options=self.config())
        self.client.initialize()
        self.session = self.client.new_session(self.work)
        self.said('request _vendor/x {"a":1,"a":2,"PATH":[{"path":1,"path":2}]}')
        message, = (m for m in self.client.received if m.method == '_vendor/x')
        self.assertIn(b'"params":{"a":1,"a":2,"PATH":[{"path":1,"path":2}]}',
                      message.line)

    def test_deny_all_refuses_methods_that_it_does_not_know(self):
        client = self.open('mode = deny-all', 'allow = *')
        for method in ('_vendor/x', 'session/new'):
            self.assert_refused(self.said(f'request {method} {{"cwd":"/"}}')[0], method)
        self.said('notify _vendor/told {}')
        self.assertEqual([m for m, _ in client.host.seen], [])
        self.assertEqual([m for m in client.received if m.method == '_vendor/told'], [])

    def test_the_broker_s_methods_are_not_the_agent_s(self):
        client = self.broker(options=self.config())
        client.initialize()
        self.client, self.session = client, client.new_session(self.work)
        text, = self.said('request _broker/health {}')
        self.assertIn('METHOD_NOT_FOUND', text)
        self.assertEqual(client.host.seen, [])

    def test_approve_all_asks_nobody(self):
        self.open('mode = approve-all')
        self.client.host.permission = 'reject_once'
        text = self.said('permission May I?')[0]
        self.assertIn('"outcome":"selected","optionId":"yes"', text)
        self.assertEqual(self.asked('session/request_permission'), [])

    def test_deny_all_refuses_by_kind_and_never_by_position(self):
        self.open('mode = deny-all')
        self.assertIn('"optionId":"no"', self.said('permission May I?')[0])
        self.assertIn('"outcome":"cancelled"', self.said(ONLY_ALLOW)[0])
        self.assert_refused(self.said(f'read {self.work}/notes.txt')[0], 'fs/read_text_file')
        self.assert_refused(self.said(f'write {self.work}/b.txt x')[0], 'fs/write_text_file')
        self.assert_refused(self.said('terminal echo hi')[0], 'terminal/create')
        self.assertEqual(self.client.host.seen, [])
        self.assertFalse((self.work / 'b.txt').exists())

    def test_ask_all_asks_before_a_write_and_a_terminal(self):
        self.open('mode = ask-all')
        self.client.host.permission = 'reject_once'
        self.assert_refused(self.said(f'write {self.work}/b.txt x')[0], 'fs/write_text_file')
        self.assert_refused(self.said('terminal echo hi')[0], 'terminal/create')
        self.client.host.permission = 'allow_once'
        self.assertIn('-> {}', self.said(f'write {self.work}/b.txt x')[0])
        self.assertIn('-> {"content"', self.said(f'read {self.work}/notes.txt')[0])
        questions = self.asked('session/request_permission')
        self.assertEqual(len(questions), 3)
        for question in questions:
            self.assertEqual(question['sessionId'], self.session)
            self.assertTrue(question['toolCall']['title'])
            self.assertTrue({option['kind'] for option in question['options']} >= {
                'allow_once', 'reject_once'})

    def test_approve_reads_asks_for_the_rest(self):
        self.open('mode = approve-reads')
        self.said(f'read {self.work}/notes.txt')
        self.assertEqual(self.asked('session/request_permission'), [])
        self.client.host.permission = 'reject_once'
        self.assert_refused(self.said(f'write {self.work}/b.txt x')[0], 'fs/write_text_file')

    def test_a_deny_rule_wins_over_everything(self):
        self.open('mode = approve-all', 'allow = write', 'deny = write **/.git/**')
        text = self.said(f'write {self.work}/.git/hooks/pre-commit x')[0]
        self.assert_refused(text, 'fs/write_text_file')
        self.assertIn('**/.git/**', text)
        self.assertIn('-> {}', self.said(f'write {self.work}/b.txt x')[0])
        self.assertEqual(len(self.asked('fs/write_text_file')), 1)

    def test_neither_dots_nor_links_get_round_a_rule(self):
        self.open('mode = approve-all', 'deny = write **/secret/**')
        (self.work / 'secret').mkdir()
        (self.work / 'link').symlink_to('secret')
        for path in ('secret/a', 'x/../secret/a', './secret/a', 'secret/./a', 'secret//a',
                     'link/a', 'link/../link/a'):
            self.assert_refused(self.said(f'write {self.work}/{path} x')[0], 'fs/write_text_file')

    def test_rules_for_commands(self):
        self.open('mode = deny-all', 'allow = terminal echo', 'deny = terminal rm')
        self.assertIn('"terminalId"', self.said('terminal echo hi')[0])
        for command in ('rm -rf x', 'echo hi; rm -rf x', 'echo $(rm x)', 'cat notes.txt'):
            self.assert_refused(self.said(f'terminal {command}')[0], 'terminal/create')

    def permission(self, session, **call):
        """The agent asks for a permission; returns its report about the answer."""
        params = {'sessionId': session, 'toolCall': call, 'options': [
            {'optionId': 'yes', 'name': 'Y', 'kind': 'allow_once'},
            {'optionId': 'no', 'name': 'N', 'kind': 'reject_once'}]}
        return self.said('request session/request_permission ' + json.dumps(params))[0]

    def test_without_a_policy_the_user_is_asked_whatever_a_tool_says(self):
        self.client = self.broker()
        self.client.initialize()
        self.session = self.client.new_session(self.work)
        calls = ({'rawInput': {'command': ['a', 1]}}, {'rawInput': {'command': 'a\0b'}},
                 {'rawInput': {'command': ['w'] * 5000}}, {'locations': [{'path': None}]},
                 {'rawInput': {'rows': [[row, {}] for row in range(6000)]}})
        for call in calls:
            self.assertIn('"optionId":"yes"', self.permission(self.session, **call))
        asked = self.asked('session/request_permission')
        self.assertEqual([params['toolCall'] for params in asked], list(calls))
        self.client.host.replies['fs/read_text_file'] = {'content': ''}
        self.said('request session/request_permission {"options":[]}',
                  'request fs/read_text_file {}')
        self.assertEqual(len(self.asked('session/request_permission')), len(calls) + 1)
        self.assertEqual(self.asked('fs/read_text_file'), [{}])

    def test_approve_reads_says_yes_inside_the_sessions_directories_alone(self):
        (self.work / 'sub').mkdir()
        (self.work / 'notes.txt').write_text('eins')
        (self.work / 'link').symlink_to(self.dir)
        (self.work / 'to-notes').symlink_to('notes.txt')
        (self.dir / 'secret').write_text('geheim')
        for toolhost in ('editor', 'broker'):
            self.client = self.broker(options=self.config(
                policy=('mode = approve-reads',), toolhost=toolhost))
            self.client.initialize()
            session = self.session = self.client.new_session(self.work)
            self.client.host.permission = 'reject_once'

            def answers(expected, *paths, kind='read', of=session, **call):
                locations = [{'path': str(path)} for path in paths]
                said = self.permission(of, kind=kind, locations=locations, **call)
                self.assertIn(f'"optionId":"{expected}"', said, (toolhost, paths))

            answers('yes', self.work / 'notes.txt')
            answers('yes', self.work / 'to-notes', self.work / 'sub', kind='search')
            answers('no', self.work / 'link' / 'secret')
            answers('no', self.work / 'notes.txt', self.work / 'link' / 'secret')
            answers('no', '/etc/shadow')
            answers('no', f'{self.work}/../secret')
            answers('no', rawInput={'file_path': '/etc/shadow'})
            answers('no', rawInput={'command': 'cat /etc/shadow'})
            answers('no', '/etc/shadow', of='nobody')
            answers('no', self.work / 'notes.txt', of='nobody')
            answers('no', self.work / 'notes.txt', kind='edit')
            self.client.finish()

    def test_a_cancel_answers_the_question_the_broker_asked(self):
        client = self.open('mode = ask-all')
        client.host.replies['session/request_permission'] = NEVER
        prompt = client.start_prompt(self.session, f'write {self.work}/b.txt x')
        asked = client.wait_for(lambda m: m.method == 'session/request_permission')
        client.notify('session/cancel', {'sessionId': self.session})
        self.assertEqual(client.answer(prompt)['stopReason'], 'cancelled')
        client.send_line(b'{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected",'
                         b'"optionId":"yes"}}}' % asked.id)
        client.host.replies.clear()
        self.said('say after')
        self.assertFalse((self.work / 'b.txt').exists())
        answers = [line for line in self.journal('<') if b'"method"' not in line]
        self.assertEqual(len(answers), 1, answers)


if __name__ == '__main__':
    main()
