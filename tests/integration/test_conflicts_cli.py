#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`acp-broker conflicts`: `test_conflicts_cli.py [BROKER]`, or the binary that ACP_BROKER names."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

if len(sys.argv) > 1 and not sys.argv[1].startswith('-'):
    os.environ['ACP_BROKER'] = sys.argv.pop(1)

from case import main
import sync_room
from store_case import Store


class Conflicts(Store):
    def conflict(self, stamp='20260131T101502', path='main.c', base='base\n', local='mine\n',
                 runtime='theirs\n'):
        for folder, text in (('base', base), ('work', local), ('runtime', runtime)):
            file = self.dir / folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(text)
        self.make('conflict', stamp, str(self.dir / 'base'), str(self.dir / 'runtime'))
        for folder in ('base', 'runtime'):
            shutil.rmtree(self.dir / folder)

    def listed(self):
        return json.loads(self.answer('conflicts', 'list', '--json'))['conflicts']

    def test_they_are_listed(self):
        self.conflict()
        (only,) = self.listed()
        self.assertEqual(only['path'], 'main.c')
        self.assertTrue(only['id'].startswith('20260131T101502-'))
        self.assertEqual(pathlib.Path(only['file']).name, 'main.c')
        self.assertEqual(pathlib.Path(only['file']).read_text(), 'theirs\n')
        self.assertEqual(self.files(), {'main.c': 'mine\n'})
        self.assertEqual(self.answer('conflicts', 'list'),
                         f'{only["id"]}  2026-01-31 10:15:02  main.c\n'
                         f'    the sandbox\'s version: {only["file"]}\n')
        pathlib.Path(only['file']).unlink()
        self.assertNames(self.answer('conflicts', 'list'), 'only in the store')
        self.assertIsNone(self.listed()[0]['file'])

    def test_none(self):
        self.make('path')
        self.assertEqual(self.answer('conflicts', 'list',
                                     said='no conflicts'), '')
        self.assertEqual(self.listed(), [])

    def test_both_changes_are_shown(self):
        self.conflict(path='src/main.c')
        name = self.listed()[0]['id']
        for word in ('src/main.c', name, str(self.work / 'src' / 'main.c')):
            text = self.answer('conflicts', 'show', word)
            self.assertTrue(text.startswith(f'conflict {name}\nTime:    2026-01-31 10:15:02\n'),
                            text)
            mine, theirs = text.split('diff --git')[1:]
            self.assertIn('--- a/src/main.c\n+++ b/src/main.c\n@@ -1 +1 @@\n-base\n+mine\n',
                          mine)
            self.assertIn('-base\n+theirs\n', theirs)
        said = f'acp-broker: the workspace is {self.work}\n'
        self.answer('conflicts', 'show', 'main.c', cwd=self.work / 'src', said=said)
        self.answer('conflicts', 'show', 'src/main.c', cwd=self.work / 'src', said=said)

    def test_one_version_as_it_is(self):
        self.conflict()
        self.assertEqual(self.answer('conflicts', 'show', 'main.c', '--local'), 'mine\n')
        self.assertEqual(self.answer('conflicts', 'show', 'main.c', '--runtime'), 'theirs\n')

    def test_a_deletion_here(self):
        self.conflict(local=None)
        text = self.answer('conflicts', 'show', 'main.c')
        self.assertNames(text, 'b/ | local version | deleted')
        self.assertIn('+theirs\n', text)
        name = self.listed()[0]['id']
        self.mistake(1, f'conflict {name} | main.c | deleted',
                     'conflicts', 'show', 'main.c', '--local')
        self.answer('conflicts', 'take', 'main.c', 'runtime')
        self.assertEqual(self.files(), {'main.c': 'theirs\n'})

    def test_taking_the_local_side(self):
        self.conflict()
        (only,) = self.listed()
        self.assertNames(self.answer('conflicts', 'take', 'main.c', 'local'),
                         f'main.c | {only["file"]} | checkpoint-age')
        self.assertEqual(pathlib.Path(only['file']).read_text(), 'theirs\n')
        self.assertEqual((self.files(), self.listed()), ({'main.c': 'mine\n'}, []))

    def test_taking_the_sandboxs_side(self):
        self.conflict()
        text = self.answer('conflicts', 'take', 'main.c', 'runtime')
        kept, = sync_room.parked_files(self.state, 'local')
        self.assertNames(text, f'main.c | sandbox\'s version | {kept}')
        self.assertEqual(kept.read_text(), 'mine\n')
        self.assertEqual((self.files(), self.listed()), ({'main.c': 'theirs\n'}, []))

    def test_a_file_that_was_edited_since_is_not_replaced(self):
        self.conflict()
        self.write(**{'main.c': 'edited\n'})
        result = self.run_broker('conflicts', 'take', 'main.c', 'runtime')
        self.assertEqual((result.returncode, result.stdout), (1, b''))
        self.assertIn(b'not replaced', result.stderr)
        self.assertEqual(self.files()['main.c'], 'edited\n')
        self.assertEqual(len(self.listed()), 1)

    def test_two_of_one_path_go_by_their_ids(self):
        self.conflict()
        self.conflict(stamp='20260131T111502', local='mine 2\n', runtime='theirs 2\n')
        self.mistake(1, 'main.c | 2 conflicts | id | acp-broker conflicts list',
                     'conflicts', 'show', 'main.c')
        first, second = self.listed()
        self.assertEqual(self.answer('conflicts', 'show', first['id'], '--runtime'), 'theirs\n')
        self.answer('conflicts', 'take', second['id'], 'local')
        self.assertEqual([c['id'] for c in self.listed()], [first['id']])

    def edit(self, status, **environment):
        result = self.run_broker('conflicts', 'edit', 'main.c', env={
            **self.environment(), **environment})
        self.assertEqual(result.returncode, status, result.stderr)
        return (result.stdout + result.stderr).decode()

    def tool(self, script):
        """Sets the merge.tool in the user's git configuration; a repository cannot set it."""
        (self.dir / 'home' / '.gitconfig').write_text(
            '[merge]\n\ttool = mine\n[mergetool "mine"]\n\ttrustExitCode = true\n'
            f'\tcmd = {script}\n')

    def test_an_editor_gets_what_git_would_have_left(self):
        self.conflict(base='a\nb\nc\n', local='a\nmine\nc\n', runtime='a\ntheirs\nc\n')
        text = self.edit(0, EDITOR="sed -i '/^[<|=>]/d;/^b$/d'", VISUAL='')
        self.assertEqual(self.files(), {'main.c': 'a\nmine\ntheirs\nc\n'})
        kept, = sync_room.parked_files(self.state, 'local')
        self.assertNames(text, f'main.c | {kept}')
        self.assertEqual((kept.read_text(), self.listed()), ('a\nmine\nc\n', []))

    def test_what_still_has_markers_is_kept_for_the_next_edit(self):
        self.conflict()
        merged = self.edit(1, EDITOR='echo more >>', VISUAL='')
        kept, = sync_room.parked_files(self.state, 'merged')
        self.assertNames(merged, str(kept))
        self.assertEqual((self.files(), len(self.listed())), ({'main.c': 'mine\n'}, 1))
        self.edit(0, EDITOR="sed -i '/^more$/!d'", VISUAL='')
        self.assertEqual((self.files(), self.listed()), ({'main.c': 'more\n'}, []))

    def test_the_merge_tool_of_git_gets_all_versions(self):
        self.conflict()
        self.tool('cat \\"$BASE\\" \\"$LOCAL\\" \\"$REMOTE\\" >\\"$MERGED\\"')
        self.edit(0, EDITOR='false')
        self.assertEqual(self.files(), {'main.c': 'base\nmine\ntheirs\n'})

    def test_a_tool_that_fails_changes_nothing(self):
        self.conflict()
        self.tool('exit 3')
        self.assertNames(self.edit(1, EDITOR='true'), '3')
        self.assertEqual((self.files(), len(self.listed())), ({'main.c': 'mine\n'}, 1))

    def test_without_a_tool_it_says_what_to_set(self):
        self.conflict()
        self.assertNames(self.edit(2, EDITOR='', VISUAL=''), 'merge.tool | $VISUAL | $EDITOR')

    def test_a_repository_does_not_choose_the_tool(self):
        self.conflict()
        evil = self.dir / 'evil'
        (self.work / '.git').mkdir()
        subprocess.run(['git', 'init', '-q'], cwd=self.work, check=True)
        for key, value in (('merge.tool', 'x'), ('mergetool.x.cmd', f'touch {evil}')):
            subprocess.run(['git', 'config', key, value], cwd=self.work, check=True)
        self.edit(0, EDITOR='echo merged >', VISUAL='')
        self.assertEqual((self.files()['main.c'], evil.exists()), ('merged\n', False))

    def test_a_broker_that_syncs_is_waited_for(self):
        self.conflict()
        options = self.config(sync_lock_timeout='1s')
        with open(os.path.join(self.make('path'), 'acp-broker.lock'), 'w',
                  encoding='ascii') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = self.run_broker('conflicts', 'take', 'main.c', 'runtime', *options)
            self.assertEqual(result.returncode, 1)
            self.assertNames(result.stderr.decode(), 'another acp-broker')
        self.assertEqual(len(self.listed()), 1)


if __name__ == '__main__':
    main()
