#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "names.h"
#include "value.h"

enum {
  MOST_BYTES = 16 << 20,      // of a file: more is no value
  TRUNCATED_MICROSECONDS = 60000,
  PROBE_MILLISECONDS = 1000,  // between two checks whether the owner answers again
  DOMAIN_EVENTS = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR,
  OWN_EVENTS = IN_DELETE_SELF | IN_MOVE_SELF,
  KEY_EVENTS = DOMAIN_EVENTS | OWN_EVENTS | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB,
};

// What is known of a key.
typedef struct {
  GBytes *text;     // what its file has; NULL: there is none, or this process has written `value`
  GVariant *value;  // that as the type that was asked for last; NULL: not asked for, or none
  gboolean is_there, is_writable, has_complained;
} Entry;

// The keys right below a path.
typedef struct {
  char *name;           // of the directory; NULL: there can be none
  int watch;            // of inotify; -1: the directory is not there
  gboolean is_watched;  // whether an event comes for each change, so that entries may be used
  GHashTable *entries;  // by path of the key
} Directory;

struct PrefsStore {
  PrefsStoreObserver observer;
  gpointer data;
  int notify, wake, mounts, root_watch;  // the watching thread's
  GMutex writing, lock;
  // All else is guarded by `lock`.
  char *root;               // the mount point; NULL: there is none, or its driver is gone
  GHashTable *directories;  // by path, with a slash at its end
  guint64 events;           // raised by each event
  gint64 silent_since;      // when the owner did not answer a write; 0: it answers
  gboolean is_forked, has_thread, has_warned, is_lost;
};

static PrefsStore *shared;  // for pthread_atfork(3): a process has one

// MARK: What is known

static void entry_clear(Entry *entry) {
  g_clear_pointer(&entry->text, g_bytes_unref);
  g_clear_pointer(&entry->value, g_variant_unref);
}

static void entry_free(gpointer entry) {
  entry_clear(entry);
  g_free(entry);
}

// The directory of a key, or of a path with a slash at its end.
static Directory *directory_of(PrefsStore *store, const char *key) {
  g_autofree char *path = g_strndup(key, (gsize)(strrchr(key, '/') - key) + 1);
  return g_hash_table_lookup(store->directories, path);
}

// Moves the entry to what is known of its directory, if that is watched or will be.
static void keep(Directory *directory, const char *key, Entry *entry) {
  g_hash_table_replace(directory->entries, g_strdup(key), g_memdup2(entry, sizeof *entry));
  memset(entry, 0, sizeof *entry);
}

// Returns the value of an entry as the type, a new reference. Sets `is_misfit` if its text is no
// such value, for the first time.
static GVariant *entry_value(Entry *entry, const GVariantType *type, gboolean *is_misfit) {
  gsize count;
  if (entry->value && g_variant_is_of_type(entry->value, type)) return g_variant_ref(entry->value);
  if (!entry->text) return NULL;
  const char *text = g_bytes_get_data(entry->text, &count);
  GVariant *value = prefs_value_parse(text ? text : "", count, type);
  if (value) {
    g_clear_pointer(&entry->value, g_variant_unref);
    return entry->value = value, g_variant_ref(value);
  }
  *is_misfit = !entry->has_complained;
  entry->has_complained = TRUE;
  return NULL;
}

// Whether the entries stand for different values, as far as anybody has asked for the old one.
static gboolean differs(Entry *old, Entry *new) {
  gboolean is_misfit;
  if (old->is_there != new->is_there) return TRUE;
  if (!old->is_there || (old->text && g_bytes_equal(old->text, new->text))) return FALSE;
  if (!old->value) return TRUE;
  GVariant *value = entry_value(new, g_variant_get_type(old->value), &is_misfit);
  gboolean is_equal = value && g_variant_equal(old->value, value);
  if (value) g_variant_unref(value);
  return !is_equal;
}

// MARK: Files

