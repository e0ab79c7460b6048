"""The search of the Chinese site: a page is found by its pairs of characters.

A dictionary would divide a page into words when the index is made; the browser, which
has none, could not divide in the same way what a reader types. Both can make pairs, and
a page that has all pairs of a query mostly has the query.
"""

from __future__ import annotations

import re
from itertools import pairwise

from sphinx.search.zh import SearchChinese

HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
RUN = re.compile(f"[{HAN}]+")


class Search(SearchChinese):
    # Sphinx calls the stemmer in the browser by it, and that is the one of English.
    language_name = "English"
    # What searchtools.js calls with the words that a reader types.
    js_splitter_code = f"""
function splitQuery(query) {{
  const runs = query.match(/[{HAN}]+|(?:(?![{HAN}])[\\p{{L}}\\p{{N}}_])+/gu) ?? [];
  return runs.flatMap((run) => {{
    if (run.length === 1 || !/[{HAN}]/.test(run)) return [run];
    return Array.from({{ length: run.length - 1 }}, (_, i) => run.slice(i, i + 2));
  }});
}}
"""

    def split(self, input: str) -> list[str]:
        terms = super().split(RUN.sub(" ", input))
        for run in RUN.findall(input):
            terms += [*run, *(a + b for a, b in pairwise(run))]
        return terms

    def word_filter(self, stemmed_word: str) -> bool:
        return bool(RUN.match(stemmed_word)) or super().word_filter(stemmed_word)
