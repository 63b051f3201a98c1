# SPDX-License-Identifier: MIT
"""A workspace and its copy, edited on both sides, and a check of the result of the edits."""

import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess

import case
from acp import RpcError
from case import Case

POINTS = case.program('ACP_BROKER_POINTS', 'tests/support/points/acp-broker-points')
HOLE = 0xffffffff  # a piece of a delta that is all zeros
BIG = 70000  # bytes; the limit of big files is the lowest there is
SOURCES = ('base', 'broker', 'providers', 'sync')
POINT = re.compile(r'point\("([^"]+)"\)( \|\||\)| *\?|\s+\?| &&)?')
WRONG = re.compile(r'error|missing|broken|corrupt|bad ', re.I)


def points_in_code():
    """The names of all points in the code, and whether the next call can fail there."""
    found = {}
    for folder in SOURCES:
        for path in sorted((case.ROOT / folder).rglob('*.c')):
            for name, follows in POINT.findall(path.read_text()):
                assert name not in found, f'{name} is in two places'
                found[name] = bool(follows)
    return found


def look(path):
    """What a file is: its kind and its content."""
    if path.is_symlink():
        return 'link', os.readlink(path).encode()
    kind = 'executable' if path.stat().st_mode & 0o100 else 'file'
    return kind, path.read_bytes()


def parked_files(state, version='runtime'):
    """The parked versions in the conflicts of all workspaces."""
    return sorted(state.glob(f'stores/*/parked/*/*/{version}/*'))


def tree(root):
    """The members below a root, and separately the versions that a killed apply has kept."""
    members, parked = {}, {}
    for folder, folders, names in os.walk(root):
        if '.git' in folders:
            folders.remove('.git')
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in names + links:
            path = pathlib.Path(folder, name)
            where = parked if name.endswith('.acp-conflict') else members
            where[str(path.relative_to(root))] = look(path)
    return members, parked


