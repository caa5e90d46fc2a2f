"""Training on a Ray cluster.

The rollouts of a run go to workers on Ray's nodes, one for each of their cores, in batches; weights travel once per piece of work. A
batch's answer depends on nothing but the batch, so it may be computed anywhere, more than once, and again after a worker or a node was
lost: the run has the bits of a run on one machine. Nodes may join and leave while it runs.

Every node needs the same build of ``foveate``. Needs Ray: ``pip install "foveate[ray]"``.
"""

from __future__ import annotations

import os
import secrets
import shutil
import statistics
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

try:
    import ray
except ImportError as error:
    raise ImportError('a cluster needs Ray: pip install "foveate[ray]"') from error

from . import jobs
from ._native import RolloutWorker

__all__ = ["RayCluster", "train"]

#: Batches that a worker holds: one to run, one to go on with at once.
_DEPTH = 2
#: Seconds between looks at the cluster's size.
_LOOK = 2.0
#: Seconds that one `RayCluster.wait` may take.
_PATIENCE = 0.2
#: Failures of workers in a row, without one answer, after which the cluster counts as unusable.
_HOPELESS = 50


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Rollouts:
    """A worker on a node of the cluster."""

    def __init__(self, setup: bytes) -> None:
        self._worker = RolloutWorker(setup)

    def run(self, weights: bytes, batch: bytes) -> bytes:
        """Answers a batch."""
        return self._worker.run(weights, batch)


@dataclass(eq=False)
class _Worker:
    actor: Any
    #: Batches that it was given and did not answer.
    calls: set[Any] = field(default_factory=set)


@dataclass(frozen=True)
class _Call:
    worker: _Worker
    work: int
    batch: int
    since: float


_TOKEN = "RAY_AUTH_TOKEN"
_LOOPBACK = "127.0.0.1"


@contextmanager
def _loopback() -> Iterator[None]:
    """Lets `ray.init` take 127.0.0.1 as the address of this machine, which Ray does by itself only where it has no clusters (macOS)."""
    constants = getattr(ray._private, "ray_constants", None)
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    if before is None:
        yield
        return
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _set_token(token: str | None) -> None:
    """The token of Ray's processes that are started from now on, and of this one; `None` removes it."""
    if token is None:
        os.environ.pop(_TOKEN, None)
    else:
        os.environ[_TOKEN] = token
    # This process may remember another one.
    loader = getattr(ray._raylet, "AuthenticationTokenLoader", None)
    if loader is not None:
        loader.instance().reset_cache()


