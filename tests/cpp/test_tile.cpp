#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "items.hpp"
#include "tile.hpp"

using namespace maxmargin;

namespace {

constexpr int not_available = 77;

// Of the instruction sets that the last test asks for, some may not be to be had.
[[maybe_unused]] const bool available = [] {
    try {
        return instruction_set() != nullptr;
    } catch (const std::runtime_error&) {
        _exit(not_available);
    }
}();

const Kernel kernels[] = {{Kernel::Kind::linear, 1.0, 0.0, 3},
                          {Kernel::Kind::polynomial, 0.3, 1.0, 5},
                          {Kernel::Kind::rbf, 0.1, 0.0, 3},
                          {Kernel::Kind::sigmoid, 0.2, -0.5, 3},
                          {Kernel::Kind::laplacian, 0.2, 0.0, 3}};

// The same rows, a third of them zeros, as an array and as compressed rows.
template <class T>
struct Data {
    Data(index n, index d, unsigned seed) : rows(n), columns(d) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        for (index i = 0; i < n * d; ++i)
            dense.push_back(random() % 3 == 0 ? T{0} : static_cast<T>(normal(random)));
        for (index i = 0; i < n; ++i) {
            for (index f = 0; f < d; ++f)
                if (dense[i * d + f] != 0) {
                    values.push_back(dense[i * d + f]);
                    indices.push_back(f);
                }
            starts.push_back(static_cast<index>(values.size()));
        }
    }

    std::unique_ptr<Items> as_dense(const Kernel& kernel) const {
        return dense_items(kernel, Dense<T>{dense.data(), rows, columns, columns}, nullptr);
    }
    std::unique_ptr<Items> as_sparse(const Kernel& kernel) const {
        return csr_items(kernel,
                         Csr<T, index>{values.data(), indices.data(), starts.data(), rows, columns},
                         nullptr);
    }

    index rows, columns;
    std::vector<T> dense, values;
    std::vector<index> indices, starts{0};
};

std::vector<index> range(index n) {
    std::vector<index> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

template <class Out = double>
std::vector<Out> whole(const Items& a, const Items& b) {
    std::vector<Out> out(static_cast<std::size_t>(a.size() * b.size()));
    a.tile(range(a.size()), b, 0, b.size(), out.data(), b.size());
    return out;
}

// The definition, in a wider type.
template <class T>
double naive(const Kernel& kernel, const T* x, const T* z, index d) {
    long double xz = 0, square = 0, absolute = 0;
    for (index f = 0; f < d; ++f) {
        const long double difference = static_cast<long double>(x[f]) - z[f];
        xz += static_cast<long double>(x[f]) * z[f];
        square += difference * difference;
        absolute += std::abs(difference);
    }
    const long double inner = kernel.gamma * xz + kernel.coef0;
    switch (kernel.kind) {
        case Kernel::Kind::linear:
            return static_cast<double>(xz);
        case Kernel::Kind::polynomial:
            return static_cast<double>(std::pow(inner, kernel.degree));
        case Kernel::Kind::rbf:
            return static_cast<double>(std::exp(-kernel.gamma * square));
        case Kernel::Kind::sigmoid:
            return static_cast<double>(std::tanh(inner));
        case Kernel::Kind::laplacian:
            return static_cast<double>(std::exp(-kernel.gamma * absolute));
    }
    return 0;
}

template <class T>
void check_against_definition(index n, index d) {
    const Data<T> data(n, d, 7);
    for (const Kernel& kernel : kernels) {
        const auto items = data.as_dense(kernel);
        const auto K = whole(*items, *items);
        std::vector<double> diagonal(static_cast<std::size_t>(n));
        items->diagonal(diagonal.data());
        for (index i = 0; i < n; ++i) {
            CHECK(diagonal[i] == K[i * n + i]);
            for (index j = 0; j < n; ++j) {
                const double exact = naive(kernel, &data.dense[i * d], &data.dense[j * d], d);
                CHECK_CLOSE(K[i * n + j], exact, 1e-12 * std::max(1.0, std::abs(exact)));
                CHECK(K[i * n + j] == K[j * n + i]);
            }
        }
    }
}

// Distance in units in the last place.
double ulps(double got, double exact) {
    return std::abs(got - exact) / (std::nextafter(std::abs(exact), INFINITY) - std::abs(exact));
}

// One feature: row 0 is `first`, the others are the arguments.
std::vector<double> of_numbers(const Kernel& kernel, double first, std::vector<double> arguments) {
    arguments.insert(arguments.begin(), first);
    const auto n = static_cast<index>(arguments.size());
    const auto items = dense_items(kernel, Dense<double>{arguments.data(), n, 1, 1}, nullptr);
    std::vector<double> out(arguments.size());
    items->tile(range(1), *items, 0, n, out.data(), n);
    out.erase(out.begin());
    return out;
}

}  // namespace

