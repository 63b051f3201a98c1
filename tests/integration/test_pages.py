#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
README.md and the pages for users: the broker understands every setting and every command in them.
"""

import json
import os
import re
import shlex
import subprocess

import case
from processes import PATIENCE

DEVELOPERS = {'adding.md', 'architecture.md', 'message.md', 'session.md', 'sync.md'}
ELSEWHERE = {'daemons.md'}  # test_daemons.py runs all of it
PAGES = [case.ROOT / 'README.md',
         *(path for path in sorted((case.ROOT / 'docs').glob('*.md'))
           if path.name not in DEVELOPERS | ELSEWHERE)]
BLOCK = re.compile(r'^( *)```(\w+)\n(.*?)^\1```$', re.M | re.S)
PROFILE = re.compile(r'^\[profile "(.+)"\]', re.M)

# Commands for people or for other tests: installing, building, measuring, and other programs.
NOT_RUN = ('./dev ', 'sudo ', 'npm ', 'meson ', 'acpx ', 'toad ', 'podman ',
           'exec podman ')

# Commands that wait for a terminal, or run until somebody ends them; other tests run them.
ENDLESS = ('acp-broker chat', 'acp-broker init', 'acp-broker status --watch')

NOWHERE = '\tapi-url = http://127.0.0.1:9\n\tapi-timeout = 1s'

# The profiles and variables that the examples name.
CONFIG = '''
[agent "claude"]
	command = claude-agent-acp
[profile "work"]
	agent = claude
[profile "copy"]
	isolation = copy
	agent = claude
[profile "confined"]
	isolation = copy
	agent = claude
[profile "devbox"]
	backend = ssh
	host = 127.0.0.1
	port = 9
	agent = claude
	ssh-client = libssh2
	connect-timeout = 5s
[profile "box"]
	backend = exec
	agent = claude
	exec = false
[profile "cluster"]
	backend = slurm
	agent = claude
[profile "cloud"]
	backend = daytona
''' + NOWHERE + '''
	agent = claude
'''
VARIABLES = ('ANTHROPIC_API_KEY', 'DAYTONA_API_KEY', 'GEMINI_API_KEY', 'GITHUB_TOKEN',
             'OPENAI_API_KEY')


def blocks(*kinds):
    """(page, text) of each code block of these kinds, without indentation."""
    for path in PAGES:
        for indent, kind, text in BLOCK.findall(path.read_text()):
            if kind in kinds:
                yield path.name, re.sub(f'^{indent}', '', text, flags=re.M)


def commands():
    """(page, command) of each line for the shell."""
    for page, text in blocks('sh'):
        for line in text.replace('\\\n', ' ').splitlines():
            command = re.sub(r'\s+#.*', '', line).strip()
            if command and not command.startswith('#'):
                yield page, command


class Pages(case.Case):
    def setUp(self):
        super().setUp()
        programs = self.dir / 'programs'
        programs.mkdir()
        for name, program in {'acp-broker': case.BROKER, 'claude-agent-acp': case.AGENT}.items():
            (programs / name).symlink_to(program)
        self.path = f'{programs}:{os.environ["PATH"]}'
        folder = self.dir / 'home/config/acp-broker'
        folder.mkdir(parents=True)
        (folder / 'config').write_text(CONFIG)
        for name in '.claude/.credentials.json', '.local/bin/tool':
            (self.dir / 'home' / name).parent.mkdir(parents=True, exist_ok=True)
            (self.dir / 'home' / name).write_text('{}\n')
        (self.work / 'main.c').write_text('int main(void);\n')

    def environment(self):
        env = {**super().environment(), 'PATH': self.path}
        return {**env, **{name: 'a-value-that-nobody-knows' for name in VARIABLES}}

    def run_it(self, command):
        return subprocess.run(command, cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)

    def test_every_setting_is_understood(self):
        count = 0
        for page, text in blocks('ini'):
            file = self.dir / f'config-{count}'
            file.write_text(text.replace('= daytona', f'= daytona\n{NOWHERE}'))
            for profile in PROFILE.findall(text) or [None]:
                named = ['--profile', profile] if profile else []
                done = self.run_it(['acp-broker', '--config', str(file), *named, 'check',
                                    '--', 'claude-agent-acp'])
                with self.subTest(page=page, text=text):
                    self.assertNotEqual(done.returncode, 2, done.stderr)
            count += 1
        self.assertGreater(count, 7)

    def test_every_command_is_understood(self):
        for words in ['init', '-q'], ['add', '.']:
            self.run_it(['git', *words])
        (self.work / 'main.c').write_text('int main(void) { return 0; }\n')
        count = 0
        for page, command in commands():
            if command.startswith(NOT_RUN + ENDLESS):
                continue
            with self.subTest(page=page, command=command):
                self.assertIn('acp-broker', command)
                done = self.run_it(['sh', '-c', command])
                self.assertIn(done.returncode, (0, 1), done.stderr)
            count += 1
        self.assertGreater(count, 20)

    def test_every_example_of_json_is_json(self):
        for page, text in blocks('json'):
            with self.subTest(page=page):
                for server in json.loads(text).get('agent_servers', {}).values():
                    words = [server['command'], *server['args']]
                    done = self.run_it(words)
                    self.assertIn(done.returncode, (0, 1), (shlex.join(words), done.stderr))


if __name__ == '__main__':
    case.main()
