#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A workspace that is a part of a repository: git works in its copy, and nothing else of the
repository is there.
"""

import shutil

import case

from repository_case import RepositoryCase

COMMIT = 'git -c user.name=Bot -c user.email=b@b commit -q'
WAY = 'services/api'
FILES = {'.gitignore': '*.o\n', 'README': 'all\n', 'libs__x__y.c': 'int y;\n',
         'services__.gitignore': 'made\n', 'services__web__w.c': 'int w;\n',
         'services__api__x.c': 'int x;\n', 'services__api__in__z.c': 'int z;\n'}


class Part(RepositoryCase):
    def setUp(self):
        super().setUp()
        self.top = self.dir / 'proj'
        self.work = self.top / WAY
        self.repository(self.top, **FILES)
        self.git('branch', 'old')
        (self.work / 'x.c').write_text('int x2;\n')
        self.git('commit', '-qam', 'second')

    def test_git_in_the_copy(self):
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.assertEqual(runtime.parts[-3:], ('proj', 'services', 'api'))
        outer = runtime.parent.parent
        self.assertEqual(sorted(str(path.relative_to(outer)) for path in outer.rglob('*')
                                if path.is_file() and '.git' not in path.parts),
                         ['services/api/in/z.c', 'services/api/x.c'])
        self.prompt(client, session, f'test "$(git rev-parse --show-prefix)" = {WAY}/',
                    'test -z "$(git status --porcelain)"', 'git diff --exit-code HEAD~1 -- ../web',
                    'git blame x.c | grep -q "int x2"', 'test "$(git log --oneline | wc -l)" = 2',
                    'touch made n.o', 'test -z "$(git status --porcelain)"',
                    'git checkout -q old', 'grep -q "int x;" x.c', 'test ! -e ../web',
                    'git checkout -q main', 'test -z "$(git status --porcelain)"')
        self.assertEqual(self.git('status', '--porcelain'), '')

        self.prompt(client, session, 'echo "int x3;" > x.c', 'git rm -q in/z.c',
                    'echo new > new.c', 'git add -A', f'{COMMIT} -m third',
                    'echo more >> new.c', f'{COMMIT} -am fourth',
                    'test -z "$(git status --porcelain)"')
        tip = self.git('rev-parse', 'HEAD', where=runtime).strip()
        self.assertEqual(self.git('status', '--porcelain'),
                         f' D {WAY}/in/z.c\n M {WAY}/x.c\n?? {WAY}/new.c\n')
        self.assertEqual([c['subject'] for b in self.commits() for c in b['commits']],
                         ['fourth', 'third'])

        text, said = self.command('commits', 'take')
        self.assertNames(text + said, f'main | {tip[:12]} | 2 commits | 3 files')
        self.assertEqual(self.git('rev-parse', 'HEAD').strip(), tip)
        self.assertEqual(self.git('status', '--porcelain'), '')
        self.assertEqual(self.git('diff', '--name-status', 'HEAD~2', 'HEAD').split(),
                         ['D', f'{WAY}/in/z.c', 'A', f'{WAY}/new.c', 'M', f'{WAY}/x.c'])
        self.git('fsck', '--strict')
        self.command('commits', 'take', '--undo')
        self.assertEqual(self.git('log', '-1', '--format=%s'), 'second\n')
        self.command('commits', 'take')

        self.prompt(client, session, 'true')
        # The user goes on working outside of the part and inside; the agent's next commit has both
        # changes.
        (self.top / 'libs/new.c').write_text('int n;\n')
        self.git('add', '-A', where=self.top)
        self.git('commit', '-qam', 'fifth')
        self.prompt(client, session, 'test "$(git log -1 --format=%s)" = fifth',
                    'test -z "$(git status --porcelain)"', f'{COMMIT} --allow-empty -m empty',
                    'echo 6 > new.c', f'{COMMIT} -qam sixth')
        self.command('commits', 'take')
        self.assertEqual(self.git('ls-tree', '-r', '--name-only', 'HEAD', where=self.top).split(),
                         ['.gitignore', 'README', 'libs/new.c', 'libs/x/y.c',
                          'services/.gitignore', f'{WAY}/new.c', f'{WAY}/x.c',
                          'services/web/w.c'])
        self.assertEqual(len(self.notices(client)), 2)  # both are about commits

    def test_what_the_user_has_not_any_more_comes_with_the_agents_commits(self):
        client, session = self.opened()
        self.prompt(client, session, 'true')
        runtime = self.runtime(client, session)
        self.git('commit', '-q', '--amend', '-m', 'amended')
        self.git('reflog', 'expire', '--expire=now', '--all')
        self.git('gc', '-q', '--prune=now')
        (runtime / 'x.c').write_text('late\n')
        self.git('commit', '-qam', 'late', where=runtime)
        self.prompt(client, session, 'true')
        self.prompt(client, session, 'true')
        self.assertEqual([c['subject'] for b in self.commits() for c in b['commits']], ['late'])
        store, = (self.state / 'stores').iterdir()
        self.git('fetch', '-q', '--update-shallow', str(store), 'refs/acp-broker/agent/main')
        self.git('fsck', '--strict')
        self.assertEqual(self.git('show', 'FETCH_HEAD:libs/x/y.c'), 'int y;\n')

    def test_a_filter_and_a_submodule(self):
        self.repository(self.dir / 'from', i='1\n')
        self.git('submodule', 'add', '-q', str(self.dir / 'from'), 'lib')
        for way in ('clean', 'smudge'):
            self.git('config', f'filter.rot.{way}', 'tr a-z n-za-m')
        (self.top / '.gitattributes').write_text('*.rot filter=rot\n')
        (self.work / 'secret.rot').write_text('abc\n')
        self.git('add', '-A', where=self.top)
        self.git('commit', '-qm', 'third')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.prompt(client, session, 'grep -q abc secret.rot',
                    'test -z "$(git status --porcelain)"', 'git show HEAD:./secret.rot | grep nop',
                    'cd lib', 'test "$(git log --format=%s)" = first', 'echo 2 > i',
                    f'{COMMIT} -am inner', 'cd ..', f'{COMMIT} -am outer')
        self.assertEqual(self.git('status', '--porcelain', where=runtime), '')
        told = {(c['subject'], b.get('repository', '')) for b in self.commits()
                for c in b['commits']}
        self.assertEqual({subject for subject, _ in told}, {'inner', 'outer'})
        self.command('commits', 'take', cwd=self.work / 'lib')
        self.command('commits', 'take')
        self.assertEqual(self.git('status', '--porcelain'), '')
        self.assertEqual(self.git('diff', '--name-only', 'HEAD~1').split(), [f'{WAY}/lib'])

    def test_a_copy_that_was_made_before_says_what_to_do(self):
        shutil.move(self.top / '.git', self.dir / 'aside')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.ended(client)
        shutil.move(self.dir / 'aside', self.top / '.git')
        client, session = self.opened()
        self.prompt(client, session, 'test ! -e .git', 'test ! -e ../.git')
        self.assertEqual(self.runtime(client, session), runtime)
        text, = self.notices(client)
        self.assertNames(text, 'part | repository | sandbox')

    def test_a_repository_that_has_nothing_of_the_folder_is_none_of_its(self):
        self.work = self.top / 'other/work'
        self.work.mkdir(parents=True)
        (self.work / 'a').write_text('1\n')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.prompt(client, session, 'echo 2 > a')
        self.assertFalse((runtime.parent.parent / '.git').exists())
        self.assertEqual(self.notices(client), [])
        self.assertEqual((self.work / 'a').read_text(), '2\n')

    def test_a_part_that_becomes_a_repository_of_its_own(self):
        client, session = self.opened()
        self.prompt(client, session, f'{COMMIT} --allow-empty -m outer')
        self.git('init', '-q')
        self.git('add', '-A')
        self.git('commit', '-qm', 'inner')
        self.prompt(client, session, 'true')
        self.prompt(client, session, 'test "$(git log --format=%s)" = inner',
                    'test -z "$(git status --porcelain)"', f'{COMMIT} --allow-empty -m more')
        self.assertEqual({c['subject'] for b in self.commits() for c in b['commits']},
                         {'outer', 'more'})
        self.command('commits', 'take')
        self.assertEqual(self.git('log', '--format=%s'), 'more\ninner\n')

    def test_a_repository_that_the_agent_has_made_stays_its_own(self):
        client, session = self.opened()
        self.prompt(client, session, 'git init -q', 'git add -A', f'{COMMIT} -m own')
        self.git('commit', '-q', '--allow-empty', '-m', 'third')
        self.prompt(client, session, 'test "$(git log --format=%s)" = own')
        self.assertEqual(self.git('status', '--porcelain'), '')

    def test_cones(self):
        self.git('sparse-checkout', 'set', f'{WAY}/in', 'libs', where=self.top)
        client, session = self.opened()
        self.prompt(client, session, 'cat in/z.c x.c', 'test -z "$(git status --porcelain)"')
        self.git('sparse-checkout', 'set', WAY, where=self.top)
        self.prompt(client, session, 'test -z "$(git status --porcelain)"')


if __name__ == '__main__':
    case.main()
