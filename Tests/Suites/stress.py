"""stress.py DIRECTORY PROCESSES SECONDS [SEED]: several processes create, write, rename and remove
files of one directory at once. Each uses names of its own and keeps a model of them; listings and
texts must be as the model says, at every step and at the end."""
import multiprocessing, os, random, sys, time

directory, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)


def write(path, text, flags):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(fd, text.encode())
    os.close(fd)


def worker(number, results):
    rng, model, steps = random.Random(seed + number), {}, 0
    end = time.time() + seconds

    def path(name):
        return f"{directory}/{name}"

    while time.time() < end:
        name, other = (f"P{number}Key{rng.randrange(20)}" for _ in range(2))
        text = f"text {steps} of {number}\n" * rng.randrange(1, 40)
        kind = rng.choice(["write", "write", "atomic", "rename", "remove", "read", "list"])
        if kind == "write":
            write(path(name), text, os.O_TRUNC)
            model[name] = text
        elif kind == "atomic":
            write(path(f".{name}.{number}x"), text, os.O_TRUNC)
            os.rename(path(f".{name}.{number}x"), path(name))
            model[name] = text
        elif kind == "rename" and name in model:
            os.rename(path(name), path(other))
            model[other] = model.pop(name)
        elif kind == "remove" and name in model:
            os.unlink(path(name))
            del model[name]
        elif kind == "read":
            found = open(path(name)).read() if os.path.exists(path(name)) else None
            if found != model.get(name):
                results.put(f"seed {seed}, process {number}, step {steps}: {name} is {found!r:.60}, not {model.get(name)!r:.60}")
                return
        elif kind == "list":
            names = {n for n in os.listdir(directory) if n.startswith(f"P{number}Key")}
            if names != set(model):
                results.put(f"seed {seed}, process {number}, step {steps}: listed {sorted(names ^ set(model))}")
                return
        steps += 1
    for name, text in model.items():
        if open(path(name)).read() != text:
            results.put(f"seed {seed}, process {number}: {name} differs at the end")
            return
    results.put(steps)


results = multiprocessing.Queue()
workers = [multiprocessing.Process(target=worker, args=(n, results)) for n in range(processes)]
for one in workers:
    one.start()
outcomes = [results.get(timeout=seconds + 60) for _ in workers]
for one in workers:
    one.join()
failures = [o for o in outcomes if isinstance(o, str)]
print("\n".join(failures) or f"stress: {sum(outcomes)} operations by {processes} processes, seed {seed}")
sys.exit(1 if failures else 0)
