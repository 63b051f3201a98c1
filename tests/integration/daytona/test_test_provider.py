# SPDX-License-Identifier: MIT
"""acp-broker test-provider on Daytona's stand-in: its one sandbox is deleted at the end."""

import json
import socket
import subprocess

import room  # first: it adds the folders of the others
import case
import processes


class TestProvider(room.Room):
    def trial(self, status=0, **keys):
        done = subprocess.run([case.BROKER, *self.config(**keys), 'test-provider', '--json'],
                              cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=3 * processes.PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return {check['name']: check for check in json.loads(done.stdout)['checks']}

    def test_all_of_it_goes_well_and_nothing_stays(self):
        with socket.create_server(('127.0.0.1', 0)) as listening, \
                socket.create_server(('127.0.0.1', 0)) as closed:
            allowed, refused = (f'127.0.0.1:{one.getsockname()[1]}' for one in (listening, closed))
            closed.close()
            checks = self.trial(**{'network': 'allow', 'allow-cidr': '127.0.0.1/32'},
                                probe_allowed=allowed, probe_refused=refused)
        self.assertEqual({n: c['why'] for n, c in checks.items() if c['outcome'] != 'ok'}, {})
        self.assertNames(checks['network']['note'], f'{refused} | {allowed}')
        self.assertNames(checks['outlives']['note'], 'no, because | outlives = never')
        self.assertEqual(self.boxes(), [])
        self.assertEqual(len(self.daytona.sandboxes(gone=True)), 1)
        self.assertEqual(self.notes(), [])
        self.assertEqual(list(self.dir.glob('acp-broker-trial-*')), [])

    def test_a_process_goes_on_over_the_next_connection(self):
        outlives = self.trial(**{'outlives': 'auto', 'link-grace': '10m'})['outlives']
        self.assertEqual((outlives['outcome'], outlives['note']), ('ok', 'link-grace = 600s'))
        self.assertEqual(self.boxes(), [])

    def doctor(self, *agent, status=0, made=1, **keys):
        """
        Returns the steps by name, and checks that none of the sandboxes that doctor made stays.
        """
        argv = [case.BROKER, *self.config(**keys), 'doctor', '--json', '--', *agent]
        done = subprocess.run(argv, cwd=self.work, env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=3 * processes.PATIENCE)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        self.assertEqual((self.boxes(), self.notes(), self.records()), ([], [], []))
        self.assertEqual(len(self.daytona.sandboxes(gone=True)), made)
        self.assertEqual(list(self.dir.glob('acp-broker-*')), [])
        return {step['step']: step for step in json.loads(done.stdout)['findings']}

    def test_doctor_has_a_session_in_the_sandbox_of_its_checks(self):
        self.doctor(*self.agent_argv(), persistence='reuse')
        self.assertEqual(len(self.daytona.calls('stop')), 1)  # as a session does at its end

    def test_doctor_has_a_session_in_a_transient_sandbox(self):
        self.doctor(*self.agent_argv(), persistence='transient', made=2)

    def test_a_session_that_fails_leaves_no_sandbox_of_the_checks(self):
        steps = self.doctor('no-such-agent', status=1, persistence='reuse')
        self.assertEqual(steps['agent']['code'], 'AGENT_NOT_FOUND')

    def test_a_start_that_fails_is_said(self):
        self.daytona.fail_create('no more room on the runner')
        checks = self.trial(status=1)
        self.assertEqual(checks['prepare']['outcome'], 'failed')
        self.assertIn('no more room', checks['prepare']['why'])


if __name__ == '__main__':
    case.main()
