/* Signatures: schemas as calls are bound to them, and as help() shows them. */
#include <string.h>

#include "python/arguments.h"

/* Parses the form at s->text. */
static int read_form(dt_signature *s, const char **end)
{
    dt_schema *schema = PyMem_RawCalloc(1, sizeof *schema);
    if (!schema) {
        PyErr_NoMemory();
        return -1;
    }
    if (dt_schema_parse(schema, s->text, DT_MAX_ARGUMENTS, end) < 0)
        return dt_raise_status();
    s->count = schema->count;
    s->positional = schema->positional;
    s->required = schema->required;
    s->rest = schema->rest;
    s->out = schema->out;
    s->name = schema->name;
    s->parameters = schema->parameters;
    s->names = PyMem_RawCalloc((size_t)s->count + 1, sizeof *s->names);
    if (!s->names) {
        PyErr_NoMemory();
        return -1;
    }
    s->inplace = s->count;
    for (int i = 0; i < s->count; i++) {
        s->names[i] = PyUnicode_InternFromString(s->parameters[i].name);
        if (!s->names[i])
            return -1;
        if (!strcmp(s->parameters[i].name, "inplace"))
            s->inplace = i;
    }
    return 0;
}

int dt_signature_read(dt_signature *signature)
{
    if (signature->ready)
        return 0;
    const char *end;
    int form = 0;
    for (dt_signature *s = signature; s; s = s->next) {
        if (read_form(s, &end) < 0)
            return -1;
        s->op = signature->ops ? signature->ops[form++] : NULL;
        end = dt_schema_skip(end);
        if (*end != '|')
            continue;
        s->next = PyMem_RawCalloc(1, sizeof *s);
        if (!s->next) {
            PyErr_NoMemory();
            return -1;
        }
        s->next->text = dt_schema_skip(end + 1);
    }
    bool one = !signature->next && signature->count <= DT_MAX_PARAMETERS;
    bool keywords_optional = true;
    for (int i = signature->positional; i < signature->count; i++)
        keywords_optional &= i == signature->rest || !signature->parameters[i].required;
    signature->simple = one && signature->rest < 0 && keywords_optional;
    signature->spreads = one && signature->rest >= 0 && keywords_optional &&
                         signature->rest == signature->positional &&
                         signature->required >= signature->rest;
    for (dt_signature *s = signature; s; s = s->next)
        s->ready = true;
    return 0;
}

/* One form without words of types: Python's own reader of such texts takes no
 * annotations. */
static char *copy_form(const char *text, const char *end, const char *name,
                       const char *self, char *out)
{
    out = stpcpy(out, name);
    const char *c = strchr(text, '(');
    *out++ = *c++;
    if (self && *c != ')' && *c != '*') {
        out = stpcpy(out, self);
        c = strchr(c, ':');
        if (!*self) {
            c = dt_schema_type_end(dt_schema_skip(c + 1));
            c += *c == ',' ? 2 : 0;
        }
    }
    while (c < end) {
        if (*c == ':') {
            c = dt_schema_type_end(dt_schema_skip(c + 1));
            if (c[0] == ' ' && c[1] == '=') {
                *out++ = '=';
                c = dt_schema_skip(c + 2);
            }
            continue;
        }
        *out++ = *c++;
    }
    while (out[-1] == ' ')
        out--;
    return out;
}

/* All forms, without their results; each after `before`. Forms that follow one another and
 * differ in types alone are one. */
static char *copy_forms(const char *text, const char *name, const char *self,
                        const char *before, char *out)
{
    const char *last = out;
    for (const char *form = text; form;) {
        const char *bar = strstr(form, " | ");
        const char *end = bar ? bar : form + strlen(form);
        const char *arrow = strstr(form, " -> ");
        char *start = out;
        out = stpcpy(out, before);
        out = copy_form(form, arrow && arrow < end ? arrow : end, name, self, out);
        if (out - start == start - last && !memcmp(start, last, (size_t)(out - start)))
            out = start;
        else
            last = start;
        form = bar ? bar + 3 : NULL;
    }
    *out = '\0';
    return out;
}

char *dt_signature_forms(const char *text, const char *name, bool method)
{
    size_t forms = 1;
    for (const char *c = text; (c = strstr(c, " | ")); c += 3)
        forms++;
    char *buffer = PyMem_Malloc(strlen(text) + forms * (strlen(name) + 8) + 1);
    if (!buffer) {
        PyErr_NoMemory();
        return NULL;
    }
    copy_forms(text, name, method ? "" : NULL, " | ", buffer);
    return buffer;
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
        const char *arrow = strstr(form, " -> ");
        if (arrow && arrow < end)
            end = arrow;
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
    char *out = copy_form(shown, shown_end, name, method ? "$self" : NULL, buffer);
    out = stpcpy(out, "\n--\n\n");
    out = stpcpy(out, doc);
    if (forms > 1) {
        char *list = stpcpy(out, "\n\nForms:");
        char *end = copy_forms(text, name, method ? "" : NULL, "\n    ", list);
        out = strchr(list + 1, '\n') ? end : out;
    }
    *out = '\0';
    return buffer;
}
