"""successors.py PREFSFS ROUNDS [HOW] [SEED]: replaces the driver of a mount under eight workers.

In each round, at a random moment, the driver is killed (HOW: kill), or replaced by an upgrade
(upgrade), or its guard is killed (guard); mixed does one of them at random. Meanwhile eight workers
use the mount as people and tools do: echo, sed -i, mv, cat, an editor's save, a reader with an open
descriptor and a mapping, tail -F, and a watcher of events. No worker may see an error; each text
that was written must be read; each appended line must be there once; no event may be missing (a
repeated one may be there); a scratch file must keep its bytes. At the end the processes must have
no more memory and descriptors than after the first rounds."""
import json, mmap, os, random, shutil, signal, subprocess, sys, tempfile, threading, time

program, rounds = os.path.realpath(sys.argv[1]), int(sys.argv[2])
how = sys.argv[3] if len(sys.argv) > 3 else "kill"
seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
print("seed", seed, flush=True)
rng = random.Random(seed)
root = tempfile.mkdtemp(prefix="prefsfs-successors-")
environment = dict(os.environ)
for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"),
                        ("XDG_RUNTIME_DIR", "run"), ("PREFSFS_SYSTEM_DIR", "system")]:
    os.makedirs(f"{root}/{directory}", mode=0o700)
    environment[name] = f"{root}/{directory}"
point = f"{root}/m"
os.mkdir(point)
stop, failures = threading.Event(), []


def status():
    return json.loads(os.getxattr(point, "user.prefs.status"))


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])


def comm(pid):
    """The name of a process that lives."""
    try:
        name, rest = open(f"/proc/{pid}/stat").read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return ""
    return "" if rest.split()[0] == "Z" else name


def guard_of(driver):
    """The guard is the driver's parent, or, if the driver has started it, its child."""
    above = parent(driver)
    if comm(above) == "prefs-guard":
        return above
    children = open(f"/proc/{driver}/task/{driver}/children").read().split()
    return next((int(pid) for pid in children if comm(pid) == "prefs-guard"), None)


def running():
    """The processes that run in the environment of the test."""
    mark, found = f"XDG_STATE_HOME={root}/state\0".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in open(f"/proc/{pid}/environ", "rb").read():
                found.append(int(pid))
        except OSError:
            pass
    return found


class Worker(threading.Thread):
    """Repeats a step until the end; an exception is a failure."""

    def __init__(self, step):
        super().__init__(daemon=True)
        self.step, self.count = step, 0

    def run(self):
        try:
            while not stop.is_set():
                self.count += 1
                self.step(self.count)
        except BaseException as error:
            failures.append(f"{self.step.__name__}, step {self.count}: {type(error).__name__}: {error}")
            stop.set()


def expect(text, wanted):
    if text != wanted:
        raise AssertionError(f"{text!r} in place of {wanted!r}")


def shell(command):
    outcome = subprocess.run(["sh", "-c", command], cwd=f"{point}/d", capture_output=True, text=True, timeout=60)
    if outcome.returncode != 0 or outcome.stderr:
        raise AssertionError(f"{command}: {outcome.returncode} {outcome.stderr}")
    return outcome.stdout


def echo(count):
    expect(shell(f"echo {count} > Echo; cat Echo"), f"{count}\n")


def sed(count):
    expect(shell(f"sed -i 's/^.*$/line {count}/' Sed; cat Sed"), f"line {count}\n")


def move(count):
    shell(f"echo {count} > One; mv One Two; [ ! -e One ]")
    expect(shell("cat Two"), f"{count}\n")


def save(count):
    """As vim saves: the old file becomes a backup, the new one is written, the backup removed."""
    name = f"{point}/d/Edited"
    os.rename(name, name + "~")
    with open(name, "w") as file:
        file.write(f"text {count}\n")
        file.flush()
        os.fsync(file.fileno())
    os.unlink(name + "~")
    expect(open(name).read(), f"text {count}\n")


open_file = None


