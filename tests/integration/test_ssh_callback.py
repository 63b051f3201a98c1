#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The way back of a login in the browser (`login-callback`): an agent on another host shows the
address of a login page, and that page sends the browser to a port of this machine. The host has a
network of its own here, so that the port is free on both sides. The login page is a stand-in, and
so is the browser: it follows redirects.
"""

import http.server
import json
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import processes

from case import main
from forwarding import SERVE, free_port, tell
from host import NEVER
from processes import PATIENCE
from ssh_case import SshCase

# Logs in like the programs of agents do: waits for the browser at PORT, after it has printed the
# address of the login page if there is one. Its answer leads the browser to a second page.
LOGIN = r"""
import http.server, sys
port, page = int(sys.argv[1]), sys.argv[2]
class Callback(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition('?')
        self.send_response(302 if path == '/callback' else 200)
        self.send_header('Content-Length', '0' if path == '/callback' else '9')
        if path == '/callback':
            self.send_header('Location', f'http://localhost:{port}/done')
            print('got', query)
        self.end_headers()
        if path == '/done':
            self.wfile.write(b'logged in')
            self.server.is_done = True
    def log_message(self, *_):
        pass
with http.server.HTTPServer(('127.0.0.1', port), Callback) as server:
    server.is_done = False
    print('Open this page:', page, flush=True)
    while not server.is_done:
        server.handle_request()
"""

APART = 'unshare --net sh -c'
IN_ITS_NETWORK = (f'ForceCommand exec {APART} '
                  '\'ip link set lo up; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\'\n')


def can_be_apart():
    return subprocess.run([*APART.split(), 'ip link set lo up'], capture_output=True,
                          check=False).returncode == 0


class Issuer(http.server.BaseHTTPRequestHandler):
    """The login page: sends every browser back with a code."""

    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.send_response(302)
        self.send_header('Location', f'{query["redirect_uri"][0]}?code=4711'
                                     f'&state={query["state"][0]}')
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


def browse(url):
    """What the browser shows at the end; None if it could not open a page."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            return answer.read()
    except (urllib.error.URLError, ConnectionError):
        return None


def is_open(port):
    try:
        socket.create_connection(('127.0.0.1', port), PATIENCE).close()
        return True
    except ConnectionResetError:  # it was closed at this moment, or nobody listens there
        return True
    except ConnectionRefusedError:
        return False


class CallbackCase(SshCase):
    sshd_config = IN_ITS_NETWORK

    def setUp(self):
        if not can_be_apart():
            self.skipTest('there are no network namespaces here')
        super().setUp()
        (self.work / 'login.py').write_text(LOGIN)
        self.issuer = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Issuer)
        self.addCleanup(self.issuer.server_close)
        self.addCleanup(self.issuer.shutdown)
        threading.Thread(target=self.issuer.serve_forever, daemon=True).start()
        self.port = free_port()

    def page(self, port=None):
        back = urllib.parse.quote(f'http://localhost:{port or self.port}/callback', safe='')
        return (f'http://127.0.0.1:{self.issuer.server_port}/authorize?client=1'
                f'&redirect_uri={back}&state=x')

    def config(self, *words, **keys):
        options = super().config(*words, **keys)
        with open(self.dir / 'config', 'a', encoding='utf-8') as file:
            file.write(f'[broker]\n\taudit = {self.dir}/audit\n')
        return options

    # ---- what the user sees ----

    def questions(self, client):
        return [message for message in client.received
                if message.method == 'session/request_permission']

    def wait_question(self, client, number=0):
        self.assertTrue(processes.wait_until(
            lambda: len(self.questions(client)) > number, PATIENCE), client.stderr)
        return self.questions(client)[number]

    def wait_closed_question(self, client, question, status):
        wanted = question.params['toolCall']['toolCallId']
        client.wait_for(lambda m: m.method == 'session/update'
                        and m.params['update'].get('toolCallId') == wanted
                        and m.params['update'].get('status') == status, PATIENCE)

    def wait_notice(self, client, *facts):
        def is_it(message):
            update = message.params['update'] if message.method == 'session/update' else {}
            return (update.get('toolCallId', '').startswith('acp-broker-notice')
                    and all(fact in update['title'] for fact in facts))
        client.wait_for(is_it, PATIENCE)

    def answer_with(self, client, option):
        client.host.replies['session/request_permission'] = {
            'outcome': {'outcome': 'selected', 'optionId': option}}

    # ---- what the agent does ----

    def show(self, client, session, port=None):
        """The agent shows the address, and its request is answered."""
        client.prompt(session, f'elicit-url {self.page(port)}')

    def open_it(self, client, session):
        self.show(client, session)
        question = self.wait_question(client, len(self.questions(client)) - 1)
        self.wait_closed_question(client, question, 'completed')
        self.assertTrue(is_open(self.port))

    def start_login(self, client, session, page):
        return client.start_prompt(session, f"terminal python3 login.py {self.port} '{page}'")

    def wait_closed(self):
        self.assertTrue(processes.wait_until(lambda: not is_open(self.port), PATIENCE))

    def ends(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)
        self.assert_nothing_runs()
        self.assertFalse(is_open(self.port))


