// The linear machines' native parts: designs by rows and by columns, the smooth losses, dual
// coordinate descent and coordinate-descent Newton.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "columns.hpp"
#include "coordinate_descent.hpp"
#include "coordinate_newton.hpp"
#include "design.hpp"
#include "loss.hpp"

using namespace maxmargin;

namespace {

constexpr Loss kLosses[] = {
    {Loss::Kind::hinge, 0.5, 0.0},       {Loss::Kind::squared_hinge, 0.0, 0.0},
    {Loss::Kind::logistic, 0.0, 0.0},    {Loss::Kind::squared, 0.0, 0.0},
    {Loss::Kind::insensitive, 0.5, 0.2}, {Loss::Kind::squared_insensitive, 0.0, 0.2},
};

// Rows with zeros and, in the middle, nothing else; the same dense and compressed.
struct Data {
    index n, d;
    std::vector<double> x, y, price, values;
    std::vector<std::int32_t> indices, starts{0};

    Data(index rows, index features) : n(rows), d(features) {
        std::uint64_t state = 88172645463325252u;
        const auto uniform = [&] {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            return static_cast<double>(state >> 11) * 0x1.0p-52 - 1.0;
        };
        for (index i = 0; i < n; ++i) {
            double score = 0.3 * uniform();
            for (index f = 0; f < d; ++f) {
                double value = uniform();
                if (i == n / 2 || uniform() < 0.0) value = 0.0;
                x.push_back(value);
                score += value * (f == 0 ? 2.0 : f == 1 ? -1.0 : 0.0);
                if (value == 0.0) continue;
                values.push_back(value);
                indices.push_back(static_cast<std::int32_t>(f));
            }
            starts.push_back(static_cast<std::int32_t>(values.size()));
            y.push_back(score > 0.0 ? 1.0 : -1.0);
            price.push_back(1.0 + 0.5 * uniform());
        }
    }
    Dense<double> dense() const { return {x.data(), n, d, d}; }
    Csr<double, std::int32_t> csr() const {
        return {values.data(), indices.data(), starts.data(), n, d};
    }
    double score(index i, const std::vector<double>& w, double bias) const {
        double sum = bias != 0.0 ? bias * w[d] : 0.0;
        for (index f = 0; f < d; ++f) sum += x[i * d + f] * w[f];
        return sum;
    }
};

std::vector<double> numbers(index n, double phase) {
    std::vector<double> out;
    for (index i = 0; i < n; ++i) out.push_back(std::sin(static_cast<double>(i) * 1.7 + phase));
    return out;
}

double value_at(const Loss& loss, double y, double z) {
    const double one = 1.0, zero = 0.0;
    return along(loss, &y, &one, &z, &zero, 0.0, 1, Run{}).value;
}

}  // namespace

TEST("products of designs by rows and by columns") {
    const Data data(101, 7);
    for (const double bias : {0.0, 0.7}) {
        const auto dense = dense_design<double>(data.dense(), bias, nullptr);
        const auto sparse = csr_design<double, std::int32_t>(data.csr(), bias, nullptr);
        const auto by_columns = columns_of<double>(data.dense(), bias);
        const auto compressed = columns_of<double, std::int32_t>(data.csr(), bias);
        const index m = dense->columns();
        const std::vector<double> w = numbers(m, 0.0), c = numbers(data.n, 1.0);
        for (const int threads : {1, 2}) {
            const Run run{threads, nullptr};
            std::vector<double> z(c.size()), v(w.size()), u(w.size()), H(w.size() * w.size());
            for (const Design* design : {dense.get(), sparse.get()}) {
                design->scores(w.data(), 1, z.data(), run);
                for (index i = 0; i < data.n; ++i) CHECK_CLOSE(z[i], data.score(i, w, bias), 1e-13);
                design->combine(c.data(), 1, v.data(), run);
                const double left = std::inner_product(v.begin(), v.end(), w.begin(), 0.0);
                CHECK_CLOSE(left, std::inner_product(z.begin(), z.end(), c.begin(), 0.0), 1e-12);
                std::vector<double> h(c.size());
                std::transform(c.begin(), c.end(), h.begin(), [](double s) { return s * s; });
                design->gram(h.data(), H.data(), run);
                double curved = 0.0, expected = 0.0;
                for (index a = 0; a < m; ++a)
                    for (index b = 0; b < m; ++b) curved += w[a] * H[a * m + b] * w[b];
                for (index i = 0; i < data.n; ++i) expected += h[i] * z[i] * z[i];
                CHECK_CLOSE(curved, expected, 1e-11);
            }
            for (const Columns* columns : {by_columns.get(), compressed.get()}) {
                columns->combine(c.data(), u.data(), run);
                for (index j = 0; j < m; ++j) CHECK_CLOSE(u[j], v[j], 1e-12);
            }
        }
    }
}

TEST("scaled columns are those of diag(s) X without the rows of zero") {
    const Data data(33, 5);
    std::vector<double> s = numbers(33, 0.5);
    for (index i = 0; i < 33; i += 4) s[i] = 0.0;
    const std::vector<index> chosen{1, 3, 5};
    const auto dense = columns_of<double>(data.dense(), 2.0)->scaled(chosen, s.data());
    const auto sparse = columns_of<double, std::int32_t>(data.csr(), 2.0)->scaled(chosen, s.data());
    for (const Columns* part : {dense.get(), sparse.get()}) {
        CHECK(part->rows() == 24);
        CHECK(part->columns() == 3);
        for (index k = 0; k < 3; ++k) {
            double square = 0.0, sum = 0.0;
            for (index i = 0; i < 33; ++i) {
                const double value = s[i] * (chosen[k] == 5 ? 2.0 : data.x[i * 5 + chosen[k]]);
                square += value * value;
                sum += value;
            }
            CHECK_CLOSE(part->norm(k), square, 1e-13);
            const std::vector<double> ones(24, 1.0);
            CHECK_CLOSE(part->dot(k, ones.data()), sum, 1e-13);
        }
    }
}

