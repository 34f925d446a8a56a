// GVariant values as the texts that files of a mount have, and as JSON.
//
// Scalars are their texts: true, 48, 1.5, a string without quotes. Arrays, tuples and dictionaries
// with string keys are JSON. What JSON has no form for (variants, maybe types, handles,
// dictionaries with other keys) is GVariant's own text, in a string where it is an element. No
// function keeps a state; each may be called by any thread.
#pragma once

#include <glib.h>

// Appends the value as JSON. Infinities and NaN become strings.
void prefs_value_append_json(GString *json, GVariant *value);

// Appends a string as a JSON string.
void prefs_value_append_string(GString *json, const char *text);

// Returns the value that the text of a file stands for, as a new reference that is not floating;
// NULL if it stands for no value of the type. One newline at the end belongs to the file.
GVariant *prefs_value_parse(const char *text, gsize count, const GVariantType *type);
