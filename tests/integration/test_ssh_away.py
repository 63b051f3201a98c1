#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
What happens while a host is out of reach, with `outlives = auto`: the deadlines for things that
happen there stand still, a loss of packets that nobody reports is noticed, and a run that ends
meanwhile ends with the reason. `./dev soak links` has the long interruptions.
"""

import os
import pathlib
import signal
import subprocess
import time
import unittest

import net
import processes

from case import main
from link_case import LinkCase, LinkTurn
from processes import PATIENCE
from ssh_case import SILENT, SshCase
from sshd import Sshd
from together import Together, tests_of

AT_ONCE = 4
AUTO = {'runner': 'auto', 'outlives': 'auto'}


class Away(SshCase):
    """No connection is there, and none can be made, from `lose` to `find`."""

    def config(self, *args, **keys):
        return super().config(*args, **{**AUTO, **keys})

    def fifo(self, name):
        path = self.sshd.home / name
        os.mkfifo(path)
        return path

    def write(self, fifo):
        """Does not wait for a reader: it may have ended, if something went wrong."""
        fd = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, fd)
        os.write(fd, b'word\n')

    def wait(self, condition):
        self.assertTrue(processes.wait_until(condition, PATIENCE), self.client.stderr)

    def begin(self, **keys):
        self.client, self.session = self.opened(**keys)

    def lose(self):
        processes.kill(self.sshd.process.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        self.wait(lambda: 'unreachable, reconnecting' in self.client.stderr)

    def find(self):
        processes.kill(self.sshd.process.pid, signal.SIGCONT)
        self.wait(lambda: 'reconnected after' in self.client.stderr)

    def health(self):
        return self.client.start('_broker/health', {})

    def call_here(self, name):
        return self.client.start(f'_broker/session/{name}', {'sessionId': self.session})

    def is_answered(self, raw_id):
        return any(message.is_response and message.id == raw_id
                   for message in self.client.received)

    def end(self):
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        self.assert_nothing_runs()


class Deadlines(Away):
    """
    A health check has a deadline that does not stand still. Where a test gives it more time than
    another deadline, its answer comes after that deadline has passed.
    """

    def test_a_turn_and_its_commands_get_their_time(self):
        """Both commands end in time there, and nobody learns that before the end of the loss."""
        self.begin(terminal_timeout='4s', idle_timeout='4s', health_timeout='6s')
        begun = [self.sshd.home / f'begun-{number}' for number in range(2)]
        gates = [self.fifo(f'gate-{number}') for number in range(2)]
        lines = [f'echo > {begun[number]}; read word < {gates[number]}; echo said $word'
                 for number in range(2)]
        turn = self.client.start_prompt(self.session, f'terminal {lines[0]}', 'say over')
        command = self.client.start('_broker/exec', {
            'sessionId': self.session, 'command': ['sh', '-c', lines[1]], 'timeoutMs': 4000})
        self.wait(lambda: all(path.exists() for path in begun))
        self.lose()
        check = self.health()
        for gate in gates:
            self.write(gate)
        told = self.client.answer(check)
        self.assertFalse(told['isHealthy'])
        self.assertNames(told['agents'][0]['problem'], 'connection | lost | health-timeout')
        self.assertFalse(self.is_answered(turn) or self.is_answered(command))
        self.find()
        self.assertEqual(self.client.answer(turn)['stopReason'], 'end_turn')
        self.assertTrue([text for text in self.client.texts() if 'said word' in text])
        result = self.client.answer(command)
        self.assertEqual(result['exitCode'], 0, result)
        self.assertIn('said word', result['stdout'])
        self.assertTrue(self.client.answer(self.health())['isHealthy'])
        self.end()

    def test_a_pause_gets_its_time(self):
        self.begin(pause_timeout='2s', health_timeout='4s')
        self.lose()
        pause, check = self.call_here('pause'), self.health()
        self.assertFalse(self.client.answer(check)['isHealthy'])
        self.assertFalse(self.is_answered(pause))
        self.find()
        self.assertTrue(self.client.answer(pause)['paused'])
        self.assertFalse(self.client.answer(self.call_here('resume'))['paused'])
        self.client.prompt(self.session, 'say back')
        self.end()

    def test_setup_lines_get_their_time(self):
        gate, begun = self.fifo('gate'), self.sshd.home / 'begun'
        options = self.config(setup=f'"echo > {begun}; read word < {gate}"', setup_timeout='3s')
        self.client = self.broker(options=options)
        greeted = self.client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})
        self.wait(begun.exists)
        self.lose()
        time.sleep(4)  # there is no event after setup-timeout
        self.find()
        self.write(gate)
        self.client.answer(greeted)
        self.client.prompt(self.client.new_session(self.work), 'say ready')
        self.end()


class DeadlinesByOpenssh(Deadlines):
    ssh_client = 'openssh'


class Gone(LinkCase):
    """The run does not survive the loss."""

    def begin(self, **keys):
        self.client, self.session = self.opened(**keys)
        self.first = self.agents()
        self.begun = self.sshd.home / 'begun'
        self.waiting = self.client.start_prompt(
            self.session, f'terminal echo > {self.begun}; sleep 600')
        self.assertTrue(processes.wait_until(self.begun.exists), self.client.stderr)

    def agents(self):
        """The agents on the host, and their commands."""
        return [pid for pid in self.remote()
                if processes.name_of(pid) in ('scripted-agent', 'sleep')]

    def wait_ended(self):
        self.assertTrue(processes.wait_until(lambda: not self.agents(), PATIENCE), self.agents())

    def check_answer(self, facts):
        """The prompt's answer says why the run has ended."""
        error = self.failure(self.client.response(self.waiting), 'LINK_LOST')
        self.assertNames(error['message'], facts)

    def check_told(self, facts):
        """So does the broker's tool call."""
        self.check_answer(facts)
        shown, = [update for update in self.own_calls('was unreachable')
                  if update.get('status') == 'failed']
        self.assertNames(shown['title'], f'what ran there | lost | {facts}')

    def check_next(self):
        """The next prompt has another agent, and it is the only one."""
        self.client.prompt(self.session, 'say again')
        agent, = self.agents()
        self.assertNotIn(agent, self.first)
        self.client.close_stdin()
        self.assertEqual(self.client.wait(PATIENCE), 0, self.client.stderr)
        self.assert_nothing_runs()