TEST("slopes and curvatures of the losses are finite differences") {
    const double step = 1e-5;
    for (const Loss& loss : kLosses) {
        for (double z = -2.43; z < 2.5; z += 0.1) {
            for (const double y : {-1.0, 1.0}) {
                const double price = 1.3;
                double c = 0.0, h = 0.0;
                const double value = slopes(loss, &y, &price, &z, 1, &c, &h, Run{});
                CHECK_CLOSE(value, price * value_at(loss, y, z), 1e-14);
                const double up = value_at(loss, y, z + step), down = value_at(loss, y, z - step);
                CHECK_CLOSE(c, -price * (up - down) / (2 * step), 1e-8);
                const double bend = (up - 2 * value_at(loss, y, z) + down) / (step * step);
                CHECK_CLOSE(h, price * bend, 1e-4);
            }
        }
    }
}

TEST("dual coordinate descent ends where no coordinate has anything to do") {
    const Data data(200, 6);
    const auto design = dense_design<double>(data.dense(), 1.0, nullptr);
    for (const index k : {index{1}, index{3}}) {
        CoordinateProblem problem;
        problem.k = k;
        for (index i = 0; i < data.n; ++i)
            for (index j = 0; j < k; ++j) {
                const double C = 0.5 * static_cast<double>(j + 1), y = data.y[i];
                problem.linear.push_back(-y);
                problem.lower.push_back(y > 0 ? 0.0 : -C);
                problem.upper.push_back(y > 0 ? C : 0.0);
            }
        const std::vector<double> lower = problem.lower, upper = problem.upper;
        std::vector<double> start(lower.size());
        CoordinateDescent descent(*design, std::move(problem), start, {}, true, 3, Run{});
        std::vector<double> w(static_cast<std::size_t>(design->columns() * k)),
            z(static_cast<std::size_t>(data.n * k));
        for (int rounds = 0; rounds < 200; ++rounds) {
            descent.run(20 * data.n, 1e-9);
            descent.weights(w.data());
            design->scores(w.data(), k, z.data(), Run{});
            const std::vector<double> worst = descent.look(z.data(), 1e-9);
            if (*std::max_element(worst.begin(), worst.end()) <= 1e-9) break;
        }
        const std::vector<double>& c = descent.coefficients();
        for (index i = 0; i < data.n; ++i)
            for (index j = 0; j < k; ++j) {
                const index at = i * k + j;
                const double g = z[at] - data.y[i];
                CHECK(lower[at] <= c[at] && c[at] <= upper[at]);
                if (c[at] < upper[at]) CHECK(g >= -1e-8);
                if (c[at] > lower[at]) CHECK(g <= 1e-8);
            }
    }
}

TEST("coordinate-descent Newton ends where no column violates its condition") {
    const Data data(120, 9);
    for (const bool free : {false, true})
        for (const double l1 : {1.0, 0.6})
            for (const Loss& loss : kLosses) {
                const auto dense = columns_of<double>(data.dense(), 1.0);
                const auto sparse = columns_of<double, std::int32_t>(data.csr(), 1.0);
                std::vector<double> found[2];
                for (const int which : {0, 1}) {
                    const Columns& columns = which == 0 ? *dense : *sparse;
                    CoordinateNewton descent(columns, {data.y, data.price, l1, 1.0 - l1, free},
                                             std::vector<double>(10), 1, Run{});
                    std::vector<index> all(10);
                    std::iota(all.begin(), all.end(), index{0});
                    descent.set_loss(loss);
                    descent.descend(all, 1e-9, 200);
                    CHECK(descent.violation(all) <= 1e-9);
                    found[which] = descent.weights();
                    // The conditions once more, from the weights.
                    for (index i = 0; i < data.n; ++i)
                        CHECK_CLOSE(descent.scores()[i], data.score(i, found[which], 1.0), 1e-11);
                    std::vector<double> v(10);
                    columns.combine(descent.slopes().data(), v.data(), Run{});
                    for (index j = 0; j < 10; ++j) {
                        const double w = found[which][j];
                        if (free && j == 9)
                            CHECK_CLOSE(v[j], 0.0, 1e-8);
                        else if (w == 0.0)
                            CHECK(std::abs(v[j]) <= l1 + 1e-8);
                        else
                            CHECK_CLOSE(v[j], (w > 0.0 ? l1 : -l1) + (1.0 - l1) * w, 1e-8);
                    }
                }
                for (index j = 0; j < 10; ++j) CHECK_CLOSE(found[0][j], found[1][j], 1e-6);
            }
}

TEST("polls end the descent by an exception") {
    const Data data(50, 4);
    const auto columns = columns_of<double>(data.dense(), 0.0);
    bool enough = false;
    const std::function<void()> poll = [&] {
        if (enough) throw std::runtime_error("enough");
    };
    CoordinateNewton descent(*columns, {data.y, data.price, 0.1, 0.0, false},
                             std::vector<double>(4), 1, Run{1, &poll});
    descent.set_loss({Loss::Kind::logistic, 0.0, 0.0});
    enough = true;
    CHECK_THROWS(descent.descend({0, 1, 2, 3}, 1e-9, 10), std::runtime_error);
}
