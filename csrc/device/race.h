/* Races between work on streams, or between a stream and the host: what a simulated GPU
 * finds, and who is notified. */
#ifndef DT_DEVICE_RACE_H
#define DT_DEVICE_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two accesses. */
typedef struct dt_race_access {
    const char *name; /* of the operation; a literal */
    bool reads, writes;
    bool host;    /* the host's own access */
    int device;   /* of the stream */
    void *stream; /* its handle; NULL: the default stream */
    int line;     /* in the program, as a number of the binding; -1: unknown */
} dt_race_access;

/* Two accesses to the same bytes, at least one of them a write, that nothing orders. */
typedef struct dt_race {
    dt_race_access first, second; /* in the order of the program */
    int device; /* that has the memory; -1: pinned memory of the host */
    size_t offset, bytes, block; /* both touch [offset, offset + bytes) of the block */
    bool reused; /* the block has been given to another tensor between */
    bool fatal;  /* to be raised; else a warning */
} dt_race;

/* Reports a race: 0, or -1 after dt_fail. Called without a lock, on the thread
 * whose call completed the race. */
int dt_race_found(const dt_race *race);

/* Sets who decides it, and may take the GIL; without one it is DT_ERROR_RUNTIME. */
void dt_race_handler_set(int (*handler)(const dt_race *race));

/* Warns of what the checks of the program's kernels have found, by its number. The
 * same. */
int dt_kernel_warning(long number);
void dt_kernel_warning_handler_set(int (*handler)(long number));

#ifdef __cplusplus
}
#endif
#endif
