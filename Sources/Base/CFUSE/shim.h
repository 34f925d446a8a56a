// The low-level API of libfuse as one module, with a function for a macro that Swift cannot import,
// because it is not a plain number. Nothing here makes a decision.
#ifndef PREFSFS_CFUSE_SHIM_H
#define PREFSFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>

// fuse_session_new, which is a macro from libfuse 3.17 on.
static inline struct fuse_session *prefsfs_fuse_session_new(
    struct fuse_args *args, const struct fuse_lowlevel_ops *operations, size_t size, void *data) {
  return fuse_session_new(args, operations, size, data);
}

#endif
