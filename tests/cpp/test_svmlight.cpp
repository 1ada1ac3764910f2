#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "svmlight.hpp"

using maxmargin::Csr;
using maxmargin::index;
using maxmargin::svmlight_text;
using maxmargin::SvmlightParser;
using maxmargin::TextRows;

namespace {

constexpr index kAll = std::numeric_limits<index>::max();

TextRows<double> parse(std::string_view text, bool queries = false, std::size_t piece = 0) {
    SvmlightParser<double> parser(0, kAll, queries);
    if (piece == 0) piece = text.size() + 1;
    for (std::size_t begin = 0; begin < text.size(); begin += piece) {
        // A copy of its own, so that the sanitizer sees a step over its end.
        const std::vector<char> part(text.substr(begin, piece).begin(),
                                     text.substr(begin, piece).end());
        parser.feed({part.data(), part.size()});
    }
    parser.finish();
    return parser.take();
}

std::string error_of(std::string_view text, bool queries = false, index first = 0,
                     index last = kAll) {
    SvmlightParser<double> parser(first, last, queries);
    try {
        parser.feed(text);
        parser.finish();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

double value_of(const std::string& number) { return parse("1 1:" + number).values.at(0); }

}  // namespace

TEST("rows, labels and queries, cut anywhere") {
    const std::string_view text =
        "# a comment\r\n"
        "+1 qid:3 1:0.5 7:-2e-3 # 9:9\r\n"
        "\n"
        "  \t\n"
        "-1.5\tqid:-4  3:1\n"
        "2 qid:12 9:1 2:.25 +5:+5.#9:9\n"
        "0 qid:0";
    for (std::size_t piece = 1; piece <= text.size() + 1; ++piece) {
        const TextRows<double> rows = parse(text, true, piece);
        CHECK(rows.labels == std::vector<double>({1, -1.5, 2, 0}));
        CHECK(rows.queries == std::vector<index>({3, -4, 12, 0}));
        CHECK(rows.starts == std::vector<index>({0, 2, 3, 6, 6}));
        CHECK(rows.indices == std::vector<std::int32_t>({1, 7, 3, 2, 5, 9}));
        CHECK(rows.values == std::vector<double>({0.5, -2e-3, 1, 0.25, 5, 1}));
    }
}

TEST("rows are handed over once, and counted") {
    SvmlightParser<float> parser(0, kAll, false);
    CHECK(parser.largest() < parser.smallest());
    parser.feed("1 4:1\n2 8:0.1\n3 2");
    CHECK(parser.bytes() > 0);
    const TextRows<float> rows = parser.take();
    CHECK(rows.values == std::vector<float>({1.0F, 0.1F}));
    CHECK(parser.smallest() == 4 && parser.largest() == 8);
    parser.feed(":3\n");
    parser.finish();
    const TextRows<float> more = parser.take();
    CHECK(more.labels == std::vector<double>({3}));
    CHECK(more.starts == std::vector<index>({0, 1}));
    CHECK(parser.smallest() == 2 && parser.largest() == 8);
    CHECK(parser.take().labels.empty());
}

TEST("numbers that a double can barely hold, or cannot") {
    CHECK(value_of("4.9406564584124654e-324") == 4.9406564584124654e-324);
    CHECK(value_of("1.7976931348623157e308") == 1.7976931348623157e308);
    for (const char* small : {"1e-400", "-1e-400", "0.1e-399", "1e-99999999999999999999999",
                              "0e99999999999999999999", "0.0e-400", "1E-400"})
        CHECK(value_of(small) == 0);
    CHECK(value_of("0." + std::string(400, '0') + "1") == 0);
    CHECK(value_of("0." + std::string(400, '0') + "1e+401") == 1);
    CHECK(value_of(std::string(400, '1') + "e-400") > 0.1);
    for (const std::string large : {"1e400", "-1e+400", "1e99999999999999999999999", "inf", "nan"})
        CHECK(error_of("1 1:" + large).find("not finite") != std::string::npos);
    CHECK(error_of("1 1:" + std::string(400, '1')).find("not finite") != std::string::npos);
    SvmlightParser<float> parser(0, kAll, false);
    CHECK_THROWS(parser.feed("1 1:1e39\n"), std::invalid_argument);
}

TEST("what is no row is refused, with its line") {
    CHECK(error_of("1 1:1\n\n# x\n1 2:x\n") == "line 4: the value in '2:x' is not a number");
    CHECK(error_of("1 2:3 2:4") == "line 1: feature 2 comes twice");
    CHECK(error_of("1 2:3 1:4 2:4") == "line 1: feature 2 comes twice");
    CHECK(error_of("1:1 2:1") == "line 1: it begins with '1:1', where its label belongs");
    CHECK(error_of("1,2 2:1") == "line 1: several labels ('1,2'), and every row must have one");
    CHECK(error_of("one 2:1") == "line 1: its label 'one' is not a number");
    CHECK(error_of("nan 2:1") == "line 1: its label 'nan' is not finite");
    CHECK(error_of("1 0:1", false, 1) == "line 1: feature 0 is not one of 1 to 2147483647");
    CHECK(error_of("1 9:1", false, 1, 8) == "line 1: feature 9 is not one of 1 to 8");
    CHECK(error_of("1 -1:1").find("feature -1 is not one of") != std::string::npos);
    CHECK(error_of("1 1:1", true).find("no query") != std::string::npos);
    CHECK(error_of("1 qid:x 1:1") == "line 1: 'qid:x' is not a query (qid:number)");
    CHECK(error_of("1 \xff\n") == "line 1: '\\xff' is not of the form feature:value");
    for (const char* wrong : {"1 1",
                              "1 1:",
                              "1 :1",
                              "1 1: 2",
                              "1 1 :2",
                              "1 1.0:2",
                              "1 1:2:3",
                              "1 1:0x10",
                              "1 1:1_0",
                              "+-1 1:1",
                              "++1 1:1",
                              "1 1:+-1",
                              "1 +-1:1",
                              "1 1:1e",
                              "1 1:-",
                              "1 99999999999999999999:1",
                              "1 2147483648:1",
                              "1 1:1 qid:1",
                              "1 qid: 1:1",
                              "1 qid:1:1"})
        CHECK(!error_of(wrong).empty());
}

TEST("what is written reads back, bit for bit") {
    const std::vector<double> values = {0.1, 1.0 / 3, 0.0, -1e-310, 1e22, 123456789.125};
    const std::vector<std::int64_t> indices = {0, 3, 4, 9, 2, 5}, starts = {0, 4, 4, 6};
    const std::vector<double> labels = {1, -0.3, 7};
    const std::vector<index> queries = {1, -2, 3};
    const Csr<double, std::int64_t> x{values.data(), indices.data(), starts.data(), 3, 10};
    const std::string text = svmlight_text(x, labels, queries, 1);
    const TextRows<double> rows = parse(text, true);
    CHECK(rows.labels == labels);
    CHECK(rows.queries == queries);
    CHECK(rows.values == std::vector<double>({0.1, 1.0 / 3, -1e-310, 1e22, 123456789.125}));
    CHECK(rows.indices == std::vector<std::int32_t>({1, 4, 10, 3, 6}));
    CHECK(svmlight_text(x, labels, {}, 0).starts_with("1 0:0.1 3:0.3333333333333333 9:"));
}