TEST("tiles are what the formulas say, at odd sizes") {
    for (const index n : {1, 5, 16, 33})
        for (const index d : {1, 7, 20}) {
            check_against_definition<float>(n, d);
            check_against_definition<double>(n, d);
        }
}

TEST("any part of a tile has the bits of the whole, and nothing else is written") {
    const Data<double> data(45, 6, 1), other(50, 6, 2);
    for (const Kernel& kernel : kernels)
        for (const bool sparse : {false, true}) {
            const auto a = sparse ? data.as_sparse(kernel) : data.as_dense(kernel);
            const auto b = sparse ? other.as_sparse(kernel) : other.as_dense(kernel);
            const auto K = whole(*a, *b);
            std::mt19937 random(3);
            for (int repeat = 0; repeat < 60; ++repeat) {
                const auto n = static_cast<index>(random() % 20);
                std::vector<index> rows;
                for (index r = 0; r < n; ++r) rows.push_back(static_cast<index>(random() % 45));
                const auto begin = static_cast<index>(random() % 51);
                const index end = begin + static_cast<index>(random() % (51 - begin));
                const index stride = end - begin + 3, offset = 1 + repeat % 5;
                std::vector<double> out(static_cast<std::size_t>(n * stride + offset + 3), -7.0);
                a->tile(rows, *b, begin, end, out.data() + offset, stride);
                for (index r = 0; r < n; ++r)
                    for (index c = begin; c < end; ++c) {
                        double& got = out[offset + r * stride + (c - begin)];
                        CHECK(got == K[rows[r] * 50 + c]);
                        got = -7.0;
                    }
                CHECK(std::all_of(out.begin(), out.end(), [](double v) { return v == -7.0; }));
            }
        }
}

// Whether two tiles are equal: to the bit, but to rounding for rbf, which knows two ways to a
// distance.
void check_same(const Kernel& kernel, const std::vector<double>& got,
                const std::vector<double>& expected) {
    if (kernel.kind != Kernel::Kind::rbf) return CHECK(got == expected);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK_CLOSE(got[i], expected[i], 1e-13);
}

TEST("sparse rows, dense rows and their mixtures have the same bits; the sides may be exchanged") {
    for (const index d : {1, 9, 64}) {
        const Data<float> data(21, d, 4), other(35, d, 5);
        for (const Kernel& kernel : kernels) {
            const auto a = data.as_dense(kernel), b = other.as_dense(kernel);
            const auto sparse_a = data.as_sparse(kernel), sparse_b = other.as_sparse(kernel);
            const auto K = whole(*a, *b);
            const auto sparse_K = whole(*sparse_a, *sparse_b);
            check_same(kernel, sparse_K, K);
            CHECK(whole(*sparse_a, *b) == K);
            CHECK(whole(*a, *sparse_b) == sparse_K);
            for (const Items* left : {b.get(), sparse_b.get()})
                for (const Items* right : {a.get(), sparse_a.get()}) {
                    const auto& expected = right == a.get() ? K : sparse_K;
                    const auto transposed = whole(*left, *right);
                    for (index i = 0; i < 21; ++i)
                        for (index j = 0; j < 35; ++j)
                            CHECK(transposed[j * 21 + i] == expected[i * 35 + j]);
                }
        }
    }
}

