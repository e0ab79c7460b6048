/* Compiled kernels for chains that run often. The machine (chain.cu) decodes each step for
 * each element; these kernels contain the steps of one program.
 *
 * Chains with the same key share a kernel. The key has the steps, types and layouts;
 * addresses, sizes and numbers are arguments. */
#ifndef DT_CUDA_KERNELS_CHAIN_COMPILED_H
#define DT_CUDA_KERNELS_CHAIN_COMPILED_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <string>
#include <vector>

#include "cuda/kernels/chain_kernel.h"
#include "cuda/kernels/chain_program.h"
#include "cuda/runtime/choices.h"
#include "device/module.h"

namespace {

typedef Given<DT_CHAIN_STEPS, DT_MAX_INPUTS, DT_CHAIN_LAYOUTS> Arguments;

/* --- the source --- */

__attribute__((format(printf, 2, 3))) void append(std::string *to, const char *format,
                                                  ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *to += text;
}

const char *row_name(const Instruction &now)
{
    return now.op < 0 ? "copy" : dt_elementwise_rows[now.op].name;
}

const char *type_name(Domain domain)
{
    return domain == IN_FLOAT ? "float" : domain == IN_DOUBLE ? "double" : "int64_t";
}

/* The text of an input of an instruction: the value of a slot, or a number. */
std::string input_text(const Program &p, int s, int i,
                       const std::vector<std::string> &slots)
{
    const Instruction &now = p.instructions[s];
    const char *type = type_name(now.domain);
    std::string text;
    if (i == 3 || now.inputs[i] == NONE)
        append(&text, "taken<%s>(given.numbers[%d][%d])", type, s, i);
    else if (p.wide)
        append(&text, "taken_as<%s>(%s.v[k], (Type)%d)", type,
               slots[now.inputs[i]].c_str(), now.types[i]);
    else
        append(&text, "%s.v[k]", slots[now.inputs[i]].c_str());
    return text;
}

void write_step(std::string *to, const Program &p, int s,
                const std::vector<std::string> &slots)
{
    const Instruction &now = p.instructions[s];
    const char *type = type_name(now.domain);
    append(to, "    %s r%d;\n    UNROLL\n    for (int k = 0; k < EACH; k++)\n",
           p.wide ? "WideWords" : "Values", s);
    append(to, "        r%d.v[k] = ", s);
    append(to, p.wide ? "held(row_%s<%s>(" : "row_%s<%s>(", row_name(now), type);
    for (int i = 0; i < 4; i++)
        *to += (i ? ", " : "") + input_text(p, s, i, slots);
    *to += p.wide ? "));\n" : ");\n";
    if (!p.wide && now.type == FLOATS && now.out == NONE)
        return;
    if (p.wide)
        append(to, "    const WideWords w%d = wide_rounded<%s>(&r%d, (Type)%d);\n", s,
               type, s, now.type);
    else
        append(to, "    const Words w%d = rounded(&r%d, (Type)%d);\n", s, s, now.type);
    if (now.out != NONE)
        append(to,
               "    put(Output{(char *)o%d, %d}, (Type)%d, first, WHOLE ? EACH : "
               "count_from(given.numel, first), w%d);\n",
               now.out, p.outputs[now.out].together, now.type, s);
}

/* Loads come first, so that all are in flight before the first store. */
void write_steps(std::string *to, const Program &p)
{
    std::vector<std::string> slots(NONE);
    for (int m = 0; m < p.nmemories; m++)
        append(
            to,
            "    const %s m%d = %s(given.layouts, Memory{(const char *)i%d, "
            "(Type)%d, (Way)%d, %d, 0}, first, WHOLE ? EACH : count_from(given.numel, "
            "first));\n",
            p.wide ? "WideWords" : "Values", m, p.wide ? "wide_at" : "values_at", m,
            p.memories[m].type, p.memories[m].way, p.memories[m].layout);
    for (int s = 0, m = 0; s < p.ninstructions; s++) {
        for (int k = 0; k < p.instructions[s].loads; k++, m++)
            slots[p.memories[m].slot] = "m" + std::to_string(m);
        write_step(to, p, s, slots);
        slots[p.instructions[s].slot] = "r" + std::to_string(s);
    }
}

std::string source_of(const Program &p)
{
    std::string pointers, names, text = "#include \"chain.h\"\n";
    for (int m = 0; m < p.nmemories; m++) {
        append(&pointers, "const void *i%d, ", m);
        append(&names, "i%d, ", m);
    }
    for (int o = 0; o < p.noutputs; o++) {
        append(&pointers, "void *o%d, ", o);
        append(&names, "o%d, ", o);
    }
    append(&text, "typedef Given<%d, %d, %d> Arguments;\n", DT_CHAIN_STEPS,
           DT_MAX_INPUTS, DT_CHAIN_LAYOUTS);
    text += "template <bool WHOLE>\n"
            "static __device__ __forceinline__ void run(" +
            pointers + "const Arguments &given, unsigned first)\n{\n";
    write_steps(&text, p);
    text +=
        "}\n"
        "extern \"C\" __global__ void chain(" +
        pointers +
        "const __grid_constant__ Arguments given)\n{\n"
        "    const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * EACH;\n"
        "    if (first >= given.numel)\n"
        "        return;\n"
        "    if (given.numel - first >= EACH)\n"
        "        run<true>(" +
        names +
        "given, first);\n"
        "    else\n"
        "        run<false>(" +
        names + "given, first);\n}\n";
    return text;
}

/* Whether all compilers produce the same bits: it calls no function of CUDA's mathematics
 * library, whose versions differ in the last bits. */
bool is_exact(const Program &p)
{
    for (int s = 0; s < p.ninstructions; s++) {
        const int op = p.instructions[s].op;
        if (op < 0 || p.instructions[s].domain == IN_WHOLE || op == DT_OP_div ||
            op == DT_OP_sqrt || op == DT_OP_rsqrt || op == DT_OP_reciprocal)
            continue;
        const dt_class &c = dt_elementwise_rows[op].class_;
        if (c.cost > 1 || c.rule == DT_RULE_EXPONENT)
            return false;
    }
    return true;
}

/* --- kernels by key --- */

struct Compiled {
    int runs; /* before the kernel was compiled */
    const dt_module_kernel *kernel;
};

Choices<std::string, Compiled> compiled;
/* Keys of the sources sent to the compiler, by their numbers. */
std::vector<std::string> asked;

/* The device, and the parts of a program that the source depends on. */
std::string key_of(int device, const Program &p)
{
    std::string key = {(char)device, (char)p.ninstructions, (char)p.nmemories,
                       (char)p.noutputs, (char)p.wide};
    for (int s = 0; s < p.ninstructions; s++)
        key.append((const char *)&p.instructions[s], offsetof(Instruction, out) + 1);
    for (int m = 0; m < p.nmemories; m++)
        key.append((const char *)&p.memories[m].type,
                   offsetof(Memory, slot) + 1 - offsetof(Memory, type));
    for (int o = 0; o < p.noutputs; o++)
        key += (char)p.outputs[o].together;
    return key;
}

int launch_compiled(const dt_module_kernel *kernel, dt_stream stream, const Program &p)
{
    Arguments given = {};
    const void *pointers[DT_MODULE_PARAMETERS];
    void *values[DT_MODULE_PARAMETERS];
    int n = 0;
    given.numel = p.numel;
    for (int s = 0; s < p.ninstructions; s++)
        memcpy(given.numbers[s], p.instructions[s].numbers, sizeof given.numbers[s]);
    memcpy(given.layouts, p.layouts, sizeof given.layouts);
    for (int m = 0; m < p.nmemories; m++)
        pointers[n++] = p.memories[m].data;
    for (int o = 0; o < p.noutputs; o++)
        pointers[n++] = p.outputs[o].data;
    for (int i = 0; i < n; i++)
        values[i] = &pointers[i];
    values[n] = &given;
    dt_module_call call = {};
    call.kernel = kernel;
    const unsigned of_block = BLOCK * EACH;
    call.grid[0] = (p.numel + of_block - 1) / of_block;
    call.block[0] = BLOCK;
    call.grid[1] = call.grid[2] = call.block[1] = call.block[2] = 1;
    call.values = values;
    return dt_cuda_launch(stream, &call);
}

} // namespace

#endif