// Returns what the file has; NULL with an errno if it cannot be read.
static GBytes *read_file(const char *path, mode_t *mode) {
  char buffer[4096];
  struct stat status;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return NULL;
  GByteArray *bytes = g_byte_array_new();
  gssize count = fstat(file, &status) == 0 && S_ISREG(status.st_mode) ? 1 : -1;
  *mode = status.st_mode;
  while (count > 0 && bytes->len <= MOST_BYTES) {
    count = read(file, buffer, sizeof buffer);
    if (count > 0) g_byte_array_append(bytes, (guint8 *)buffer, (guint)count);
  }
  int reason = errno;
  close(file);
  errno = reason;
  if (count == 0) return g_byte_array_free_to_bytes(bytes);
  g_byte_array_unref(bytes);
  return NULL;
}

// Returns the path of a directory, or of a key's file in it; NULL if there can be none.
static char *path_in(const char *root, const char *key, gboolean is_file) {
  g_autofree char *name = prefs_names_directory(key);
  g_autofree char *file = is_file ? prefs_names_file(key) : g_strdup("");
  return root && name && file ? g_build_filename(root, name, file, NULL) : NULL;
}

static void note_loss(PrefsStore *store) {
  g_mutex_lock(&store->lock);
  gboolean warns = !store->has_warned;
  store->is_lost = store->has_warned = TRUE;
  g_mutex_unlock(&store->lock);
  eventfd_write(store->wake, 1);
  // A warning would end programs under g_test_init(3).
  if (warns)
    g_message("prefsfs: no preferences are mounted: settings have their defaults, and stay so");
}

// Reads what a key's file has. Returns whether that is known: not if its list cannot be read.
static gboolean load(PrefsStore *store, const char *root, const char *key, Entry *fresh) {
  mode_t mode = 0;
  memset(fresh, 0, sizeof *fresh);
  g_autofree char *path = path_in(root, key, TRUE);
  if (!path) return TRUE;
  fresh->text = read_file(path, &mode);
  int reason = fresh->text ? 0 : errno;
  fresh->is_there = reason == 0;
  fresh->is_writable = (mode & S_IWUSR) != 0;
  if (reason == ENOENT) {
    g_autofree char *place = path_in(root, key, FALSE);
    fresh->is_writable = access(place, W_OK) == 0 || (errno == ENOENT && access(root, W_OK) == 0);
  }
  if (reason == ENOTCONN) note_loss(store);
  return reason == 0 || reason == ENOENT;
}

static char *copy_root(PrefsStore *store) {
  g_mutex_lock(&store->lock);
  char *root = g_strdup(store->root);
  g_mutex_unlock(&store->lock);
  return root;
}

// MARK: Reading

// Returns the value of a key as the type (NULL: none is wanted), and whether it can be written.
static GVariant *look(
    PrefsStore *store, const char *key, const GVariantType *type, gboolean *is_writable) {
  gboolean is_misfit = FALSE;
  GVariant *value = NULL;
  g_mutex_lock(&store->lock);
  Directory *directory = directory_of(store, key);
  gboolean is_watched = directory && directory->is_watched && !store->is_forked;
  Entry fresh, *entry = is_watched ? g_hash_table_lookup(directory->entries, key) : NULL;
  if (entry) {
    value = type ? entry_value(entry, type, &is_misfit) : NULL;
    *is_writable = entry->is_writable;
  }
  guint64 events = store->events;
  char *root = entry ? NULL : g_strdup(store->root);
  g_mutex_unlock(&store->lock);
  if (!entry) {
    gboolean is_known = load(store, root, key, &fresh);
    value = type ? entry_value(&fresh, type, &is_misfit) : NULL;
    *is_writable = fresh.is_writable;
    g_mutex_lock(&store->lock);
    directory = directory_of(store, key);
    if (is_known && directory && store->events == events) keep(directory, key, &fresh);
    g_mutex_unlock(&store->lock);
    entry_clear(&fresh);
    g_free(root);
  }
  if (is_misfit) g_message("prefsfs: %s is no value of its schema's type: it has its default", key);
  return value;
}

