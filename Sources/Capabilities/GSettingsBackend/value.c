#include "value.h"

#include <math.h>
#include <string.h>

// Containers in containers that are read: more is no value, and never a stack overflow.
enum { DEEPEST = 64 };

static gboolean is_text(const GVariantType *type) {
  return strchr("sog", *g_variant_type_peek_string(type)) != NULL;
}

// Whether JSON has objects for values of the type.
static gboolean is_object(const GVariantType *type) {
  if (!g_variant_type_is_subtype_of(type, G_VARIANT_TYPE_DICTIONARY)) return FALSE;
  return is_text(g_variant_type_key(g_variant_type_element(type)));
}

// Whether values of the type are JSON arrays.
static gboolean is_list(const GVariantType *type) {
  return g_variant_type_is_tuple(type) ||
         (g_variant_type_is_array(type) &&
          !g_variant_type_is_subtype_of(type, G_VARIANT_TYPE_DICTIONARY));
}

// MARK: Writing

void prefs_value_append_string(GString *json, const char *text) {
  g_string_append_c(json, '"');
  for (; *text; text++) {
    guchar byte = (guchar)*text;
    if (byte == '"' || byte == '\\') g_string_append_c(json, '\\');
    if (byte < 0x20) g_string_append_printf(json, "\\u%04x", byte);
    else g_string_append_c(json, *text);
  }
  g_string_append_c(json, '"');
}

static void append_items(GString *json, GVariant *value, gboolean is_object) {
  g_string_append_c(json, is_object ? '{' : '[');
  for (gsize i = 0; i < g_variant_n_children(value); i++) {
    g_autoptr(GVariant) item = g_variant_get_child_value(value, i), inner = NULL;
    if (i > 0) g_string_append(json, ", ");
    if (is_object) {
      g_autoptr(GVariant) key = g_variant_get_child_value(item, 0);
      prefs_value_append_string(json, g_variant_get_string(key, NULL));
      g_string_append(json, ": ");
      inner = g_variant_get_child_value(item, 1);
    }
    prefs_value_append_json(json, inner ? inner : item);
  }
  g_string_append_c(json, is_object ? '}' : ']');
}

void prefs_value_append_json(GString *json, GVariant *value) {
  const GVariantType *type = g_variant_get_type(value);
  char letter = *g_variant_type_peek_string(type);
  if (is_text(type)) return prefs_value_append_string(json, g_variant_get_string(value, NULL));
  if (is_object(type) || is_list(type)) return append_items(json, value, is_object(type));
  if (letter == 'y') return g_string_append_printf(json, "%u", g_variant_get_byte(value));
  gboolean is_plain = letter == 'd' ? isfinite(g_variant_get_double(value))
                                    : strchr("bnqiuxt", letter) != NULL;
  // A number of another type would need its type before it.
  char *text = g_variant_print(value, !is_plain && letter != 'd');
  if (is_plain) g_string_append(json, text);
  else prefs_value_append_string(json, text);
  g_free(text);
}

// MARK: Reading

// A value of a type that is neither a list nor an object, from its text; floating.
static GVariant *parse_scalar(const char *text, const GVariantType *type) {
  const char *words[] = {"0", "no", "1", "yes"};
  switch (*g_variant_type_peek_string(type)) {
    case 's': return g_variant_new_string(text);
    case 'o': return g_variant_is_object_path(text) ? g_variant_new_object_path(text) : NULL;
    case 'g': return g_variant_is_signature(text) ? g_variant_new_signature(text) : NULL;
    case 'b':
      for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_ascii_strcasecmp(text, words[i]) == 0) return g_variant_new_boolean(i >= 2);
  }
  return g_variant_parse(type, text, NULL, NULL, NULL);
}

typedef struct {
  const char *at;
  int depth;
} Reader;

static GVariant *read_value(Reader *reader, const GVariantType *type);

static void skip_blanks(Reader *reader) { reader->at += strspn(reader->at, " \t\r\n"); }

static gboolean skip(Reader *reader, char byte) {
  skip_blanks(reader);
  if (*reader->at != byte) return FALSE;
  reader->at++;
  return TRUE;
}

static gboolean read_unit(Reader *reader, gunichar *unit) {
  *unit = 0;
  for (int i = 0; i < 4; i++, reader->at++) {
    if (!g_ascii_isxdigit(*reader->at)) return FALSE;
    *unit = *unit * 16 + (gunichar)g_ascii_xdigit_value(*reader->at);
  }
  return TRUE;
}

