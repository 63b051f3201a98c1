#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Programs that bring a sandbox of their own, in a cell: sandbox-runtime's `srt`, `codex sandbox`, and
Codex and Claude Code that run a command of the model's. The program starts, and its policy holds
where the cell's does not: the cell allows /run, and with `network = open` this machine's ports.
"""

import json
import pathlib
import shutil
import sys
import unittest

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[2] / 'integration')]

import case  # noqa: E402
from agent_case import AgentCase, SECONDS  # noqa: E402
from case import main  # noqa: E402
from confinement import CONFINE, become_user  # noqa: E402
from model import Step  # noqa: E402
from pair import NODE  # noqa: E402
from todays_agents import CLAUDE, CODEX, MODULES  # noqa: E402

SRT = pathlib.Path(__file__).resolve().parents[2] / (
    'bench/references/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js')
CODEX_PROGRAM = (MODULES / '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex')

NEEDS = unittest.skipUnless(SRT.exists() and all(map(shutil.which, ('bwrap', 'rg', 'socat'))),
                            './dev test agents installs sandbox-runtime and what it needs')

# Says what a program can do at this place. Codex refuses system calls of the network, and
# sandbox-runtime has a proxy, which refuses hosts.
INSIDE = """
import errno, os, socket, sys, urllib.error, urllib.request
def said(call, *words):
    try:
        call(*words)
        return 'yes'
    except OSError as failed:
        return errno.errorcode.get(failed.errno, 'unknown')
def connect(port):
    socket.create_connection(('127.0.0.1', port))
def fetch(port):
    for name in ('no_proxy', 'NO_PROXY'):
        os.environ.pop(name, None)
    try:
        urllib.request.urlopen(f'http://localhost:{port}/', timeout=60)
    except urllib.error.HTTPError as answer:
        return answer.code
    except OSError:
        return 'none'
home, port = sys.argv[1], int(sys.argv[2])
print('<work', said(open, 'made', 'w'), 'run', said(open, '/run/made', 'w'),
      'usr', said(open, '/usr/made', 'w'), 'key', said(open, home + '/key'),
      'secret', said(open, 'secret'), 'port', said(connect, port), 'http', fetch(port),
      end='>\\n')
