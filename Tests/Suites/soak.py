"""soak.py PROGRAMS SECONDS [SEED]: everything at once for a long time, and what memory it takes.

PROGRAMS is the directory with prefsfs, prefsd, defaults and prefs-probe. There are one store and two
mounts, in a temporary directory. For SECONDS these run beside each other: fsx.py with texts of up
to 1 MB in each mount, stress.py in each mount, mounts.py in both, a program of the library that
counts up a key, `defaults watch`, and a loop that reads with each of the mounts and `defaults` what
another has written. Then 1 GB of values is written into keys of both mounts, and removed.

Every second the memory of prefsd and of both drivers is read: what they have of their own, and the
shared memory of the state that a successor would get. Fails if a program fails, if prefsd and the
drivers together have more than 150 MB (with 10 s to come down again), if they have 10 MB more than
each before when all is idle, or if with 1 GB in keys prefsd has more than 1.5 times the lists, or a
driver's shared memory is over 64 MB."""
import os, random, shutil, signal, subprocess, sys, tempfile, threading, time

programs, seconds = os.path.realpath(sys.argv[1]), float(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
print("seed", seed, flush=True)
suites = os.path.dirname(os.path.realpath(__file__))
root = tempfile.mkdtemp(prefix="prefsfs-soak-")
environment = dict(os.environ, PREFSFS_PREFSD=f"{programs}/prefsd", FSX_LARGEST=str(1 << 20))
for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"),
                        ("XDG_RUNTIME_DIR", "run"), ("PREFSFS_SYSTEM_DIR", "system")]:
    os.makedirs(f"{root}/{directory}", mode=0o700)
    environment[name] = f"{root}/{directory}"
one, two = f"{root}/m1", f"{root}/m2"
drivers, started, failures = [], [], []
MEGABYTE = 1000 * 1000


