#include "svmlight.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

namespace maxmargin {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

const char* skip_blanks(const char* at, const char* end) {
    while (at != end && blank(*at)) ++at;
    return at;
}

std::string_view word(const char* at, const char* end) {
    return {at, static_cast<std::size_t>(std::find_if(at, end, blank) - at)};
}

// The word in quotes, for a message: plain ASCII, and not too long.
std::string quoted(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string out = "'";
    for (const char c : text.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            out += c;
            continue;
        }
        constexpr const char* digits = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
    return out + (text.size() > longest ? "...'" : "'");
}

// Whether a decimal number that a double cannot hold is too small for it, and not too large: where
// its first digit other than 0 stands, counted from the decimal point, plus its exponent.
bool vanishes(std::string_view digits) {
    const std::size_t e = std::min(digits.find_first_of("eE"), digits.size());
    const std::string_view mantissa = digits.substr(0, e);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t leading = mantissa.find_first_of("123456789");
    if (leading == std::string_view::npos) return true;
    index exponent = 0;
    if (e < digits.size()) {
        const char* at = digits.data() + e + 1;
        if (*at == '+') ++at;
        const auto result = std::from_chars(at, digits.data() + digits.size(), exponent);
        if (result.ec == std::errc::result_out_of_range) return *at == '-';
    }
    return static_cast<index>(point) - static_cast<index>(leading) + exponent < 0;
}

// Skips a plus sign, which from_chars does not know; false: a minus sign follows.
bool skip_plus(const char*& at, const char* end) {
    if (at == end || *at != '+') return true;
    ++at;
    return at == end || *at != '-';
}

// Reads a number that ends at a blank or at `end`, and moves `at` behind it. False: it is none. A
// number too large is infinite, one too small is 0.
bool read_number(const char*& at, const char* end, double& number) {
    const char* begin = at;
    if (!skip_plus(begin, end)) return false;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error == std::errc::invalid_argument || (stop != end && !blank(*stop))) return false;
    if (error == std::errc::result_out_of_range) {
        const bool small = vanishes({begin, static_cast<std::size_t>(stop - begin)});
        number = small ? 0.0 : std::numeric_limits<double>::infinity();
    }
    at = stop;
    return true;
}

// Reads a whole number, which ends anywhere; false: it is none, or has too many digits.
bool read_whole(const char*& at, const char* end, index& number) {
    if (!skip_plus(at, end)) return false;
    const auto [stop, error] = std::from_chars(at, end, number);
    at = stop;
    return error == std::errc();
}

template <class Number>
void append(std::string& out, Number number) {
    char digits[32];  // the shortest form of a double takes 24
    out.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

}  // namespace

// ------------------------------------------------------------------ reading

template <class T>
SvmlightParser<T>::SvmlightParser(index first, index last, bool queries)
    : first_(first),
      last_(std::min<index>(last, std::numeric_limits<std::int32_t>::max())),
      queries_(queries),
      smallest_(last_ + 1),
      largest_(first - 1) {}

template <class T>
void SvmlightParser<T>::feed(std::string_view text) {
    if (!carry_.empty()) {
        const std::size_t end = text.find('\n');
        carry_ += text.substr(0, end);
        if (end == std::string_view::npos) return;
        parse(carry_);
        carry_.clear();
        text.remove_prefix(end + 1);
    }
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
         text.remove_prefix(end + 1))
        parse(text.substr(0, end));
    carry_ = text;
}

template <class T>
void SvmlightParser<T>::finish() {
    if (!carry_.empty()) parse(carry_);
    carry_.clear();
}

template <class T>
TextRows<T> SvmlightParser<T>::take() {
    return std::exchange(rows_, {});
}

template <class T>
index SvmlightParser<T>::bytes() const {
    const std::size_t nonzeros = rows_.values.size(), rows = rows_.labels.size();
    const std::size_t numbers = 2 * rows + rows_.queries.size();  // labels, starts, queries
    return static_cast<index>(nonzeros * (sizeof(T) + sizeof(std::int32_t)) +
                              numbers * sizeof(index));
}

