"""fsx.py FILE SECONDS [SEED]: compares random reads, writes, truncations and mappings of one file
with a model in memory, as fsx (Apple, NeXT) does. FILE is a key of type data, or any file of
another file system. It has FSX_LARGEST bytes at most, 262144 unless set. Prints the seed, and on a
difference the operations that led to it."""
import mmap, os, random, sys, time

path, seconds = sys.argv[1], float(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
rng = random.Random(seed)
LARGEST = int(os.environ.get("FSX_LARGEST", 1 << 18))
model, done = bytearray(), []


def check(fd, what):
    size = os.fstat(fd).st_size
    found = os.pread(fd, LARGEST + 1, 0)
    if size != len(model) or found != bytes(model):
        at = next((i for i, (a, b) in enumerate(zip(found, model)) if a != b), min(len(found), len(model)))
        print(f"seed {seed}: after {what}: size {size}, model {len(model)}, differs at {at}")
        print("\n".join(done[-20:]))
        sys.exit(1)


def step(fd):
    kind = rng.choice(["read", "write", "write", "append", "truncate", "map", "mapwrite", "reopen", "fsync"])
    offset, count = rng.randrange(LARGEST), rng.randrange(1, 1 << 14)
    if kind == "write":
        offset = min(offset, len(model) + rng.randrange(4096))
        data = rng.randbytes(min(count, LARGEST - offset))
        model.extend(bytes(max(0, offset - len(model))))
        model[offset:offset + len(data)] = data
        os.pwrite(fd, data, offset)
    elif kind == "append" and len(model) + count < LARGEST:
        data = rng.randbytes(count)
        other = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(other, data)
        os.close(other)
        model.extend(data)
    elif kind == "truncate":
        size = rng.choice([0, len(model) // 2, min(LARGEST, len(model) + 777), rng.randrange(LARGEST)])
        os.ftruncate(fd, size)
        del model[size:]
        model.extend(bytes(size - len(model)))
    elif kind == "map" and model:
        with mmap.mmap(fd, len(model), prot=mmap.PROT_READ) as m:
            if m[:] != bytes(model):
                check(fd, "mapped read")
    elif kind == "mapwrite" and model:
        offset = rng.randrange(len(model))
        data = rng.randbytes(min(count, len(model) - offset))
        with mmap.mmap(fd, len(model)) as m:
            m[offset:offset + len(data)] = data
            m.flush()
        model[offset:offset + len(data)] = data
    elif kind == "fsync":
        os.fsync(fd)
    done.append(f"{kind} at {offset}, {count}; size {len(model)}")
    check(fd, kind)
    if kind == "reopen":
        os.close(fd)
        fd = os.open(path, os.O_RDWR)
        check(fd, kind)
    return fd


fd, end, steps = os.open(path, os.O_RDWR), time.time() + seconds, 0
os.ftruncate(fd, 0)
os.pwrite(fd, b"\xff", 0)
model = bytearray(b"\xff")
while time.time() < end:
    fd = step(fd)
    steps += 1
print(f"fsx: {steps} operations, seed {seed}")
