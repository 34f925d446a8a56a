"""effects.py BIN [ROUNDS] [SEED]: kills every process at random moments between a change and the
run of its rule, and looks whether the rule was carried out for the last values.

BIN is the directory of prefsd and defaults. In each of ROUNDS (100) rounds two values are set, every
process is killed with SIGKILL, and the next owner is started. The command, and the file that the
other rule writes, must get the last values; after a success that was reported, the next start must
not run the command again. The first round that fails ends the program with status 1."""
import json, os, random, shutil, signal, subprocess, sys, tempfile, time

BIN = os.path.realpath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 100
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
rng = random.Random(SEED)
print("seed", SEED, flush=True)

ROOT = tempfile.mkdtemp(prefix="prefsfs-effects-")
for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"),
                        ("XDG_RUNTIME_DIR", "run"), ("PREFSFS_SYSTEM_DIR", "system")]:
    os.makedirs(f"{ROOT}/{directory}", mode=0o700)
    os.environ[name] = f"{ROOT}/{directory}"
os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
os.environ["PREFSFS_LOG"] = f"{ROOT}/log"
RUNS, FILE = f"{ROOT}/runs", f"{ROOT}/home/d.json"
open(RUNS, "w").close()


def defaults(*words):
    return subprocess.run(["defaults", *words], stdout=subprocess.PIPE, text=True).stdout


def processes():
    """The processes of this test's environment, but this one."""
    mark, found = f"XDG_STATE_HOME={ROOT}/state\0".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid() and mark in open(f"/proc/{pid}/environ", "rb").read():
                found.append(int(pid))
        except OSError:
            pass
    return found


def kill():
    while found := processes():
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def runs():
    """The values that the command has run with, in order; an incomplete line does not count."""
    return [line.rstrip("\n") for line in open(RUNS) if line.endswith("\n")]


def wait(what, condition):
    end = time.monotonic() + 20
    while not condition():
        defaults("read", "d", "K")  # Without a client there is no owner.
        if time.monotonic() > end:
            print(f"never: {what}\n{defaults('effects')}", flush=True)
            kill()
            sys.exit(1)
        time.sleep(0.02)


def written():
    try:
        return json.load(open(FILE)).get("K")
    except (OSError, ValueError):
        return None


def is_reported():
    lines = [json.loads(line) for line in defaults("effects", "--json").splitlines()]
    return len(lines) == 2 and all(line["state"] == "up to date" for line in lines)


rules = {"prefsfs.effects": {
    "run": {"Keys": ["d/K"], "Delay": 0.05,
            "Run": f"sleep 0.0{rng.randrange(1, 9)}; echo $(defaults read d K) >> {RUNS}"},
    "write": {"Keys": ["d/*"], "Delay": 0.05, "Write": "~/d.json", "As": "json"}}}
json.dump(rules, open(f"{ROOT}/rules.json", "w"))
defaults("apply", "--rules", f"{ROOT}/rules.json")

for number in range(ROUNDS):
    for value in (2 * number, 2 * number + 1):
        defaults("write", "d", "K", "-int", str(value))
        time.sleep(rng.random() * 0.05)
    time.sleep(rng.random() * 0.3)
    kill()
    wait(f"round {number}: a run with {value}", lambda: runs()[-1:] == [str(value)])
    wait(f"round {number}: {value} in the file", lambda: written() == value)
    wait(f"round {number}: a report", is_reported)
    if number % 10 == 0:
        time.sleep(0.5)  # What is saved is what the report says.
        count = len(runs())
        kill()
        wait(f"round {number}: the next owner", is_reported)
        time.sleep(1)
        if len(runs()) != count:
            print(f"round {number}: it ran again for the same values", flush=True)
            kill()
            sys.exit(1)
    if number % 10 == 9:
        print(number + 1, "rounds", flush=True)
kill()
shutil.rmtree(ROOT)
print("done")
