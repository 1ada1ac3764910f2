// Rows as text, in the format of SVMlight and LIBSVM: read piece by piece, and written.
//
//     line    = label [qid:query] feature:value feature:value ...   [# comment]
//     label   = a finite number        query, feature = whole numbers
//
// Blanks (space, tab, carriage return) separate; lines without a label are skipped. Features may
// come in any order, each once. Numbers are read and written as in C++'s std::from_chars and
// std::to_chars: the same in every locale, correctly rounded, and exact when read back.
//
// Cost: one look at each character. Memory: the rows not yet taken, and one line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data.hpp"

namespace maxmargin {

// Row i has values[k] of feature indices[k], starts[i] <= k < starts[i + 1], features increasing.
template <class T>
struct TextRows {
    std::vector<T> values;
    std::vector<std::int32_t> indices;
    std::vector<index> starts = {0};
    std::vector<double> labels;
    std::vector<index> queries;  // one for each row, or none where they are not asked for
};

template <class T>
class SvmlightParser {
  public:
    // Features are numbered from `first` to `last`. Query ids are kept, and required, or skipped.
    SvmlightParser(index first, index last, bool queries);

    // Parses the whole lines of all text so far; an incomplete one waits for its end. Throws
    // std::invalid_argument with the line's number; the parser is then of no more use.
    void feed(std::string_view text);

    // The text is over: its last line may lack an end.
    void finish();

    // Hands over the rows parsed since the last time.
    TextRows<T> take();

    // The bytes that take() would hand over.
    index bytes() const;

    // The smallest and the largest feature number so far; largest < smallest when there is none.
    index smallest() const { return smallest_; }
    index largest() const { return largest_; }

  private:
    void parse(std::string_view line);
    void parse_features(const char* at, const char* end);
    void sort_row(std::size_t begin);

    index first_, last_;
    bool queries_;
    index line_ = 0, smallest_, largest_;
    std::string carry_;  // the beginning of a line whose end has not come yet
    TextRows<T> rows_;
};

// One line for each row, features numbered from `first`, zeros left out; `queries` may be empty.
template <class T, class I>
std::string svmlight_text(const Csr<T, I>& rows, std::span<const double> labels,
                          std::span<const index> queries, index first);

}  // namespace maxmargin
