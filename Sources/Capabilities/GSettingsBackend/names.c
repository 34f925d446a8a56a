#include "names.h"

#include <limits.h>
#include <string.h>

enum { MOST_DOMAIN_BYTES = 200 };

// Bytes that a file name has in another form (see `NameCodec` of the mount).
static gboolean is_escaped(guchar byte, gboolean is_first) {
  return byte < 0x20 || byte == 0x7F || byte == '%' || byte == '/' || (byte == '.' && is_first);
}

static char *file_name(const char *name) {
  GString *file = g_string_new(NULL);
  for (const char *at = name; *at; at++) {
    if (is_escaped((guchar)*at, at == name)) g_string_append_printf(file, "%%%02X", (guchar)*at);
    else g_string_append_c(file, *at);
  }
  return g_string_free(file, FALSE);
}

char *prefs_names_directory(const char *path) {
  const char *end = strrchr(path, '/');
  if (*path != '/' || end == path) return NULL;
  GString *domain = g_string_new(NULL);
  for (const char *at = path + 1; at < end; at++) {
    if (*at == '/') g_string_append_c(domain, '.');
    // A dot inside of a component is told from those between them.
    else if (*at == '.' || *at == '%') g_string_append_printf(domain, "%%%02X", *at);
    else g_string_append_c(domain, *at);
  }
  char *name = domain->len <= MOST_DOMAIN_BYTES ? file_name(domain->str) : NULL;
  g_string_free(domain, TRUE);
  return name;
}

char *prefs_names_file(const char *key) {
  const char *slash = strrchr(key, '/');
  char *name = slash && slash[1] ? file_name(slash + 1) : NULL;
  if (name && strlen(name) <= NAME_MAX) return name;
  g_free(name);
  return NULL;
}

char *prefs_names_key(const char *path, const char *file) {
  GString *key = g_string_new(path);
  for (const char *at = file; *at; at++) {
    if (*at != '%') {
      g_string_append_c(key, *at);
    } else if (g_ascii_isxdigit(at[1]) && g_ascii_isxdigit(at[2])) {
      int byte = g_ascii_xdigit_value(at[1]) * 16 + g_ascii_xdigit_value(at[2]);
      g_string_append_c(key, (char)byte);
      at += 2;
    } else {
      g_string_free(key, TRUE);
      return NULL;
    }
  }
  return g_string_free(key, FALSE);
}

// Whether a line of mountinfo is that of a mount of prefsfs at the path. Blanks in its fields are
// escaped.
static gboolean is_mount_line(const char *line, const char *path) {
  if (!strstr(line, " - fuse.prefsfs ")) return FALSE;
  g_auto(GStrv) fields = g_strsplit(line, " ", 6);
  g_autofree char *point = g_strv_length(fields) == 6 ? g_strcompress(fields[4]) : NULL;
  return g_strcmp0(point, path) == 0;
}

// Returns the path, or what a symbolic link there leads to, if that is a mount of prefsfs. Frees
// the path.
static char *mount_at(char *path, char **lines) {
  g_autofree char *target = g_file_read_link(path, NULL);
  if (target) {
    g_autofree char *directory = g_path_get_dirname(path);
    g_free(path);
    path = g_canonicalize_filename(target, directory);
  }
  for (guint i = 0; lines[i]; i++)
    if (is_mount_line(lines[i], path)) return path;
  g_free(path);
  return NULL;
}

char *prefs_names_mount(void) {
  g_autofree char *text = NULL;
  if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL)) return NULL;
  g_auto(GStrv) lines = g_strsplit(text, "\n", 0);
  const char *set = g_getenv("PREFSFS_MOUNT");
  if (set && *set) return mount_at(g_canonicalize_filename(set, NULL), lines);
  char *found = mount_at(g_build_filename(g_get_user_runtime_dir(), "preferences", NULL), lines);
  if (found) return found;
  return mount_at(g_build_filename(g_get_home_dir(), "Preferences", NULL), lines);
}
