"""deadlines.py BIN [KILLS] [STORES] [SEED]: kills owners at random moments around the deadlines of
declarations, and looks whether each was met, at its time, and whether anything is left.

BIN is the directory of prefsd and defaults. In STORES (8) stores at the same time values are leased,
or applied to be confirmed, for 1 to 3 s, some over an earlier declaration; a user changes some of
them, and KILLS (1000) owners are ended with SIGKILL: also while a command runs, and within 50 ms of
a deadline. A value that is leased is read until its deadline, and no more by a client that an owner
started after it serves first; what users have set stays, and no ledger is left. The first thing that
is wrong ends the program with status 1."""
import glob, json, os, plistlib, random, shutil, signal, subprocess, sys, tempfile, threading, time

BIN = os.path.realpath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
STORES = int(sys.argv[3]) if len(sys.argv) > 3 else 8
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
ROOT = tempfile.mkdtemp(prefix="prefsfs-deadlines-")
KEYS = ["K0", "K1", "K2"]
print("seed", SEED, flush=True)


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Wrong(Exception):
    pass


class Store:
    def __init__(self, number):
        self.root, self.rng = f"{ROOT}/{number}", random.Random(SEED + number)
        self.kills = self.reads = self.rounds = 0
        self.environment = dict(os.environ, PATH=BIN + ":" + os.environ["PATH"],
                                PREFSFS_LOG=f"{self.root}/log")
        for name, directory in [("HOME", "home"), ("XDG_CONFIG_HOME", "config"),
                                ("XDG_STATE_HOME", "state"), ("XDG_RUNTIME_DIR", "run"),
                                ("PREFSFS_SYSTEM_DIR", "system")]:
            os.makedirs(f"{self.root}/{directory}", mode=0o700)
            self.environment[name] = f"{self.root}/{directory}"
        self.base = {}    # What a user has set.

    def start(self, *words):
        return subprocess.Popen([f"{BIN}/defaults", *words], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, statuses=(0,)):
        """Runs a command, sometimes with a kill of the owner meanwhile."""
        command = self.start(*words)
        if self.rng.random() < 0.3:
            time.sleep(self.rng.random() * 0.02)
            self.kill()
        output, errors = command.communicate(timeout=60)
        if command.returncode not in statuses:
            raise Wrong(f"{words} ends with {command.returncode}: {output}{errors}")
        return output.strip()

    def kill(self, number=signal.SIGKILL):
        """Ends the owner with a signal, if there is one, and waits for its end."""
        for path in glob.glob(f"{self.root}/state/prefsfs/*/lock"):
            try:
                process = int(open(path).read())
                # The lock of one that has ended keeps its number.
                environment = open(f"/proc/{process}/environ").read()
                if f"XDG_STATE_HOME={self.root}/state\0" not in environment:
                    continue
                os.kill(process, number)
                while open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX":
                    time.sleep(0.001)
                self.kills += 1
            except (OSError, ValueError):
                continue

    def read(self, key):
        command = self.start("read", "d", key)
        output, errors = command.communicate(timeout=60)
        self.reads += 1
        if command.returncode == 1 and "does not exist" in errors:
            return None
        if command.returncode != 0:
            raise Wrong(f"read {key} ends with {command.returncode}: {output}{errors}")
        return output.strip()

    def check(self, key, expected, when):
        value = self.read(key)
        if value != expected:
            raise Wrong(f"round {self.rounds}, {when}: {key} is {value}, not {expected}")

    def declare(self, text, count, *options):
        """Declares some keys, and returns them."""
        keys = self.rng.sample(KEYS, count)
        values = {key: f"{text}-{self.rounds}-{self.rng.randrange(1 << 20)}" for key in keys}
        with open(f"{self.root}/site.json", "w") as file:
            json.dump({"d": values}, file)
        self.run("apply", "--as", "site", *options, file.name, statuses=(0, 2))
        return values

    def round(self):
        rng = self.rng
        self.rounds += 1
        for key in KEYS:
            if rng.random() < 0.3:
                self.base[key] = f"user-{self.rounds}"
                self.run("write", "d", key, self.base[key])
            elif rng.random() < 0.2 and self.base.pop(key, None):
                self.run("delete", "d", key, statuses=(0, 1))
        former = self.declare("former", 2) if rng.random() < 0.3 else {}
        seconds, option = rng.choice([1, 1, 2, 3]), rng.choice(["--lease", "--confirm"])
        begin = now()
        leased = self.declare("leased", rng.randrange(1, 4), option, str(seconds))
        first, last = begin + seconds, now() + seconds    # The deadline is between these.
        mine, after = {}, former
        if rng.random() < 0.3:
            key = rng.choice(list(leased))
            mine[key] = f"mine-{self.rounds}"
            self.run("write", "d", key, mine[key])
        if option == "--confirm" and rng.random() < 0.15 and now() + 0.5 < first:
            self.run("confirm", "site")
            after = leased
        during = self.base | leased | mine
        while now() + 0.1 < first:
            time.sleep(rng.random() * (first - now()) * 0.7)
            self.kill()
            key = rng.choice(KEYS)
            value = self.read(key) if rng.random() < 0.5 else during.get(key)
            if now() < first and value != during.get(key):
                raise Wrong(f"round {self.rounds}, before the deadline: {key} is {value}")
        # Some owners meet the deadline, or are killed while they do; else there is none.
        if rng.random() < 0.7:
            self.read(KEYS[0])
        time.sleep(max(0, first - now() + (rng.random() - 0.5) * 0.1))
        if rng.random() < 0.7:
            self.kill()
        if rng.random() < 0.2:
            time.sleep(max(0, last - now()) + 1.5)    # The present owner has met it by then.
        else:
            time.sleep(max(0, last - now()))
            self.kill()    # The next one meets it before it answers.
        for key in rng.sample(KEYS, len(KEYS)):
            self.check(key, (self.base | after | mine).get(key), f"after {option} {seconds}")
            if rng.random() < 0.3:
                self.kill()
        if after:
            self.run("undeclare", "site")
        self.base |= mine
        for key in KEYS:
            self.check(key, self.base.get(key), "in the end")
        if ledger := self.run("declared"):
            raise Wrong(f"round {self.rounds}: still declared: {ledger}")

    def end(self):
        """Has an owner save what there is; then no ledger is there, and the list has the rest."""
        self.read(KEYS[0])
        self.kill(signal.SIGTERM)
        path = f"{self.root}/config/d.plist"
        rest = plistlib.load(open(path, "rb")) if os.path.exists(path) else {}
        if os.path.exists(f"{self.root}/config/prefsfs.declared.plist") or rest != self.base:
            raise Wrong(f"in the end there is a ledger, or {rest}, not {self.base}")


failures = []


def work(store):
    try:
        while store.kills < KILLS / STORES and not failures:
            store.round()
        store.end()
    except Exception as error:
        failures.append(f"{store.root}: {type(error).__name__} {error}")
    store.kill()


stores = [Store(number) for number in range(STORES)]
threads = [threading.Thread(target=work, args=[store]) for store in stores]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for word in ["kills", "rounds", "reads"]:
    print(word, sum(getattr(store, word) for store in stores))
if failures:
    print("\n".join(failures))
    sys.exit(1)
shutil.rmtree(ROOT)
print("done")
