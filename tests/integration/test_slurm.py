#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
`backend = slurm` with a real Slurm (support/slurm/cluster.py): the queue, sessions in jobs, and the
end of a job, of srun and of the broker. Skips if Slurm or root's rights are missing.
"""

import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import processes

from case import BROKER, ROOT, main
from platform_case import LINK, Instances
from processes import PATIENCE

sys.path.insert(0, str(ROOT / 'tests/support/slurm'))
import cluster  # pylint: disable=import-error,wrong-import-position

SECRET = 'c0ffee-5ecret'


@unittest.skipUnless(cluster.is_there(), 'there is no slurmctld, slurmd, munged or srun')
@unittest.skipUnless(os.geteuid() == 0, 'slurmd needs root')
class Jobs(Instances):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = pathlib.Path(tempfile.mkdtemp(prefix='acp-slurm-'))
        cls.addClassCleanup(shutil.rmtree, cls.cluster, ignore_errors=True)
        daemons = subprocess.Popen(
            ['/usr/bin/python3', '-B', str(ROOT / 'tests/support/slurm/cluster.py'),
             str(cls.cluster)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(daemons.communicate, timeout=PATIENCE)
        if daemons.stdout.readline() != 'ready\n':
            raise RuntimeError('no cluster')

    def setUp(self):
        super().setUp()
        self.there = self.dir / 'there'
        self.state = self.dir / 'home/state/acp-broker'

    def clean_up(self):
        for client in self.clients:
            client.finish()
        self.slurm('scancel', '--me')
        self.wait_for_no_job()
        super().clean_up()

    # ---- the cluster ----

    def environment(self):
        return {**super().environment(), 'SLURM_CONF': str(self.cluster / 'slurm.conf')}

    def slurm(self, *words):
        done = subprocess.run(words, env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def jobs(self):
        """The numbers of the jobs that have not ended."""
        return self.slurm('squeue', '--noheader', '--format=%i').split()

    def wait_for_no_job(self):
        self.assertTrue(processes.wait_until(lambda: not self.jobs()))

    def in_jobs(self):
        """The processes of steps, the runner among them."""
        return [pid for pid in processes.marked(f'HOME={self.cluster}/home')
                if processes.is_running(pid)]

    def running(self):
        return sorted(set(super().running()) | set(self.in_jobs()))

    def folders(self):
        return sorted(path.name for path in (self.there / 'workspaces').glob('*'))

    # ---- the broker ----

    def config(self, deadlines=True, policy=None, backend='slurm', **keys):
        return super().config(deadlines, policy, backend,
                              **{'queue-timeout': '10m', 'runtime-root': self.there, **LINK,
                                 **keys})

    def opened(self, **keys):
        client = self.broker(options=self.config(**keys))
        client.initialize()
        return client, client.new_session(self.work)

    def begin(self, **keys):
        """A broker whose `initialize` is not answered yet."""
        client = self.broker(options=self.config(**keys))
        return client, client.start('initialize', {'protocolVersion': 1, 'clientCapabilities': {}})

    def in_a_prompt(self, **keys):
        client, session = self.opened(**keys)
        waiting = client.start_prompt(
            session, 'terminal echo there > made; (setsid sleep 500 &) ; sleep 600')
        self.assertTrue(processes.wait_until(
            lambda: list((self.there / 'workspaces').glob('*/work/made'))))
        return client, session, waiting

    def sandboxes(self, *words):
        done = subprocess.run([BROKER, 'sandboxes', *words, *self.config()], cwd=self.work,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        return done.stdout

    def listed(self):
        return json.loads(self.sandboxes('list', '--json'))['sandboxes']

    def notes(self):
        return list((self.state / 'slurm').glob('*.json'))


class Sessions(Jobs):
    def test_the_next_session_gets_another_job_and_the_same_folder(self):
        seen = set()
        for turn in ('one', 'two'):
            client, session = self.opened()
            job, = self.jobs()
            seen.add(job)
            client.prompt(session, 'terminal cat kept; echo $SLURM_JOB_ID; echo kept > kept')
            said = client.wait_text('terminal/output ->')
            self.assertIn(f'{"kept" if turn == "two" else "directory"}\\n{job}\\n', said)
            client.prompt(session, f'terminal echo {turn} > made')
            self.end(client)
            self.assertEqual((self.work / 'made').read_text(), f'{turn}\n')
            self.wait_for_no_job()
        self.assertEqual((len(seen), len(self.folders())), (2, 1))
        self.assert_nothing_runs()
        one, = self.listed()
        self.assertEqual(one['state'], 'stopped')
        self.sandboxes('delete', one['name'])
        self.assertEqual(self.notes(), [])

    def test_a_job_of_one_session_leaves_nothing(self):
        (self.work / 'mine').write_text('mine\n')
        client, session = self.opened(persistence='transient')
        self.assertEqual([one['state'] for one in self.listed()], ['running'])
        client.prompt(session, 'terminal cat mine; echo made > made')
        self.assertIn('"output":"mine\\n"', client.wait_text('terminal/output ->'))
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')
        self.wait_for_no_job()
        self.assertEqual((self.folders(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_no_secret_and_no_variable_of_this_machine_is_in_the_job(self):
        env = {**self.environment(), 'THE_KEY': SECRET, 'MINE': 'only-here', 'SLURM_NTASKS': '7'}
        client = self.start(self.broker_argv(
            *self.config(**{'secret-env': 'THE_KEY'}), agent=self.agent_argv()), env=env)
        client.initialize()
        session = client.new_session(self.work)
        client.prompt(session, 'terminal echo "$THE_KEY:$MINE:$USER:$SHELL:$SLURM_NTASKS"')
        user = pwd.getpwuid(os.geteuid())
        said = client.wait_text('terminal/output ->')
        self.assertNotIn('only-here', said)
        self.assertIn(f':{user.pw_name}:{user.pw_shell}:1', said)
        agent, = [pid for pid in self.in_jobs() if processes.name_of(pid) == 'scripted-agent']
        self.assertIn(SECRET.encode(), processes.read_file(f'/proc/{agent}/environ'))
        for pid in processes.descendants(client.pid):
            if processes.name_of(pid) == 'srun':
                for name in ('cmdline', 'environ'):
                    self.assertNotIn(SECRET.encode(), processes.read_file(f'/proc/{pid}/{name}'))
        self.assertNotIn(SECRET, self.slurm('scontrol', 'show', 'job', '--details'))
        for path in [*self.cluster.rglob('*'), *self.state.rglob('*')]:
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(SECRET.encode(), path.read_bytes(), path)
        self.end(client)

    def test_slurm_says_why_it_takes_no_job(self):
        error = self.refused('EXEC_COMMAND_FAILED', partition='nothing')
        self.assertNames(error['message'], 'sbatch | invalid partition')
        self.wait_for_no_job()
        self.assertEqual(self.notes(), [])


class Queue(Jobs):
    def test_a_job_waits_and_the_session_begins_when_it_runs(self):
        client, waiting = self.begin(sbatch=['--hold', '--cpus-per-task=2'])
        client.wait_log('PENDING (JobHeldUser)', PATIENCE)
        self.assertEqual([one['state'] for one in self.listed()], ['waiting'])
        job, = self.jobs()
        self.assertIn('NumCPUs=2', self.slurm('scontrol', 'show', 'job', job))
        self.slurm('scontrol', 'release', job)
        self.assertIn('result', client.response(waiting).value)
        client.prompt(client.new_session(self.work), 'terminal echo made > made')
        self.end(client)
        self.assertEqual((self.work / 'made').read_text(), 'made\n')

    def test_a_job_that_waits_too_long_is_cancelled(self):
        error = self.refused('TIMEOUT_EXCEEDED', partition='down', **{'queue-timeout': '2s'})
        self.assertNames(error['message'], '2000 ms | queue-timeout | PENDING (PartitionDown)')
        self.wait_for_no_job()
        self.assertEqual(self.notes(), [])

    def test_somebody_cancels_a_job_that_waits(self):
        client, waiting = self.begin(partition='down')
        client.wait_log('PENDING', PATIENCE)
        self.slurm('scancel', '--me')
        error = self.failure(client.response(waiting), 'EXEC_NOT_STARTED')
        self.assertNames(error['message'], 'CANCELLED')
        client.finish()
        self.wait_for_no_job()
        self.assertEqual(self.notes(), [])

    def test_the_broker_is_told_twice_to_end_while_the_job_waits(self):
        client, _ = self.begin(partition='down')
        client.wait_log('PENDING', PATIENCE)
        os.kill(client.pid, signal.SIGTERM)  # it would still answer
        client.wait_log('ending', PATIENCE)
        os.kill(client.pid, signal.SIGTERM)
        client.wait()
        self.wait_for_no_job()
        self.assertEqual(self.notes(), [])

    def test_the_broker_is_killed_while_the_job_waits(self):
        client, _ = self.begin(partition='down', persistence='transient')
        client.wait_log('PENDING', PATIENCE)
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        left, = self.jobs()
        client, session = self.opened(persistence='transient')
        client.prompt(session, 'say hello')
        self.assertTrue(processes.wait_until(lambda: left not in self.jobs()))
        self.end(client)
        self.wait_for_no_job()
        self.assertEqual(self.notes(), [])


class Ends(Jobs):
    def test_somebody_cancels_the_job_and_the_session_goes_on_in_another(self):
        client, session, waiting = self.in_a_prompt()
        first, = self.jobs()
        self.slurm('scancel', first)
        error = self.failure(client.response(waiting), 'LINK_LOST')
        self.assertNames(error['message'], f'{first} | CANCELLED')
        client.prompt(session, 'terminal cat made; echo $SLURM_JOB_ID')
        second, = self.jobs()
        self.assertIn(f'"output":"there\\n{second}\\n', client.wait_text('terminal/output ->'))
        self.assertNotEqual(first, second)
        self.end(client)
        self.wait_for_no_job()
        self.assert_nothing_runs()

    def test_the_time_of_the_job_is_over(self):
        client, _, waiting = self.in_a_prompt(time='1')  # a minute is the least
        error = self.failure(client.response(waiting), 'LINK_LOST')
        self.assertNames(error['message'], 'TIMEOUT (TimeLimit)')
        client.finish()

    def test_srun_is_killed_and_what_it_ran_ends(self):
        client, session, waiting = self.in_a_prompt()
        job, = self.jobs()
        before = [pid for pid in self.in_jobs()
                  if not processes.read_file(f'/proc/{pid}/cmdline').startswith(b'sleep\0inf')]
        sruns = [pid for pid in processes.descendants(client.pid)
                 if processes.name_of(pid) == 'srun']
        for pid in sruns:
            if processes.is_running(pid):
                os.kill(pid, signal.SIGKILL)
        self.failure(client.response(waiting), 'LINK_LOST')
        client.prompt(session, 'terminal cat made')
        self.assertIn('"output":"there', client.wait_text('terminal/output ->'))
        self.assertEqual(self.jobs(), [job])
        self.assertTrue(processes.wait_until(
            lambda: not any(processes.is_running(pid) for pid in before)),
                        processes.describe([pid for pid in before if processes.is_running(pid)]))
        self.end(client)
        self.wait_for_no_job()
        self.assert_nothing_runs()

    def test_the_broker_is_killed_and_the_next_one_ends_the_job(self):
        client, _, _ = self.in_a_prompt(persistence='transient')
        left, = self.jobs()
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        self.assertEqual(self.jobs(), [left])
        client = self.broker(options=self.config(persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.assertTrue(processes.wait_until(lambda: left not in self.jobs()))
        self.end(client)
        self.wait_for_no_job()
        self.assertEqual((self.folders(), self.notes()), ([], []))
        self.assert_nothing_runs()

    def test_the_broker_is_killed_when_it_has_submitted_another_job(self):
        """Its note still names the first one."""
        client, session = self.opened()
        client.prompt(session, 'terminal echo there > made')
        first, = self.jobs()
        self.end(client)
        self.wait_for_no_job()
        note, = self.notes()
        self.slurm('sbatch', '--parsable', f'--job-name={note.stem}', '--output=/dev/null',
                   '--wrap=exec sleep infinity')
        second, = self.jobs()
        self.assertEqual(json.loads(note.read_text())['instance'], first)
        client, session = self.opened()
        client.prompt(session, 'terminal cat made; echo $SLURM_JOB_ID')
        self.assertIn(f'"output":"there\\n{second}\\n', client.wait_text('terminal/output ->'))
        self.assertEqual((self.jobs(), json.loads(note.read_text())['instance']),
                         ([second], second))
        self.end(client)
        self.wait_for_no_job()
        self.assert_nothing_runs()

    def test_the_broker_and_the_job_are_killed_and_another_job_brings_the_work(self):
        client, _, _ = self.in_a_prompt(persistence='transient')
        os.kill(client.pid, signal.SIGKILL)
        client.wait()
        self.slurm('scancel', '--me')
        self.wait_for_no_job()
        client = self.broker(options=self.config(persistence='transient'))
        client.initialize()
        client.wait_log('is collected', PATIENCE)
        self.assertEqual((self.work / 'made').read_text(), 'there\n')
        self.end(client)
        self.wait_for_no_job()
        self.assertEqual((self.folders(), self.notes()), ([], []))


if __name__ == '__main__':
    main()
