#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`acp-broker commits take`: the user's branch moves to an agent's commits, whose files are already
here.
"""

import fcntl
import os
import shutil
import signal
import subprocess

import case
import sync_room

from repository_case import RepositoryCase, WORDS
from store_case import DEADLINE, Store

COMMIT = 'git -c user.name=Bot -c user.email=b@b commit -q'


class Taken(Store):
    """A repository, a store, and a clone in which the agent commits."""

    def setUp(self):
        super().setUp()
        self.agent = self.dir / 'agent'
        self.git('init', '-q')
        self.write(a='1\n', b='1\n', c='1\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'first')
        self.first = self.head()
        self.store = self.make('path')

    def git(self, *words, where=None, status=0, **more):
        done = subprocess.run(['git', '-C', str(where or self.work), *WORDS, *words], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env=self.environment(), **more)
        self.assertEqual(done.returncode, status, f'git {words}: {done.stdout}{done.stderr}')
        return done.stdout

    def head(self, where=None):
        return self.git('rev-parse', 'HEAD', where=where).strip()

    def status(self):
        return self.git('status', '--porcelain', '--untracked-files=all')

    def committed(self, branch='main', **files):
        """The agent commits these files (None: deleted) to a branch; returns the commit."""
        if not self.agent.exists():
            self.git('clone', '-q', self.git('rev-parse', '--show-toplevel').strip(),
                     str(self.agent), where=self.dir)
        for name, text in files.items():
            if text is None:
                (self.agent / name).unlink()
            else:
                (self.agent / name).write_text(text)
        self.git('add', '-A', where=self.agent)
        self.git('commit', '-qm', 'by the agent', where=self.agent)
        self.git('fetch', '-q', str(self.agent), f'+HEAD:refs/acp-broker/agent/{branch}',
                 where=self.store)
        return self.head(self.agent)

    def synced(self, **files):
        """The agent commits these files, and the workspace gets them as by a sync."""
        tip = self.committed(**files)
        for name, text in files.items():
            if text is None:
                (self.work / name).unlink()
            else:
                (self.work / name).write_text(text)
        return tip

    def everything(self):
        """The files, the refs, the index and HEAD; checks that no lock is left."""
        self.assertEqual([path.name for path in (self.work / '.git').glob('*.lock')], [])
        self.assertFalse((self.work / '.git/acp-broker-index').exists())
        files = {name: text for name, text in self.work_files().items()}
        return files, self.git('for-each-ref'), self.git('ls-files', '-s'), self.head()

    def work_files(self):
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns)
                for path in self.work.rglob('*')
                if path.is_file() and '.git' not in path.relative_to(self.work).parts}

    def refused(self, expected, *words, status=1):
        """
        Checks that the command refuses, that stderr has every fact, and that nothing has moved.
        """
        before = self.everything()
        result = self.run_broker('commits', 'take', *words)
        self.assertEqual((result.returncode, result.stdout), (status, b''), result.stderr)
        self.assertNames(result.stderr.decode(), expected)
        self.assertEqual(self.everything(), before)
        return result.stderr.decode()

    def taken(self, *words):
        """Runs the command; checks that it touched no file, and returns its output."""
        files = self.work_files()
        text = self.answer('commits', 'take', *words)
        self.assertEqual(self.work_files(), files)
        self.everything()
        return text

    def test_branch_and_index_move_and_no_file_is_touched(self):
        self.committed(a='2\n', d='new\n')
        tip = self.synced(a='2\n', b=None, d='new\n', e='more\n')
        self.write(a='2\n', d='new\n')
        self.write(c='of the user\n')
        self.assertEqual(self.status(), ' M a\n D b\n M c\n?? d\n?? e\n')
        text = self.taken()
        self.assertNames(text, f'main | {tip[:12]} | {self.first[:12]} | 2 commits | 4 files '
                         '| commits take --undo')
        self.assertEqual(self.head(), tip)
        self.assertEqual(self.git('symbolic-ref', 'HEAD'), 'refs/heads/main\n')
        self.assertEqual(self.status(), ' M c\n')
        for ref in ('HEAD', 'main'):
            self.assertIn('acp-broker commits take main',
                          self.git('reflog', 'show', '-1', ref))
        self.git('fsck', '--strict')
        self.assertNames(self.answer('commits', 'take'), 'main | nothing to do')
        self.taken('--undo')
        self.assertEqual(self.head(), self.first)
        self.assertEqual(self.status(), ' M a\n D b\n M c\n?? d\n?? e\n')
        self.refused('nothing to undo', '--undo')

    def test_what_is_staged_elsewhere_stays_and_comes_back(self):
        tip = self.synced(a='2\n', d='new\n')
        self.write(c='staged\n')
        self.git('add', 'a', 'c')
        before = self.status()
        self.taken()
        self.assertEqual((self.head(), self.status()), (tip, 'M  c\n'))
        self.taken('--undo')
        self.assertEqual((self.head(), self.status()), (self.first, before))

    def test_something_else_staged_is_in_the_way(self):
        self.committed(a='2\n')
        self.write(a='staged\n')
        self.git('add', 'a')
        self.write(a='2\n')
        self.refused('a: | staged')
        self.git('rm', '-q', '-f', '--cached', 'a')
        self.refused('a: | staged | git restore --staged FILE')
        self.git('restore', '--staged', 'a')
        self.taken()

    def test_what_differs_is_named_and_what_to_do_works(self):
        tip = self.committed(a='2\n', b=None, c='2\n', d='new\n')
        self.write(a='2\n', c='another\n')
        said = self.refused(f'b: | still there | c: | differs | d: | missing | 3 of 4 files '
                            f'| git diff {tip[:12]} | git checkout {tip[:12]} -- FILE '
                            f'| git reset {tip[:12]}')
        self.assertNotIn('a: ', said)
        self.git('checkout', tip[:12], '--', 'c', 'd')
        (self.work / 'b').unlink()
        self.taken()
        self.assertEqual(self.status(), '')

    def test_a_link_on_the_way_is_not_followed(self):
        (self.work / 'sub').mkdir()
        self.write(**{'sub/x': '1\n'})
        self.git('add', '-A')
        self.git('commit', '-qm', 'sub')
        self.committed(**{'sub/x': None})
        shutil.rmtree(self.work / 'sub')
        (self.dir / 'other').mkdir()
        (self.dir / 'other' / 'x').write_text('theirs\n')
        (self.work / 'sub').symlink_to(self.dir / 'other')
        self.taken()

    def park(self, kind, **files):
        """Parks these versions of the runtime as a sync does; nothing else has changed there."""
        folders = [self.dir / 'base', self.dir / 'runtime']
        for folder in folders:
            folder.mkdir()
            for name in 'abc':
                (folder / name).write_text('1\n')
        for name, text in files.items():
            (self.dir / 'runtime' / name).write_text(text)
        self.make(kind, '20260101T000000', *map(str, folders))
        self.assertNames(self.answer('conflicts', 'list'), ' | '.join(files))

    def test_a_parked_path_counts_as_equal(self):
        self.committed(a='theirs\n', b='2\n')
        self.write(a='mine\n')
        self.park('conflict', a='theirs\n')
        self.refused('b: | differs | 1 of 2 files')
        self.write(b='2\n')
        self.assertNames(self.taken(), 'a: | parked | acp-broker conflicts')
        self.assertEqual(self.git('status', '--porcelain', '-uno'), ' M a\n')
        self.answer('conflicts', 'take', 'a', 'runtime')
        self.assertEqual(self.git('status', '--porcelain', '-uno'), '')

    def test_another_version_that_is_parked_is_in_the_way(self):
        self.committed(a='later\n')
        self.write(a='mine\n')
        self.park('conflict', a='theirs\n')
        self.refused('a: | differs')

    def test_a_guarded_change_that_nobody_has_allowed_is_in_the_way(self):
        self.committed(**{'.envrc': 'theirs\n'})
        self.park('held', **{'.envrc': 'theirs\n'})
        self.refused('.envrc: | missing')

    def test_what_git_does_not_look_at_is_in_the_way(self):
        self.write(a='2\n')
        self.committed(a='2\n')
        for flag in ('skip-worktree', 'assume-unchanged'):
            self.git('add', 'a')
            self.git('update-index', f'--{flag}', 'a')
            self.write(a='mine\n')
            self.refused(f'a: | --no-{flag}')
            self.git('update-index', f'--no-{flag}', 'a')
            self.write(a='2\n')
        self.git('update-index', '--skip-worktree', 'a')
        (self.work / 'a').unlink()
        self.taken()

    def test_a_branch_that_has_moved(self):
        tip = self.synced(a='2\n')
        self.write(c='mine\n')
        self.git('commit', '-qm', 'mine', 'c')
        self.refused(f'main | moved | {self.head()[:12]} | git merge {tip[:12]}')
        self.git('commit', '-qam', 'the same')
        self.git('merge', '-q', tip[:12])
        self.assertEqual(self.status(), '')

    def test_which_branch_is_taken(self):
        self.committed(branch='fix/it', a='2\n')
        self.write(a='2\n')
        self.refused('main | fix/it', status=2)
        self.refused('no/such | fix/it', 'no/such', status=2)
        self.refused('--undo', 'fix/it', '--undo', status=2)
        self.git('switch', '-qc', 'fix/it')
        self.taken()
        self.assertEqual(self.git('rev-parse', 'main').strip(), self.first)
        self.taken('--undo')
        self.git('checkout', '-q', '--detach')
        self.refused('HEAD | fix/it', status=2)
        self.assertNames(self.taken('fix/it'), 'HEAD | 1 commit')
        self.assertEqual(self.git('rev-parse', 'fix/it').strip(), self.first)
        self.assertEqual(self.git('rev-parse', '--abbrev-ref', 'HEAD'), 'HEAD\n')
        self.taken('--undo')
        self.assertEqual(self.head(), self.first)

    def test_undo_is_refused_where_head_has_moved(self):
        tip = self.synced(a='2\n')
        self.taken()
        self.git('switch', '-qc', 'other')
        self.refused(f'refs/heads/main | {tip[:12]} | {self.first[:12]} | git reflog', '--undo')
        self.git('switch', '-q', 'main')
        self.git('commit', '-q', '--allow-empty', '-m', 'more')
        self.refused(f'refs/heads/main | {tip[:12]}', '--undo')

    def test_the_first_commit_of_all(self):
        shutil.rmtree(self.work / '.git')
        self.git('init', '-q')
        self.agent.mkdir()
        self.git('init', '-q', where=self.agent)
        tip = self.synced(a='2\n')
        self.taken()
        self.assertEqual((self.head(), self.status()), (tip, '?? b\n?? c\n'))
        self.assertNames(self.answer('commits', 'take', '--undo'), 'main | no commit')
        self.assertEqual(self.status(), '?? a\n?? b\n?? c\n')

    def test_a_lock_of_ours_is_taken_over_once_nobody_has_it(self):
        self.synced(a='2\n')
        lock = self.work / '.git/index.lock'
        lock.write_text('acp-broker commits take\n')
        with open(lock, 'rb') as held:  # as a workspace does that is another part of the repository
            fcntl.flock(held, fcntl.LOCK_EX)
            result = self.run_broker('commits', 'take')
            self.check_line(result.stderr.decode(), str(lock))
            self.assertTrue(lock.exists())
        self.taken()

    def test_in_a_part_of_a_repository(self):
        top = self.work
        self.work = top / 'way/part'
        self.work.mkdir(parents=True)
        self.write(a='1\n', b='1\n')
        self.git('add', '-A')
        self.git('commit', '-qm', 'part')
        self.store = self.make('path')
        tip = self.committed(**{'way/part/a': 'theirs\n', 'way/part/b': '2\n', 'b': '2\n'})
        self.write(a='mine\n')
        self.park('conflict', a='theirs\n')
        result = self.run_broker('commits', 'take')
        self.assertNames(result.stderr.decode(), 'b: | way/part/b: | 2 of 3 files')
        self.write(b='2\n')
        (top / 'b').write_text('2\n')
        self.assertNames(self.answer('commits', 'take'), 'way/part/a: | parked')
        self.assertEqual((self.head(), self.status()), (tip, ' M way/part/a\n'))
        self.answer('commits', 'take', '--undo')

    def test_an_operation_a_lock_and_another_work_tree(self):
        self.synced(a='2\n')
        git = self.work / '.git'
        for name, what in (('MERGE_HEAD', 'merge'), ('CHERRY_PICK_HEAD', 'cherry-pick'),
                           ('BISECT_LOG', 'bisect'), ('rebase-merge', 'rebase')):
            (git / name).write_text(f'{self.first}\n')
            self.refused(f'{what} | {self.work}')
            (git / name).unlink()
        (git / 'index.lock').touch()
        result = self.run_broker('commits', 'take')
        self.check_line(result.stderr.decode(), str(git / 'index.lock'))
        self.assertTrue((git / 'index.lock').exists())
        (git / 'index.lock').unlink()
        self.git('worktree', 'add', '-qf', str(self.dir / 'second'), 'main')
        self.refused('main | work tree | git worktree list')
        shutil.rmtree(self.dir / 'second')
        (git / 'acp-broker-index.lock').touch()
        self.taken()

    def test_in_a_linked_work_tree(self):
        linked = self.dir / 'linked'
        self.git('worktree', 'add', '-qb', 'side', str(linked))
        self.work = linked.resolve()
        self.store = self.make('path')
        tip = self.committed(branch='side', a='2\n')
        self.write(a='2\n')
        self.answer('commits', 'take')
        self.assertEqual((self.head(), self.status()), (tip, ''))

    def test_nothing_that_the_agent_may_have_written_is_run(self):
        """Hooks, filters and a monitor may be files of the work tree, or read such files."""
        ran = self.dir / 'ran'
        self.write(tool=f'#!/bin/sh\ntouch {ran}\ncat\n')
        (self.work / 'tool').chmod(0o755)
        for hook in ('reference-transaction', 'post-index-change', 'post-checkout'):
            (self.work / hook).symlink_to('tool')
        for key in ('core.fsmonitor', 'filter.f.clean', 'filter.f.smudge', 'filter.f.process'):
            self.git('config', key, './tool')
        self.git('config', 'core.hooksPath', '.')
        self.synced(a='2\n')
        self.synced(**{'.gitattributes': 'b filter=f\n'})
        ran.unlink(missing_ok=True)
        self.taken()
        self.taken('--undo')
        self.taken()
        self.synced(b='2\n')
        ran.unlink(missing_ok=True)
        said = self.run_broker('commits', 'take').stderr.decode()
        self.assertNames(said, 'b: | filter')
        self.assertFalse(ran.exists())

    def test_a_filter_without_a_name_is_not_run_either(self):
        ran = self.dir / 'ran'
        self.write(tool=f'#!/bin/sh\ntouch {ran}\ncat\n')
        (self.work / 'tool').chmod(0o755)
        self.synced(**{'a': '2\n', '.gitattributes': 'a filter=\n'})
        with (self.work / '.git/config').open('a') as file:
            file.write('[filter ""]\n\tclean = ./tool\n')
        said = self.run_broker('commits', 'take').stderr.decode()
        self.assertNames(said, 'a: | filter')
        self.assertFalse(ran.exists())

    def test_line_ends(self):
        self.git('config', 'core.autocrlf', 'true')
        self.committed(a='2\n3\n', d='new\n')
        (self.work / 'a').write_bytes(b'2\r\n3\r\n')
        (self.work / 'd').write_bytes(b'new\r\n')
        self.taken()
        self.assertEqual(self.status(), '')

    def test_where_there_is_no_repository(self):
        self.synced(a='2\n')
        (self.work / '.git').rename(self.dir / 'git')
        result = self.run_broker('commits', 'take')
        self.assertEqual(result.returncode, 1)
        self.check_line(result.stderr.decode(), f'{self.work} | repository')

    def run_at(self, point, *words):
        env = {**self.environment(), 'PWD': str(self.work), 'ACP_POINT': point}
        return subprocess.run([sync_room.POINTS, 'commits', 'take', *words],
                              stdin=subprocess.DEVNULL, capture_output=True, cwd=self.work,
                              env=env, timeout=DEADLINE, check=False)

    def test_what_could_not_be_taken_back_is_by_the_next_one(self):
        tip = self.synced(a='2\n')
        lock = self.work / '.git/refs/heads/main.lock'
        lock.touch()
        result = self.run_at('commits.publishing:2:eio')
        self.assertEqual(result.returncode, 1)
        self.assertNames(result.stderr.decode(), f'main.lock | {self.store}/take.begun')
        self.assertEqual(self.status(), 'M  a\n')
        lock.unlink()
        self.taken()
        self.assertEqual(self.head(), tip)
        self.assertEqual(self.run_at('commits.publishing:1:eio', '--undo').returncode, 1)
        self.assertEqual((self.head(), self.status()), (self.first, 'M  a\n'))
        self.taken()
        self.taken('--undo')
        self.assertEqual((self.head(), self.status()), (self.first, ' M a\n'))

    def test_killed_anywhere_the_next_one_finishes(self):
        for point in ('commits.publishing', 'commits.published', 'commits.moved', 'commits.back'):
            words = ['--undo'] if point == 'commits.back' else []
            tip = self.synced(a=f'{point}\n', d=f'{point}\n')
            old = self.head()
            if point == 'commits.back':
                self.taken()
            files = self.work_files()
            result = self.run_at(f'{point}:1:kill', *words)
            self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
            self.assertEqual(self.work_files(), files)
            self.assertTrue((self.work / '.git/index.lock').exists())
            self.taken()
            self.assertEqual((self.head(), self.status()), (tip, ''), point)
            if point != 'commits.moved':
                self.assertNames(self.taken('--undo'), old[:12])
                self.assertEqual(self.head(), old)
                self.taken()


class Whole(RepositoryCase):
    """With an agent, its copy, and a store that real syncs fill."""

    def test_after_a_turn_both_sides_are_clean_and_the_same(self):
        self.repository()
        client, session = self.opened()
        self.prompt(client, session, 'echo 2 > a', 'echo new > d', 'git add -A',
                    f'{COMMIT} -m one', 'echo 3 > a', f'{COMMIT} -am two')
        self.assertEqual(self.git('status', '--porcelain'), ' M a\n?? d\n')
        before = self.folder_of_git()
        self.command('commits', 'list')
        self.assertEqual(self.folder_of_git(), before)
        self.command('commits', 'take')
        self.assertEqual(self.git('status', '--porcelain'), '')
        self.assertEqual(self.git('log', '--format=%s'), 'two\none\nfirst\n')
        self.assertFalse((self.work / '.git/shallow').exists())
        self.git('fsck', '--strict')
        head = self.git('rev-parse', 'HEAD').strip()
        self.prompt(client, session, 'test -z "$(git status --porcelain)"',
                    f'test "$(git rev-parse HEAD)" = {head}', 'echo 4 > a', f'{COMMIT} -am three')
        self.command('commits', 'take')
        self.assertEqual(self.git('log', '-1', '--format=%s'), 'three\n')
        self.assertEqual(os.listdir(self.work / '.git').count('index.lock'), 0)


if __name__ == '__main__':
    case.main()
