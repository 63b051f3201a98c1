#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The broker's own questions: how they look, how they end, and which answers it remembers."""

import json

from acp import RpcError
from processes import PATIENCE
from case import main
from host import NEVER
from policy_case import PolicyCase, no_window

ASKS = 'acp-broker asks because of `mode = ask-all`: '


class Asking(PolicyCase):
    def test_a_write_is_shown_as_a_diff_with_four_options(self):
        client, session = self.open()
        path = str(self.work / 'a.txt')
        client.prompt(session, f'write {path} eins\\nzwei')
        question, = self.questions(client)
        call = question['toolCall']
        self.assertEqual(question['sessionId'], session)
        self.assertEqual(call['title'], ASKS + f'Write `{path}`')
        self.assertEqual(call['kind'], 'edit')
        self.assertEqual(call['status'], 'pending')
        self.assertEqual(call['locations'], [{'path': path}])
        self.assertEqual(call['content'],
                         [{'type': 'diff', 'path': path, 'oldText': None,
                           'newText': 'eins\nzwei'}])
        self.assertEqual([option['kind'] for option in question['options']],
                         ['allow_once', 'allow_always', 'reject_once', 'reject_always'])
        self.assertEqual((self.work / 'a.txt').read_text(), 'eins\nzwei')
        done = [u for u in self.updates(client, 'tool_call_update')
                if u['toolCallId'] == call['toolCallId']]
        self.assertEqual([(u['status'], u['title']) for u in done],
                         [('completed', call['title'])])

    def test_an_agent_cannot_rewrite_an_open_question(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = NEVER
        first = client.start_prompt(session, f'write {self.work}/a.txt x')
        asked = client.wait_for(lambda m: m.method == 'session/request_permission')
        call = asked.params['toolCall']
        self.assertRegex(call['toolCallId'], '^acp-broker-[0-9a-f]{32}$')
        other = client.new_session(self.work)  # while the question is open
        lines = []
        for name in (call['toolCallId'], 'acp-broker-0', r'\u0061cp-broker-0'):
            lines += [
                'raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s",'
                '"update":{"sessionUpdate":"%s","toolCallId":"%s","title":"harmless"}}}'
                % (session, kind, name) for kind in ('tool_call', 'tool_call_update')]
            lines.append('request session/request_permission {"sessionId":"%s","toolCall":{'
                         '"toolCallId":"%s","title":"harmless"},"options":[]}' % (session, name))
        client.prompt(other, *lines, 'say done')
        self.assertEqual(sum('INVALID_PARAMS' in text for text in client.texts(other)), 3)
        self.assertFalse([m for m in client.received if b'harmless' in m.line
                          and m.method in ('session/update', 'session/request_permission')
                          and b'agent_message_chunk' not in m.line])
        client.wait_log('session/update | dropped')
        client.notify('session/cancel', {'sessionId': session})
        client.answer(first)
        ended, = [u for u in self.updates(client, 'tool_call_update')
                  if u['toolCallId'] == call['toolCallId']]
        self.assertEqual((ended['status'], ended['title']), ('failed', call['title']))

    def test_a_rule_of_the_users_is_named_as_such(self):
        client, session = self.open(policy=('mode = approve-all', 'ask = write **/a.txt'))
        client.prompt(session, f'write {self.work}/a.txt x')
        question, = self.questions(client)
        for fact in ('acp-broker', 'your rule', '`ask = write **/a.txt`',
                     f'Write `{self.work}/a.txt`'):
            self.assertIn(fact, question['toolCall']['title'])

    def test_nothing_of_a_command_is_hidden(self):
        client, session = self.open()
        self.chooses(client, 'reject_once')
        command = 'git status <!--\n```\n--> \u202e\x1b[2K; rm -rf ~'
        params = {'sessionId': session, 'command': command}
        client.prompt(session, f'request terminal/create {json.dumps(params)}')
        call = self.questions(client)[0]['toolCall']
        self.assertEqual(call['title'], ASKS + r'Run ````git status <!--\n```\n--> '
                         '<U+202E><U+001B>[2K; rm -rf ~````')
        self.assertEqual(call['content'][0]['content']['text'].split('\n'), [
            '````', 'git status <!--', '```', '--> <U+202E><U+001B>[2K; rm -rf ~', '````'])

    def test_a_write_is_shown_against_what_the_file_holds(self):
        path = self.work / 'a.txt'
        path.write_text('eins\n')
        for toolhost in ('broker', 'editor'):
            client, session = self.open(toolhost=toolhost)
            self.chooses(client, 'reject_once')
            client.prompt(session, f'write {path} zwei')
            diff, = self.questions(client)[0]['toolCall']['content']
            self.assertEqual((diff['oldText'], diff['newText']), ('eins\n', 'zwei'))
        self.assertEqual(path.read_text(), 'eins\n')

    def test_a_command_is_shown_whole(self):
        client, session = self.open()
        client.prompt(session, 'terminal echo 1; echo 2')
        call = self.questions(client)[0]['toolCall']
        self.assertEqual(call['title'], ASKS + 'Run `echo 1; echo 2`')
        self.assertEqual(call['kind'], 'execute')
        self.assertIn('echo 1; echo 2', call['content'][0]['content']['text'])
        self.assertNotIn('locations', call)

    def test_a_command_is_shown_with_the_variables_added_for_it(self):
        client, session = self.open(broker=(f'audit = {self.dir}/audit',))
        self.chooses(client, 'reject_once')
        env = {'LD_PRELOAD': '/tmp/x.so', 'GIT_SSH_COMMAND': 'sh -c "a\nb"', 'MY_TOKEN': 'hush'}
        params = {'sessionId': session, 'command': 'git', 'args': ['status'],
                  'env': [{'name': name, 'value': value} for name, value in env.items()]}
        client.prompt(session, f'request terminal/create {json.dumps(params)}')
        content, = self.questions(client)[0]['toolCall']['content']
        self.assertEqual(content['content']['text'].split('\n'), [
            '```', 'git status', '```', '', 'with', '```', 'LD_PRELOAD=/tmp/x.so',
            r'"GIT_SSH_COMMAND=sh -c \"a\nb\""', 'MY_TOKEN=***', '```'])
        row, = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual((row['subject'], row['variables']), ('git status', list(env)))

    def test_a_large_write_is_told_and_not_shown(self):
        client, session = self.open()
        self.chooses(client, 'reject_once')
        client.prompt(session, 'big-request 400000')
        content, = self.questions(client)[0]['toolCall']['content']
        self.assertEqual(content['type'], 'content')
        self.assertIn('400002 bytes', content['content']['text'])

    def refused(self, client, session, words):
        path = self.work / 'no.txt'
        client.prompt(session, f'write {path} x')
        text = client.wait_text('fs/write_text_file -> error')
        self.assertNames(text, words)
        self.assertFalse(path.exists())
        return text

    def test_each_way_not_to_say_yes_is_a_refusal_that_says_which(self):
        replies = (
            ({'outcome': {'outcome': 'cancelled'}}, 'the question was cancelled'),
            ({'outcome': {'outcome': 'selected', 'optionId': 'reject'}}, 'the user said no'),
            ({'outcome': {'outcome': 'selected', 'optionId': 'of-course'}},
             'no option | offered'),
            ({'outcome': {'outcome': 'selected'}}, 'no outcome | ACP'),
            ({}, 'no outcome | ACP'),
            (None, 'no outcome | ACP'),
        )
        for reply, words in replies:
            with self.subTest(words):
                client, session = self.open()
                client.host.replies['session/request_permission'] = reply
                text = self.refused(client, session, words)
                self.assertIn('PERMISSION_DENIED', text)
                client.finish()

    def test_an_editor_that_cannot_ask_is_quoted(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = no_window
        self.refused(client, session, 'no window is open')

    def test_nobody_answers_within_the_time(self):
        client, session = self.open(permission_timeout='200ms')
        client.host.replies['session/request_permission'] = NEVER
        text = self.refused(client, session, 'permission-timeout')
        self.assertIn('TIMEOUT_EXCEEDED', text)
        question = client.wait_for(lambda m: m.method == 'session/request_permission')
        withdrawn = client.wait_for(lambda m: m.method == '$/cancel_request')
        self.assertEqual(withdrawn.params['requestId'], int(question.id))
        # A late answer has no effect, and the session goes on.
        client.send({'jsonrpc': '2.0', 'id': int(question.id), 'result': {
            'outcome': {'outcome': 'selected', 'optionId': 'allow'}}})
        client.wait_log('an answer | never made')
        client.prompt(session, 'say still here')
        self.assertIn('still here', client.texts())
        self.assertFalse((self.work / 'no.txt').exists())

    def test_cancel_refuses_what_is_held_and_withdraws_the_question(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = NEVER
        prompt = client.start_prompt(session, 'deaf', f'write {self.work}/no.txt x', 'say on')
        question = client.wait_for(lambda m: m.method == 'session/request_permission')
        client.notify('session/cancel', {'sessionId': session})
        client.answer(prompt)
        withdrawn = client.wait_for(lambda m: m.method == '$/cancel_request')
        self.assertEqual(withdrawn.params['requestId'], int(question.id))
        text = client.wait_text('fs/write_text_file -> error')
        self.assertIn('cancelled before anyone answered', text)
        client.send({'jsonrpc': '2.0', 'id': int(question.id), 'result': {
            'outcome': {'outcome': 'selected', 'optionId': 'allow'}}})
        client.prompt(session, 'say still here')
        self.assertFalse((self.work / 'no.txt').exists())

    def test_cancel_leaves_another_sessions_question_alone(self):
        client, one = self.open()
        two = client.new_session(self.work)
        client.host.replies['session/request_permission'] = NEVER
        prompt = client.start_prompt(two, f'write {self.work}/yes.txt x')
        question = client.wait_for(lambda m: m.method == 'session/request_permission')
        client.notify('session/cancel', {'sessionId': one})
        client.prompt(one, 'say one is quiet')
        client.send({'jsonrpc': '2.0', 'id': int(question.id), 'result': {
            'outcome': {'outcome': 'selected', 'optionId': 'allow'}}})
        client.answer(prompt)
        self.assertEqual((self.work / 'yes.txt').read_text(), 'x')

    def test_closing_a_session_answers_what_is_held(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = NEVER
        client.start_prompt(session, 'deaf', f'write {self.work}/no.txt x')
        client.wait_for(lambda m: m.method == 'session/request_permission')
        client.call('session/close', {'sessionId': session})
        client.wait_for(lambda m: m.method == '$/cancel_request')
        self.assertFalse((self.work / 'no.txt').exists())

    def test_the_end_refuses_what_is_held(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = NEVER
        client.start_prompt(session, 'deaf', f'write {self.work}/no.txt x')
        client.wait_for(lambda m: m.method == 'session/request_permission')
        client.close_stdin()
        client.wait(PATIENCE)
        answers = [json.loads(line) for line in self.journal('<') if b'EDITOR_GONE' in line]
        self.assertEqual(len(answers), 1)
        self.assertFalse((self.work / 'no.txt').exists())

    def test_an_agent_takes_its_call_back(self):
        client, session = self.open()
        client.host.replies['session/request_permission'] = NEVER
        request = ('{"jsonrpc":"2.0","id":"w","method":"terminal/create","params":'
                   f'{{"sessionId":"{session}","command":"true"}}}}')
        cancel = '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"w"}}'
        client.start_prompt(session, f'raw {request}', f'raw {cancel}', 'hang')
        question = client.wait_for(lambda m: m.method == 'session/request_permission')
        taken = client.wait_for(lambda m: m.method == '$/cancel_request')
        self.assertEqual(taken.params['requestId'], int(question.id))


class Remembering(PolicyCase):
    def test_always_holds_for_the_same_path_of_the_same_session(self):
        client, session = self.open()
        other = client.new_session(self.work)
        path = self.work / 'a.txt'
        self.chooses(client, 'allow_always')
        client.prompt(session, f'write {path} one')
        client.prompt(session, f'write {path} two')
        self.assertEqual(len(self.questions(client)), 1)
        self.assertEqual(path.read_text(), 'two')
        client.prompt(session, f'write {path}.bak one')
        self.assertEqual(len(self.questions(client)), 2)
        client.prompt(other, f'write {path} three')
        self.assertEqual(len(self.questions(client)), 3)

    def test_always_holds_for_the_same_shell_line(self):
        client, session = self.open()
        self.chooses(client, 'allow_always')
        client.prompt(session, 'terminal echo a', 'terminal echo a', 'terminal echo a b')
        self.assertEqual(len(self.questions(client)), 2)

    def test_never_again_is_remembered_too(self):
        client, session = self.open()
        self.chooses(client, 'reject_always')
        path = self.work / 'a.txt'
        client.prompt(session, f'write {path} one')
        client.prompt(session, f'write {path} two')
        self.assertEqual(len(self.questions(client)), 1)
        client.wait_text('fs/write_text_file -> error')
        self.assertIn('remembered: always reject', client.texts()[-1])
        self.assertFalse(path.exists())

    def test_a_new_session_that_is_called_the_same_remembers_nothing(self):
        client, session = self.open()
        path = self.work / 'a.txt'
        self.chooses(client, 'allow_always')
        client.prompt(session, f'write {path} one')
        with self.assertRaises(RpcError):
            client.prompt(session, 'exit 3')
        self.assertEqual(client.new_session(self.work), session)
        said = self.explain(client, session, 'write', path=str(path))
        self.assertEqual((said['decision'], said['remembered']), ('pending', []))
        client.prompt(session, f'write {path} two')
        self.assertEqual(len(self.questions(client)), 2)

    def test_explain_says_which_line_decides_and_what_is_remembered(self):
        client, session = self.open(policy=(
            'mode = ask-all', 'deny = write **/.git/**', 'allow = terminal git status'))
        path = str(self.work / 'a.txt')
        before = self.explain(client, session, 'write', path=path)
        self.assertEqual(before, {'operation': 'fs/write_text_file', 'decision': 'pending',
                                  'rule': 'mode = ask-all', 'source': 'mode', 'remembered': []})
        self.chooses(client, 'allow_always')
        client.prompt(session, f'write {path} x', 'terminal echo a')
        after = self.explain(client, session, 'fs/write_text_file', path=path)
        self.assertEqual((after['decision'], after['source']), ('allow-always', 'remembered'))
        self.assertEqual(after['remembered'], [
            {'operation': 'fs/write_text_file', 'decision': 'allow-always', 'path': path},
            {'operation': 'terminal/create', 'decision': 'allow-always', 'command': 'echo a'}])
        denied = self.explain(client, session, 'write', path=f'{self.work}/.git/config')
        self.assertEqual((denied['decision'], denied['rule'], denied['source']),
                         ('reject-once', 'deny = write **/.git/**', 'rule'))
        allowed = self.explain(client, session, 'terminal', command='git', args=['status', '-s'])
        self.assertEqual((allowed['decision'], allowed['rule']),
                         ('allow-once', 'allow = terminal git status'))
        grant = self.explain(client, session, 'grant', toolKind='edit', path=path)
        self.assertEqual((grant['operation'], grant['decision']),
                         ('session/request_permission', 'pending'))
        mode = self.explain(client, session, 'session/set_mode')
        self.assertEqual((mode['decision'], mode['rule']), ('reject-once', 'mode = ask-all'))

    def test_a_command_with_variables_is_another_one_than_the_rule_allows(self):
        client, session = self.open(toolhost='broker', policy=(
            'mode = ask-all', 'allow = terminal git status', 'allow-variable = MINE'))
        self.chooses(client, 'reject_once')
        for name, count in (('MINE', 0), ('NO_COLOR', 0), ('GIT_CONFIG_COUNT', 1), ('PATH', 2)):
            params = {'sessionId': session, 'command': 'git', 'args': ['status'],
                      'env': [{'name': name, 'value': '1'}]}
            said = self.explain(client, session, 'terminal',
                                **{key: params[key] for key in ('command', 'args', 'env')})
            client.prompt(session, 'request terminal/create ' + json.dumps(params))
            self.assertEqual(len(self.questions(client)), count, name)
            self.assertEqual(said['decision'] == 'allow-once', name in ('MINE', 'NO_COLOR'), said)

    def test_explain_refuses_what_it_cannot_answer(self):
        client, session = self.open()
        for params in ({'sessionId': 'none', 'operation': 'read', 'path': '/a'},
                       {'sessionId': session, 'operation': 'fly'},
                       {'sessionId': session}, {'sessionId': session, 'operation': 'read'},
                       {'sessionId': session, 'operation': 'read', 'path': 7},
                       {'sessionId': session, 'operation': 'terminal'}):
            with self.subTest(params), self.assertRaises(RpcError) as caught:
                client.call('_broker/policy/explain', params)
            self.assertEqual(caught.exception.code, -32602)
        with self.assertRaises(RpcError) as caught:
            client.call('_broker/no/such', {})
        self.assertEqual(caught.exception.code, -32601)

    def test_the_method_is_announced(self):
        client = self.broker()
        meta = client.initialize()['_meta']['broker']
        self.assertIn('_broker/policy/explain', meta['capabilities']['methods'])


class Links(PolicyCase):
    """Rules about paths apply to the file to which a path really leads."""

    def prepare(self):
        (self.work / 'guarded').mkdir()
        (self.work / 'src').mkdir()
        (self.work / 'by-name').symlink_to('guarded')
        (self.work / 'to-new').symlink_to('guarded/new.txt')
        (self.work / 'guarded' / 'a.txt').write_text('kept')
        (self.work / 'to-a').symlink_to(self.work / 'guarded' / 'a.txt')

    def test_a_link_does_not_get_round_a_rule(self):
        for toolhost in ('editor', 'broker'):
            with self.subTest(toolhost):
                client, session = self.open(policy=('mode = pass', 'deny = write guarded/**'),
                                            toolhost=toolhost)
                if toolhost == 'editor':
                    self.prepare()
                for name in ('by-name/a.txt', 'by-name/b.txt', 'to-a', 'to-new', 'guarded/a.txt',
                             'src/../by-name/a.txt'):
                    before = len(client.texts())
                    client.prompt(session, f'write {self.work}/{name} gone')
                    text = client.texts()[before]
                    self.assertIn('fs/write_text_file -> error', text, name)
                    self.assertIn('deny = write guarded/**', text)
                self.assertEqual((self.work / 'guarded' / 'a.txt').read_text(), 'kept')
                self.assertEqual(sorted(p.name for p in (self.work / 'guarded').iterdir()),
                                 ['a.txt'])
                client.prompt(session, f'write {self.work}/free.txt fine')
                self.assertEqual((self.work / 'free.txt').read_text(), 'fine')
                client.finish()

    def test_a_root_that_is_a_link_keeps_its_name(self):
        link = self.dir / 'link'
        link.symlink_to(self.work)
        options = self.config(policy=('mode = deny-all', 'allow = write src/**'))
        client = self.broker(options=options)
        client.initialize()
        session = client.new_session(link)
        (self.work / 'src').mkdir()
        client.prompt(session, f'write {link}/src/a.txt x')
        self.assertEqual((self.work / 'src' / 'a.txt').read_text(), 'x')

    def test_writes_of_one_file_keep_their_order(self):
        client, session = self.open(policy=('mode = pass', 'deny = write guarded/**'))
        path = self.work / 'a.txt'
        lines = []
        for number in range(50):
            lines.append('raw ' + json.dumps({
                'jsonrpc': '2.0', 'id': f'w{number}', 'method': 'fs/write_text_file',
                'params': {'sessionId': session, 'path': str(path), 'content': str(number)}}))
        client.prompt(session, *lines, f'read {path}')
        order = [params['content'] for method, params in client.host.seen
                 if method == 'fs/write_text_file']
        self.assertEqual(order, [str(number) for number in range(50)])

    def test_what_is_shown_and_remembered_is_the_file_that_is_meant(self):
        client, session = self.open(policy=('mode = ask-all', 'deny = write guarded/**'))
        (self.work / 'b.txt').write_text('')
        (self.work / 'link').symlink_to('b.txt')
        self.chooses(client, 'allow_always')
        client.prompt(session, f'write {self.work}/link one', f'write {self.work}/b.txt two')
        question, = self.questions(client)
        self.assertEqual(question['toolCall']['title'], ASKS + f'Write `{self.work}/b.txt`')
        (self.work / 'link').unlink()
        (self.work / 'link').symlink_to('other.txt')
        client.prompt(session, f'write {self.work}/link three')
        self.assertEqual(len(self.questions(client)), 2)

    def test_explain_looks_through_links_as_the_decision_does(self):
        for toolhost in ('editor', 'broker'):
            with self.subTest(toolhost):
                client, session = self.open(policy=('mode = pass', 'deny = write guarded/**'),
                                            toolhost=toolhost)
                if toolhost == 'editor':
                    self.prepare()
                for name in ('by-name/a.txt', 'by-name/b.txt', 'to-a', 'to-new', 'guarded/a.txt',
                             'src/../by-name/a.txt', 'src/free.txt', 'free.txt'):
                    path = f'{self.work}/{name}'
                    said = self.explain(client, session, 'write', path=path)
                    before = len(client.texts())
                    client.prompt(session, f'write {path} kept')
                    refused = 'PERMISSION_DENIED' in client.texts()[before]
                    self.assertEqual(said['decision'], 'reject-once' if refused else 'allow-once')
                    self.assertEqual(refused, 'free' not in name, name)
                    if refused:
                        self.assertIn(said['rule'], client.texts()[before])
                client.finish()

    def test_explain_refuses_a_path_out_of_the_roots_as_the_call_is_refused(self):
        client, session = self.open(policy=('mode = pass', 'deny = write guarded/**'),
                                    toolhost='broker')
        with self.assertRaises(RpcError) as caught:
            self.explain(client, session, 'write', path='/etc/passwd')
        self.assertEqual(caught.exception.data['code'], 'SECURITY_VIOLATION')
        client.prompt(session, 'write /etc/passwd x')
        self.assertIn('SECURITY_VIOLATION', client.wait_text('fs/write_text_file -> error'))

    def test_what_a_user_allowed_is_what_is_written(self):
        client, session = self.open(policy=('mode = ask-all', 'deny = write guarded/**'),
                                    toolhost='broker')
        self.prepare()
        (self.work / 'link').symlink_to('src')

        def swap(params):
            (self.work / 'src').rename(self.work / 'src-before')
            (self.work / 'src').symlink_to('guarded')
            return {'outcome': {'outcome': 'selected', 'optionId': 'allow'}}

        client.host.replies['session/request_permission'] = swap
        client.prompt(session, f'write {self.work}/link/a.txt gone')
        text = client.wait_text('fs/write_text_file -> error')
        self.assertIn('SECURITY_VIOLATION', text)
        self.assertIn(f'{self.work}/src/a.txt', text)
        self.assertEqual((self.work / 'guarded' / 'a.txt').read_text(), 'kept')
        self.assertEqual(list((self.work / 'src-before').iterdir()), [])


class OneQuestion(PolicyCase):
    """
    The broker does not ask about an action that the user has just allowed in the agent's own
    question.
    """

    def begin(self, *policy):
        self.client, self.session = self.open(policy=policy or ('mode = ask-all',))
        self.other = f'write {self.work}/other x'

    def own(self, kind='edit', session=None, **call):
        call = dict({'title': 't'}, **call, toolCallId='c')
        if kind:
            call['kind'] = kind
        params = {'sessionId': session or self.session, 'toolCall': call, 'options': [
            {'optionId': 'yes', 'name': 'Y', 'kind': 'allow_once'},
            {'optionId': 'no', 'name': 'N', 'kind': 'reject_once'}]}
        return 'request session/request_permission ' + json.dumps(params)

    def asked(self, *lines):
        """The number of the broker's own questions that the lines of one turn cause."""
        before = len(self.questions(self.client))
        self.client.prompt(self.session, *lines)
        return sum(question['toolCall']['toolCallId'] != 'c'
                   for question in self.questions(self.client)[before:])

    def edit(self, name, text='x', **more):
        path = str(self.work / name)
        return self.own(locations=[{'path': path}], content=[
            {'type': 'diff', 'path': path, 'newText': text}], **more)

    def execute(self, command, title=None, content=(), **more):
        """The title has the command, unless the test gives another title."""
        text = command if isinstance(command, str) else ' '.join(command)
        return self.own(kind='execute', title=f'`{text}`' if title is None else title,
                        content=list(content), rawInput=dict(more, command=command))

    def text(self, text):
        return {'type': 'content', 'content': {'type': 'text', 'text': text}}

    def create(self, command, **more):
        params = dict(more, sessionId=self.session, command=command)
        return 'request terminal/create ' + json.dumps(params)

    def test_a_write_that_was_just_allowed_is_not_asked_about_again(self):
        for mode in ('ask-all', 'approve-reads'):
            self.begin(f'mode = {mode}')
            write = f'write {self.work}/{mode} x'
            self.assertEqual(self.asked(self.edit(mode), write), 0)
            self.assertEqual((self.work / mode).read_text(), 'x')
            self.assertEqual(self.asked(self.edit(mode), write, write), 1)  # once
            self.assertEqual(self.asked(self.edit(mode)), 0)
            self.assertEqual(self.asked(write), 1)  # within the turn
            self.assertEqual(self.asked(self.edit(mode), self.other), 1)
            diff = [{'type': 'diff', 'path': str(self.work / mode), 'newText': 'x'}]
            self.assertEqual(self.asked(self.own(kind=None, content=diff), write), 0)
            self.assertEqual(self.asked(self.own(kind='read', content=diff), write), 1)
            self.client.finish()

    def test_a_write_has_to_be_what_was_shown(self):
        self.begin()
        path = str(self.work / 'a')
        away = self.dir / 'away'
        write = f'write {path} x'
        diff = {'type': 'diff', 'path': path, 'newText': 'x'}
        place = [{'path': path}]
        for asked, done in (
                (self.own(locations=place), write),
                (self.edit('a', text='y'), write),
                (self.edit('a', text='x '), write),
                (self.edit('b'), write),
                (self.own(locations=place, content=[dict(diff, path=str(self.work / 'b'))]), write),
                (self.own(locations=place, content=[dict(diff, path=f'{self.work}/./a')]), write),
                (self.own(content=[dict(diff, type='content')]), write),
                (self.own(content=[{'type': 'content', 'content': diff}]), write),
                (self.own(content=[dict(diff, Path='/b')]), write),
                (self.own(content=[dict(diff, newtext='y')]), write),
                (self.own(content=[dict(diff, path=str(away))]), f'write {away} x')):
            self.assertEqual(self.asked(asked, done), 1, asked)
        long = 'x' * (256 * 1024 + 1)
        self.assertEqual(self.asked(self.edit('a', text=long), f'write {path} {long}'), 1)
        self.assertEqual(self.asked(self.edit('a'), self.edit('b'), f'write {self.work}/b x',
                                    write), 0)

    def test_the_file_has_to_hold_what_was_shown(self):
        """
        A diff hides most of a new text if its old text claims that the file already has that part.
        """
        self.client, self.session = self.open(broker=(f'audit = {self.dir}/audit',))
        path = self.work / 'a'
        write = f'write {path} evil\\nx'

        def diff(old):
            return self.own(content=[{'type': 'diff', 'path': str(path), 'newText': 'evil\nx',
                                      'oldText': old}])
        for held, old, count in (
                ('evil\n', 'evil\n', 0), ('', 'evil\n', 1), ('good\n', 'evil\n', 1),
                ('good\n', None, 0), (None, '', 0), (None, 'evil\n', 1), ('evil\n', 7, 1)):
            path.unlink(missing_ok=True)
            if held is not None:
                path.write_text(held)
            self.assertEqual(self.asked(diff(old), write), count, (held, old))
            self.assertEqual(path.read_text(), 'evil\nx')
        rows = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual([(row['operation'], row['decision'], row['by'])
                          for row in rows if row['operation'] != 'session/request_permission'],
                         [('fs/write_text_file', 'allow-once', 'person')] * 7)

    def test_a_command_has_to_be_what_was_shown(self):
        self.begin()
        line = 'echo a; true'
        run = self.create(line)
        for title, text in (('t', line), ('t', f'`{line}`'), ('t', f'```\n{line}\n```'),
                            ('t', f'```sh\n{line}\n```'), (line, 'a word'), (f'`{line}`', 'a')):
            asked = self.execute(line, title=title, content=[self.text(text)])
            self.assertEqual(self.asked(asked, run), 0, asked)
        for title, texts in (
                ('Run `ls`', ()), ('Run `ls`', ('`ls`',)), (f'Not `{line}`', ()),
                (f'{line} ', ()), ('', ()), ('Run `ls`', ('a', line)),
                ('Run `ls`', (f'```mermaid\n{line}\n```',)), ('Run `ls`', (f'<!-- {line} -->',)),
                ('Run `ls`', (f'```\n{line}\n```\nno',))):
            asked = self.execute(line, title=title, content=[self.text(text) for text in texts])
            self.assertEqual(self.asked(asked, run), 1, asked)
        for hidden in ('echo a <!-- ; true -->', 'echo \u202ea', 'echo a\ntrue'):
            self.assertEqual(self.asked(self.execute(hidden, title=hidden), self.create(hidden)), 1)
        lines = 'echo a\n\ttrue <b>'
        asked = self.execute(lines, title='t', content=[self.text(f'```\n{lines}\n```')])
        self.assertEqual(self.asked(asked, self.create(lines)), 0)
        long = 'echo ' + 'a' * 512
        self.assertEqual(self.asked(self.execute(long), self.create(long)), 1)

    def test_only_a_yes_of_the_users_counts(self):
        self.begin()
        write = f'write {self.work}/a x'
        self.chooses(self.client, 'reject_once')
        self.assertEqual(self.asked(self.edit('a'), write), 1)
        self.chooses(self.client, 'allow_once')
        other = self.client.new_session(self.work)
        self.assertEqual(self.asked(self.edit('a', session=other), write), 1)

    def test_a_link_is_not_the_file_that_it_leads_to(self):
        self.begin()
        for name in ('a', 'b'):
            (self.work / name).write_text('')
        (self.work / 'link').symlink_to('a')
        for path in ('a', 'link'):
            self.assertEqual(self.asked(self.edit('link'), f'write {self.work}/{path} x'), 1)
        self.assertEqual(self.asked(self.edit('a'), f'write {self.work}/link x'), 0)

        def turn_it(params):
            (self.work / 'link').unlink()
            (self.work / 'link').symlink_to('b')
            return {'outcome': {'outcome': 'selected', 'optionId': 'yes'}}
        self.client.host.replies['session/request_permission'] = turn_it
        self.client.prompt(self.session, self.edit('a'), f'write {self.work}/link x')
        titles = [question['toolCall']['title'] for question in self.questions(self.client)]
        self.assertEqual(titles[-1], ASKS + f'Write `{self.work}/b`')

    def test_a_command_has_to_be_exactly_the_same(self):
        self.begin()
        line = self.execute('echo a; true')
        words = self.execute(['echo', 'a'])
        self.assertEqual(self.asked(line, self.create('echo a; true')), 0)
        self.assertEqual(self.asked(line, self.create('echo a; true', cwd=str(self.work))), 0)
        self.assertEqual(self.asked(words, self.create('echo', args=['a'])), 0)
        here = self.execute('true', cwd=str(self.work))
        there = self.execute('true', cwd=str(self.dir))
        self.assertEqual(self.asked(here, self.create('true')), 0)
        self.assertEqual(self.asked(self.execute('true', env=[], cwd=None), self.create('true')), 0)
        env = [{'name': 'A', 'value': '1'}]
        for allowed, request in (
                (line, self.create('echo a; true ')),
                (line, self.create('echo', args=['a;', 'true'])),
                (line, self.create('echo a; true', env=env)),
                (line, self.create('echo a; true', cwd=str(self.dir))),
                (words, self.create('echo a')),
                (words, self.create('echo', args=['a', ''])),
                (here, self.create('true', cwd=str(self.dir))),
                (there, self.create('true')),
                (there, self.create('true', cwd=str(self.dir))),  # the question did not show where
                (self.execute('true', env=env), self.create('true')),
                (self.execute('true', env=env), self.create('true', env=env)),
                (self.own(kind='edit', rawInput={'command': 'true'}), self.create('true'))):
            self.assertEqual(self.asked(allowed, request), 1, (allowed, request))

    def test_a_rule_of_the_users_asks_all_the_same(self):
        self.begin('mode = ask-all', 'ask = write **/a')
        self.assertEqual(self.asked(self.edit('a'), f'write {self.work}/a x'), 1)
        self.assertIn('your rule', self.questions(self.client)[-1]['toolCall']['title'])
        self.assertEqual(self.asked(self.edit('b'), f'write {self.work}/b x'), 0)

    def test_the_audit_log_has_who_allowed_it(self):
        self.client, self.session = self.open(broker=(f'audit = {self.dir}/audit',))
        self.assertEqual(self.asked(self.edit('a'), f'write {self.work}/a x'), 0)
        rows = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual([(row['operation'], row['by']) for row in rows],
                         [('session/request_permission', 'person'),
                          ('fs/write_text_file', 'person')])


if __name__ == '__main__':
    main()
