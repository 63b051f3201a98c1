#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker chat` in a real terminal (tmux), and without one."""

import fcntl
import json
import subprocess

import processes
from case import BROKER, main
from processes import PATIENCE
from terminal import Chat, Terminal

HOSTILE = 'a\x1b]0;owned\x07b\x1b[2Jc\u202ed'


class InTerminal(Terminal):
    def test_a_session(self):
        """A prompt, a question, a cancelled turn and a paste, all in one chat."""
        self.begin()
        self.type('say one **two**', 'Enter')
        self.wait_for('\none **two**\n')
        self.type('permission Do it', 'Enter')
        self.wait_for('* Do it', '? The agent', 'asks: Do it', '[y]', '[n]')
        self.type('x')
        self.type('y')
        self.wait_for('  -> Allow', '+ Do it', '"optionId":"yes"')
        self.type('hang', 'Enter')
        self.wait_for('> hang')
        self.assertTrue(processes.wait_until(lambda: len(self.sent('session/prompt')) == 3))
        self.tmux('send-keys', 'C-c')
        self.wait_for('cancelling', 'ended: cancelled')
        self.tmux('send-keys', 'C-c')  # the first one of this turn
        self.wait_for('Ctrl-C again')
        self.tmux('set-buffer', 'say first\nsay second\n')
        self.tmux('paste-buffer', '-p')
        self.wait_for('say second')
        self.assertEqual(len(self.sent('session/prompt')), 3)  # a line end in a paste sends nothing
        self.tmux('send-keys', 'Enter')
        self.wait_for('\nfirstsecond\n')
        self.assertEqual(self.sent('session/prompt')[3]['prompt'][0]['text'].rstrip('\n'),
                         'say first\nsay second')
        self.end()

    def test_what_the_agent_sends_drives_no_terminal(self):
        self.begin()
        for kind in ('agent_message_chunk', 'agent_thought_chunk'):
            self.type('update ' + json.dumps({
                'sessionUpdate': kind, 'content': {'type': 'text', 'text': HOSTILE}}), 'Enter')
        self.type('permission ' + json.dumps(HOSTILE)[1:-1].replace('\\', '\\\\'), 'Enter')
        self.wait_for('asks:')
        self.type('n')
        self.wait_for('  -> Reject')
        screen = self.screen()
        self.assertGreaterEqual(screen.count('a^[]0;owned^Gb^[[2Jc<U+202E>d'), 2)
        self.assertNotIn('owned', self.tmux('display-message', '-p', '#{pane_title}'))
        self.end()

    def test_forty_columns_and_no_colours(self):
        self.begin(columns=40, NO_COLOR=1)
        title = 'a title that is much longer than forty columns are'
        self.type('update ' + json.dumps({
            'sessionUpdate': 'tool_call', 'toolCallId': '1', 'title': title,
            'status': 'completed', 'content': [
                {'type': 'diff', 'path': '/f', 'oldText': 'a\nb\nc', 'newText': 'a\nB\nc'}]}),
            'Enter')
        screen = self.wait_for('\n* a title', '\n+ a title', '- b', '+ B')
        lines = [line for line in screen.splitlines() if line[:9] in ('* a title', '+ a title')]
        self.assertEqual([len(line) for line in lines], [40, 40])
        self.assertNotIn('\x1b', self.screen('-e'))
        self.end()

    def test_the_name_of_a_file_is_completed(self):
        (self.work / 'folder').mkdir()
        for name in ('one.txt', 'only.txt', 'two\x1b[2J.txt', 'with a \\.txt'):
            (self.work / 'folder' / name).write_text('')
        self.begin()
        self.type('say @fo', 'Tab')
        self.wait_for('> say @folder/')
        self.type('o', 'Tab', 'Tab')
        self.wait_for('one.txt', 'only.txt', '> say @folder/on')
        self.type('e', 'Tab')
        self.type('@folder/w', 'Tab')
        self.wait_for('@folder/one.txt @folder/with\\ a\\ \\\\.txt')
        self.tmux('send-keys', 'Enter')
        self.assertTrue(processes.wait_until(lambda: self.sent('session/prompt')))
        prompt = self.sent('session/prompt')[0]['prompt']
        self.assertEqual([one.get('name') for one in prompt if one['type'] == 'resource_link'],
                         ['folder/one.txt', 'folder/with a \\.txt'])
        self.end()

    def test_a_stop_gives_the_terminal_back_and_takes_it_again(self):
        self.begin(stops=True)
        self.type('say not')
        self.wait_for('> say not')
        self.tmux('send-keys', 'C-z')
        self.wait_for('stopped', ' icanon')
        self.tmux('send-keys', 'Enter')
        self.wait_for('> say not')  # chat shows again what was typed
        self.type(' yet')
        self.wait_for('> say not yet')
        self.tmux('send-keys', 'Enter')
        self.wait_for('\nnot yet\n')
        self.end()

    def test_another_size_of_the_terminal(self):
        self.begin(columns=100)
        self.type('say ' + 'word ' * 12)
        self.wait_for('> say ' + 'word ' * 11)
        self.tmux('resize-window', '-x', '40', '-y', '30')
        self.type('last', 'Enter')
        self.wait_for('last\n')
        self.assertTrue(processes.wait_until(lambda: self.sent('session/prompt')))
        self.assertEqual(self.sent('session/prompt')[0]['prompt'][0]['text'],
                         'say ' + 'word ' * 12 + 'last')
        self.type('permission a title that is much longer than forty columns are', 'Enter')
        screen = self.wait_for('\n* a title', '[n]')
        line, = [line for line in screen.splitlines() if line.startswith('* a title')]
        self.assertEqual(len(line), 40)
        self.type('n')
        self.wait_for('  -> ')
        self.end()

    def test_a_terminal_that_can_do_nothing(self):
        self.begin(columns=40, TERM='dumb')
        self.type('say **one**', 'Enter')
        self.wait_for('> say **one**\n**one**\n')
        self.type('permission Do it', 'Enter')
        self.wait_for('asks: Do it', '[y]')
        self.type('y', 'Enter')
        self.wait_for('  -> Allow', '+ Do it')
        self.type('hang', 'Enter')
        self.assertTrue(processes.wait_until(lambda: len(self.sent('session/prompt')) == 3))
        self.tmux('send-keys', 'C-c')
        self.wait_for('ended: cancelled')
        self.assertNotIn('\x1b', self.screen('-e'))
        self.end()

    def test_what_takes_long_has_a_line_that_goes_again(self):
        config = self.dir / 'config'
        config.write_text('[profile "p"]\n\tisolation = copy\n')
        self.begin(argv=self.argv('--config', str(config), '--profile', 'p'))
        store, = (self.dir / 'home/state/acp-broker/stores').iterdir()

        def held(keys, wanted):
            """The screen while another process has the store's lock, so that no sync can begin."""
            with open(store / 'acp-broker.lock', 'r+b') as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self.tmux('send-keys', *keys)
                return self.wait_for(*wanted)
        self.type('say one')
        screen = held(['Enter'], ['\n~ Syncing workspace', ' s)'])
        self.assertNotIn('* Syncing', screen)
        self.wait_for('\none\n', '\n>')
        self.assertNotIn('~', self.screen())
        held(['C-d'], ['\n~ bringing', ' s)'])
        self.assertNotIn('~', self.wait_for('status=0', ' icanon'))

    def test_a_second_interrupt_ends_it(self):
        self.begin()
        self.type('not sent')
        self.wait_for('> not sent')
        self.tmux('send-keys', 'C-c')
        self.wait_for('Ctrl-D')
        self.tmux('send-keys', 'C-c')
        self.wait_for('status=130', ' icanon')


