"""documents.py make|judge DIRECTORY [COUNT] [SEED]: random domains, and programs that read them.

`make` writes COUNT random domains as binary lists, NUMBER.list. Something else then writes each as
NUMBER.json, .plist, .env and .ini. `judge` has jq, plistlib, sh, a parser with the rules of
systemd's EnvironmentFile= and GKeyFile (keys, a program in DIRECTORY) read those, and prints what
they read otherwise than the domain says.
"""
import base64, datetime, json, pathlib, plistlib, random, re, subprocess, sys

ODD = list("\"\\$`'\n\t ;#=[]%!é日🎈\u2028")
CONTROLS = ["\x01", "\r", "\x7f", "\x0b", "\x0c", "\x1b", "\ufdd0", "\ufffe"]


def text(chance, odd, longest=8):
    return "".join(
        chance.choice(odd) if chance.random() < 0.4 else chance.choice("aBc_9$HOME-.x ")
        for _ in range(chance.randrange(longest)))


def value(chance, odd, depth=0):
    kinds = ["text", "text", "int", "real", "bool", "date", "data"] + ["list", "dict"] * (depth < 2)
    match chance.choice(kinds):
        case "text": return text(chance, odd, 20)
        case "int": return chance.choice([0, -1, 7, 2**63 - 1, -(2**62), 2**64 - 1])
        case "real": return chance.choice([0.5, -1.0, 1e300, 3.141592653589793])
        case "bool": return chance.random() < 0.5
        case "date":
            seconds = datetime.timedelta(seconds=chance.randrange(10**9))
            return datetime.datetime(2001, 1, 1) + seconds
        case "data": return bytes(chance.randrange(256) for _ in range(chance.randrange(6)))
        case "list":
            return [value(chance, odd, depth + 1) for _ in range(chance.randrange(4))]
        case "dict":
            return {text(chance, odd): value(chance, odd, depth + 1)
                    for _ in range(chance.randrange(4))}


def domains(count, seed):
    """Each random domain, and whether it has characters that XML cannot hold."""
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        hasControls = number % 2 == 1
        odd = ODD + (CONTROLS if hasControls else [])
        names = [text(chance, odd) for _ in range(8)] + ["General", "Encoding", "UID", "Name[de]"]
        keys = chance.sample(names, 6)
        yield number, {key: value(chance, odd) for key in keys}, hasControls


def plain(item):
    """What JSON has of a value."""
    if isinstance(item, dict): return {key: plain(part) for key, part in item.items()}
    if isinstance(item, list): return [plain(part) for part in item]
    if isinstance(item, datetime.datetime): return item.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(item, bytes): return base64.b64encode(item).decode()
    return item


def agrees(read, item):
    """Whether a text is that of a value."""
    item = plain(item)
    try:
        if isinstance(item, bool): return read == ("true" if item else "false")
        if isinstance(item, (dict, list)): return json.loads(read) == item
        if isinstance(item, float): return float(read) == item
    except ValueError:
        return False
    return read == str(item)


def systemd(text):
    """What EnvironmentFile= reads, by the rules of systemd.exec(5) and its parser."""
    found, rest = {}, text
    while rest:
        if rest[0] in " \t\r\n": rest = rest[1:]; continue
        if rest[0] in "#;":
            rest = rest[re.match(r"(?s)(?:\\.|[^\\\r\n])*[\r\n]?", rest).end():]
            continue
        name, _, rest = rest.partition("=")
        assert rest.startswith('"'), (name, rest[:20])
        read, at = "", 1
        while rest[at] != '"':
            if rest[at] == "\\":
                at += 1
                if rest[at] in '"\\`$': read += rest[at]
                elif rest[at] != "\n": read += "\\" + rest[at]
            else:
                read += rest[at]
            at += 1
        rest = rest[at + 1:]
        assert rest.startswith("\n"), (name, rest[:20])
        found[name] = read
    return found


def variables(domain):
    """The variables that a domain has."""
    named = {}
    for key in domain:
        name = re.sub(r"[^A-Za-z0-9_]", "_", key)
        named.setdefault("_" + name if name[:1].isdigit() else name, []).append(key)
    own = {"", "_", "UID"}
    return {name: domain[keys[0]] for name, keys in named.items()
            if len(keys) == 1 and name not in own}


