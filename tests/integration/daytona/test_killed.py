#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
A broker is killed at each stage of a Daytona sandbox's life (base/point.h), and another one comes
after it: no edit is lost, and no sandbox is left that nobody knows of.
"""

import concurrent.futures
import pathlib
import sys
import threading

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1])]

from acp import RpcError  # noqa: E402
from case import main, program  # noqa: E402
from processes import PATIENCE  # noqa: E402
from room import Room  # noqa: E402
import processes  # noqa: E402

POINTS = program('ACP_BROKER_POINTS', 'tests/support/points/acp-broker-points')

# The stages, in the order of a session's life.
STAGES = ('daytona.noting', 'daytona.creating', 'daytona.created', 'daytona.token',
          'daytona.connected', 'keeper.saved', 'keeper.synced', 'keeper.ending', 'daytona.ending',
          'daytona.ended', 'keeper.ended')
FEW = ('daytona.created', 'daytona.connected', 'daytona.ending', 'daytona.ended')


class Cell(Room):
    """One sandbox service, one workspace, one broker that is killed and one that is not."""

    def __init__(self):
        super().__init__('try_kill')

    def try_kill(self, stage, persistence):
        options = self.config(persistence=persistence)
        env = {**self.environment(), 'ACP_POINT': f'{stage}:1:kill'}
        first = self.start([POINTS, *options, '--', *self.agent_argv()], env=env)
        prompted = False
        try:
            first.initialize(seconds=PATIENCE)
            session = self.open_session(first)
            self.prompt(first, session, 'terminal echo there > there')
            prompted = True
        except (RpcError, AssertionError):
            pass
        (self.work / 'here').write_text('here\n')
        first.close_stdin()
        self.assertEqual(first.wait(PATIENCE), -9, f'{stage}: it was not killed {first.stderr}')
        second = self.greeted(persistence=persistence)
        self.open_session(second)
        self.assertTrue(processes.wait_until(lambda: self.is_settled(persistence), PATIENCE),
                        self.story(stage, second))
        self.end(second)
        wanted = {'here': 'here\n', **({'there': 'there\n'} if prompted else {})}
        self.assertEqual(self.tree(), wanted, self.story(stage, second))
        self.assertEqual({one['state'] for one in self.records()}, {'stopped'})
        states = [] if persistence == 'transient' else [
            ['stopped'] if persistence == 'reuse' else ['archiving', 'archived']]
        boxes = self.boxes()
        self.assertEqual(len(boxes), len(states), self.story(stage, second))
        for box, allowed in zip(boxes, states):
            self.assertIn(box['state'], allowed, self.story(stage, second))
        self.assertEqual(len(self.notes()), len(states))
        if persistence == 'transient':
            left = [path.name for path in (self.state / 'daytona').iterdir()]
            self.assertEqual(left, ['known_hosts'])

    def is_settled(self, persistence):
        """
        Whether everything that the first broker left is collected, and its transient sandbox is
        gone.
        """
        states = [one['state'] for one in self.records()]
        if len(self.notes()) != 1:
            return False
        own = ('known_hosts', self.notes()[0])
        files = [path.name for path in (self.state / 'daytona').iterdir()]
        return (all(name.startswith(own) for name in files) and states.count('active') <= 1
                and all(state in ('stopped', 'active', 'starting') for state in states)
                and len(self.boxes()) == 1)

    def story(self, stage, client):
        return f'{stage}: {[b["state"] for b in self.boxes()]} {self.records()}\n{client.stderr}'


class Killed(Room):
    def setUp(self):
        """Each cell sets up its own room."""

    def run_cells(self, cells):
        failures = []
        lock = threading.Lock()

        def run(cell):
            case = Cell()
            try:
                case.setUp()
                case.try_kill(*cell)
            except Exception as error:  # pylint: disable=broad-except
                with lock:
                    failures.append(f'{cell}: {error}')
            finally:
                case.doCleanups()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(run, cells))
        self.assertEqual(failures, [], '\n'.join(failures))

    def test_of_a_transient_one(self):
        self.run_cells([(stage, 'transient') for stage in STAGES])

    def test_of_one_that_is_kept(self):
        self.run_cells([(stage, 'reuse') for stage in STAGES]
                       + [(stage, 'archive') for stage in FEW])


if __name__ == '__main__':
    main()
