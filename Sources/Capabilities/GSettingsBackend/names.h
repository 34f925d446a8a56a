// The names that paths of GSettings have in a mount, and where the mount is. No function keeps a
// state; each may be called by any thread.
#pragma once

#include <glib.h>

// Returns the name of the directory for the path of a key, or of keys (with a slash at its end):
// its components with dots between them. NULL if no domain can have the name, e.g. one over 200
// bytes.
char *prefs_names_directory(const char *path);

// Returns the name of the file for the last component of a key's path; NULL if it has none.
char *prefs_names_file(const char *key);

// Returns the path of the key that a file of a directory stands for; NULL: it stands for no key.
char *prefs_names_key(const char *path, const char *file);

// Returns the mount point: $PREFSFS_MOUNT, or else preferences in the user's runtime directory, or
// else ~/Preferences, whichever is a mount of prefsfs; NULL if none is. Reads /proc/self/mountinfo
// and symbolic links, and asks no file system.
char *prefs_names_mount(void);
