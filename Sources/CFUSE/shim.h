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

#endif
