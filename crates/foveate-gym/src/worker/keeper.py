"""Keeps a worker: ends it and all that it started, and removes what they leave, whichever side is killed.

The keeper is the process that Foveate started; the worker is its child. The keeper runs nothing of the environment, so no
environment can stop it from noticing that Foveate or the worker is gone. It also reads what they print, so that printing
never blocks for long and never takes more memory than the end of it that is kept.

On Linux it adopts processes whose parent ended, also those that left their group or session (PR_SET_CHILD_SUBREAPER), and
it watches which names in /dev/shm they make. Each worker has a folder for temporary files with a record in it that is
locked as long as the keeper lives: "foveate 1", the boot, and a line for each name in shared memory. Whoever gets the lock
knows that the keeper was killed, and may remove what the record names (src/sweep.rs).
"""

import fcntl
import json
import mmap
import os
import select
import shutil
import signal
import stat
import struct
import sys
import time

# Where shared memory has names, and beginnings of those that programs do not remove when they are ended.
SHARED = "/dev/shm"
LEAVERS = ("ViZDoom",)
# The record in a worker's folder.
RECORD = ".foveate"
# Seconds that the environment has to close itself; src/process.rs waits a little longer.
CLOSE_S = 5.0
# How much of what was printed is kept.
TAIL = 16 << 10
# How often it looks at shared memory at once; then, and on average, once in so many seconds.
LOOKS, LOOK_S = 20, 0.25
# Of Linux's prctl.
DIE_WITH_PARENT, ADOPT = 1, 36
# Of Linux's inotify: a file was created, or took this name.
CREATED, NAMED = 0x100, 0x80


def system():
    """The C library on Linux, if it can be had."""
    if sys.platform == "linux":
        try:
            import ctypes

            return ctypes.CDLL(None, use_errno=True)
        except Exception:
            pass
    return None


def keep(control, memory):
    """Returns in the worker; the process that was called stays behind as its keeper. Gives the count of bytes that were
    printed, and where the worker tells the keeper which shared memory it has open."""
    keeper = Keeper(control)
    if keeper.fork():
        return keeper.count, keeper.told
    os.close(memory)
    try:
        keeper.wait()
    finally:
        keeper.end()


