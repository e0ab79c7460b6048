/* The examples that docstrings show. tests/tools/test_examples.py runs them. */
#include <stdlib.h>
#include <string.h>

#include "python/functions.h"

typedef struct example {
    const char *name, *code, *result;
} example;

/* Each line of code with the prompt before it. */
static char *prompt(char *out, const char *code, const char *end)
{
    while (code < end) {
        const char *line = memchr(code, '\n', (size_t)(end - code));
        const char *stop = line ? line + 1 : end;
        out = stpcpy(out, ">>> ");
        memcpy(out, code, (size_t)(stop - code));
        out += stop - code;
        code = stop;
    }
    *out = '\0';
    return out;
}

static const char *closing(const char *c)
{
    int depth = 0;
    for (; *c; c++) {
        depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
        if (!depth)
            return c + 1;
    }
    return c;
}

/* The example of `name` on its receiver, in place: "torch.ones(2).exp()"
 * becomes "x = torch.ones(2)" and "x.exp_() is x", and "torch.selu(y)" or
 * "nn.functional.elu(y)" becomes "torch.selu_(y)" or "nn.functional.elu_(y)". Gives the
 * end; out where the example does not call the method. */
static char *write_in_place(char *out, const example *e)
{
    char call[48];
    snprintf(call, sizeof call, ".%s(", e->name);
    const char *last = strrchr(e->code, '\n');
    last = last ? last + 1 : e->code;
    const char *dot = strstr(last, call);
    if (!dot)
        return out;
    size_t home = (size_t)(dot - last);
    bool of_module = (home == 5 && !strncmp(last, "torch", home)) ||
                     (home == 13 && !strncmp(last, "nn.functional", home));
    /* x.exp() after lines that say what x is */
    bool named = of_module || dot == last + 1;
    const char *arguments = dot + strlen(call) - 1;
    const char *end = closing(arguments);
    out = prompt(out, e->code, last);
    if (!named) {
        out = stpcpy(out, ">>> x = ");
        memcpy(out, last, (size_t)(dot - last));
        out = stpcpy(out + (dot - last), "\n");
    }
    out = stpcpy(out, ">>> ");
    if (of_module)
        out = stpncpy(out, last, home);
    else
        *out++ = named ? *last : 'x';
    memcpy(out, dot, (size_t)(arguments - dot));
    out = stpcpy(out + (arguments - dot), "_");
    memcpy(out, arguments, (size_t)(end - arguments));
    out += end - arguments;
    if (of_module)
        return stpcpy(stpcpy(out, "\n"), e->result);
    out = stpcpy(out, " is ");
    *out++ = named ? *last : 'x';
    return stpcpy(out, "\nTrue");
}

/* Breaks lines of prose at spaces, in place: help() shows them as they are. */
static void wrap(char *text)
{
    char *line = text, *space = NULL;
    for (char *c = text; *c; c++) {
        if (*c == '\n') {
            line = c + 1;
            space = NULL;
        } else if (*c == ' ' && *line != ' ') {
            space = c;
        }
        if (c - line >= 80 && space) {
            *space = '\n';
            line = space + 1;
            space = NULL;
        }
    }
}

char *dt_doc_with_example(const char *doc, const char *name, const char *code,
                          const char *prints, bool in_place)
{
    const example e = {name, code, prints};
    if (!doc || !name) {
        PyErr_NoMemory();
        return NULL;
    }
    char *text =
        malloc(strlen(doc) + 5 * strlen(code) + strlen(prints) + strlen(name) + 64);
    if (!text) {
        PyErr_NoMemory();
        return NULL;
    }
    char *end = stpcpy(text, doc);
    wrap(text);
    if (!*code)
        return text;
    char *start = stpcpy(end, "\n\n");
    if (in_place) {
        if (write_in_place(start, &e) == start)
            *end = '\0';
    } else {
        start = prompt(start, code, code + strlen(code));
        if (*prints)
            stpcpy(stpcpy(start, "\n"), prints);
    }
    return text;
}
