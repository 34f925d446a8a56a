#include "CAllocations.h"

#include <stdbool.h>
#include <stddef.h>

// The name of malloc(3) in the C library, for programs that have a malloc of their own.
extern void *__libc_malloc(size_t size);

static _Thread_local bool is_counting;
static _Thread_local long count;
static _Thread_local long bytes;

// Takes the place of the C library's in the program that this is linked into.
void *malloc(size_t size) {
  if (is_counting) {
    count++;
    bytes += (long)size;
  }
  return __libc_malloc(size);
}

void prefsfs_begin_counting_allocations(void) {
  count = bytes = 0;
  is_counting = true;
}

long prefsfs_end_counting_allocations(void) {
  is_counting = false;
  return count;
}

long prefsfs_allocated_bytes(void) { return bytes; }
