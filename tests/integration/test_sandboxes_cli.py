#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
acp-broker sandboxes: it lists what is elsewhere, and deletes nothing whose files are not here.
"""

import fcntl
import json
import subprocess

import case

from case import program
from sessions_case import SessionsCase
from processes import PATIENCE
from sync_case import fitting

FAKE = program('ACP_BROKER_FAKE', 'tests/support/fake/acp-broker-fake')


class Sandboxes(SessionsCase):
    def setUp(self):
        super().setUp()
        self.elsewhere = self.dir / 'elsewhere'
        self.elsewhere.mkdir()
        self.configure(far=[f'inventory = {self.elsewhere}'])

    def configure(self, **profiles):
        """Profiles with the fake backend, and one that works on this machine."""
        lines = ['[profile "here"]', '\tisolation = copy']
        for name, keys in profiles.items():
            lines += [f'[profile "{name}"]', '\tbackend = fake', *(f'\t{key}' for key in keys)]
        (self.dir / 'config-far').write_text('\n'.join(lines) + '\n')

    def make(self, name, state='started', profile='far', workspace='', why='', used=''):
        lines = [f'id-{name}', state, profile, str(workspace), '2026-01-31T10:15:02Z', why, used]
        (self.elsewhere / name).write_text('\n'.join(lines) + '\n')

    def run_it(self, *words, status=0, options=()):
        argv = [FAKE, '--config', str(self.dir / 'config-far'), *options, 'sandboxes', *words]
        done = subprocess.run(argv, cwd=self.dir, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done.stdout, done.stderr

    def known(self, **more):
        return fitting('sandboxes-list', json.loads(self.run_it('list', '--json', **more)[0]))

    def names(self):
        return sorted(path.name for path in self.elsewhere.iterdir())

    def uncollected(self, reference, **more):
        """The record of a broker that was killed, changed as if this had been its sandbox."""
        self.left()
        path, = (self.state / 'sessions').glob('*.json')
        record = dict(json.loads(path.read_text()), backend='fake', profile='far', **more)
        if reference:
            record['reference'] = reference
        path.write_text(json.dumps(record))
        return path

    # ---- list ----

    def test_a_table_and_the_same_for_programs(self):
        self.make('one', workspace=self.work)
        self.make('two', state='error', why='no\x1b[31m room\x07', profile='', used='used')
        first, second = self.known()['sandboxes']
        self.assertEqual(first, {
            'name': 'one', 'id': 'id-one', 'backend': 'fake', 'state': 'started',
            'isInUse': False, 'profile': 'far', 'foundBy': 'far', 'workspace': str(self.work),
            'created': '2026-01-31T10:15:02Z', 'problem': None, 'cpu': None,
            'memoryGib': None, 'diskGib': None, 'uncollected': []})
        self.assertEqual((second['name'], second['isInUse'], second['profile'],
                          second['problem']), ('two', True, None, 'no\x1b[31m room\x07'))
        table = self.run_it('list')[0].splitlines()
        self.assertRegex(table[1], rf'^one +started +- +2026-01-31T10:15:02 +- +far +{self.work}$')
        self.assertRegex(table[2], r'^two +error +running +\S+ +- +- +-$')
        self.assertIn('room', table[3])

    def test_nothing_at_all(self):
        self.assertEqual(self.known(), {'sandboxes': [], 'problems': []})
        self.assertIn('there are no sandboxes', self.run_it('list')[1])
        self.configure()
        self.assertNames(self.run_it('list')[1], 'no profile | backend')
        self.assertNames(self.run_it('list', status=2, options=['--profile', 'here'])[1],
                         'backend | elsewhere | local')
        self.assertIn('no [profile "nowhere"]',
                      self.run_it('list', status=2, options=['--profile', 'nowhere'])[1])

    def test_two_profiles_that_see_the_same_show_it_once(self):
        keys = [f'inventory = {self.elsewhere}']
        self.configure(far=keys, near=keys)
        self.make('one', profile='near')
        self.make('two', profile='far')
        self.make('three', profile='gone')
        seen = {s['name']: s['foundBy'] for s in self.known()['sandboxes']}
        self.assertEqual((seen['one'], seen['two']), ('near', 'far'))
        self.assertEqual(len(seen), 3)
        self.assertEqual(len(self.known(options=['--profile', 'near'])['sandboxes']), 3)

    def test_a_profile_that_fails_does_not_hide_the_others(self):
        self.make('one')
        self.configure(far=[f'inventory = {self.elsewhere}'], broken=['fail = inventory'])
        out, err = self.run_it('list', status=1)
        self.assertRegex(out, '(?m)^one ')
        self.assertIn('profile "broken": fake: inventory fails', err)
        self.assertNames(err, '1 of 2 profiles | not be listed')
        listed = fitting('sandboxes-list',
                         json.loads(self.run_it('list', '--json', status=1)[0]))
        self.assertEqual(listed['problems'],
                         [{'profile': 'broken', 'error': 'fake: inventory fails'}])
        self.run_it('delete', 'one')
        self.assertIn('could not be listed', self.run_it('delete', 'two', status=1)[1])

    # ---- stop, delete ----

    def test_stop(self):
        self.make('one')
        self.make('two', used='used')
        self.assertIn('stopped; its files stay', self.run_it('stop', 'id-one')[0])
        self.assertEqual([s['state'] for s in self.known()['sandboxes']], ['stopped', 'started'])
        self.assertNames(self.run_it('stop', 'two', status=1)[1], 'two | running broker | uses it')
        self.assertNames(self.run_it('stop', 'three', status=1)[1], 'sandbox three | no sandbox')

    def test_delete(self):
        for name in ('one', 'two', 'three'):
            self.make(name, used='used' if name == 'three' else '')
        self.assertIn('deleted', self.run_it('delete', 'one')[0])
        self.assertNames(self.run_it('delete', '--discard', 'three', status=1)[1],
                         'three | running broker | uses it')
        self.assertEqual(self.names(), ['three', 'two'])

    def test_the_same_name_twice(self):
        other = self.dir / 'other'
        other.mkdir()
        self.make('one')
        (other / 'one').write_text('id-other\nstarted\nnear\n')
        self.configure(far=[f'inventory = {self.elsewhere}'], near=[f'inventory = {other}'])
        self.assertNames(self.run_it('delete', 'one', status=2)[1],
                         'one | several | far | near | --profile')
        self.run_it('delete', 'one', options=['--profile', 'near'])
        self.assertEqual((self.names(), list(other.iterdir())), (['one'], []))
        self.run_it('delete', 'id-one')
        self.assertEqual(self.names(), [])

    def test_what_is_not_collected_is_not_deleted(self):
        record = self.uncollected('one')
        self.make('one')
        self.make('two')
        self.assertEqual([s['uncollected'] for s in self.known()['sandboxes']],
                         [[record.stem], []])
        self.assertIn(f'not collected: session {record.stem}', self.run_it('list')[0])
        said = self.run_it('delete', 'one', status=1)[1]
        self.assertNames(said, f'{self.work} | not collected | '
                         f'acp-broker sessions collect {record.stem}')
        self.assertEqual((self.names(), record.exists()), (['one', 'two'], True))
        self.run_it('delete', 'two')
        self.run_it('stop', 'one')
        said = self.run_it('delete', '--discard', 'one')[0]
        self.assertIn(f'session {record.stem} of {self.work}: its changes', said)
        self.assertEqual((self.names(), record.exists()), ([], False))

    def test_a_record_from_before_its_sandbox_had_a_name(self):
        record = self.uncollected(None)
        self.make('one', workspace=self.work)
        self.make('two', workspace=self.dir)
        self.make('three', workspace=self.work, profile='near')
        listed = {s['name']: s['uncollected'] for s in self.known()['sandboxes']}
        self.assertEqual(listed, {'one': [record.stem], 'two': [], 'three': []})

    def test_what_was_collected_may_go(self):
        record = self.uncollected('one', state='stopped')
        self.make('one')
        self.make('two')
        self.run_it('delete', 'two')
        self.assertEqual(json.loads(record.read_text())['reference'], 'one')
        self.run_it('delete', 'one')
        # The record is kept, but leads to no sandbox: session/list has no session that cannot be
        # loaded.
        self.assertIsNone(json.loads(record.read_text())['reference'])

    def test_what_was_never_synced_is_not_deleted(self):
        record = self.uncollected('one', state='stopped', sync='none')
        self.make('one')
        self.make('two', workspace=self.work)
        self.assertEqual([s['uncollected'] for s in self.known()['sandboxes']],
                         [[record.stem], []])
        self.assertIn('sync = none', self.run_it('delete', 'one', status=1)[1])
        self.assertEqual((self.names(), record.exists()), (['one', 'two'], True))
        self.run_it('delete', '--discard', 'one')
        self.assertEqual((self.names(), record.exists()), (['two'], False))

    def test_what_somebody_finishes_stays_even_with_discard(self):
        record = self.uncollected('one')
        self.make('one')
        with open(record.with_suffix('.lock'), 'a', encoding='utf-8') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            said = self.run_it('delete', '--discard', 'one', status=1)[1]
        self.assertIn(f'its session {record.stem}', said)
        self.assertEqual((self.names(), record.exists()), (['one'], True))

    def test_a_record_that_cannot_be_read_may_be_of_it(self):
        record = self.uncollected('one')
        record.write_text('{')
        self.make('one')
        said = self.run_it('delete', 'one', status=1)[1]
        self.assertNames(said, f'session {record.stem} | cannot be read')
        self.run_it('delete', '--discard', 'one')
        self.assertEqual((self.names(), record.exists()), ([], True))


if __name__ == '__main__':
    case.main()
