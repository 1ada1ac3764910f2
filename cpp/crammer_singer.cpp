#include "crammer_singer.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "dots.hpp"

namespace maxmargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr index kBetweenPolls = 1024;  // rows

}  // namespace

CrammerSinger::CrammerSinger(const Design& design, std::vector<index> y, std::vector<double> price,
                             index k, std::vector<double> start, bool shrinking, std::uint64_t seed,
                             const Run& run)
    : design_(design),
      y_(std::move(y)),
      price_(std::move(price)),
      n_(design.rows()),
      k_(k),
      width_((k_ + output_block - 1) / output_block * output_block),
      c_(std::move(start)),
      weights_(static_cast<std::size_t>(design.columns() * width_)),
      norms_(static_cast<std::size_t>(n_)),
      point_(static_cast<std::size_t>(k_)),
      sorted_(static_cast<std::size_t>(k_)),
      rows_(static_cast<std::size_t>(n_)),
      bound_(kInfinity),
      shrinking_(shrinking),
      random_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du),
      how_(run) {
    std::iota(rows_.begin(), rows_.end(), index{0});
    design.norms(norms_.data(), run);
    if (c_.empty()) {
        c_.resize(static_cast<std::size_t>(n_ * k_));
        return;
    }
    std::vector<double> w(static_cast<std::size_t>(design.columns() * k_));
    design.combine(c_.data(), k_, w.data(), run);
    for (index f = 0; f < design.columns(); ++f)
        std::copy_n(w.data() + f * k_, k_, weights_.data() + f * width_);
}

bool CrammerSinger::run(index visits, double tol) {
    for (index seen = 0; seen < visits;) {
        seen += std::max<index>(active(), 1);
        sweep();
        if (largest_ <= tol) return true;
    }
    return false;
}

void CrammerSinger::sweep() {
    largest_ = 0.0;
    for (std::size_t i = rows_.size(); i > 1; --i) {  // shuffle (Fisher and Yates)
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        std::swap(rows_[i - 1], rows_[random_ % i]);
    }
    std::vector<double> z(static_cast<std::size_t>(width_)), step(static_cast<std::size_t>(width_));
    index until_poll = kBetweenPolls;
    std::erase_if(rows_, [&](index i) {
        if (--until_poll == 0) {
            until_poll = kBetweenPolls;
            if (how_.poll != nullptr) (*how_.poll)();
        }
        design_.dots(i, weights_.data(), width_, z.data());
        const State now = state(i, z.data());
        if (now.violation <= 0.0) return shrinking_ && now.lead > bound_;
        largest_ = std::max(largest_, now.violation);
        if (visit(i, z.data(), step.data())) design_.axpys(step.data(), i, weights_.data(), width_);
        return false;
    });
    ++sweeps_;
    bound_ = largest_ > 0.0 ? largest_ : kInfinity;
}

// How far the largest G is above the smallest of a class that has a share of the price.
CrammerSinger::State CrammerSinger::state(index i, const double* z) const {
    const double* const c = c_.data() + i * k_;
    double highest = -kInfinity, second = -kInfinity, lowest = kInfinity;
    index shares = 0;
    for (index m = 0; m < k_; ++m) {
        const bool right = m == y_[i];
        const double g = z[m] + (right ? 0.0 : 1.0);
        if (g > highest) {
            second = std::exchange(highest, g);
        } else {
            second = std::max(second, g);
        }
        if (right ? c[m] < price_[i] : c[m] < 0.0) {
            ++shares;
            lowest = std::min(lowest, g);
        }
    }
    return {highest - lowest, shares == 1 && lowest == highest ? highest - second : -kInfinity};
}

// Moves the coefficients of row i, and says by how much and whether at all.
bool CrammerSinger::visit(index i, const double* z, double* step) {
    double* const c = c_.data() + i * k_;
    const double price = price_[i], curvature = std::max(norms_[i], 1e-12);
    for (index m = 0; m < k_; ++m) {
        const bool right = m == y_[i];
        const double q = (right ? price : 0.0) - c[m];
        point_[m] = q + (z[m] + (right ? 0.0 : 1.0)) / curvature;
    }
    // The nearest point of the simplex is what exceeds a level (Duchi et al. 2008, figure 1), which
    // is no lower than that of the highest number alone: few numbers need sorting.
    const double lowest = *std::max_element(point_.begin(), point_.end()) - price;
    sorted_.clear();
    std::copy_if(point_.begin(), point_.end(), std::back_inserter(sorted_),
                 [&](double p) { return p > lowest; });
    std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
    double sum = 0.0, level = lowest;
    for (std::size_t m = 0; m < sorted_.size(); ++m) {
        sum += sorted_[m];
        const double candidate = (sum - price) / static_cast<double>(m + 1);
        if (candidate >= sorted_[m]) break;
        level = candidate;
    }
    // The right class takes the rest, so that the coefficients sum to zero whatever the rounding.
    double others = 0.0;
    bool moved = false;
    for (index m = 0; m < k_; ++m) {
        if (m == y_[i]) continue;
        const double next = -std::clamp(point_[m] - level, 0.0, price);
        step[m] = next - c[m];
        moved |= step[m] != 0.0;
        c[m] = next;
        others -= next;
    }
    const double rest = std::min(others, price);
    step[y_[i]] = rest - c[y_[i]];
    moved |= step[y_[i]] != 0.0;
    c[y_[i]] = rest;
    return moved;
}

double CrammerSinger::look(const double* scores, double tol) {
    double worst = 0.0;
    rows_.clear();
    for (index i = 0; i < n_; ++i) {
        const State now = state(i, scores + i * k_);
        worst = std::max(worst, now.violation);
        if (!shrinking_ || now.violation > 0.0 || now.lead <= std::max(tol, std::min(bound_, 1.0)))
            rows_.push_back(i);
    }
    return worst;
}

void CrammerSinger::weights(double* out) const {
    for (index f = 0; f < design_.columns(); ++f)
        std::copy_n(weights_.data() + f * width_, k_, out + f * k_);
}

}  // namespace maxmargin
