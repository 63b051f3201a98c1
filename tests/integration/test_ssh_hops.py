#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A host behind two others (ProxyJump). Each is in a network namespace of its own, where only its
neighbours reach it; or on loopback, if the test may not make namespaces.
"""

import time

import net
import processes

from case import main
from ssh_case import SILENT, SshCase
from ssh_scene import Gates
from sshd import Sshd
from together import Together

AT_ONCE = 6
NAMES = ('first', 'second', 'box')


class Hops(SshCase):
    """The two hosts on the way, on loopback; the host itself is the case's."""

    def setUp(self):
        self.hops = [self.make_sshd(number) for number in (1, 2)]
        for hop in self.hops:
            self.addCleanup(hop.stop)
            hop.__enter__()
        super().setUp()

    def make_sshd(self, number=3):
        return Sshd()

    def address(self, number):
        return '127.0.0.1'

    def entry(self, number, sshd):
        jump = {0: [], 1: ['ProxyJump first'], 2: ['ProxyJump first,second']}[number]
        text = sshd.alias(NAMES[number], f'HostKeyAlias [127.0.0.1]:{sshd.port}', *jump)
        return text.replace('HostName 127.0.0.1', f'HostName {self.address(number + 1)}')

    def ssh_keys(self):
        path = self.dir / 'ssh_config'
        path.write_text(''.join(self.entry(number, sshd)
                                for number, sshd in enumerate([*self.hops, self.sshd])))
        return {**super().ssh_keys(), 'ssh-config': str(path), 'outlives': 'never'}

    def check_session(self, client, session):
        root = self.runtime(client, session)
        (self.work / 'mine').write_text('mine\n')
        client.prompt(session, 'terminal cat mine; echo there > theirs', f'read {root}/mine')
        self.assertIn('mine', client.wait_text('terminal/output ->'))
        self.assertEqual((self.work / 'theirs').read_text(), 'there\n')

    def end(self, client):
        client.close_stdin()
        self.assertEqual(client.wait(), 0, client.stderr)

    def test_a_session_through_two_hops(self):
        client, session = self.opened()
        self.check_session(client, session)
        for hop in self.hops:
            self.assertEqual(len(hop.connections()), 1)
            self.assertIn('Accepted publickey', hop.log())
        self.end(client)
        for sshd in [*self.hops, self.sshd]:
            gone = processes.wait_until(lambda sshd=sshd: not sshd.connections())
            self.assertTrue(gone, processes.describe(sshd.connections()))

    def test_a_hop_that_does_not_know_us_is_named(self):
        (self.hops[1].folder / 'authorized_keys').write_text('')
        client = self.broker(options=self.config())
        error = self.failure(client.response(client.start('initialize', {'protocolVersion': 1})),
                             'AUTH_FAILED')
        if self.ssh_client == 'libssh2':  # the ssh program names no address
            self.assertNames(error['message'], 'to box | '
                             f'{self.address(2)} port {self.hops[1].port}')

    def test_a_hop_that_is_not_the_known_one_is_refused(self):
        key = ' '.join((self.hops[0].folder / 'host_ecdsa.pub').read_text().split()[:2])
        (self.hops[1].folder / 'known_hosts').write_text(f'[127.0.0.1]:{self.hops[1].port} {key}\n')
        client = self.broker(options=self.config())
        self.failure(client.response(client.start('initialize', {'protocolVersion': 1})),
                     'HOST_KEY_MISMATCH')
        self.assertNotIn('Accepted', self.hops[1].log())

    def lose(self, client, session, cut):
        """
        Cuts the connection during a prompt. The next session collects the edits that were left.
        """
        root = self.runtime(client, session)
        waiting = client.start_prompt(session, 'say here', 'hang')
        client.wait_text('here')
        (root / 'late').write_text('late\n')
        cut()
        error = self.failure(client.response(waiting), 'LINK_LOST')
        self.assertIn('box', error['message'])
        client.close_stdin()
        client.wait()

    def recover(self):
        self.assert_nothing_runs()
        client, session = self.opened()
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.check_session(client, session)
        self.end(client)

    def test_a_hop_that_is_killed_in_mid_session(self):
        client, session = self.opened()
        self.lose(client, session, self.hops[1].kill_connections)
        self.recover()


