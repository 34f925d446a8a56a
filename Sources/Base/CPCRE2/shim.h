// PCRE2 for texts of bytes (UTF-8), as one module: the width is chosen by a macro. Nothing here makes
// a decision.
#ifndef PREFSFS_CPCRE2_SHIM_H
#define PREFSFS_CPCRE2_SHIM_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#endif
