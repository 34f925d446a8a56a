// Counts calls of malloc(3), by which Swift allocates class instances, and the memory of arrays,
// strings, dictionaries and closures.
#pragma once

// Begins to count the calls of the calling thread.
void prefsfs_begin_counting_allocations(void);

// Ends that, and returns how many there were.
long prefsfs_end_counting_allocations(void);

// Returns how many bytes the calls that were counted last have asked for.
long prefsfs_allocated_bytes(void);
