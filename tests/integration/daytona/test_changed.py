#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A profile that has changed since its sandbox was made."""

import json
import pathlib
import sys

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from acp import RpcError  # noqa: E402
from case import main  # noqa: E402
from processes import PATIENCE  # noqa: E402
from room import Room  # noqa: E402

SETTERS = ('autostop', 'autoarchive', 'autodelete', 'public', 'network-settings')


class Changed(Room):
    def warnings(self, **keys):
        client = self.broker(options=self.config(**keys))
        told = client.initialize(seconds=PATIENCE)['_meta']['broker']['warnings']
        self.end(client)
        return told

    def set_calls(self):
        counts = self.daytona.counts()
        return [counts.get(name, 0) for name in SETTERS]

    def settings(self):
        box = self.box()
        return (box['autoStopInterval'], box['autoArchiveInterval'], box['autoDeleteInterval'],
                box['public'])

    def test_what_can_be_changed_is_changed_once_and_back(self):
        self.assertEqual(self.warnings(), [])
        made = self.settings()
        self.assertEqual(self.set_calls(), [0] * 5)
        for _ in range(2):
            changed = {'auto-stop': '7m', 'auto-archive': '2h', 'auto-delete': '3h',
                       'public-ingress': 'true', 'network': 'blocked'}
            self.assertEqual(self.warnings(**changed), [])
            self.assertEqual(self.settings(), (7, 120, 180, True))
            self.assertEqual(self.set_calls(), [1] * 5)
        self.assertEqual(self.warnings(), [])
        self.assertEqual(self.settings(), (made[0], 120, made[2], made[3]))
        self.assertEqual(self.daytona.counts()['create'], 1)

    def test_an_interval_that_cannot_be_set_is_a_warning(self):
        self.assertEqual(self.warnings(), [])
        self.daytona.fault('autostop', status=400, message='not in this plan', times=9)
        told, = self.warnings(**{'auto-stop': '7m'})
        self.assertNames(told, 'auto-stop')
        self.assertIn('not in this plan', told)

    def test_who_may_reach_it_is_as_the_profile_says_or_nothing_runs(self):
        self.assertEqual(self.warnings(**{'public-ingress': 'true'}), [])
        self.daytona.fault('public', status=403, message='not yours', times=9)
        client = self.broker(options=self.config(**{'public-ingress': 'false'}))
        with self.assertRaises(RpcError) as caught:
            client.initialize(seconds=PATIENCE)
        self.assertEqual(caught.exception.data['code'], 'DAYTONA_UNAUTHORIZED')
        self.assertNames(str(caught.exception), 'public-ingress | differs')
        client.close_stdin()
        client.wait(PATIENCE)

    def network(self):
        box = self.box()
        return box['networkBlockAll'], box.get('networkAllowList'), box.get('domainAllowList')

    def test_a_list_of_hosts_is_withdrawn_and_a_tier_that_overrides_it_is_told(self):
        allowed = {'network': 'allow', 'allow-host': 'example.com'}
        self.assertEqual(self.warnings(**allowed), [])
        self.assertEqual(self.network(), (False, None, 'example.com'))
        self.assertEqual(self.warnings(**{'required': 'true'}), [])
        self.assertEqual(self.network(), (False, None, None))
        self.daytona.settings(tierNetwork={})
        told, = self.warnings(**allowed)
        self.assertNames(told, 'network = open | example.com | 400')
        error = self.start_error(**allowed, required='true')
        self.assertEqual(error.data['code'], 'NETWORK_NOT_ENFORCED')

    def test_a_ttl_is_in_force_or_a_warning_and_sizes_are_listed(self):
        self.assertEqual(self.warnings(ttl='8h'), [])
        self.assertEqual(self.box()['ttlMinutes'], 480)
        listed, = json.loads(self.command('sandboxes', 'list', '--json').stdout)['sandboxes']
        self.assertEqual([listed[name] for name in ('cpu', 'memoryGib', 'diskGib')], [1, 1, 3])
        self.assertIn(' 1/1/3 ', self.command('sandboxes', 'list').stdout)
        self.daytona.vanish(self.box()['id'])
        self.daytona.settings(hasTtl=False)
        told, = self.warnings(ttl='8h')
        self.assertNames(told, 'ttl | 404')

    def test_what_it_was_made_of_is_told(self):
        self.assertEqual(self.warnings(image='node:20', cpu=2), [])
        self.assertEqual(self.warnings(image='node:20', cpu=2), [])
        told = self.warnings(image='node:22', cpu=4)
        self.assertEqual(len(told), 2, told)
        self.assertIn('image = node:22', told[0])
        self.assertIn('made with node:20', told[0])
        self.assertIn('cpu = 4', told[1])


if __name__ == '__main__':
    main()