def read(count):
    """An open descriptor and a mapping go on showing the file."""
    expect(os.pread(open_file.fileno(), 100, 0), b"constant\n")
    with mmap.mmap(open_file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
        expect(mapping[:], b"constant\n")
    time.sleep(0.001)


appended = 0


def append(count):
    """Each line is written once, through one descriptor."""
    global appended
    os.write(log_file, b"%d\n" % count)
    appended = count
    time.sleep(0.0005)


def scratch(count):
    name = f"{point}/d/.S.swp"
    with open(name, "wb", buffering=0) as file:
        file.write(b"first ")
        file.write(b"%d" % count)
        expect(open(name, "rb").read(), b"first %d" % count)
    os.unlink(name)
    shell(f"touch New{count % 7}; rm New{count % 7}")


def resources():
    time.sleep(0.5)  # A guard that has just begun is still opening what it needs.
    driver = status()["process"]
    guard = guard_of(driver)
    size = sum(int(line.split()[1]) for line in open(f"/proc/{driver}/status") if line.startswith(("RssAnon", "RssShmem")))
    return size, len(os.listdir(f"/proc/{driver}/fd")), len(os.listdir(f"/proc/{guard}/fd")) if guard else 0


def replace_driver(way):
    driver = status()["process"]
    if way == "kill":
        os.kill(driver, signal.SIGKILL)
    elif way == "guard":
        guard = guard_of(driver)
        if guard:
            os.kill(guard, signal.SIGKILL)
    else:
        os.kill(driver, signal.SIGUSR2)
    return driver


def wait_for(condition, what, seconds=10):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            failures.append(f"{what}: not within {seconds} s")
            stop.set()
            return
        time.sleep(0.005)


first = subprocess.Popen([program, point, "-f"], env=environment, stderr=open(f"{root}/log", "a"))
tail = watcher = log_file = kept = None
try:
    wait_for(lambda: os.path.ismount(point), "the mount")
    os.mkdir(f"{point}/d")
    for name, text in [("Sed", "line\n"), ("Edited", "text\n"), ("Constant", "constant\n"), ("Log", "start\n"), ("Kept", "1\n"), ("Seen", "0\n")]:
        open(f"{point}/d/{name}", "w").write(text)
    open_file = open(f"{point}/d/Constant", "rb")
    log_file = os.open(f"{point}/d/Log", os.O_WRONLY | os.O_APPEND)
    kept = open(f"{point}/d/.Kept.swp", "wb+", buffering=0)
    kept.write(b"bytes of a scratch file")
    tail = subprocess.Popen(["tail", "-n", "+1", "-F", f"{point}/d/Log"], stdout=open(f"{root}/tail", "w"), stderr=open(f"{root}/tail-errors", "w"))
    watcher = subprocess.Popen(["inotifywait", "-q", "-m", "-e", "close_write", "--format", "%f", f"{point}/d"], stdout=open(f"{root}/events", "w"), stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    steps = [echo, sed, move, save, read, append, scratch]
    workers = [Worker(step) for step in steps]
    for worker in workers:
        worker.start()
    early, replaced = None, {"kill": 0, "upgrade": 0, "guard": 0}
    for number in range(rounds):
        time.sleep(rng.uniform(0.01, 0.25))
        if stop.is_set():
            break
        way = rng.choice(list(replaced)) if how == "mixed" else how
        replaced[way] += 1
        before = replace_driver(way)
        if way == "guard":
            wait_for(lambda: guard_of(status()["process"]), "a new guard")
        else:
            wait_for(lambda: status()["process"] != before, f"a successor ({way})")
        # A change by another program must reach watchers, whoever serves the mount by then.
        subprocess.run([os.path.dirname(program) + "/defaults", "write", "d", "Seen", "-int", str(number + 1)], env=environment, check=True, timeout=30)
        expect(open(f"{point}/d/Seen").read(), f"{number + 1}\n")
        if number == min(20, rounds - 1):
            early = resources()
    late = resources() if not failures else None
    stop.set()
    for worker in workers:
        worker.join(60)
        if worker.is_alive():
            failures.append(f"{worker.step.__name__} hangs")
    if not failures:
        lines = open(f"{point}/d/Log").read().split()
        if lines != ["start"] + [str(n) for n in range(1, appended + 1)]:
            wrong = next((i for i, line in enumerate(lines) if i and line != str(i)), len(lines))
            failures.append(f"the log has {len(lines)} lines of {appended + 1}; wrong at {wrong}: {lines[max(0, wrong - 2):wrong + 3]}")
        kept.seek(0)
        expect(kept.read(), b"bytes of a scratch file")
        expect(open(f"{point}/d/.Kept.swp").read(), "bytes of a scratch file")
        wait_for(lambda: open(f"{root}/tail").read().split() == lines, "tail -F shows every line")
        events = lambda: open(f"{root}/events").read().split().count("Seen")
        wait_for(lambda: events() >= rounds, f"{rounds} events of Seen; there are {events()}")
        # Memory of a young process varies by some MiB.
        if late[0] > early[0] + 16384 or late[1] > early[1] + 2 or late[2] > early[2] + 2:
            failures.append(f"memory (KiB) and descriptors grew from {early} to {late}")
    state = status() if not failures else {}
    if failures:
        print(open(f"{root}/log").read()[-3000:])
        sys.exit(f"seed {seed}: " + "; ".join(failures))
    print(f"{rounds} rounds, {replaced}, {sum(w.count for w in workers)} steps, {appended} lines, {events()} events, "
          f"memory and descriptors {early} then {late}, crashes {state.get('driver replaced after a crash')}, "
          f"upgrades {state.get('driver replaced by an upgrade')}")
finally:
    for process in (tail, watcher):
        if process is not None:
            process.kill()
            process.wait()
    stop.set()
    # What is open keeps the mount and its driver.
    if log_file is not None:
        os.close(log_file)
    for file in (open_file, kept):
        if file is not None:
            file.close()
    subprocess.run(["fusermount3", "-u", "-z", point], stderr=subprocess.DEVNULL)
    try:
        first.wait(10)
    except subprocess.TimeoutExpired:
        first.kill()
    # The last driver saves its changes before it ends, and would make removed directories again.
    end = time.time() + 10
    while running() and time.time() < end:
        time.sleep(0.01)
    if os.environ.get("KEEP"):
        print(open(f"{root}/log").read()[-3000:])
    shutil.rmtree(root, ignore_errors=True)
