# SPDX-License-Identifier: MIT
"""
Repeats recorded requests to a real control plane with the stand-in. The statuses must be the same,
the bodies must have the same members in the same order, and the headers must be the same, except
for ids, times and tokens.
"""

import json
import re
import unittest

import stand_in  # first: it says where the others are
from api_client import Api
from case import main

ANSWERS = json.loads((stand_in.HERE / 'answers.json').read_text())

UNORDERED = ('/labels', '/env')  # the service keeps their members in an order of its own
PLACEHOLDERS = {
    '<id>': r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
    '<time>': r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z',
    '<token>': r'[A-Za-z0-9]{32}',
    '<url>': r'https?://\S+',
    '<ssh command>': r'ssh -p \d+ [A-Za-z0-9]{32}@127\.0\.0\.1',
    '<ms>': r'\d{13}',
    '<any>': r'.*',
}
# Usually a test says when a state ends. In these states, one request after another is made.
SLOW = {'stop': 60000, 'archive': 60000, 'restore': 40000, 'destroy': 60000}


def matches(expected, text):
    pattern = re.escape(expected)
    for name, shape in PLACEHOLDERS.items():
        pattern = pattern.replace(re.escape(name), shape)
    return re.fullmatch(pattern, text) is not None


def differences(expected, actual, where='', is_cut=False):
    """The differences of an answer from the recording."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        names = list(actual)[:len(expected)] if is_cut else list(actual)
        if where.endswith(UNORDERED):
            names.sort(key=list(expected).index if set(names) == set(expected) else None)
        if names != list(expected):
            return [f'{where or "/"}: {names} instead of {list(expected)}']
        return sum((differences(expected[name], actual[name], f'{where}/{name}',
                                is_cut and name == names[-1]) for name in expected), [])
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return sum((differences(one, other, f'{where}/{number}', is_cut)
                    for number, (one, other) in enumerate(zip(expected, actual))), [])
    same = (matches(expected, actual) if isinstance(expected, str) and isinstance(actual, str)
            else type(expected) is type(actual) and expected == actual)
    return [] if same else [f'{where}: {actual!r} instead of {expected!r}']


@stand_in.NEEDED
class RecordingsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.daytona = stand_in.StandIn()
        self.addCleanup(self.daytona.__exit__)
        self.daytona.__enter__()
        self.daytona.settings(latency=SLOW, listLag=0, limits={
            'sandbox-create': 30, 'authenticated': 1000, 'sandbox-lifecycle': 1000})
        self.known = {}

    def fill(self, path):
        return re.sub(r'\{(\w+)\}', lambda match: self.known[match[1]], path)

    def ask(self, step):
        method, path, *body = step['request']
        path = self.fill(path)
        key = {'gateway': self.daytona.gateway_key}.get(step.get('key', ''), step.get('key', ''))
        api = Api(self.daytona)
        api.key = self.daytona.key if key == '' else key
        answer = api.call(method, path, body[0] if body else None, text=step.get('text'))
        if isinstance(answer.body, dict):
            if 'id' in answer.body:
                self.known.setdefault('id', answer.body['id'])
            if 'token' in answer.body:
                self.known[step.get('remember', 'token')] = answer.body['token']
        return path, answer

    def check(self, step):
        path, answer = self.ask(step)
        if 'status' not in step:
            self.assertEqual(answer.status, 200, answer.text)
            return
        expected = step['body']
        if isinstance(expected, dict) and 'path' in expected:
            expected = {**expected, 'path': f'/api{path}'}
        self.assertEqual(answer.status, step['status'], answer.text)
        self.assertEqual(differences(expected, answer.body, is_cut=step.get('isCut', False)), [])
        self.check_headers(step, answer)

    def check_headers(self, step, answer):
        self.assertEqual(answer.headers['X-Daytona-Api-Version'], '0.0.0-dev')
        if answer.text:
            self.assertEqual(answer.headers['Content-Type'], 'application/json; charset=utf-8')
        throttler = step.get('throttler')
        if throttler is not None:
            limits = {name for name in answer.headers if name.startswith('X-RateLimit-')}
            self.assertEqual(limits, {f'X-RateLimit-{name}-{throttler}'
                                      for name in ('Limit', 'Remaining', 'Reset')})

    def play(self, steps):
        for number, step in enumerate(steps):
            with self.subTest(number=number, of=step.get('title') or step.get('request')):
                if 'advance' in step:
                    self.daytona.advance(seconds=step['advance'])
                else:
                    self.check(step)

    def test_what_the_official_client_was_answered(self):
        self.play(ANSWERS['client'])

    def test_what_single_requests_were_answered(self):
        self.play(ANSWERS['single'])

    def test_the_limit_of_creates(self):
        api = Api(self.daytona)
        for name in ('one', 'two'):
            api.ok('POST', '/sandbox', {'name': name})
        recorded = ANSWERS['limited']
        answers = [api.call('POST', '/sandbox', {'labels': 'x'}) for _ in range(40)]
        self.assertEqual([answer.status for answer in answers],
                         [400] * recorded['after'] + [429] * (40 - recorded['after']))
        last = answers[-1]
        self.assertEqual(differences({**recorded['body'], 'path': '/api/sandbox'}, last.body), [])
        hints = {name for name in last.headers
                 if name.lower().startswith(('retry-after', 'x-ratelimit'))}
        self.assertEqual(hints, {'Retry-After-sandbox-create'})
        self.assertTrue(0 < int(last.headers['Retry-After-sandbox-create']) <= 60)

    def test_an_answer_that_is_otherwise_is_found(self):
        body = ANSWERS['client'][0]['body']
        for other in [{**body, 'more': 1}, {**body, 'cpu': '1'}, {**body, 'cpu': True},
                      {**body, 'state': 'started'}, dict(reversed(body.items()))]:
            self.assertNotEqual(differences(body, other), [])


if __name__ == '__main__':
    main()
