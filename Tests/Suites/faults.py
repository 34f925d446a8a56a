"""faults.py PROGRAMS ROUNDS [SEED]: kills owner, client and drivers at random times under load.

PROGRAMS is the directory with prefsfs, prefsd and prefs-probe. There are one store, two mounts and
a client that starts prefsd when it needs to, in a temporary directory. In each round writers count
up keys of their own, through each mount and through the client, and note each value when it was
acknowledged; meanwhile some of the processes are killed with SIGKILL. In every tenth round that is
the whole of a mount, guard and driver; the next round mounts it again. Otherwise a mount goes on
with another driver, and no writer may see an error. Then every key must have the value that was
acknowledged last, or the one that was under way, and every list on the disk must parse."""
import ctypes, os, plistlib, random, shutil, signal, subprocess, sys, tempfile, threading, time

programs, rounds = os.path.realpath(sys.argv[1]), int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
print("seed", seed, flush=True)
rng = random.Random(seed)
root = tempfile.mkdtemp(prefix="prefsfs-faults-")
environment = dict(os.environ)
for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"),
                        ("XDG_RUNTIME_DIR", "run"), ("PREFSFS_SYSTEM_DIR", "system")]:
    os.makedirs(f"{root}/{directory}", mode=0o700)
    environment[name] = f"{root}/{directory}"
environment["PREFSFS_PREFSD"] = f"{programs}/prefsd"
mounts, drivers = [f"{root}/m1", f"{root}/m2"], [None, None]
for point in mounts:
    os.mkdir(point)


def mounted(point):
    with open("/proc/self/mountinfo") as table:
        return f" {point} " in table.read()


def start(number):
    point = mounts[number]
    if drivers[number] is not None:
        drivers[number].wait()
        subprocess.run(["fusermount3", "-u", "-z", point], stderr=subprocess.DEVNULL)
    drivers[number] = subprocess.Popen(
        [f"{programs}/prefsfs", point, "-f"], env=environment, stderr=open(f"{root}/log", "a"))
    end = time.time() + 10
    while not mounted(point):
        if time.time() > end or drivers[number].poll() is not None:
            sys.exit(f"seed {seed}: {point} could not be mounted\n" + open(f"{root}/log").read()[-2000:])
        time.sleep(0.005)


class MountWriter(threading.Thread):
    """Counts up a key through a mount until it fails or the time is over."""

    def __init__(self, number, first, seconds):
        super().__init__()
        self.number, self.value, self.acknowledged, self.error = number, first, first, None
        self.end = time.time() + seconds

    def run(self):
        try:
            while time.time() < self.end:
                self.value += 1
                fd = os.open(f"{mounts[self.number]}/d/W{self.number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                try:
                    os.write(fd, b"%d\n" % self.value)
                finally:
                    os.close(fd)
                self.acknowledged = self.value
        except OSError as error:
            self.error = error


class Churner(threading.Thread):
    """Makes, renames and removes files in a mount, in a process of its own. Several of them wait
    for the lock of one directory when the driver is killed."""

    code = """
import os, random, sys, time
point, end = sys.argv[1], time.time() + float(sys.argv[2])
while time.time() < end:
    name = f"{point}/d/C{random.randrange(3)}"
    try:
        random.choice([
            lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)), lambda: os.unlink(name),
            lambda: os.rename(name, name + "x"), lambda: os.listdir(point + "/d")])()
    except OSError as error:
        if error.errno not in (1, 2, 17):
            break
"""

    def __init__(self, number, seconds):
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.code, mounts[number], str(seconds)], stderr=subprocess.DEVNULL)

    def run(self):
        self.process.wait()


