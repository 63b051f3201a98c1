#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workspaces that are repositories of every kind, some of them incomplete."""

import re
import unittest

import case

from repository_case import RepositoryCase
from processes import PATIENCE

# libgit2 1.5 leaks some memory when it reads the extensions of a repository.
LEAKS = unittest.skipIf(case.SANITIZED, 'libgit2 loses memory where there are extensions')

FILES = {'a': '1\n', 'in__b': '1\n', 'out__c': '1\n', 'out__d': '1\n'}
# A file that .gitignore ignores, but that the index has; so the broker has to read the index.
IGNORED = {'.gitignore': '*.o\n', 'ignored.o': 'kept\n'}


class Sparse(RepositoryCase):
    """A file that a sparse checkout leaves out is not deleted on any side."""

    def session(self, *words):
        self.repository(**FILES)
        self.git('sparse-checkout', 'set', *words)
        self.assertFalse((self.work / 'out').exists())
        return self.opened()

    def assert_left_out(self, client, session, *, names):
        """
        Checks that git there sees no changes, and that a commit of everything has only these files.
        """
        runtime = self.runtime(client, session)
        self.assertFalse((runtime / 'out').exists())
        self.assertEqual(self.git('status', '--porcelain', where=runtime), '')
        self.prompt(client, session, 'echo 2 > in/b', 'git -c user.name=B -c user.email=b@b commit '
                    '-qam second', 'echo 3 > in/new', 'git add -A',
                    'git -c user.name=B -c user.email=b@b commit -qm third')
        changed = self.git('diff', '--name-status', 'HEAD~2', 'HEAD', where=runtime)
        self.assertEqual(changed.split(), names)
        self.assertEqual(self.git('status', '--porcelain', where=runtime), '')
        self.prompt(client, session, 'git checkout -q -b other HEAD~2', 'git checkout -q main')
        self.assertFalse((runtime / 'out').exists())
        self.assertEqual(self.tree(), {'a': '1\n', 'in/b': '2\n', 'in/new': '3\n'})
        self.assertEqual(self.git('status', '--porcelain'), ' M in/b\n?? in/new\n')

    def test_cones(self):
        client, session = self.session('in')
        self.assert_left_out(client, session, names=['M', 'in/b', 'A', 'in/new'])
        self.git('sparse-checkout', 'set', 'in', 'out')
        self.prompt(client, session, 'cat out/c', 'test -z "$(git status --porcelain)"',
                    'echo 4 > out/c')
        self.assertEqual((self.work / 'out/c').read_text(), '4\n')

    def test_patterns(self):
        client, session = self.session('--no-cone', '/*', '!/out/')
        self.assert_left_out(client, session, names=['M', 'in/b', 'A', 'in/new'])

    @LEAKS
    def test_a_work_tree_with_a_configuration_of_its_own(self):
        client, session = self.session('in')
        self.git('config', 'core.repositoryFormatVersion', '1')
        self.ended(client)
        client, session = self.opened()
        self.assert_left_out(client, session, names=['M', 'in/b', 'A', 'in/new'])