// Reads what follows \u: one unit, or both halves of a character beyond the first plane.
static gboolean read_character(Reader *reader, GString *text) {
  gunichar unit, low;
  if (!read_unit(reader, &unit)) return FALSE;
  if (unit >= 0xD800 && unit < 0xDC00) {
    if (reader->at[0] != '\\' || reader->at[1] != 'u') return FALSE;
    reader->at += 2;
    if (!read_unit(reader, &low) || low < 0xDC00 || low > 0xDFFF) return FALSE;
    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  }
  if (unit == 0 || !g_unichar_validate(unit)) return FALSE;
  g_string_append_unichar(text, unit);
  return TRUE;
}

// Reads a string behind its first quote; NULL if it does not end.
static char *read_string(Reader *reader) {
  const char *escapes = "\"\\/bfnrt", *meanings = "\"\\/\b\f\n\r\t";
  GString *text = g_string_new(NULL);
  while (*reader->at && *reader->at != '"') {
    char byte = *reader->at++;
    const char *known = byte == '\\' && *reader->at ? strchr(escapes, *reader->at) : NULL;
    if (byte != '\\') g_string_append_c(text, byte);
    else if (known) (g_string_append_c(text, meanings[known - escapes]), reader->at++);
    else if (*reader->at != 'u' || (reader->at++, !read_character(reader, text))) break;
  }
  gboolean is_whole = *reader->at == '"';
  if (is_whole) reader->at++;
  return g_string_free(text, !is_whole);
}

static GVariant *read_scalar(Reader *reader, const GVariantType *type) {
  gboolean is_quoted = skip(reader, '"');
  gsize count = is_quoted ? 0 : strcspn(reader->at, " \t\r\n,]}");
  char *text = is_quoted ? read_string(reader) : g_strndup(reader->at, count);
  reader->at += count;
  GVariant *value = text && (is_quoted || !is_text(type)) ? parse_scalar(text, type) : NULL;
  g_free(text);
  return value;
}

// Reads the items of an array, a tuple or a dictionary. Returns whether all are there.
static gboolean read_items(Reader *reader, const GVariantType *type, GVariantBuilder *builder) {
  gboolean is_tuple = g_variant_type_is_tuple(type), has_keys = is_object(type);
  const GVariantType *item = is_tuple ? g_variant_type_first(type) : g_variant_type_element(type);
  char end = has_keys ? '}' : ']';
  if (!skip(reader, has_keys ? '{' : '[')) return FALSE;
  if (skip(reader, end)) return !is_tuple || item == NULL;
  do {
    if (!item) return FALSE;
    if (has_keys) g_variant_builder_open(builder, item);
    GVariant *key = has_keys ? read_value(reader, g_variant_type_key(item)) : NULL;
    if (key) g_variant_builder_add_value(builder, key);
    if (has_keys && (!key || !skip(reader, ':'))) return FALSE;
    GVariant *value = read_value(reader, has_keys ? g_variant_type_value(item) : item);
    if (!value) return FALSE;
    g_variant_builder_add_value(builder, value);
    if (has_keys) g_variant_builder_close(builder);
    if (is_tuple) item = g_variant_type_next(item);
  } while (skip(reader, ','));
  return skip(reader, end) && (!is_tuple || item == NULL);
}

// Returns a floating value.
static GVariant *read_value(Reader *reader, const GVariantType *type) {
  if (!is_object(type) && !is_list(type)) return read_scalar(reader, type);
  if (reader->depth >= DEEPEST) return NULL;
  GVariantBuilder builder;
  g_variant_builder_init(&builder, type);
  reader->depth++;
  gboolean is_whole = read_items(reader, type, &builder);
  reader->depth--;
  if (is_whole) return g_variant_builder_end(&builder);
  g_variant_builder_clear(&builder);
  return NULL;
}

GVariant *prefs_value_parse(const char *text, gsize count, const GVariantType *type) {
  if (count > 0 && text[count - 1] == '\n') count--;
  if (!g_utf8_validate(text, (gssize)count, NULL)) return NULL;
  char *whole = g_strndup(text, count);
  Reader reader = {whole, 0};
  gboolean is_json = is_object(type) || is_list(type);
  GVariant *value = is_json ? read_value(&reader, type) : parse_scalar(whole, type);
  skip_blanks(&reader);
  if (is_json && value && *reader.at) {
    g_variant_unref(g_variant_ref_sink(value));
    value = NULL;
  }
  // A person may have written GVariant's own text.
  if (!value && is_json) value = g_variant_parse(type, whole, NULL, NULL, NULL);
  g_free(whole);
  return value ? g_variant_take_ref(value) : NULL;
}
