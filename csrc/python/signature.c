/* Reading signatures: the text of a function's parameters becomes a table, once. */
#include <ctype.h>
#include <string.h>

#include "python/arguments.h"

static const char *const words[DT_NPARAM_TYPES] = {
#define WORD(ID, word, expected) word,
    DT_PARAM_TYPES(WORD)
#undef WORD
};

static const char *skip(const char *c)
{
    while (*c == ' ')
        c++;
    return c;
}

static const char *name_end(const char *c)
{
    while (isalnum((unsigned char)*c) || *c == '_')
        c++;
    return c;
}

static int broken(const char *text)
{
    PyErr_Format(PyExc_SystemError, "pydevtensor: a signature cannot be read: %s",
                 text);
    return -1;
}

/* The default at c, into p; gives its end. */
static const char *read_default(const char *c, dt_parameter *p)
{
    p->required = false;
    if (!strncmp(c, "None", 4)) {
        p->none = true;
        return c + 4;
    }
    if (!strncmp(c, "True", 4) || !strncmp(c, "False", 5)) {
        p->fallback = dt_scalar_bool(*c == 'T');
        return name_end(c);
    }
    if (*c == '\'') {
        const char *end = strchr(c + 1, '\'');
        return end ? end + 1 : c + strlen(c);
    }
    char *end;
    double number = strtod(c, &end);
    bool whole = true;
    for (const char *d = c; d < end; d++)
        whole &= *d == '-' || isdigit((unsigned char)*d);
    p->fallback = whole ? dt_scalar_int((int64_t)number) : dt_scalar_float(number);
    return end;
}

static int read_form(dt_signature *s, const char *text, const char **out_end)
{
    dt_parameter parameters[DT_MAX_PARAMETERS];
    memset(parameters, 0, sizeof parameters);
    const char *c = name_end(text);
    size_t length = (size_t)(c - text);
    if (*c != '(' || length >= sizeof s->name)
        return broken(text);
    memcpy(s->name, text, length);
    s->name[length] = '\0';
    s->count = s->required = 0;
    s->positional = s->rest = -1;
    for (c = skip(c + 1); *c && *c != ')';) {
        if (*c == '*') {
            s->positional = s->count;
            if (c[1] == ',') {
                c = skip(c + 2);
                continue;
            }
            s->rest = s->count;
            c++;
        }
        if (s->count == DT_MAX_PARAMETERS)
            return broken(text);
        dt_parameter *p = &parameters[s->count++];
        const char *name = c;
        c = name_end(c);
        p->name = PyUnicode_FromStringAndSize(name, c - name);
        if (!p->name)
            return -1;
        PyUnicode_InternInPlace(&p->name);
        p->required = true;
        p->word = DT_NPARAM_TYPES;
        if (*c == ':') {
            const char *word = skip(c + 1);
            c = name_end(word);
            for (int w = 0; w < DT_NPARAM_TYPES; w++)
                if (strlen(words[w]) == (size_t)(c - word) &&
                    !memcmp(words[w], word, (size_t)(c - word)))
                    p->word = (dt_param_type)w;
        }
        if (p->word == DT_NPARAM_TYPES)
            return broken(text);
        bool many = p->word == DT_PARAM_TENSORS || p->word == DT_PARAM_ANY;
        if (many && s->rest == s->count - 1)
            p->required = false; /* none at all is a number of them too */
        c = skip(c);
        if (*c == '=')
            c = skip(read_default(skip(c + 1), p));
        s->required += p->required;
        if (*c == ',')
            c = skip(c + 1);
        else if (*c != ')')
            return broken(text);
    }
    if (*c != ')')
        return broken(text);
    if (s->positional < 0)
        s->positional = s->count;
    size_t bytes = (size_t)(s->count ? s->count : 1) * sizeof *parameters;
    s->parameters = PyMem_RawMalloc(bytes);
    if (!s->parameters) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(s->parameters, parameters, bytes);
    *out_end = skip(c + 1);
    return 0;
}

int dt_signature_read(dt_signature *signature)
{
    if (signature->ready)
        return 0;
    const char *c = signature->text;
    for (dt_signature *s = signature;;) {
        if (read_form(s, c, &c) < 0)
            return -1;
        if (*c != '|')
            break;
        c = skip(c + 1);
        s->next = PyMem_RawCalloc(1, sizeof *s);
        if (!s->next) {
            PyErr_NoMemory();
            return -1;
        }
        s->next->text = c;
        s = s->next;
    }
    signature->simple = !signature->next && signature->rest < 0;
    for (int i = signature->positional; i < signature->count; i++)
        signature->simple &= !signature->parameters[i].required;
    for (dt_signature *s = signature; s; s = s->next)
        s->ready = true;
    return 0;
}

/* One form without words of types: Python's own reader of such texts takes no
 * annotations. */
static char *copy_form(const char *text, const char *end, const char *name, bool method,
                       char *out)
{
    out = stpcpy(out, name);
    const char *c = strchr(text, '(');
    *out++ = *c++;
    if (method && *c != ')' && *c != '*') {
        out = stpcpy(out, "$self");
        c = strchr(c, ':');
    }
    while (c < end) {
        if (*c == ':') {
            c = name_end(skip(c + 1));
            if (c[0] == ' ' && c[1] == '=') {
                *out++ = '=';
                c = skip(c + 2);
            }
            continue;
        }
        *out++ = *c++;
    }
    while (out[-1] == ' ')
        out--;
    return out;
}

char *dt_signature_doc(const char *text, const char *name, bool method, const char *doc)
{
    /* Shown as the signature: the form with the most parameters. */
    const char *shown = text, *shown_end = NULL;
    size_t forms = 0;
    int most = -1;
    for (const char *form = text; form; forms++) {
        const char *bar = strstr(form, " | ");
        const char *end = bar ? bar : form + strlen(form);
        int colons = 0;
        for (const char *c = form; c < end; c++)
            colons += *c == ':';
        if (colons > most) {
            most = colons;
            shown = form;
            shown_end = end;
        }
        form = bar ? bar + 3 : NULL;
    }
    size_t room =
        2 * strlen(text) + (forms + 1) * (strlen(name) + 16) + strlen(doc) + 64;
    char *buffer = PyMem_Malloc(room);
    if (!buffer) {
        PyErr_NoMemory();
        return NULL;
    }
    char *out = copy_form(shown, shown_end, name, method, buffer);
    out = stpcpy(out, "\n--\n\n");
    out = stpcpy(out, doc);
    if (forms > 1) {
        out = stpcpy(out, "\n\nForms:");
        for (const char *form = text; form;) {
            const char *bar = strstr(form, " | ");
            const char *end = bar ? bar : form + strlen(form);
            out = stpcpy(out, "\n    ");
            memcpy(out, form, (size_t)(end - form));
            out += end - form;
            form = bar ? bar + 3 : NULL;
        }
    }
    *out = '\0';
    return buffer;
}
