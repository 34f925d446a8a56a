"""faults.py PROGRAMS ROUNDS [SEED]: kills owner, client and drivers at random times under load.

PROGRAMS is the directory with prefsfs, prefsd and prefs-probe. There are one store, two mounts and
a client that starts prefsd when it needs to, in a temporary directory. In each round writers count
up keys of their own, through each mount and through the client, and note each value when it was
acknowledged; meanwhile some of the processes are killed with SIGKILL. Then every key must have the
value that was acknowledged last, or the one that was under way, and every list on the disk must
parse. The next round starts the mounts again that are gone."""
import os, plistlib, random, shutil, signal, subprocess, sys, tempfile, threading, time

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
        self.number, self.value, self.acknowledged, self.end = number, first, first, time.time() + seconds

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
        except OSError:
            pass


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
        owners[drivers[0].pid == pid, drivers[1].pid == pid] = owners.get((drivers[0].pid == pid, drivers[1].pid == pid), 0) + 1
        victims = rng.sample(["owner", "one", "other", "client", "all"], rng.randrange(1, 3))
        pids = {"owner": [pid], "one": [drivers[0].pid], "other": [drivers[1].pid], "client": [probe.process.pid]}
        pids["all"] = sum(pids.values(), [])
        for victim in dict.fromkeys(sum((pids[name] for name in victims), [])):
            if victim is not None and is_ours(victim):
                os.kill(victim, signal.SIGKILL)
                kills += 1
        for one in writers + [probe] + churners:
            one.join(30)
            if one.is_alive():
                fail(f"a writer hangs: {victims}, drivers {[d.poll() for d in drivers]}, owner {pid} now {owner()}, {type(one).__name__} {vars(one).get('number')}")
        for index, one in enumerate(writers):
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
