// The floor of what a mount can cost: a file system with libfuse that has the file /one/Key, 5,000
// files in /many, 1,000 in /some, and any file in the directories /domain0, /domain1 and so on. It
// does nothing but answer the kernel, by the same rules as prefsfs: no open, no flush, everything
// cached, listings with attributes, set-uid bits dropped without being asked, one thread that polls
// for 150 us before it sleeps. So it gets the same requests.
// `scripts/bench` compiles it.
//
//   floor MOUNTPOINT [JOURNAL]
//
// With JOURNAL it has an owner, as a mount of prefsfs has prefsd: a second process that is asked
// over a socket for each WRITE, appends a record to that file, and answers. A message has 153
// bytes, a record 150, an answer 149, as for a short value. Both processes poll before they sleep.
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// The nodes: directories, the file, and the other files, which have one text, and the numbers from
// `files` on in each directory.
enum { root = 1, one = 2, file = 3, many = 4, some = 5, files = 10000 };
// The node of /domainN is domains + N; that of its file has twice the number.
static const fuse_ino_t domains = 1ull << 32;
static const double forever = 1e7;
static char text[4096] = "value\n";
static size_t size = 6;
static struct timespec start;
// The two ends of the socket between the file system and its owner; 0: there is no owner.
static int links[2];

// How many files /many and /some have.
static int count_in(fuse_ino_t node) { return node == many ? 5000 : node == some ? 1000 : 0; }

static int is_file(fuse_ino_t node) {
  return node == file || (node >= files && node < domains) || node >= 2 * domains;
}

static struct stat status(fuse_ino_t node) {
  struct stat status = {.st_ino = node, .st_nlink = 1, .st_uid = getuid(), .st_gid = getgid()};
  status.st_mode = is_file(node) ? S_IFREG | 0600 : S_IFDIR | 0700;
  status.st_size = node == file ? (off_t)size : is_file(node) ? 6 : 0;
  status.st_mtim = start;
  if (node == file) clock_gettime(CLOCK_REALTIME, &status.st_mtim);
  return status;
}

static struct fuse_entry_param entry_of(fuse_ino_t node) {
  struct fuse_entry_param entry = {.attr_timeout = forever, .entry_timeout = forever};
  entry.ino = node;
  if (node) entry.attr = status(node);
  return entry;
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
  fuse_ino_t node = 0;
  if (parent == root && strcmp(name, "one") == 0) node = one;
  if (parent == root && strcmp(name, "many") == 0) node = many;
  if (parent == root && strcmp(name, "some") == 0) node = some;
  if (parent == one && strcmp(name, "Key") == 0) node = file;
  if (count_in(parent) && strncmp(name, "Key", 3) == 0) node = files * parent + atoi(name + 3);
  if (parent == root && strncmp(name, "domain", 6) == 0) node = domains + atoi(name + 6);
  if (parent >= domains) node = 2 * parent;
  struct fuse_entry_param entry = entry_of(node);
  fuse_reply_entry(request, &entry);
}

static void opendir_(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  info->cache_readdir = info->keep_cache = 1;
  fuse_reply_open(request, info);
}

static void readdirplus(fuse_req_t request, fuse_ino_t node, size_t room, off_t offset,
                        struct fuse_file_info *info) {
  char *buffer = malloc(room), name[16];
  size_t used = 0;
  for (int i = (int)offset + 1; i <= count_in(node); i++) {
    snprintf(name, sizeof name, "Key%d", i);
    struct fuse_entry_param entry = entry_of(files * node + i);
    size_t taken =
        fuse_add_direntry_plus(request, buffer + used, room - used, name, &entry, i);
    if (taken > room - used) break;
    used += taken;
  }
  fuse_reply_buf(request, buffer, used);
  free(buffer);
}

static void getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  struct stat found = status(node);
  fuse_reply_attr(request, &found, forever);
}

static void setattr(fuse_req_t request, fuse_ino_t node, struct stat *wanted, int which,
                    struct fuse_file_info *info) {
  if (which & FUSE_SET_ATTR_SIZE) size = (size_t)wanted->st_size % sizeof text;
  getattr(request, node, info);
}

static void open_file(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  fuse_reply_err(request, ENOSYS);
}

