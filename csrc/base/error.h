/* Errors of the core: one slot per thread, filled by dt_fail, read once by the
 * binding.
 *
 * A fallible function returns -1 or NULL after exactly one dt_fail. A message says
 * what was given, what was expected, and what to do. */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* ERROR(code, exception): the code in the core and its Python exception. As in PyTorch
 * the elements of a tensor on the CPU are a case of their own. */
#define DT_ERRORS(ERROR)                                                               \
    ERROR(RUNTIME, RuntimeError)                                                       \
    ERROR(VALUE, ValueError)                                                           \
    ERROR(TYPE, TypeError)                                                             \
    ERROR(INDEX, IndexError)                                                           \
    ERROR(OVERFLOW, OverflowError)                                                     \
    ERROR(NOT_IMPLEMENTED, NotImplementedError)                                        \
    ERROR(HOST_MEMORY, MemoryError)                                                    \
    ERROR(CPU_TENSOR_MEMORY, RuntimeError)                                             \
    ERROR(DEVICE_MEMORY, OutOfMemoryError)                                             \
    ERROR(ACCELERATOR, AcceleratorError)

typedef enum dt_error_code {
    DT_ERROR_NONE,
#define ERROR(code, exception) DT_ERROR_##code,
    DT_ERRORS(ERROR)
#undef ERROR
        DT_NERRORS
} dt_error_code;

#define DT_ERROR_TEXT 4096

typedef struct dt_error {
    dt_error_code code;
    char text[DT_ERROR_TEXT];
} dt_error;

#if defined(__GNUC__) || defined(__clang__)
#define DT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define DT_PRINTF(text, first)
#endif

/* Fills the calling thread's slot, truncating the text to DT_ERROR_TEXT. Always
 * returns -1, so that a function can `return dt_fail(...)`. */
int dt_fail(dt_error_code code, const char *format, ...) DT_PRINTF(2, 3);

/* Prepends text to the pending error ("addmm: "). Returns -1. */
int dt_fail_prefix(const char *format, ...) DT_PRINTF(1, 2);

/* Appends text to the pending error. Returns -1. */
int dt_fail_append(const char *format, ...) DT_PRINTF(1, 2);

/* The calling thread's slot, borrowed. Its code is DT_ERROR_NONE if nothing is
 * pending. */
dt_error *dt_error_slot(void);

/* Clears the pending error of the calling thread. */
void dt_error_clear(void);

/* Makes this library use the slots behind `slot`. A backend in a library of its own
 * calls it when it is opened, so that its errors reach the core. */
void dt_error_share(dt_error *(*slot)(void));

#ifdef __cplusplus
}
#endif
#endif
