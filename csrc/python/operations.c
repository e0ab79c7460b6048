/* The rows of ops/functions as functions of the module and methods of Tensor. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/call.h"

enum {
#define OP(id, ...) ROW_##id,
#include "ops/functions/all.def"
#undef OP
    NROWS
};

/* The first row of each name; set at import. */
static dt_signature *function_signatures[NROWS], *method_signatures[NROWS],
    *in_place_signatures[NROWS];

#define OP(id, ...)                                                                    \
    DT_FUNCTION_ENTRY(id##_function, dt_call_record_quick,                             \
                      function_signatures[ROW_##id], false)                            \
    DT_METHOD_ENTRY(id##_method, dt_call_record_quick, method_signatures[ROW_##id],    \
                    false)                                                             \
    DT_FUNCTION_ENTRY(id##_in_place_function, dt_call_record_quick,                    \
                      in_place_signatures[ROW_##id], true)                             \
    DT_METHOD_ENTRY(id##_in_place_method, dt_call_record_quick,                        \
                    in_place_signatures[ROW_##id], true)
#include "ops/functions/all.def"
#undef OP

#define OP(id, ...) extern dt_op dt_op_##id;
#include "ops/functions/all.def"
#undef OP

static const struct {
    dt_op *op;
    dt_function_call function, method, in_place_function, in_place_method;
} rows[NROWS] = {
#define OP(id, ...)                                                                    \
    {&dt_op_##id, id##_function, id##_method, id##_in_place_function,                  \
     id##_in_place_method},
#include "ops/functions/all.def"
#undef OP
};

static size_t name_length(const char *schema)
{
    return strcspn(schema, "(");
}

/* Whether row k is an overload of row i: of its name, in the same module. */
static bool is_overload(int i, int k)
{
    const dt_op *a = rows[i].op, *b = rows[k].op;
    size_t length = name_length(a->schema);
    return length == name_length(b->schema) && !memcmp(a->schema, b->schema, length) &&
           !((a->flags ^ b->flags) & DT_NN);
}

/* One overload's schema as its function (`*name: Sizes` takes one sequence) or in-place
 * method (its input a Tensor, no `out` or `inplace`, no named results) has it. Returns
 * the end of the text. */
static char *derive(char *out, const char *schema, bool function, bool in_place)
{
    size_t length = name_length(schema);
    out = stpncpy(out, schema, length);
    if (in_place)
        *out++ = '_';
    const char *c = schema + length, *end = strstr(c, ") -> ");
    static const char output[] = ", *, out: Tensor = None", last[] = ", out: Tensor";
    static const char choice[] = ", inplace: Truth = False";
    static const char value[] = "(input: Value";
    if (in_place && !strncmp(c, value, sizeof value - 1)) {
        out = stpcpy(out, "(input: Tensor");
        c += sizeof value - 1;
    }
    for (; *c; c++) {
        const char *sizes = *c == '*' ? strstr(c, ": Sizes") : NULL;
        if (function && sizes && c[1] != ',' && sizes < c + strcspn(c, ",)"))
            continue;
        if (in_place && !strncmp(c, output, sizeof output - 1))
            c += sizeof output - 1;
        else if (in_place && !strncmp(c, choice, sizeof choice - 1))
            c += sizeof choice - 1;
        else if (in_place && !strncmp(c, last, sizeof last - 1))
            c += strcspn(c + 1, ",)") + 1;
        *out++ = *c;
        if (in_place && c == end)
            break;
    }
    *out = '\0';
    return out;
}

/* The signature of row i and its overloads: all that have a flag of `wants`. */
static dt_signature *make_signature(int i, unsigned wants, bool function, bool in_place)
{
    size_t room = 1, count = 0;
    int stop = i;
    for (; stop < NROWS && is_overload(i, stop); stop++)
        room += strlen(rows[stop].op->schema) + 4;
    dt_signature *signature = PyMem_RawCalloc(1, sizeof *signature);
    dt_op **ops = PyMem_RawCalloc((size_t)(stop - i), sizeof *ops);
    char *text = PyMem_RawMalloc(room), *end = text;
    if (!signature || !ops || !text) {
        PyMem_RawFree(signature);
        PyMem_RawFree(ops);
        PyMem_RawFree(text);
        PyErr_NoMemory();
        return NULL;
    }
    for (int k = i; k < stop; k++)
        if (rows[k].op->flags & wants) {
            end = end == text ? end : stpcpy(end, " | ");
            end = derive(end, rows[k].op->schema, function, in_place);
            ops[count++] = rows[k].op;
        }
    signature->text = text;
    signature->ops = ops;
    return signature;
}

/* With DT_NN among the flags, for nn.functional. */
static int add(PyObject *module, unsigned flags, const char *name,
               dt_signature *signature, dt_function_call function,
               dt_function_call method, const char *doc)
{
    dt_function *entry = PyMem_RawCalloc(1, sizeof *entry);
    if (!entry || !name || !doc) {
        PyMem_RawFree(entry);
        PyErr_NoMemory();
        return -1;
    }
    entry->name = name;
    entry->signature = signature;
    entry->function = function;
    entry->method = method;
    entry->doc = doc;
    entry->example = entry->prints = "";
    if (!(flags & DT_NN))
        return dt_add_functions(module, entry, 1);
    dt_publish("nn.functional", entry, 1);
    return 0;
}

/* A text for free(); NULL where no memory is left. */
__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    char *text;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    return text;
}

/* The docstring of the in-place method. The last paragraph of a function with out= or
 * inplace= describes the result's type, which does not apply in place: replace it. */
static char *in_place_doc(const dt_op *op)
{
    int length = (int)name_length(op->schema);
    const char *end = strstr(op->doc, "\n\n");
    if (!end || (!strstr(op->schema, "out: Tensor") && !strstr(op->schema, "inplace")))
        return text_of("In-place %.*s(). %s", length, op->schema, op->doc);
    return text_of(
        "In-place %.*s(). %.*s\n\nThe result must have input's shape and a type that "
        "converts to input's (RuntimeError).",
        length, op->schema, (int)(end - op->doc), op->doc);
}

/* Adds row i, the first of its name, with its overloads; under another name where alias
 * is given. */
static int add_row(PyObject *module, int i, const char *alias)
{
    const dt_op *op = rows[i].op;
    /* The method tables use names and docstrings: never free them. */
    char *first = text_of("%.*s", (int)name_length(op->schema), op->schema);
    const char *name = alias ? alias : first;
    char *what = alias ? text_of("The same as %s().", first) : strdup(op->doc);
    char *doc = dt_doc_with_example(what, first, op->example, op->prints, false);
    free(what);
    unsigned flags = 0;
    bool shared = !strstr(op->schema, ": Sizes"); /* one signature for both */
    for (int k = i; k < NROWS && is_overload(i, k); k++) {
        flags |= rows[k].op->flags;
        shared = shared && (rows[k].op->flags & DT_BOTH) == DT_BOTH;
    }
    if (flags & DT_METHOD) {
        if (!method_signatures[i])
            method_signatures[i] = make_signature(i, DT_METHOD, false, false);
        if (shared)
            function_signatures[i] = method_signatures[i];
        if (!method_signatures[i] ||
            add(module, flags, name, method_signatures[i],
                shared ? rows[i].function : NULL, rows[i].method, doc) < 0)
            return -1;
    }
    const unsigned function = DT_FUNCTION | DT_NN;
    if (flags & function && !shared) {
        if (!function_signatures[i])
            function_signatures[i] =
                make_signature(i, function, flags & DT_METHOD, false);
        if (!function_signatures[i] || add(module, flags, name, function_signatures[i],
                                           rows[i].function, NULL, doc) < 0)
            return -1;
    }
    const unsigned in_place = DT_IN_PLACE | DT_IN_PLACE_TOO;
    if (!(flags & in_place))
        return 0;
    if (!in_place_signatures[i])
        in_place_signatures[i] = make_signature(i, in_place, false, true);
    what = alias ? text_of("The same as %s_().", first) : in_place_doc(op);
    doc = dt_doc_with_example(what, first, op->example, op->prints, true);
    free(what);
    if (!in_place_signatures[i])
        return -1;
    return add(module, flags, text_of("%s_", name), in_place_signatures[i],
               flags & DT_IN_PLACE_TOO ? rows[i].in_place_function : NULL,
               flags & DT_IN_PLACE ? rows[i].in_place_method : NULL, doc);
}

int dt_setup_operations(PyObject *module)
{
    for (int i = 0; i < NROWS; i++) {
        if (!(i && is_overload(i - 1, i)) &&
            rows[i].op->flags & (DT_BOTH | DT_IN_PLACE | DT_NN) &&
            add_row(module, i, NULL) < 0)
            return -1;
    }
    static const struct {
        const char *name;
        int row;
    } aliases[] = {
#define ALIAS(name, row) {#name, ROW_##row},
#include "ops/elementwise.def"
    };
    for (size_t k = 0; k < sizeof aliases / sizeof *aliases; k++)
        if (add_row(module, aliases[k].row, aliases[k].name) < 0)
            return -1;
    return 0;
}