@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Longer(Gone):
    """The interruption is longer than link-grace."""

    def test_the_broker_gives_up_and_the_host_ends_the_run(self):
        self.begin(link_grace='6s', turn_grace='6s')
        self.chain.set_link(0, 'down')
        self.check_told('unreachable | 6000 ms')
        self.wait_ended()
        self.chain.set_link(0, 'up')
        self.check_next()

    def test_the_host_has_ended_the_run_before_the_broker_notices(self):
        """
        The packets get lost, and the broker would wait longer than link-grace for any. It hears of
        the end through the old connection or through another one, whichever comes first.
        """
        self.begin(link_grace='6s', turn_grace='6s', alive_interval='1m', alive_count='5')
        self.lose_both(True)
        self.wait_ended()
        self.lose_both(False)
        self.check_answer('runner | has ended | no byte came')
        self.check_next()

    def test_the_host_has_ended_the_run_before_the_broker_returns(self):
        self.begin(link_grace='20s', orphan_grace='1s')
        processes.kill(self.sshd.process.pid, signal.SIGSTOP)
        self.sshd.kill_connections()
        self.wait_ended()
        processes.kill(self.sshd.process.pid, signal.SIGCONT)
        self.check_told('has ended | no broker | come back')
        self.check_next()

    def lose_both(self, is_lost):
        self.chain.lose_packets(0, 'right', is_lost)
        self.chain.lose_packets(1, 'left', is_lost)


class LongerByOpenssh(Longer):
    ssh_client = 'openssh'


class Machine(Sshd):
    """An sshd that is the first process of its PID namespace. All else there ends with it."""

    def __init__(self, config, network):
        self.network, self.environment = network, processes.marked_environment()
        super().__init__(config, None, self.words())

    def words(self, *more):
        return [*self.network, 'unshare', *more, '--pid', '--fork', '--kill-child=KILL',
                '--mount-proc']

    def crash(self):
        first, = self.connections()  # sshd itself, as the only child of unshare
        processes.kill(first)
        self.process.wait()

    def boot(self):
        """
        Starts it again with an uptime and a boot id of its own, in the same home. It was off for an
        hour.
        """
        then = time.time() - 3600
        for path in self.home.rglob('run.*'):
            os.utime(path, (then, then))
        up_s = int(float(pathlib.Path('/proc/uptime').read_text().split()[0]))
        (self.folder / 'boot').write_text('00000000-1111-2222-3333-444444444444\n')
        script = ('mount --bind passwd /etc/passwd && mount --bind shadow /etc/shadow && '
                  'mount --bind boot /proc/sys/kernel/random/boot_id && '
                  'exec /usr/sbin/sshd -D -e -f "$PWD/sshd_config" < /dev/null >> log 2>&1')
        self.process = subprocess.Popen(
            [*self.words('--time', '--boottime', str(1 - up_s)), 'sh', '-c', script],
            cwd=self.folder, env=self.environment)


def can_boot():
    tried = ['unshare', '--time', '--boottime', '1', '--pid', '--fork', '--mount-proc', 'true']
    return net.can_be_made() and subprocess.run(tried, capture_output=True,
                                                check=False).returncode == 0


@unittest.skipUnless(can_boot(), 'there are no PID and time namespaces')
class Restarted(Gone):
    def make_sshd(self):
        return Machine(f'ListenAddress {self.chain.address(1)}\n{self.sshd_config}',
                       self.chain.inside(1))

    def test_the_host_is_restarted(self):
        self.begin()
        self.sshd.crash()
        self.wait_ended()
        self.sshd.boot()
        self.check_told('host was restarted')
        self.check_next()

    def test_the_host_is_restarted_while_packets_get_lost(self):
        """The broker learns of the loss only after the restart."""
        self.begin()
        self.chain.lose_packets(1, 'left', True)
        self.sshd.crash()
        self.wait_ended()
        self.sshd.boot()
        self.chain.lose_packets(1, 'left', False)
        self.check_told('host was restarted')
        self.check_next()


class RestartedByOpenssh(Restarted):
    ssh_client = 'openssh'


@unittest.skipUnless(net.can_be_made(), 'there are no network namespaces')
class Silent(LinkTurn):
    """Packets get lost, and no kernel reports that. Only the silence shows it."""

    keys = {name.replace('-', '_'): SILENT[name] for name in ('alive-interval', 'alive-count')}

    def test_no_packet_arrives_on_either_side(self):
        self.cut_in('silent', 'updates', 'file', **self.keys)

    def test_only_the_host_still_hears_the_broker(self):
        self.cut_in('unheard', 'output', 'question', **self.keys)


class SilentByOpenssh(Silent):
    ssh_client = 'openssh'


def load_tests(loader, _tests, _pattern):
    return Together(AT_ONCE, tests_of(loader, [
        Longer, LongerByOpenssh, Restarted, RestartedByOpenssh, Silent, SilentByOpenssh,
        Deadlines, DeadlinesByOpenssh]))


if __name__ == '__main__':
    main()
