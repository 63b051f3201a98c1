#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
An agent in a cell with `network = allow` or `ask`, on a machine that reaches some hosts only by an
HTTP proxy: the broker asks the proxy for each connection that it has allowed.
"""

import contextlib
import shutil
import socket
import subprocess
import sys
import threading
import unittest
import urllib.parse

import case
import far_proxy
import internet
import processes

from acp import RpcError
from confinement import CONFINE, become_user
from far_proxy import (GARBAGE_PORT, KEYS_HOST, LOGIN, LOGIN_PORT, NOBODY_PORT, PASSWORD,
                       PROXY_PORT, TINY_LOGIN, TINY_PORT)
from internet import HERE, METADATA, OTHER_PORT, PRIVATE, PUBLIC, STREAM_PORT, THERE, WEB_PORT
from keys_server import ASK, make_certificates
from test_confined import AGENT, BROKER, PROGRAMS
from test_confined_network import FOLDER, NetworkCase

USER = f'me:{urllib.parse.quote(PASSWORD, safe="")}'
KEY = 'sk-real-0123456789abcdef-the-key'
SECRETS = (PASSWORD, USER, LOGIN.split()[1])


class ConfinedProxy(NetworkCase):
    def use(self, proxy=f'http://proxy.example:{PROXY_PORT}', no_proxy='', **others):
        """Sets the variables of the broker."""
        self.proxy = {'HTTPS_PROXY': proxy, 'NO_PROXY': no_proxy, **others}

    def environment(self):
        return {**super().environment(), **getattr(self, 'proxy', {})}

    def outside(self, words):
        self.proxy = {}
        return super().outside(words)

    def asked(self):
        """What the proxies were asked."""
        return [line.split(maxsplit=1)[1] for line in self.arrived() if line.startswith('proxy')]

    def looked_up(self):
        """The names that the name server was asked for."""
        return {line.split()[1] for line in self.arrived() if line.startswith('name')}

    # ---- hosts ----

    def test_hosts_are_reached_through_the_proxy_alone(self):
        self.use(proxy=f'http://{USER}@proxy.example:{LOGIN_PORT}/')
        client, session = self.allowing(
            allow_host=[f'far.outer:{STREAM_PORT}', '*.below.outer'])
        said = self.try_all(
            client, session, f'tcp far.outer {STREAM_PORT}', f'connect far.outer {STREAM_PORT}',
            f'socks a.below.outer {OTHER_PORT}', f'tcp other.outer {STREAM_PORT}')
        self.assertEqual(said[:3], [f'reached HELLO {PUBLIC}'] * 3)
        self.assertNotIn('reached', said[3])
        self.assertEqual(self.looked_up(), {'proxy.example'})
        self.assertEqual(self.asked(), [
            f'CONNECT {host} with a login' for host in
            [f'far.outer:{STREAM_PORT}'] * 2 + [f'a.below.outer:{OTHER_PORT}']])
        rule = f'allow-host = far.outer:{STREAM_PORT}'
        self.assertEqual(self.audited()[0], (
            f'far.outer:{STREAM_PORT}', 'socket', rule, 'allow-once', 'connected'))
        self.ends(client)

    def test_the_password_is_in_no_log_and_not_in_the_cell(self):
        self.use(proxy=f'http://{USER}@proxy.example:{LOGIN_PORT}/')
        client, session = self.allowing(allow_host='far.outer')
        said = self.shell(client, session, 'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline '
                          f'| tr "\\0" "\\n"; python3 try.py tcp far.outer {STREAM_PORT}')
        self.assertIn(f'reached HELLO {PUBLIC}', said)
        outer = ''.join(processes.read_file(f'/proc/{pid}/cmdline').decode()
                        for pid in processes.descendants(client.pid))
        relay = [pid for pid in processes.descendants(client.pid)
                 if b'--acp-broker-relay' in processes.read_file(f'/proc/{pid}/cmdline')]
        self.assertTrue(relay)
        self.ends(client)
        texts = [said, outer, ''.join(client.stderr), (self.dir / 'audit').read_text(),
                 '\n'.join(self.notices(client))]
        for secret in SECRETS:
            for text in texts:
                self.assertNotIn(secret, text)

    def test_no_proxy_names_hosts_that_are_reached_directly(self):
        self.use(no_proxy='direct.example, 10.99.0.0/16')
        client, session = self.allowing(allow_host=['direct.example', 'a.direct.example'],
                                        allow_cidr='10.99.0.0/16')
        said = self.try_all(client, session, f'tcp direct.example {STREAM_PORT}',
                            f'connect a.direct.example {STREAM_PORT}',
                            f'tcp {PRIVATE} {STREAM_PORT}')
        self.assertEqual(said, [f'reached HELLO {PUBLIC}'] * 2 + [f'reached HELLO {PRIVATE}'])
        self.assertEqual(self.asked(), [])
        self.assertEqual(self.looked_up(), {'direct.example', 'a.direct.example'})
        self.ends(client)

    def test_addresses_are_checked_before_the_proxy_is_asked(self):
        self.use()
        client, session = self.allowing(
            allow_cidr=['10.99.0.0/16', '169.254.0.0/16', '127.0.0.0/8'])
        said = self.try_all(client, session, f'tcp {PRIVATE} {STREAM_PORT}',
                            f'tcp {METADATA} {STREAM_PORT}', f'connect 127.0.0.1 {self.port}',
                            f'connect 127.0.0.2 {PROXY_PORT}', f'connect {PUBLIC} {STREAM_PORT}')
        self.assertEqual(said[0], f'reached HELLO {PRIVATE}')
        for each in said[1:]:
            self.assertNotIn('reached', each)
        self.assertEqual(self.asked(), [f'CONNECT {PRIVATE}:{STREAM_PORT}'])
        self.ends(client)

    def test_the_users_answer_comes_before_the_proxys(self):
        self.use()
        client, session = self.allowing(network='ask')

        def choose(params):
            option = 'once' if 'far.outer' in params['toolCall']['title'] else 'no'
            return {'outcome': {'outcome': 'selected', 'optionId': option}}
        client.host.replies['session/request_permission'] = choose
        said = self.try_all(client, session, f'tcp far.outer {STREAM_PORT}',
                            f'connect no.outer {STREAM_PORT}')
        self.assertEqual(said, [f'reached HELLO {PUBLIC}', 'status 403'])
        self.assertEqual(self.asked(), [f'CONNECT far.outer:{STREAM_PORT}'])
        self.assertEqual(self.looked_up(), {'proxy.example'})
        self.ends(client)

    def test_plain_requests_and_npm_work_through_it(self):
        self.use()
        client, session = self.allowing(allow_host=f'packages.outer:{WEB_PORT}')
        said = self.shell(client, session, 'npm install --no-audit --no-fund --registry='
                          f'http://packages.outer:{WEB_PORT} small 2>&1; '
                          'cat node_modules/small/package.json')
        self.assertIn('"name": "small"', said)
        self.assertEqual(set(self.asked()), {f'CONNECT packages.outer:{WEB_PORT}'})
        self.ends(client)

    def test_a_key_goes_through_the_proxy_and_only_the_server_sees_it(self):
        port = int((FOLDER / 'keys-port').read_text())
        self.use(proxy=f'http://{USER}@proxy.example:{LOGIN_PORT}', ANTHROPIC_API_KEY=KEY,
                 CURL_CA_BUNDLE=f'{CERTIFICATES}/ca.pem')
        (self.work / 'ask.py').write_text(ASK)
        client, session = self.allowing(
            network='blocked', key=f'ANTHROPIC_API_KEY for https://{KEYS_HOST}:{port}')
        said = self.shell(client, session, 'python3 ask.py; env')
        self.assertIn('status 200', said)
        self.assertIn(f'key {KEY} None', self.arrived())
        self.assertEqual(self.asked(), [f'CONNECT {KEYS_HOST}:{port} with a login'])
        self.assertEqual(self.looked_up(), {'proxy.example'})
        self.ends(client)
        for secret in (*SECRETS, KEY):
            self.assertNotIn(secret, said + ''.join(client.stderr))

    def test_a_key_goes_through_a_proxy_that_is_an_address(self):
        port = int((FOLDER / 'keys-port').read_text())
        (self.work / 'ask.py').write_text(ASK)
        for host in ('127.0.0.1', '::1'):
            gate = self.local_proxy(host)
            self.use(proxy=f'http://[{host}]:{gate}' if ':' in host else f'http://{host}:{gate}',
                     ANTHROPIC_API_KEY=KEY, CURL_CA_BUNDLE=f'{CERTIFICATES}/ca.pem')
            self.heard = len(self.log())
            client, session = self.allowing(
                network='blocked', key=f'ANTHROPIC_API_KEY for https://{KEYS_HOST}:{port}')
            self.assertIn('status 200', self.shell(client, session, 'python3 ask.py'))
            self.assertEqual(self.asked(), [f'CONNECT {KEYS_HOST}:{port}'])
            self.assertEqual(self.looked_up(), set())
            self.ends(client)

    @unittest.skipUnless(shutil.which('tinyproxy', path='/usr/bin:/usr/sbin'), 'no tinyproxy')
    def test_tinyproxy(self):
        self.use(proxy=f'http://{TINY_LOGIN}@proxy.example:{TINY_PORT}')
        client, session = self.allowing(allow_host=['allowed.example', 'none.example'])
        said = self.try_all(client, session, f'tcp allowed.example {STREAM_PORT}',
                            f'connect allowed.example {STREAM_PORT}',
                            f'connect allowed.example 1', f'tcp none.example {STREAM_PORT}')
        self.assertEqual(said[:2], [f'reached HELLO {PUBLIC}'] * 2)
        self.assertEqual(said[2], 'status 502')
        self.assertNotIn('reached', said[3])
        self.assertIn(f'CONNECT allowed.example:{STREAM_PORT} ',
                      (FOLDER / 'tinyproxy.log').read_text())
        self.ends(client)

    # ---- the proxy itself ----

    def test_the_cell_does_not_reach_the_proxy_itself(self):
        """Each attack asks the proxy for a host that the profile does not allow."""
        gates = ['proxy.example', THERE, 'alias.example', f'::ffff:{THERE}']
        attacks = [f'through {gate} {PROXY_PORT} evil.outer {STREAM_PORT}' for gate in gates]
        for words in attacks:
            self.assertEqual(self.outside(words).strip(), f'reached HELLO {PUBLIC}')
        networks = {'allow_cidr': ['10.77.0.0/24'],
                    'allow_host': ['proxy.example', 'alias.example']}
        attacks += [f'through 198.18.0.1 3128 {gate} {PROXY_PORT}' for gate in gates[:2]]
        attacks += [f'socks {gate} {PROXY_PORT}' for gate in gates[:2]]
        gate = f'http://{gates[0]}:{PROXY_PORT}'
        other = f'http://{gates[0]}:{LOGIN_PORT}'
        for variables in ({}, {'no_proxy': '10.77.0.0/24, alias.example'}, {'no_proxy': '*'},
                          {'proxy': '', 'http_proxy': gate}, {'proxy': other, 'ALL_PROXY': gate}):
            self.use(**variables)
            self.heard = len(self.log())
            client, session = self.allowing(**networks)
            said = self.try_all(client, session, *attacks)
            self.assertEqual(said[0], 'status 403')  # this is our own proxy
            for words, each in zip(attacks, said):
                self.assertNotIn('reached', each, (variables, words))
            self.assertEqual(self.asked(), [])
            self.ends(client)

    def test_programs_that_are_told_of_the_proxy_find_ours_at_its_place(self):
        self.use()
        client, session = self.allowing(allow_host=f'far.outer:{STREAM_PORT}')
        said = self.try_all(
            client, session, f'through proxy.example {PROXY_PORT} far.outer {STREAM_PORT}',
            f'through proxy.example {PROXY_PORT} evil.outer {STREAM_PORT}')
        self.assertEqual(said, [f'reached HELLO {PUBLIC}', 'status 403'])
        self.assertEqual(self.asked(), [f'CONNECT far.outer:{STREAM_PORT}'])
        self.ends(client)

    def local_proxy(self, host='0.0.0.0'):
        """A proxy on this machine, which uses the far one; returns its port."""
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        listener = socket.create_server((host, 0), family=family)
        self.addCleanup(listener.close)
        self.addCleanup(lambda: listener.shutdown(socket.SHUT_RDWR))
        threading.Thread(target=self.pass_on, args=(listener,), daemon=True).start()
        return listener.getsockname()[1]

    def pass_on(self, listener):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    @staticmethod
    def carry(near):
        with near, socket.create_connection((THERE, PROXY_PORT), 60) as far:
            up = threading.Thread(target=far_proxy.relay, args=(near.recv, far), daemon=True)
            up.start()
            far_proxy.relay(far.recv, near)
            up.join(60)

    def test_a_proxy_of_this_machine_is_used_and_not_reached(self):
        port = self.local_proxy()
        gates = ('localhost', '127.0.0.1', HERE, 'here.example')
        attacks = [f'through {gate} {port} evil.outer {STREAM_PORT}' for gate in gates]
        for words in attacks:
            self.assertEqual(self.outside(words), f'reached HELLO {PUBLIC}')
        for services, no_proxy in (([], ''), ([f'localhost:{port}'], ''), ([], '*')):
            self.use(proxy=f'http://localhost:{port}', no_proxy=no_proxy)
            self.heard = len(self.log())
            client, session = self.allowing(
                allow_host=['far.outer', 'here.example', *services], allow_cidr=f'{HERE}/32')
            said = self.try_all(client, session, *attacks, f'tcp far.outer {STREAM_PORT}',
                                f'through localhost {port} far.outer {STREAM_PORT}')
            for words, each in zip(attacks, said):
                self.assertNotIn('reached', each, words)
            reached = [] if no_proxy else [f'CONNECT far.outer:{STREAM_PORT}'] * (
                2 if services else 1)
            self.assertEqual(self.asked(), reached)
            self.assertEqual([each.startswith('reached') for each in said[-2:]],
                             [not no_proxy, bool(services)])
            self.ends(client)

    def test_a_proxy_of_this_machine_is_not_asked_for_what_only_this_machine_reaches(self):
        """It would connect from here. The far proxy, to which it leads, stands for it."""
        hosts = ('metadata.example', 'loopback.example', 'here.example')
        asked = [f'through %s %d {host} {STREAM_PORT}' for host in hosts[:2]]
        for gate in ('127.0.0.1', HERE):
            port = self.local_proxy()
            for words in asked:
                self.assertIn('reached', self.outside(words % (gate, port)))
            self.use(proxy=f'http://{gate}:{port}')
            self.heard = len(self.log())
            client, session = self.allowing(allow_host=[*hosts, 'far.outer', 'allowed.example'])
            said = self.try_all(client, session, *(f'tcp {host} {STREAM_PORT}' for host in (
                'far.outer', 'allowed.example', *hosts)))
            self.assertEqual(said[:2], [f'reached HELLO {PUBLIC}'] * 2)
            for each in said[2:]:
                self.assertNotIn('reached', each)
            self.assertEqual(self.asked(), [f'CONNECT far.outer:{STREAM_PORT}',
                                            f'CONNECT allowed.example:{STREAM_PORT}'])
            self.assertIn((f'metadata.example:{STREAM_PORT}', 'socket',
                           'allow-host = metadata.example', 'allow-once', 'forbidden'),
                          self.audited())
            self.ends(client)

    # ---- what goes wrong ----

    def told(self, proxy, *facts, host='far.outer'):
        """A connection fails, and the user learns why."""
        self.use(proxy=proxy)
        client, session = self.allowing(allow_host=host)
        said = self.try_all(client, session, f'connect {host} {STREAM_PORT}')
        self.assertEqual(said, ['status 502'])
        self.assertTrue(processes.wait_until(lambda: self.notices(client)))
        self.assertNames('\n'.join(self.notices(client)), ' | '.join(('HTTPS_PROXY', *facts)))
        self.ends(client)

    def test_the_user_learns_why_the_proxy_connects_nothing(self):
        place = 'http://proxy.example'
        self.told(f'{place}:{PROXY_PORT}', '403', f'refused.outer:{STREAM_PORT}',
                  host='refused.outer')
        self.told(f'{place}:{LOGIN_PORT}', '407', f'far.outer:{STREAM_PORT}')
        self.told(f'{place}:{GARBAGE_PORT}', f'far.outer:{STREAM_PORT}')
        self.told(f'{place}:{NOBODY_PORT}', 'no_proxy')
        self.told('http://nowhere.outer:3128', 'no_proxy')

    def test_a_proxy_of_another_kind_is_an_error_without_its_password(self):
        self.use(proxy=f'socks5://{USER}@proxy.example:1080')
        with self.assertRaises(RpcError) as caught:
            self.allowing(allow_host='far.outer')
        said = f'{caught.exception.message} {caught.exception.data}'
        self.assertNames(said, 'HTTPS_PROXY | http://HOST:PORT')
        self.assertNotIn(USER, said)

    def check(self, network='allow', **variables):
        hosts = {} if network == 'blocked' else {'allow_host': 'far.outer'}
        options = self.config(confine=CONFINE, network=network, **hosts)
        return subprocess.run([BROKER, *options, 'check', '--', AGENT], text=True, check=False,
                              env={**self.environment(), **variables}, capture_output=True)

    def test_check_names_the_proxy_and_not_its_password(self):
        proxy = {'all_proxy': f'http://{USER}@Proxy.example:{LOGIN_PORT}'}
        done = self.check(**proxy)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if 'all_proxy' in line]
        self.assertEqual(len(lines), 1, done.stdout)
        self.assertNames(lines[0], f'proxy.example | {LOGIN_PORT}')
        for secret in (*SECRETS, 'me:'):
            self.assertNotIn(secret, done.stdout + done.stderr)
        self.assertNotIn('all_proxy', self.check(network='blocked', **proxy).stdout)
        self.assertIn('http_proxy', self.check(http_proxy='http://cache.example').stdout)
        self.assertNotIn('proxy', self.check().stdout)
        self.assertNotEqual(self.check(all_proxy='socks5://a').returncode, 0)


if __name__ == '__main__':
    CERTIFICATES = make_certificates()
    try:
        internet.enter(FOLDER, far_proxy.start_all(FOLDER, CERTIFICATES))
    except OSError as forbidden:
        print(f'no network namespace can be made: {forbidden}')
        print('cases: 0 passed, 0 failed, 1 skipped')
        for folder in (PROGRAMS, CERTIFICATES):
            shutil.rmtree(folder)
        sys.exit(0)
    become_user(PROGRAMS, CERTIFICATES)
    case.main()
