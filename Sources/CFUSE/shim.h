// The low-level API of libfuse as one module, with functions for the macros that Swift cannot
// import, because they are not plain numbers. Nothing here makes a decision.
#ifndef PREFSFS_CFUSE_SHIM_H
#define PREFSFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>

// FUSE_ARGS_INIT, a macro.
static inline struct fuse_args prefsfs_fuse_args(int argc, char **argv) {
  struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
  return args;
}

// fuse_session_new, which is a macro from libfuse 3.17 on.
static inline struct fuse_session *prefsfs_fuse_session_new(
    struct fuse_args *args, const struct fuse_lowlevel_ops *operations, size_t size, void *data) {
  return fuse_session_new(args, operations, size, data);
}

#endif
