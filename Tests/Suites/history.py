"""history.py BIN [SECONDS] [SEED]: what a user may expect of the history, on a mount of its own.

BIN is the directory of prefsfs, prefsd, defaults, plutil, and of prefs-probe, which uses the library.
SECONDS (5) is how long the flood of changes lasts; below that the random domains are smaller. Each check is a function; the first that fails
ends the program with status 1. It needs rsync."""
import json, os, plistlib, random, shutil, signal, subprocess, sys, tempfile, time

BIN = os.path.realpath(sys.argv[1])
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 5
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
rng = random.Random(SEED)
print("seed", SEED, flush=True)

ROOT = tempfile.mkdtemp(prefix="prefsfs-history-")
for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"),
                        ("XDG_RUNTIME_DIR", "run"), ("PREFSFS_SYSTEM_DIR", "system")]:
    os.makedirs(f"{ROOT}/{directory}", mode=0o700)
    os.environ[name] = f"{ROOT}/{directory}"
os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
M, CONFIG, STATE = f"{ROOT}/m", f"{ROOT}/config", f"{ROOT}/state"
os.mkdir(M)


def run(command, status=0):
    """The output of a command of a shell, both streams together."""
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, cwd=M if os.path.ismount(M) else ROOT)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{command}: status {done.returncode}, not {status}:\n{done.stdout}")
    return done.stdout


def processes():
    """The processes of this test's environment, but this one."""
    mark, found = f"XDG_STATE_HOME={STATE}\0".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid() and mark in open(f"/proc/{pid}/environ", "rb").read():
                found.append(int(pid))
        except OSError:
            pass
    return found


def end(number):
    """Ends every process with a signal, and unmounts."""
    os.chdir("/")
    while processes():
        for pid in processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        if os.path.ismount(M):
            subprocess.run(["umount", "-l", M], stderr=subprocess.DEVNULL)
        time.sleep(0.05)


def mount():
    run(f"prefsfs {M}")


