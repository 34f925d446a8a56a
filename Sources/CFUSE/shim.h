// libfuse's low-level API as one module, and twins of what Swift cannot import: macros that
// are not plain numbers. Nothing here decides anything.
#ifndef PREFSFS_CFUSE_SHIM_H
#define PREFSFS_CFUSE_SHIM_H

#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>

static inline struct fuse_args prefsfs_fuse_args(int argc, char **argv) {
  struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
  return args;
}

#endif
