/* The lines of the program that called the library, by number. */
#ifndef DT_PYTHON_SOURCE_LINES_H
#define DT_PYTHON_SOURCE_LINES_H

#include "device/activity.h"
#include "python/module.h"

/* folder: the library's, whose own lines do not count. */
void dt_source_lines_start(const char *folder);

/* [(file, line, function, module), ...]: the meaning of the numbers of dt_activity_line. A new
 * reference, or NULL with an exception set. */
PyObject *dt_source_lines(void);

/* "train.py:31" of the line that runs now, or "" where it is unknown. */
char *dt_source_line_now(char text[DT_LINE_TEXT]);
/* The same, where the `depth` innermost frames are the library's: each frame that Python makes
 * an object of costs 0.3 us. */
char *dt_source_line_above(int depth, char text[DT_LINE_TEXT]);
/* The same of the line of a number. */
char *dt_source_line_text(int number, char text[DT_LINE_TEXT]);

#endif
