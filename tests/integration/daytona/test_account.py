#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A sandbox that was made with another API key. The service does not know it under the present key,
but that proves nothing. So the broker forgets nothing, makes no sandbox in its place, and reports
it.
"""

import json
import pathlib
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from case import main  # noqa: E402
from processes import PATIENCE  # noqa: E402
from room import Room  # noqa: E402
import processes  # noqa: E402


class Account(Room):
    def setUp(self):
        super().setUp()
        self.key = self.daytona.key

    def environment(self):
        return {**super().environment(), 'DAYTONA_API_KEY': self.key}

    def test_check_says_where_the_account_is_from(self):
        environment = self.environment()
        self.key = ''
        file = pathlib.Path(environment['XDG_CONFIG_HOME']) / 'daytona' / 'config.json'
        file.parent.mkdir(parents=True)
        api = {'url': self.daytona.api, 'key': self.daytona.key}
        file.write_text(json.dumps({
            'activeProfile': '1', 'profiles': [{'id': '1', 'name': 'work', 'api': api}]}))
        file.chmod(0o600)
        told = self.command('check', '--', 'sh')
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        facts = dict(line.split(None, 1) for line in told.stdout.splitlines() if ' ' in line)
        self.assertEqual(facts['api-from'], '"api-url"')
        self.assertEqual(facts['api-key'], f'"profile work of {file}"')
        self.assertNames(facts['permissions'], 'write:sandboxes | delete:sandboxes')
        self.assertNotIn('key-lacks', facts)
        self.assertNotIn(self.daytona.key, told.stdout + told.stderr)
        self.daytona.settings(scopes=['write:sandboxes'])
        self.assertRegex(self.command('check', '--', 'sh').stdout, 'key-lacks.*delete:sandboxes')
        self.daytona.settings(tellsScopes=False)
        told = self.command('check', '--', 'sh')
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, 'permissions.*does not say')

    def test_a_command_prints_the_key(self):
        """
        A broker runs the command once, and once more when the service no longer accepts the key.
        """
        store, runs = self.dir / 'store', self.dir / 'runs'
        store.write_text(f'{self.key}\nlogin: me\n')
        keys = {'api-key-command': f'"echo run >> {runs}; cat {store}"'}
        self.key = ''
        told = self.command('check', '--', 'sh', **keys)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertRegex(told.stdout, r'api-key\s+"api-key-command"')
        self.assertNotIn(self.daytona.key, told.stdout + told.stderr)
        told = self.command('sandboxes', 'list', **keys)
        self.assertEqual(told.returncode, 0, told.stderr)
        runs.unlink()
        client, session = self.opened(**keys)
        self.prompt(client, session, 'terminal env > env')
        self.assertEqual(runs.read_text(), 'run\n')
        store.write_text(self.daytona.second_key)
        self.daytona.fault('*', status=401, message='Invalid credentials')
        seen = len(self.daytona.calls())
        self.end(client)
        self.assertEqual(runs.read_text(), 'run\nrun\n')
        sent = [call['requestHeaders']['authorization']
                for call in self.daytona.calls(start=seen)]
        self.assertEqual(sent[0], f'Bearer {self.daytona.key}')
        self.assertEqual(set(sent[1:]), {f'Bearer {self.daytona.second_key}'})
        self.assertEqual(self.box()['state'], 'stopped')
        for secret in (self.daytona.key, self.daytona.second_key):
            self.assertNotIn(secret, client.stderr + (self.work / 'env').read_text())

    def test_a_command_that_prints_no_key_is_told(self):
        self.key = ''
        error = self.start_error(**{'api-key-command': '"echo locked >&2; exit 3"'})
        self.assertEqual(error.data['code'], 'DAYTONA_KEY_COMMAND', error)
        self.assertIs(error.data['retryable'], False)
        self.assertNames(str(error), 'profile "test" | api-key-command | status 3 | locked')
        self.assertEqual(self.daytona.calls(), [])

    def listed(self):
        told = self.command('sandboxes', 'list', '--json')
        self.assertEqual(told.returncode, 0, told.stderr)
        return json.loads(told.stdout)['sandboxes']

    def note(self):
        name, = self.notes()
        return json.loads((self.state / 'daytona' / f'{name}.json').read_text())

    def test_one_of_another_key_is_neither_forgotten_nor_made_again(self):
        self.end(self.opened()[0])
        box, note = self.box(), self.note()
        self.key = self.daytona.other_key
        error = self.start_error()
        self.assertEqual(error.data['code'], 'DAYTONA_OTHER_ACCOUNT', error)
        self.assertIs(error.data['retryable'], False)
        for text in (box['name'], self.daytona.api, 'another API key', 'sandboxes delete'):
            self.assertIn(text, str(error))
        self.assertEqual(self.note(), note)
        self.assertEqual(self.daytona.counts()['create'], 1)
        one, = self.listed()
        self.assertEqual((one['name'], one['state']), (box['name'], 'unknown'))
        self.assertIn('another API key', one['problem'])
        self.assertEqual(one['workspace'], str(self.work.resolve()))
        for order in ('stop', 'delete'):
            told = self.command('sandboxes', order, box['name'])
            self.assertEqual(told.returncode, 1, told.stderr)
            self.assertIn('another API key', told.stderr)
        self.assertEqual(self.note(), note)
        self.key = self.daytona.key
        self.end(self.opened()[0])
        self.assertEqual(self.box()['id'], box['id'])

    def test_it_is_forgotten_where_that_is_said(self):
        self.end(self.opened()[0])
        first = self.box()
        self.key = self.daytona.other_key
        told = self.command('sandboxes', 'delete', '--discard', first['name'])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn('may still exist', told.stderr)
        self.assertEqual(self.notes(), [])
        self.assertEqual(self.listed(), [])
        self.key = self.daytona.key
        self.end(self.opened()[0])
        self.assertEqual(self.box()['id'], first['id'])

    def test_what_is_in_it_is_collected_once_its_key_is_back(self):
        for persistence in ('reuse', 'transient'):
            client, session = self.opened(persistence=persistence)
            name = f'late-{persistence}'
            (self.runtime(client, session) / name).write_text('late\n')
            client.process.kill()
            client.wait(PATIENCE)
            self.key = self.daytona.other_key
            told = self.command('sessions', 'collect', persistence=persistence)
            self.assertEqual(told.returncode, 1, told.stderr)
            self.assertIn('another API key', told.stderr)
            self.assertEqual(len(self.notes()), 1)
            self.assertFalse((self.work / name).exists())
            self.key = self.daytona.key
            told = self.command('sessions', 'collect', persistence=persistence)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertEqual((self.work / name).read_text(), 'late\n')
            for box in self.boxes():
                self.daytona.vanish(box['id'])
            for path in (self.state / 'daytona').glob('*.json'):
                path.unlink()

    def test_a_transient_one_is_not_swept_with_another_key(self):
        client = self.greeted(persistence='transient')
        client.process.kill()
        client.wait(PATIENCE)
        name, = self.notes()
        self.key = self.daytona.other_key
        second = self.greeted(persistence='transient')
        second.wait_log(f'sandbox {name} | ended broker | not deleted', PATIENCE)
        self.end(second)
        self.assertEqual(self.notes(), [name])
        self.key = self.daytona.key
        third = self.greeted(persistence='transient')
        self.assertTrue(processes.wait_until(lambda: name not in self.notes(), PATIENCE),
                        third.stderr)
        self.end(third)
        self.assertEqual(self.boxes(), [])

    def test_a_new_key_of_the_same_account_takes_it_over(self):
        self.end(self.opened()[0])
        box, note = self.box(), self.note()
        self.key = self.daytona.second_key
        self.end(self.opened()[0])
        self.assertEqual(self.box()['id'], box['id'])
        self.assertNotEqual(self.note()['keyPrint'], note['keyPrint'])
        self.assertEqual({**self.note(), 'keyPrint': '', 'keySalt': ''},
                         {**note, 'keyPrint': '', 'keySalt': ''})
        self.daytona.vanish(box['id'])
        self.end(self.opened()[0])
        self.assertNotEqual(self.box()['id'], box['id'])

    def test_a_note_that_does_not_say_whose_it_is_stays(self):
        self.end(self.opened()[0])
        note = self.note()
        path = self.state / 'daytona' / f'{note["name"]}.json'
        for member in ('organization', 'keySalt', 'keyPrint'):
            del note[member]
        path.write_text(json.dumps(note))
        self.daytona.vanish(self.box()['id'])
        self.assertEqual(self.start_error().data['code'], 'DAYTONA_OTHER_ACCOUNT')
        self.assertEqual(self.note(), note)


if __name__ == '__main__':
    main()
