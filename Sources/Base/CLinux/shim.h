// Linux calls that the Glibc module of Swift does not have, as one module. Nothing here makes a
// decision.
#ifndef PREFSFS_CLINUX_SHIM_H
#define PREFSFS_CLINUX_SHIM_H

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// prctl(2): names the calling thread. Swift cannot call prctl(2), because it is variadic.
static inline void prefsfs_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// EPOLLIN and EPOLL_CLOEXEC of epoll(7), which Swift imports as enumerations.
static const unsigned int prefsfs_epoll_in = EPOLLIN;
static const int prefsfs_epoll_cloexec = EPOLL_CLOEXEC;

// UTIME_OMIT of utimensat(2): leaves a time as it is.
static const long prefsfs_utime_omit = (1l << 30) - 2l;

// O_PATH of open(2): a descriptor that only refers to a file, without access to its contents.
// fcntl.h declares it for _GNU_SOURCE only.
static const int prefsfs_o_path = 010000000;

// Has the calling thread, and no other one, act as the user from here on: setresuid(2) of the C
// library would change every thread. Returns 0, or -1 with errno.
static inline int prefsfs_become(unsigned int user, unsigned int group) {
  if (syscall(SYS_setresgid, group, group, group) != 0) return -1;
  return (int)syscall(SYS_setresuid, user, user, user);
}

// Has the calling thread, and those that it starts from here on, access files with the rights of the
// user and of these groups: setfsuid(2) and setgroups(2), which the C library would call in every
// thread. Who the process is for others does not change. Returns 0, or -1 with errno.
static inline int prefsfs_access_as(unsigned int user, unsigned int group,
                                    const unsigned int *groups, size_t count) {
  if (syscall(SYS_setgroups, count, groups) != 0) return -1;
  syscall(SYS_setfsgid, group);
  syscall(SYS_setfsuid, user);
  // They return what was before, whether or not they have changed it.
  if ((unsigned int)syscall(SYS_setfsuid, (unsigned int)-1) == user) return 0;
  errno = EPERM;
  return -1;
}

// Has the calling thread access files with the rights of the user, of whom it keeps the groups, and
// returns the user before: setfsuid(2).
static inline unsigned int prefsfs_switch_access(unsigned int user) {
  return (unsigned int)syscall(SYS_setfsuid, user);
}

// Mounts a file system of the type at `point` in a mount namespace of its own, and opens the file
// for writing there: unshare(2) with CLONE_NEWNS, and setns(2) to return. Only root can do this.
// Returns the descriptor, or -1. The new namespace has copies of all other mounts; it ends with the
// call, so that they can be unmounted.
static inline int prefsfs_open_in_mount(const char *type, const char *point, const char *path) {
  int file = -1;
  int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  int root = open("/", 010000000 /* O_PATH */ | O_CLOEXEC);
  int place = open(".", 010000000 | O_CLOEXEC);
  if (home < 0 || root < 0 || place < 0) return -1;
  if (syscall(SYS_unshare, 0x20000) == 0) {
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount(type, point, type, 0, NULL) == 0)
      file = open(path, O_WRONLY | O_CLOEXEC);
    syscall(SYS_setns, home, 0x20000);
    // setns(2) has left the directory that is the root in a chroot.
    if (fchdir(root) != 0 || chroot(".") != 0 || fchdir(place) != 0) _exit(1);
  }
  close(home);
  close(root);
  close(place);
  return file;
}

// Has the file system say what it knows of the file now, whatever the kernel's caches have:
// AT_STATX_FORCE_SYNC and AT_EMPTY_PATH of statx(2). fstat(2) then says it.
static inline void prefsfs_refresh_status(int file) {
  unsigned char known[256];
  syscall(SYS_statx, file, "", 0x3000, 0x200 /* STATX_SIZE */, known);
}

// gettid(2), which glibc declares for _GNU_SOURCE only.
static inline int prefsfs_thread_id(void) { return (int)syscall(SYS_gettid); }

