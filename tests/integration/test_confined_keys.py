#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Keys that a confined agent uses and cannot read: nothing in the cell has them, and they go only to
the host that the profile names.
"""

import errno
import json
import os
import pathlib
import re
import subprocess
import sys

import case
import processes

from acp import RpcError
from confinement import CONFINE, FSOPEN, LANDLOCK_CREATE_RULESET, become_user, refusing
from keys_server import Server, fields_of, make_certificates
from sync_case import SyncCase
from test_confined import AGENT, BROKER, PROGRAMS

KEY = 'sk-real-0123456789abcdef-the-key'
OUTPUT = re.compile(r'^terminal/output -> (.*)$', re.M)

# Sends the request in a file, with the placeholder instead of P, and prints the answer.
RAW = r"""
import os, socket, sys, urllib.parse
base = urllib.parse.urlsplit(os.environ.get('BASE') or os.environ['ANTHROPIC_BASE_URL'])
placeholder = os.environ['ANTHROPIC_API_KEY'].encode()
for name in sys.argv[1:]:
    s = socket.create_connection((base.hostname, base.port), 60)
    s.settimeout(60)
    answer = b''
    try:
        s.sendall(open(name, 'rb').read().replace(b'@P@', placeholder))
        while piece := s.recv(65536):
            answer += piece
    except OSError as error:
        answer += b' failed %d' % error.errno
    print(name, repr(answer.decode('latin-1')))
"""

# Searches everything that a process of the cell can read for a text.
SEEK = r"""
import os, sys
wanted = ''.join(sys.argv[1:3]).encode()  # no command line has all of it
found = set()
def look(path, data):
    if wanted in data:
        found.add(path)
def read(path, size=1 << 22):
    try:
        with open(path, 'rb') as file:
            return file.read(size)
    except OSError:
        return b''
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline'):
        look(f'/proc/{pid}/{name}', read(f'/proc/{pid}/{name}'))
    if int(pid) == os.getpid():
        continue
    for line in read(f'/proc/{pid}/maps').decode().splitlines():
        begin, end = (int(word, 16) for word in line.split()[0].split('-'))
        try:
            with open(f'/proc/{pid}/mem', 'rb', 0) as file:
                file.seek(begin)
                look(f'/proc/{pid}/mem', file.read(min(end - begin, 1 << 26)))
        except (OSError, OverflowError, ValueError):
            pass
own = [os.environ['HOME'], '/tmp', '/run', '/dev/shm', '/var/tmp', os.getcwd()]
for top in sys.argv[3:] or own:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                look(path, read(path))
print(sorted(found))
"""

# Reads the first event of a stream, releases the second one, and reads that.
STREAM = r"""
import os, socket, sys, urllib.parse
base = urllib.parse.urlsplit(os.environ['ANTHROPIC_BASE_URL'])
def ask(path):
    s = socket.create_connection((base.hostname, base.port), 60)
    s.settimeout(60)
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\nx-api-key: '
              f'{os.environ["ANTHROPIC_API_KEY"]}\r\n\r\n'.encode())
    return s.makefile('rb')
def whole(path):
    return ask(path).read().split(b'\r\n\r\n', 1)[1].decode()
first = ask(sys.argv[1])
seen = b''
while sys.argv[2].encode() not in seen:
    seen += first.read1(100)
sent = whole('/release')
rest = len(seen.split(b'\r\n\r\n', 1)[1])
while piece := first.read(1 << 16):
    rest += len(piece)
    seen = seen[-200:] + piece
