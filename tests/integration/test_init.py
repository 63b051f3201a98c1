#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""acp-broker init: what it asks, what it writes, and what it does not touch."""

import json
import os
import pty
import subprocess

import case
import processes
from processes import PATIENCE

ZED = ('// mine\n{\n\t"theme": "One", // dark\n\t"agent_servers": {\n'
       '\t\t"o": {"command": "c"},\n\t},\n}\n')


class Init(case.Case):
    def setUp(self):
        super().setUp()
        self.programs = self.dir / 'programs'
        self.programs.mkdir()
        for name in 'claude-agent-acp', 'gemini', 'ssh':
            self.program(name)
        (self.programs / 'acp-broker').symlink_to(os.path.abspath(case.BROKER))
        self.file = self.dir / 'home/config/acp-broker/config'
        self.zed = self.dir / 'home/config/zed/settings.json'

    def program(self, name):
        (self.programs / name).write_text('#!/bin/sh\nexit 1\n')
        (self.programs / name).chmod(0o700)

    def environment(self):
        return {**super().environment(), 'PATH': str(self.programs)}

    def run_it(self, *words):
        return subprocess.run([case.BROKER, *words], cwd=self.work, env=self.environment(),
                              text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=PATIENCE)

    def init(self, *words, status=0):
        done = self.run_it('init', *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual([str(path) for path in self.dir.rglob('*acp-broker-*')], [])
        return done

    def checked(self, *words):
        done = self.run_it(*words, 'check', '--json')
        return json.loads(done.stdout)

    def test_the_options_say_it_all(self):
        """
        A new configuration works without --profile. A second profile changes no existing byte of
        it.
        """
        done = self.init('--agent', 'claude', '--place', 'copy')
        self.assertIn('+[profile "claude-copy"]\n+\tagent = claude\n+\tisolation = copy\n',
                      done.stdout)
        self.assertIn('acp-broker chat ', done.stdout)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        checked = self.checked()
        self.assertEqual((checked['profile'], checked['agent']['name']), ('claude-copy', 'claude'))
        before = self.file.read_text()
        done = self.init('--agent=gemini', '--place=host', '--host=kim@devbox')
        self.assertTrue(self.file.read_text().startswith(before))
        self.assertIn('acp-broker doctor --profile gemini-kim@devbox', done.stdout)
        self.assertIn('[profile "gemini-kim@devbox"]\n\tbackend = ssh\n\thost = kim@devbox\n'
                      '\tagent = gemini\n', self.file.read_text())
        after = self.file.read_text()
        self.init('--agent=gemini', '--place=host', '--host=kim@devbox')
        self.assertEqual(self.file.read_text(), after)

    def test_nothing_is_written_for_a_mistake(self):
        cases = {
            (): '--agent | --place | --yes',
            ('--agent', 'claude'): '--place | --yes',
            ('--agent', 'cluade', '--place', 'here'): '--agent | "claude"',
            ('--agent', 'claude', '--place', 'moon'): '--place | here | confined | copy | host | '
                                                      'cloud | "moon"',
            ('--agent', 'claude', '--place', 'host'): '--place host | --host NAME',
            ('--agent', 'claude', '--place', 'host', '--host=-oX'): '--host',
            ('--agent', 'claude', '--place', 'copy', '--host=a'): '--place copy | --host',
            ('--agent', 'claude', '--place', 'here', '--editor=ed'): '--editor | none | zed | '
                                                                     'jetbrains | "ed"',
            ('--agent', 'claude', '--place', 'here', '--profile=a b'): '--profile',
            ('--yes', '--', 'claude-agent-acp'): '--agent NAME | acp-broker agents',
        }
        for words, wanted in cases.items():
            with self.subTest(words):
                self.check_line(self.init(*words, status=2).stderr, wanted)
        self.check_line(self.init('--agent=claude', '--place=cloud', status=1).stderr,
                        '--place cloud | DAYTONA_API_KEY')
        (self.programs / 'ssh').unlink()
        self.check_line(self.init('--agent=claude', '--place=host', '--host=a', status=1).stderr,
                        '--place host | ssh')
        self.assertFalse(self.file.exists())

    def test_dry_run_writes_nothing_and_yes_takes_the_defaults(self):
        done = self.init('--yes', '--dry-run')
        self.assertIn('claude-here', done.stdout)
        self.assertFalse(self.file.exists())
        self.init('--yes')
        self.assertEqual(self.checked()['profile'], 'claude-here')
        for name in 'claude-agent-acp', 'gemini':
            (self.programs / name).unlink()
        self.check_line(self.init('--yes', status=2).stderr, '--agent NAME | acp-broker agents')

    def test_confinement_is_tried_before_it_is_promised(self):
        for place, lines in (('confined', ('confine = ',)),
                             ('asking', ('confine = required', 'network = ask'))):
            done = self.run_it('init', '--agent=claude', f'--place={place}')
            for line in lines if done.returncode == 0 else ():
                self.assertIn(f'+\t{line}', done.stdout)
            if done.returncode != 0:
                self.check_line(done.stderr, f'--place {place}')
                self.assertFalse(self.file.exists())
        self.assertEqual(list(self.dir.glob('acp-broker-*')), [])
        self.assertFalse((self.dir / 'home/state').exists())

    def test_another_profile_of_the_name_stays(self):
        self.file.parent.mkdir(parents=True)
        for text in ('[profile "p"]\n\tagent = gemini', '[broker]\n\ttrace = \\\n',
                     '[profile "q"\n'):
            with self.subTest(text):
                self.file.write_text(text)
                done = self.run_it('init', '--agent=claude', '--place=here', '--profile=p')
                self.assertNotEqual(done.returncode, 0)
                self.check_line(done.stderr, str(self.file))
                self.assertEqual(self.file.read_text(), text)
        self.file.write_text('[profile "p"]\n\tagent = gemini')
        done = self.init('--agent=claude', '--place=here', '--profile=p', status=1)
        self.assertIn('-agent = gemini\n+agent = claude\n', done.stdout)

    def test_the_editors_settings_are_added_to(self):
        (self.dir / 'dotfiles').mkdir()
        kept = self.dir / 'dotfiles/zed.json'
        kept.write_text(ZED)
        kept.chmod(0o640)
        self.zed.parent.mkdir(parents=True)
        self.zed.symlink_to(kept)
        done = self.init('--agent=claude', '--place=here', '--editor=zed')
        text = kept.read_text()
        at = ZED.index('\t\t"o"')
        self.assertEqual((text[:at], text[at - len(ZED):]), (ZED[:at], ZED[at:]))
        added = text[at:at - len(ZED)]
        self.assertEqual(json.loads('{' + added.rstrip().rstrip(',') + '}'), {
            'claude-here (broker)': {'type': 'custom', 'command': 'acp-broker',
                                     'args': ['--profile', 'claude-here'], 'env': {}}})
        self.assertIn('+\t\t"claude-here (broker)": {\n', done.stdout)
        self.assertNames(done.stdout.splitlines()[-1], 'Zed | "claude-here (broker)"')
        self.assertTrue(self.zed.is_symlink())
        self.assertEqual(kept.stat().st_mode & 0o777, 0o640)
        self.init('--agent=claude', '--place=here', '--editor=zed')
        self.assertEqual(kept.read_text(), text)
        self.init('--agent=claude', '--place=here', '--editor=jetbrains')
        servers = json.loads((self.dir / 'home/.jetbrains/acp.json').read_text())['agent_servers']
        self.assertEqual(servers['claude-here (broker)'],
                         {'command': 'acp-broker', 'args': ['--profile', 'claude-here']})

    def test_settings_that_cannot_be_understood_are_left_and_the_lines_printed(self):
        for text in '{\n"a": 1\n"b": 2}\n', '{"agent_servers": {"claude-here (broker)": {}}}':
            with self.subTest(text):
                self.zed.parent.mkdir(parents=True, exist_ok=True)
                self.zed.write_text(text)
                done = self.init('--agent=claude', '--place=here', '--editor=zed', status=1)
                self.check_line(done.stderr, str(self.zed))
                self.assertIn('"command": "acp-broker"', done.stdout)
                self.assertEqual(self.zed.read_text(), text)
                self.assertEqual(self.checked()['profile'], 'claude-here')

    def answer(self, *answers):
        """Answers each question in a terminal when it appears; returns (status, what was shown)."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([case.BROKER, 'init'], cwd=self.work, env=self.environment(),
                              stdin=theirs, stdout=theirs, stderr=theirs) as program:
            os.close(theirs)
            shown = ''
            for question, answer in answers:
                while question not in shown:
                    shown += self.read(ours)
                shown = shown[shown.index(question):]
                while '] ' not in shown:
                    shown += self.read(ours)
                shown = ''
                os.write(ours, answer)
            while text := self.read(ours):
                shown += text
            status = program.wait(PATIENCE)
        os.close(ours)
        return status, shown

    @staticmethod
    def read(terminal):
        try:
            return os.read(terminal, 4096).decode()
        except OSError:  # its other end is closed
            return ''

    def test_a_terminal_is_asked_and_enter_takes_the_first(self):
        status, shown = self.answer(('Which agent?', b'\n'), ('Where does it work?', b'\n'),
                                    ('Write this?', b'\n'))
        self.assertEqual(status, 0, shown)
        self.assertIn('acp-broker chat', shown)
        self.assertEqual(self.checked()['profile'], 'claude-here')

    def test_answers_are_numbers_or_words(self):
        (self.dir / 'home/.ssh').mkdir(parents=True)
        (self.dir / 'home/.ssh/config').write_text('Host one two\n')
        self.zed.parent.mkdir(parents=True)
        status, shown = self.answer(('Which agent?', b'gemini\n'), ('Where does it', b'host\n'),
                                    ('Which host?', b'2\n'), ('Which editor', b'9\n'),
                                    ('1 to 2', b'zed\n'), ('Write this?', b'\n'))
        self.assertEqual(status, 0, shown)
        self.assertIn('\thost = two\n', self.file.read_text())
        self.assertIn('gemini-two (broker)', self.zed.read_text())

    def test_a_no_and_an_end_write_nothing(self):
        for last in b'n\n', b'\x04':
            status, shown = self.answer(('Which agent?', b'\n'), ('Where does it', b'\n'),
                                        ('Write this?', last))
            self.assertEqual(status, 1, shown)
        self.assertFalse(self.file.exists())


if __name__ == '__main__':
    case.main()
