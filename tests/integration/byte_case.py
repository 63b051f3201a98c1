# SPDX-License-Identifier: MIT
"""
A small exchange on a host, through a proxy that cuts the connection after a given number of its
bytes. The editor must get the same as without a cut.
"""

from link_case import OUTLIVES, Watched
from processes import PATIENCE
from slow_proxy import SlowProxy
from ssh_case import SshCase

# A shorter packet of SSH does not exist (16 bytes and a code of 32). The receiver drops a packet
# that was cut, so a cut after each 32nd byte comes once in every packet.
PACKET_BYTES = 32


class ByteCase(Watched, SshCase):
    ssh_client = 'libssh2'

    def setUp(self):
        super().setUp()
        self.proxy = SlowProxy(self.sshd.port)
        self.proxy.__enter__()

    def clean_up(self):
        self.proxy.cut_after = None
        super().clean_up()
        self.proxy.__exit__()

    def ssh_keys(self):
        path = self.dir / 'ssh_config'
        path.write_text(self.sshd.alias('box', port=self.proxy.port))
        return {**super().ssh_keys(), 'ssh-config': str(path)}

    def begin(self):
        self.client, self.session = self.opened(**{**OUTLIVES, 'sync': 'none'})
        root = self.runtime(self.client, self.session)
        (root / 'small').write_text('0123456789abcde\n' * 8)
        self.lines = ['pid', 'say one', f'read {root}/small', 'permission May it?',
                      'terminal echo two; echo three >&2; exit 3', f'write {root}/theirs turn',
                      'stream 3 100', 'pid', 'say over']

    def exchange(self):
        """One turn; returns its transcript."""
        place = len(self.client.received)
        self.client.prompt(self.session, *self.lines)
        return self.transcript(place)

    def measure(self):
        """The bytes of a turn without a cut, in each direction."""
        before = dict(self.proxy.sent)
        self.reference = self.exchange()
        return {name: sent - before[name] for name, sent in self.proxy.sent.items()}

    def cut_after(self, name, count):
        """One turn. The cut comes after so many of its bytes, unless it has fewer today."""
        self.proxy.cut_name, self.proxy.cut_after = name, count
        self.assertEqual(self.exchange(), self.reference, f'{name} {count}')
        self.proxy.cut_after = None
        self.wait_lost(self.proxy.cuts)
        self.wait_back(self.proxy.cuts)

    def cut_each(self, step, part=0, parts=1):
        """Cuts after each `step`th byte of a turn, in each direction; one part of these cuts."""
        self.begin()
        self.exchange()  # the first turn has more
        sizes = self.measure()
        self.assertGreater(sum(sizes.values()), 4096)
        places = [(name, count) for name, size in sizes.items()
                  for count in range(1, size, step)][part::parts]
        for name, count in places:
            self.cut_after(name, count)
        self.assertGreater(self.proxy.cuts, len(places) * 3 // 4)
        self.assertEqual(self.client.stderr.count('agent 2'), 0)
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        self.assert_nothing_runs()
