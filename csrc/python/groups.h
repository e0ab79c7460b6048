/* Groups of processes in capsules, which groups.c makes. */
#ifndef DT_PYTHON_GROUPS_H
#define DT_PYTHON_GROUPS_H

#include "cpu/runtime/group.h"
#include "python/module.h"

typedef struct dt_python_group {
    dt_group *open; /* NULL after _group_close() */
    int rank, size;
    int calls; /* that use `open` now, of all threads */
    int queue; /* calls of all ranks that have not ended; as pydevtensor/distributed/_work.py */
    bool closing;
} dt_python_group;

/* The group of a capsule, open or not. NULL with an exception. */
dt_python_group *dt_python_group_of(PyObject *capsule);
/* The group of a capsule, in a call until dt_python_group_end(). NULL with an exception. */
dt_python_group *dt_python_group_begin(PyObject *capsule);
void dt_python_group_end(dt_python_group *group);

/* Finds what dt_group_exchange.combine is for a name of ReduceOp. */
bool dt_python_group_find(const char *name, int *combine);

#endif
