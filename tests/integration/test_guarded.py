#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Files that the user's own tools run commands from (guard-paths): an agent has to ask first."""

from case import main
from policy_case import PolicyCase


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


if __name__ == '__main__':
    main()
