/* An operation's record, and one call of it.
 *
 * A row of ops/functions is a record, dt_op: what Python calls it by, its forward
 * function, its backward function and what that one needs. A call, dt_call, holds the
 * arguments in the order of the schema. dt_dispatch (autograd/dispatch.h) runs a call;
 * the binding makes one from Python's arguments (python/call.c), and C code makes one
 * with DT_CALL. */
#ifndef DT_TENSOR_CALL_H
#define DT_TENSOR_CALL_H

#include "tensor/ops/elementwise.h"
#include "tensor/schema.h"
#include "tensor/tensor.h"

#define DT_MAX_RESULTS 4

/* An argument. Which member counts follows from the parameter's type. */
typedef struct dt_value {
    const dt_tensor *tensor; /* Tensor, Value; NULL: None, or a number */
    union {
        dt_scalar scalar;                /* Value, Number, Scalar */
        int64_t i;                       /* int */
        double f;                        /* float, Order */
        bool b;                          /* bool */
        int dtype;                       /* Dtype; -1: None */
        dt_device device;                /* Device */
        const char *text;                /* str; NULL: None */
        const int64_t *ints;             /* Dims, Sizes, Ints: `count` of them */
        const dt_tensor *const *tensors; /* Tensors: `count` of them */
        void *generator;                 /* Generator: a dt_generator, or NULL */
    };
    double imag;       /* of a Scalar whose kind is DT_KIND_COMPLEX */
    int count;         /* of ints or tensors; -1: None */
    bool given;        /* not None, and not left out */
    bool column_major; /* of a matrix, for backward functions of DT_BILINEAR */
} dt_value;

struct dt_op;

typedef struct dt_call {
    struct dt_op *op;
    const char *name; /* the public name, for messages */
    const char *node; /* of the gradient's node; the record's, unless forward sets it */
    const dt_value *args;
    /* The result becomes the first input: name_(). With DT_WRITES out[0] is that input,
     * which forward writes; else the caller replaces it by the result. */
    bool in_place;
    /* The argument out=, or NULL. A forward function may write the result there: out[0]
     * is an alias of it then. Else the binding copies it there. */
    dt_tensor *target;
    /* Where the results go. A forward function fills out[0] to out[nresults - 1]; an
     * optional result that nobody wants is NULL. */
    dt_tensor *out[DT_MAX_RESULTS];
    /* Of "-> Tensors": forward makes the list with dt_call_make_list and fills it. */
    dt_tensor *list;
    int64_t list_count;
} dt_call;

/* A list of `count` results that hold nothing yet; the caller of dt_dispatch frees it
 * with dt_call_free_list. -1 after dt_fail. */
int dt_call_make_list(dt_call *call, int64_t count);
void dt_call_free_list(dt_call *call);

struct dt_grad;

/* dt_op.flags: */
enum {
    /* where Python finds it: */
    DT_FUNCTION = 1,     /* torch.name */
    DT_METHOD = 2,       /* Tensor.name */
    DT_IN_PLACE = 4,     /* Tensor.name_, which writes the result into input */
    DT_IN_PLACE_TOO = 8, /* torch.name_, or nn.functional.name_ of a DT_NN */
    DT_NN = 2097152,     /* nn.functional.name, instead of the others */
    DT_BOTH = DT_FUNCTION | DT_METHOD,
    DT_INTERNAL = 0, /* for C code alone */
    /* what it is like: */
    DT_VIEW = 16,      /* the result is, or may be, a view of the first input */
    DT_LONG = 64,      /* may release the GIL whatever the sizes: it may synchronize */
    DT_COSTLY = 128,   /* may release the GIL for small tensors already */
    DT_BILINEAR = 512, /* an input is saved for the gradients of the others only */
    DT_OUT_BREAKS_GRAPH = 2048, /* out= is accepted where a gradient is wanted, but the
                                   backward pass fails there, as in PyTorch */
    DT_ANY_DEVICE = 256,        /* inputs may be on different devices; forward checks */
    DT_WRITES = 1024,           /* in place, forward writes into the first input */
    DT_NUMBERS = 4096,          /* numbers alone will do: the first becomes a tensor */
    /* the type of its tensors under autocast (autograd/autocast.h): */
    DT_CASTS_LOWER = 8192,         /* the lower one */
    DT_CASTS_FLOAT = 16384,        /* float32 */
    DT_CASTS_FLOAT_ON_GPU = 32768, /* float32 on a GPU */
    DT_CASTS_MIXED = 65536,        /* if they differ, float32, and the first one's again
                                      for the result */
    DT_CASTS_LOWER_ON_GPU = 131072,   /* the lower one on a GPU */
    DT_CASTS_FLOAT_ON_CPU = 262144,   /* float32 on the CPU */
    DT_CASTS_WIDEST_ON_CPU = 524288,  /* if they differ, float32, on the CPU */
    DT_CASTS_WIDEST_ON_GPU = 1048576, /* and on a GPU */
    DT_CASTS = DT_CASTS_LOWER | DT_CASTS_LOWER_ON_GPU | DT_CASTS_FLOAT |
        DT_CASTS_FLOAT_ON_CPU | DT_CASTS_FLOAT_ON_GPU | DT_CASTS_MIXED |
        DT_CASTS_WIDEST_ON_CPU | DT_CASTS_WIDEST_ON_GPU,
};