def start(*command, output=None):
    """Starts a program that this run ends. It writes to a file: a pipe that is full stops it."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.STDOUT,
                               stdout=output or open(f"{root}/output{len(started)}", "w+"))
    started.append(process)
    return process


def finish(process, name):
    """Waits for a program, and prints the end of what it said."""
    number = started.index(process)
    process.wait()
    output = open(f"{root}/output{number}").read().strip()
    print(f"{name}: {output.splitlines()[-1] if output else 'no output'}", flush=True)
    if process.returncode != 0:
        failures.append(f"{name}: status {process.returncode}\n{output[-2000:]}")


def defaults(*arguments):
    return subprocess.run([f"{programs}/defaults", *arguments], env=environment,
                          capture_output=True, text=True).stdout.strip()


def owner():
    [store] = os.listdir(f"{root}/state/prefsfs")
    return int(open(f"{root}/state/prefsfs/{store}/lock").readline())


def memory(process):
    """The bytes that a process has of its own, and of shared memory."""
    with open(f"/proc/{process}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return [int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem")]


def all_memory():
    return {name: memory(process) for name, process in
            [("prefsd", owner()), ("one", drivers[0].pid), ("two", drivers[1].pid)]}


def total():
    return sum(map(sum, all_memory().values()))


def text(found):
    return ", ".join(f"{name} {own / MEGABYTE:.1f} + {shared / MEGABYTE:.1f} MB"
                     for name, (own, shared) in found.items())


def mount(point):
    os.mkdir(point)
    process = start(f"{programs}/prefsfs", point, "-f", "-o", "new=string",
                    output=open(f"{root}/log", "a"))
    while not os.path.ismount(point):
        if process.poll() is not None:
            sys.exit(f"prefsfs ended: {open(f'{root}/log').read()}")
        time.sleep(0.01)
    child = f"/proc/{process.pid}/task/{process.pid}/children"
    while not (found := open(child).read().split()):
        time.sleep(0.01)
    drivers.append(type("Driver", (), {"pid": int(found[0])}))


def data(path):
    """Makes a key of type data."""
    with open(path, "w") as file:
        file.write("x")
    os.setxattr(path, "user.prefs.type", b"data")


def take_turns(end):
    """Each way of writing a key, read in each other way at once."""
    rounds = 0
    while time.time() < end:
        rounds += 1
        defaults("write", "turns", "A", str(rounds))
        with open(f"{two}/turns/B", "w") as file:
            file.write(f"{rounds}.5\n")
        for name, found, expected in [
                ("one/A", open(f"{one}/turns/A").read(), f"{rounds}\n"),
                ("two/A", open(f"{two}/turns/A").read(), f"{rounds}\n"),
                ("one/B", open(f"{one}/turns/B").read(), f"{rounds}.5\n"),
                ("defaults B", defaults("read", "turns", "B"), f"{rounds}.5")]:
            if found != expected:
                failures.append(f"turns: {name} is {found!r}, not {expected!r}")
        time.sleep(0.2)
    print(f"turns: {rounds} rounds", flush=True)


def watch_memory(end):
    peak, late = 0, None
    while time.time() < end:
        now = total()
        peak = max(peak, now)
        if now <= 150 * MEGABYTE:
            late = None
        elif late is None:
            late = time.time() + 10
        elif time.time() > late:
            failures.append(f"more than 150 MB for 10 s: {text(all_memory())}")
            late = time.time() + 1e9
        time.sleep(1)
    print(f"memory: at most {peak / MEGABYTE:.1f} MB", flush=True)


def soak():
    for place in (one, two):
        os.mkdir(f"{place}/fsx{place[-1]}")
        os.mkdir(f"{place}/stress{place[-1]}")
        data(f"{place}/fsx{place[-1]}/Data")
    for domain in ("shared", "turns", "count"):
        os.mkdir(f"{one}/{domain}")
    watcher = start(f"{programs}/defaults", "watch", "turns", output=subprocess.DEVNULL)
    end, python, span = time.time() + seconds, "/usr/bin/python3", str(seconds)
    running = [(f"{suite} {number}", start(python, f"{suites}/{suite}", *arguments, span, str(seed)))
               for number, place in enumerate((one, two), 1) for suite, arguments in
               [("fsx.py", [f"{place}/fsx{number}/Data"]), ("stress.py", [f"{place}/stress{number}", "2"])]]
    running += [("mounts.py", start(python, f"{suites}/mounts.py", f"{one}/shared", f"{two}/shared", span)),
                ("program", start(f"{programs}/prefs-probe", "count", "count", "P", span))]
    threads = [threading.Thread(target=body, args=(end,)) for body in (take_turns, watch_memory)]
    for thread in threads:
        thread.start()
    for name, process in running:
        finish(process, name)
    for thread in threads:
        thread.join()
    # Whoever runs this may block other signals.
    watcher.kill()
    watcher.wait()
    for domain in os.listdir(one):
        if domain not in (".prefs", "NSGlobalDomain"):
            shutil.rmtree(f"{one}/{domain}")


def settle(isEnough):
    """Waits for what is done when a store is idle; half a minute at most."""
    end = time.time() + 30
    while not isEnough() and time.time() < end:
        time.sleep(1)
    return isEnough()


def fill():
    """1 GB of values in keys of 1 MB, of ten domains, through both mounts."""
    rng, count = random.Random(seed), 1024 if seconds >= 60 else 64
    for number in range(count):
        directory = f"{(one, two)[number % 2]}/fill{number % 10}"
        os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/K{number}", "w") as file:
            file.write(rng.randbytes(MEGABYTE // 2).hex() + "\n")
    def are_written():
        return sum(os.path.getsize(f"{root}/config/{name}")
                   for name in os.listdir(f"{root}/config")) > count * MEGABYTE
    def is_small():
        found, lists = all_memory(), count * MEGABYTE
        return (sum(found["prefsd"]) < 1.5 * lists + 20 * MEGABYTE
                and all(found[name][1] < 64 * MEGABYTE for name in ("one", "two")))
    if not settle(lambda: are_written() and is_small()):
        failures.append(f"with {count} MB in keys: {text(all_memory())}")
    print(f"{count} MB in keys: {text(all_memory())}", flush=True)
    for domain in range(10):
        shutil.rmtree(f"{one}/fill{domain}")


def is_as_before(before):
    now = all_memory()
    return all(sum(now[name]) < sum(before[name]) + 10 * MEGABYTE for name in now)


try:
    for point in (one, two):
        mount(point)
    for point in (one, two):
        os.listdir(point)
    before = all_memory()
    print(f"at first: {text(before)}", flush=True)
    for step in (soak, fill):
        step()
        if not settle(lambda: is_as_before(before)):
            failures.append(f"after {step.__name__}: {text(all_memory())}")
        print(f"after {step.__name__}: {text(all_memory())}", flush=True)
    log = open(f"{root}/log").read()
    if log:
        print("log:", log[-2000:])
finally:
    for process in started[2:]:
        process.kill()
        process.wait()
    for point in (one, two):
        subprocess.run(["fusermount3", "-u", "-z", point], stderr=subprocess.DEVNULL)
    # A driver that is still there would start another prefsd.
    for process in started[:2]:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    try:
        os.kill(owner(), signal.SIGTERM)
    except (OSError, ValueError):
        pass
    # prefsd saves what it has, for a moment.
    end = time.time() + 10
    while os.path.exists(root) and time.time() < end:
        shutil.rmtree(root, ignore_errors=True)
        time.sleep(0.1)
print("\n".join(failures) or "no fault")
sys.exit(1 if failures else 0)
