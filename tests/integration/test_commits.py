#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The commits that an agent makes in its copy: the session names them, a command lists them, and the
user can fetch them.
"""

import re
import subprocess

import case

from repository_case import RepositoryCase

COMMIT = 'git -c user.name=Bot -c user.email=b@b commit -q --allow-empty'


class Commits(RepositoryCase):
    def setUp(self):
        super().setUp()
        self.repository()

    def told(self, client):
        return [text for text in self.notices(client) if 'committed' in text]

    def ids(self, where, *branches):
        return [self.git('rev-parse', '--short=12', branch, where=where).strip()
                for branch in branches]

    def fetch(self, line):
        """Pastes the line into a shell, as a user does; returns the commits in FETCH_HEAD."""
        subprocess.run(['sh', '-ec', line], cwd=self.work, env=self.environment(), check=True,
                       capture_output=True, stdin=subprocess.DEVNULL)
        return self.git('log', '--format=%s', 'FETCH_HEAD').split('\n')[:-1]

    def test_two_branches_are_told_with_the_answer_and_listed(self):
        before = self.folder_of_git()
        client, session = self.opened()
        self.prompt(client, session, 'echo 2 > a', f'{COMMIT} -am second', f'{COMMIT} -m third',
                    'git checkout -q -b fix/it HEAD~2', f'{COMMIT} -m Fixed')
        runtime = self.runtime(client, session)
        fixed, third, second = self.ids(runtime, 'fix/it', 'main', 'main~1')
        text, = self.told(client)
        self.assertNames(text, f'fix/it at {fixed} (1 commit: "Fixed") | main at {third} '
                         '(2 commits: "third", "second") | acp-broker commits list')
        self.assertEqual(self.folder_of_git(), before)
        client.prompt(session, 'say more')
        self.assertEqual(len(self.told(client)), 1)
        store, = (self.state / 'stores').iterdir()
        out, said = self.command('commits', 'list')
        self.assertEqual(said, '')
        self.assertEqual(re.sub(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', 'TIME', out),
                         f'fix/it\n'
                         f'    git fetch {store} refs/acp-broker/agent/fix/it\n'
                         f'    {fixed}  TIME  Bot: Fixed\n'
                         f'main\n'
                         f'    git fetch {store} refs/acp-broker/agent/main\n'
                         f'    {third}  TIME  Bot: third\n'
                         f'    {second}  TIME  Bot: second\n')
        lines = [line.strip() for line in out.split('\n') if 'git fetch' in line]
        self.assertEqual(self.fetch(lines[0]), ['Fixed', 'first'])
        self.assertEqual(self.fetch(lines[1]), ['third', 'second', 'first'])
        self.git('fsck', '--strict')
        self.assertFalse((self.work / '.git/shallow').exists())

    def test_what_the_last_collect_finds_is_told(self):
        client, session = self.opened()
        client.prompt(session, 'say x')
        runtime = self.runtime(client, session)
        self.git('commit', '-q', '--allow-empty', '-m', 'late', where=runtime)
        self.ended(client)
        self.assertEqual(len(re.findall(r'committed to main .*"late"', client.stderr)), 1,
                         client.stderr)
        self.assertNames(client.stderr, 'acp-broker commits list')
        self.assertEqual(len(self.told(client)), 1)  # the editor still reads
        self.assertEqual([c['subject'] for b in self.commits() for c in b['commits']], ['late'])

    def test_session_mode_tells_at_the_end(self):
        client, session = self.opened(sync='session-bidirectional')
        self.prompt(client, session, f'{COMMIT} -m one', f'{COMMIT} -m two',
                    'git checkout -q -b other', f'{COMMIT} -m three')
        self.assertEqual(self.told(client), [])
        self.ended(client)
        self.assertRegex(client.stderr, r'committed to main at \w+ \(2 commits: "two", "one"\), '
                         r'other at \w+ \(3 commits: "three", "two", "one"\)')
        listed = {b['branch']: [c['subject'] for c in b['commits']] for b in self.commits()}
        self.assertEqual(listed, {'main': ['two', 'one'], 'other': ['three', 'two', 'one']})

    def test_the_next_broker_tells_what_is_new_alone(self):
        client, session = self.opened()
        self.prompt(client, session, f'{COMMIT} -m one')
        self.ended(client)
        before = self.commits()
        client, session = self.opened()
        client.prompt(session, 'say x')
        self.assertEqual(self.told(client), [])
        self.assertEqual(self.commits(), before)
        self.prompt(client, session, f'{COMMIT} -m two')
        text, = self.told(client)
        self.assertIn('(1 commit: "two")', text)
        self.ended(client)
        branch, = self.commits()
        self.assertEqual([c['subject'] for c in branch['commits']], ['two', 'one'])
        self.assertEqual(branch['commits'][1:], before[0]['commits'])

    def test_a_branch_whose_name_is_a_command_is_fetched_by_its_line(self):
        """A git name may have nearly any character but a blank, and the line is for a shell."""
        name = "it's;touch$IFS$PWD/ran;$(touch$IFS$PWD/ran)&'"
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.git('checkout', '-q', '-b', name, where=runtime)
        self.git('commit', '-q', '--allow-empty', '-m', 'odd', where=runtime)
        client.prompt(session, 'say x')
        self.assertIn(name, self.told(client)[0])
        branch, = self.commits()
        self.assertEqual(branch['branch'], name)
        self.assertEqual(self.fetch(branch['fetch']), ['odd', 'first'])
        self.assertFalse((self.work / 'ran').exists())

    def test_of_many_commits_the_newest_are_printed(self):
        client, session = self.opened()
        self.prompt(client, session, 'for n in $(seq 25); do '
                    f'{COMMIT} -m "number $n"; done')
        self.assertIn('(25 commits: "number 25", "number 24", "number 23" and 22 more)',
                      self.told(client)[0])
        out, _ = self.command('commits', 'list')
        self.assertEqual(out.count('number'), 20)
        self.assertTrue(out.endswith('Bot: number 6\n    and 5 more\n'), out)
        branch, = self.commits()
        self.assertEqual([c['subject'] for c in branch['commits']],
                         [f'number {n}' for n in range(25, 0, -1)])
        self.assertEqual((branch['id'], branch['ref']),
                         (branch['commits'][0]['id'], 'refs/acp-broker/agent/main'))
        self.assertEqual({c['author'] for c in branch['commits']}, {'Bot'})

    def test_the_users_own_commit_of_what_was_synced_before_goes_there(self):
        client, session = self.opened()
        self.write(self.work, a='edited\n')
        self.prompt(client, session, 'test "$(git status --short)" = " M a"')
        self.git('commit', '-qam', 'of what is there')
        self.prompt(client, session, 'test -z "$(git status --short)"',
                    'test "$(git log -1 --format=%s)" = "of what is there"')
        self.assertEqual(self.commits(), [])

    def test_a_submodule_has_its_own_history(self):
        self.repository(self.dir / 'from')
        self.git('submodule', 'add', '-q', str(self.dir / 'from'), 'lib')
        self.git('commit', '-qm', 'second')
        head = self.git('rev-parse', 'HEAD', where=self.work / 'lib')
        client, session = self.opened()
        runtime = self.runtime(client, session)
        self.prompt(client, session, 'test -z "$(git status --porcelain)"', 'cd lib',
                    f'test "$(git rev-parse HEAD)" = {head.strip()}',
                    'git checkout -q -b fix', 'echo 2 > a', f'{COMMIT} -am inside', 'cd ..',
                    'test "$(git status --porcelain)" = " M lib"', f'{COMMIT} -am around')
        fixed, = self.ids(runtime / 'lib', 'fix')
        around, = self.ids(runtime, 'main')
        self.assertNames(self.told(client)[0], f'main at {around} | "around" | '
                         f'fix of lib at {fixed} (1 commit: "inside") | acp-broker commits list')
        self.assertEqual((self.work / 'lib' / 'a').read_text(), '2\n')
        self.assertEqual(self.git('rev-parse', 'HEAD', where=self.work / 'lib'), head)
        listed = {(b['repository'], b['branch']): b for b in self.commits()}
        self.assertEqual(list(listed), [('', 'main'), ('lib', 'fix')])
        branch = listed['lib', 'fix']
        self.assertEqual(branch['ref'], 'refs/acp-broker/agent-in/lib/fix')
        self.assertIn('\nlib: fix\n', self.command('commits', 'list')[0])
        subprocess.run(['sh', '-ec', branch['fetch']], cwd=self.dir, env=self.environment(),
                       check=True, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(self.git('log', '--format=%s', 'FETCH_HEAD', where=self.work / 'lib'),
                         'inside\nfirst\n')
        self.git('fsck', '--strict', where=self.work / 'lib')
        client.process.kill()
        client.process.wait()
        client, session = self.opened()
        self.prompt(client, session, 'true')
        self.assertEqual(self.told(client), [])
        self.assertEqual({(b['repository'], b['branch']): b for b in self.commits()}, listed)
        self.ended(client)
        before = self.folder_of_git()
        done = subprocess.run([case.BROKER, 'commits', 'take'], cwd=self.work, text=True,
                              env=self.environment(), capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNames(done.stderr, 'lib: | submodule | 1 of 1')
        lib = self.work / 'lib'
        text, _ = self.command('commits', 'take', 'fix', cwd=lib)
        self.assertNames(text, f'main is at {fixed} | 1 commit')
        self.command('commits', 'take', '--undo', cwd=lib)
        self.assertEqual(self.git('rev-parse', 'HEAD', where=lib), head)
        self.assertEqual(self.git('status', '--porcelain', where=lib), ' M a\n')
        changed = {name for name, content in self.folder_of_git().items()
                   if before.get(name) != content}
        self.assertEqual({name for name in changed
                          if not re.search('/logs/|/objects/|/index$', name)}, set())
        self.command('commits', 'take', 'fix', cwd=lib)
        self.assertEqual(self.ids(lib, 'HEAD'), [fixed])
        self.command('commits', 'take')
        self.assertEqual(self.ids(self.work, 'HEAD'), [around])
        self.assertEqual(self.git('status', '--porcelain'), '')

    def test_where_no_agent_has_committed(self):
        client, session = self.opened()
        client.prompt(session, 'say x')
        self.ended(client)
        out, said = self.command('commits', 'list')
        self.assertEqual(out, '')
        self.check_line(said, 'committed anything')
        self.assertEqual(self.commits(), [])


if __name__ == '__main__':
    case.main()
