/* The lines of the program that called the library, by number. */
#ifndef DT_PYTHON_SOURCE_LINES_H
#define DT_PYTHON_SOURCE_LINES_H

#include "device/activity.h"
#include "python/module.h"

/* folder: the library's, whose own lines do not count. */
void dt_places_start(const char *folder);

/* [(file, line, function, module), ...]: the meaning of the numbers of dt_activity_place. A new
 * reference, or NULL with an exception set. */
PyObject *dt_places(void);

/* "train.py:31" of the line that runs now, or "" where it is unknown. */
char *dt_place_text(char text[DT_PLACE_TEXT]);
/* The same of the place with a number. */
char *dt_place_name(int number, char text[DT_PLACE_TEXT]);

#endif