class Login(CallbackCase):
    def test_a_login_that_a_terminal_shows_comes_back_to_its_program(self):
        client, session = self.opened()
        turn = self.start_login(client, session, self.page())
        question = self.wait_question(client)
        self.assertEqual(question.params['sessionId'], session)
        self.assertEqual([(option['optionId'], option['kind'])
                          for option in question.params['options']],
                         [('open', 'allow_once'), ('no', 'reject_once'),
                          ('no-more', 'reject_always')])
        shown = json.dumps(question.params['toolCall'])
        self.assertNames(shown, f'login-callback = ask | {self.port} | '
                                f'`127.0.0.1:{self.issuer.server_port}`')
        self.wait_closed_question(client, question, 'completed')
        self.assertEqual(browse(self.page()), b'logged in')
        client.answer(turn, PATIENCE)
        self.assertIn('got code=4711', client.wait_text('terminal/output ->'))
        self.wait_closed()
        self.assertEqual(len(self.questions(client)), 1)
        line, = (json.loads(line) for line in (self.dir / 'audit').read_text().splitlines()
                 if 'login/callback' in line)
        self.assertEqual((line['session'], line['decision'], line['by']),
                         (session, 'allow-once', 'person'))
        self.assertIn(f'localhost:{self.port}', line['subject'])
        self.ends(client)

    def test_an_elicitation_is_passed_on_first_and_its_login_comes_back(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        self.start_login(client, other, '-')
        self.show(client, session)
        question = self.wait_question(client)
        self.assertEqual(question.params['sessionId'], session)
        elicitation = client.wait_for(lambda m: m.method == 'elicitation/create')
        self.assertEqual(elicitation.params['url'], self.page())
        self.assertLess(client.messages.index(elicitation), client.messages.index(question))
        self.wait_closed_question(client, question, 'completed')
        self.assertTrue(processes.wait_until(
            lambda: browse(self.page()) == b'logged in', PATIENCE))
        self.wait_closed()
        self.ends(client)

    def test_a_connection_without_a_request_is_no_visit(self):
        """As browsers make them in advance."""
        client, session = self.opened()
        turn = self.start_login(client, session, self.page())
        self.wait_closed_question(client, self.wait_question(client), 'completed')
        for _ in range(3):
            socket.create_connection(('127.0.0.1', self.port), PATIENCE).close()
        self.assertEqual(browse(self.page()), b'logged in')
        client.answer(turn, PATIENCE)
        self.ends(client)

    def test_the_next_login_is_asked_about_again(self):
        client, session = self.opened()
        for number in range(2):
            turn = self.start_login(client, session, self.page())
            question = self.wait_question(client, number)
            self.wait_closed_question(client, question, 'completed')
            self.assertEqual(browse(self.page()), b'logged in')
            client.answer(turn, PATIENCE)
            self.wait_closed()
        self.ends(client)

    def test_a_connection_of_an_earlier_login_is_no_visit_of_the_next(self):
        client, session = self.opened(login_callback_timeout='10s')
        other = client.new_session(self.work)
        (self.work / 'serve.py').write_text(SERVE)
        client.start_prompt(other, f'terminal python3 serve.py 127.0.0.1 {self.port}')
        self.open_it(client, session)
        self.assertTrue(processes.wait_until(
            lambda: tell(self.port) == b'%d hello' % self.port, PATIENCE))
        with socket.create_connection(('127.0.0.1', self.port), PATIENCE) as held:
            held.settimeout(PATIENCE)
            self.assertTrue(held.recv(1))
            self.wait_closed()
            self.open_it(client, session)
            held.sendall(b'x')
            while held.recv(1) != b'x':
                pass
            self.wait_notice(client, str(self.port), 'login-callback-timeout')
        self.ends(client)


class Answers(CallbackCase):
    def test_a_refused_port_stays_closed_and_is_not_asked_about_again(self):
        client, session = self.opened()
        self.answer_with(client, 'no')
        self.show(client, session)
        self.wait_closed_question(client, self.wait_question(client), 'failed')
        self.show(client, session)
        client.prompt(session, f"terminal echo '{self.page()}'")
        self.assertEqual(len(self.questions(client)), 1)
        self.assertFalse(is_open(self.port))
        self.show(client, session, free_port())
        self.wait_question(client, 1)
        self.ends(client)

    def test_no_login_is_asked_about_after_a_refusal_of_all(self):
        client, session = self.opened()
        self.answer_with(client, 'no-more')
        self.show(client, session)
        self.wait_closed_question(client, self.wait_question(client), 'failed')
        self.show(client, session, free_port())
        self.assertEqual(len(self.questions(client)), 1)
        self.ends(client)

    def test_a_refusal_of_all_ends_with_its_agent(self):
        client, session = self.opened()
        self.answer_with(client, 'no-more')
        self.show(client, session)
        self.wait_closed_question(client, self.wait_question(client), 'failed')
        self.failure(client.response(client.start_prompt(session, 'exit 3'), PATIENCE),
                     'AGENT_EXITED')
        session = client.new_session(self.work)
        self.show(client, session)
        self.wait_question(client, 1)
        self.ends(client)

    def test_an_address_is_asked_about_once_while_its_port_is_open(self):
        client, session = self.opened()
        self.open_it(client, session)
        self.show(client, session)
        client.prompt(session, f"terminal echo '{self.page()}'")
        self.assertEqual(len(self.questions(client)), 1)
        self.assertTrue(is_open(self.port))
        self.ends(client)

    def test_an_address_is_asked_about_once_while_its_question_is_open(self):
        client, session = self.opened()
        client.host.replies['session/request_permission'] = NEVER
        self.show(client, session)
        self.wait_question(client)
        self.show(client, session)
        self.assertEqual(len(self.questions(client)), 1)
        self.ends(client)

    def test_a_port_that_is_taken_is_reported_and_may_be_asked_about_again(self):
        client, session = self.opened()
        with socket.create_server(('127.0.0.1', self.port)):
            self.show(client, session)
            self.wait_closed_question(client, self.wait_question(client), 'failed')
            self.wait_notice(client, str(self.port), 'FORWARD_TAKEN')
        self.open_it(client, session)
        self.ends(client)

    def test_nobody_comes_back_in_time(self):
        client, session = self.opened(login_callback_timeout='1s')
        self.show(client, session)
        self.wait_closed_question(client, self.wait_question(client), 'completed')
        self.wait_notice(client, str(self.port), 'login-callback-timeout')
        self.wait_closed()
        self.ends(client)

    def test_a_question_without_an_answer_may_be_asked_again(self):
        client, session = self.opened(permission_timeout='200ms')
        client.host.replies['session/request_permission'] = NEVER
        self.show(client, session)
        self.wait_closed_question(client, self.wait_question(client), 'failed')
        self.assertFalse(is_open(self.port))
        del client.host.replies['session/request_permission']
        self.open_it(client, session)
        self.ends(client)

    def test_many_addresses_are_few_questions(self):
        client, session = self.opened()
        client.host.replies['session/request_permission'] = NEVER
        pages = [self.page(20000 + number) for number in range(100)]
        client.prompt(session, *(f'elicit-url {page}' for page in pages))
        seen = [message for message in client.received if message.method == 'elicitation/create']
        self.assertEqual([message.params['url'] for message in seen], pages)
        self.assertEqual(len(self.questions(client)), 3)
        client.prompt(session, *(f"terminal echo '{page}'" for page in pages[:20]))
        self.assertEqual(len(self.questions(client)), 3)
        self.ends(client)


class Authentication(CallbackCase):
    def escaped(self):
        """The address as some writers of JSON spell it."""
        return self.page().replace('/', '\\/').replace('&', '\\u0026')

    def test_an_error_that_asks_for_a_login_in_a_session(self):
        for code in (-32000, -32042):
            client, session = self.opened()
            self.answer_with(client, 'no')
            data = f'{{"elicitations":[{{"url":"{self.escaped()}"}}]}}'
            error = f'{{"code":{code},"message":"No","data":{data}}}'
            answer = client.response(client.start_prompt(session, f'error {error}'), PATIENCE)
            self.assertEqual(answer.value['error']['code'], code)
            self.wait_question(client)
            self.ends(client)

    def test_another_error_is_not_read(self):
        client, session = self.opened()
        client.response(client.start_prompt(
            session, f'error {{"code":-32603,"message":"{self.page()}"}}'), PATIENCE)
        client.prompt(session, 'say still here')
        self.assertEqual(self.questions(client), [])
        self.ends(client)

    def test_before_there_is_a_session_the_log_names_the_key(self):
        method = f'{{"id":"web","name":"Web","description":"Open {self.escaped()}"}}'
        client, session = self.opened('--auth-methods', method)
        client.wait_log(f'port {self.port} | forward = {self.port} | [profile "test"]')
        self.assertEqual(self.questions(client), [])
        self.open_it(client, session)  # now it can be asked
        self.ends(client)


class Ends(CallbackCase):
    def test_a_cancelled_turn_withdraws_the_question_and_it_may_be_asked_again(self):
        client, session = self.opened()
        client.host.replies['session/request_permission'] = NEVER
        turn = client.start_prompt(session, f'elicit-url {self.page()}', 'hang')
        question = self.wait_question(client)
        client.notify('session/cancel', {'sessionId': session})
        client.wait_for(lambda m: m.method == '$/cancel_request'
                        and m.params['requestId'] == json.loads(question.id), PATIENCE)
        self.wait_closed_question(client, question, 'failed')
        client.answer(turn, PATIENCE)
        del client.host.replies['session/request_permission']
        self.open_it(client, session)
        self.ends(client)

    def test_a_cancelled_turn_closes_the_port_and_resets_its_connections(self):
        client, session = self.opened()
        self.open_it(client, session)
        (self.work / 'serve.py').write_text(SERVE)
        turn = client.start_prompt(session, f'terminal python3 serve.py 127.0.0.1 {self.port}')
        self.assertTrue(processes.wait_until(
            lambda: tell(self.port) == b'%d hello' % self.port, PATIENCE))
        with socket.create_connection(('127.0.0.1', self.port), PATIENCE) as held:
            held.settimeout(PATIENCE)
            self.assertTrue(held.recv(1))
            client.notify('session/cancel', {'sessionId': session})
            client.answer(turn, PATIENCE)
            with self.assertRaises(ConnectionResetError):
                while held.recv(64):
                    pass
        self.assertFalse(is_open(self.port))
        self.ends(client)

    def test_a_closed_session_closes_its_port_only(self):
        client, session = self.opened()
        other = client.new_session(self.work)
        self.open_it(client, session)
        client.call('session/close', {'sessionId': other}, PATIENCE)
        self.assertTrue(is_open(self.port))
        client.call('session/close', {'sessionId': session}, PATIENCE)
        self.assertFalse(is_open(self.port))
        self.ends(client)

    def test_an_agent_that_ends_closes_its_port_and_its_question(self):
        client, session = self.opened()
        self.open_it(client, session)
        client.host.replies['session/request_permission'] = NEVER
        self.show(client, session, free_port())
        question = self.wait_question(client, 1)
        self.failure(client.response(client.start_prompt(session, 'exit 3'), PATIENCE),
                     'AGENT_EXITED')
        self.wait_closed_question(client, question, 'failed')
        self.assertFalse(is_open(self.port))
        self.ends(client)

    def test_a_lost_connection_closes_the_port(self):
        client, session = self.opened(outlives='never')
        self.open_it(client, session)
        self.sshd.kill_connections()
        self.wait_closed()
        client.finish()


class Unasked(CallbackCase):
    """What the user is not asked about."""

    def show_all_ways(self, client, session, page):
        client.prompt(session, f'elicit-url {page}', f"terminal echo '{page}'")

    def test_a_mode_that_never_asks_asks_about_ports(self):
        client, session = self.opened(policy=('mode = approve-all',))
        self.open_it(client, session)
        self.ends(client)

    def test_a_policy_that_refuses_everything_opens_nothing(self):
        client, session = self.opened(policy=('mode = deny-all',))
        self.show(client, session)
        self.assertEqual(self.questions(client), [])
        self.assertFalse(is_open(self.port))
        self.ends(client)

    def test_the_profile_says_no(self):
        client, session = self.opened(login_callback='no')
        self.show_all_ways(client, session, self.page())
        self.assertEqual(self.questions(client), [])
        self.ends(client)

    def test_the_profile_leads_the_port_already(self):
        client, session = self.opened(forward=self.port)
        self.show_all_ways(client, session, self.page())
        self.assertEqual(self.questions(client), [])
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), 0, client.stderr)

    def test_what_the_agent_says_is_not_read(self):
        client, session = self.opened()
        client.prompt(session, f'say {self.page()}', f'think {self.page()}')
        self.assertEqual(self.questions(client), [])
        self.ends(client)

    def test_addresses_that_do_not_come_back_to_a_high_port_here(self):
        client, session = self.opened()
        for back in ('http://localhost:80/', 'http://localhost.evil.example:3000/',
                     'http://localhost:3000@evil.example/', 'http://[::1:3000/',
                     'http://localhost:65536/', 'http://10.0.0.1:3000/'):
            self.show_all_ways(client, session, f'https://id.example/?redirect_uri={back}')
        self.assertEqual(self.questions(client), [])
        self.ends(client)

    def test_an_agent_of_this_machine_needs_no_port(self):
        client = self.broker(options=super(SshCase, self).config())
        client.initialize()
        self.show_all_ways(client, client.new_session(self.work), self.page())
        self.assertEqual(self.questions(client), [])


class Scripts(CallbackCase):
    runner = 'never'

    def test_a_host_without_the_runner_is_reported(self):
        client, session = self.opened()
        self.show(client, session)
        self.wait_notice(client, str(self.port))
        self.show(client, session)
        self.assertEqual(self.questions(client), [])
        self.ends(client)


if __name__ == '__main__':
    main()
