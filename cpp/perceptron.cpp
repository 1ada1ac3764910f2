#include "perceptron.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace maxmargin {
namespace {

// The two weight vectors of a machine, with the feature that is always 1.
class Weights {
  public:
    Weights(const Stream& stream, double* w, double* b) : stream_(stream), w_(w), b_(b) {}

    double score(index i) const { return stream_.items.project(i, w_) + *b_; }
    void add(index i, double a) {
        stream_.items.scatter(i, a, w_);
        if (stream_.intercept) *b_ += a;
    }
    double square(index i) const { return stream_.squares[i] + (stream_.intercept ? 1.0 : 0.0); }

    double norm() const {  // squared
        double sum = *b_ * *b_;
        for (const double v : all()) sum += v * v;
        return sum;
    }
    void scale(double a) {
        for (double& v : all()) v *= a;
        *b_ *= a;
    }
    void add(double a, const Weights& other) {
        const std::span<double> mine = all(), others = other.all();
        for (std::size_t f = 0; f < mine.size(); ++f) mine[f] += a * others[f];
        *b_ += a * *other.b_;
    }

  private:
    std::span<double> all() const {
        return {w_, static_cast<std::size_t>(stream_.items.dimension())};
    }

    const Stream& stream_;
    double *w_, *b_;
};

// What a row asks for: y times this much of it is added, before the weight of its class.
double step(Rule rule, double margin, double square, double C) {
    const double loss = 1.0 - margin;
    switch (rule) {
        case Rule::perceptron:
            return margin <= 0.0 ? 1.0 : 0.0;
        case Rule::passive_aggressive_1:  // a row of zeros moves nothing, whatever the step
            return loss <= 0.0 || square == 0.0 ? 0.0 : std::min(C, loss / square);
        case Rule::passive_aggressive_2: {
            const double curvature = square + 0.5 / C;
            return loss <= 0.0 || curvature == 0.0 ? 0.0 : loss / curvature;
        }
    }
    return 0.0;
}

}  // namespace

Tally perceptron_pass(const Stream& stream, Machine& machine, Rule rule, double C, double eta0) {
    Weights w(stream, machine.w, machine.b);
    Weights past(stream, machine.past_w, machine.past_b);
    const double wanted = rule == Rule::perceptron ? 0.0 : 1.0;
    Tally tally;
    for (const index i : stream.order) {
        const double y = machine.sign(stream, i), margin = y * w.score(i);
        tally.mistakes += margin <= 0.0 ? 1 : 0;
        tally.loss += stream.weight_of(i) * std::max(0.0, wanted - margin);
        const double a = y * eta0 * stream.weight_of(i) * step(rule, margin, w.square(i), C);
        if (a != 0.0) {
            w.add(i, a);
            if (machine.past_w != nullptr) past.add(i, machine.t * a);
        }
        machine.t += 1.0;
    }
    return tally;
}

// w = s v and, with P the sum of all s so far, the sum of the iterates = P v + q: shrinking changes
// s alone, and a row that is added to v is taken from q P times.
Tally pegasos_pass(const Stream& stream, Machine& machine, double lambda, index batch) {
    Weights v(stream, machine.w, machine.b);
    Weights q(stream, machine.past_w, machine.past_b);
    const double radius = std::sqrt(stream.largest_weight / lambda);
    double s = 1.0, P = 0.0, norm = v.norm();  // norm = |v|^2
    Tally tally;
    std::vector<std::pair<index, double>> violated;  // and y times the weight of their class
    const auto n = static_cast<index>(stream.order.size());
    for (index first = 0; first < n; first += batch) {
        const index size = std::min(batch, n - first);
        violated.clear();
        for (index r = first; r < first + size; ++r) {
            const index i = stream.order[static_cast<std::size_t>(r)];
            const double y = machine.sign(stream, i), margin = y * s * v.score(i);
            tally.mistakes += margin <= 0.0 ? 1 : 0;
            tally.loss += stream.weight_of(i) * std::max(0.0, 1.0 - margin);
            if (margin <= 1.0) violated.emplace_back(i, y * stream.weight_of(i));
        }
        machine.t += 1.0;
        if (machine.t > 1.0) s *= 1.0 - 1.0 / machine.t;  // the first step begins at w = 0
        for (const auto& [i, y] : violated) {
            const double a = y / (lambda * machine.t * static_cast<double>(size) * s);
            norm += a * (2.0 * v.score(i) + a * v.square(i));
            v.add(i, a);
            q.add(i, -P * a);
        }
        const double length = s * std::sqrt(std::max(norm, 0.0));
        if (length > radius) s *= radius / length;
        P += s;
        if (s < 1e-6) {  // s v would lose digits, and in the end v overflow
            q.add(P, v);
            P = 0.0;
            v.scale(s);
            s = 1.0;
            norm = v.norm();
        }
    }
    q.add(P, v);
    v.scale(s);
    return tally;
}

}  // namespace maxmargin
