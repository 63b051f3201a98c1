# SPDX-License-Identifier: MIT
"""
Turns on a host whose connection is cut while they run. Broker and host are in network namespaces of
their own, with one link between them. A turn must show the same as without a cut.
"""

import os
import re
import signal
import threading

import net
import processes

from processes import PATIENCE
from ssh_case import SshCase
from ssh_scene import Gates
from sshd import Sshd

# After this time a silent connection counts as lost, unless the broker notices the change of the
# network before.
SILENCE = {'alive-interval': '5s', 'alive-count': '2', 'connect-timeout': '10s'}
OUTLIVES = {'runner': 'auto', 'outlives': 'auto', 'orphan-grace': '10m', 'link-grace': '10m'}

# Ids that are random or counted, so that a comparison ignores them.
MINTED = re.compile(r'"(?:id|toolCallId|terminalId)": ?[^,}]*|term-\d+')


class Watched:
    """What the user of `client` sees."""

    def own_calls(self, word):
        """The updates of the broker's own tool calls that have this word in the title."""
        updates = [message.params['update'] for message in self.client.received
                   if message.method == 'session/update']
        return [update for update in updates
                if str(update.get('toolCallId', '')).startswith('acp-broker-')
                and word in str(update.get('title', ''))]

    def losses(self):
        return self.client.stderr.count('unreachable, reconnecting')

    def returns(self):
        return self.client.stderr.count('reconnected after')

    def transcript(self, after):
        """
        What the editor has got since a place in `received`, in order: what the agent said, its tool
        calls, its requests, and the answers. For updates of a tool call it has only their states.
        """
        shown, calls = [], {}
        for message in self.client.received[after:]:
            update = (message.params or {}).get('update', {}) if message.method else {}
            call = str(update.get('toolCallId', ''))
            if call.startswith('acp-broker-') or update.get('sessionUpdate') == 'usage_update':
                continue
            if update.get('sessionUpdate') == 'tool_call_update':
                if 'status' in update:  # other updates only bring a terminal's output
                    shown[calls[call]] += f' then {update["status"]}'
                continue
            calls.setdefault(call, len(shown))
            shown.append(MINTED.sub('*', message.line.decode()))
        return shown

    def wait_lost(self, count):
        lost = processes.wait_until(lambda: self.losses() >= count, PATIENCE)
        self.assertTrue(lost, f'loss {count} was not noticed: {self.client.stderr}')

    def wait_back(self, count):
        back = processes.wait_until(lambda: self.returns() >= count, PATIENCE)
        self.assertTrue(back, f'the connection is not back, {count}: {self.client.stderr}')


