#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""acp-broker agents: the known agents, the configured ones, and where they are."""

import json
import subprocess

import case
from processes import PATIENCE
from sync_case import checked

CONFIG = '''
[agent "mine"]
	command = unknown-agent
	arg = --fast
[agent "gemini"]
	command = gemini
	arg = --acp
'''
PROGRAM = '#!/bin/sh\necho "$0 $*" >>"{journal}"\n{rest}\n'


class Agents(case.Case):
    def setUp(self):
        super().setUp()
        self.programs = self.dir / 'programs'
        self.programs.mkdir()
        self.journal = self.dir / 'journal'
        self.config = self.dir / 'config'
        self.config.write_text(CONFIG)

    def program(self, name, rest):
        (self.programs / name).write_text(PROGRAM.format(journal=self.journal, rest=rest))
        (self.programs / name).chmod(0o700)
        return str(self.programs / name)

    def run_it(self, *words):
        env = {**self.environment(), 'PATH': f'{self.programs}:/usr/bin:/bin'}
        return subprocess.run([case.BROKER, '--config', str(self.config), 'agents', *words],
                              cwd=self.work, env=env, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=PATIENCE)

    def test_a_full_disk_is_said_by_every_command(self):
        for words in (['agents'], ['agents', '--json'], ['check', '--', 'true'],
                      ['status', '--json'], ['test-provider', '--json'],
                      ['policy', 'explain', 'read', 'a'], ['prune', '--dry-run'],
                      ['help'], ['version']):
            with self.subTest(words), open('/dev/full', 'wb') as full:
                done = subprocess.run([case.BROKER, *words], cwd=self.work, stdout=full,
                                      stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      env=self.environment(), check=False, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr),
                                 (1, b'acp-broker: writing to stdout: No space left on device\n'))

    def listed(self):
        done = self.run_it('--json')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return {agent['name']: agent
                for agent in checked('agents', 'result', json.loads(done.stdout))['agents']}

    def test_each_is_found_and_known_agents_say_their_version(self):
        claude = self.program('claude-agent-acp', r"printf 'claude 9.9 \033[2J\nmore\n'")
        gemini = self.program('gemini', 'echo 1.2')
        mine = self.program('unknown-agent', 'echo 7')
        agents = self.listed()
        self.assertEqual(list(agents)[:2], ['mine', 'gemini'])
        self.assertEqual((agents['claude']['program'], agents['claude']['version']),
                         (claude, 'claude 9.9 ^[[2J'))
        self.assertEqual((agents['gemini']['program'], agents['gemini']['version'],
                          agents['gemini']['isConfigured']), (gemini, '1.2', True))
        self.assertEqual((agents['mine']['program'], agents['mine']['version'],
                          agents['mine']['argv']), (mine, None, ['unknown-agent', '--fast']))
        self.assertIsNone(agents['codex']['program'])
        self.assertIn('npm install', agents['codex']['install'])
        self.assertEqual(sorted(self.journal.read_text().split('\n')),
                         ['', f'{claude} --version', f'{gemini} --version'])

    def test_a_version_that_fails_is_none(self):
        self.program('codex-acp', 'echo no; exit 3')
        self.program('qwen', 'echo; seq 100000')
        agents = self.listed()
        self.assertIsNone(agents['codex']['version'])
        self.assertIsNone(agents['qwen']['version'])
        self.assertEqual(len([name for name in agents if agents[name]['program']]), 2)

    def test_a_version_shows_no_secret(self):
        self.program('qwen', 'echo "1.0 $OPENAI_API_KEY."')
        with_key = {**self.environment(), 'OPENAI_API_KEY': 'sk-very-secret'}
        self.environment = lambda: with_key
        self.assertEqual(self.listed()['qwen']['version'], '1.0 ***.')

    def test_the_lines_for_people_name_what_to_do(self):
        self.program('claude-agent-acp', 'echo 1')
        done = self.run_it()
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        for fact in ('claude', str(self.programs / 'claude-agent-acp'), 'ANTHROPIC_API_KEY',
                     'npm install -g @google/gemini-cli'):
            self.assertIn(fact, done.stdout)

    def test_a_configuration_that_cannot_be_read_is_named(self):
        self.config.write_text('[agent "x"\n')
        done = self.run_it()
        self.assertEqual(done.returncode, 2)
        self.assertIn(str(self.config), done.stderr)


if __name__ == '__main__':
    case.main()
