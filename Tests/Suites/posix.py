"""posix.py MOUNT: checks what POSIX asks of open, rename, unlink, mkdir, chmod, truncate and
utimensat, as pjdfstest does, as far as it applies to a domain, which is a flat directory of files.
Left out, each with its reason:
  hard links between names        a preference has one name (EPERM)
  symbolic links, FIFOs, devices  no preference is such a file (EOPNOTSUPP, EPERM)
  chown to others, set-uid        a preference belongs to the user of the mount
  directories in directories      a domain holds files only (EPERM)
  sparse files, large offsets     a value has at most 16 MiB (EFBIG)
  access times                    shown as the time of modification
  rename of types                 a key keeps its type (EPERM if the text is not of it)"""
import errno, os, stat, sys

mount = sys.argv[1]
domain = mount + "/posix"
cases, failed = 0, 0


def expect(number, what, body):
    global cases, failed
    cases += 1
    try:
        body()
        got = 0
    except OSError as error:
        got = error.errno
    if got != number:
        failed += 1
        print(f"not ok: {what}: {errno.errorcode.get(got, got)}, not {errno.errorcode.get(number, number)}")


def same(what, found, wanted):
    global cases, failed
    cases += 1
    if found != wanted:
        failed += 1
        print(f"not ok: {what}: {found!r}, not {wanted!r}")


def put(name, text, flags=os.O_TRUNC):
    fd = os.open(f"{domain}/{name}", os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(fd, text)
    os.close(fd)


def get(name):
    with open(f"{domain}/{name}", "rb") as file:
        return file.read()


def path(name):
    return f"{domain}/{name}"


os.mkdir(domain)
put("a", b"first\n")
before = os.stat(path("a"))
# open(2)
expect(errno.EEXIST, "O_CREAT|O_EXCL of a file", lambda: os.open(path("a"), os.O_CREAT | os.O_EXCL))
expect(errno.ENOENT, "open of a missing name", lambda: os.open(path("none"), os.O_RDONLY))
expect(errno.ENOTDIR, "a file as a directory", lambda: os.open(path("a/b"), os.O_RDONLY))
expect(errno.EISDIR, "a directory for writing", lambda: os.open(domain, os.O_WRONLY))
expect(errno.ENOTDIR, "O_DIRECTORY of a file", lambda: os.open(path("a"), os.O_DIRECTORY))
expect(errno.ENAMETOOLONG, "a name of 256 bytes", lambda: put("n" * 256, b""))
expect(0, "a name of 255 bytes", lambda: put("n" * 255, b"x"))
expect(0, "unlink of it", lambda: os.unlink(path("n" * 255)))
expect(errno.EILSEQ, "a name that is not UTF-8", lambda: os.stat(os.fsencode(domain) + b"/\xff"))
# stat(2)
same("type and links", (stat.S_ISREG(before.st_mode), before.st_nlink), (True, 1))
same("size", before.st_size, 6)
# rename(2)
expect(errno.ENOENT, "rename of a missing name", lambda: os.rename(path("none"), path("b")))
expect(0, "rename to itself", lambda: os.rename(path("a"), path("a")))
expect(0, "rename to a new name", lambda: os.rename(path("a"), path("b")))
same("the inode number after a rename", os.stat(path("b")).st_ino, before.st_ino)
expect(errno.ENOENT, "stat of the old name", lambda: os.stat(path("a")))
put("c", b"second\n")
held = os.open(path("c"), os.O_RDONLY)
expect(0, "rename over a file", lambda: os.rename(path("b"), path("c")))
same("the text after a rename", get("c"), b"first\n")
same("the text of the replaced file, which is still open", os.read(held, 100), b"second\n")
os.close(held)
expect(errno.ENOTDIR, "a directory over a file", lambda: os.rename(domain, path("c/d")))
expect(errno.EISDIR, "unlink of a directory", lambda: os.unlink(domain))
# chmod(2), utimensat(2), truncate(2)
expect(0, "chmod", lambda: os.chmod(path("c"), 0o640))
same("the mode after chmod", stat.S_IMODE(os.stat(path("c")).st_mode), 0o640)
expect(0, "utimensat", lambda: os.utime(path("c"), ns=(1, 1_234_567_890_000_000_007)))
same("the time after utimensat", os.stat(path("c")).st_mtime_ns, 1_234_567_890_000_000_007)
expect(0, "a write", lambda: put("c", b"third\n"))
same("a write moves the time", os.stat(path("c")).st_mtime_ns > 1_234_567_890_000_000_007, True)
expect(0, "truncate", lambda: os.truncate(path("c"), 2))
same("the text after truncate", get("c"), b"th")
expect(errno.EINVAL, "truncate below 0", lambda: os.truncate(path("c"), -1))
expect(errno.EFBIG, "truncate to a terabyte", lambda: os.truncate(path("c"), 1 << 40))
# unlink(2)
held = os.open(path("c"), os.O_RDWR)
expect(0, "unlink", lambda: os.unlink(path("c")))
expect(errno.ENOENT, "unlink of a removed name", lambda: os.unlink(path("c")))
same("the text of a removed file that is open", os.pread(held, 100, 0), b"th")
expect(0, "a write to a removed file that is open", lambda: os.pwrite(held, b"xy", 0))
expect(0, "fstat of a removed file", lambda: os.fstat(held))
os.close(held)
# O_APPEND
put("log", b"1\n")
put("log", b"2\n", os.O_APPEND)
same("the text after O_APPEND", get("log"), b"1\n2\n")
# mkdir(2), rmdir(2)
expect(errno.EEXIST, "mkdir of a domain", lambda: os.mkdir(domain))
expect(errno.EPERM, "mkdir in a domain", lambda: os.mkdir(path("folder")))
expect(errno.ENOTEMPTY, "rmdir of a full domain", lambda: os.rmdir(domain))
expect(errno.ENOTDIR, "rmdir of a file", lambda: os.rmdir(path("log")))
expect(errno.EPERM, "a file at the root", lambda: os.open(mount + "/file", os.O_CREAT | os.O_WRONLY))
os.unlink(path("log"))
expect(0, "rmdir of an empty domain", lambda: os.rmdir(domain))
print(f"posix: {cases} cases, {failed} failed")
sys.exit(1 if failed else 0)