class Keeper:
    def __init__(self, control):
        self.control = control
        self.log = os.dup(2)
        self.tail = os.pread(self.log, TAIL, 0)
        self.count = mmap.mmap(-1, 8)
        self.printed = 0
        self.started = time.time()
        self.hung_up = self.over = False
        self.worker, self.status = 0, None
        # Files of shared memory that are the worker's: (device, inode) and name.
        self.ours = {}
        self.watch, self.look_due = None, False
        self.looks, self.looked, self.next_look = LOOKS, 0.0, 0.0
        self.libc = system()
        self.folder, self.record = own_folder()

    def fork(self):
        """True in the worker."""
        wake, self.woken = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.woken, False)
        self.wake = wake
        # The keeper keeps both ends, so that it never reads an end of file.
        self.prints, prints = os.pipe()
        os.set_blocking(self.prints, False)
        self.tells, self.told = os.pipe()
        os.set_blocking(self.tells, False)
        os.set_blocking(self.told, False)
        if self.libc:
            self.libc.prctl(ADOPT, 1, 0, 0, 0)
        signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        keeper = os.getpid()
        self.worker = os.fork()
        if self.worker:
            # Its end is for Foveate to decide; it stays until the worker is gone.
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            self.watch = self.watched()
            self.note()
            return False
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(prints, 1)
        os.dup2(prints, 2)
        for number in (wake, self.woken, self.prints, prints, self.log, self.tells):
            os.close(number)
        if self.record is not None:
            os.close(self.record)
        if self.libc:
            self.libc.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)
        return True

    def watched(self):
        """A descriptor that tells of new names in shared memory."""
        if not (self.libc and os.path.isdir(SHARED)):
            return None
        watch = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if watch < 0:
            return None
        if self.libc.inotify_add_watch(watch, SHARED.encode(), CREATED | NAMED) < 0:
            os.close(watch)
            return None
        return watch

    def wait(self):
        """Until the worker is gone, or is to be ended."""
        events = select.poll()
        control = self.control.fileno()
        events.register(control, 0)  # only that Foveate hung up
        for source in (self.wake, self.prints, self.watch):
            if source is not None:
                events.register(source, select.POLLIN)
        give_up = None
        self.wake_up()
        while not self.over and self.status is None:
            ends = [give_up] if give_up else []
            if self.look_due:
                ends.append(self.next_look)
            timeout = max(0, min(ends) - time.monotonic()) * 1000 + 1 if ends else None
            for source, _ in events.poll(timeout):
                if source == control:
                    self.hung_up = True
                    events.unregister(control)
                    give_up = time.monotonic() + CLOSE_S
                elif source == self.wake:
                    self.wake_up()
                elif source == self.watch:
                    os.read(self.watch, 65536)
                    self.look_due = True
                elif source == self.prints and self.drain() < 4096:
                    # Many short lines are read together.
                    time.sleep(0.005)
            if self.look_due and time.monotonic() >= self.next_look:
                self.look()
            if give_up and time.monotonic() >= give_up:
                return

    def wake_up(self):
        """A signal came: a process ended, or Foveate will not wait."""
        try:
            self.over |= signal.SIGUSR1 in os.read(self.wake, 4096)
        except BlockingIOError:
            pass
        self.reap()

    def reap(self):
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.worker:
                    self.status = status
        except ChildProcessError:
            pass

    def drain(self):
        """Takes some of what was printed."""
        try:
            text = os.read(self.prints, 65536)
        except BlockingIOError:
            return 0
        self.printed += len(text)
        self.count[:] = struct.pack("<Q", self.printed)
        self.add(text)
        return len(text)

    def add(self, text):
        self.tail = (self.tail + text)[-TAIL:]
        os.pwrite(self.log, self.tail, 0)
        os.ftruncate(self.log, len(self.tail))

    def look(self):
        """Looks which names in shared memory are the worker's: those that it, or what it started, has open."""
        now = time.monotonic()
        self.looks = min(LOOKS, self.looks + (now - self.looked) / LOOK_S) - 1
        self.look_due, self.looked = False, now
        self.next_look = now if self.looks >= 1 else now + LOOK_S
        before = dict(self.ours)
        there = shared_files()
        known = set(self.ours) | self.told_files()
        self.ours = {file: there[file] for file in known if file in there}
        new = {file for file in there if file not in self.ours}
        if new:
            for pid in below(os.getpid()):
                for file in new & opened(pid):
                    self.ours[file] = there[file]
        if self.ours != before:
            self.note()

    def told_files(self):
        """What the worker told before it closed its environment."""
        try:
            lines = os.read(self.tells, 65536).splitlines()
            return {tuple(int(number) for number in line.split()) for line in lines}
        except (BlockingIOError, ValueError):
            return set()

    def note(self):
        """Writes the record."""
        if self.record is None:
            return
        lines = ["foveate 1", boot()]
        lines += ["%d %d %s" % (file + (name,)) for file, name in self.ours.items() if name.isprintable()]
        text = "\n".join(lines + [""]).encode("utf-8", "replace")
        try:
            os.pwrite(self.record, text, 0)
            os.ftruncate(self.record, len(text))
        except OSError:
            pass

    def end(self):
        """Ends all that the worker started, removes what they left, and ends."""
        try:
            if self.status is not None:
                # Foveate is told at once; it waits for the rest when it is done with this worker.
                for _ in range(10000):
                    if not self.drain():
                        break
                self.tell()
                self.control.close()
            if os.path.isdir(SHARED):
                self.look()
            if self.libc:
                self.end_all()
            elif self.status is None:
                os.kill(self.worker, signal.SIGKILL)
            if os.path.isdir(SHARED):
                self.remove_shared()
        finally:
            try:
                if self.folder:
                    remove_folder(self.folder)
            finally:
                os.killpg(0, signal.SIGKILL)

    def end_all(self):
        """Ends all processes below this one. Python's resource trackers come last: they remove the names that they know of
        once no one is left who could use them."""
        for patience, spare in ((2.0, is_tracker), (1.0, lambda _: True), (1.0, lambda _: False)):
            give_up = time.monotonic() + patience
            while time.monotonic() < give_up:
                others = below(os.getpid())
                if not others:
                    return
                victims = [pid for pid in others if not spare(pid)]
                if not victims and spare is is_tracker:
                    break
                for pid in victims:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except OSError:
                        pass
                self.drain()
                time.sleep(0.002)
                self.reap()

    def tell(self):
        """Says how the worker ended, if it did so by itself."""
        if self.hung_up or self.over:
            return
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            what = "was ended by signal %d (%s)" % (number, signal.Signals(number).name)
        else:
            what = "left with exit code %d" % os.WEXITSTATUS(self.status)
        start = b"" if self.tail.endswith(b"\n") or not self.tail else b"\n"
        self.add(start + ("foveate: the worker %s\n" % what).encode())

    def remove_shared(self):
        """Removes names in shared memory that are the worker's and that no one has open."""
        there = shared_files()
        left = {file for file in self.ours if file in there}
        left |= {file for file, name in there.items() if name.startswith(LEAVERS) and self.is_new(name)}
        for pid in processes() if left else ():
            left -= opened(pid)
        for file in left:
            try:
                os.unlink(os.path.join(SHARED, there[file]))
            except OSError:
                pass

    def is_new(self, name):
        try:
            return os.stat(os.path.join(SHARED, name)).st_ctime >= self.started - 1
        except OSError:
            return False