static void read_file(fuse_req_t request, fuse_ino_t node, size_t count, off_t offset,
                      struct fuse_file_info *info) {
  size_t length = node == file ? size : 6, from = (size_t)offset < length ? (size_t)offset : length;
  fuse_reply_buf(request, text + from, count < length - from ? count : length - from);
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

// Receives a message from the socket: polls for 200 us, then sleeps.
static ssize_t next_message(int link, char *bytes, size_t room) {
  for (double begun = microseconds();;) {
    int flags = microseconds() - begun < 200 ? MSG_DONTWAIT : 0;
    ssize_t count = recv(link, bytes, room, flags);
    if (count >= 0 || errno != EAGAIN) return count;
    sched_yield();
  }
}

static void own(const char *journal) {
  char bytes[4096];
  int file = open(journal, O_WRONLY | O_CREAT | O_APPEND, 0600);
  while (next_message(links[1], bytes, sizeof bytes) > 0)
    if (write(file, bytes, 150) != 150 || send(links[1], bytes, 149, 0) != 149) break;
  _exit(0);
}

static int ask_owner(void) {
  char bytes[4096] = {1};
  return send(links[0], bytes, 153, 0) == 153 && next_message(links[0], bytes, sizeof bytes) > 0;
}

static void write_file(fuse_req_t request, fuse_ino_t node, const char *bytes, size_t count,
                       off_t offset, struct fuse_file_info *info) {
  if ((size_t)offset + count > sizeof text) return (void)fuse_reply_err(request, EFBIG);
  if (links[0] && !ask_owner()) return (void)fuse_reply_err(request, EIO);
  memcpy(text + offset, bytes, count);
  size = (size_t)offset + count;
  fuse_reply_write(request, count);
}

static void getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t room) {
  fuse_reply_err(request, EOPNOTSUPP);
}

static void begin(void *data, struct fuse_conn_info *connection) {
  connection->want &= ~(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS_AUTO);
}

static const struct fuse_lowlevel_ops operations = {
    .init = begin, .lookup = lookup, .getattr = getattr, .setattr = setattr, .open = open_file,
    .read = read_file, .write = write_file, .getxattr = getxattr, .opendir = opendir_,
    .readdirplus = readdirplus};

// The flag to add to the answer to FUSE_INIT, or 0: FUSE_HANDLE_KILLPRIV_V2, which libfuse 3.14
// does not ask for. Without it, an overwrite makes a request more.
static uint32_t wanted;

static ssize_t receive(int device, void *message, size_t room, void *data) {
  ssize_t count = read(device, message, room);
  const uint32_t *words = message;
  if (count >= 56 && words[1] == 26) wanted = words[13] & 1u << 28;
  return count;
}

static ssize_t reply(int device, struct iovec *parts, int count, void *data) {
  if (wanted && count == 2) ((uint32_t *)parts[1].iov_base)[3] |= wanted;
  wanted = 0;
  return writev(device, parts, count);
}

static const struct fuse_custom_io device_calls = {.read = receive, .writev = reply};

static void serve(struct fuse_session *session) {
  struct pollfd device = {.fd = fuse_session_fd(session), .events = POLLIN};
  fcntl(device.fd, F_SETFL, fcntl(device.fd, F_GETFL) | O_NONBLOCK);
  struct fuse_buf message = {0};
  double last = microseconds();
  while (!fuse_session_exited(session)) {
    int count = fuse_session_receive_buf(session, &message);
    if (count > 0) {
      fuse_session_process_buf(session, &message);
      last = microseconds();
    } else if (count == -EAGAIN) {
      if (microseconds() - last > 150) poll(&device, 1, -1);
    } else if (count != -EINTR) {
      return;
    }
  }
}

int main(int count, char **words) {
  char *options[] = {words[0], "-odefault_permissions,fsname=floor"};
  struct fuse_args arguments = FUSE_ARGS_INIT(2, options);
  if (count != 2 && count != 3) return 2;
  clock_gettime(CLOCK_REALTIME, &start);
  struct fuse_session *session =
      fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (!session || fuse_session_mount(session, words[1]) != 0) return 1;
  int device = fuse_session_fd(session);
  if (fuse_session_custom_io(session, &device_calls, device) != 0 || daemon(0, 0) != 0) return 1;
  if (count == 3) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, links) != 0) return 1;
    pid_t owner = fork();
    if (owner < 0) return 1;
    if (owner == 0) {
      close(device);
      close(links[0]);
      own(words[2]);
    }
    close(links[1]);
  }
  serve(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
}