class HopsByOpenssh(Hops):
    ssh_client = 'openssh'


class Namespaces(Gates, Hops):
    """
    The broker is in the first namespace; from each namespace, only its neighbours can be reached.
    """

    def setUp(self):
        self.chain = net.Chain(4)
        self.addCleanup(self.chain.__exit__)
        self.chain.__enter__()
        super().setUp()
        self.make_gates()

    def make_sshd(self, number=3):
        return Sshd(f'ListenAddress {self.chain.address(number)}\n', None, self.inside(number))

    def inside(self, number):
        return self.chain.inside(number)

    def address(self, number):
        return self.chain.address(number)

    def broker_argv(self, *options, agent):
        return [*self.inside(0), *super().broker_argv(*options, agent=agent)]

    def test_the_link_behind_the_first_hop_goes_down_in_mid_session(self):
        client, session = self.opened(**SILENT)
        self.lose(client, session, lambda: self.chain.set_link(1, 'down'))
        self.chain.set_link(1, 'up')
        self.recover()

    def fall_out(self, client):
        """Takes the link down until the broker notices, and up again; nobody reconnects yet."""
        self.chain.set_link(1, 'down')
        client.wait_log('box | was lost')
        self.chain.set_link(1, 'up')
        self.open_gates()

    def test_the_link_goes_down_while_nobody_asks_for_anything(self):
        client, session = self.opened(**SILENT)
        (self.runtime(client, session) / 'late').write_text('late\n')
        self.fall_out(client)
        self.end(client)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.assert_nothing_runs()

    def test_the_link_goes_down_while_the_workspace_is_brought_there(self):
        (self.work / 'first').write_text('first\n')
        client = self.broker(options=self.config(**SILENT))
        client.initialize()
        self.shut('sync')
        waiting = client.start('session/new', {'cwd': str(self.work), 'mcpServers': []})
        self.wait_reached('sync')
        self.fall_out(client)
        self.failure(client.response(waiting), 'LINK_LOST')
        session = client.new_session(self.work)
        self.assertEqual((self.runtime(client, session) / 'first').read_text(), 'first\n')
        self.check_session(client, session)
        self.end(client)
        self.assert_nothing_runs()

    def test_the_link_goes_down_while_it_is_collected(self):
        client, session = self.opened(**SILENT)
        (self.runtime(client, session) / 'late').write_text('late\n')
        self.shut('collect')
        client.close_stdin()
        self.wait_reached('collect')
        self.fall_out(client)
        self.end(client)
        self.assertEqual((self.work / 'late').read_text(), 'late\n')
        self.assert_nothing_runs()

    def test_a_link_that_is_down_for_less_than_the_grace_loses_nothing(self):
        client, session = self.opened()
        waiting = client.start_prompt(session, 'say here', 'sleep 500', 'stream 3000 300',
                                      'sleep 1500', 'say done')
        client.wait_text('here')
        self.chain.set_link(2, 'down')
        time.sleep(2)
        self.chain.set_link(2, 'up')
        self.assertEqual(client.answer(waiting), {'stopReason': 'end_turn'})
        texts = client.texts(session)
        self.assertEqual([int(text[:8]) for text in texts[1:-1]], list(range(3000)))
        self.assertEqual(texts[-1], 'done')
        self.end(client)


class NamespacesByOpenssh(Namespaces):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    classes = [Namespaces, NamespacesByOpenssh] if net.can_be_made() else [Hops, HopsByOpenssh]
    return Together(AT_ONCE, (test for one in classes
                              for test in loader.loadTestsFromTestCase(one)))


if __name__ == '__main__':
    main()
