# SPDX-License-Identifier: MIT
"""`acp-broker chat` in a real terminal: tmux sends the keys and reads the screen."""

import json
import shlex
import subprocess

import processes
from case import BROKER, Case
from processes import PATIENCE


class Chat(Case):
    def argv(self, *options, flags=()):
        return [BROKER, 'chat', *options, '--', *self.agent_argv(*flags)]

    def sent(self, method):
        found = [json.loads(line) for line in self.journal('<')]
        return [one['params'] for one in found if one.get('method') == method]


class Terminal(Chat):
    has_begun = False

    def tmux(self, *words):
        return subprocess.run(['tmux', '-S', str(self.dir / 'tmux'), '-f', '/dev/null', *words],
                              capture_output=True, text=True, env=self.environment(),
                              timeout=PATIENCE, check=False).stdout

    def begin(self, columns=80, argv=None, stops=False, **variables):
        """A shell in the terminal starts the chat, and afterwards prints how it ended."""
        words = shlex.join(argv or self.argv())
        before = ' '.join(f'{name}={shlex.quote(str(value))}' for name, value in variables.items())
        # Ctrl-C also reaches the shell, which would end without the trap.
        after = 'echo status=$?; stty -a | grep -o " icanon"; exec cat'
        line = f'trap : INT; {before} {words}; {after}'
        if stops:  # a shell with jobs: after Ctrl-Z the chat goes on when a line is typed
            line = (f'set -m; {words}; stty -a | grep -o " icanon"; echo stopped; read line; '
                    f'clear; fg; {after}')
        if self.has_begun:  # the same terminal; this kills the program in it
            self.tmux('respawn-pane', '-k', '-c', str(self.work), 'sh', '-c', line)
        else:
            self.addCleanup(self.tmux, 'kill-server')
            self.tmux('new-session', '-d', '-x', str(columns), '-y', '40', '-c', str(self.work),
                      'sh', '-c', line)
        self.has_begun = True
        self.wait_for('/help')

    def screen(self, *options):
        return self.tmux('capture-pane', '-p', *options)

    def wait_for(self, *texts):
        def is_there():
            screen = self.screen()
            return all(text in screen for text in texts)
        if not processes.wait_until(is_there):
            self.fail(f'{texts} not on the screen:\n{self.screen()}')
        return self.screen()

    def type(self, text, *keys):
        self.tmux('send-keys', '-l', text)
        if keys:
            self.tmux('send-keys', *keys)

    def end(self):
        self.tmux('send-keys', 'C-d')
        self.wait_for('status=0', ' icanon')