def own_folder():
    """The worker's folder for temporary files, which Foveate gave a name, and its record. None where no folder can be made;
    then temporary files go where they always go."""
    folder = os.environ.get("FOVEATE_WORLD")
    if not folder:
        return None, None
    try:
        for _ in range(50):
            record = None
            try:
                try:
                    os.mkdir(folder, 0o700)
                except FileExistsError:
                    pass
                name = os.path.join(folder, RECORD)
                record = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.stat(name).st_ino == os.fstat(record).st_ino:
                    return folder, record
            except (FileNotFoundError, FileExistsError, BlockingIOError):
                pass
            # Another start is sweeping and took it for one that was left.
            if record is not None:
                os.close(record)
            time.sleep(0.01)
    except OSError:
        pass
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ[name] = os.path.dirname(folder)
    return None, None


def remove_folder(folder):
    """Removes the worker's folder, its record last."""

    def again(remove, path, _):
        try:
            os.chmod(os.path.dirname(path), 0o700)
            remove(path)
        except OSError:
            pass

    for _ in range(3):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name == RECORD:
                continue
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, onerror=again)
            else:
                os.unlink(path)
    try:
        os.unlink(os.path.join(folder, RECORD))
        os.rmdir(folder)
    except OSError:
        pass


def boot():
    """Which start of the machine this is: numbers of processes and files mean nothing in another."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def shared_files():
    """What has a name in shared memory and is this user's: (device, inode) and name."""
    found = {}
    try:
        for entry in os.scandir(SHARED):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                found[status.st_dev, status.st_ino] = entry.name
    except OSError:
        pass
    return found


def tell_opened(told):
    """Tells the keeper which shared memory this process has open, since it will not be open when the keeper looks."""
    files = sorted(opened(os.getpid()))[:1000] if os.path.isdir(SHARED) else ()
    try:
        os.write(told, "".join("%d %d\n" % file for file in files).encode())
    except OSError:
        pass


def processes():
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def below(root):
    """The living processes that `root` started, and those that they started."""
    children = {}
    for pid in processes():
        try:
            with open("/proc/%d/stat" % pid, "rb") as file:
                state, parent = file.read().rsplit(b")", 1)[1].split()[:2]
        except (OSError, ValueError):
            continue
        children.setdefault(int(parent), []).append((pid, state))
    found, open_ = [], [root]
    while open_:
        for pid, state in children.get(open_.pop(), ()):
            open_.append(pid)
            if state not in (b"Z", b"X"):
                found.append(pid)
    return found


def opened(pid):
    """The files of shared memory that a process has open or mapped, as far as it may be asked."""
    found = set()
    try:
        with open("/proc/%d/maps" % pid, "rb") as file:
            for line in file:
                if SHARED.encode() in line:
                    device, inode = line.split()[3:5]
                    major, minor = device.split(b":")
                    found.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
        for number in os.listdir("/proc/%d/fd" % pid):
            path = "/proc/%d/fd/%s" % (pid, number)
            if os.readlink(path).startswith(SHARED):
                status = os.stat(path)
                found.add((status.st_dev, status.st_ino))
    except OSError:
        pass
    return found


def is_tracker(pid):
    """Whether it is a process with which Python's multiprocessing removes shared memory and semaphores."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


