#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What bash, zsh and fish offer while a user types, with the scripts that the package installs."""

import os
import pathlib
import shutil
import subprocess
import unittest

from processes import PATIENCE
from case import BROKER, Case, main

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / 'broker/completions'

BASH = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={last}
_acp_broker
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

# zsh calls these functions; here they print their arguments.
ZSH = """
compdef() {{ }}
_describe() {{ print -rl -- "${{(@)${{(P)2}}%%:*}}" }}
_files() {{ print -r -- files $* }}
_command_names() {{ print -r -- programs }}
source {script}
words=({words}) CURRENT={count}
_acp_broker
"""

FISH = """
source {script}
complete -C {line}
"""


class Completions(Case):
    def setUp(self):
        super().setUp()
        bin_dir = self.dir / 'bin'
        bin_dir.mkdir()
        (bin_dir / 'acp-broker').symlink_to(os.path.abspath(BROKER))
        config = self.dir / 'home/config/acp-broker/config'
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text('[profile "work"]\nbackend = local\n[profile "away"]\nbackend = local\n')
        (self.work / 'a file.txt').write_text('')
        (self.work / 'afolder').mkdir()
        env = self.environment()
        self.env = {**env, 'PATH': f'{bin_dir}:{env["PATH"]}', 'HOME': str(self.dir / 'home')}

    def run_shell(self, shell, *words):
        result = subprocess.run([*shell, *words], cwd=self.work, env=self.env, text=True,
                                capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        return sorted(line for line in result.stdout.splitlines() if line)

    def bash(self, *words):
        quoted = ' '.join(f"'{word}'" for word in ('acp-broker', *words))
        return self.run_shell(['bash', '--norc', '-c'], BASH.format(
            script=SCRIPTS / 'acp-broker.bash', words=quoted, last=len(words)))

    def zsh(self, *words):
        quoted = ' '.join(f"'{word}'" for word in ('acp-broker', *words))
        return self.run_shell(['zsh', '-f', '-c'], ZSH.format(
            script=SCRIPTS / '_acp-broker', words=quoted, count=len(words) + 1))

    def fish(self, *words):
        offered = self.run_shell(['fish', '--no-config', '-c'], FISH.format(
            script=SCRIPTS / 'acp-broker.fish',
            line="'" + ' '.join(('acp-broker', *words)) + "'"))
        return [line.split('\t')[0] for line in offered]

    def check_words(self, shell):
        self.assertEqual(shell('che'), ['check', 'checkpoints'])
        self.assertEqual(shell('conflicts', ''), ['edit', 'list', 'show', 'take'])
        self.assertEqual(shell('help', 'comm'), ['commits'])
        self.assertEqual(shell('checkpoints', 'show', '--s'), ['--stat'])
        self.assertEqual(shell('check', '--s'), [])
        self.assertEqual(shell('--profile', ''), ['away', 'work'])
        self.assertEqual(shell('--log-level', 'w'), ['warning'])
        self.assertEqual(shell('exec', '--approve', ''), ['all', 'none', 'reads'])
        self.assertEqual(shell('exec', '--format', 'j'), ['json'])
        self.assertEqual(shell('conflicts', 'take', 'x', ''), ['local', 'runtime'])

    def test_bash(self):
        self.check_words(self.bash)
        self.assertEqual(self.bash('--config', 'a'), ['a file.txt', 'afolder'])
        self.assertEqual(self.bash('--workspace', 'a'), ['afolder'])
        self.assertIn('true', self.bash('--', 'tru'))
        self.assertEqual(self.bash('--', 'true', 'a'), ['a file.txt', 'afolder'])

    @unittest.skipUnless(shutil.which('zsh'), 'no zsh')
    def test_zsh(self):
        self.check_words(self.zsh)
        self.assertEqual(self.zsh('--config', 'a'), ['files'])
        self.assertEqual(self.zsh('--workspace', 'a'), ['files -/'])
        self.assertEqual(self.zsh('--', 'tru'), ['programs'])

    @unittest.skipUnless(shutil.which('fish'), 'no fish')
    def test_fish(self):
        self.check_words(self.fish)
        self.assertEqual(self.fish('--config', 'a'), ['a file.txt', 'afolder/'])
        self.assertEqual(self.fish('--workspace', 'a'), ['afolder/'])
        self.assertIn('true', self.fish('--', 'tru'))


if __name__ == '__main__':
    main()