print(sent, rest, b'data: 2' in seen)
"""


def request(method='GET', path='/v1/x', *fields, body=''):
    lines = [f'{method} {path} HTTP/1.1', 'Host: x', 'x-api-key: @P@', *fields, '', body]
    return '\r\n'.join(lines)


class ConfinedKeys(SyncCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.other = self.serve()
        self.server.elsewhere = f'https://localhost:{self.other.port}/v1/x'
        for name, text in (('raw.py', RAW), ('seek.py', SEEK), ('stream.py', STREAM)):
            (self.work / name).write_text(text)
        self.variables = {'ANTHROPIC_API_KEY': KEY}

    def serve(self, name='right'):
        server = Server(CERTIFICATES, name)
        self.addCleanup(server.close)
        return server

    def environment(self):
        return {**super().environment(), 'CURL_CA_BUNDLE': f'{CERTIFICATES}/ca.pem',
                **self.variables}

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), BROKER, *options, '--', *agent]

    def line(self, path='', name='ANTHROPIC_API_KEY', server=None):
        return f'{name} for https://localhost:{(server or self.server).port}{path}'

    def configured(self, **keys):
        keys = {'key': self.line(), 'confine': CONFINE, 'allow_read': str(PROGRAMS),
                'network': 'blocked', **keys}
        options = self.config(**{name: value for name, value in keys.items() if value})
        path = pathlib.Path(options[1])
        path.write_text(f'[broker]\n\taudit = {self.dir / "audit"}\n' + path.read_text())
        return options

    def begin(self, **keys):
        client = self.broker(options=self.configured(**keys), agent=[AGENT])
        self.answer = client.initialize()
        return client, client.new_session(self.work)

    def shell(self, client, session, line):
        """Runs the line in a terminal of the agent; returns its output."""
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line}')
        said = '\n'.join(client.texts(session)[before:])
        return json.loads(OUTPUT.search(said)[1])['output']

    def send_all(self, requests, prefix='', **keys):
        """Sends each request, given as raw text; returns the answers."""
        for name, text in requests.items():
            (self.work / name).write_bytes(text.encode('latin-1'))
        client, session = self.begin(**keys)
        said = self.shell(client, session, f'{prefix} python3 raw.py {" ".join(requests)}')
        answers = dict(line.split(' ', 1) for line in said.splitlines())
        self.assertEqual(sorted(answers), sorted(requests), said)
        return client, answers

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assertNotIn(KEY, client.stderr)
        self.assert_nothing_runs()

    def statuses(self, answers):
        return {name: answer.split()[1] if 'HTTP/1.1' in answer else 'none'
                for name, answer in answers.items()}

    # ---- what works ----

    def test_programs_ask_its_listener_without_a_proxy(self):
        self.variables['NO_PROXY'] = 'corp.example'
        client, session = self.begin(network='open')
        self.assertEqual(self.shell(client, session, 'echo "$NO_PROXY $no_proxy"').split(),
                         2 * ['corp.example,127.0.0.1'])
        self.ends(client)

    def test_a_program_uses_the_key_with_every_kind_of_network(self):
        for network in ('blocked', 'open', 'allow'):
            with self.subTest(network):
                self.server.heads.clear()
                self.server.bodies.clear()
                client, answers = self.send_all(
                    {'get': request('GET', '/v1/a?b=%20c', 'X-Other: 1', 'Authorization: mine'),
                     'post': request('POST', '/v1/x', 'Content-Length: 5', body='hello'),
                     'put': request('PUT', '/v1/x', 'Transfer-Encoding: chunked',
                                    body='5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n')},
                    network=network, allow_host='example.com' if network == 'allow' else None)
                self.assertEqual(set(self.statuses(answers).values()), {'200'})
                for answer in answers.values():
                    self.assertIn('X-Mine: yes', answer)
                    self.assertNotIn('Alt-Svc', answer)
                    self.assertIn('Connection: close', answer)
                self.assertEqual([head.split('\r\n')[0] for head in self.server.heads],
                                 ['GET /v1/a?b=%20c HTTP/1.1', 'POST /v1/x HTTP/1.1',
                                  'PUT /v1/x HTTP/1.1'])
                self.assertEqual(self.server.bodies, [b'', b'hello', b'hello world'])
                for head in self.server.heads:
                    fields = fields_of(head)
                    self.assertEqual(fields['x-api-key'], KEY)
                    self.assertEqual(fields['host'], f'localhost:{self.server.port}')
                    self.assertNotIn('authorization', fields)
                self.assertEqual(fields_of(self.server.heads[0])['x-other'], '1')
                self.assertEqual(self.answer['_meta']['broker']['keys'], [self.line()])
                self.ends(client)

    def test_other_keys_go_where_their_header_is(self):
        self.variables['MY_API_KEY'] = 'another-key-0123456789'
        client, answers = self.send_all(
            {'x': request('GET', '/v1/x').replace('x-api-key: @P@', 'Authorization: Bearer @P@')},
            prefix='ANTHROPIC_API_KEY=$MY_API_KEY BASE=$MY_BASE_URL',
            key=[self.line(), self.line('/v1', 'MY_API_KEY', self.other)])
        self.assertEqual(self.statuses(answers), {'x': '200'})
        fields = fields_of(self.other.heads[0])
        self.assertEqual(fields['authorization'], 'Bearer another-key-0123456789')
        self.assertNotIn('x-api-key', fields)
        self.assertEqual(self.server.heads, [])
        self.ends(client)

    def test_an_answer_comes_as_it_is_sent(self):
        client, session = self.begin()
        said = self.shell(client, session, 'python3 stream.py /events "data: 1"')
        self.assertEqual(said.split()[2], 'True', said)
        self.ends(client)

    def test_a_slow_reader_slows_the_server_down(self):
        size = 96 << 20
        client, session = self.begin()
        said = self.shell(client, session, f'python3 stream.py "/flood?{size}" x')
        sent, rest, _ = said.split()
        self.assertEqual(int(rest), size)
        self.assertLess(int(sent), size // 2)
        self.ends(client)

    def test_a_long_body_arrives_whole(self):
        size = 3 << 20
        body = ''.join(f'{65536:x}\r\n{"y" * 65536}\r\n' for _ in range(size // 65536))
        client, answers = self.send_all({
            'one': request('POST', '/v1/x', f'Content-Length: {size}', body='z' * size),
            'two': request('POST', '/v1/x', 'Transfer-Encoding: chunked',
                           body=body + '0\r\n\r\n')})
        self.assertEqual(self.statuses(answers), {'one': '200', 'two': '200'})
        self.assertEqual(self.server.bodies, [b'z' * size, b'y' * size])
        self.ends(client)

    # ---- places where the key must not be ----

    def test_the_key_is_nowhere_in_the_cell(self):
        half = len(KEY) // 2
        seek = f'python3 seek.py {KEY[:half]} {KEY[half:]}'
        # Outside of a cell the same search finds the key.
        done = subprocess.run(
            ['sh', '-c', f'{seek.replace("seek.py", str(self.work / "seek.py"))} {self.dir}; :'],
            env=self.environment(), capture_output=True, text=True, check=True)
        self.assertIn('/environ', done.stdout)
        self.variables['OTHER_NAME'] = f'x{KEY}'
        self.variables['CODEX_HOME'] = ''
        login = self.dir / 'home/.codex/auth.json'
        login.parent.mkdir(parents=True)
        login.write_text(json.dumps({'OPENAI_API_KEY': KEY}))
        client, session = self.begin(agent_state='codex')
        (warned, text) = ('\n'.join(self.answer['_meta']['broker']['warnings']),
                          self.shell(client, session, 'python3 raw.py; env'))
        self.assertNotIn(KEY, text)
        self.assertNotIn('OTHER_NAME', text)
        self.assertNames(warned, 'OTHER_NAME | auth.json')
        placeholder = re.search(r'^ANTHROPIC_API_KEY=(.*)$', text, re.M)[1]
        self.assertEqual(self.shell(client, session, seek).strip(), '[]')
        # In the cell the search finds what is there: the placeholder.
        cut = len(placeholder) // 2
        found = self.shell(
            client, session, f'python3 seek.py {placeholder[:cut]} {placeholder[cut:]}')
        self.assertIn('/environ', found)
        self.assertIn('/mem', found)
        self.ends(client)
        for path in (self.dir / 'audit', *self.dir.glob('journal*')):
            self.assertNotIn(KEY, path.read_text())

    def test_the_process_that_has_it_shows_it_to_nobody(self):
        client, _ = self.begin()
        holder, = holders(client.pid)
        for name in ('environ', 'mem', 'maps'):
            if os.geteuid() != 0:
                with self.assertRaises(OSError):
                    pathlib.Path(f'/proc/{holder}/{name}').read_bytes()
        self.assertNotIn(KEY.encode(), processes.read_file(f'/proc/{holder}/cmdline'))
        status = pathlib.Path(f'/proc/{holder}/status').read_text()
        self.assertRegex(status, r'(?m)^Seccomp:\s+2$')
        self.assertRegex(status, r'(?m)^NoNewPrivs:\s+1$')
        self.ends(client)

    # ---- attacks ----

    def test_what_is_not_one_plain_request_is_not_sent_on(self):
        length = 'Content-Length: 5'
        chunked = 'Transfer-Encoding: chunked'
        wrong = {
            'absolute': request('GET', f'https://localhost:{self.other.port}/v1/x'),
            'authority': request('GET', f'@localhost:{self.other.port}/v1/x'),
            'connect': request('CONNECT', f'localhost:{self.other.port}'),
            'trace': request('TRACE'), 'options': request('OPTIONS', '*'),
            'lower': request('get'), 'none': request().replace('@P@', 'acp-broker-placeholder-0'),
            'old': request().replace('HTTP/1.1', 'HTTP/1.0'),
            'two-hosts': request('GET', '/v1/x', 'Host: y'),
            'no-host': request().replace('Host: x\r\n', ''),
            'two-lengths': request('POST', '/v1/x', length, 'Content-Length: 4', body='hello'),
            'both': request('POST', '/v1/x', length, chunked, body='0\r\n\r\n'),
            'two-codings': request('POST', '/v1/x', chunked, chunked, body='0\r\n\r\n'),
            'coding': request('POST', '/v1/x', 'Transfer-Encoding: xchunked', body='0\r\n\r\n'),
            'gzip': request('POST', '/v1/x', 'Transfer-Encoding: gzip, chunked', body='0\r\n\r\n'),
            'space': request('POST', '/v1/x', 'Content-Length : 5', body='hello'),
            'fold': request('GET', '/v1/x', 'X-A: b', ' c: d'),
            'plus': request('POST', '/v1/x', 'Content-Length: +5', body='hello'),
            'bare-lf': request().replace('Host: x\r\n', 'Host: x\n'),
            'bare-cr': request('GET', '/v1/x', 'X-A: b\rX-B: c'),
            'nul': request('GET', '/v1/x', 'X-A: b\0c'),
            'get-body': request('GET', '/v1/x', length, body='hello'),
            'target-space': request('GET', '/v1/x y'),
            'expect': request('POST', '/v1/x', length, 'Expect: 200-ok', body='hello'),
        }
        below = {f'path-{i}': request('GET', path) for i, path in enumerate((
            '/v2/x', '/v1x', '/', '/v1/../v2', '/v1/%2e%2e/v2', '/v1/..%2fv2', '/v1/.%2E%5Cv2',
            '/v1/./x', '/v1/..;x/v2', '/v1/%2e', '/V1/x'))}
        client, answers = self.send_all({**wrong, **below, 'good': request()},
                                        key=self.line('/v1'), prefix='BASE=$ANTHROPIC_BASE_URL')
        statuses = self.statuses(answers)
        self.assertEqual(statuses.pop('good'), '200')
        for name, status in statuses.items():
            self.assertIn(status, ('400', '401', '403', '405', '417', '501', '505'), name)
        self.assertEqual({statuses[name] for name in below}, {'403'})
        self.assertEqual([head.split('\r\n')[0] for head in self.server.heads],
                         ['GET /v1/x HTTP/1.1'])
        self.assertEqual(self.other.heads, [])
        self.ends(client)

    def test_bodies_that_two_readers_would_read_differently_end_nothing_else(self):
        hidden = 'GET /v1/hidden HTTP/1.1\r\nHost: x\r\nx-api-key: @P@\r\n\r\n'
        chunked = 'Transfer-Encoding: chunked'
        client, _ = self.send_all({
            'after': request('POST', '/v1/x', 'Content-Length: 5', body='hello' + hidden),
            'after-get': request() + hidden,
            'after-chunks': request('POST', '/v1/x', chunked, body='0\r\n\r\n' + hidden),
            'extension': request('POST', '/v1/x', chunked, body='1;a\r\nx\r\n0\r\n\r\n'),
            'trailer': request('POST', '/v1/x', chunked, body='0\r\nX-A: b\r\n\r\n'),
            'size': request('POST', '/v1/x', chunked, body='0x1\r\nx\r\n0\r\n\r\n'),
            'lf': request('POST', '/v1/x', chunked, body='1\nx\r\n0\r\n\r\n'),
            'long': request('POST', '/v1/x', chunked, body='1\r\nxy\r\n0\r\n\r\n'),
            'short': request('POST', '/v1/x', 'Content-Length: 0', body=hidden)})
        self.ends(client)
        for head in self.server.heads:
            self.assertNotIn('hidden', head)
        self.assertFalse(any(b'hidden' in body for body in self.server.bodies))

    def test_fields_that_would_change_the_place_or_the_key_are_left_out(self):
        port = self.other.port
        client, answers = self.send_all({'x': request(
            'POST', '/v1/x', f'X-Forwarded-Host: localhost:{port}', 'Proxy-Authorization: a',
            'Connection: keep-alive, x-hop', 'X-Hop: 1', 'Upgrade: h2c', 'TE: trailers',
            'X-HTTP-Method-Override: TRACE', 'Accept-Encoding: gzip', 'Api-Key: b',
            'X-Api-Key: c', 'Authorization: Bearer d', 'Content-Length: 0', 'X-Empty:',
            f'Forwarded: host=localhost:{port}', 'X-Original-URL: /v2/secret')})
        self.assertEqual(self.statuses(answers), {'x': '200'})
        fields = fields_of(self.server.heads[0])
        self.assertEqual(fields['host'], f'localhost:{self.server.port}')
        self.assertEqual(fields['x-api-key'], KEY)
        self.assertEqual(fields['accept-encoding'], 'identity')
        for name in ('proxy-authorization', 'x-hop', 'upgrade', 'te', 'x-http-method-override',
                     'api-key', 'authorization', 'forwarded', 'x-original-url'):
            self.assertNotIn(name, fields)
        self.ends(client)

    def test_a_redirect_is_not_followed(self):
        client, answers = self.send_all({
            'x': request('POST', '/v1/redirect', 'Content-Length: 5', body='hello')})
        self.assertEqual(self.statuses(answers), {'x': '307'})
        self.assertIn(self.server.elsewhere, answers['x'])
        self.assertEqual(self.other.heads, [])
        self.ends(client)

    def test_an_answer_with_the_key_does_not_arrive(self):
        self.server.released.set()
        client, answers = self.send_all({
            'echo': request('GET', '/v1/echo'), 'split': request('GET', '/v1/split')})
        for answer in answers.values():
            self.assertNotIn(KEY, answer)
            self.assertNotIn(KEY[5:], answer)
            self.assertIn('failed', answer)
        self.assertEqual(len(self.server.heads), 2)
        self.assertTrue(processes.wait_until(lambda: any(
            'key = ANTHROPIC_API_KEY' in text for text in self.notices(client))))
        self.ends(client)

    def test_only_a_host_that_shows_its_certificate_gets_it(self):
        wrong = self.serve('wrong')
        client, answers = self.send_all({'x': request()}, key=self.line(server=wrong))
        self.assertEqual(self.statuses(answers), {'x': '502'})
        self.assertEqual(wrong.heads, [])
        self.assertTrue(processes.wait_until(lambda: any(
            'ANTHROPIC_API_KEY' in text for text in self.notices(client))))
        self.ends(client)

    # ---- how it ends, and what the user is told ----

    def test_the_audit_has_each_request(self):
        client, _ = self.send_all({'a': request(), 'b': request('GET', '/v1/redirect')})
        self.ends(client)
        lines = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        self.assertEqual(
            [(line['subject'], line['way'], line['rule'], line['decision'], line['result'])
             for line in lines if line['operation'] == 'network/connect'],
            [(f'localhost:{self.server.port}', 'key', 'key = ANTHROPIC_API_KEY', 'allow-once',
              'connected')] * 2)

    def test_the_end_of_its_process_is_told_and_nobody_has_the_key_then(self):
        (self.work / 'x').write_text(request())
        client, session = self.begin()
        for pid in holders(client.pid):
            processes.kill(pid)
        self.assertTrue(processes.wait_until(lambda: any(
            'has ended' in text for text in self.notices(client))))
        said = self.shell(client, session, 'python3 raw.py x 2>&1')
        self.assertIn('ConnectionRefusedError', said)
        self.ends(client)

    def checked(self, agent=AGENT, **keys):
        done = subprocess.run([BROKER, *self.configured(**keys), 'check', '--', agent],
                              env=self.environment(), capture_output=True, text=True, check=False)
        self.assertNotIn(KEY, done.stdout + done.stderr)
        return done

    def test_check_says_what_a_key_stands_for(self):
        done = self.checked(key='ANTHROPIC_API_KEY')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNames(done.stdout, 'ANTHROPIC_API_KEY | https://api.anthropic.com | x-api-key |'
                                      ' ANTHROPIC_BASE_URL')

    def test_wrong_lines_are_refused(self):
        gateway = {'ANTHROPIC_BASE_URL': 'https://gateway.example'}
        for wanted, variables, keys in (
                ('ANTHROPIC_API_KEY | not set', {'ANTHROPIC_API_KEY': ''}, {}),
                ('ANTHROPIC_API_KEY | blank', {'ANTHROPIC_API_KEY': 'two words'}, {}),
                ('ANTHROPIC_API_KEY | 8', {'ANTHROPIC_API_KEY': 'short'}, {}),
                ('confine', {}, {'confine': None}),
                ('secret-env', {}, {'secret_env': 'ANTHROPIC_API_KEY'}),
                ('env', {}, {'env': 'ANTHROPIC_BASE_URL=http://x'}),
                ('secret-env | OTHER', {'OTHER': KEY}, {'secret_env': 'OTHER'}),
                ('ANTHROPIC_BASE_URL', gateway, {'key': 'ANTHROPIC_API_KEY'}),
                ('https://', {}, {'key': 'UNKNOWN_KEY'}),
                ('https://', {}, {'key': 'UNKNOWN_KEY for http://example.com'}),
                ('https://', {}, {'key': 'UNKNOWN_KEY for https://a@example.com'}),
                ('https://', {}, {'key': 'UNKNOWN_KEY for https://example.com/a/../b'}),
                ('https://', {}, {'key': 'UNKNOWN_KEY for https://example.com:0'}),
                ('another key', {}, {'key': [self.line(), self.line(name='ANTHROPIC_AUTH_TOKEN')]})
        ):
            with self.subTest(wanted=wanted, keys=keys):
                self.variables = {'ANTHROPIC_API_KEY': KEY, 'UNKNOWN_KEY': KEY, **variables}
                done = self.checked(**keys)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertNames(done.stderr, wanted)

    def test_an_agent_that_reads_no_address_is_refused_its_key(self):
        self.variables = {'OPENAI_API_KEY': KEY}
        done = self.checked(agent='codex-acp', key='OPENAI_API_KEY')
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertNames(done.stderr, 'test | OPENAI_API_KEY | Codex | codex-acp login')
        done = self.checked(agent=AGENT, key='OPENAI_API_KEY')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_neither_the_profile_nor_the_agents_section_gives_it_a_key(self):
        for section, line in (('agent', f'ANTHROPIC_API_KEY={KEY}'), ('agent', f'OTHER={KEY}'),
                              ('profile', f'OTHER=x{KEY}')):
            with self.subTest(section=section, line=line):
                keys = {'env': line} if section == 'profile' else {}
                options = self.configured(key='ANTHROPIC_API_KEY', **keys)
                path = pathlib.Path(options[1])
                more = f'\tenv = {line}\n' if section == 'agent' else ''
                path.write_text(f'{path.read_text()}[agent "a"]\n\tcommand = {AGENT}\n{more}')
                done = subprocess.run([BROKER, *options, '--agent', 'a', 'check'],
                                      env=self.environment(), capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertNames(done.stderr, line.split('=')[0])

    def test_a_command_of_the_editor_has_a_placeholder(self):
        client, session = self.begin()
        done = client.call('_broker/exec', {'sessionId': session, 'command': ['env']})
        self.assertIn('ANTHROPIC_API_KEY=', json.dumps(done))
        self.assertNotIn(KEY, json.dumps(done))
        self.ends(client)

    def telling(self, isolation, **keys):
        """A client whose agent and setup write their environment, if they start unconfined."""
        program = self.dir / 'telling-agent'
        program.write_text(f'#!/bin/sh\nenv >>{self.dir}/told\nexec {AGENT} "$@"\n')
        program.chmod(0o755)
        if isolation == 'copy':
            keys['setup'] = f'"env >>{self.dir}/told"'
        options = self.configured(confine='yes', network='open', isolation=isolation, **keys)
        return self.broker(options=options, agent=[str(program)])

    def test_where_no_cell_is_possible_nobody_is_started_with_a_key(self):
        told = self.dir / 'told'
        unavailable = 'CELL_UNAVAILABLE'
        for isolation in ('copy', 'none'):
            self.wrapper = refusing(FSOPEN, errno.EPERM)
            client = self.telling(isolation, key=None)  # unconfined, and it has the key
            can = client.initialize()['_meta']['broker']['capabilities']
            self.assertFalse(can['confined'])
            self.ends(client)
            self.assertIn(f'ANTHROPIC_API_KEY={KEY}\n', told.read_text())
            told.unlink()
            for call, error, has_code in ((FSOPEN, errno.EPERM, True),
                                          (LANDLOCK_CREATE_RULESET, errno.ENOSYS, True),
                                          (FSOPEN, errno.ENOMEM, False)):
                self.wrapper = refusing(call, error)
                client = self.telling(isolation)
                with self.assertRaises(RpcError) as caught:
                    client.initialize()
                self.assertEqual(caught.exception.data['code'] == unavailable, has_code, error)
                client.close_stdin()
                client.wait()
                self.assertFalse(told.exists())
                self.assertNotIn(KEY, client.stderr + str(caught.exception))
                self.assert_nothing_runs()

    def test_without_a_cell_no_agent_starts(self):
        with self.assertRaises(RpcError) as caught:
            client = self.broker(options=self.configured(confine='no', network=None), agent=[AGENT])
            client.initialize()
        self.assertEqual(caught.exception.data['code'], 'CONFIG_INVALID')


def holders(broker):
    """The processes below a broker that hold keys."""
    return [pid for pid in processes.descendants(broker)
            if b'--acp-broker-keys' in processes.read_file(f'/proc/{pid}/cmdline')
            and processes.read_file(f'/proc/{processes.parent_of(pid)}/cmdline').find(
                b'--acp-broker-keys') < 0]


if __name__ == '__main__':
    CERTIFICATES = make_certificates()
    become_user(PROGRAMS, CERTIFICATES)
    case.main()