class Kinds(RepositoryCase):
    """The session says once what libgit2 cannot read, and goes on."""

    rest = None  # files of the workspace that no session changes

    def work_both_ways(self, client, session):
        client.prompt(session, 'terminal cat a; echo 2 > a; echo new > there', seconds=PATIENCE)
        self.assertEqual((self.work / 'a').read_text(), '2\n')
        (self.work / 'here').write_text('here\n')
        (self.work / 'a').unlink()
        told = self.prompt(client, session, 'cat here', 'test ! -e a')
        self.assertTrue([text for text in told if 'here' in text], told)
        self.assertEqual(self.tree(), {**self.rest, 'here': 'here\n', 'there': 'new\n'})

    def kind(self, **files):
        """Makes a repository here, with a tracked file that is ignored."""
        self.repository(**{**IGNORED, 'a': '1\n', **files})
        self.git('add', '-f', 'ignored.o')
        self.git('commit', '-qm', 'second')

    def source(self):
        """Makes the same repository in another folder, to clone it."""
        self.work.rename(self.dir / 'kept')
        self.work.mkdir()
        self.kind()
        self.work.rename(self.dir / 'full')
        (self.dir / 'kept').rename(self.work)

    def goes_on(self, *expected, has_history):
        """
        Plays two turns with one broker and then with another; each reports each of these facts
        once.
        """
        (self.work / 'left.o').write_text('no member, whoever is asked\n')
        self.rest = {name: text for name, text in self.tree().items() if name != 'a'}
        before = self.folder_of_git()
        for number in range(2):
            (self.work / 'a').write_text('1\n')
            client, session = self.opened()
            self.work_both_ways(client, session)
            for name in 'here', 'there':
                (self.work / name).unlink()
            runtime = self.runtime(client, session)
            self.assertEqual((runtime / '.git').exists(), has_history)
            if has_history:
                self.assertEqual(self.git('log', '--format=%s', where=runtime),
                                 self.git('log', '--format=%s'))
            self.ended(client)
            said = re.findall('was not sent: its HEAD|program was asked|could not be read|'
                              'not SHA-1|git refs migrate', '\n'.join(self.notices(client)))
            self.assertEqual(sorted(said), sorted(expected), f'{number}: {client.stderr}')
        self.assertEqual(self.folder_of_git(), before)

    def test_shallow(self):
        self.source()
        for number in '23':
            self.git('commit', '-q', '--allow-empty', '-m', number, where=self.dir / 'full')
        self.git('clone', '-q', '--depth', '2', f'file://{self.dir}/full', '.')
        self.goes_on(has_history=True)

    def partial(self, what):
        self.source()
        self.write(self.dir / 'full', a='2\n')
        self.git('commit', '-qam', 'third', where=self.dir / 'full')
        self.git('config', 'uploadpack.allowFilter', 'true', where=self.dir / 'full')
        self.git('clone', '-q', f'--filter={what}', f'file://{self.dir}/full', '.')
        (self.dir / 'full').rename(self.dir / 'away')  # a fetch from it fails and so is noticed

    def missing(self, where):
        return self.git('rev-list', '--objects', '--all', '--missing=print', where=where).count('?')

    @LEAKS
    def test_partial(self):
        """git works with the objects that are here, and nothing is fetched."""
        self.partial('blob:none')
        self.assertEqual(self.missing(self.work), 1)
        client, session = self.opened()
        self.prompt(client, session, 'git status', 'git diff HEAD', 'git fsck', 'git gc -q',
                    'echo 3 > a', 'git -c user.name=B -c user.email=b@b commit -qam agents',
                    'git show | grep -q "^+3"', '! git show HEAD~1 2>said')
        self.assertIn(f'{self.dir}/full', (self.work / 'said').read_text())
        self.assertEqual([len(branch['commits']) for branch in self.commits()], [1])
        self.assertEqual(self.missing(self.work), 1)
        self.ended(client)
        self.assertNotIn('not sent', '\n'.join(self.notices(client)))

    @LEAKS
    def test_partial_without_its_folders(self):
        self.partial('tree:0')
        client, _ = self.opened()
        self.ended(client)
        said = '\n'.join(self.notices(client))
        self.assertIn('history was not sent', said)
        self.assertIn('git fetch --refetch --no-filter', said)

    @LEAKS
    def test_sha256(self):
        self.git('init', '-q', '--object-format=sha256')
        self.kind()
        self.goes_on('not SHA-1', 'program was asked', has_history=False)

    @LEAKS
    def test_reftable(self):
        """
        The git program need not know reftables: the configuration says that the repository has one.
        """
        self.kind()
        self.git('config', 'core.repositoryFormatVersion', '1')
        self.git('config', 'extensions.refStorage', 'reftable')
        self.goes_on('git refs migrate', has_history=False)

    def test_a_split_index(self):
        self.kind()
        self.git('update-index', '--split-index')
        self.assertTrue(list((self.work / '.git').glob('sharedindex.*')))
        self.goes_on('program was asked', has_history=True)

    def test_a_sparse_index(self):
        self.kind(**FILES)
        self.git('sparse-checkout', 'set', '--cone', '--sparse-index', 'in')
        self.goes_on('program was asked', has_history=True)

    @LEAKS
    def test_a_configuration_of_the_work_trees(self):
        self.kind()
        self.git('config', 'core.repositoryFormatVersion', '1')
        self.git('config', 'extensions.worktreeConfig', 'true')
        self.git('config', '--worktree', 'core.sparseCheckout', 'false')
        self.goes_on(has_history=True)

    def test_a_head_that_is_broken(self):
        self.kind()
        (self.work / '.git/HEAD').write_text('nonsense\n')
        self.goes_on('was not sent: its HEAD', has_history=False)


if __name__ == '__main__':
    case.main()
