/* Long calls into the core, during which other Python threads run. */
#ifndef DT_PYTHON_THREADS_H
#define DT_PYTHON_THREADS_H

#include "base/gil.h"
#include "python/module.h"
#include "tensor/tensor.h"

/* Calls on this many elements are long. */
#define DT_LONG_NUMEL 20000

/* Holds the GIL until the end of the block, for Python code on a thread of Python's that
 * may be inside a long call. */
typedef struct dt_gil_held {
    bool yielded;
    PyGILState_STATE state;
} dt_gil_held;
static inline dt_gil_held dt_gil_hold(void)
{
    bool yielded = dt_gil_yield(false);
    return (dt_gil_held){yielded, PyGILState_Ensure()};
}
static inline void dt_gil_let(const dt_gil_held *held)
{
    PyGILState_Release(held->state);
    dt_gil_yield(held->yielded);
}
#define DT_WITH_GIL                                                                    \
    __attribute__((cleanup(dt_gil_let))) const dt_gil_held held_gil_ = dt_gil_hold();  \
    (void)held_gil_

#define DT_HELD_HERE 4
typedef struct dt_held_tensor {
    const dt_tensor **operand; /* points to the alias meanwhile */
    const dt_tensor *original;
    dt_tensor alias;
} dt_held_tensor;

/* The operands of a long call, as they were at its start: another thread may give the
 * program's tensors other memory, shapes and histories meanwhile. */
typedef struct dt_held {
    int count;
    bool yielded; /* what dt_gil_yield returned */
    int64_t due;  /* what dt_interrupt_set_due returned */
    dt_held_tensor *tensors, here[DT_HELD_HERE];
} dt_held;

/* Begins a long call of at most `room` operands, each added by dt_held_add: *operand then
 * points to an alias. -1 after dt_fail. */
int dt_held_begin(dt_held *held, size_t room);
void dt_held_add(dt_held *held, const dt_tensor **operand);
/* Ends it: the operands point to the program's tensors again. A tensor without autograd
 * metadata gets what the call gave to its alias. */
void dt_held_end(dt_held *held);

/* dt_held_begin with an array of operands, from the second on. */
int dt_hold(dt_held *held, size_t count, const dt_tensor **const *operands);

/* Runs `expression`, a call into the core that returns 0 or -1, and stores the result in
 * `status`. With `is_long`, other Python threads run meanwhile. At the end come the
 * addresses of the pointers in the expression (const dt_tensor **) to tensors that other
 * threads can reach; or NULL. */
#define DT_RUN(status, is_long, expression, ...)                                       \
    do {                                                                               \
        if (is_long) {                                                                 \
            const dt_tensor **operands_[] = {NULL, __VA_ARGS__};                       \
            dt_held held_;                                                             \
            (status) =                                                                 \
                dt_hold(&held_, sizeof operands_ / sizeof *operands_, operands_);      \
            if (!(status)) {                                                           \
                (status) = (expression);                                               \
                dt_held_end(&held_);                                                   \
            }                                                                          \
        } else {                                                                       \
            (status) = (expression);                                                   \
        }                                                                              \
    } while (0)

/* Runs without the GIL what touches nothing that threads share. */
#define DT_WAIT(status, expression)                                                    \
    do {                                                                               \
        dt_gil_count(1);                                                               \
        Py_BEGIN_ALLOW_THREADS;                                                        \
        (status) = (expression);                                                       \
        Py_END_ALLOW_THREADS;                                                          \
        dt_gil_count(-1);                                                              \
    } while (0)

/* The element of a tensor; waits for a GPU. -1 with an exception set. */
int dt_python_item(const char *function, const dt_tensor *t, dt_scalar *out);

#endif
