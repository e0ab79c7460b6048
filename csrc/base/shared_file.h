/* Files in memory, in no folder, which other processes can open while their maker runs. */
#ifndef DT_BASE_SHARED_FILE_H
#define DT_BASE_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SHARED_FILE 48 /* bytes of a name, with its 0 */
/* Bytes of a handle of a GPU's memory: a letter for its kind, and then the driver's handle, or
 * the name of such a file, which lists pages. */
#define DT_IPC_MEMORY 65

/* Makes a file of `bytes` zeros, and the name by which dt_shared_file_open finds it. The
 * descriptor, or -1 with errno. */
int dt_shared_file_new(const char *title, size_t bytes, char *name);

/* Names an open file of this process. -1 with errno. */
int dt_shared_file_name(int descriptor, char *name);

/* A descriptor of the file of this name. -1 with errno if it is gone. */
int dt_shared_file_open(const char *name);

/* Duplicates a file descriptor of another process. Returns the descriptor of this process, or -1
 * with errno if the system does not allow it. */
int dt_shared_file_take(int process, int descriptor);

/* The process that made the file; 0: it is not a name. */
int dt_shared_file_maker(const char *name);

/* Whether a process runs. One that has ended does not, though its parent has yet to ask for
 * its status. */
bool dt_process_runs(int process);

#ifdef __cplusplus
}
#endif
#endif
