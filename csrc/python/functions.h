/* How a file adds functions to the module and methods to Tensor.
 *
 *     DT_PUBLIC(narrow, "narrow(input: Tensor, dim: int, start: int, length: int)")
 *     {
 *         const dt_tensor *x = v[0].tensor;
 *         int64_t dim = v[1].i, start = v[2].i, length = v[3].i;
 *         ...
 *     }
 *     static const dt_function rows[] = {
 *         DT_BOTH(narrow, "narrow", "Part of input along a dimension.",
 *                 "torch.arange(5).narrow(0, 1, 3)", "tensor([1, 2, 3])"),
 *     };
 *     int dt_setup_views(PyObject *module) { return DT_ADD_FUNCTIONS(module, rows); }
 */
#ifndef DT_PYTHON_FUNCTIONS_H
#define DT_PYTHON_FUNCTIONS_H

#include "python/arguments.h"
#include "python/overrides.h"

#define DT_CALL_PARAMETERS                                                             \
    PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *kwnames

typedef PyObject *(*dt_function_call)(DT_CALL_PARAMETERS);

#if defined(__GNUC__) || defined(__clang__)
#define DT_UNUSED __attribute__((unused))
#else
#define DT_UNUSED
#endif

/* Defines NAME, as a function of the module or as a method: CALL with further arguments
 * before the call's own, of which a function has no self. */
#define DT_FUNCTION_ENTRY(NAME, CALL, ...)                                             \
    DT_UNUSED static PyObject *NAME(DT_CALL_PARAMETERS)                                \
    {                                                                                  \
        (void)self;                                                                    \
        DT_OVERRIDE(dt_override((void *)NAME, NULL, values, count, kwnames));          \
        return CALL(__VA_ARGS__, NULL, values, count, kwnames);                        \
    }
#define DT_METHOD_ENTRY(NAME, CALL, ...)                                               \
    DT_UNUSED static PyObject *NAME(DT_CALL_PARAMETERS)                                \
    {                                                                                  \
        DT_OVERRIDE(dt_override((void *)NAME, self, values, count, kwnames));          \
        return CALL(__VA_ARGS__, self, values, count, kwnames);                        \
    }

/* Takes the bound arguments, and those that are not Any as values. */
typedef PyObject *dt_public_body(const dt_args *args, const dt_value *v);
PyObject *dt_call_public(dt_signature *signature, dt_public_body *body,
                         DT_CALL_PARAMETERS);

/* The result of a call that failed since an argument is a sparse tensor. NULL with the
 * pending exception where none is, or with another one. Calls that fail ask for it if
 * dt_py.sparse_type is set. id: the name with its namespace, linalg_qr. */
PyObject *dt_call_sparse(const char *name, const char *id, DT_CALL_PARAMETERS);
bool dt_sparse_check(PyObject *value);
/* The sparse gradient (autograd/sparse_gradient.h) that a sparse tensor is, and the device
 * of its entries. -1 raised. */
int dt_sparse_take(dt_tensor *out, PyObject *sparse, dt_device *device);

/* Begins a public function: what follows is its body, a dt_public_body. Defines
 * name_function (arguments as they are) and name_method (self is the first
 * parameter). */
#define DT_PUBLIC(NAME, TEXT)                                                          \
    static dt_signature NAME##_signature = {.text = TEXT};                             \
    static dt_public_body NAME##_body;                                                 \
    DT_FUNCTION_ENTRY(NAME##_function, dt_call_public, &NAME##_signature, NAME##_body) \
    DT_METHOD_ENTRY(NAME##_method, dt_call_public, &NAME##_signature, NAME##_body)     \
    static PyObject *NAME##_body(DT_UNUSED const dt_args *args,                        \
                                 DT_UNUSED const dt_value *v)

/* One public name: of the module, of Tensor, or of both. */
typedef struct dt_function {
    const char *name;
    dt_signature *signature;
    dt_function_call function; /* NULL: no function of the module */
    dt_function_call method;   /* NULL: no method of Tensor */
    const char *doc;
    const char *example, *prints; /* code, and what its last line prints; "": none */
} dt_function;

#define DT_BOTH(NAME, name, ...)                                                       \
    {name, &NAME##_signature, NAME##_function, NAME##_method, __VA_ARGS__}
#define DT_FUNCTION(NAME, name, ...)                                                   \
    {name, &NAME##_signature, NAME##_function, NULL, __VA_ARGS__}
#define DT_METHOD(NAME, name, ...)                                                     \
    {name, &NAME##_signature, NULL, NAME##_method, __VA_ARGS__}

/* Adds the rows to the module and to Tensor. -1 with an exception set. */
int dt_add_functions(PyObject *module, const dt_function *rows, size_t count);
#define DT_ADD_FUNCTIONS(module, rows)                                                 \
    dt_add_functions(module, rows, sizeof(rows) / sizeof *(rows))

/* doc, wrapped, and an example: code, and what the last line prints. in_place: as the
 * in-place method of `name` has it. For free(); NULL with MemoryError. */
char *dt_doc_with_example(const char *doc, const char *name, const char *code,
                          const char *prints, bool in_place);

/* Adds a row's function to a dictionary; `home` is the module that users find it in. */
int dt_add_function(PyObject *dictionary, const dt_function *row, PyObject *self,
                    PyObject *home);

/* Offers the rows to the module of a namespace, "linalg": _namespace() makes its
 * functions. */
void dt_publish(const char *space, const dt_function *rows, size_t count);

/* Adds getters and setters to Tensor; the table stays alive. Ends with a row without
 * name. */
int dt_add_properties(PyGetSetDef *properties);

#endif