def isName(key):
    name = re.fullmatch(r"(?s)([^=\[\]\n\0]+)(\[[A-Za-z0-9_.@-]*\])?", key)
    return bool(name) and not re.search(r"(?s)\A[#\s]|\s\Z", name.group(1), re.A)


def judge(directory, number, domain, hasControls, shell, groups):
    stem = directory / str(number)
    read = json.loads(stem.with_suffix(".json").read_text())
    if read != plain(domain): yield "json", read, plain(domain)
    if not hasControls:
        read = plistlib.loads(stem.with_suffix(".plist").read_bytes())
        if read != domain: yield "plist", read, domain
    found = systemd(stem.with_suffix(".env").read_bytes().decode())
    for name, item in variables(domain).items():
        odd = str(plain(item))
        if isinstance(item, (list, dict)): odd = json.dumps(plain(item), ensure_ascii=False)
        if re.search("[\x00-\x08\x0b-\x1f\x7f\ufdd0\ufffe]", odd):
            if name in found: yield "env holds", name, item
        elif name not in found or not agrees(found[name], item):
            yield "env", name, found.get(name), item
    if found.keys() - variables(domain).keys(): yield "env has more", found
    for name, item in found.items():
        if shell.get(name) != item: yield "sh", name, shell.get(name), item
    yield from judgeGroups(domain, groups)


def judgeGroups(domain, groups):
    expected = {"General": {}}
    for key, item in domain.items():
        if isinstance(item, dict):
            if key and not re.search("[\x00-\x1f\x7f\\[\\]]", key):
                expected.setdefault(key, {}).update(item)
        elif key not in expected["General"]:
            expected["General"][key] = item
    general = domain.get("General")
    clash = {key for key in general if not isinstance(domain.get(key, {}), dict)} if (
        isinstance(general, dict)) else set()
    for group, items in expected.items():
        for key, item in items.items():
            read = groups.get((group, key))
            if not isName(key) or group == "General" and (key in clash or key == "Encoding"):
                if read is not None and key != "Encoding": yield "ini holds", group, key, read
                continue
            if key == "Encoding" and read is None: continue
            first = item[0] if isinstance(item, list) and item else item
            if isinstance(first, str) and first[:1] in ("\x0b", "\x0c"): continue
            if read is None: yield "ini", group, key, item
            elif isinstance(item, list):
                if len(read) != len(item) or not all(map(agrees, read, item)):
                    yield "ini list", group, key, read, item
            elif not agrees(read, item): yield "ini", group, key, read, item


def main(what, directory, count=200, seed=1):
    directory, count = pathlib.Path(directory).resolve(), int(count)
    if what == "make":
        for number, domain, _ in domains(count, seed):
            with open(directory / f"{number}.list", "wb") as file:
                plistlib.dump(domain, file, fmt=plistlib.FMT_BINARY)
        return
    loop = """i=0; while [ $i -lt $1 ]; do
      (set -a; . ./$i.env; exec env -0 > $i.read); i=$((i+1)); done"""
    documents = [f"{number}.json" for number in range(count)]
    read = subprocess.check_output(["jq", "-s", "map(keys) | length"] + documents, cwd=directory)
    if int(read) != count: print("jq reads", read)
    subprocess.run(["sh", "-c", loop, "sh", str(count)], cwd=directory, check=True,
                   env={"PATH": "/usr/bin:/bin"})
    for number, domain, hasControls in domains(count, seed):
        entries = (directory / f"{number}.read").read_bytes().decode().split("\0")[:-1]
        shell = dict(entry.split("=", 1) for entry in entries)
        groups = read_groups(directory, number, domain)
        for problem in judge(directory, number, domain, hasControls, shell, groups):
            print(number, *map(repr, problem))


def read_groups(directory, number, domain):
    """What GKeyFile reads: a list where the domain has one."""
    groups = {}
    output = subprocess.check_output([directory / "keys", directory / f"{number}.ini"]).decode()
    for line in output.split("\1\1\n")[:-1]:
        group, key, string, *parts = line.split("\0")[:-1]
        members = domain.get(group)
        item = members.get(key) if isinstance(members, dict) and key in members else domain.get(key)
        groups[group, key] = parts if isinstance(item, list) else string
    return groups


main(*sys.argv[1:])
