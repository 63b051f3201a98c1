#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`acp-broker du` and `prune`: what the broker keeps, and that prune removes nothing that is needed.
"""

import json
import os
import pathlib
import shutil
import subprocess

import case
import processes

from processes import PATIENCE
from sessions_case import SessionsCase


class Disk(SessionsCase):
    def run_broker(self, *words, status=0):
        argv = [case.BROKER, '--config', str(self.dir / 'config-copy'), *words]
        done = subprocess.run(argv, cwd=self.dir, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done.stdout, done.stderr

    def held(self):
        """All entries of `du`."""
        return json.loads(self.run_broker('du', '--json')[0])['holdings']

    def states(self):
        return {(entry['kind'], entry['state']) for entry in self.held()}

    def one(self, kind):
        entry, = (entry for entry in self.held() if entry['kind'] == kind)
        return entry

    def ended(self, client, status=0):
        client.close_stdin()
        self.assertEqual(client.wait(PATIENCE), status, client.stderr)

    def session(self, *commands, **keys):
        """Plays a session to its end; returns the path of its copy."""
        client, session = self.opened(**keys)
        for command in commands:
            client.prompt(session, f'terminal {command}', seconds=PATIENCE)
        runtime = self.runtime(client, session)
        self.ended(client)
        return runtime

    def files(self):
        return sorted(str(path) for path in self.state.rglob('*'))

    def test_what_is_listed_and_what_goes(self):
        self.write_config_for_nothing()
        self.assertNames(self.run_broker('du')[1], 'nothing')
        client, session = self.opened()
        client.prompt(session, 'say x')
        self.assertEqual(self.states(), {('copy', 'in use'), ('store', 'in use'),
                                         ('record', 'in use')})
        self.assertNames(self.run_broker('prune', '--older', '0s', '--max-size', '1')[1],
                         f'copy of {self.work} | in use')
        runtime = self.runtime(client, session)
        client.prompt(session, 'say y')
        self.ended(client)
        self.assertEqual(self.states(), {('copy', 'finished'), ('store', 'needed'),
                                         ('record', 'finished')})
        copy = self.one('copy')
        self.assertEqual((copy['workspace'], copy['isGone']), (str(self.work), False))
        self.assertTrue(str(runtime).startswith(copy['path']))
        self.assertGreater(copy['bytes'], 0)
        self.assertEqual(self.one('store')['workspace'], str(self.work))
        text, _ = self.run_broker('du')
        self.assertEqual([line.split()[0] for line in text.splitlines()],
                         ['KIND', 'copy', 'store', 'record', 'all'])
        self.assertNames(self.run_broker('prune')[0], '0 removed')
        before = self.files()
        text, _ = self.run_broker('prune', '--older', '0s', '--dry-run')
        self.assertNames(text, f'copy of {self.work} | record of {self.work} | 2 would')
        self.assertEqual(self.files(), before)
        (runtime / 'late').write_text('after the end\n')
        text, _ = self.run_broker('prune', '--older', '0s')
        self.assertNames(text, f'copy of {self.work} | store of {self.work} '
                         f'| record of {self.work} | 3 removed')
        self.assertEqual((self.work / 'late').read_text(), 'after the end\n')
        self.assertEqual(self.held(), [])
        self.assertEqual([path for path in self.state.rglob('*') if path.is_file()
                          and path.suffix != '.lock'], [])

    def write_config_for_nothing(self):
        (self.dir / 'config-copy').write_text('')

    def test_nothing_goes_that_is_not_collected(self):
        runtime = self.left()
        _, said = self.run_broker('prune', '--older', '0s', '--max-size', '1')
        name = self.the_one()['id']
        self.assertNames(said, f'copy of {self.work} | not collected | session {name} '
                         f'| store of {self.work}')
        self.assertEqual((runtime / 'a-there').read_text(), 'a there\n')
        self.assertEqual(self.states(), {('copy', 'not collected'), ('store', 'not collected'),
                                         ('record', 'not collected')})
        self.sessions('collect')
        self.assert_both()
        record, = (self.state / 'sessions').glob('*.json')
        text = record.read_text()
        record.write_text('{')
        _, said = self.run_broker('prune', '--older', '0s')
        self.assertNames(said, f'copy | record | {record} | read')
        self.assertEqual((self.one('record')['session'], self.one('record')['state']),
                         (name, 'needed'))
        self.assertNames(self.run_broker('du')[0], f'record | {record} | read')
        record.write_text(text)
        os.rename(self.work, self.dir / 'moved')
        _, said = self.run_broker('prune', '--older', '0s')
        self.assertNames(said, f'copy of {self.work} | gone')
        self.assertTrue(self.one('copy')['isGone'])
        os.rename(self.dir / 'moved', self.work)
        self.run_broker('prune', '--max-size', '1')
        self.assertEqual({entry['kind'] for entry in self.held()}, {'record'})

    def test_what_is_in_a_copy_alone_keeps_it(self):
        runtime = self.session('mkdir -p evil.git/objects evil.git/refs; cd evil.git; '
                               'touch objects/x refs/x config; echo ref: refs/heads/m > HEAD')
        self.assertFalse((self.work / 'evil.git').exists())
        _, said = self.run_broker('prune', '--older', '0s')
        self.assertNames(said, f'copy of {self.work}')
        self.assertTrue((runtime / 'evil.git/HEAD').exists())
        self.assertEqual(self.one('copy')['state'], 'finished')
        shutil.rmtree(runtime / 'evil.git')
        self.run_broker('prune', '--older', '0s')
        self.assertFalse(runtime.exists())

    def test_a_copy_that_is_never_synced_stays(self):
        client, _ = self.opened(sync='none')
        self.ended(client)
        self.run_broker('prune', '--older', '0s', '--max-size', '1')
        self.assertEqual(self.one('copy')['state'], 'not collected')

    def test_a_store_of_checkpoints_alone_goes(self):
        """The agent works in the workspace itself, so no sandbox needs the store."""
        config = self.dir / 'config-copy'
        config.write_text('[profile "copy"]\n\tcheckpoints = true\n')
        client = self.broker(options=['--config', str(config), '--profile', 'copy'])
        client.initialize()
        client.prompt(client.new_session(self.work), 'say x')
        self.ended(client)
        self.assertEqual(self.one('store')['state'], 'finished')
        self.run_broker('prune', '--older', '1h')
        self.assertEqual(self.one('store')['state'], 'finished')
        self.run_broker('prune', '--older', '0s')
        self.assertEqual(self.held(), [])

    def test_a_conflict_keeps_the_store(self):
        (self.work / 'f').write_text('base\n')
        client, session = self.opened()
        client.prompt(session, 'say x')
        (self.work / 'f').write_text('mine\n')
        (self.runtime(client, session) / 'f').write_text('theirs\n')
        client.prompt(session, 'say y')
        self.ended(client)
        self.run_broker('prune', '--older', '0s')
        store = self.one('store')
        self.assertEqual(store['state'], 'needed')
        self.assertNames(store['why'], 'conflicts')
        listed = subprocess.run([case.BROKER, 'conflicts', 'list', '--json'], cwd=self.work,
                                env=self.environment(), stdin=subprocess.DEVNULL,
                                capture_output=True, check=True).stdout
        conflict, = json.loads(listed)['conflicts']
        self.assertEqual(conflict['path'], 'f')
        parked, = (path for path in pathlib.Path(store['path'], 'parked').rglob('*')
                   if path.is_file() and path.read_text() == 'theirs\n')
        parked.write_text('edited\n')
        subprocess.run([case.BROKER, 'conflicts', 'take', 'f', 'local'], cwd=self.work,
                       env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                       check=True)
        self.run_broker('prune', '--older', '0s')
        self.assertEqual(parked.read_text(), 'edited\n')
        parked.unlink()
        shutil.rmtree(pathlib.Path(store['path'], 'parked'))
        self.run_broker('prune', '--older', '0s')
        self.assertEqual(self.held(), [])

    def test_copies_that_are_old_go_by_themselves(self):
        runtime = self.session()
        other = self.dir / 'other'
        other.mkdir()
        (runtime / 'late').write_text('after the end\n')
        client = self.copied(copy_max_age='1d')
        client.new_session(other)
        self.ended(client)
        self.assertTrue(runtime.exists())
        client = self.copied(copy_max_age='1ms')
        session = client.new_session(other)
        made = runtime.parent / '.made'  # the folder itself stays: this agent was started in it
        self.assertTrue(processes.wait_until(lambda: not made.exists(), PATIENCE))
        self.assertEqual((self.work / 'late').read_text(), 'after the end\n')
        own = self.runtime(client, session)
        self.ended(client)
        self.assertTrue(own.exists())
        self.assertFalse(runtime.exists())

    def test_a_store_that_is_too_large_loses_older_checkpoints(self):
        client, session = self.opened(store_max_size=1)
        for number in range(4):
            client.prompt(session, f'terminal echo {number} > f')
        self.ended(client)
        listed = subprocess.run([case.BROKER, 'checkpoints', 'list', '--json'], cwd=self.work,
                                env=self.environment(), stdin=subprocess.DEVNULL,
                                capture_output=True, check=True).stdout
        numbers = [c['checkpoint'] for c in json.loads(listed)['checkpoints']]
        self.assertEqual(numbers, [4, 5])

    def test_what_is_left_of_a_workspace_that_is_gone_comes_into_another_folder(self):
        (self.work / 'deep').mkdir()
        (self.work / 'deep/kept').write_text('kept\n')
        (self.work / 'goes').write_text('by the agent\n')
        runtime = self.left()
        (runtime / 'goes').unlink()
        name = self.the_one()['id']
        self.assertNames(self.sessions('collect', name, '--into', 'new', status=2),
                         f'--into | {self.work} is there')
        self.assertNames(self.sessions('collect', '--into', 'new', status=2), '--into | session')
        moved = self.dir / 'moved'
        os.rename(self.work, moved)
        self.assertNames(self.sessions('collect', name, '--into', 'moved', status=2), 'empty')
        self.assertFalse(self.work.exists())
        self.sessions('collect', name, '--into', 'new')
        self.assertFalse(self.work.exists())
        new = self.dir / 'new'
        self.assertEqual({str(path.relative_to(new)): path.read_text()
                          for path in new.rglob('*') if path.is_file()},
                         {'deep/kept': 'kept\n', 'a-there': 'a there\n'})
        self.assertEqual(self.the_one()['state'], 'stopped')
        os.rename(moved, self.work)

    def test_a_collect_that_fails_leaves_no_workspace(self):
        runtime = self.left()
        name = self.the_one()['id']
        os.rename(self.work, self.dir / 'moved')
        record, = (self.state / 'sessions').glob('*.json')
        record.write_text(record.read_text().replace(str(runtime), str(runtime) + '-other'))
        self.assertNames(self.sessions('collect', name, '--into', 'new', status=1),
                         f'{runtime}-other')
        self.assertFalse(self.work.exists() or (self.dir / 'new').exists())
        os.rename(self.dir / 'moved', self.work)

    def test_mistakes(self):
        self.write_config_for_nothing()
        for words, named in ((('prune', '--older', 'old'), '--older | old'),
                             (('prune', '--max-size', '0'), '--max-size | 0'),
                             (('du', '--dry-run'), '--dry-run | prune')):
            self.assertNames(self.run_broker(*words, status=2)[1], named)


if __name__ == '__main__':
    case.main()