TEST("a float tile is the double tile rounded") {
    const Data<float> data(19, 11, 6);
    for (const Kernel& kernel : kernels) {
        for (const auto& items : {data.as_dense(kernel), data.as_sparse(kernel)}) {
            const auto K = whole(*items, *items);
            const std::vector<float> rounded(K.begin(), K.end());
            CHECK(whole<float>(*items, *items) == rounded);
        }
    }
}

TEST("the exponential is exact to an ulp, 1 at 0, and 0 from where it would lose precision") {
    std::vector<double> t{0.0, 1e-300, 1e-17, 1e-8, 707.9999, 708.0};
    std::mt19937_64 random(8);
    for (int i = 0; i < 200'000; ++i)
        t.push_back(std::ldexp(static_cast<double>(random() >> 11), -53) * (i % 2 ? 1.0 : 708.0));
    const auto got = of_numbers({Kernel::Kind::laplacian, 1.0, 0.0, 3}, 0.0, t);
    double worst = 0.0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        const auto exact = static_cast<double>(std::exp(-static_cast<long double>(t[i])));
        worst = std::max(worst, ulps(got[i], exact));
    }
    CHECK(worst <= 1.0);
    CHECK(got[0] == 1.0);
    const auto beyond =
        of_numbers({Kernel::Kind::laplacian, 1.0, 0.0, 3}, 0.0, {708.1, 745.0, 1e10, 1e150});
    CHECK(std::all_of(beyond.begin(), beyond.end(), [](double v) { return v == 0.0; }));
}