class Probe(threading.Thread):
    """Counts up a key through a client of the store, prefs-probe."""

    def __init__(self, seconds):
        super().__init__()
        self.process = subprocess.Popen(
            [f"{programs}/prefs-probe", "count", "d", "P", str(seconds)], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.acknowledged = 0

    def run(self):
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self.acknowledged = int(line)
        self.process.wait()


def owner():
    try:
        for directory in os.listdir(f"{root}/state/prefsfs"):
            return int(open(f"{root}/state/prefsfs/{directory}/lock").read())
    except (OSError, ValueError):
        return None


def driver(index):
    """The process that serves a mount: the guard's child."""
    guardian = drivers[index].pid
    try:
        children = open(f"/proc/{guardian}/task/{guardian}/children").read().split()
    except OSError:
        return None
    return int(children[-1]) if children else None


def kill_mount(index):
    """Kills guard and driver. A guard that is stopped starts no successor. Then it ends the
    connection as an administrator does with umount -f: nobody is left who could, and the dead
    driver may have a thread in the kernel that keeps the connection."""
    os.kill(drivers[index].pid, signal.SIGSTOP)
    for pid in [driver(index), drivers[index].pid]:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    drivers[index].wait()
    # Not by a child process, which would wait for the mount when it closes files.
    ctypes.CDLL(None).umount2(mounts[index].encode(), 1)


def is_ours(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe").startswith(programs)
    except OSError:
        return False


def get(key):
    outcome = subprocess.run([f"{programs}/prefs-probe", "get", "d", key], env=environment,
                             capture_output=True, text=True, timeout=30)
    if outcome.returncode != 0:
        fail(f"{key} cannot be read: {outcome.stderr}")
    return outcome.stdout.strip()


def fail(text):
    print(open(f"{root}/log").read()[-3000:])
    sys.exit(f"seed {seed}, round {number}: {text}")


def check(key, acknowledged, last):
    text = get(key)
    if acknowledged == 0 and text in ("", "(none)"):
        return 0  # the key was made and not written to, or not even made
    if text not in (str(acknowledged), str(last)):
        fail(f"{key} is {text}; {acknowledged} was acknowledged, {last} begun")
    return int(text)


values, kills, owners = [0, 0], 0, {}
try:
    for number in range(rounds):
        for index in (0, 1):
            if drivers[index] is None or drivers[index].poll() is not None:
                start(index)
            os.makedirs(f"{mounts[index]}/d", exist_ok=True)
        seconds = rng.uniform(0.03, 0.15)
        writers = [MountWriter(index, values[index], seconds) for index in (0, 1)]
        probe = Probe(seconds)
        churners = [Churner(index, seconds + 0.1) for index in (0, 1) for _ in range(2)]
        for one in writers + [probe] + churners:
            one.start()
        time.sleep(rng.uniform(0, seconds))
        pid = owner()
        who = (driver(0) == pid, driver(1) == pid)
        owners[who] = owners.get(who, 0) + 1
        victims = rng.sample(["owner", "one", "other", "client", "all"], rng.randrange(1, 3))
        pids = {"owner": [pid], "one": [driver(0)], "other": [driver(1)], "client": [probe.process.pid]}
        pids["all"] = sum(pids.values(), [])
        for victim in dict.fromkeys(sum((pids[name] for name in victims), [])):
            if victim is not None and is_ours(victim):
                os.kill(victim, signal.SIGKILL)
                kills += 1
        whole = rng.randrange(2) if number % 10 == 9 else None
        if whole is not None:
            kill_mount(whole)
        for one in writers + [probe] + churners:
            one.join(30)
            if one.is_alive():
                fail(f"a writer hangs: {victims}, drivers {[d.poll() for d in drivers]}, owner {pid} now {owner()}, {type(one).__name__} {vars(one).get('number')}")
        for index, one in enumerate(writers):
            if one.error is not None and index != whole:
                fail(f"mount {index}: {one.error}")
            values[index] = check(f"W{index}", one.acknowledged, one.value) if one.value else 0
        if probe.acknowledged:
            check("P", probe.acknowledged, probe.acknowledged + 1)
        for name in os.listdir(f"{root}/config"):
            if name.endswith(".plist"):
                plistlib.load(open(f"{root}/config/{name}", "rb"))
    print(f"{rounds} rounds, {kills} processes killed, {sum(values)} values through mounts, owners {sorted(owners.values())}")
finally:
    for index, point in enumerate(mounts):
        subprocess.run(["fusermount3", "-u", "-z", point], stderr=subprocess.DEVNULL)
        if drivers[index] is not None:
            try:
                drivers[index].wait(10)
            except subprocess.TimeoutExpired:
                drivers[index].kill()
    pid = owner()
    if pid is not None and is_ours(pid):
        os.kill(pid, signal.SIGTERM)
        # It saves its changes before it ends, and would make removed directories again.
        end = time.time() + 10
        while is_ours(pid) and time.time() < end:
            time.sleep(0.01)
    shutil.rmtree(root, ignore_errors=True)
