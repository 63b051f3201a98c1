#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Messages that the editor sends after a waiting prompt reach the agent after it, in their order.
"""

import json
import sys

import case

from acp import RpcError
from processes import PATIENCE
from sync_case import TurnCase


# Reports another mode when asked, and answers late: session/set_mode after `pause` seconds, or when
# a session/load comes; and the session/load last.
MOODY = '''
import json, sys, time
first_mode, pause, journal = %r, %r, open(%r, 'a')
modes = {'currentModeId': first_mode,
         'availableModes': [{'id': name, 'name': name} for name in ('ask', 'yolo')]}
def send(**message):
    print(json.dumps({'jsonrpc': '2.0', **message}), flush=True)
results = {'initialize': {'protocolVersion': 1, 'agentCapabilities': {'loadSession': True}},
           'session/new': {'sessionId': 's', 'modes': modes}, 'session/load': {'modes': modes},
           'session/prompt': {'stopReason': 'end_turn'}}
held = None
for line in sys.stdin:
    message = json.loads(line)
    method = message.get('method')
    print(line, end='', file=journal, flush=True)
    if method == '_yolo':
        send(method='session/update', params={'sessionId': 's', 'update': {
            'sessionUpdate': 'current_mode_update', 'currentModeId': 'yolo'}})
    elif method == 'session/set_mode' and pause is None and held is None:
        held = message['id']
        continue
    elif method == 'session/set_mode':
        time.sleep(pause or 0)
    elif method == 'session/load':
        send(id=held, result={})
        time.sleep(0.5)
    if 'id' in message and method:
        send(id=message['id'], result=results.get(method, {}))
'''


class OrderCase(TurnCase):
    def moody(self, mode, pause, **keys):
        """A client whose agent begins in a mode, and its session."""
        self.heard_path = self.dir / 'heard'
        client = self.broker(options=self.config(policy=('mode = pass',), **keys), agent=[
            sys.executable, '-c', MOODY % (mode, pause, str(self.heard_path))])
        client.initialize()
        return client, client.new_session(self.work)

    def heard_by_moody(self):
        lines = map(json.loads, self.heard_path.read_text().splitlines())
        return [(line['method'], self.mark_of(line['params'])) for line in lines
                if line.get('method') in ('session/set_mode', 'session/prompt', 'session/load')]

    def sent(self, *methods):
        """
        The messages of these methods that the agent got, in order: the method, and what tells it
        from others.
        """
        lines = [json.loads(line) for line in self.journal('<') if line.strip()]
        return [(line['method'], self.mark_of(line['params'])) for line in lines
                if line.get('method') in methods]

    def mark_of(self, params):
        if 'prompt' in params:
            return params['prompt'][0]['text']
        return params.get('modeId') or params.get('mark')

    def set_mode(self, client, session, mode):
        return client.start('session/set_mode', {'sessionId': session, 'modeId': mode})

    def heard_in_order(self):
        return self.sent('session/prompt', 'session/set_mode', '_mirror', '_echo',
                         'session/close', 'session/delete')


class BehindASync(OrderCase):
    def test_requests_and_notifications_wait_behind_it(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say one')
            self.wait_running(client, session)
            mode = self.set_mode(client, session, 'code')
            client.notify('_mirror', {'sessionId': session, 'mark': 'm'})
            echo = client.start('_echo', {'sessionId': session, 'mark': 'e'})
            other = client.call('_echo', {'mark': 'of no session'})
        self.assertEqual(other, {'mark': 'of no session'})
        for request in (prompt, mode, echo):
            client.answer(request, PATIENCE)
        self.assertEqual(self.heard_in_order(), [
            ('_echo', 'of no session'), ('session/prompt', 'say one'),
            ('session/set_mode', 'code'), ('_mirror', 'm'), ('_echo', 'e')])

    def test_a_prompt_in_between_keeps_its_place(self):
        client, session = self.opened()
        with self.held_store():
            requests = [client.start_prompt(session, 'say one'),
                        client.start_prompt(session, 'say two'),
                        self.set_mode(client, session, 'code'),
                        client.start_prompt(session, 'say three'),
                        self.set_mode(client, session, 'ask')]
            self.wait_running(client, session)
        for request in requests:
            client.answer(request, PATIENCE)
        self.assertEqual(self.heard_in_order(), [
            ('session/prompt', 'say one'), ('session/prompt', 'say two'),
            ('session/set_mode', 'code'), ('session/prompt', 'say three'),
            ('session/set_mode', 'ask')])

    def test_other_sessions_do_not_wait(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        with self.held_store():
            prompt = client.start_prompt(session, 'say one')
            self.wait_running(client, session)
            client.answer(self.set_mode(client, other, 'code'), PATIENCE)
        client.answer(prompt, PATIENCE)
        self.assertEqual(self.heard_in_order(), [
            ('session/set_mode', 'code'), ('session/prompt', 'say one')])

    def test_a_cancelled_prompt_lets_it_go_on(self):
        for cancel in ('session/cancel', '$/cancel_request'):
            with self.subTest(cancel):
                client, session = self.opened()
                with self.held_store():
                    prompt = client.start_prompt(session, 'say never')
                    self.wait_running(client, session)
                    mode = self.set_mode(client, session, 'code')
                    later = client.start_prompt(session, 'say never either')
                    client.notify(cancel, {'sessionId': session} if cancel == 'session/cancel'
                                  else {'requestId': int(prompt)})
                    self.assertEqual(client.answer(prompt, PATIENCE),
                                     {'stopReason': 'cancelled'})
                    client.answer(mode, PATIENCE)
                    client.notify('session/cancel', {'sessionId': session})
                    self.assertEqual(client.answer(later, PATIENCE),
                                     {'stopReason': 'cancelled'})
                self.assertEqual(self.heard_in_order(), [('session/set_mode', 'code')])
                self.ended(client)

    def test_what_waits_can_be_cancelled_by_its_id(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say one')
            self.wait_running(client, session)
            mode = self.set_mode(client, session, 'code')
            client.notify('$/cancel_request', {'requestId': int(mode)})
            with self.assertRaises(RpcError) as cancelled:
                client.answer(mode, PATIENCE)
        self.assertEqual(cancelled.exception.code, -32800)
        client.answer(prompt, PATIENCE)
        self.assertEqual(self.heard_in_order(), [('session/prompt', 'say one')])

    def test_a_session_that_waits_for_its_first_sync_can_be_cancelled(self):
        self.ended(self.opened()[0])
        client = self.copied()
        with self.held_store():
            opening = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
            client.call('_broker/usage')  # so the request before it was read
            client.notify('$/cancel_request', {'requestId': int(opening)})
            with self.assertRaises(RpcError) as cancelled:
                client.answer(opening, PATIENCE)
        self.assertEqual(cancelled.exception.code, -32800)
        session = client.new_session(self.work)
        client.prompt(session, 'write there.txt x')
        self.assertEqual(self.heard_in_order(), [('session/prompt', 'write there.txt x')])
        self.ended(client)
        self.assertEqual(self.sent('session/new')[1:], [])

    def test_what_follows_a_long_prompt_stays_behind_it(self):
        client, session = self.opened(max_queue='8k')
        prompt = 'say ' + 12000 * 'x'
        with self.held_store():
            waiting = [client.start_prompt(session, prompt)]
            self.wait_running(client, session)
            client.notify('_mirror', {'sessionId': session, 'mark': 'm'})
            waiting.append(self.set_mode(client, session, 'code'))
            waiting.append(client.start_prompt(session, 'say two'))
        for request in waiting:
            client.answer(request, PATIENCE)
        self.assertEqual(self.heard_in_order(), [
            ('session/prompt', prompt), ('_mirror', 'm'), ('session/set_mode', 'code'),
            ('session/prompt', 'say two')])

    def test_a_close_settles_the_prompts_and_keeps_its_place(self):
        for method in ('session/close', 'session/delete'):
            with self.subTest(method):
                client, session = self.opened()
                with self.held_store():
                    prompts = [client.start_prompt(session, 'say never')]
                    self.wait_running(client, session)
                    mode = self.set_mode(client, session, 'code')
                    prompts.append(client.start_prompt(session, 'say never either'))
                    close = client.start(method, {'sessionId': session})
                    for prompt in prompts:
                        self.assertEqual(client.answer(prompt, PATIENCE),
                                         {'stopReason': 'cancelled'})
                    client.answer(mode, PATIENCE)
                    client.answer(close, PATIENCE)
                self.assertEqual([name for name, _ in self.heard_in_order()],
                                 ['session/set_mode', method])
                self.ended(client)

    def test_a_prompt_that_fails_lets_it_go_on(self):
        client, session = self.opened(sync_lock_timeout='100ms')
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            client.answer(self.set_mode(client, session, 'code'), PATIENCE)
            self.failure(client.response(prompt, PATIENCE), 'TIMEOUT_EXCEEDED')
        self.assertEqual(self.heard_in_order(), [('session/set_mode', 'code')])

    def test_no_more_wait_than_the_limit_says(self):
        client, session = self.opened(max_requests='2')
        with self.held_store():
            prompt = client.start_prompt(session, 'say one')
            self.wait_running(client, session)
            modes = [self.set_mode(client, session, 'code')]
            modes += [self.set_mode(client, session, 'ask')]
            refused = self.failure(client.response(modes.pop(), PATIENCE),
                                   'RESOURCE_LIMIT_EXCEEDED')
            self.assertIn('max-requests', refused['message'])
        for request in (prompt, *modes):
            client.answer(request, PATIENCE)

    def test_the_end_of_the_broker_answers_what_waits(self):
        client, session = self.opened()
        with self.held_store():
            prompt = client.start_prompt(session, 'say never')
            self.wait_running(client, session)
            mode = self.set_mode(client, session, 'code')
            client.close_stdin()
            self.assertEqual(client.answer(prompt, PATIENCE), {'stopReason': 'cancelled'})
            self.failure(client.response(mode, PATIENCE), 'SHUTTING_DOWN')
        self.assertEqual(client.wait(PATIENCE), 0)

    def test_what_follows_a_load_waits_for_its_prompt_too(self):
        client, session = self.opened()
        with self.held_store():
            load = client.start('session/load', {'sessionId': session, 'cwd': str(self.work),
                                                 'mcpServers': []})
            prompt = client.start_prompt(session, 'say one')
            mode = self.set_mode(client, session, 'code')
        for request in (load, prompt, mode):
            client.answer(request, PATIENCE)
        self.assertEqual(self.heard_in_order(), [
            ('session/prompt', 'say one'), ('session/set_mode', 'code')])


class BehindAMode(OrderCase):
    def test_what_follows_a_prompt_that_waits_for_the_agents_mode_waits_too(self):
        modes = '"modes":{"currentModeId":"yolo","availableModes":[' + ','.join(
            f'{{"id":"{name}","name":"{name}"}}' for name in ('ask', 'yolo')) + ']}'
        client = self.broker('--modes', modes, '--silent-modes', options=self.config(
            policy=('mode = pass',), start_timeout='4s'))
        client.initialize()
        session = client.new_session(self.work)
        prompt = client.start_prompt(session, 'say never')
        echo = client.start('_echo', {'sessionId': session, 'mark': 'e'})
        self.failure(client.response(prompt), 'PERMISSION_DENIED')
        client.answer(echo)
        place = client.messages.index
        self.assertLess(place(client.response(prompt)), place(client.response(echo)))
        echo = client.start('_echo', {'sessionId': session, 'mark': 'f'})
        client.answer(echo)
        self.assertEqual(self.heard_in_order(), [
            ('session/set_mode', 'ask'), ('_echo', 'e'), ('_echo', 'f')])

    def test_a_prompt_waits_for_what_opens_its_session_once_more(self):
        """
        A session/load comes after the prompt; its answer says that the agent is in that mode again.
        """
        client, session = self.moody('yolo', None)
        prompt = client.start_prompt(session, 'say one')
        load = client.start('session/load', {
            'sessionId': session, 'cwd': str(self.work), 'mcpServers': []})
        client.answer(load)
        client.answer(prompt)
        self.assertEqual(self.heard_by_moody(), [
            ('session/set_mode', 'ask'), ('session/load', None), ('session/set_mode', 'ask'),
            ('session/prompt', 'say one')])

    def test_a_prompt_does_not_overtake_one_that_waits_for_its_sync(self):
        """The second prompt comes while the agent is being set back."""
        client, session = self.moody('ask', 1, isolation='copy')
        with self.held_store():
            first = client.start_prompt(session, 'say one')
            self.wait_running(client, session)
            client.notify('_yolo', {})
            client.wait_for(lambda m: m.method == 'session/update'
                            and m.value['params']['update'].get('currentModeId') == 'yolo')
            second = client.start_prompt(session, 'say two')
        client.answer(first, PATIENCE)
        client.answer(second, PATIENCE)
        self.assertEqual(self.heard_by_moody(), [
            ('session/set_mode', 'ask'), ('session/prompt', 'say one'),
            ('session/prompt', 'say two')])


if __name__ == '__main__':
    case.main()