TEST("tanh is exact to a few ulps, odd, and 1 in the end") {
    std::vector<double> t{0.0, 1e-300, 1e-17, 1e-8, 19.0, 20.0, 21.0, 1e6, 1e100};
    std::mt19937_64 random(9);
    for (int i = 0; i < 100'000; ++i)
        t.push_back(
            std::ldexp(static_cast<double>(random() >> 11), -53 - static_cast<int>(i % 40)) * 20);
    const auto got = of_numbers({Kernel::Kind::sigmoid, 1.0, 0.0, 3}, 1.0, t);
    const auto minus = of_numbers({Kernel::Kind::sigmoid, 1.0, 0.0, 3}, -1.0, t);
    double worst = 0.0;
    for (std::size_t i = 0; i < t.size(); ++i) {
        const auto exact = static_cast<double>(std::tanh(static_cast<long double>(t[i])));
        if (exact != 0.0) worst = std::max(worst, ulps(got[i], exact));
        CHECK(minus[i] == -got[i]);
    }
    CHECK(worst <= 3.0);
    CHECK(got[0] == 0.0 && got[6] == 1.0 && got[8] == 1.0);
}

TEST("a row and its copy have the kernel 1, and no distance is negative") {
    Data<double> data(8, 5, 10);
    for (index f = 0; f < 5; ++f) data.dense[35 + f] = data.dense[f] *= 1e8;
    const Kernel rbf{Kernel::Kind::rbf, 1.0, 0.0, 3};
    const auto items = data.as_dense(rbf);
    const auto K = whole(*items, *items);
    for (index i = 0; i < 8; ++i) CHECK(K[i * 8 + i] == 1.0);
    CHECK(K[7] == 1.0);
    CHECK(*std::max_element(K.begin(), K.end()) == 1.0);
}

TEST("distances keep their digits far from the origin") {
    Data<double> data(20, 6, 21);
    for (double& x : data.dense) x += 1e6;
    const Kernel rbf{Kernel::Kind::rbf, 0.3, 0.0, 3};
    const auto items = data.as_dense(rbf);
    const auto K = whole(*items, *items);
    for (index i = 0; i < 20; ++i)
        for (index j = 0; j < 20; ++j)
            CHECK_CLOSE(K[i * 20 + j], naive(rbf, &data.dense[i * 6], &data.dense[j * 6], 6),
                        1e-14);
}

TEST("a sum that underflows has one sign of zero, dense or sparse") {
    const std::vector<double> x{-1e-200, 0.0, 1e-200, 0.0};
    const std::vector<double> values{-1e-200, 1e-200};
    const std::vector<index> indices{0, 0}, starts{0, 1, 2};
    const Kernel linear{};
    const auto dense = dense_items(linear, Dense<double>{x.data(), 2, 2, 2}, nullptr);
    const auto sparse = csr_items(
        linear, Csr<double, index>{values.data(), indices.data(), starts.data(), 2, 2}, nullptr);
    CHECK(std::bit_cast<std::uint64_t>(whole(*dense, *dense)[1]) ==
          std::bit_cast<std::uint64_t>(whole(*sparse, *sparse)[1]));
}

TEST("a subset has the bits of its rows") {
    const Data<float> data(30, 8, 11);
    const std::vector<index> some{29, 3, 3, 0, 17};
    for (const Kernel& kernel : kernels)
        for (const bool sparse : {false, true}) {
            const auto items = sparse ? data.as_sparse(kernel) : data.as_dense(kernel);
            const auto part = items->subset(some);
            const auto K = whole(*items, *items), small = whole(*part, *part);
            for (index i = 0; i < 5; ++i)
                for (index j = 0; j < 5; ++j) CHECK(small[i * 5 + j] == K[some[i] * 30 + some[j]]);
            CHECK(items->subset({})->size() == 0);
        }
}

TEST("multiply is K V with the same bits for any number of threads") {
    const Data<double> data(150, 9, 12), other(700, 9, 13);
    const Kernel rbf{Kernel::Kind::rbf, 0.1, 0.0, 3};
    const auto a = data.as_dense(rbf), b = other.as_sparse(rbf);
    const auto K = whole(*a, *b);
    for (const index keep_every : {1, 10}) {
        std::vector<double> V(static_cast<std::size_t>(700 * 3), 0.0);
        for (index i = 0; i < 700; i += keep_every)
            for (index j = 0; j < 3; ++j) V[i * 3 + j] = std::sin(static_cast<double>(i * 3 + j));
        std::vector<double> one(450), four(450);
        multiply(*a, *b, V.data(), 3, one.data(), 1);
        multiply(*a, *b, V.data(), 3, four.data(), 4);
        CHECK(one == four);
        for (index i = 0; i < 150; ++i)
            for (index j = 0; j < 3; ++j) {
                double sum = 0.0;
                for (index c = 0; c < 700; ++c) sum += K[i * 700 + c] * V[c * 3 + j];
                CHECK_CLOSE(one[i * 3 + j], sum, 1e-11);
            }
    }
}

TEST("the linear kernel has its feature space at hand; the others say that they do not") {
    const Data<float> data(6, 10, 14);
    for (const bool sparse : {false, true}) {
        const auto items = sparse ? data.as_sparse(kernels[0]) : data.as_dense(kernels[0]);
        CHECK(items->is_linear() && items->dimension() == 10);
        std::vector<double> w(10, 0.0);
        items->scatter(2, 1.5, w.data());
        items->scatter(4, -0.5, w.data());
        const auto K = whole(*items, *items);
        for (index i = 0; i < 6; ++i)
            CHECK_CLOSE(items->project(i, w.data()), 1.5 * K[i * 6 + 2] - 0.5 * K[i * 6 + 4],
                        1e-12);
    }
    CHECK(!data.as_dense(kernels[2])->is_linear());
    const std::vector<double> matrix{1.0};
    const std::vector<index> ids{0};
    double w = 0.0;
    CHECK_THROWS(gram_items(Dense<double>{matrix.data(), 1, 1, 1}, ids, nullptr)->scatter(0, 1, &w),
                 std::logic_error);
}

TEST("a matrix as items: tiles, subsets, new rows against some columns") {
    std::vector<float> matrix(36);
    for (int i = 0; i < 36; ++i) matrix[i] = static_cast<float>(i);
    const auto ids = range(6);
    const auto items = gram_items(Dense<float>{matrix.data(), 6, 6, 6}, ids, nullptr);
    CHECK(items->single_precision());
    CHECK(whole<float>(*items, *items) == matrix);
    const auto part = items->subset(std::vector<index>{4, 1});
    CHECK(whole(*part, *part) == (std::vector<double>{28, 25, 10, 7}));
    CHECK(whole(*part, *items)[5] == 29);
    double diagonal[2];
    part->diagonal(diagonal);
    CHECK(diagonal[0] == 28 && diagonal[1] == 7);

    const auto fresh = gram_items(Dense<float>{matrix.data(), 2, 6, 6}, {}, nullptr);
    const auto names =
        gram_items(Dense<float>{nullptr, 0, 0, 0}, std::vector<index>{5, 2}, nullptr);
    CHECK(whole(*fresh, *part) == (std::vector<double>{4, 1, 10, 7}));
    CHECK(whole(*fresh, *names) == (std::vector<double>{5, 2, 11, 8}));
    CHECK_THROWS(whole(*fresh, *fresh), std::invalid_argument);
    CHECK_THROWS(whole(*names, *fresh), std::invalid_argument);
    const auto narrow = gram_items(Dense<float>{matrix.data(), 2, 3, 6}, {}, nullptr);
    CHECK_THROWS(whole(*narrow, *items), std::invalid_argument);
}

TEST("items that do not fit together, and rows that overflow, are refused") {
    const Data<double> data(4, 3, 15), wider(4, 5, 16);
    const auto a = data.as_dense(kernels[2]), b = wider.as_dense(kernels[2]);
    CHECK_THROWS(whole(*a, *b), std::invalid_argument);
    const auto matrix = gram_items(Dense<double>{data.dense.data(), 3, 3, 3}, range(3), nullptr);
    CHECK_THROWS(whole(*a, *matrix), std::invalid_argument);
    CHECK_THROWS(whole(*matrix, *a), std::invalid_argument);
    for (const double bad : {1e200, std::nan(""), static_cast<double>(INFINITY)}) {
        Data<double> hostile(20, 3, 17);
        hostile.dense[40] = bad;
        for (const Kernel& kernel : kernels)
            CHECK_THROWS(hostile.as_dense(kernel), std::invalid_argument);
    }
    Data<float> large(3, 2, 18);  // 1e20 * 1e20 is no float
    large.dense[1] = 1e20F;
    CHECK_THROWS(large.as_dense(kernels[0]), std::invalid_argument);
    CHECK(large.as_dense(kernels[2])->size() == 3);
}

TEST("nothing is nothing") {
    const Data<double> none(0, 3, 19), some(5, 3, 20);
    for (const Kernel& kernel : kernels) {
        const auto a = none.as_dense(kernel), b = some.as_dense(kernel);
        CHECK(whole(*a, *b).empty() && whole(*b, *a).empty());
        std::vector<double> out(5, 1.0);
        multiply(*b, *a, nullptr, 1, out.data(), 2);
        CHECK(out == std::vector<double>(5, 0.0));
    }
}

TEST("every instruction set passes these tests") {
    if (std::getenv("MAXMARGIN_ISA") != nullptr) return;
    for (const char* isa : {"generic", "avx2", "avx512"}) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("MAXMARGIN_ISA", isa, 1);
            execl("/proc/self/exe", "test_tile", static_cast<char*>(nullptr));
            _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) &&
              (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == not_available));
    }
}