/* dt_op.saves: which tensors the backward function needs. A result beyond those that
 * the schema returns is made for the backward function alone. */
#define DT_SAVES_NOTHING   0u
#define DT_SAVES_INPUT(i)  (1u << (i)) /* argument i, by position in the schema */
#define DT_SAVES_OUTPUT(i) (1u << (16 + (i))) /* result i */
#define DT_SAVES           0xfffffu
/* Argument i, a tensor or a list of them, gets no gradient. A list that is saved is the
 * last tensor saved. */
#define DT_NO_GRADIENT(i) (1u << (20 + (i)))

typedef struct dt_op {
    const char *schema;
    unsigned flags;
    int (*forward)(dt_call *call);
    int (*backward)(struct dt_grad *grad); /* NULL: results have no gradient */
    unsigned saves;
    const char *node; /* the name of its node, PyTorch's */
    const char *doc;
    const char *example; /* code, each line a statement; the last one is printed */
    const char *prints;
    struct dt_op_info *info; /* what follows from the schema; autograd/dispatch.h */
} dt_op;
typedef struct dt_op_info dt_op_info;

/* The arguments of calls that C code makes. */
static inline dt_value dt_value_tensor(const dt_tensor *t)
{
    return (dt_value){.tensor = t, .given = t != NULL};
}
static inline dt_value dt_value_int(int64_t i)
{
    return (dt_value){.i = i, .given = true};
}
static inline dt_value dt_value_bool(bool b)
{
    return (dt_value){.b = b, .given = true};
}
static inline dt_value dt_value_number(double number)
{
    return (dt_value){.scalar = dt_scalar_float(number), .given = true};
}
static inline dt_value dt_value_scalar(dt_scalar scalar)
{
    return (dt_value){.scalar = scalar, .given = true};
}
static inline dt_value dt_value_tensors(int count, const dt_tensor *const *tensors)
{
    return (dt_value){.tensors = tensors, .count = count, .given = true};
}
static inline dt_value dt_value_dtype(int dtype)
{
    return (dt_value){.dtype = dtype, .given = dtype >= 0};
}
static inline dt_value dt_value_device(dt_device device)
{
    return (dt_value){.device = device, .given = true};
}
/* count -1: None */
static inline dt_value dt_value_ints(int count, const int64_t *ints)
{
    return (dt_value){.ints = ints, .count = count, .given = count >= 0};
}
static inline dt_value dt_value_none(void)
{
    return (dt_value){.count = -1};
}
/* The value of an omitted parameter. */
static inline dt_value dt_value_default(const dt_parameter *p)
{
    dt_value v = {.count = -1};
    if (p->type == DT_PARAM_DTYPE)
        v.dtype = -1;
    else if (p->type == DT_PARAM_INT)
        v.i = p->fallback.i;
    else if (p->type == DT_PARAM_BOOL || p->type == DT_PARAM_TRUTH)
        v.b = p->fallback.i != 0;
    else if (p->type == DT_PARAM_FLOAT)
        v.f = dt_scalar_as_double(p->fallback);
    else if (p->type == DT_PARAM_VALUE || p->type == DT_PARAM_NUMBER ||
             p->type == DT_PARAM_SCALAR)
        v.scalar = p->fallback;
    return v;
}

/* The operand of a Value argument. */
static inline dt_arg dt_value_operand(const dt_value *v)
{
    return v->tensor ? dt_arg_tensor(v->tensor) : dt_arg_scalar(v->scalar);
}

/* The operand of argument i, a Scalar, for elements of type dtype: a complex number becomes
 * `number`, a tensor without dimensions. -1 after dt_fail: the elements are real. */
int dt_call_number(const dt_call *c, int i, dt_dtype dtype, dt_tensor *number,
                   dt_arg *out);

#endif
