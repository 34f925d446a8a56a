"""mounts.py ONE OTHER SECONDS [SEED]: two processes create, rename, remove and write the same few
names of one domain at once. ONE and OTHER are the domain's directories in two mounts of a store,
one for each process. What a call finds depends on chance, but every call must return, and in the
end both mounts must show the same."""
import multiprocessing, os, random, sys, time

places, seconds = sys.argv[1:3], float(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
print("seed", seed, flush=True)


def worker(number, results):
    rng, slowest, steps = random.Random(seed + number), 0.0, 0
    end = time.time() + seconds
    while time.time() < end:
        name, other = (f"{places[number]}/Shared{rng.randrange(6)}" for _ in range(2))
        start = time.time()
        try:
            kind = rng.randrange(5)
            if kind == 0:
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            elif kind == 1:
                os.rename(name, other)
            elif kind == 2:
                os.unlink(name)
            elif kind == 3:
                with open(name, "w") as file:
                    file.write(f"{steps}\n")
            else:
                os.listdir(places[number])
                with open(name) as file:
                    file.read()
        except OSError as error:
            if error.errno not in (1, 2, 17, 22, 116):
                results.put(f"{number}: {name}: {error}")
                return
        slowest = max(slowest, time.time() - start)
        steps += 1
    results.put((steps, slowest))


results = multiprocessing.Queue()
workers = [multiprocessing.Process(target=worker, args=(n, results)) for n in range(2)]
for one in workers:
    one.start()
found = []
for one in workers:
    try:
        found.append(results.get(timeout=seconds + 20))
    except Exception:
        found.append("a worker hangs")
for one in workers:
    one.kill() if "a worker hangs" in found else one.join()
print(found)
if any(isinstance(one, str) for one in found):
    sys.exit(1)
time.sleep(1.5)  # removed names are hidden for a second
shown = []
for place in places:
    texts = {}
    for name in sorted(os.listdir(place)):
        if name.startswith("Shared"):
            texts[name] = open(f"{place}/{name}").read()
    shown.append(texts)
if shown[0] != shown[1]:
    sys.exit(f"they differ: {shown}")
