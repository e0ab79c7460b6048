/* Schemas: a function's parameters and results, written once as text:
 *
 *     "sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype = None)"
 *     "sort(input: Tensor, dim: int = -1) -> (values, indices)"
 *
 * The text binds calls, names arguments in errors, and is what help(),
 * inspect.signature and the stubs show. Parameter types: DT_PARAM_TYPES. `*name: Sizes`
 * takes the sizes as arguments, as one sequence or by keyword; `*name: Tensors` takes any
 * number of Tensors as arguments or as one sequence. None is taken where it is the default,
 * and by a type with a question mark: `mean: Tensor?`. Without "->" the result is a Tensor;
 * "(values, indices)" is a named tuple, "(Tensor, Tensor)" a plain one; "(Tensor, Tensor?)"
 * lacks the results that forward did not make, and gives one alone without a tuple. */
#ifndef DT_TENSOR_SCHEMA_H
#define DT_TENSOR_SCHEMA_H

#include "base/dtype.h"

#define DT_MAX_PARAMETERS 12 /* of an operation */
#define DT_MAX_ARGUMENTS  25 /* of a public function */
#define DT_MAX_NAME       40
#define DT_MAX_INTS       5         /* parameters of type Dims, Lengths or Sizes */
#define DT_KEPT           INT64_MIN /* None among Lengths: the size that there is */

/* TYPE(ID, word, expected): the word in schemas, and what messages say is expected. */
#define DT_PARAM_TYPES(TYPE)                                                           \
    TYPE(TENSOR, "Tensor", "a Tensor")                                                 \
    TYPE(TENSORS, "Tensors", "a tuple or list of Tensors")                             \
    TYPE(VALUE, "Value", "a Tensor or a number")                                       \
    TYPE(NUMBER, "Number", "a number")                                                 \
    TYPE(SCALAR, "Scalar", "a number, which may be complex")                           \
    TYPE(FLOAT, "float", "a float")                                                    \
    TYPE(INT, "int", "an int")                                                         \
    TYPE(BOOL, "bool", "a bool")                                                       \
    TYPE(TRUTH, "Truth", "a bool, or what is true or false")                           \
    TYPE(STR, "str", "a str")                                                          \
    TYPE(ORDER, "Order", "a number, float('inf'), 'fro' or 'nuc'")                     \
    TYPE(DIMS, "Dims", "an int or a tuple of ints")                                    \
    TYPE(LENGTHS, "Lengths", "an int, or a tuple of ints and None")                    \
    TYPE(SIZES, "Sizes", "a tuple of ints")                                            \
    TYPE(INTS, "Ints", "a tuple or list of ints, any number of them")                  \
    TYPE(DTYPE, "Dtype", "a dtype such as torch.float32")                              \
    TYPE(DEVICE, "Device", "a device, such as 'cpu' or 'cuda:0'")                      \
    TYPE(LAYOUT, "Layout", "a layout: torch.strided")                                  \
    TYPE(FORMAT, "Format", "a memory format, such as torch.channels_last")             \
    TYPE(GENERATOR, "Generator", "a Generator")                                        \
    TYPE(ANY, "Any", "an object")

/* The last parameters of every factory, which the binding handles: a forward function
 * sees dtype (-1: not given) and device (resolved). */
#define DT_FACTORY_KWARGS                                                              \
    "dtype: Dtype = None, layout: Layout = None, device: Device = None, "              \
    "requires_grad: bool = False, pin_memory: bool = False"
#define DT_FACTORY_NKWARGS    5
#define DT_FACTORY_KWARGS_OUT DT_FACTORY_KWARGS ", out: Tensor = None"

typedef enum dt_param_type {
#define TYPE(ID, word, expected) DT_PARAM_##ID,
    DT_PARAM_TYPES(TYPE)
#undef TYPE
        DT_NPARAM_TYPES
} dt_param_type;

/* An int or several, of the dimensions of a tensor. */
static inline bool dt_param_is_per_dim(dt_param_type type)
{
    return type == DT_PARAM_DIMS || type == DT_PARAM_LENGTHS || type == DT_PARAM_SIZES;
}

typedef struct dt_parameter {
    char name[DT_MAX_NAME];
    dt_param_type type;
    bool required;
    bool none;          /* None is taken */
    dt_scalar fallback; /* the default, where it is a number or a bool */
} dt_parameter;

typedef struct dt_schema {
    char name[DT_MAX_NAME];
    int count;      /* of parameters */
    int positional; /* parameters that may be given by position */
    int required;   /* positional parameters without a default */
    int rest;       /* index of `*name`, or -1 */
    int out;        /* index of `out`, or -1 */
    dt_parameter *parameters;
    const char *results; /* text after "->", or NULL for a Tensor; ends at " | " */
} dt_schema;

/* Parses the form at text, up to " | " or the end, which *end points to then. -1 after
 * dt_fail: the text is malformed (a bug), has more than `most` parameters, or no memory is
 * left. */
int dt_schema_parse(dt_schema *out, const char *text, int most, const char **end);

/* The end of the spaces at c, of the word, and of the type. */
const char *dt_schema_skip(const char *c);
const char *dt_schema_word_end(const char *c);
const char *dt_schema_type_end(const char *c);

#endif