GVariant *prefs_store_read(PrefsStore *store, const char *key, const GVariantType *type) {
  gboolean is_writable;
  return look(store, key, type, &is_writable);
}

gboolean prefs_store_is_writable(PrefsStore *store, const char *key) {
  gboolean is_writable;
  look(store, key, NULL, &is_writable);
  return is_writable;
}

// Returns the value of the first of the places that has the key.
static GVariant *read_places(
    PrefsStore *store, const char *key, const GVariantType *type, const char *const *places) {
  g_autofree char *root = copy_root(store);
  GVariant *value = NULL;
  for (; root && *places && !value; places++) {
    gboolean is_misfit;
    Entry fresh;
    g_autofree char *place = g_build_filename(root, ".prefs/places", *places, NULL);
    load(store, place, key, &fresh);
    value = entry_value(&fresh, type, &is_misfit);
    entry_clear(&fresh);
  }
  return value;
}

GVariant *prefs_store_read_user(PrefsStore *store, const char *key, const GVariantType *type) {
  return read_places(store, key, type, (const char *[]){"cloud", "host", "user", NULL});
}

GVariant *prefs_store_read_default(PrefsStore *store, const char *key, const GVariantType *type) {
  return read_places(store, key, type, (const char *[]){"managed", "any-user", "vendor", NULL});
}

// MARK: Writing

static int open_apply(const char *root) {
  g_autofree char *path = root ? g_build_filename(root, ".prefs/apply", NULL) : NULL;
  return path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
}

// Writes the document, with one write(2), which is a transaction.
static gboolean write_document(PrefsStore *store, const char *root, const GString *document) {
  int file = open_apply(root);
  gssize written = file < 0 ? -1 : write(file, document->str, document->len);
  int reason = errno;
  if (file >= 0) close(file);
  gboolean is_silent = written < 0 && reason == ETIMEDOUT;
  g_mutex_lock(&store->lock);
  store->silent_since = is_silent ? g_get_monotonic_time() : 0;
  g_mutex_unlock(&store->lock);
  if (is_silent) eventfd_write(store->wake, 1);
  if (written < 0 && reason == ENOTCONN) note_loss(store);
  return written == (gssize)document->len;
}

// Returns {DOMAIN: {KEY: VALUE or null}}; NULL if a path can have no file.
static GString *make_document(guint count, const char *const *keys, GVariant *const *values) {
  GHashTable *domains = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  GString *document = g_string_new("{");
  for (guint i = 0; i < count && document; i++) {
    g_autofree char *path = path_in("/", keys[i], TRUE), *name = prefs_names_directory(keys[i]);
    g_autofree char *domain = name ? prefs_names_key("", name) : NULL;
    if (!path) document = (g_string_free(document, TRUE), NULL);
    GString *members = document ? g_hash_table_lookup(domains, domain) : NULL;
    if (document && !members)
      g_hash_table_insert(domains, g_strdup(domain), members = g_string_new(NULL));
    if (members) {
      if (members->len > 0) g_string_append(members, ", ");
      prefs_value_append_string(members, strrchr(keys[i], '/') + 1);
      g_string_append(members, ": ");
      if (values[i]) prefs_value_append_json(members, values[i]);
      else g_string_append(members, "null");
    }
  }
  GHashTableIter each;
  gpointer domain, members;
  g_hash_table_iter_init(&each, domains);
  while (g_hash_table_iter_next(&each, &domain, &members)) {
    if (document && document->len > 1) g_string_append(document, ", ");
    if (document) prefs_value_append_string(document, domain);
    if (document) g_string_append_printf(document, ": {%s}", ((GString *)members)->str);
    g_string_free(members, TRUE);
  }
  g_hash_table_unref(domains);
  return document ? g_string_append_c(document, '}') : NULL;
}