class LinkCase(Watched, Gates, SshCase):
    """The broker is in the first namespace, the host in the second."""

    ssh_client = 'libssh2'

    def setUp(self):
        self.chain = net.Chain(2)
        self.addCleanup(self.chain.__exit__)
        self.chain.__enter__()
        self.addresses = 1  # number of addresses that the broker's machine has had so far
        super().setUp()
        self.make_gates()

    def make_sshd(self):
        return Sshd(f'ListenAddress {self.chain.address(1)}\n{self.sshd_config}', None,
                    self.chain.inside(1))

    def ssh_keys(self):
        path = self.dir / 'ssh_config'
        path.write_text(self.sshd.alias('box', f'HostKeyAlias [127.0.0.1]:{self.sshd.port}')
                        .replace('HostName 127.0.0.1', f'HostName {self.chain.address(1)}'))
        return {**super().ssh_keys(), 'ssh-config': str(path), **OUTLIVES, **SILENCE}

    def config(self, *args, **keys):
        return super().config(*args, **{**OUTLIVES, **SILENCE, **keys})

    def broker_argv(self, *options, agent):
        return [*self.chain.inside(0), *super().broker_argv(*options, agent=agent)]

    # ---- cuts ----

    def cut_child(self, number):
        """Kills sshd's processes for the connection."""
        self.sshd.kill_connections()

    def cut_link(self, number):
        """Takes the link down until the broker notices the loss."""
        self.chain.set_link(0, 'down')
        self.wait_lost(number)
        self.chain.set_link(0, 'up')

    def cut_address(self, number):
        """Gives the broker's machine another address; no packet reaches the old one."""
        self.addresses += 1
        last, now = (f'10.77.0.{100 + count}/24' if count > 1 else
                     f'{self.chain.address(0, "right")}/24'
                     for count in (self.addresses - 1, self.addresses))
        self.chain.ip(0, 'address', 'del', last, 'dev', 'right')
        self.chain.ip(0, 'address', 'add', now, 'dev', 'right')

    def cut_stopped(self, number):
        """Stops the broker, cuts its connection meanwhile, and lets it go on."""
        os.kill(self.client.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        os.kill(self.client.pid, signal.SIGCONT)

    def lose_silently(self, ends, number):
        """
        Loses every packet that leaves these ends of the link, until the broker notices by itself.
        """
        for end in ends:
            self.chain.lose_packets(*end, True)
        self.wait_lost(number)
        for end in ends:
            self.chain.lose_packets(*end, False)

    def cut_silent(self, number):
        self.lose_silently([(0, 'right'), (1, 'left')], number)

    def cut_unheard(self, number):
        """The host hears the broker, and the broker does not hear the host."""
        self.lose_silently([(1, 'left')], number)

    CUTS = {'child': cut_child, 'link': cut_link, 'address': cut_address, 'stopped': cut_stopped,
            'silent': cut_silent, 'unheard': cut_unheard}

    def cut(self, kind):
        """Cuts the connection, and waits until the broker has made another one."""
        number = self.returns() + 1
        self.CUTS[kind](self, number)
        self.wait_back(number)


STAGES = ('sync', 'updates', 'output', 'file', 'question', 'collect')


class LinkTurn(LinkCase):
    """One long turn that has everything that a connection carries."""

    updates, update_size = 3000, 1000
    file_bytes = 6 << 20
    lines_of_terminal = 400000

    def begin(self, **keys):
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.client, self.session = self.opened(**keys)
        self.client.host.replies['session/request_permission'] = self.permit
        self.root = self.runtime(self.client, self.session)
        self.begun = self.sshd.home / 'begun'  # not a file of the workspace
        (self.root / 'big').write_text('0123456789abcde\n' * (self.file_bytes // 16))
        self.turns = 0

    def permit(self, params):
        self.may_answer.wait(PATIENCE)
        return {'outcome': {'outcome': 'selected', 'optionId': params['options'][0]['optionId']}}

    def lines(self):
        return ['pid', f'stream {self.updates} {self.update_size}',
                f'terminal echo > {self.begun}; seq {self.lines_of_terminal}',
                f'read {self.root}/big', 'permission May it?',
                f'write {self.root}/theirs turn', 'pid', 'say over']

    def start_turn(self):
        """Starts the turn; returns the place in `received` at which it begins, and its request."""
        self.turns += 1
        (self.work / 'mine').write_text(f'{self.turns}\n' * 1000)
        (self.work / 'theirs').unlink(missing_ok=True)
        self.begun.unlink(missing_ok=True)
        return len(self.client.received), self.client.start_prompt(self.session, *self.lines())

    def end_turn(self, place, waiting):
        """Waits for the end of the turn, checks the files, and returns the transcript."""
        self.assertEqual(self.client.answer(waiting)['stopReason'], 'end_turn')
        self.assertEqual((self.work / 'theirs').read_text(), 'turn')
        self.assertEqual((self.root / 'mine').read_text(), f'{self.turns}\n' * 1000)
        return self.transcript(place)

    def check_same(self, transcript, reference):
        for number, (line, expected) in enumerate(zip(transcript, reference)):
            self.assertEqual(line[:2000], expected[:2000], f'line {number}')
            self.assertTrue(line == expected, f'line {number} differs behind its beginning')
        self.assertEqual(len(transcript), len(reference))

    # ---- a turn that is cut ----

    def wait(self, condition):
        self.assertTrue(processes.wait_until(condition, PATIENCE), self.client.stderr)

    def shown(self, place, word):
        return [message for message in self.client.received[place:]
                if message.method and word in message.line]

    def stages(self):
        """
        A turn, which stops in each of its stages; yields their names. Then checks that the editor
        got the same as in `reference`, a turn without a cut.
        """
        reference = self.end_turn(*self.start_turn())
        self.may_answer.clear()
        self.shut('sync')
        place, waiting = self.start_turn()
        self.wait_reached('sync')
        yield 'sync'
        self.open_gates()
        self.wait(lambda: len(self.shown(place, b'agent_message_chunk')) > self.updates // 3)
        yield 'updates'
        self.wait(self.begun.exists)
        yield 'output'
        self.wait(lambda: self.shown(place, b'Read a file'))
        yield 'file'
        self.wait(lambda: self.shown(place, b'session/request_permission'))
        yield 'question'
        self.shut('collect')
        self.may_answer.set()
        self.wait_reached('collect')
        yield 'collect'
        self.open_gates()
        self.check_same(self.end_turn(place, waiting), reference)

    def cut_in(self, kind, *stages, **keys):
        """Cuts the turn in these stages, and checks what the user sees of that."""
        self.begin(**keys)
        for stage in self.stages():
            if stage in stages:
                self.cut(kind)
        self.assertEqual((self.losses(), self.returns()), (len(stages), len(stages)))
        begun = [update for update in self.own_calls('unreachable, ')
                 if update['sessionUpdate'] == 'tool_call']
        ended = self.own_calls('reconnected')
        self.assertEqual([(update['toolCallId'], update['status']) for update in ended],
                         [(update['toolCallId'], 'completed') for update in begun])
        self.assertEqual(len(begun), len(stages))
        self.end()

    def end(self):
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        self.assert_nothing_runs()
