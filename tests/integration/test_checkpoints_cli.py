#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`acp-broker checkpoints list`, `show` and `diff`, and how they find the workspace:
`test_checkpoints_cli.py [BROKER]`, or the binary that ACP_BROKER names.
"""

import json
import os
import pty
import subprocess
import sys

if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
    os.environ['ACP_BROKER'] = sys.argv.pop(1)

from case import main
from store_case import DEADLINE, Store


class List(Store):
    def test_a_table_for_people(self):
        self.three_checkpoints()
        lines = self.answer('checkpoints', 'list').splitlines()
        self.assertEqual(lines[0].split(), ['NUMBER', 'TIME', 'REASON', 'SESSION', 'CHANGED'])
        self.assertRegex(lines[1], r'^     1  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  start    session-1'
                                   r'        -$')
        self.assertRegex(lines[2], r'turn     session-1        2$')
        self.assertRegex(lines[3], r'by hand  -                2$')
        self.assertEqual(len(lines), 4)

    def test_json_for_programs(self):
        self.three_checkpoints()
        found = self.checkpoints()
        self.assertEqual([(c['checkpoint'], c['reason'], c['sessionId'], c['changed'])
                          for c in found],
                         [(1, 'start', 'session-1', None), (2, 'turn', 'session-1', 2),
                          (3, 'by hand', None, 2)])
        self.assertEqual(len({c['tree'] for c in found}), 3)
        self.assertTrue(all(c['time'] > 1600000000 for c in found))

    def test_a_store_without_any(self):
        self.make('path')
        self.assertEqual(self.answer('checkpoints', 'list',
                                     said='no checkpoints'), '')
        self.assertEqual(self.checkpoints(), [])

    def test_local_time(self):
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        env = self.environment()
        env['TZ'] = 'YYY-5'
        east = self.answer('checkpoints', 'list', env=env).splitlines()[1].split()
        time = self.answer('checkpoints', 'list').splitlines()[1].split()
        self.assertEqual((int(time[2][:2]) + 5) % 24, int(east[2][:2]))


class Place(Store):
    def test_a_directory_below_the_workspace(self):
        self.three_checkpoints()
        said = f'acp-broker: the workspace is {self.work}\n'
        found = self.checkpoints(cwd=self.work / 'sub', said=said)
        self.assertEqual(len(found), 3)

    def test_the_workspace_by_option(self):
        self.three_checkpoints()
        elsewhere = self.dir / 'elsewhere'
        elsewhere.mkdir()
        for words in (['--workspace', str(self.work)], ['--workspace', '../work'],
                      [f'--workspace={self.work}/']):
            text = self.answer('checkpoints', 'list', '--json', *words, cwd=elsewhere)
            self.assertEqual(len(json.loads(text)['checkpoints']), 3)

    def test_a_workspace_known_by_a_link(self):
        link = self.dir / 'link'
        link.symlink_to(self.work)
        self.write(a='one\n')
        self.make('checkpoint', 'start', root=link)
        env = self.environment()
        env['PWD'] = str(link)
        self.assertEqual(len(self.checkpoints(cwd=link, env=env)), 1)
        # The broker ignores $PWD if it names another directory.
        env['PWD'] = str(self.dir)
        self.assertEqual(self.run_broker('checkpoints', 'list', env=env).returncode, 1)

    def test_the_nearest_store_is_meant(self):
        self.three_checkpoints()
        sub = self.work / 'sub'
        self.make('checkpoint', 'inner', root=sub)
        self.assertEqual([c['reason'] for c in self.checkpoints(cwd=sub)], ['inner'])

    def test_no_store_says_what_was_looked_for(self):
        self.mistake(1, f'{self.work} | {self.state}/stores | isolation = copy | '
                     'checkpoints = true | --workspace DIR', 'checkpoints', 'list')
        self.assertFalse(self.state.exists())

    def test_mistakes_on_the_command_line(self):
        self.three_checkpoints()
        missing = self.dir / 'missing'
        for status, expected, words in (
                (2, 'checkpoints | list | show | diff | rollback | restore',
                 ['checkpoints']),
                (2, 'checkpoints show: expected | acp-broker checkpoints show N',
                 ['checkpoints', 'show']),
                (2, '"x" | checkpoint | number | -1',
                 ['checkpoints', 'show', 'x']),
                (1, 'there is no checkpoint 9', ['checkpoints', 'show', '9']),
                (1, 'there are only 3 checkpoints', ['checkpoints', 'show', '-4']),
                (2, 'conflicts show: expected | --local | --runtime | not both',
                 ['conflicts', 'show', 'a', '--local', '--runtime']),
                (2, 'conflicts take: expected | local | runtime | mine',
                 ['conflicts', 'take', 'a', 'mine']),
                (1, 'no conflict a | acp-broker conflicts list',
                 ['conflicts', 'show', 'a']),
                (1, 'checkpoint 1: there is no zzz', ['checkpoints', 'restore', '1', 'zzz']),
                (2, f'../zzz | workspace {self.work}',
                 ['checkpoints', 'restore', '1', '../zzz']),
                (2, f'--workspace {missing}: No such file or directory',
                 ['checkpoints', 'list', '--workspace', str(missing)])):
            with self.subTest(words=words):
                self.mistake(status, expected, *words)
        self.assertEqual(len(self.checkpoints()), 3)

    def test_a_full_disk_is_said(self):
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        self.write(a='many lines\n' * 10000)
        self.make('checkpoint', 'turn')
        for words in (['list'], ['list', '--json'], ['show', '2'], ['diff', '1', '--stat']):
            with open('/dev/full', 'wb') as full:
                result = self.run_broker('checkpoints', *words, stdout=full)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, b'acp-broker: writing to stdout: No space left on '
                             b'device\n')


class Diff(Store):
    def test_show_is_what_changed(self):
        self.three_checkpoints()
        text = self.answer('checkpoints', 'show', '2')
        self.assertRegex(text, r'\Acheckpoint 2\nTime:    \S+ \S+\nReason:  turn\n'
                               r'Session: session-1\n\ndiff --git a/a b/a\n')
        self.assertIn('@@ -1 +1 @@\n-one\n+two\n', text)
        self.assertIn('new file mode 100644', text)
        self.assertIn('+new\n', text)
        self.assertNotIn('same', text)

    def test_show_of_the_first_is_all_of_it(self):
        self.three_checkpoints()
        text = self.answer('checkpoints', 'show', '1', '--stat')
        self.assertIn(' a | 1 +\n b | 1 +\n 2 files changed, 2 insertions(+)\n', text)

    def test_diff_of_two(self):
        self.three_checkpoints()
        forth = self.answer('checkpoints', 'diff', '1', '3')
        self.assertIn('deleted file mode 100644', forth)
        self.assertIn('+deep\n', forth)
        back = self.answer('checkpoints', 'diff', '3', '1')
        self.assertIn('-deep\n', back)
        self.assertEqual(self.answer('checkpoints', 'diff', '2', '2'), '')
        self.assertEqual(self.answer('checkpoints', 'diff', '2', '2', '--stat'), '')

    def test_diff_to_now(self):
        self.three_checkpoints()
        self.assertEqual(self.answer('checkpoints', 'diff', '-1'), '')
        self.write(a='three\n')
        text = self.answer('checkpoints', 'diff', '-1')
        self.assertIn('-two\n+three\n', text)
        self.assertEqual(len(self.checkpoints()), 3)

    FORMS = (([], []), (['--stat'], ['--stat=80']))

    def assert_as_git(self, number, other, forms=FORMS):
        """Each form of a diff is what git prints for the same trees."""
        trees = {c['checkpoint']: c['tree'] for c in self.checkpoints()}
        git = ['git', f'--git-dir={self.make("path")}', '-c', 'core.bigFileThreshold=512m',
               '-c', 'core.quotePath=false', 'diff', '--no-renames', '--abbrev=7']
        for ours, theirs in forms:
            text = self.answer('checkpoints', 'diff', str(number), str(other), *ours)
            result = subprocess.run([*git, *theirs, trees[number], trees[other]],
                                    capture_output=True, env=self.environment(),
                                    timeout=DEADLINE, check=True)
            self.assertEqual(text, result.stdout.decode())

    def test_a_diff_is_as_gits(self):
        self.three_checkpoints()
        self.assert_as_git(1, 3)
        self.assert_as_git(3, 1)

    def test_a_stat_of_many_lines_is_as_gits(self):
        long = 'folder-with-a-name/and-another-one/' * 3
        (self.work / long).mkdir(parents=True)
        self.write(few='1\n', most='x\n' * 900, **{long + 'file': 'x\n' * 5})
        self.make('checkpoint', 'start')
        self.write(few='2\n', most='y\n' * 700, more='z\n' * 450, **{long + 'file': 'y\n'})
        self.make('checkpoint', 'turn')
        self.assert_as_git(1, 2)
        self.assert_as_git(2, 1)

    def test_a_stat_of_binary_files_is_as_gits(self):
        self.write(text='1\n' * 30)
        (self.work / 'bin').write_bytes(b'a\0b' * 400)
        self.make('checkpoint', 'start')
        self.write(text='2\n' * 40)
        (self.work / 'bin').write_bytes(b'a\0bc' * 500)
        self.make('checkpoint', 'turn')
        self.assert_as_git(1, 2)

    def test_a_stat_of_modes_and_empty_files_is_as_gits(self):
        self.write(run='1\n')
        self.make('checkpoint', 'start')
        (self.work / 'run').chmod(0o755)
        self.write(empty='')
        self.make('checkpoint', 'turn')
        self.assert_as_git(1, 2, self.FORMS[1:])

    def test_big_files_are_said_to_differ(self):
        self.write(big='x' * 5000)
        self.make('checkpoint', 'start', '', '1000')
        self.write(big='y' * 5000)
        self.make('checkpoint', 'turn', '', '1000')
        text = self.answer('checkpoints', 'diff', '1', '2')
        self.assertTrue(text.endswith('Big files differ\n'), text)
        self.assertNotIn('Subproject', text)
        self.assertEqual(self.answer('checkpoints', 'diff', '1', '2', '--stat'),
                         ' big | Bin\n 1 file changed, 0 insertions(+), 0 deletions(-)\n')

    def test_binary_files_are_said_to_differ(self):
        (self.work / 'bin').write_bytes(b'a\0b')
        self.make('checkpoint', 'start')
        (self.work / 'bin').write_bytes(b'a\0bc')
        text = self.answer('checkpoints', 'diff', '1')
        self.assertIn('Binary files a/bin and b/bin differ\n', text)
        self.assertIn(' bin | Bin', self.answer('checkpoints', 'diff', '1', '--stat'))


class Hostile(Store):
    NAME = 'x\x1b[2Jy\nz | 9 +++'

    def on_terminal(self, *words):
        """What a command writes to a terminal."""
        ours, theirs = pty.openpty()
        try:
            result = self.run_broker(*words, stdout=theirs)
            self.assertEqual((result.returncode, result.stderr), (0, b''))
            os.close(theirs)
            theirs = -1
            text = b''
            while True:
                try:
                    piece = os.read(ours, 65536)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            return text
        finally:
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)

    def test_names_cannot_drive_the_terminal(self):
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        self.write(**{self.NAME: 'text\n'})
        self.make('checkpoint', 'turn')
        quoted = '"x\\033[2Jy\\nz | 9 +++"'
        stat = self.answer('checkpoints', 'show', '2', '--stat')
        self.assertIn(f' {quoted} | 1 +\n', stat)
        patch = self.answer('checkpoints', 'show', '2')
        self.assertIn('diff --git "a/x\\033[2Jy\\nz | 9 +++" ', patch)
        self.assertNotIn('\x1b', stat + patch)

    def test_content_cannot_drive_the_terminal(self):
        self.write(a='one\n')
        self.make('checkpoint', 'start')
        self.write(a='\x1b[31mred\x07\r\x9b1m é\tend\n')
        self.make('checkpoint', 'turn')
        self.assertIn('+\x1b[31mred\x07', self.answer('checkpoints', 'show', '2'))
        text = self.on_terminal('checkpoints', 'show', '2')
        self.assertIn('+^[[31mred^G^M<9b>1m é\tend\r\n'.encode(), text)
        self.assertNotIn(b'\x1b', text)

    def test_the_words_of_errors_are_quoted(self):
        self.three_checkpoints()
        self.mistake(1, 'checkpoint 1: there is no "\\033[2J"',
                     'checkpoints', 'restore', '1', '\x1b[2J')

    def test_a_conflicts_name_is_quoted(self):
        for folder, text in (('base', 'one'), ('runtime', 'two'), ('work', 'three')):
            (self.dir / folder).mkdir(exist_ok=True)
            (self.dir / folder / self.NAME).write_text(text)
        self.make('conflict', '20260131T101502', str(self.dir / 'base'),
                  str(self.dir / 'runtime'))
        text = self.answer('conflicts', 'list')
        self.assertIn('"x\\033[2Jy\\nz | 9 +++"\n', text)
        self.assertEqual(len(text.splitlines()), 2)


if __name__ == '__main__':
    main()