def records(*words):
    """The changes of the history, as dictionaries."""
    lines = subprocess.run(["defaults", "history", "--all", "--json", *words], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def wait(condition, what):
    end = time.time() + 20
    while not condition():
        assert time.time() < end, what
        time.sleep(0.05)


def equal(one, other, what=""):
    assert one == other, f"{what}: {one!r} is not {other!r}"


def back_and_forth():
    run("mkdir one; echo 4 > one/K; echo 8 > one/K")
    number = records("one", "K")[-1]["number"]
    run(f"defaults undo {number}")
    equal(run("cat one/K"), "4\n")
    run(f"defaults undo {number + 1}")
    equal(run("cat one/K"), "8\n")


def conflict():
    run("mkdir two; echo 1 > two/K; echo 2 > two/K; echo 3 > two/K")
    numbers = [record["number"] for record in records("two", "K")]
    text = run(f"defaults undo {numbers[1]}", status=1)
    assert f"changed again by {numbers[2]}" in text, text
    equal(run("cat two/K"), "3\n")
    run(f"defaults undo {numbers[1]} --over")
    equal(run("cat two/K"), "1\n")


def ways():
    run("mkdir three; echo 1 > three/K; defaults write three K -int 2; prefs-probe set three K 3")
    run("defaults synchronize three")
    run(f"plutil -replace K -integer 4 {CONFIG}/three.plist")
    wait(lambda: run("cat three/K") == "4\n", "plutil's edit is not there")
    profile = dict(
        PayloadType="Configuration", PayloadVersion=1, PayloadIdentifier="a", PayloadUUID="b",
        PayloadContent=[dict(PayloadType="com.apple.ManagedClient.preferences", PayloadContent={
            "three": {"Forced": [{"mcx_preference_settings": {"K": 5}}]}})])
    os.makedirs(f"{ROOT}/system/managed")
    plistlib.dump(profile, open(f"{ROOT}/system/managed/.p", "wb"))
    os.rename(f"{ROOT}/system/managed/.p", f"{ROOT}/system/managed/p.mobileconfig")
    wait(lambda: run("cat three/K") == "5\n", "the profile's value is not there")
    found = records("three", "K")
    equal([record["via"] for record in found], ["mount", "command", "library", "list", "profile"])
    names = [os.path.basename(record["program"]) for record in found[:3]]
    equal(names, ["bash", "defaults", "prefs-probe"])
    os.remove(f"{ROOT}/system/managed/p.mobileconfig")
    wait(lambda: run("cat three/K") == "4\n", "the profile's value stays")


def killed():
    run("mkdir four; echo before > four/K; echo after > four/K")
    end(signal.SIGKILL)
    mount()
    equal(run("cat four/K"), "after\n")
    values = [change["changes"][0] for change in records("four", "K")]
    assert any(item.get("after") == "before" or item.get("before") == "before" for item in values)
    equal(values[-1]["after"], "after")


def unseen():
    run("mkdir five; echo 1 > five/K; echo x > five/S; defaults synchronize five; sleep 1.2")
    end(signal.SIGTERM)
    path = f"{CONFIG}/five.plist"
    values = plistlib.load(open(path, "rb"))
    values.update(K=7, New=True)
    del values["S"]
    plistlib.dump(values, open(path, "wb"))
    mount()
    last = records("five")[-1]
    equal(last["via"], "list")
    assert last["unit"].startswith("between "), last
    items = {item["key"]: (item.get("before"), item.get("after")) for item in last["changes"]}
    equal(items, {"K": (1, 7), "S": ("x", None), "New": (None, True)})


def value(depth=0):
    kind = rng.randrange(9 if depth < 2 else 7)
    if kind == 0: return rng.randrange(-2**63, 2**63)
    if kind == 1: return rng.uniform(-1e9, 1e9)
    if kind == 2: return rng.random() < .5
    if kind == 3: return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
    if kind == 4: return plistlib.loads(b"<plist><date>2026-11-%02dT07:20:00Z</date></plist>" % rng.randrange(1, 28))
    if kind < 7: return "".join(rng.choice("ab '\"\\é<&$\n-") for _ in range(rng.randrange(12)))
    if kind == 7: return [value(depth + 1) for _ in range(rng.randrange(4))]
    return {f"k{index}": value(depth + 1) for index in range(rng.randrange(4))}


def restored():
    count = 1000 if SECONDS > 4 else 200

    def fill():
        values = {f"Key {rng.randrange(count * 2)}": value() for _ in range(count)}
        plistlib.dump(values, open(f"{ROOT}/values.plist", "wb"))
        run(f"defaults import six {ROOT}/values.plist")

    fill()
    run(f"defaults export six {ROOT}/six.old")
    number = records("six")[-1]["number"]
    # rsync takes files of one size and one second for equal.
    time.sleep(1.1)
    fill()
    run(f"rsync -aX --delete .prefs/at/{number}/six/ six/")
    run(f"defaults export six {ROOT}/six.new")
    one, other = (plistlib.load(open(f"{ROOT}/six.{end}", "rb")) for end in ("old", "new"))
    for key in sorted(set(one) | set(other)):
        equal((one.get(key), type(one.get(key))), (other.get(key), type(other.get(key))), key)
    run(f"diff -r .prefs/at/{number}/six six")


def flood():
    run("mkdir seven; defaults write seven Other before")
    open(f"{ROOT}/large", "wb").write(b"x" * 10_000_000)
    begin, count = time.time(), 0
    while time.time() < begin + SECONDS:
        for _ in range(100):
            count += 1
            open(f"{M}/seven/K", "w").write(f"{count}\n")
        shutil.copyfile(f"{ROOT}/large", f"{M}/seven/Large")
    run("defaults write seven Other after")
    equal([record["changes"][0]["after"] for record in records("seven", "Other")], ["before", "after"])
    size = sum(os.path.getsize(os.path.join(directory, name))
               for directory, _, names in os.walk(STATE) if directory.endswith("/history")
               for name in names)
    assert size < 4 << 20, f"the history has {size} bytes after {count} changes"
    run("rm seven/Large")


def secrets():
    run("mkdir eight; echo hunter-one > eight/MyToken; echo hunter-two > eight/Plain")
    run("echo other > eight/Plain; defaults synchronize eight; sleep 1.2; defaults history > /dev/null")
    history = f"grep -rl {{}} $(find {STATE} -name history)"
    equal(run(history.format("hunter-one"), status=None), "")
    assert run(history.format("hunter-two"), status=None) != ""
    run("defaults history forget eight Plain")
    equal(run(history.format("hunter-two"), status=None), "")


def recorded():
    commands = [["defaults", "write", rng.choice(["nine", "nine.b"]), f"K{rng.randrange(20)}",
                 plistlib.dumps(value()).decode()] for _ in range(200 if SECONDS > 4 else 50)]
    program = f"import subprocess\nfor words in {commands!r}: subprocess.run(words, check=True)\n"
    open(f"{ROOT}/script.py", "w").write(program)
    for form, replay in [("commands", "sh {}"), ("apply", "defaults apply {} > /dev/null; true"),
                         ("profile", "mkdir -p $PREFSFS_SYSTEM_DIR/managed; cp {} $PREFSFS_SYSTEM_DIR/managed/r.mobileconfig; "
                                     "defaults read nine > /dev/null; sleep 2")]:
        run("defaults delete nine; defaults delete nine.b", status=None)
        run(f"defaults record --as {form} -- python3 {ROOT}/script.py > {ROOT}/made")
        other = tempfile.mkdtemp(dir=ROOT)
        elsewhere = f"export XDG_CONFIG_HOME={other} XDG_STATE_HOME={other}/s PREFSFS_SYSTEM_DIR={other}/system; "
        run(elsewhere + replay.format(f"{ROOT}/made"))
        for domain in ["nine", "nine.b"]:
            run(f"defaults export {domain} {ROOT}/old")
            run(elsewhere + f"defaults export {domain} {ROOT}/new")
            one, two = (plistlib.load(open(f"{ROOT}/{end}", "rb")) for end in ("old", "new"))
            equal(one, two, f"{domain} from {form}")


def crawlers():
    run("mkdir ten; echo 1 > ten/K")
    for command in ["grep -r hunter .", "find .", "du -a ."]:
        text = run(command, status=None)
        assert "at/" not in text and ".prefs" not in text, f"{command}: {text}"


try:
    mount()
    for check in [back_and_forth, conflict, ways, killed, unseen, restored, flood, secrets, recorded,
                  crawlers]:
        begin = time.time()
        check()
        print(f"{check.__name__}: {time.time() - begin:.1f} s", flush=True)
except AssertionError as error:
    print(error)
    sys.exit(1)
finally:
    end(signal.SIGTERM)
    shutil.rmtree(ROOT, ignore_errors=True)
print("no fault")
