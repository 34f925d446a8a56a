// The GSettings backend `prefsfs`: the preferences of programs that use GSettings are files of a
// mount. A program uses it if GSETTINGS_BACKEND=prefsfs is in its environment.
//
// Threads: GSettings calls from any thread. Signals go to GSettings from the calling thread, for
// the program's own changes, and from the store's watching thread, for those of others; GSettings
// hands them to the main contexts of the programs' objects.

#define G_SETTINGS_ENABLE_BACKEND
#include <gio/gio.h>
#include <gio/gsettingsbackend.h>

#include "store.h"

typedef struct {
  GSettingsBackend parent;
  PrefsStore *store;
} PrefsBackend;

typedef GSettingsBackendClass PrefsBackendClass;

static GType prefs_backend_get_type(void);
G_DEFINE_DYNAMIC_TYPE(PrefsBackend, prefs_backend, G_TYPE_SETTINGS_BACKEND)

static PrefsStore *store_of(GSettingsBackend *backend) { return ((PrefsBackend *)backend)->store; }

static GVariant *backend_read(
    GSettingsBackend *backend, const gchar *key, const GVariantType *type, gboolean is_default) {
  if (is_default) return prefs_store_read_default(store_of(backend), key, type);
  return prefs_store_read(store_of(backend), key, type);
}

static GVariant *backend_read_user(
    GSettingsBackend *backend, const gchar *key, const GVariantType *type) {
  return prefs_store_read_user(store_of(backend), key, type);
}

static gboolean backend_write(
    GSettingsBackend *backend, const gchar *key, GVariant *value, gpointer origin) {
  if (value) g_variant_ref_sink(value);
  gboolean is_made = prefs_store_apply(store_of(backend), 1, &key, &value);
  g_clear_pointer(&value, g_variant_unref);
  if (is_made) g_settings_backend_changed(backend, key, origin);
  return is_made;
}

static void backend_reset(GSettingsBackend *backend, const gchar *key, gpointer origin) {
  backend_write(backend, key, NULL, origin);
}

typedef struct {
  GPtrArray *keys, *values;
} Pairs;

static gboolean add_pair(gpointer key, gpointer value, gpointer data) {
  Pairs *pairs = data;
  g_ptr_array_add(pairs->keys, key);
  g_ptr_array_add(pairs->values, value);
  return FALSE;
}

static gboolean backend_write_tree(GSettingsBackend *backend, GTree *tree, gpointer origin) {
  Pairs pairs = {g_ptr_array_new(), g_ptr_array_new()};
  g_tree_foreach(tree, add_pair, &pairs);
  gboolean is_made = prefs_store_apply(
      store_of(backend), pairs.keys->len, (const char *const *)pairs.keys->pdata,
      (GVariant *const *)pairs.values->pdata);
  g_ptr_array_unref(pairs.keys);
  g_ptr_array_unref(pairs.values);
  if (is_made) g_settings_backend_changed_tree(backend, tree, origin);
  return is_made;
}

static gboolean backend_get_writable(GSettingsBackend *backend, const gchar *key) {
  return prefs_store_is_writable(store_of(backend), key);
}

static GPermission *backend_get_permission(GSettingsBackend *backend, const gchar *path) {
  return g_simple_permission_new(prefs_store_is_writable(store_of(backend), path));
}

// Programs watch the same paths again: they stay watched, and `unsubscribe` does nothing.
static void backend_subscribe(GSettingsBackend *backend, const gchar *path) {
  prefs_store_watch(store_of(backend), path);
}

static void backend_sync(GSettingsBackend *backend) { prefs_store_sync(store_of(backend)); }

static void tell_changed(const char *key, gpointer backend) {
  if (g_str_has_suffix(key, "/")) g_settings_backend_path_changed(backend, key, NULL);
  else g_settings_backend_changed(backend, key, NULL);
}

static void tell_writable_changed(const char *key, gpointer backend) {
  if (g_str_has_suffix(key, "/")) g_settings_backend_path_writable_changed(backend, key);
  else g_settings_backend_writable_changed(backend, key);
}

static void prefs_backend_init(PrefsBackend *backend) {
  // It is the program's for its whole life: the watching thread tells it.
  PrefsStoreObserver observer = {tell_changed, tell_writable_changed};
  backend->store = prefs_store_new(observer, g_object_ref(backend));
}

static void prefs_backend_class_init(PrefsBackendClass *class) {
  class->read = backend_read;
  class->read_user_value = backend_read_user;
  class->write = backend_write;
  class->write_tree = backend_write_tree;
  class->reset = backend_reset;
  class->get_writable = backend_get_writable;
  class->get_permission = backend_get_permission;
  class->subscribe = backend_subscribe;
  class->sync = backend_sync;
}

static void prefs_backend_class_finalize(PrefsBackendClass *class) { (void)class; }

G_MODULE_EXPORT void g_io_module_load(GIOModule *module) {
  // The watching thread's code must stay.
  g_type_module_use(G_TYPE_MODULE(module));
  prefs_backend_register_type(G_TYPE_MODULE(module));
  g_io_extension_point_implement(
      G_SETTINGS_BACKEND_EXTENSION_POINT_NAME, prefs_backend_get_type(), "prefsfs", -1);
}

G_MODULE_EXPORT void g_io_module_unload(GIOModule *module) { (void)module; }

G_MODULE_EXPORT char **g_io_module_query(void) {
  char *points[] = {G_SETTINGS_BACKEND_EXTENSION_POINT_NAME, NULL};
  return g_strdupv(points);
}
