// Linux calls that the Glibc module leaves out, as one module. Nothing here decides anything.
#ifndef PREFSFS_CLINUX_SHIM_H
#define PREFSFS_CLINUX_SHIM_H

#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

// prctl(2) is variadic, which Swift cannot call.
static inline void prefsfs_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// utimensat(2): leave that time as it is.
static const long prefsfs_utime_omit = (1l << 30) - 2l;

// open(2): a descriptor that only names a place; fcntl.h declares it for _GNU_SOURCE only.
static const int prefsfs_o_path = 010000000;

// makedev(3), a macro.
static inline unsigned long prefsfs_device(unsigned int major_, unsigned int minor_) {
  return makedev(major_, minor_);
}

// gettid(2), which glibc has for _GNU_SOURCE only.
static inline int prefsfs_thread_id(void) { return (int)syscall(SYS_gettid); }

// renameat2(2)'s flags, which stdio.h declares for _GNU_SOURCE only.
static const unsigned int prefsfs_rename_noreplace = 1u << 0;
static const unsigned int prefsfs_rename_exchange = 1u << 1;

// close_range(2): every descriptor from the number on.
static inline int prefsfs_close_from(unsigned int first) {
  return (int)syscall(SYS_close_range, first, ~0u, 0);
}

static inline int prefsfs_renameat2(int old_directory, const char *old_path, int new_directory,
                                    const char *new_path, unsigned int flags) {
  return (int)syscall(SYS_renameat2, old_directory, old_path, new_directory, new_path, flags);
}

#endif
