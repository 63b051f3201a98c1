#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Modes and options in which an agent asks nobody need the policy's consent."""

import json
import sys

from acp import RpcError
from case import main
from policy_case import PolicyCase

CLAUDE = json.dumps({
    'currentModeId': 'bypassPermissions',
    'availableModes': [{'id': name, 'name': name}
                       for name in ('plan', 'acceptEdits', 'default', 'bypassPermissions')]})

AGENT = '''
import json, os, sys
asked, mode, changes = open(%r, 'a'), %r, %r
def send(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
results = {
    'initialize': {'protocolVersion': 1, 'agentCapabilities': {'loadSession': True}},
    'session/new': {'sessionId': 's', 'modes': {'currentModeId': mode, 'availableModes': [
        {'id': name, 'name': name} for name in ('ask', 'yolo')]}},
    'session/load': None,
    'session/prompt': {'stopReason': 'end_turn'},
    'session/set_mode': {},
}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message['method'], message.get('params', {})
    print(method, file=asked, flush=True)
    if 'die' in line:
        os._exit(3)
    change = changes.get(method.removeprefix('session/'))
    if change:
        send(method='session/update', params={'sessionId': params['sessionId'], 'update': {
            'sessionUpdate': 'current_mode_update', 'currentModeId': change}})
    if 'id' in message:
        send(id=message['id'], result=results[method])
'''


URI = 'https://agentclientprotocol.com/protocol/session-modes#'

# How today's agents describe themselves: agentInfo.name, their modes, the mode in which they start,
# and the modes in which they ask. With a policy, the broker chooses the first of the latter.
AGENTS = {
    'codex-acp 2.6.0': ('@agentclientprotocol/codex-acp',
                        ('read-only', 'workspace-write', 'agent', 'agent-full-access'),
                        'agent', ('read-only',)),
    'claude-agent-acp 0.101.0': ('@agentclientprotocol/claude-agent-acp',
                                 ('default', 'acceptEdits', 'plan', 'auto', 'bypassPermissions'),
                                 'auto', ('default',)),
    'gemini-cli 0.61.0': ('gemini-cli', ('default', 'autoEdit', 'yolo', 'plan'),
                          'autoEdit', ('default', 'plan')),
    'qwen-code 0.24.4': ('qwen-code', ('plan', 'default', 'auto-edit', 'auto', 'yolo'),
                         'auto-edit', ('default', 'plan')),
    'copilot 1.0.102': ('Copilot', (URI + 'plan', URI + 'agent', URI + 'autopilot'),
                        URI + 'autopilot', (URI + 'agent', URI + 'plan')),
}


NAMED = '''
import json, sys
asked, name, opened = open(%r, 'a'), %r, %r
results = {
    'initialize': {'protocolVersion': 1, 'agentCapabilities': {},
                   'agentInfo': {'name': name, 'version': '1'}},
    'session/new': opened,
    'session/prompt': {'stopReason': 'end_turn'},
    'session/set_mode': {},
}
for line in sys.stdin:
    print(line, end='', file=asked, flush=True)
    message = json.loads(line)
    if 'id' in message:
        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'],
                          'result': results[message['method']]}), flush=True)
'''