// Gives this process the usual classes of scheduling and of I/O, and every processor
// (sched_setscheduler(2), sched_setaffinity(2), ioprio_set(2)), as far as it may have them.
static inline void prefsfs_reset_scheduling(void) {
  unsigned char all[128];
  int other[8] = {0};
  memset(all, 0xff, sizeof all);
  syscall(SYS_sched_setscheduler, 0, 0, other);
  syscall(SYS_sched_setaffinity, 0, sizeof all, all);
  syscall(SYS_ioprio_set, 1, 0, 0);
}

// Whether a process has the number. For a thread that is not the first one of its process, tgkill(2)
// finds none. It sends no signal here.
static inline int prefsfs_is_process(int number) {
  return syscall(SYS_tgkill, number, number, 0) == 0 || errno != ESRCH;
}

// The flags of renameat2(2), which stdio.h declares for _GNU_SOURCE only.
static const unsigned int prefsfs_rename_noreplace = 1u << 0;
static const unsigned int prefsfs_rename_exchange = 1u << 1;

// close_range(2): closes every descriptor from `first` to `last`.
static inline void prefsfs_close_range(unsigned int first, unsigned int last) {
  syscall(SYS_close_range, first, last, 0);
}

// pipe2(2) with O_CLOEXEC, which unistd.h declares for _GNU_SOURCE only.
static inline int prefsfs_pipe(int ends[2]) {
  extern int pipe2(int[2], int);
  return pipe2(ends, O_CLOEXEC);
}

// Whether this is a set-uid program, or one with other rights than its caller (getauxval(3)).
static inline int prefsfs_is_secure(void) { return getauxval(AT_SECURE) != 0; }

// pidfd_open(2): a descriptor that can be read when the process has ended.
static inline int prefsfs_pidfd_open(pid_t process) {
  return (int)syscall(SYS_pidfd_open, process, 0);
}

// renameat2(2), which glibc declares for _GNU_SOURCE only.
static inline int prefsfs_renameat2(int old_directory, const char *old_path, int new_directory,
                                    const char *new_path, unsigned int flags) {
  return (int)syscall(SYS_renameat2, old_directory, old_path, new_directory, new_path, flags);
}

// SOCK_CLOEXEC and SOCK_NONBLOCK of socket(2), which Swift imports as an enumeration, and
// SO_PEERCRED of socket(7), as numbers.
static const int prefsfs_sock_cloexec = SOCK_CLOEXEC;
static const int prefsfs_sock_nonblock = SOCK_NONBLOCK;
static const int prefsfs_so_peercred = 17;

// struct ucred, the value of SO_PEERCRED; sys/socket.h declares it for _GNU_SOURCE only.
struct prefsfs_ucred {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

// accept4(2) with SOCK_CLOEXEC and SOCK_NONBLOCK; the address of the peer is not returned.
static inline int prefsfs_accept(int socket_) {
  return (int)syscall(SYS_accept4, socket_, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

// sendmsg(2) with a descriptor (SCM_RIGHTS). Swift cannot import the macros of control messages.
static inline ssize_t prefsfs_send_descriptor(int socket_, const void *bytes, size_t count,
                                              int descriptor) {
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
  } control = {0};
  struct iovec part = {(void *)bytes, count};
  struct msghdr message = {0};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  __builtin_memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket_, &message, MSG_NOSIGNAL);
}

// recvmsg(2) with descriptors (SCM_RIGHTS). If `*descriptor` is negative, it is set to the first
// descriptor that was received; the others are closed. If `descriptor` is NULL, none is received.
static inline ssize_t prefsfs_receive(int socket_, void *bytes, size_t count, int *descriptor) {
  union {
    char bytes[CMSG_SPACE(4 * sizeof(int))];
    struct cmsghdr header;
  } control;
  struct iovec part = {bytes, count};
  struct msghdr message = {0};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = descriptor ? control.bytes : NULL;
  message.msg_controllen = descriptor ? sizeof control.bytes : 0;
  ssize_t got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 || !descriptor) return got;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t number = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < number; i++) {
      int one;
      __builtin_memcpy(&one, CMSG_DATA(header) + i * sizeof one, sizeof one);
      if (*descriptor < 0) *descriptor = one; else close(one);
    }
  }
  return got;
}

