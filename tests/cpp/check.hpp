// The whole test framework of the C++ tests: one header, one executable per test file.
//
//     #include "check.hpp"
//
//     TEST("a panel keeps the order of its rows") {
//         CHECK(panel.rows() == 3);
//         CHECK_CLOSE(panel(0, 1), 0.5, 1e-15);
//         CHECK_THROWS(panel.at(7), std::out_of_range);
//     }
//
// The header brings its own main: it runs every TEST of the file in order, prints one line per
// failed check, then "N passed, N failed" (tests, not checks), and returns the number of failures.
// A failed check does not end its test. Checks may be made from several threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*body)();
};

inline std::vector<Test>& registry() {
    static std::vector<Test> tests;
    return tests;
}

struct Registration {
    Registration(const char* name, void (*body)()) noexcept { registry().push_back({name, body}); }
};

inline std::atomic<int> failed_checks{0};

inline void fail(const char* file, int line, const std::string& what) {
    static std::mutex one_line_at_a_time;
    const std::scoped_lock lock(one_line_at_a_time);
    failed_checks.fetch_add(1);
    std::printf("%s:%d: %s\n", file, line, what.c_str());
}

inline void is_true(bool condition, const char* text, const char* file, int line) {
    if (!condition) fail(file, line, std::string("not true: ") + text);
}

// |a - b| <= tolerance; equal infinities are close, a NaN is close to nothing.
inline void is_close(double a, double b, double tolerance, const char* text, const char* file,
                     int line) {
    if (a == b || std::abs(a - b) <= tolerance) return;
    std::ostringstream what;
    what.precision(17);
    what << "not close: " << text << " is " << a << " and " << b << ", apart by " << std::abs(a - b)
         << " > " << tolerance;
    fail(file, line, what.str());
}

inline int run() {
    int failed = 0;
    for (const Test& test : registry()) {
        const int before = failed_checks.load();
        try {
            test.body();
        } catch (const std::exception& error) {
            fail(test.name, 0, std::string("uncaught exception: ") + error.what());
        }
        if (failed_checks.load() != before) {
            ++failed;
            std::printf("FAILED: %s\n", test.name);
        }
    }
    std::printf("%d passed, %d failed\n", static_cast<int>(registry().size()) - failed, failed);
    return std::min(failed, 125);  // an exit status has eight bits, and the shell uses the top ones
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define CHECK_TEST(function, name)                                                      \
    static void function();                                                             \
    static const check::Registration CHECK_JOIN(function, _registered)(name, function); \
    static void function()

#define TEST(name) CHECK_TEST(CHECK_JOIN(test_on_line_, __LINE__), name)

#define CHECK(condition) \
    check::is_true(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

#define CHECK_CLOSE(a, b, tolerance)                                \
    check::is_close(static_cast<double>(a), static_cast<double>(b), \
                    static_cast<double>(tolerance), #a " and " #b, __FILE__, __LINE__)

#define CHECK_THROWS(expression, Exception)                                            \
    do {                                                                               \
        bool thrown = false;                                                           \
        try {                                                                          \
            static_cast<void>(expression);                                             \
        } catch (const Exception&) {                                                   \
            thrown = true;                                                             \
        }                                                                              \
        check::is_true(thrown, #expression " throws " #Exception, __FILE__, __LINE__); \
    } while (false)

int main() { return check::run(); }