class Modes(PolicyCase):
    def named(self, name, modes, current, options=None, **keys):
        """A session of an agent that gives itself this name."""
        opened = {'sessionId': 's'}
        if modes:
            opened['modes'] = {'currentModeId': current,
                               'availableModes': [{'id': mode, 'name': mode} for mode in modes]}
        if options:
            opened['configOptions'] = options
        agent = self.dir / 'named.py'
        agent.write_text(NAMED % (str(self.dir / 'asked'), name, opened))
        client = self.broker(options=self.config(policy=['mode = pass'], **keys),
                             agent=[sys.executable, '-B', str(agent)])
        client.initialize()
        return client, client.new_session(self.work)

    def sent(self):
        return [json.loads(line) for line in (self.dir / 'asked').read_text().splitlines()]

    def test_todays_agents_are_set_back_to_a_mode_in_which_they_ask(self):
        for version, (name, modes, start, asking) in AGENTS.items():
            with self.subTest(version):
                client, session = self.named(name, modes, start)
                client.prompt(session, 'go')
                methods = [message['method'] for message in self.sent()]
                self.assertEqual(methods[-2:], ['session/set_mode', 'session/prompt'])
                self.assertEqual(self.sent()[-2]['params']['modeId'], asking[0])
                self.assertEqual(len(self.notices(client)), 1)
                for mode in modes:
                    set_mode = client.start('session/set_mode',
                                            {'sessionId': session, 'modeId': mode})
                    self.assertEqual('error' in client.response(set_mode).value,
                                     mode not in asking, mode)
                self.assertEqual(len(self.notices(client)), 1)
                client.finish()
                (self.dir / 'asked').unlink()

    def test_an_agent_that_asks_in_no_mode_gets_no_prompt(self):
        """opencode 1.18.33 runs commands without asking, in both of its modes."""
        mode = {'id': 'mode', 'name': 'Session Mode', 'category': 'mode', 'type': 'select',
                'currentValue': 'build', 'options': [{'value': 'build', 'name': 'build'},
                                                     {'value': 'plan', 'name': 'plan'}]}
        client, session = self.named('OpenCode', (), None, options=[mode])
        error = self.failure(client.response(client.start_prompt(session, 'go')),
                             'PERMISSION_DENIED')
        self.assertIn('agent-modes = allow', error['message'])
        self.assertNotIn('session/prompt', [message['method'] for message in self.sent()])

    def test_what_nobody_knows_is_told_once_with_the_line_that_allows_it(self):
        for name, modes, current in (('new-agent', ('code', 'ask'), 'code'),
                                     ('@agentclientprotocol/codex-acp', ('mine',), 'mine'),
                                     ('new-agent', (), None)):
            client, session = self.named(name, modes, current)
            client.prompt(session, 'go')
            client.prompt(session, 'go on')
            notice, = self.notices(client)
            self.assertIn(name, notice)
            self.assertIn('agent-modes = allow', notice)
            client.finish()

    def test_the_editors_wish_is_refused_with_the_rule_and_the_cure(self):
        client, session = self.open(policy=('mode = pass',))
        with self.assertRaises(RpcError) as caught:
            client.call('session/set_mode', {'sessionId': session, 'modeId': 'yolo'})
        self.assertIn('mode = pass', caught.exception.message)
        self.assertIn('agent-modes = allow', caught.exception.message)
        self.assertEqual(caught.exception.data['code'], 'PERMISSION_DENIED')
        with self.assertRaises(RpcError):
            client.call('session/set_config_option',
                        {'sessionId': session, 'configId': 'allow_all', 'value': 'on'})
        client.call('session/set_mode', {'sessionId': session, 'modeId': 'code'})
        client.call('session/set_config_option',
                    {'sessionId': session, 'configId': 'model', 'value': 'large'})
        self.assertFalse([line for line in self.journal('<') if b'yolo' in line])

    def test_a_wish_is_read_as_its_agent_reads_it(self):
        client, session = self.open(policy=('mode = pass',))
        for params in ({'configId': 'mode', 'value': 'yolo', 'modeId': 'default'},
                       {'configId': 'allow_all', 'value': True, 'modeId': 'default'}):
            with self.assertRaises(RpcError) as caught:
                client.call('session/set_config_option', dict(params, sessionId=session))
            self.assertEqual(caught.exception.data['code'], 'PERMISSION_DENIED')
        for member in ('"modeId":"default","modeId":"yolo"',
                       '"value":"ask","configId":"mode","value":"yolo"'):
            request = f'{{"sessionId":"{session}",{member}}}'
            client.send_line(b'{"jsonrpc":"2.0","id":"twice","method":"session/set_mode",'
                             b'"params":%s}' % request.encode())
            self.failure(client.response(b'"twice"'), 'PARSE_ERROR')
        self.assertFalse([line for line in self.journal('<') if b'yolo' in line])

    def test_a_session_the_broker_does_not_know_is_gated_too(self):
        client, _ = self.open(policy=('mode = pass',))
        with self.assertRaises(RpcError) as caught:
            client.call('session/set_mode', {'sessionId': 'x' * 2000, 'modeId': 'yolo'})
        self.assertEqual(caught.exception.data['code'], 'PERMISSION_DENIED')
        self.assertFalse([line for line in self.journal('<') if b'yolo' in line])

    def test_without_a_policy_nothing_is_gated(self):
        client = self.broker('--modes', f'"modes":{CLAUDE}')
        client.initialize()
        session = client.new_session(self.work)
        client.call('session/set_mode', {'sessionId': session, 'modeId': 'yolo'})
        client.prompt(session, 'say fine')
        self.assertEqual(self.notices(client), [])

    def test_a_policy_can_consent(self):
        for policy in (('mode = approve-all',), ('mode = pass', 'agent-modes = allow')):
            client, session = self.open('--modes', f'"modes":{CLAUDE}', policy=policy)
            client.call('session/set_mode', {'sessionId': session, 'modeId': 'yolo'})
            client.prompt(session, 'say fine')
            self.assertEqual(self.notices(client), [])
            client.finish()

    def test_an_agent_that_starts_in_one_is_set_back_before_its_first_prompt(self):
        client, session = self.open('--modes', f'"modes":{CLAUDE}', policy=('mode = pass',))
        client.prompt(session, 'say hello')
        methods = [json.loads(line).get('method') for line in self.journal('<')]
        self.assertLess(methods.index('session/set_mode'), methods.index('session/prompt'))
        sent = next(json.loads(line) for line in self.journal('<') if b'set_mode' in line)
        self.assertEqual(sent['params'], {'sessionId': session, 'modeId': 'default'})
        shown = self.updates(client, 'current_mode_update')
        self.assertTrue(shown)
        self.assertEqual({update['currentModeId'] for update in shown}, {'default'})
        notice, = self.notices(client)
        self.assertIn('bypassPermissions', notice)

    def test_an_agent_that_stays_in_one_gets_no_prompt(self):
        client, session = self.open('--modes', f'"modes":{CLAUDE}', '--refuse-modes',
                                    policy=('mode = pass',))
        with self.assertRaises(RpcError) as caught:
            client.prompt(session, 'say hello')
        self.assertEqual(caught.exception.data['code'], 'PERMISSION_DENIED')
        self.assertIn('bypassPermissions', caught.exception.message)
        self.assertEqual(len(self.notices(client)), 1)
        self.assertFalse([line for line in self.journal('<') if b'session/prompt' in line])

    def test_an_agent_that_offers_nothing_else_gets_no_prompt(self):
        modes = '"modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo","name":"Y"}]}'
        client, session = self.open('--modes', modes, policy=('mode = pass',))
        with self.assertRaises(RpcError) as caught:
            client.prompt(session, 'say hello')
        self.assertIn('offers nothing else', caught.exception.message)
        # The editor chooses another mode.
        client.call('session/set_mode', {'sessionId': session, 'modeId': 'ask'})
        client.prompt(session, 'say now')
        self.assertIn('now', client.texts())

    def test_an_option_is_set_back_too(self):
        options = json.dumps([{'id': 'allow_all', 'name': 'Allow all', 'category': 'permissions',
                               'type': 'select', 'currentValue': 'on', 'options': [
                                   {'value': 'on', 'name': 'On'}, {'value': 'off', 'name': 'Off'}]},
                              {'id': 'model', 'name': 'Model', 'category': 'model',
                               'type': 'select', 'currentValue': 'auto', 'options': [
                                   {'value': 'auto', 'name': 'Auto'}]}])
        client, session = self.open('--modes', f'"configOptions":{options}',
                                    policy=('mode = pass',))
        client.prompt(session, 'say hello')
        sent = [json.loads(line)['params'] for line in self.journal('<')
                if b'set_config_option' in line]
        self.assertEqual(sent, [{'sessionId': session, 'configId': 'allow_all', 'value': 'off'}])
        self.assertEqual(len(self.updates(client, 'config_option_update')), 1)

    def test_an_agent_that_changes_by_itself_is_set_back_to_where_it_was(self):
        client, session = self.open(policy=('mode = pass',))
        update = '{"sessionUpdate":"current_mode_update","currentModeId":"acceptEdits"}'
        client.prompt(session, f'update {update}', 'sleep 200', 'say done')
        sent = next(json.loads(line) for line in self.journal('<') if b'set_mode' in line)
        self.assertEqual(sent['params']['modeId'], 'ask')
        self.assertEqual(len(self.notices(client)), 1)

    def test_an_agents_change_is_seen_however_it_is_spelled(self):
        client, session = self.open(policy=('mode = pass',))
        update = '{"sessionUpdate":"current\\u005fmode_update","currentModeId":"acceptEdits"}'
        client.prompt(session, f'update {update}', 'sleep 200', 'say done')
        self.assertTrue([line for line in self.journal('<') if b'set_mode' in line])
        self.assertEqual(len(self.notices(client)), 1)

    def test_an_agent_that_changes_again_and_again_is_told_to_cancel(self):
        client, session = self.open(policy=('mode = pass',))
        update = '{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}'
        script = [line for _ in range(6) for line in (f'update {update}', 'sleep 150')]
        result = client.prompt(session, *script, 'hang')
        self.assertEqual(result['stopReason'], 'cancelled')
        with self.assertRaises(RpcError) as caught:
            client.prompt(session, 'say hello')
        self.assertIn('again and again', caught.exception.message)

    def test_a_cancelled_prompt_that_waits_is_answered(self):
        client, session = self.open('--modes', f'"modes":{CLAUDE}', policy=('mode = pass',))
        for _ in range(3):
            prompt = client.start_prompt(session, 'say hello')
            client.notify('session/cancel', {'sessionId': session})
            self.assertIn(client.answer(prompt)['stopReason'], ('cancelled', 'end_turn'))

    def test_a_prompt_that_waits_is_answered_where_its_session_is_closed(self):
        client, session = self.open('--modes', f'"modes":{CLAUDE}', '--silent-modes',
                                    policy=('mode = pass',), start_timeout='1h')
        prompt = client.start_prompt(session, 'say hello')
        client.call('session/close', {'sessionId': session})
        self.assertEqual(client.answer(prompt)['stopReason'], 'cancelled')

    def test_a_prompt_that_waits_goes_on_where_its_session_is_loaded_in_another_mode(self):
        client, session = self.open('--modes', f'"modes":{CLAUDE}', '--silent-modes',
                                    policy=('mode = pass',), start_timeout='1h')
        prompt = client.start_prompt(session, 'say hello')
        client.call('session/load', {
            'sessionId': session, 'cwd': str(self.work), 'mcpServers': []})
        self.assertEqual(client.answer(prompt)['stopReason'], 'end_turn')

    def test_a_change_told_before_a_load_was_answered_is_set_back(self):
        client, session = self.told(load='yolo')
        self.failure(client.response(client.start_prompt(session, 'die')), 'AGENT_EXITED')
        client.prompt(session, 'go')
        self.assertEqual(self.asked(), ['session/new', 'session/prompt', 'initialize',
                                        'session/load', 'session/set_mode', 'session/prompt'])
        client.call('session/load', {'sessionId': 'another', 'cwd': str(self.work),
                                     'mcpServers': []})
        prompt = client.start_prompt('another', 'go')  # it has not reported a mode in which it asks
        self.failure(client.response(prompt), 'PERMISSION_DENIED')

    def test_an_agent_that_changes_back_while_it_is_set_back_gets_no_prompt(self):
        client, session = self.told(new='yolo', set_mode='yolo')
        self.failure(client.response(client.start_prompt(session, 'go')), 'PERMISSION_DENIED')
        self.assertNotIn('session/prompt', self.asked())
        notice, = self.notices(client)  # none says that the mode was set back
        self.assertIn('again and again', notice)

    def told(self, new='ask', **changes):
        """
        A session of an agent that is in the mode `new`, and that reports a change to another mode
        before it answers a method.
        """
        agent = self.dir / 'agent.py'
        agent.write_text(AGENT % (str(self.dir / 'asked'), new, changes))
        client = self.broker(options=self.config(policy=['mode = pass']),
                             agent=[sys.executable, '-B', str(agent)])
        client.initialize()
        return client, client.new_session(self.work)

    def asked(self):
        return (self.dir / 'asked').read_text().split()[1:]


if __name__ == '__main__':
    main()