// memfd_create(2) with MFD_CLOEXEC and MFD_ALLOW_SEALING: a file in memory that can be sealed.
static inline int prefsfs_memory_file(const char *name) {
  return (int)syscall(SYS_memfd_create, name, 3u /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
}
// fcntl(2), which is variadic, with F_ADD_SEALS.
static inline int prefsfs_seal(int descriptor, int seals) {
  return fcntl(descriptor, 1033, seals);
}
// fcntl(2) with F_GET_SEALS: whether the file has all of these seals.
static inline int prefsfs_is_sealed(int descriptor, int seals) {
  int present = fcntl(descriptor, 1034);
  return present >= 0 && (present & seals) == seals;
}
// fallocate(2) with FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE: gives the memory or disk space of
// a part of a file back. stdio.h declares it for _GNU_SOURCE only.
static inline int prefsfs_punch_hole(int descriptor, long offset, long count) {
  return (int)syscall(SYS_fallocate, descriptor, 3, offset, count);
}
// fallocate(2) with FALLOC_FL_KEEP_SIZE: has the file system set space aside for the first bytes.
static inline int prefsfs_reserve(int descriptor, long count) {
  return (int)syscall(SYS_fallocate, descriptor, 1, 0, count);
}

// A lock in memory that processes share, which the calling thread takes and holds until it ends.
// However it ends, the kernel notes that in the lock's first word before it closes the files of the
// process (exit_robust_list in kernel/futex/core.c of Linux). Takes 48 bytes at most.
static inline int prefsfs_hold(void *memory) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  int error = pthread_mutex_init((pthread_mutex_t *)memory, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return error ? error : pthread_mutex_lock((pthread_mutex_t *)memory);
}
// Whether a thread holds the lock: the word has its number, and not FUTEX_OWNER_DIED.
static inline int prefsfs_is_held(const void *memory) {
  const pthread_mutex_t *lock = (const pthread_mutex_t *)memory;
  unsigned int word = (unsigned int)__atomic_load_n(&lock->__data.__lock, __ATOMIC_ACQUIRE);
  return (word & 0x3fffffff) != 0 && (word & 0x40000000) == 0;
}

// socketpair(2): two ends that keep messages apart. They do not block.
static inline int prefsfs_packet_pair(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

// Sends {word, signal} to the socket when the process crashes; then the signal has its default
// effect.
// While a thread may be waiting in the kernel (`prefsfs_forbid_dumps`), no core dump is written:
// the kernel would wait for that thread first.
static inline unsigned int *prefsfs_crash_settings(void) {
  static unsigned int settings[3];  // The word, the socket, whether no dump is written.
  return settings;
}
static inline void prefsfs_forbid_dumps(int are_forbidden) {
  __atomic_store_n(&prefsfs_crash_settings()[2], (unsigned int)are_forbidden, __ATOMIC_SEQ_CST);
}
static inline void prefsfs_crash_handler(int number) {
  unsigned int message[2] = {prefsfs_crash_settings()[0], (unsigned int)number};
  send((int)prefsfs_crash_settings()[1], message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (__atomic_load_n(&prefsfs_crash_settings()[2], __ATOMIC_SEQ_CST))
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // The process must end here. Without this it would go on after a signal of kill(2), the trap of
  // a debugger, and a SIGBUS that only warns of bad memory: the next instruction does not make such
  // a signal again.
  raise(number);
}
static inline void prefsfs_tell_of_crashes(int socket_, unsigned int word) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT};
  struct sigaction action = {0};
  prefsfs_crash_settings()[0] = word;
  prefsfs_crash_settings()[1] = (unsigned int)socket_;
  action.sa_handler = prefsfs_crash_handler;
  action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
  for (unsigned int i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sigaction(numbers[i], &action, NULL);
}

// What a terminal is given back when this process ends: its settings and some bytes. A process that
// crashes gives them back too; then the signal has its default effect.
struct prefsfs_terminal {
  int descriptor;  // -1: there is nothing to give back.
  unsigned int count;
  char bytes[256];
  struct termios settings;
};
static inline struct prefsfs_terminal *prefsfs_terminal(void) {
  static struct prefsfs_terminal saved = {.descriptor = -1};
  return &saved;
}
static inline void prefsfs_restore_terminal(void) {
  struct prefsfs_terminal *saved = prefsfs_terminal();
  int descriptor = __atomic_exchange_n(&saved->descriptor, -1, __ATOMIC_SEQ_CST);
  if (descriptor < 0) return;
  ssize_t written = write(descriptor, saved->bytes, saved->count);
  (void)written;
  tcsetattr(descriptor, TCSANOW, &saved->settings);
}
static inline void prefsfs_restore_handler(int number) {
  prefsfs_restore_terminal();
  raise(number);
}
static inline void prefsfs_restore_after_crashes(void) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT};
  struct sigaction action = {0};
  action.sa_handler = prefsfs_restore_handler;
  action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
  for (unsigned int i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sigaction(numbers[i], &action, NULL);
}
// ioctl(2), which Swift cannot call: how many rows and columns a terminal has. Returns 0, or -1.
static inline int prefsfs_terminal_size(int descriptor, unsigned short *rows,
                                        unsigned short *columns) {
  struct winsize size = {0};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return -1;
  *rows = size.ws_row;
  *columns = size.ws_col;
  return 0;
}

// memmem(3), which string.h declares for _GNU_SOURCE only: where a text is in another; -1: nowhere.
static inline long prefsfs_find_bytes(const void *all, size_t count, const void *part, size_t size) {
  extern void *memmem(const void *, size_t, const void *, size_t);
  const char *found = memmem(all, count, part, size);
  return found ? found - (const char *)all : -1;
}

// unshare(2): gives the calling thread a descriptor table of its own, with all present descriptors.
static inline int prefsfs_unshare_descriptors(void) {
  return (int)syscall(SYS_unshare, 0x400 /* CLONE_FILES */);
}

// Replaces `device`, a descriptor of a FUSE connection, with a second device of the same connection
// under the same number (FUSE_DEV_IOC_CLONE, linux/fuse.h). Returns 0, or -1.
static inline int prefsfs_clone_device(int device) {
  int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  unsigned int number = (unsigned int)device;
  if (clone < 0) return -1;
  int status = ioctl(clone, _IOR(229, 0, unsigned int), &number);
  if (status == 0) status = dup2(clone, device) < 0 ? -1 : fcntl(device, F_SETFD, FD_CLOEXEC);
  close(clone);
  return status;
}

// posix_spawn(3): closes every descriptor from `first` on in the child. spawn.h declares the
// function for _GNU_SOURCE only.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
static inline int prefsfs_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

// strptime(3), which the Glibc module does not have. Returns whether all of the text is a time in
// the format.
static inline int prefsfs_parse_time(const char *text, const char *format, struct tm *fields) {
  extern char *strptime(const char *, const char *, struct tm *);
  const char *end = strptime(text, format, fields);
  return end != NULL && *end == 0;
}

// newlocale(3) for all categories; its mask is a macro. The result may be NULL.
static inline void *prefsfs_new_locale(const char *name) {
  return (void *)newlocale(LC_ALL_MASK, name, (locale_t)0);
}

// nl_langinfo_l(3): its type of items is not imported, and some items are macros.
static inline const char *prefsfs_locale_text(void *locale, long item) {
  return nl_langinfo_l((nl_item)item, (locale_t)locale);
}

static inline void prefsfs_free_locale(void *locale) { freelocale((locale_t)locale); }

enum {
  prefsfs_currency = __CURRENCY_SYMBOL,
  prefsfs_international_currency = __INT_CURR_SYMBOL,
  prefsfs_radix = __DECIMAL_POINT,
  prefsfs_thousands = __THOUSANDS_SEP,
  prefsfs_language_name = _NL_IDENTIFICATION_LANGUAGE,
  prefsfs_language_code = _NL_ADDRESS_LANG_AB,
  prefsfs_first_day = DAY_1,
  prefsfs_first_short_day = ABDAY_1,
  prefsfs_first_month = MON_1,
  prefsfs_first_short_month = ABMON_1,
  prefsfs_morning = AM_STR,
  prefsfs_afternoon = PM_STR,
  prefsfs_date_format = D_FMT,
  prefsfs_time_format = T_FMT,
  prefsfs_date_time_format = D_T_FMT
};

#endif
