// The preferences of a mount as a GSettings backend sees them: paths of keys, and values of types.
//
// A path is a domain and a key: /org/gnome/desktop/interface/color-scheme is the key color-scheme
// of the domain org.gnome.desktop.interface. What a key's file has is kept in memory, if the thread
// of `prefs_store_watch` watches its domain, until an event says that it has changed.
//
// Threads: all functions may be called by any thread. Locks: `writing`, held over a write, and
// while the watching thread compares what it has read with what is known, so that a program is not
// told of its own change twice; inside of it `lock`, held for a look. Under neither of them the
// caller's code runs. A call that reads or writes a file waits for the mount: 5 s, where its owner
// does not answer.
//
// Half-broken states: without a mount, and with one whose driver is gone, nothing is known, and
// nothing can be written. After a write that the owner has not answered in 5 s, writes fail at once
// until it answers again. A child of fork(2) has no watching thread: it keeps nothing in memory.
#pragma once

#include <glib.h>

typedef struct PrefsStore PrefsStore;

// Called, by the watching thread and without a lock, when the value of a key, or whether it can be
// written, is different from what was last known.
typedef struct {
  void (*changed)(const char *key, gpointer data);
  void (*writable_changed)(const char *key, gpointer data);
} PrefsStoreObserver;

PrefsStore *prefs_store_new(PrefsStoreObserver observer, gpointer data);

// Returns the value that counts, a new reference; NULL if there is none, or none of the type.
GVariant *prefs_store_read(PrefsStore *store, const char *key, const GVariantType *type);

// The same, of what the user has set, whatever is forced.
GVariant *prefs_store_read_user(PrefsStore *store, const char *key, const GVariantType *type);

// The same, of what would count if the user had set nothing.
GVariant *prefs_store_read_default(PrefsStore *store, const char *key, const GVariantType *type);

// Whether the key can be written.
gboolean prefs_store_is_writable(PrefsStore *store, const char *key);

// Sets the keys, and removes those whose value is NULL, in one transaction. The values are not
// consumed. Returns whether it was made.
gboolean prefs_store_apply(
    PrefsStore *store, guint count, const char *const *keys, GVariant *const *values);

// Returns when what was written before is on the disk.
void prefs_store_sync(PrefsStore *store);

// Begins to watch the keys right below a path, such as /org/gnome/desktop/interface/, for the life
// of the process. Waits for nothing.
void prefs_store_watch(PrefsStore *store, const char *path);
