# SPDX-License-Identifier: MIT
"""`acp-broker chat` in a terminal with a real agent, whose model is scripted."""

import json

from model import Model, Step
from pair import NODE
import case
import processes
from terminal import Terminal

VARIABLES = {'ANTHROPIC_API_KEY': 'x', 'DISABLE_AUTOUPDATER': '1',
             'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1'}


class ChatSession(Terminal):
    """The agent works in a copy, so that the test can look at turns and undo them."""

    agent = None  # its command
    asking = 'default'  # the mode in which it asks before it edits

    def setUp(self):
        super().setUp()
        self.model = Model([], 'All of it is **done**.')
        self.model.without_tools = '<severity>0</severity>'
        self.addCleanup(self.model.close)
        self.notes = self.work / 'notes.txt'
        self.notes.write_text('eins\nzwei\n')
        self.path = self.dir / 'config'
        self.path.write_text('[profile "p"]\n\tisolation = copy\n')

    def environment(self):
        env = super().environment()
        env['PATH'] = f'{NODE.parent}:/usr/local/bin:/usr/bin:/bin'
        return env

    def chat(self, *options):
        self.begin(argv=[case.BROKER, 'chat', '--config', str(self.path), '--profile', 'p',
                         *options, '--', *self.agent],
                   columns=100, **VARIABLES, ANTHROPIC_BASE_URL=self.model.url)

    def root(self):
        """The agent's path of the workspace."""
        record, = (self.dir / 'home/state/acp-broker/sessions').glob('*.json')
        return json.loads(record.read_text())['runtimeRoot']

    def clear(self):
        """Clears the screen."""
        self.tmux('send-keys', '-R')
        self.tmux('clear-history')

    def edit(self, old, new):
        notes = f'{self.root()}/notes.txt'
        self.model.steps = [
            Step('Read', file_path=notes),
            Step('Edit', file_path=notes, old_string=old, new_string=new)]
        self.clear()
        self.type(f'Please write {new}', 'Enter')
        screen = self.wait_for('? The agent', 'notes.txt', f'- {old}', f'+ {new}', '[y]')
        self.assertNotIn(self.root(), screen)  # all names are those in the workspace
        self.assertIn(old, self.notes.read_text())
        self.type('y')
        self.wait_for('  -> ', '\n+ ', 'All of it is **done**.')
        self.assertEqual(self.model.problems, [])
        self.wait_text(new)

    def wait_text(self, text):
        self.assertTrue(processes.wait_until(lambda: text in self.notes.read_text()),
                        self.notes.read_text())

    def check_session(self):
        self.chat()
        self.type(f'/mode {self.asking}', 'Enter')
        self.wait_for(f'mode: {self.asking}')
        self.clear()
        self.type('/mode', 'Enter')
        self.wait_for(f'* {self.asking}', '  plan')
        self.edit('eins', 'one')
        self.edit('zwei', 'two')
        self.clear()
        self.type('/diff', 'Enter')
        self.wait_for('-zwei', '+two', ' one')
        self.type('/undo', 'Enter')
        self.wait_text('zwei')
        self.assertIn('one', self.notes.read_text())
        self.type('/undo', 'Enter')
        self.wait_text('eins')
        self.clear()
        self.type('/undo', 'Enter')
        self.wait_for('no turn is left')
        self.type('/model', 'Enter')
        self.wait_for('* default')
        self.check_cancel()
        self.end()
        self.check_resumed()

    def check_cancel(self):
        self.model.steps = [Step('Bash', command='exec sleep 300', description='sleeps',
                                 timeout=600000, run_in_background=False)]
        self.clear()
        self.type('Please wait', 'Enter')
        self.wait_for('asks:', 'sleep 300', '[y]')
        self.type('y')
        self.wait_for('  -> ')
        self.tmux('send-keys', 'C-c')
        self.wait_for('cancelling', 'ended: cancelled')

    def check_resumed(self):
        self.chat('--resume')
        self.wait_for('> Please write one', '- eins', '+ one', '> Please write two')
        self.type('/quit', 'Enter')
        self.wait_for('status=0', ' icanon')