def write(path, text, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(0o755)


def lines(first='first', last='last'):
    return '\n'.join([first, *(f'line {number}' for number in range(12)), last]) + '\n'


def begin(root):
    """Makes the files that both sides have before the edits."""
    for side in 'lr':
        for name in ('change', 'delete', 'move', 'mode'):
            write(root / f'{side}-{name}', f'{root.name} {side} {name}\n')
        write(root / f'{side}-big', f'{root.name} {side} big'.ljust(BIG))
        write(root / f'{side}-folder/sub/one', f'{root.name} {side} one\n')
        (root / f'{side}-link').symlink_to('nowhere')
        write(root / f'{side}-type', f'{root.name} {side} type\n')
    write(root / 'text', lines(root.name))
    write(root / 'conflict', f'{root.name} base\n')


def edit(root, side):
    """Makes one side's edits, one of every kind."""
    label = f'{root.name} {side} edited'
    write(root / f'{side}-change', f'{label} change\n')
    (root / f'{side}-delete').unlink()
    (root / f'{side}-move').rename(root / f'{side}-moved')
    (root / f'{side}-mode').chmod(0o755)
    write(root / f'{side}-big', f'{label} big'.ljust(2 * BIG))
    write(root / f'{side}-big-new', f'{label} big new'.ljust(BIG), executable=True)
    shutil.rmtree(root / f'{side}-folder')
    (root / f'{side}-link').unlink()
    (root / f'{side}-link').symlink_to(f'elsewhere-{side}')
    (root / f'{side}-type').unlink()
    write(root / f'{side}-type/inside', f'{label} inside\n')
    write(root / f'{side}-new/deep/file', f'{label} new\n')
    write(root / 'text', lines(label, 'last') if side == 'l' else lines(root.name, label))
    write(root / 'conflict', f'{label}\n')


def merged(base, local, runtime):
    """The files that both sides must have at the end; conflicts are decided for the local side."""
    result = {}
    for path in {*base, *local, *runtime}:
        was, ours, theirs = base.get(path), local.get(path), runtime.get(path)
        wanted = theirs if ours == was else ours
        if path.endswith('/text') and was != ours != theirs != was:
            text = ours[1].split(b'\n')[:-2] + theirs[1].split(b'\n')[-2:]
            wanted = ('file', b'\n'.join(text))
        if wanted:
            result[path] = wanted
    return result


class Room(Case):
    """A workspace and its copy, used by one broker after the other."""

    transport = 'git'

    def runTest(self):
        """Never run: unittest requires it."""

    def setUp(self):
        super().setUp()
        self.state = self.dir / 'home/state/acp-broker'
        self.log = self.dir / 'points'
        self.number = 0
        self.runtime = None
        self.wrapper = []
        self.path = self.dir / 'config-copy'
        values = dict(case.DEADLINES, isolation='copy', big_file='64k',
                      transport=self.transport)
        self.path.write_text('[profile "copy"]\n' + ''.join(
            f'\t{name.replace("_", "-")} = {value}\n' for name, value in values.items()))

    def broker_argv(self, *options, agent):
        return [*self.wrapper, POINTS, *options, '--', *agent]

    def environment(self, **more):
        return {**super().environment(), **more}

    # ---- sessions ----

    def begin_broker(self, **more):
        options = ['--config', str(self.path), '--profile', 'copy']
        return self.broker(options=options, env=self.environment(**more))

    def open(self, **more):
        """Opens a session; also notes the place of the copy."""
        client = self.begin_broker(**more)
        client.initialize()
        session = client.new_session(self.work)
        found = client.call('_broker/session/status', {'sessionId': session})
        self.runtime = pathlib.Path(found['runtimeRoot'])
        return client, session

    def close(self, client):
        client.close_stdin()
        return client.wait()

    def make(self, count):
        """Makes the workspace: a repository with a history, and `count` folders to edit."""
        for number in range(count):
            begin(self.work / f'g{number}')
        git = ['git', '-C', str(self.work), '-c', 'user.name=A', '-c', 'user.email=a@b']
        for words in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'first']):
            subprocess.run([*git, *words], check=True)

    def make_and_sync(self, count):
        self.make(count)
        client, _ = self.open()
        self.assertEqual(self.close(client), 0, client.stderr)

    def session(self, **more):
        """A whole session with one turn; ends early if the broker ends or refuses."""
        client = self.begin_broker(**more)
        try:
            client.initialize()
            session = client.new_session(self.work)
            client.prompt(session, f'terminal echo {self.number} > turn{self.number}')
        except (AssertionError, RpcError):
            pass
        return client, self.close(client)

    # ---- what happens to them ----

    def edit_nothing(self):
        """For a first session: there is no copy yet."""
        self.base, self.remote = {}, {}
        self.local, _ = tree(self.work)

    def edit(self):
        """Edits the next folder on both sides; remembers the files before and after the edits."""
        folder = f'g{self.number}'
        self.number += 1
        self.base, _ = tree(self.work)
        edit(self.work / folder, 'l')
        edit(self.runtime / folder, 'r')
        self.local, _ = tree(self.work)
        self.remote, _ = tree(self.runtime)

    def check(self):
        """Checks, with a new broker, that every file is where it has to be."""
        self.assert_nothing_runs()
        turn = f'turn{self.number}'
        for root, side in ((self.work, self.local), (self.runtime, self.remote)):
            if root and (root / turn).exists():
                side[turn] = look(root / turn)
        client, _ = self.open()
        wanted = merged(self.base, self.local, self.remote)
        here, _ = tree(self.work)
        there, _ = tree(self.runtime)
        self.assert_same(here, wanted, 'the workspace')
        self.assert_same(there, wanted, 'the copy')
        self.check_parked()
        self.assertEqual(self.close(client), 0, client.stderr)
        self.assertEqual(tree(self.work)[0], wanted)
        self.check_store()
        self.check_litter()

    def assert_same(self, found, wanted, what):
        wrong = {path: (found.get(path), wanted.get(path)) for path in {*found, *wanted}
                 if found.get(path) != wanted.get(path)}
        self.assertFalse(wrong, f'{what} (is, should be): {str(wrong)[:2000]}')

    def check_parked(self):
        """Checks that each conflict is parked once, with the version that was not taken."""
        wanted = [('conflict', f'g{number} r edited\n') for number in range(self.number)]
        found = [(path.name, path.read_text()) for path in parked_files(self.state)]
        self.assertEqual(sorted(found), sorted(wanted))

    def check_store(self):
        store, = (self.state / 'stores').iterdir()
        git = ['git', f'--git-dir={store}']
        fsck = subprocess.run([*git, 'fsck', '--full', '--no-dangling'], text=True,
                              capture_output=True, check=False)
        self.assertEqual((fsck.returncode, WRONG.findall(fsck.stdout + fsck.stderr)), (0, []),
                         fsck.stdout + fsck.stderr)
        names = subprocess.run([*git, 'rev-list', '--objects', '--all'], capture_output=True,
                               check=True).stdout
        kept = {line.split()[0].decode() for line in names.splitlines()}
        for content in big_contents(store):
            kept.add(blob_id(content)[:-1])
        lost = [path for side in (self.base, self.local, self.remote)
                for path, (_, content) in side.items()
                if not path.endswith('/text') and not {
                    blob_id(content), blob_id(content)[:-1]} & kept]
        self.assertEqual(lost, [], 'versions that nobody has')

    def check_litter(self):
        litter = [str(path) for root in (self.work, self.runtime, self.state)
                  for pattern in ('.acp-broker-*', '*.new') for path in root.rglob(pattern)]
        self.assertEqual(litter, [])


def big_contents(store):
    """
    The contents of big files in the store: whole ones, and deltas put together from their parts
    (sync/store_impl.h).
    """
    parts = {}
    for path in (store / 'big').glob('*/*'):
        parts[path.parent.name + path.name] = path.read_bytes()
    yield from parts.values()
    for path in (store / 'delta').glob('*/*'):
        raw = path.read_bytes()
        part_count, piece_count, _, size = struct.unpack_from('=IIIQ', raw, 12)
        at = 32
        ids = [raw[at + 20 * i:at + 20 * (i + 1)].hex() for i in range(part_count)]
        content = b''
        for piece in struct.iter_unpack('=QQQII', raw[at + 20 * part_count:]):
            _, length, start, part, _ = piece
            content += (bytes(length) if part == HOLE else
                        parts[ids[part]][start:start + length])
        if (len(content), raw[:8]) != (size, b'acpdelta') or piece_count > 16384:
            raise AssertionError(f'{path} is no delta')
        yield content


def blob_id(content):
    return hashlib.sha1(b'blob %d\0' % len(content) + content).hexdigest()
