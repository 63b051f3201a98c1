#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A checkout, a pull or a rebase on one side in mid-session, while edits of the other side are
pending.
"""

import case

from repository_case import RepositoryCase
from processes import PATIENCE

MANY = 250  # the broker asks about this many deletions, by the agent or by the user


class Moves(RepositoryCase):
    def setUp(self):
        super().setUp()
        self.repository(self.dir / 'upstream', shared='1\n', mine='1\n', theirs='1\n')
        self.git('clone', '-q', str(self.dir / 'upstream'), '.')
        self.git('checkout', '-q', '-b', 'feature')
        self.write(self.work, mine='feature\n', only='feature\n')
        self.commit(self.work, 'feature')
        self.git('checkout', '-q', 'main')

    def commit(self, where, message):
        self.git('add', '-A', where=where)
        self.git('commit', '-qm', message, where=where)

    def advance(self):
        """Somebody else pushes a commit."""
        self.write(self.dir / 'upstream', theirs='2\n', fresh='2\n')
        self.commit(self.dir / 'upstream', 'further')

    def files(self, where):
        return {str(path.relative_to(where)): path.read_text() for path in where.rglob('*')
                if path.is_file() and '.git' not in path.parts}

    def assert_agree(self, client, session, expected, asked=0):
        """
        Checks that both sides have exactly these files, that nobody was told anything, and how
        often the user was asked.
        """
        runtime = self.runtime(client, session)
        self.assertEqual(self.files(self.work), expected)
        self.assertEqual(self.files(runtime), expected)
        self.assertEqual([text for text in self.notices(client) if 'committed' not in text], [])
        questions = [method for method, _ in client.host.seen
                     if method == 'session/request_permission']
        self.assertEqual(len(questions), asked)
        for where in self.work, runtime:
            self.git('fsck', '--strict', where=where)

    def moved_here(self, expected, *words, asked=0):
        """
        The user moves the workspace to another commit while the agent's edit has not arrived here
        yet.
        """
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.write(runtime, shared='agent\n', added='agent\n')
        self.git(*words)
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assert_agree(client, session, {**expected, 'shared': 'agent\n', 'added': 'agent\n'},
                          asked)
        for words in ('rev-parse', 'HEAD'), ('status', '--porcelain'), ('branch', '--show-current'):
            self.assertEqual(self.git(*words, where=runtime), self.git(*words))
        return client, session

    def moved_there(self, expected, *commands):
        """
        The agent moves its copy to another commit while the user's edit has not arrived there yet.
        """
        client, session = self.opened()
        before = self.folder_of_git()
        runtime = self.runtime(client, session)
        for command in commands:
            self.git(*command, where=runtime)
        self.write(self.work, shared='person\n', added='person\n')
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assert_agree(client, session, {**expected, 'shared': 'person\n', 'added': 'person\n'})
        self.assertEqual(self.folder_of_git(), before)

    def test_a_checkout_here(self):
        self.moved_here({'mine': 'feature\n', 'theirs': '1\n', 'only': 'feature\n'},
                        'checkout', '-q', 'feature')

    def test_a_checkout_here_that_takes_most_files_away_and_back(self):
        self.git('checkout', '-q', '-b', 'large')
        self.write(self.work, **{f'many__f{number}': f'{number}\n' for number in range(MANY)})
        self.commit(self.work, 'large')
        small = {'mine': '1\n', 'theirs': '1\n'}
        client, session = self.moved_here(small, 'checkout', '-q', 'main', asked=1)
        self.git('checkout', '-q', 'large')
        client.prompt(session, 'say x', seconds=PATIENCE)
        self.assert_agree(client, session, {
            **small, 'shared': 'agent\n', 'added': 'agent\n',
            **{f'many/f{number}': f'{number}\n' for number in range(MANY)}}, asked=1)

    def test_a_pull_here(self):
        self.advance()
        self.moved_here({'mine': '1\n', 'theirs': '2\n', 'fresh': '2\n'}, 'pull', '-q')

    def test_a_rebase_here(self):
        self.advance()
        self.git('fetch', '-q')
        self.git('checkout', '-q', 'feature')
        self.moved_here({'mine': 'feature\n', 'only': 'feature\n', 'theirs': '2\n', 'fresh': '2\n'},
                        'rebase', '-q', 'origin/main')

    def test_a_checkout_there(self):
        self.moved_there({'mine': 'feature\n', 'theirs': '1\n', 'only': 'feature\n'},
                         ('checkout', '-q', 'feature'))

    def test_a_pull_there(self):
        self.advance()
        self.moved_there({'mine': '1\n', 'theirs': '2\n', 'fresh': '2\n'},
                         ('pull', '-q', '--no-rebase', str(self.dir / 'upstream'), 'main'))

    def test_a_rebase_there(self):
        self.advance()
        self.git('fetch', '-q')
        self.git('checkout', '-q', 'feature')
        self.moved_there({'mine': 'feature\n', 'only': 'feature\n', 'theirs': '2\n',
                          'fresh': '2\n'}, ('rebase', '-q', 'origin/main'))


if __name__ == '__main__':
    case.main()