"""

# What the kernel answers in a cell without another sandbox, by the cell's network; the model
# answers a GET with 404.
CELL = {
    'open': 'work yes run yes usr EROFS key ENOENT secret yes port yes http 404',
    'blocked': 'work yes run yes usr EROFS key ENOENT secret yes port ECONNREFUSED http none',
    'allow': 'work yes run yes usr EROFS key ENOENT secret yes port yes http 404',
}


class SandboxCase(AgentCase):
    def setUp(self):
        super().setUp()
        self.home = self.dir / 'home'
        self.home.mkdir(exist_ok=True)
        (self.home / 'key').write_text('SECRET\n')
        (self.work / 'secret').write_text('SECRET\n')
        (self.work / 'inside.py').write_text(INSIDE)
        self.port = self.model.server.server_address[1]

    def keys(self, network, isolation):
        hosts = {'allow_host': f'localhost:{self.port}'} if network == 'allow' else {}
        return dict(confine=CONFINE, network=network, isolation=isolation, **hosts)

    def look(self):
        """A line for sh(1) that looks around."""
        return f'/usr/bin/python3 inside.py {self.home} {self.port}'

    def leave(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assert_nothing_runs()


class Programs(SandboxCase):
    """A terminal of the scripted agent runs the program."""

    def shell(self, client, session, line):
        before = len(client.texts(session))
        client.prompt(session, f'terminal {line} 2>&1', seconds=SECONDS)
        return '\n'.join(client.texts(session)[before:])

    def check(self, lines):
        """
        `lines` are (the words before a command that run it in the sandbox, what it sees there by
        the cell's network).
        """
        for isolation in ('copy', 'none'):
            for network in CELL:
                client = self.broker(options=self.config(**self.keys(network, isolation)),
                                     agent=[case.AGENT])
                answer = client.initialize()
                self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
                session = client.new_session(self.work)
                wanted = CELL[network]
                self.assertIn(f'<{wanted}>', self.shell(client, session, self.look()))
                for line, seen in lines:
                    said = self.shell(client, session, f'rm -f made; {line} {self.look()}')
                    self.assertIn(f'<{seen[network]}>', said, (isolation, network, line))
                self.leave(client)
                self.assertTrue((self.work / 'made').exists())
                self.assertEqual(self.names(), ['inside.py', 'made', 'secret', *self.settings()])

    def settings(self):
        return sorted(path.name for path in self.work.glob('srt-*.json'))

    def srt(self, name, **network):
        """Writes the settings of sandbox-runtime; returns the words before the command."""
        settings = {'network': {'allowedDomains': [], 'deniedDomains': [], **network},
                    'filesystem': {'denyRead': ['./secret'], 'allowWrite': ['.'],
                                   'denyWrite': []}}
        (self.work / f'srt-{name}.json').write_text(json.dumps(settings))
        return f'{NODE} {SRT} --settings srt-{name}.json --'

    @NEEDS
    def test_sandbox_runtime(self):
        """Its proxy is in the cell, and reaches what both policies allow."""
        files = 'work yes run EROFS usr EROFS key ENOENT secret EACCES port ECONNREFUSED http '
        here = [f'localhost:{self.port}', f'127.0.0.1:{self.port}']
        self.check([(self.srt('closed'), dict.fromkeys(CELL, files + '403')),
                    (self.srt('named', allowedDomains=here),
                     {'open': files + '404', 'blocked': files + '502', 'allow': files + '404'})])

    def test_codex_with_either_bubblewrap(self):
        """Codex takes the one in PATH, and otherwise its own."""
        others = 'usr EROFS key ENOENT secret yes port EPERM http none'
        empty = self.work / '.empty'  # a PATH without bubblewrap
        empty.mkdir()
        lines = []
        for path in ('$PATH', '.empty'):
            # Codex makes no helpers in a home below TMPDIR, and the homes of tests are in /tmp.
            codex = f'TMPDIR=/var/tmp PATH={path} {CODEX_PROGRAM} sandbox -P'
            for profile, work in ((':read-only', 'EROFS'), (':workspace', 'yes')):
                seen = f'work {work} run EROFS {others}'
                lines.append((f'{codex} {profile} --', dict.fromkeys(CELL, seen)))
        self.check(lines)


class Agents(SandboxCase):
    """The model calls the agent's tool that runs a command, and the agent asks nobody."""

    def check(self, agent, command, make_step, seen):
        for isolation in ('copy', 'none'):
            options = self.config(**self.keys('open', isolation))
            client = self.broker(options=options, agent=command, env=self.environment_of(agent))
            answer = client.initialize(capabilities={}, seconds=SECONDS)
            self.assertTrue(answer['_meta']['broker']['capabilities']['confined'])
            session = client.new_session(self.work)
            said = []
            self.turn(client, session, make_step(self.look()),
                      make_step(lambda before: said.append(before) or 'true'))
            self.assertIn(f'<{seen}>', said[0], isolation)
            self.leave(client)
            self.assertTrue((self.work / 'made').exists())

    def test_codex(self):
        self.check(CODEX, ['/usr/bin/env', 'TMPDIR=/var/tmp', *CODEX.command],
                   lambda line: Step('exec_command', cmd=line),
                   'work yes run EROFS usr EROFS key ENOENT secret yes port EPERM http none')

    @NEEDS
    def test_claude_code(self):
        (self.work / '.claude').mkdir()
        (self.work / '.claude/settings.json').write_text(json.dumps({'sandbox': {
            'enabled': True, 'failIfUnavailable': True, 'allowUnsandboxedCommands': False,
            'filesystem': {'denyRead': ['./secret']}}}))
        self.check(CLAUDE, CLAUDE.command, CLAUDE.run,
                   'work yes run EROFS usr EROFS key ENOENT secret EACCES port ECONNREFUSED '
                   'http 403')


if __name__ == '__main__':
    become_user()
    main()