// Notes what this process has written, so that it is not told of that. What is below a value that
// was removed is known when it is read.
static void note_written(PrefsStore *store, const char *key, GVariant *value) {
  g_autofree char *root = copy_root(store);
  Entry entry = {.value = value, .is_there = TRUE, .is_writable = TRUE};
  if (value) g_variant_ref_sink(value);
  else load(store, root, key, &entry);
  g_mutex_lock(&store->lock);
  Directory *directory = directory_of(store, key);
  if (directory) keep(directory, key, &entry);
  g_mutex_unlock(&store->lock);
  entry_clear(&entry);
}

gboolean prefs_store_apply(
    PrefsStore *store, guint count, const char *const *keys, GVariant *const *values) {
  GString *document = make_document(count, keys, values);
  if (!document) return FALSE;
  g_mutex_lock(&store->writing);
  g_mutex_lock(&store->lock);
  g_autofree char *root = g_strdup(store->root);
  gint64 silence = store->silent_since ? g_get_monotonic_time() - store->silent_since : 0;
  gboolean is_silent = silence > 0 && (store->has_thread || silence < 5 * G_USEC_PER_SEC);
  g_mutex_unlock(&store->lock);
  gboolean is_made = root && !is_silent && write_document(store, root, document);
  for (guint i = 0; i < count && is_made; i++) note_written(store, keys[i], values[i]);
  g_mutex_unlock(&store->writing);
  g_string_free(document, TRUE);
  return is_made;
}

void prefs_store_sync(PrefsStore *store) {
  g_autofree char *root = copy_root(store);
  int file = open_apply(root);
  if (file < 0) return;
  fsync(file);
  close(file);
}

// MARK: Watching

// Reads a key again, and tells the observer of what is different.
static void compare(PrefsStore *store, const char *key) {
  Entry fresh;
  gboolean has_changed = FALSE, has_turned = FALSE;
  g_mutex_lock(&store->writing);
  g_autofree char *root = copy_root(store);
  gboolean is_known = load(store, root, key, &fresh);
  if (fresh.text && g_bytes_get_size(fresh.text) == 0) {
    // A shell has truncated the file, and writes it next; if not, its mount decides in 50 ms.
    g_usleep(TRUNCATED_MICROSECONDS);
    entry_clear(&fresh);
    is_known = load(store, root, key, &fresh);
  }
  g_mutex_lock(&store->lock);
  store->events++;
  Directory *directory = directory_of(store, key);
  if (directory) {
    Entry *old = g_hash_table_lookup(directory->entries, key);
    has_changed = !old || differs(old, &fresh);
    has_turned = old && old->is_writable != fresh.is_writable;
    if (!has_changed && !fresh.value && old->value) fresh.value = g_variant_ref(old->value);
    if (is_known) keep(directory, key, &fresh);
    else g_hash_table_remove(directory->entries, key);
  }
  g_mutex_unlock(&store->lock);
  g_mutex_unlock(&store->writing);
  entry_clear(&fresh);
  if (has_changed) store->observer.changed(key, store->data);
  if (has_turned) store->observer.writable_changed(key, store->data);
}

// Reads the keys below a path again that are known, and those that its directory lists.
static void compare_all(PrefsStore *store, const char *path, gboolean lists) {
  GHashTable *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  GHashTableIter each;
  gpointer key;
  g_mutex_lock(&store->lock);
  Directory *directory = directory_of(store, path);
  g_hash_table_iter_init(&each, directory->entries);
  while (g_hash_table_iter_next(&each, &key, NULL)) g_hash_table_add(keys, g_strdup(key));
  g_mutex_unlock(&store->lock);
  g_autofree char *root = copy_root(store), *place = path_in(root, path, FALSE);
  GDir *listing = place && lists ? g_dir_open(place, 0, NULL) : NULL;
  for (const char *name; listing && (name = g_dir_read_name(listing));) {
    char *listed = prefs_names_key(path, name);
    if (listed) g_hash_table_add(keys, listed);
  }
  if (listing) g_dir_close(listing);
  g_hash_table_iter_init(&each, keys);
  while (g_hash_table_iter_next(&each, &key, NULL)) compare(store, key);
  g_hash_table_unref(keys);
}

