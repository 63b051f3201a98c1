#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs docs/daemons.md: its configuration, its commands and every line of its conversations."""

import json
import os
import re
import signal
import subprocess

import case
from processes import PATIENCE
from sync_case import SyncCase, checked

PAGE = (case.ROOT / 'docs' / 'daemons.md').read_text()
BLOCKS = re.findall(r'^```(\w*)\n(.*?)^```$', PAGE, re.M | re.S)

# The page uses names that make sense to its readers; these are the ones of the tests.
NAMES = {'claude-agent-acp': case.AGENT, 'Fix the failing test': 'say Done.'}

# Members whose values must be equal; for all others only the type must be.
EXACT = {'method', 'state', 'previous', 'code', 'retryable', 'stage', 'stopReason', 'sessionId',
         'isHealthy', 'isHeld', 'isReadable', 'localRoot', 'profile', 'backend', 'sync'}

SCHEMAS = {'_broker/session/status': 'session-status', '_broker/health': 'health',
           '_broker/usage': 'usage', '_broker/exec': 'exec',
           '_broker/session/state': 'session-state'}


def blocks(kind):
    return [text for name, text in BLOCKS if name == kind]


def misfit(example, value, where='it'):
    """Why a value does not fit the example, or None if it does. It may have more members."""
    if isinstance(example, dict) and isinstance(value, dict):
        for key, part in example.items():
            if key not in value:
                return f'{where} has no {key}'
            if key in EXACT and not isinstance(part, (dict, list)) and part != value[key]:
                return f'{where}.{key} is {value[key]!r}, not {part!r}'
            why = misfit(part, value[key], f'{where}.{key}')
            if why:
                return why
        return None
    if isinstance(example, list) and isinstance(value, list):
        for part in example:
            if not any(part == one if isinstance(part, str) else not misfit(part, one)
                       for one in value):
                return f'{where} has nothing like {part!r}'
        return None
    return None if type(example) is type(value) else f'{where} is {value!r}, not like {example!r}'


class Page(SyncCase):
    def setUp(self):
        super().setUp()
        self.file = self.dir / 'config'
        self.file.write_text(self.real(blocks('ini')[0]))
        (self.work / 'file').write_text('text\n')
        self.methods = {}

    def real(self, text):
        for name, real in {**NAMES, '/srv/work': str(self.work)}.items():
            text = text.replace(name, real)
        return text

    def command(self, line, status=0):
        words = line.split()
        self.assertEqual(words[0], 'acp-broker', line)
        done = subprocess.run([case.BROKER, '--config', str(self.file), *words[1:]],
                              cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (line, done.stdout, done.stderr))
        return done.stdout

    def block(self, words):
        """The only block of the page that has just this command."""
        block, = [text.strip() for text in blocks('sh')
                  if re.fullmatch(f'acp-broker {words}[^\n]*\n', text)]
        return block

    def service(self):
        return self.start([case.BROKER, '--config', str(self.file), '--profile', 'job'])

    def schema_of(self, message, value):
        """
        Checks an answer or a notification of the broker's own against its schema; returns its
        content.
        """
        if 'method' in value:
            name, part, content = value['method'], 'params', value['params']
        else:
            name, part, content = self.methods[value['id']], 'result', value.get('result')
        if name in SCHEMAS and content is not None:
            checked(SCHEMAS[name], part, content)

    def hear(self, client, line):
        example = json.loads(self.real(line))
        if 'id' in example:
            message = client.response(str(example['id']).encode(), PATIENCE)
            self.assertIsNone(misfit(example, message.value), message.value)
        else:
            message = client.wait_for(
                lambda m: m.method == example['method'] and not misfit(example, m.value), PATIENCE)
        self.schema_of(message, example)
        self.schema_of(message, message.value)

    def play(self, client, text):
        for line in text.splitlines():
            self.assertIn(line[:2], ('→ ', '← '), line)
            if line[0] == '→':
                value = json.loads(line[2:])
                self.methods[value['id']] = value['method']
                client.places[str(value['id']).encode()] = len(client.messages)
                client.send_line(self.real(line[2:]).encode())
            else:
                self.hear(client, line[2:])

    def test_the_commands_of_the_start(self):
        lines = blocks('sh')[0].splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.command(line)

    def test_the_conversations_the_end_and_the_recovery(self):
        client = self.service()
        for text in blocks(''):
            self.play(client, text)
        self.assertGreaterEqual(set(self.methods.values()),
                                set(SCHEMAS) - {'_broker/session/state'})
        self.wait_active()
        told = json.loads(self.command(self.block('status')))
        self.assertEqual([(broker['process'], broker['sessions'][0]['sessions'])
                          for broker in told['brokers']], [(client.pid, ['sess-1'])])
        os.kill(client.pid, signal.SIGKILL)
        client.wait(PATIENCE)
        self.assert_nothing_runs()
        listed = json.loads(self.command(self.block('sessions list')))
        self.assertIsNone(misfit(json.loads(self.real(blocks('json')[0])), listed), listed)
        self.command(self.block('sessions collect'))
        self.assertEqual([record['state'] for record in self.records()], ['stopped'])

    def wait_active(self):
        self.assertEqual([record['state'] for record in self.records()], ['active'])

    def test_the_client_in_python(self):
        folder = self.dir / 'bin'
        folder.mkdir()
        (folder / 'acp-broker').symlink_to(case.BROKER)
        place = self.dir / 'home' / 'config' / 'acp-broker'
        place.mkdir(parents=True)
        self.file.replace(place / 'config')
        script = self.dir / 'client.py'
        source, = blocks('python')
        self.assertLessEqual(source.count('\n'), 40)
        script.write_text(source)
        env = self.environment()
        env['PATH'] = f'{folder}:{env["PATH"]}'

        def run(prompt):
            return subprocess.run(['/usr/bin/python3', str(script), str(self.work), prompt],
                                  env=env, text=True, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False, timeout=PATIENCE)
        done = run('say Done.')
        self.assertEqual((done.returncode, done.stdout), (0, 'Done.'), done.stderr)
        self.assertEqual([record['state'] for record in self.records()], ['stopped'])
        (place / 'config').write_text('[broker\n')
        self.assertEqual((run('say Done.').returncode, run('x').stdout), (2, ''))

    def test_the_end(self):
        client = self.service()
        self.play(client, blocks('')[0])
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0)
        client.threads[0].join(PATIENCE)
        states = [m.params['state'] for m in client.received
                  if m.method == '_broker/session/state']
        self.assertEqual(states[-2:], ['collecting', 'stopped'])
        for line in client.stderr.splitlines():
            self.assertRegex(line, r'^<[3-7]>')

    def test_a_wrong_configuration_answers_nothing(self):
        self.file.write_text(self.file.read_text() + '\tdenny = write x\n')
        client = self.service()
        client.start('initialize', {'protocolVersion': 1})
        self.assertEqual(client.wait(PATIENCE), 2)
        client.threads[0].join(PATIENCE)
        self.assertEqual(client.received, [])
        self.assertEqual(len(client.stderr.splitlines()), 1)


if __name__ == '__main__':
    case.main()
