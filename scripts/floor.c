// The floor of what a mount can cost: a file system with libfuse that has one file, /one/Key, and
// does nothing but answer the kernel, by the same rules as prefsfs: no open, no flush, everything
// cached, one thread that polls for 150 us before it sleeps. `scripts/bench` compiles it.
//
//   floor MOUNTPOINT
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { root = 1, directory = 2, file = 3 };
static const double forever = 1e7;
static char text[4096] = "value\n";
static size_t size = 6;

static struct stat status(fuse_ino_t node) {
  struct stat status = {.st_ino = node, .st_nlink = 1, .st_uid = getuid(), .st_gid = getgid()};
  status.st_mode = node == file ? S_IFREG | 0600 : S_IFDIR | 0700;
  status.st_size = node == file ? (off_t)size : 0;
  clock_gettime(CLOCK_REALTIME, &status.st_mtim);
  return status;
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
  struct fuse_entry_param entry = {.attr_timeout = forever, .entry_timeout = forever};
  if (parent == root && strcmp(name, "one") == 0) entry.ino = directory;
  if (parent == directory && strcmp(name, "Key") == 0) entry.ino = file;
  if (entry.ino) entry.attr = status(entry.ino);
  fuse_reply_entry(request, &entry);
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
  size_t start = (size_t)offset < size ? (size_t)offset : size;
  fuse_reply_buf(request, text + start, count < size - start ? count : size - start);
}

static void write_file(fuse_req_t request, fuse_ino_t node, const char *bytes, size_t count,
                       off_t offset, struct fuse_file_info *info) {
  if ((size_t)offset + count > sizeof text) return (void)fuse_reply_err(request, EFBIG);
  memcpy(text + offset, bytes, count);
  size = (size_t)offset + count;
  fuse_reply_write(request, count);
}

static void getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t room) {
  fuse_reply_err(request, EOPNOTSUPP);
}

static void begin(void *data, struct fuse_conn_info *connection) {
  connection->want &= ~FUSE_CAP_ATOMIC_O_TRUNC;
}

static const struct fuse_lowlevel_ops operations = {
    .init = begin, .lookup = lookup, .getattr = getattr, .setattr = setattr, .open = open_file,
    .read = read_file, .write = write_file, .getxattr = getxattr};

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

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
  if (count != 2) return 2;
  struct fuse_session *session =
      fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (!session || fuse_session_mount(session, words[1]) != 0 || daemon(0, 0) != 0) return 1;
  serve(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
}
