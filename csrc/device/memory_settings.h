/* The settings of the caches of GPU memory, by PyTorch's names and text: from
 * PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, or from the program. Also the functions by
 * which the core and the caches call each other. */
#ifndef DT_DEVICE_MEMORY_SETTINGS_H
#define DT_DEVICE_MEMORY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranges of sizes with a number of divisions each: up to 2 MiB, each power of two after
 * that, and from 32 GiB on. */
enum { DT_MEMORY_RANGES = 16 };

typedef struct dt_memory_settings {
    const char *text; /* as it was given */
    bool expandable_segments;
    size_t large_segment; /* bytes, as all sizes here */
    size_t max_split;     /* larger blocks are not split; SIZE_MAX: all are */
    size_t max_rounding;  /* what a request of max_split bytes or more may waste */
    double
        garbage_collection_threshold; /* of the memory that may be allocated; 0: none */
    double fraction;                  /* per_process_memory_fraction */
    size_t divisions[DT_MEMORY_RANGES];   /* roundup_power2_divisions; 0: none */
    const struct dt_memory_settings *old; /* kept: another thread may still read it */
} dt_memory_settings;

#define DT_MEMORY_DEFAULTS                                                             \
    {"", false, (size_t)20 << 20, SIZE_MAX, (size_t)20 << 20, 0, 1, {0}, NULL}

/* The settings now. Borrowed, as long as the process lives. NULL after dt_fail where the
 * environment's text is wrong. */
const dt_memory_settings *dt_memory_settings_get(void);

/* Changes what the text names. -1 after dt_fail: nothing has changed. */
int dt_memory_settings_set(const char *text);

/* --- for a backend in a library of its own --- */

/* An event: a tensor gets or frees memory, or the allocator does, whole segments of the
 * driver's or pages of those that grow. */
typedef enum dt_memory_action {
    DT_MEMORY_ALLOCATED,
    DT_MEMORY_FREED,
    DT_MEMORY_SEGMENT_ALLOCATED,
    DT_MEMORY_SEGMENT_FREED,
    DT_MEMORY_SEGMENT_MAPPED,
    DT_MEMORY_SEGMENT_UNMAPPED
} dt_memory_action;

/* Notes what an allocator did with a segment. */
typedef void (*dt_memory_note_fn)(int device, void *stream, void *data, int64_t bytes,
                                  dt_memory_action action);

/* Whether an address is in a segment that grows. Call with no lock held. */
typedef bool (*dt_memory_grows_fn)(int device, const void *address);

/* The exported symbol of such a library, called once before any allocation; it may lack it.
 * The allocator asks for its settings by the one function, and calls the other. */
typedef dt_memory_grows_fn (*dt_memory_open_fn)(
    const dt_memory_settings *(*settings)(void), dt_memory_note_fn note);
#define DT_MEMORY_OPEN_SYMBOL "dt_memory_open"

/* Finds and calls the symbol of a library that was opened. */
void dt_memory_open_library(void *library);

/* False where no backend knows of such segments. */
bool dt_memory_grows(int device, const void *address);

#ifdef __cplusplus
}
#endif
#endif