template <class T>
void SvmlightParser<T>::parse(std::string_view line) {
    ++line_;
    const auto fail = [this](const std::string& what) {
        throw std::invalid_argument("line " + std::to_string(line_) + ": " + what);
    };
    line = line.substr(0, line.find('#'));
    const char* at = line.data();
    const char* const end = at + line.size();
    at = skip_blanks(at, end);
    if (at == end) return;

    double label = 0;
    if (const std::string_view text = word(at, end); !read_number(at, end, label)) {
        if (text.find(':') != std::string_view::npos)
            fail("it begins with " + quoted(text) + ", where its label belongs");
        if (text.find(',') != std::string_view::npos)
            fail("several labels (" + quoted(text) + "), and every row must have one");
        fail("its label " + quoted(text) + " is not a number");
    } else if (!std::isfinite(label)) {
        fail("its label " + quoted(text) + " is not finite");
    }

    at = skip_blanks(at, end);
    constexpr std::string_view qid = "qid:";
    const bool has_query =
        std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(qid);
    if (has_query) {
        const std::string_view text = word(at, end);
        index query = 0;
        at += qid.size();
        if (!read_whole(at, end, query) || (at != end && !blank(*at)))
            fail(quoted(text) + " is not a query (qid:number)");
        if (queries_) rows_.queries.push_back(query);
    } else if (queries_) {
        fail("no query (qid:number) after the label, and query_id=True asks for one");
    }

    const std::size_t begin = rows_.values.size();
    try {
        parse_features(at, end);
    } catch (const std::invalid_argument& error) {
        fail(error.what());
    }
    sort_row(begin);
    if (rows_.values.size() > begin) {
        smallest_ = std::min<index>(smallest_, rows_.indices[begin]);
        largest_ = std::max<index>(largest_, rows_.indices.back());
    }
    rows_.labels.push_back(label);
    rows_.starts.push_back(static_cast<index>(rows_.values.size()));
}

template <class T>
void SvmlightParser<T>::parse_features(const char* at, const char* end) {
    const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
    while ((at = skip_blanks(at, end)) != end) {
        const char* const begin = at;
        index feature = 0;
        if (!read_whole(at, end, feature) || at == end || *at != ':')
            refuse(quoted(word(begin, end)) + " is not of the form feature:value");
        if (feature < first_ || feature > last_)
            refuse("feature " + std::to_string(feature) + " is not one of " +
                   std::to_string(first_) + " to " + std::to_string(last_));
        double number = 0;
        ++at;
        if (!read_number(at, end, number))
            refuse("the value in " + quoted(word(begin, end)) + " is not a number");
        const auto value = static_cast<T>(number);
        if (!std::isfinite(value))
            refuse("the value in " + quoted(word(begin, end)) + " is not finite" +
                   (std::isfinite(number) ? " as a float32" : ""));
        rows_.indices.push_back(static_cast<std::int32_t>(feature));
        rows_.values.push_back(value);
    }
}

// Brings the features of the row that begins at `begin` in order; nothing to do for most files.
template <class T>
void SvmlightParser<T>::sort_row(std::size_t begin) {
    const auto from = rows_.indices.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto out_of_order = [](std::int32_t a, std::int32_t b) { return a >= b; };
    if (std::adjacent_find(from, rows_.indices.end(), out_of_order) == rows_.indices.end()) return;

    std::vector<std::pair<std::int32_t, T>> row;
    for (std::size_t k = begin; k < rows_.values.size(); ++k)
        row.emplace_back(rows_.indices[k], rows_.values[k]);
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::sort(row.begin(), row.end(), before);
    for (std::size_t k = 0; k < row.size(); ++k) {
        if (k > 0 && row[k].first == row[k - 1].first)
            throw std::invalid_argument("line " + std::to_string(line_) + ": feature " +
                                        std::to_string(row[k].first) + " comes twice");
        rows_.indices[begin + k] = row[k].first;
        rows_.values[begin + k] = row[k].second;
    }
}

// ------------------------------------------------------------------ writing

template <class T, class I>
std::string svmlight_text(const Csr<T, I>& rows, std::span<const double> labels,
                          std::span<const index> queries, index first) {
    std::string out;
    for (index i = 0; i < rows.rows; ++i) {
        append(out, labels[static_cast<std::size_t>(i)]);
        if (!queries.empty()) {
            out += " qid:";
            append(out, queries[static_cast<std::size_t>(i)]);
        }
        for (index k = rows.starts[i]; k < rows.starts[i + 1]; ++k) {
            if (rows.values[k] == 0) continue;
            out += ' ';
            append(out, rows.indices[k] + first);
            out += ':';
            append(out, rows.values[k]);
        }
        out += '\n';
    }
    return out;
}

template class SvmlightParser<float>;
template class SvmlightParser<double>;
template std::string svmlight_text(const Csr<float, std::int32_t>&, std::span<const double>,
                                   std::span<const index>, index);
template std::string svmlight_text(const Csr<float, std::int64_t>&, std::span<const double>,
                                   std::span<const index>, index);
template std::string svmlight_text(const Csr<double, std::int32_t>&, std::span<const double>,
                                   std::span<const index>, index);
template std::string svmlight_text(const Csr<double, std::int64_t>&, std::span<const double>,
                                   std::span<const index>, index);

}  // namespace maxmargin
