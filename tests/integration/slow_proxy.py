# SPDX-License-Identifier: MIT
"""A TCP proxy on 127.0.0.1 that delays, stalls, cuts and counts the bytes that pass through it."""

import collections
import selectors
import socket
import struct
import threading
import time

PIECE = 65536
HELD_MAX = 8 * 1024 * 1024  # bytes under way in each direction; then the sender has to wait


class Direction:
    """
    The bytes under way from one socket to the other, each piece with the time at which it is due.
    """

    def __init__(self, proxy, source, target, name):
        self.proxy, self.source, self.target, self.name = proxy, source, target, name
        self.pieces = collections.deque()
        self.held = 0
        self.at_end = self.is_over = False

    def wants_read(self):
        return not self.at_end and self.held < HELD_MAX and not self.proxy.is_stalled

    def due(self):
        """Seconds until the next piece is due; None if nothing is under way."""
        if self.is_over or self.proxy.is_stalled or not self.pieces:
            return None
        return max(0.0, self.pieces[0][0] - time.monotonic())

    def read(self):
        data = self.source.recv(PIECE)
        self.pieces.append((time.monotonic() + self.proxy.delay, memoryview(data)))
        self.held += len(data)
        self.at_end = not data

    def write(self):
        when, data = self.pieces.popleft()
        if not data:
            self.is_over = True
            self.target.shutdown(socket.SHUT_WR)
            return
        allowed = data[:self.proxy.allowance(self.name)]
        sent = self.target.send(allowed)
        self.held -= sent
        if sent < len(data):
            self.pieces.appendleft((when, data[sent:]))
        self.proxy.count(self.name, sent)


class SlowProxy:
    """
    For `with`: listens on `port`, and connects each client to `target_port`.

    `delay` is in seconds, each way. All settings can be changed while it runs.
    """

    def __init__(self, target_port, delay=0.0):
        self.target_port, self.delay = target_port, delay
        self.is_stalled = False  # moves no bytes and closes nothing
        self.refuses = False     # closes each new connection at once
        self.cut_after = None    # cuts all connections after this many bytes
        self.cut_name = None     # counts only bytes in this direction; None: in both
        self.sent = {'up': 0, 'down': 0}  # bytes that it has passed on
        self.accepted = 0
        self.cuts = 0            # how often cut_after has cut
        self.pairs = []
        self.dropped = []        # pairs that stay open, but move no bytes any more
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.wake_in, self.wake_out = socket.socketpair()
        self.orders = collections.deque()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self._order('stop')
        self.thread.join(10)

    # ---- called by the test's thread ----

    def _order(self, order):
        self.orders.append(order)
        self.wake_out.send(b'x')

    def stall(self, on=True):
        self.is_stalled = on
        self._order('look')

    def drop(self):
        """
        Lets nothing more through the present connections, nor reports their end; new ones work.
        """
        self._order('drop')

    def cut(self):
        """Resets every connection; accepts new ones."""
        self._order('cut')

    def total(self):
        return sum(self.sent.values())

    # ---- called by the proxy's own thread ----

    def left(self, name):
        """The bytes until the cut; None: none is due, or not in this direction."""
        return self.cut_after if self.cut_name in (None, name) else None

    def allowance(self, name):
        left = self.left(name)
        return PIECE if left is None else min(PIECE, left)

    def count(self, name, sent):
        self.sent[name] += sent
        left = self.left(name)
        if left is not None:
            self.cut_after = left - sent if left > sent else None
            if left <= sent:
                self.cuts += 1
                self._cut_all()

    def _accept(self):
        near, _ = self.listener.accept()
        self.accepted += 1
        if self.refuses:
            near.close()
            return
        try:
            far = socket.create_connection(('127.0.0.1', self.target_port), 10)
        except OSError:
            near.close()
            return
        for one in (near, far):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pairs.append((Direction(self, near, far, 'up'), Direction(self, far, near, 'down')))

    def _drop(self, pair):
        if pair in self.pairs:
            self.pairs.remove(pair)
            for direction in pair:
                # Closes it with a reset, like a lost connection, unless both sides have ended it.
                if not direction.is_over:
                    direction.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                struct.pack('ii', 1, 0))
            for direction in pair:
                direction.source.close()

    def _cut_all(self):
        for pair in list(self.pairs):
            self._drop(pair)

    def _obey(self):
        self.wake_in.recv(PIECE)
        while self.orders:
            order = self.orders.popleft()
            if order == 'cut':
                self._cut_all()
            elif order == 'drop':
                self.dropped += self.pairs
                self.pairs = []
            elif order == 'stop':
                return False
        return True

    def _wait(self):
        """
        Waits for a ready socket, but only until the next piece is due. Returns pairs of a socket
        and what it is ready for.
        """
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ)
        selector.register(self.wake_in, selectors.EVENT_READ)
        wanted, soonest = {}, None
        for direction in (one for pair in self.pairs for one in pair):
            if direction.wants_read():
                wanted[direction.source] = wanted.get(direction.source, 0) | selectors.EVENT_READ
            due = direction.due()
            if due == 0:
                wanted[direction.target] = wanted.get(direction.target, 0) | selectors.EVENT_WRITE
            elif due is not None:
                soonest = due if soonest is None else min(due, soonest)
        for one, events in wanted.items():
            selector.register(one, events)
        ready = [(key.fileobj, events) for key, events in selector.select(soonest)]
        selector.close()
        return ready

    def _turn(self, pair, ready):
        try:
            for direction in pair:
                if ready.get(direction.source, 0) & selectors.EVENT_READ:
                    direction.read()
                if ready.get(direction.target, 0) & selectors.EVENT_WRITE:
                    direction.write()
        except BlockingIOError:
            pass
        except OSError:
            self._drop(pair)
        if all(direction.is_over for direction in pair):
            self._drop(pair)

    def _run(self):
        while True:
            ready = dict(self._wait())
            if self.wake_in in ready and not self._obey():
                break
            if self.listener in ready:
                self._accept()
            for pair in list(self.pairs):
                self._turn(pair, ready)
        self.pairs += self.dropped
        self._cut_all()
        for one in (self.listener, self.wake_in, self.wake_out):
            one.close()
