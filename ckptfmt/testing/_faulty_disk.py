"""A disk that fails where a test wants it to, and records every call that changes or syncs something."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from ckptfmt.stores._disk import Disk, disk_replaced

Operation = Literal[
    "create",
    "write",
    "sync",
    "sync_directory",
    "link",
    "replace",
    "unlink",
    "make_directory",
    "remove_directory",
    "open_for_reading",
    "status",
]


@dataclass(slots=True)
class Fault:
    """A fault of a :class:`FaultyDisk`: calls of one operation raise OSError.

    Attributes:
        operation: The operation that fails.
        errno: The error number of the OSError.
        path: A shell pattern. Only calls on a path that matches it fail.
        after: The number of matching calls that still succeed before the first failure. It counts down.
        times: The number of calls that still fail; None for all calls. It counts down.
    """

    operation: Operation
    errno: int
    path: str = "*"
    after: int = 0
    times: int | None = 1

    def strikes(self, operation: str, path: str) -> bool:
        """Count one call, and decide whether it fails.

        Args:
            operation: The name of the operation.
            path: The path that the call is about.

        Returns:
            Whether the call fails.
        """
        if operation != self.operation or not fnmatchcase(path, self.path):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


@dataclass(frozen=True, slots=True)
class DiskCall:
    """One call of a :class:`FaultyDisk`.

    Attributes:
        operation: The name of the operation.
        path: The path that the call is about; for ``link`` and ``replace`` the target.
    """

    operation: Operation
    path: str


@dataclass
class FaultyDisk(Disk):
    """The real disk with faults.

    Attributes:
        faults: The faults. Tests may change the list at any time.
        on_call: A function that is called before each call, outside all locks. It may block or raise.
        calls: Every call in order, including those that failed.
    """

    faults: list[Fault] = field(default_factory=list)
    on_call: Callable[[DiskCall], None] | None = None
    calls: list[DiskCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._paths: dict[int, str] = {}
        self._faults_lock = threading.Lock()

    def _call(self, operation: Operation, path: str) -> None:
        call = DiskCall(operation, path)
        if self.on_call is not None:
            self.on_call(call)
        with self._faults_lock:
            self.calls.append(call)
            for fault in self.faults:
                if fault.strikes(operation, path):
                    raise OSError(fault.errno, os.strerror(fault.errno), path)

    def create(self, path: str) -> int:
        self._call("create", path)
        descriptor = super().create(path)
        self._paths[descriptor] = path
        return descriptor

    def write(self, descriptor: int, data: memoryview, offset: int) -> int:
        self._call("write", self._paths[descriptor])
        return super().write(descriptor, data, offset)

    def sync(self, descriptor: int, path: str) -> None:
        self._call("sync_directory" if os.path.isdir(path) else "sync", path)
        super().sync(descriptor, path)

    def link(self, source: str, target: str) -> None:
        self._call("link", target)
        super().link(source, target)

    def replace(self, source: str, target: str) -> None:
        self._call("replace", target)
        super().replace(source, target)

    def unlink(self, path: str) -> None:
        self._call("unlink", path)
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        self._call("make_directory", path)
        super().make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._call("remove_directory", path)
        super().remove_directory(path)

    def status(self, path: str) -> os.stat_result:
        self._call("status", path)
        return super().status(path)

    def open_for_reading(self, path: str) -> int:
        self._call("open_for_reading", path)
        return super().open_for_reading(path)


@contextmanager
def failing_disk(*faults: Fault, on_call: Callable[[DiskCall], None] | None = None) -> Iterator[FaultyDisk]:
    """Make everything that ckptfmt opens or creates within the block use one :class:`FaultyDisk`.

    Args:
        faults: The faults.
        on_call: A function that is called before each call of the disk. It may block or raise.

    Yields:
        The disk.

    Example:
        ::

            with failing_disk(Fault("write", errno.ENOSPC, path="*.tmp")) as disk:
                with pytest.raises(ckptfmt.StoreError):
                    ckptfmt.create_cut(tmp_path / "step-1", "step-1")
            assert disk.calls[-1].operation == "unlink"
    """
    disk = FaultyDisk(list(faults), on_call)
    with disk_replaced(disk):
        yield disk