// Watches the directory of a path, if it is there; else the root's watch tells when it comes.
// Returns whether it was not watched before.
static gboolean include(PrefsStore *store, const char *path) {
  g_autofree char *root = copy_root(store), *place = path_in(root, path, FALSE);
  int watch = place ? inotify_add_watch(store->notify, place, KEY_EVENTS) : -1;
  g_mutex_lock(&store->lock);
  Directory *directory = directory_of(store, path);
  gboolean has_begun = root && (!directory->is_watched || directory->watch != watch);
  directory->watch = watch;
  directory->is_watched = root != NULL;
  g_mutex_unlock(&store->lock);
  return has_begun;
}

// Calls the function with each path. Paths are never removed: there are as many as programs have.
static void each_path(PrefsStore *store, void (*body)(PrefsStore *store, const char *path)) {
  g_mutex_lock(&store->lock);
  GList *paths = g_hash_table_get_keys(store->directories);
  g_mutex_unlock(&store->lock);
  for (GList *at = paths; at; at = at->next) body(store, at->data);
  g_list_free(paths);
}

// What was read before the watch was there may have changed.
static void begin(PrefsStore *store, const char *path) {
  if (include(store, path)) compare_all(store, path, FALSE);
}

static void begin_again(PrefsStore *store, const char *path) {
  include(store, path);
  compare_all(store, path, TRUE);
}

static void tell_all(PrefsStore *store, const char *path) {
  include(store, path);
  store->observer.changed(path, store->data);
  store->observer.writable_changed(path, store->data);
}

// Begins to watch the mount, if there is one.
static void attach(PrefsStore *store) {
  char *root = prefs_names_mount();
  store->root_watch = root ? inotify_add_watch(store->notify, root, DOMAIN_EVENTS) : -1;
  if (store->root_watch < 0) g_clear_pointer(&root, g_free);
  g_mutex_lock(&store->lock);
  g_free(store->root);
  store->root = root;
  g_mutex_unlock(&store->lock);
}

static void forget(PrefsStore *store, const char *path) {
  g_mutex_lock(&store->lock);
  Directory *directory = directory_of(store, path);
  if (directory->watch >= 0) inotify_rm_watch(store->notify, directory->watch);
  directory->watch = -1;
  directory->is_watched = FALSE;
  g_hash_table_remove_all(directory->entries);
  g_mutex_unlock(&store->lock);
}

// The mount is gone, or its driver: every value is its default from now on.
static void detach(PrefsStore *store) {
  if (store->root_watch >= 0) inotify_rm_watch(store->notify, store->root_watch);
  store->root_watch = -1;
  g_mutex_lock(&store->lock);
  g_clear_pointer(&store->root, g_free);
  store->is_lost = FALSE;
  store->events++;
  g_mutex_unlock(&store->lock);
  each_path(store, forget);
  each_path(store, tell_all);
}

// Returns the path of the directory with that name, or with that watch if the name is NULL.
static const char *path_of(PrefsStore *store, const char *name, int watch) {
  const char *found = NULL;
  GHashTableIter each;
  gpointer path, value;
  g_mutex_lock(&store->lock);
  g_hash_table_iter_init(&each, store->directories);
  while (!found && g_hash_table_iter_next(&each, &path, &value)) {
    Directory *directory = value;
    if (name ? g_strcmp0(directory->name, name) == 0 : directory->watch == watch) found = path;
  }
  g_mutex_unlock(&store->lock);
  return found;
}

static gboolean is_known(PrefsStore *store, const char *key) {
  g_mutex_lock(&store->lock);
  gboolean is_known = g_hash_table_contains(directory_of(store, key)->entries, key);
  g_mutex_unlock(&store->lock);
  return is_known;
}

