#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The login of a real agent on another host, in a browser of this machine (`login-callback`). Codex's
own login server waits there for the browser, fetches the tokens and stores them. Only the login
page and the server of the tokens are stand-ins: a variable of codex names their address.
"""

import json
import pathlib
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from agent_case import NEEDED  # noqa: E402
from case import main  # noqa: E402
from processes import PATIENCE  # noqa: E402
from test_ssh_callback import CallbackCase, browse  # noqa: E402
from todays_agents import MODULES  # noqa: E402

CODEX = '@openai/codex-linux-*/vendor/*/bin/codex'

# Asks codex to log in, and prints the address of the login page. The server of the tokens is here,
# too: it must be in codex's own network.
DRIVE = r"""
import base64, http.server, json, subprocess, sys, threading
program, port = sys.argv[1], int(sys.argv[2])
def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b'=').decode()
claims = {'email': 'ada@example.com', 'sub': 'user-1', 'exp': 4102444800,
          'https://api.openai.com/auth': {
              'chatgpt_plan_type': 'pro', 'chatgpt_user_id': 'user-1',
              'chatgpt_account_id': 'account-1', 'organization_id': 'organization-1',
              'project_id': 'project-1', 'completed_platform_onboarding': True}}
token = f'{encoded({"alg": "none", "typ": "JWT"})}.{encoded(claims)}.c2ln'
class Tokens(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print('asked with', self.rfile.read(int(self.headers['Content-Length'])))
        body = json.dumps({'id_token': token, 'access_token': token,
                           'refresh_token': 'refresh-4711'}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
tokens = http.server.ThreadingHTTPServer(('127.0.0.1', port), Tokens)
threading.Thread(target=tokens.serve_forever, daemon=True).start()
codex = subprocess.Popen([program, 'app-server'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
def send(**message):
    codex.stdin.write(json.dumps(message) + '\n')
    codex.stdin.flush()
def wait(key, value):
    return next(message for message in map(json.loads, codex.stdout) if message.get(key) == value)
send(id=1, method='initialize',
     params={'clientInfo': {'name': 'test', 'title': 'test', 'version': '1'}})
wait('id', 1)
send(method='initialized')
send(id=2, method='account/login/start', params={'type': 'chatgpt'})
print('Open', wait('id', 2)['result']['authUrl'], flush=True)
wait('method', 'account/login/completed')
codex.stdin.close()
codex.wait()
"""


@NEEDED
class Codex(CallbackCase):
    def test_the_login_of_codex_comes_back_to_it(self):
        program, = MODULES.glob(CODEX)
        issuer = self.issuer.server_port
        (self.work / 'drive.py').write_text(DRIVE)
        client, session = self.opened()
        turn = client.start_prompt(
            session, f"terminal mkdir -p ~/.codex && CODEX_HOME=$HOME/.codex "
                     f"CODEX_APP_SERVER_LOGIN_ISSUER=http://127.0.0.1:{issuer} "
                     f"python3 drive.py '{program}' {issuer}")
        question = self.wait_question(client)
        self.assertIn(f'127.0.0.1:{issuer}', json.dumps(question.params['toolCall']))
        self.wait_closed_question(client, question, 'completed')
        self.assertIn(b'<html', browse(self.shown_page(client)).lower())
        client.answer(turn, PATIENCE)
        self.assertIn('code=4711', client.wait_text('terminal/output ->'))
        stored = json.loads((self.sshd.home / '.codex/auth.json').read_text())
        self.assertEqual(stored['tokens']['refresh_token'], 'refresh-4711')
        self.port = self.port_of(question)
        self.wait_closed()
        self.assertEqual(len(self.questions(client)), 1)
        self.ends(client)

    def port_of(self, question):
        return int(question.params['toolCall']['title'].partition('Open port ')[2].split()[0])

    def shown_page(self, client):
        """The address, as the editor shows it in the terminal's output."""
        def output(message):
            update = message.params['update'] if message.method == 'session/update' else {}
            return 'Open http' in json.dumps(update.get('content', ''))
        update = client.wait_for(output, PATIENCE).params['update']
        text = json.dumps(update['content'])
        return text.partition('Open ')[2].partition('\\n')[0]


if __name__ == '__main__':
    main()