class RayCluster:
    """The workers of a Ray cluster, for ``cluster=`` of `foveate.train` and `foveate.resume`, and for ``--cluster`` of the command.

    Args:
        address: ``"local"`` starts Ray on this machine; ``"auto"``, ``"HOST:PORT"`` or ``"ray://HOST:PORT"`` are those of `ray.init`.
            If the program has called `ray.init` before, that cluster is used.
        workers: how many workers at most; by default one for each core of the cluster.
        timeout: seconds after which a batch without an answer is given to a new worker, and the old one ended. By default no batch is
            taken away, but once no others are left, idle workers run the slowest ones, too, and the first answer counts.
        options: further arguments of `ray.init`.

    With ``"local"`` Ray's dashboard and its reports of use stay off. Its processes listen on 127.0.0.1 alone and answer only who has
    their token, which is made for this cluster and stands in no file, unless ``RAY_AUTH_TOKEN``, ``RAY_AUTH_TOKEN_PATH`` or
    ``RAY_AUTH_MODE`` say otherwise. Their files lie in a folder that only the user can enter; `close` removes it.
    """

    def __init__(self, address: str = "local", *, workers: int | None = None, timeout: float | None = None, **options: Any) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"{workers} workers; choose 1 or more")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"a timeout of {timeout} seconds; choose more than 0")
        self._most = workers
        self._timeout = timeout
        self._ours = not ray.is_initialized()
        #: Whether the token was made here, and the folder that was.
        self._token = False
        self._folder: str | None = None
        if self._ours:
            if address == "local":
                # Ray would report its use to its makers.
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                # Ray lets its workers wait behind every other program (niceness 15); on one machine that starves the run.
                os.environ.setdefault("RAY_worker_niceness", "0")
                # Workers may be more than cores: who asks for them gets them.
                options.setdefault("num_cpus", workers or len(os.sched_getaffinity(0)))
                options.setdefault("include_dashboard", False)
                options.setdefault("dashboard_host", _LOOPBACK)
                options.setdefault("_node_ip_address", _LOOPBACK)
                if "_temp_dir" not in options:
                    # Below /tmp as Ray's own: names of sockets must be short.
                    self._folder = tempfile.mkdtemp(prefix="foveate-ray-", dir="/tmp" if os.path.isdir("/tmp") else None)
                    # Ray opens its own folder to everybody.
                    options["_temp_dir"] = os.path.join(self._folder, "r")
                self._token = not any(os.environ.get(name) for name in (_TOKEN, "RAY_AUTH_TOKEN_PATH"))
                if self._token:
                    _set_token(secrets.token_hex(32))
            options.setdefault("log_to_driver", False)
            options.setdefault("logging_level", "warning")
            try:
                if options.get("_node_ip_address") == _LOOPBACK:
                    with _loopback():
                        ray.init(address=address, **options)
                    if ray.util.get_node_ip_address() != _LOOPBACK:
                        warnings.warn(f"Ray {ray.__version__} listens on all interfaces of this machine; docs/cluster.md was written for 2.60", stacklevel=2)
                else:
                    ray.init(address=address, **options)
            except BaseException:
                self._clean()
                raise
        self._setup = b""
        self._staff: list[_Worker] = []
        self._looked = float("-inf")
        self._work = 0
        self._weights: Any = None
        self._batches: list[bytes] = []
        self._queue: deque[int] = deque()
        self._calls: dict[Any, _Call] = {}
        self._copies: dict[int, int] = {}
        self._answered: set[int] = set()
        self._answers: deque[tuple[int, bytes]] = deque()
        self._seconds: deque[float] = deque(maxlen=64)
        self._failures = 0

    # What a run calls: see the trait `Cluster` of foveate-run.

    def open(self, setup: bytes) -> None:
        """Sends workers to all cores; returns when the first of them is ready."""
        self._dismiss(list(self._staff))
        self._setup = setup
        until = time.monotonic() + (self._timeout or 120.0)
        while True:
            self._look()
            ready, _ = ray.wait([worker.actor.__ray_ready__.remote() for worker in self._staff], timeout=5.0) if self._staff else ([], [])
            for ref in ready:
                try:
                    ray.get(ref)
                    return
                except ray.exceptions.RayError as error:
                    raise RuntimeError(_sentence(error)) from None
            if time.monotonic() > until:
                raise RuntimeError(f"no worker was ready after {self._timeout or 120.0:.0f} seconds; has the cluster free cores, and foveate on its nodes?")

    def workers(self) -> int:
        """How many there are now."""
        self._look()
        return max(len(self._staff), 1)

    def begin(self, weights: bytes, batches: list[bytes]) -> None:
        """Begins a piece of work."""
        self._work += 1
        self._weights = ray.put(weights)
        self._batches = batches
        self._queue = deque(range(len(batches)))
        self._copies = {}
        self._answered = set()
        self._answers.clear()
        self._assign()

    def wait(self) -> tuple[int, bytes] | None:
        """An answer, or `None` after a fraction of a second."""
        if not self._answers:
            self._look()
            self._assign()
            self._collect()
        return self._answers.popleft() if self._answers else None

    def cancel(self) -> None:
        """Drops the work in progress."""
        self._work += 1
        self._queue.clear()

    def close(self) -> None:
        """Ends the workers, and Ray if it was started here."""
        # Workers without a handle end by themselves; Ray would report those that are ended with work in hand.
        self._staff, self._calls = [], {}
        if self._ours and ray.is_initialized():
            ray.shutdown()
        self._clean()

    def _clean(self) -> None:
        """Removes the token and the folder that were made here."""
        if self._token:
            self._token = False
            _set_token(None)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # The workers.

    def _look(self) -> None:
        """Hires for cores that joined, and dismisses whose cores left."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if self._timeout is not None:
            late = {call.worker for call in self._calls.values() if now - call.since > self._timeout}
            self._dismiss(list(late))
        cores = int(ray.cluster_resources().get("CPU", 0))
        wanted = cores if self._most is None else min(cores, self._most)
        if wanted < len(self._staff):
            # Who answers least has lost its node.
            waits = {worker: min((self._calls[ref].since for ref in worker.calls), default=now) for worker in self._staff}
            self._dismiss(sorted(self._staff, key=lambda worker: waits[worker])[: len(self._staff) - wanted])
        self._staff += [_Worker(Rollouts.remote(self._setup)) for _ in range(wanted - len(self._staff))]

    def _dismiss(self, workers: list[_Worker]) -> None:
        for worker in workers:
            self._staff.remove(worker)
            for ref in worker.calls:
                call = self._calls.pop(ref)
                self._give_back(call)
            ray.kill(worker.actor)

    def _give_back(self, call: _Call) -> None:
        """Puts the batch of a lost call first in the queue."""
        if call.work == self._work and call.batch not in self._answered:
            self._copies[call.batch] -= 1
            if self._copies[call.batch] == 0:
                self._queue.appendleft(call.batch)

    # Their work.

    def _assign(self) -> None:
        """Gives batches to workers that have room for them."""
        for depth in range(1, _DEPTH + 1):
            for worker in self._staff:
                if len(worker.calls) < depth and self._queue:
                    self._call(worker, self._queue.popleft())
        idle = [] if self._queue else [worker for worker in self._staff if not worker.calls]
        if idle:
            for worker, batch in zip(idle, self._slow(), strict=False):
                self._call(worker, batch)

    def _slow(self) -> list[int]:
        """The batches that have been out for so long that another worker may have them, too; the longest first."""
        if not self._seconds:
            return []
        until = time.monotonic() - max(1.0, 2.0 * statistics.median(self._seconds))
        out = [call for call in self._calls.values() if call.work == self._work and self._copies[call.batch] == 1]
        return [call.batch for call in sorted(out, key=lambda call: call.since) if call.since < until]

    def _call(self, worker: _Worker, batch: int) -> None:
        ref = worker.actor.run.remote(self._weights, self._batches[batch])
        worker.calls.add(ref)
        self._copies[batch] = self._copies.get(batch, 0) + 1
        self._calls[ref] = _Call(worker, self._work, batch, time.monotonic())

    def _collect(self) -> None:
        """Takes what is answered."""
        if not self._calls:
            time.sleep(_PATIENCE)
            return
        ready, others = ray.wait(list(self._calls), timeout=_PATIENCE)
        if ready and others:
            ready += ray.wait(others, num_returns=len(others), timeout=0)[0]
        for ref in ready:
            call = self._calls.pop(ref, None)
            if call is None:
                continue
            call.worker.calls.discard(ref)
            try:
                answer = ray.get(ref)
            except ray.exceptions.RayTaskError as error:
                # The worker itself says that it cannot: so would any other.
                raise RuntimeError(_sentence(error)) from None
            except ray.exceptions.RayError as error:
                self._failures += 1
                if self._failures > _HOPELESS:
                    raise RuntimeError(_sentence(error)) from None
                self._give_back(call)
                if isinstance(error, ray.exceptions.RayActorError) and call.worker in self._staff:
                    # It will not come back; another one is hired at the next look.
                    self._dismiss([call.worker])
                continue
            self._failures = 0
            if call.work == self._work and call.batch not in self._answered:
                self._seconds.append(time.monotonic() - call.since)
                self._answered.add(call.batch)
                self._answers.append((call.batch, answer))


def _sentence(error: Exception) -> str:
    """The last line of what Ray reports: that of the worker's own exception."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return str(cause)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def train(world: str, *, address: str = "local", workers: int | None = None, timeout: float | None = None, **options: Any) -> jobs.Run:
    """Trains with the rollouts on a Ray cluster: `foveate.train` with a `RayCluster`, which is closed at the end."""
    with RayCluster(address, workers=workers, timeout=timeout) as cluster:
        return jobs.train(world, cluster=cluster, **options)
