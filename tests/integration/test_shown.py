#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The last output of a prompt's terminals reaches the editor before the prompt's answer."""

import json

from case import Case, main

LONG_ENOUGH = 60.0  # seconds; no test here depends on the time


class Shown(Case):
    capabilities = {}

    def open(self, *flags, **keys):
        client = self.broker(*flags, options=self.config(toolhost='broker', **keys))
        client.initialize(self.capabilities)
        return client, client.new_session(self.work)

    def create(self, session, command):
        return 'request terminal/create ' + json.dumps({'sessionId': session, 'command': command})

    def wait_for(self, session, number):
        return 'request terminal/wait_for_exit ' + json.dumps(
            {'sessionId': session, 'terminalId': f'term-{number}'})

    def show(self, *numbers, call='call'):
        return 'update ' + json.dumps({
            'sessionUpdate': 'tool_call', 'toolCallId': call, 'title': 'Run',
            'content': [{'type': 'terminal', 'terminalId': f'term-{number}'}
                        for number in numbers]})

    def begin(self, *end, **keys):
        """
        A prompt with a terminal. The agent shows the terminal, which prints something right after
        that; the editor is told about the output. Then the terminal ends, and the editor is not
        told for a while.
        """
        client, session = self.open(**keys)
        prompt = client.start_prompt(
            session, self.create(session, 'echo first; sleep 0.01; echo last words; exit 7'),
            self.show(1), self.wait_for(session, 1), *end)
        return client, prompt

    def shown_before(self, client, raw_id, call='call'):
        """The state of a tool call that the editor last got before the request was answered."""
        answer = client.response(raw_id, LONG_ENOUGH)
        before = client.messages[:client.messages.index(answer)]
        return self.state([m.params['update'] for m in before if m.method == 'session/update'
                           and m.params['update'].get('toolCallId') == call])

    def state(self, updates):
        texts = [item['content']['text'] for update in updates[-1:]
                 for item in update.get('content', [])]
        return '\n'.join(texts)

    def assert_whole(self, state):
        self.assertIn('first\nlast words\n', state)
        self.assertIn('exited with status 7', state)

    def test_at_the_end_of_the_turn(self):
        client, prompt = self.begin()
        self.assert_whole(self.shown_before(client, prompt))

    def test_where_the_turn_ends_in_an_error(self):
        client, prompt = self.begin('error {"code":-32603,"message":"no more"}')
        self.assert_whole(self.shown_before(client, prompt))

    def test_where_the_agent_dies(self):
        client, prompt = self.begin('exit 3')
        self.assert_whole(self.shown_before(client, prompt))

    def test_where_the_turn_is_given_up(self):
        client, prompt = self.begin('hang', idle_timeout='500ms')
        self.assert_whole(self.shown_before(client, prompt))

    def test_of_every_terminal_although_the_editor_s_queue_is_full(self):
        client, session = self.open(max_queue='4k')
        prompt = client.start_prompt(
            session, *(self.create(session, 'head -c 9000 /dev/zero | tr "\\0" x; exit 7')
                       for _ in range(3)),
            *(self.show(number, call=f'call-{number}') for number in (1, 2, 3)),
            *(self.wait_for(session, number) for number in (1, 2, 3)))
        for number in (1, 2, 3):
            state = self.shown_before(client, prompt, f'call-{number}')
            self.assertIn('x' * 9000, state)
            self.assertIn('exited with status 7', state)


class ShownByMeta(Shown):
    """The same, with an editor that shows terminals that are not its own."""

    capabilities = {'_meta': {'terminal_output': True}}

    def state(self, updates):
        metas = [update.get('_meta', {}) for update in updates]
        output = ''.join(meta.get('terminal_output', {}).get('data', '') for meta in metas)
        codes = [meta['terminal_exit']['exit_code'] for meta in metas if 'terminal_exit' in meta]
        return f'{output}\nexited with status {codes}'.replace('[7]', '7')


if __name__ == '__main__':
    main()
