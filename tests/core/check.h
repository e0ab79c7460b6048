/* Checks of a test in C++: a failed one is counted and printed and the test continues;
 * finish() returns the exit status. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int failed;

#define CHECK(what)                                                                    \
    ((what)                                                                            \
         ? (void)0                                                                     \
         : (void)(failed++, printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what)))
#define EQUAL(got, wanted) check_equal((got), (wanted), #got, __FILE__, __LINE__)
template <class T, class U>
static void check_equal(T got, U wanted, const char *what, const char *file, int line)
{
    if (got == (T)wanted)
        return;
    failed++;
    printf("%s:%d: %s is %g, not %g\n", file, line, what, (double)got, (double)wanted);
}

static inline int finish()
{
    if (failed)
        printf("%d checks failed\n", failed);
    return failed != 0;
}

#endif
