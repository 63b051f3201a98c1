#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that the user's own tools run commands from (guard-paths): an agent has to ask first."""

import json
import subprocess

import case

from case import main
from facts import names
from policy_case import PolicyCase
from sync_case import TurnCase


class Served(PolicyCase):
    """The broker serves the user's own files."""

    def guarded(self, client):
        return [question['toolCall']['locations'][0]['path']
                for question in self.questions(client)]

    def test_a_file_that_tools_run_commands_from_is_asked_about(self):
        (self.work / 'link').symlink_to('.vscode/tasks.json')
        for policy in (None, ('mode = approve-all',), ('mode = ask', 'allow = write **')):
            client, session = self.open(toolhost='broker', policy=policy)
            self.chooses(client, 'reject_once')
            for name in ('.envrc', 'sub/.husky/pre-commit', 'link'):
                client.prompt(session, f'write {self.work}/{name} x')
            self.assertEqual([path.removeprefix(f'{self.work}/')
                              for path in self.guarded(client)],
                             ['.envrc', 'sub/.husky/pre-commit', '.vscode/tasks.json'])
            self.assertTrue(all('`guard-paths`' in question['toolCall']['title']
                                for question in self.questions(client)))
            self.assertEqual(sum('PERMISSION_DENIED' in text for text in client.texts()), 3)
            self.assertEqual([path.name for path in self.work.iterdir()], ['link'])
            client.prompt(session, f'write {self.work}/plain x')
            self.assertEqual(len(self.questions(client)), 3)
            (self.work / 'plain').unlink()
            said = self.explain(client, session, 'write', path=f'{self.work}/.envrc')
            self.assertEqual((said['decision'], said['rule']), ('pending', 'guard-paths'))
            client.finish()

    def test_always_is_an_answer_for_a_guarded_file_too(self):
        client, session = self.open(toolhost='broker', policy=None)
        self.chooses(client, 'allow_always')
        for text in ('one', 'two'):
            client.prompt(session, f'write {self.work}/.envrc {text}')
        self.assertEqual(len(self.questions(client)), 1)
        self.assertEqual((self.work / '.envrc').read_text(), 'two')

    def test_what_a_rule_denies_or_asks_about_is_no_second_question(self):
        client, session = self.open(toolhost='broker', policy=(
            'mode = ask', 'ask = write **/.envrc', 'deny = write **/.mcp.json'))
        client.prompt(session, f'write {self.work}/.envrc x', f'write {self.work}/.mcp.json x')
        question, = self.questions(client)
        self.assertIn('`ask = write **/.envrc`', question['toolCall']['title'])

    def test_guard_paths_may_be_others_or_none(self):
        client, session = self.open(toolhost='broker', policy=None, guard_paths='Makefile')
        client.prompt(session, f'write {self.work}/.envrc x', f'write {self.work}/Makefile x')
        self.assertEqual(self.guarded(client), [f'{self.work}/Makefile'])
        client, session = self.open(toolhost='broker', policy=None, guard_paths='none')
        client.prompt(session, f'write {self.work}/.envrc x')
        self.assertEqual(self.questions(client), [])

    def test_where_the_editor_serves_its_own_agent_nothing_is_guarded(self):
        client, session = self.open(toolhost='editor', policy=None)
        client.prompt(session, f'write {self.work}/.envrc x')
        self.assertEqual(self.questions(client), [])
        self.assertEqual((self.work / '.envrc').read_text(), 'x')


class Synced(TurnCase):
    """The agent works in a copy, and a sync would bring the file here."""

    GUARDED = ('mkdir .husky; echo its > .husky/pre-commit; echo new > .envrc; '
               'echo plain > plain; ln -s /etc/hostname out')

    def begin(self, **keys):
        (self.work / '.envrc').write_text('old\n')
        client, session = self.opened(**keys)
        return client, session, self.runtime(client, session)

    def conflicts(self):
        output = subprocess.run([case.BROKER, 'conflicts', 'list', '--json'], cwd=self.work,
                                env=self.environment(), stdout=subprocess.PIPE, check=True).stdout
        return json.loads(output)['conflicts']

    def told(self, client, *facts):
        return sum(names(title, ' | '.join(facts)) for title in self.notices(client))

    def check_held(self, place):
        self.assertEqual(self.tree(), {'.envrc': 'old\n', 'plain': 'plain\n',
                                       'out': (self.work / 'out').read_text()})
        self.assertTrue((self.work / 'out').is_symlink())
        self.assertEqual((place / '.envrc').read_text(), 'new\n')
        self.assertEqual((place / '.husky/pre-commit').read_text(), 'its\n')

    def test_what_waits_is_in_the_sandbox_alone_and_told_once(self):
        for transport in ('git', 'rsync'):
            with self.subTest(transport):
                client, session, place = self.begin(transport=transport, profile=transport)
                client.prompt(session, 'terminal ' + self.GUARDED)
                self.check_held(place)
                self.assertEqual(self.told(client, 'guard-paths', '.envrc', '.husky/pre-commit'),
                                 1)
                (self.work / 'mine').write_text('mine')
                client.prompt(session, 'say on')
                self.assertEqual((place / 'mine').read_text(), 'mine')
                (self.work / 'mine').unlink()
                client.prompt(session, 'say on')
                self.check_held(place)
                self.assertEqual(self.told(client, 'guard-paths'), 1)
                self.assertEqual(self.conflicts(), [])
                self.ended(client)
                self.assertEqual([conflict['path'] for conflict in self.conflicts()],
                                 ['.envrc', '.husky/pre-commit'])
                self.assertEqual((self.work / '.envrc').read_text(), 'old\n')
                for conflict in self.conflicts():
                    subprocess.run([case.BROKER, 'conflicts', 'take', conflict['id'], 'local'],
                                   cwd=self.work, env=self.environment(), check=True,
                                   stdout=subprocess.DEVNULL)
                (self.work / 'plain').unlink()
                (self.work / 'out').unlink()

    def test_the_next_broker_finds_it_as_it_was_left(self):
        for transport in ('git', 'rsync'):
            with self.subTest(transport):
                keys = {'transport': transport, 'profile': transport, 'persistence': 'reuse'}
                client, session, place = self.begin(**keys)
                client.prompt(session, 'terminal echo new > .envrc; echo x > .mcp.json')
                self.ended(client)
                client, session, place = self.begin(**keys)
                client.prompt(session, 'terminal cat .envrc .mcp.json; echo on > on')
                self.assertIn(r'"output":"new\nx\n"', ''.join(client.texts()))
                self.assertEqual((self.work / 'on').read_text(), 'on\n')
                self.assertEqual((self.work / '.envrc').read_text(), 'old\n')
                self.assertFalse((self.work / '.mcp.json').exists())
                self.ended(client)


if __name__ == '__main__':
    main()