class Piped(Chat):
    def run_chat(self, stdin, *options, status=0, **more):
        done = subprocess.run(self.argv(*options, **more), input=stdin.encode(),
                              capture_output=True, cwd=self.work, env=self.environment(),
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, status, done)
        return done.stdout.decode(), done.stderr.decode()

    def test_each_line_is_a_prompt_and_nobody_is_asked(self):
        out, err = self.run_chat('say one\n\nsay **two**\npermission Do it')
        self.assertEqual(err, '')
        self.assertTrue(out.startswith('one\n**two**\n* Do it\n'), out)
        self.assertIn('"optionId":"no"', out)
        self.assertNotIn('\x1b', out)
        self.assertEqual(len(self.sent('session/prompt')), 3)

    def test_commands_work_on_the_store(self):
        config = self.dir / 'config'
        config.write_text('[profile "p"]\n\tisolation = copy\n')
        file = self.work / 'a'
        file.write_text('old\n')
        done = '/diff\n/conflicts\n/undo 99\n/undo\n/sessions list\n/commits\n/unknown\n'
        out, _ = self.run_chat('terminal sed -i s/old/new/ a\n' + done, '--config', str(config),
                               '--profile', 'p')
        self.assertNames(out, '-old | +new | no checkpoint 99')
        self.assertEqual(file.read_text(), 'old\n')
        self.assertEqual(self.sent('session/prompt')[-1]['prompt'][0]['text'], '/unknown')

    def test_names_of_files_become_links(self):
        (self.work / 'notes.txt').write_text('')
        (self.work / 'a folder').mkdir()
        (self.work / 'a folder' / 'ä#%?.c').write_text('')
        (self.work / 'link').symlink_to('/nowhere')
        config = self.dir / 'config'
        config.write_text('[profile "p"]\n\tisolation = copy\n')

        def blocks(line, *options):
            self.run_chat(line, *options)
            return [(one['type'], one.get('text'), one.get('name'), one.get('uri'))
                    for one in self.sent('session/prompt')[0]['prompt']]

        def link(name, path, root=self.work):
            return ('resource_link', None, name, f'file://{root}/{path}')

        def text(words):
            return ('text', words, None, None)
        self.assertEqual(
            blocks('say @notes.txt, (@./notes.txt) and @a\\ folder/ä#%?.c!'),
            [text('say '), link('notes.txt', 'notes.txt'), text(', ('),
             link('./notes.txt', 'notes.txt'), text(') and '),
             link('a folder/ä#%?.c', 'a%20folder/%C3%A4%23%25%3F.c'), text('!')])
        for line in ('say @none a@notes.txt @ @link @notes.txt/ \x1b@notes.txt', '@\\', '@@@'):
            self.assertEqual(blocks(line), [text(line)])
        self.assertEqual(blocks(f'@{self.work}/notes.txt'),
                         [link(f'{self.work}/notes.txt', 'notes.txt')])
        # In a copy, the agent gets the copy's path.
        (_, _, name, uri), = blocks('@notes.txt', '--config', str(config), '--profile', 'p')
        self.assertEqual((name, uri.startswith(f'file://{self.work}')), ('notes.txt', False))
        self.assertTrue(uri.endswith('/notes.txt'), uri)

    def test_modes_and_models(self):
        out, _ = self.run_chat('/mode\n/mode code\n/mode none\n/model\n')
        self.assertEqual(out.count('code  Code'), 2)
        self.assertIn('no such mode', out)
        self.assertIn('no model', out)
        self.assertEqual([one['modeId'] for one in self.sent('session/set_mode')], ['code'])
        option = {'id': 'm', 'name': 'M', 'type': 'select', 'category': 'model',
                  'currentValue': 'large', 'options': [{'value': 'small', 'name': 'Small'}]}
        self.run_chat('/model Small\n',
                      flags=['--modes', '"configOptions":' + json.dumps([option])])
        sent = self.sent('session/set_config_option')[0]
        self.assertEqual((sent['configId'], sent['value']), ('m', 'small'))

    def test_an_earlier_session_goes_on(self):
        out, _ = self.run_chat('say on', '--resume', 's-77')
        self.assertEqual(self.sent('session/load')[0]['sessionId'], 's-77')
        self.assertEqual(self.sent('session/new'), [])
        self.assertTrue(out.endswith('\non\n'), out)
        self.run_chat('/load\nsay on')  # the workspace has only this session, so no id is needed
        self.assertEqual(len(self.sent('session/load')), 1)
        for words, status, facts in ((['--resume'], 1, f'earlier session | {self.work}'),
                                     (['s-77'], 2, 'chat | --resume | s-77')):
            out, err = self.run_chat('', *words, status=status)
            self.assertNames(err, facts)

    def test_it_ends_with_a_failure(self):
        error = {'code': -32000, 'message': 'no way'}
        out, _ = self.run_chat('error ' + json.dumps(error) + '\nsay on\n', status=1)
        self.assertIn('no way', out)
        self.assertIn('\non\n', out)
        done = subprocess.run([BROKER, 'chat', '--', '/nowhere/agent'], input=b'',
                              capture_output=True, cwd=self.work, env=self.environment(),
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNames(done.stderr.decode(), 'initialize | /nowhere/agent | AGENT_NOT_FOUND')


if __name__ == '__main__':
    main()
