#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A person in a terminal with claude-code-acp: everything that they do in `acp-broker chat`, once; and
one prompt by acpx.
"""

import re
import shlex
import subprocess

from pair import NEEDED, NODE, path_of
from model import Model
import case
from chat_session import VARIABLES, ChatSession
from processes import PATIENCE

AGENT = [str(NODE), path_of('@zed-industries/claude-code-acp/dist/index.js')]


@NEEDED
class Chat(ChatSession):
    agent = AGENT

    def test_a_session_of_claude_code_acp(self):
        self.check_session()


@NEEDED
class Acpx(case.Case):
    """The command in docs/editors.md, unchanged."""

    def test_the_command_of_the_documentation(self):
        model = Model([], 'It greets.')
        self.addCleanup(model.close)
        line, = re.findall('^acpx .*$', (case.ROOT / 'docs/editors.md').read_text(), re.M)
        folder = self.dir / 'bin'
        folder.mkdir()
        for name, words in {'acp-broker': [case.BROKER], 'claude-agent-acp': AGENT,
                            'acpx': [str(NODE), path_of('acpx/dist/cli.js')]}.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (folder / name).chmod(0o755)
        env = dict(self.environment(), **VARIABLES, ANTHROPIC_BASE_URL=model.url,
                   PATH=f'{folder}:{NODE.parent}:/usr/local/bin:/usr/bin:/bin')
        done = subprocess.run(['sh', '-c', line], cwd=self.work, env=env, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('It greets.', done.stdout)
        self.assertEqual(model.problems, [])


if __name__ == '__main__':
    case.main()
