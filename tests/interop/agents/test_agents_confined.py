#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Today's agents in a cell: each uses the login in the user's home, edits a file, runs a command, and
finds its session again in the next cell, although nothing else of its home is kept.
"""

import json
import pathlib
import sys
import urllib.parse

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[2] / 'integration')]

from agent_case import AgentCase, SECONDS  # noqa: E402
from case import main  # noqa: E402
from confinement import CONFINE, become_user  # noqa: E402
from keys_server import Front, make_certificates  # noqa: E402
from model import Step  # noqa: E402
from todays_agents import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN  # noqa: E402

# The files in which a confined agent would look for hooks, if they came into the cell.
HOOK = 'echo EVIL >hook-ran'
TOKEN = 'the-token-of-the-login'
FAR_MS = 4102444800000


class Confined:
    """Tests for an agent whose login is a file, or otherwise a variable."""

    agent, state, evil, login = None, None, {}, {}
    without = ()  # variables with which the agent would log in
    mode = None   # the mode in which it asks nobody, unless it starts in that mode

    def setUp(self):
        super().setUp()
        self.home = self.dir / 'home'
        for name, text in {**self.login, **self.evil}.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def variables(self):
        variables = self.agent.variables(self.model.url)
        return {name: value for name, value in variables.items() if name not in self.without}

    def begin_confined(self):
        env = self.environment_of(self.agent, self.variables())
        options = self.options(confine=CONFINE, agent_state=self.state)
        client = self.broker(options=options, agent=self.agent.command, env=env)
        answer = client.initialize(capabilities={}, seconds=SECONDS)
        self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
        return client

    def leave(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def files_here(self):
        """The files in the user's home with their content, except the broker's own state."""
        return {str(path.relative_to(self.home)): path.read_bytes()
                for path in self.home.rglob('*')
                if path.is_file() and path.relative_to(self.home).parts[0] != 'state'}

    def steps(self, copy):
        return [self.agent.write(f'{copy}/written.txt'),
                self.agent.run(f'echo ran > {copy}/ran.txt')]

    def test_it_works_and_finds_its_session_again(self):
        client = self.begin_confined()
        before = self.files_here()
        opened = client.call('session/new', {'cwd': str(self.work), 'mcpServers': []}, SECONDS)
        session = opened['sessionId']
        self.chooses(client, 'allow_once')
        if self.mode:
            self.assertIn('result', self.set_mode(client, session, self.mode))
        status = client.call('_broker/session/status', {'sessionId': session})
        self.model.steps = self.steps(status['runtimeRoot'])
        client.prompt(session, 'Please go on', seconds=SECONDS)
        self.assertEqual(self.names(), ['ran.txt', 'written.txt'])
        if self.login:
            self.assertEqual(self.model.tokens, {f'Bearer {TOKEN}'})
        self.leave(client)
        self.assertEqual(self.files_here(), before)
        self.between()
        client = self.begin_confined()
        begun = len(self.model.requests)
        client.call('session/load', {'sessionId': session, 'cwd': str(self.work),
                                     'mcpServers': []}, SECONDS)
        self.model.steps = []
        client.prompt(session, 'And now', seconds=SECONDS)
        self.assertGreater(len(self.model.requests), begun)
        texts = '\n'.join(client.texts(session))
        self.assertIn('So it is.', texts)
        self.leave(client)

    def between(self):
        pass


class Claude(Confined, AgentCase):
    agent, state = CLAUDE, 'claude'
    without = ('ANTHROPIC_API_KEY',)
    login = {'.claude/.credentials.json': json.dumps({'claudeAiOauth': {
        'accessToken': TOKEN, 'refreshToken': 'r', 'expiresAt': FAR_MS,
        'scopes': ['user:inference', 'user:profile'], 'subscriptionType': 'max'}})}
    evil = {'.claude/settings.json': json.dumps({'hooks': {'SessionStart': [{'hooks': [
        {'type': 'command', 'command': HOOK}]}]}})}


class Keyed(Confined):
    """The agent's login is a key that it does not have: only the model gets the key."""

    url, named = '', ''  # the path after the host, and the variable of the key

    def environment(self):
        return {**super().environment(), 'CURL_CA_BUNDLE': f'{CERTIFICATES}/ca.pem'}

    def options(self, **keys):
        front = Front(CERTIFICATES, urllib.parse.urlsplit(self.model.url).port)
        self.addCleanup(front.close)
        line = f'{self.named} for https://localhost:{front.port}{self.url}'
        return super().options(key=line, network='blocked', **keys)

    def variables(self):
        return {**super().variables(), self.named: TOKEN}

    def between(self):
        sent = self.model.keys | self.model.tokens
        self.assertTrue(sent <= {TOKEN, f'Bearer {TOKEN}', None}, sent)
        self.assertTrue(sent & {TOKEN, f'Bearer {TOKEN}'})


class ClaudeKeyed(Keyed, AgentCase):
    agent, state = CLAUDE, 'claude'
    without = ('ANTHROPIC_BASE_URL',)
    named = 'ANTHROPIC_API_KEY'


class QwenKeyed(Keyed, AgentCase):
    agent, state = QWEN, 'qwen'
    without = ('OPENAI_BASE_URL',)
    url, named = '/v1', 'OPENAI_API_KEY'


class GeminiKeyed(Keyed, AgentCase):
    agent, state = GEMINI, 'gemini'
    without = ('GOOGLE_GEMINI_BASE_URL',)
    named = 'GEMINI_API_KEY'

    def between(self):
        """See Gemini."""
        Gemini.between(self)
        self.assertEqual(self.model.google_keys, {TOKEN})


class Codex(Confined, AgentCase):
    agent, state, mode = CODEX, 'codex', 'agent-full-access'
    without = ('CODEX_API_KEY',)
    login = {'.codex/auth.json': json.dumps({'OPENAI_API_KEY': TOKEN})}
    evil = {'.codex/config.toml': f'notify = ["sh", "-c", {json.dumps(HOOK)}]\n'}

    def variables(self):
        """The provider uses the key of the login, and none of the environment."""
        variables = super().variables()
        config = json.loads(variables['CODEX_CONFIG'])
        provider = config['model_providers']['scripted']
        del provider['env_key']
        provider['requires_openai_auth'] = True
        return dict(variables, CODEX_CONFIG=json.dumps(config))

    def steps(self, copy):
        """In this mode, the model has no writing tool, and needs no escalation."""
        return [Step('exec_command', cmd=f'echo {word} > {copy}/{word}.txt')
                for word in ('written', 'ran')]


class Gemini(Confined, AgentCase):
    agent, state = GEMINI, 'gemini'

    def between(self):
        """See test_agents.py: a session/load within the same minute overwrites the session."""
        for path in self.home.rglob('chats/session-*.jsonl'):
            path.rename(path.with_name(f'session-2000-01-01T00-00-{path.stem[-8:]}.jsonl'))


class Qwen(Confined, AgentCase):
    agent, state = QWEN, 'qwen'


class OpenCode(Confined, AgentCase):
    agent, state = OPENCODE, 'opencode'


if __name__ == '__main__':
    CERTIFICATES = make_certificates()
    become_user(CERTIFICATES)
    main()