static void follow(PrefsStore *store, const struct inotify_event *event) {
  gboolean is_of_root = event->wd == store->root_watch;
  if (event->mask & IN_Q_OVERFLOW) return each_path(store, begin_again);
  if (is_of_root && event->mask & (IN_UNMOUNT | IN_IGNORED)) return note_loss(store);
  if (is_of_root && !event->len) return;
  const char *path = path_of(store, is_of_root ? event->name : NULL, event->wd);
  if (!path) return;
  // A domain came or went. One that was made again under its name is a different directory.
  if (is_of_root || event->mask & (OWN_EVENTS | IN_IGNORED))
    return begin_again(store, path);
  g_autofree char *key = event->len ? prefs_names_key(path, event->name) : NULL;
  // A change of attributes alone tells nothing of a value that nobody knows.
  if (key && (!(event->mask & IN_ATTRIB) || is_known(store, key))) compare(store, key);
}

static void read_events(PrefsStore *store) {
  _Alignas(struct inotify_event) char buffer[16384];
  gssize count = read(store->notify, buffer, sizeof buffer);
  for (char *at = buffer; at < buffer + count;) {
    const struct inotify_event *event = (const void *)at;
    at += sizeof *event + event->len;
    follow(store, event);
  }
}

static gpointer watch_main(gpointer data) {
  PrefsStore *store = data;
  GString *nothing = g_string_new("{}");
  eventfd_t woken;
  attach(store);
  for (;;) {
    each_path(store, begin);
    g_mutex_lock(&store->lock);
    gboolean is_lost = store->is_lost, is_silent = store->silent_since != 0;
    g_mutex_unlock(&store->lock);
    if (is_lost) detach(store);
    g_autofree char *root = copy_root(store);
    // An empty document changes nothing, and the owner answers it.
    if (root && is_silent) write_document(store, root, nothing);
    struct pollfd waits[] = {
        {store->wake, POLLIN, 0}, {store->notify, POLLIN, 0}, {store->mounts, POLLPRI, 0}};
    poll(waits, root ? 2 : 3, root && is_silent ? PROBE_MILLISECONDS : -1);
    if (waits[0].revents) eventfd_read(store->wake, &woken);
    if (waits[1].revents) read_events(store);
    if (!root && waits[2].revents) attach(store);
    if (!root && store->root_watch >= 0) each_path(store, tell_all);
  }
  return NULL;
}

void prefs_store_watch(PrefsStore *store, const char *path) {
  g_mutex_lock(&store->lock);
  gboolean is_new = !g_hash_table_contains(store->directories, path);
  gboolean starts = !store->has_thread && !store->is_forked;
  if (is_new) {
    Directory *directory = g_new0(Directory, 1);
    directory->name = prefs_names_directory(path);
    directory->watch = -1;
    directory->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    g_hash_table_insert(store->directories, g_strdup(path), directory);
  }
  if (starts) store->has_thread = TRUE;
  g_mutex_unlock(&store->lock);
  if (starts) g_thread_unref(g_thread_new("prefsfs", watch_main, store));
  else if (is_new) eventfd_write(store->wake, 1);
}

// MARK: The process

static void before_fork(void) {
  g_mutex_lock(&shared->writing);
  g_mutex_lock(&shared->lock);
}

static void after_fork(void) {
  g_mutex_unlock(&shared->lock);
  g_mutex_unlock(&shared->writing);
}

static void in_child(void) {
  shared->is_forked = TRUE;
  after_fork();
}

PrefsStore *prefs_store_new(PrefsStoreObserver observer, gpointer data) {
  PrefsStore *store = shared = g_new0(PrefsStore, 1);
  store->observer = observer;
  store->data = data;
  g_mutex_init(&store->writing);
  g_mutex_init(&store->lock);
  store->directories = g_hash_table_new(g_str_hash, g_str_equal);
  store->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  store->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  store->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  store->root_watch = -1;
  store->root = prefs_names_mount();
  if (!store->root) note_loss(store);
  pthread_atfork(before_fork, after_fork, in_child);
  return store;
}
