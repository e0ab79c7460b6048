/* Tensors over a file's pages, which processes that map the same file share. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "python/functions.h"

typedef struct mapping {
    void *data;
    size_t bytes;
} mapping;

static void unmap(void *owner)
{
    mapping *kept = owner;
    munmap(kept->data, kept->bytes);
    free(kept);
}

DT_PUBLIC(map_file, "_map_file(descriptor: int)")
{
    struct stat facts;
    if (fstat((int)v[0].i, &facts) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (!S_ISREG(facts.st_mode) || facts.st_size <= 0)
        return PyErr_Format(PyExc_ValueError,
                            "_map_file(): descriptor %lld has no bytes to map; give "
                            "that of a file with some",
                            (long long)v[0].i);
    mapping *kept = malloc(sizeof *kept);
    dt_tensor_object *object = kept ? dt_tensor_object_new() : NULL;
    if (!object) {
        free(kept);
        return PyErr_NoMemory();
    }
    kept->bytes = (size_t)facts.st_size;
    kept->data =
        mmap(NULL, kept->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)v[0].i, 0);
    if (kept->data == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF((PyObject *)object);
        free(kept);
        return NULL;
    }
    object->tensor.dtype = DT_UINT8;
    object->tensor.ndim = 1;
    object->tensor.shape[0] = (int64_t)facts.st_size;
    object->tensor.strides[0] = 1;
    PyObject *made = dt_tensor_object_over(object, dt_device_make(DT_CPU, 0),
                                           kept->data, kept->bytes, false, unmap, kept);
    if (!made)
        unmap(kept);
    return made;
}

static const dt_function rows[] = {
    DT_FUNCTION(
        map_file, "_map_file",
        "The bytes of an open file as a uint8 tensor; writes go to the file.\n\n"
        "The descriptor may be closed afterwards.",
        "", ""),
};

int dt_setup_mapping(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
