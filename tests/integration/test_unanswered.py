#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An agent that does not answer session/new, session/load or authenticate, or does so too late."""

import json
import sys
import time

import case

from case import Case
from host import NEVER
from together import Together, tests_of

SILENT_MS = 4000  # an agent that answers at all does so long before
AT_ONCE = 8  # tests at the same time; they wait most of the time

# The request's "_meta" tells the agent what to do with it; "_answer" makes it send the held answer.
AGENT = '''
import json, sys, threading, time
can_close, journal = %r, open(%r, 'a')
def send(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
def update(text):
    send(method='session/update', params={'sessionId': 's', 'update': {
        'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'text', 'text': text}}})
results = {
    'initialize': {'protocolVersion': 1, 'authMethods': [{'id': 'token', 'name': 'Token'}],
                   'agentCapabilities': {'loadSession': True, 'sessionCapabilities':
                                         {'close': {}} if can_close else {}}},
    'session/new': {'sessionId': 's'}, 'session/load': {}, 'authenticate': {},
    'session/close': {},
}
held = None
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get('method'), message.get('params', {})
    print(line, end='', file=journal, flush=True)
    meta = params.get('_meta', {})
    if 'ask' in meta:
        send(id=99, method='elicitation/create', params={'message': 'Your name?'})
    for _ in range(meta.get('updates', 0)):
        time.sleep(0.25)
        update('on')
    if meta.get('hold'):
        print('waiting for the model server', file=sys.stderr, flush=True)
        held = message
    elif method == '_answer':
        send(id=held['id'], result=results[held['method']])
        send(id=message['id'], result={})
    elif 'id' in message and method:
        send(id=message['id'], result=results[method])
'''


class Unanswered(Case):
    def open(self, can_close=True, **keys):
        keys = {'session_timeout': f'{SILENT_MS}ms', 'authenticate_timeout': f'{SILENT_MS}ms',
                **keys}
        self.heard_path = self.dir / 'heard'
        client = self.broker(options=self.config(**keys), agent=[
            sys.executable, '-c', AGENT % (can_close, str(self.heard_path))])
        client.initialize()
        return client

    def heard(self, method):
        lines = [json.loads(line) for line in self.heard_path.read_text().splitlines()]
        return [line.get('params') for line in lines if line.get('method') == method]

    def ask(self, client, method, **meta):
        """Sends a request that tells its agent what to do with it."""
        params = {'authenticate': {'methodId': 'token'},
                  'session/load': {'sessionId': 's', 'cwd': str(self.work), 'mcpServers': []},
                  'session/new': {'cwd': str(self.work), 'mcpServers': []}}[method]
        return client.start(method, {**params, '_meta': meta})

    def given_up(self, client, request, method, key, stage):
        error = self.failure(client.response(request), 'TIMEOUT_EXCEEDED')
        self.assertNames(error['message'], f'not answered {method} | {SILENT_MS} ms | {key}')
        self.assertEqual((error['data']['stage'], error['data']['retryable']), (stage, True))
        # exact: the agent's own words
        self.assertEqual(error['data']['detail'], 'waiting for the model server\n')

    def works(self, client):
        """
        Checks that the agent goes on: a session can be opened, and nobody hears of a late answer.
        """
        client.answer(self.ask(client, 'session/new'))

    def answers(self, client, request):
        return [m for m in client.received if m.is_response and m.id == request]

    def test_a_new_session_that_comes_too_late_is_closed(self):
        client = self.open()
        request = self.ask(client, 'session/new', hold=True)
        self.given_up(client, request, 'session/new', 'session-timeout', 'session')
        client.call('_answer')
        client.wait_log('too late | session-timeout | is closed')
        client.call('_answer')  # sends the same answer again, to a request that nobody waits for
        self.assertEqual(self.heard('session/close'), [{'sessionId': 's'}])
        self.assertEqual(len(self.answers(client, request)), 1)
        self.works(client)

    def test_where_the_agent_closes_none_that_is_said(self):
        client = self.open(can_close=False)
        request = self.ask(client, 'session/new', hold=True)
        self.given_up(client, request, 'session/new', 'session-timeout', 'session')
        client.call('_answer')
        client.wait_log('stays open | no session/close')
        self.assertEqual(self.heard('session/close'), [])
        self.works(client)

    def test_a_load_that_is_silent_is_given_up_and_its_late_answer_dropped(self):
        client = self.open()
        request = self.ask(client, 'session/load', hold=True)
        self.given_up(client, request, 'session/load', 'session-timeout', 'session')
        client.call('_answer')
        client.wait_log('an answer | never made')
        self.assertEqual(len(self.answers(client, request)), 1)
        self.assertEqual(self.heard('session/close'), [])
        client.answer(self.ask(client, 'session/load'))

    def test_each_message_of_a_replay_begins_the_time_anew(self):
        client = self.open()
        count = SILENT_MS // 250 + 2
        started = time.monotonic()
        client.answer(self.ask(client, 'session/load', updates=count))
        self.assertGreater(time.monotonic() - started, SILENT_MS / 1000)
        self.assertEqual(client.texts(), ['on'] * count)

    def test_an_authentication_is_given_up(self):
        client = self.open()
        request = self.ask(client, 'authenticate', hold=True)
        self.given_up(client, request, 'authenticate', 'authenticate-timeout', 'authenticate')
        client.call('_answer')
        client.wait_log('an answer | never made')
        client.answer(self.ask(client, 'authenticate'))

    def test_a_user_who_is_asked_may_take_their_time(self):
        client = self.open()
        client.host.replies['elicitation/create'] = NEVER
        request = self.ask(client, 'authenticate', hold=True, ask=True)
        question = client.wait_for(lambda m: m.method == 'elicitation/create')
        time.sleep(1.5 * SILENT_MS / 1000)
        self.assertEqual(self.answers(client, request), [])
        client.send({'jsonrpc': '2.0', 'id': question.value['id'], 'result': {'action': 'accept'}})
        self.given_up(client, request, 'authenticate', 'authenticate-timeout', 'authenticate')

    def test_who_was_asked_and_said_nothing_begins_the_time_anew(self):
        client = self.open(permission_timeout='1s')
        client.host.replies['elicitation/create'] = NEVER
        started = time.monotonic()
        request = self.ask(client, 'authenticate', hold=True, ask=True)
        self.given_up(client, request, 'authenticate', 'authenticate-timeout', 'authenticate')
        self.assertGreaterEqual(time.monotonic() - started, 1 + SILENT_MS / 1000)

    def test_never_is_never(self):
        client = self.open(session_timeout='never', authenticate_timeout='never')
        request = self.ask(client, 'session/new', hold=True)
        time.sleep(1)
        self.assertEqual(self.answers(client, request), [])
        client.call('_answer')
        client.answer(request)


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [Unanswered]))


if __name__ == '__main__':
    case.main()
