#include "scores.hpp"

#include <algorithm>

namespace maxmargin {
namespace {

class KernelScores final : public Scores {
  public:
    KernelScores(Part& part, Rows& rows) : part_(part), rows_(rows) {}

    double at(index item, index channel) const override {
        return part_.scores[channel * part_.n + item];
    }

    void add(std::span<const Change> changes) override {
        // Rows first: fetching one may be interrupted, and then nothing must have changed. A move
        // has at most two items (several channels of one, or a pair), and the cache holds four, so
        // that no row is fetched after F has changed. A pair passes over F once.
        std::size_t k = 0;
        for (; k + 2 <= changes.size() && changes[k].channel == changes[k + 1].channel; k += 2) {
            const double* a = rows_.row(changes[k].item);
            const double* b = rows_.row(changes[k + 1].item);
            double* f = part_.scores.data() + changes[k].channel * part_.n;
            const double s = changes[k].delta, t = changes[k + 1].delta;
            for (index i = 0; i < part_.n; ++i) f[i] += s * a[i] + t * b[i];
        }
        for (; k < changes.size(); ++k) {
            const double* a = rows_.row(changes[k].item);
            double* f = part_.scores.data() + changes[k].channel * part_.n;
            const double s = changes[k].delta;
            for (index i = 0; i < part_.n; ++i) f[i] += s * a[i];
        }
    }

    void complete() override {}

  private:
    Part& part_;
    Rows& rows_;
};

class LinearScores final : public Scores {
  public:
    LinearScores(Part& part, const Items& items)
        : part_(part), items_(items), weights_(part.channels * items.dimension()) {
        for (index v = 0; v < part.size(); ++v) {
            if (part.c[v] == 0) continue;
            scatter(part.item[v], part.channel[v], part.c[v]);
            if (!part.minus.empty()) scatter(part.minus[v], part.channel[v], -part.c[v]);
        }
    }

    double at(index item, index channel) const override {
        return items_.project(item, weights_.data() + channel * items_.dimension());
    }

    void add(std::span<const Change> changes) override {
        for (const Change& change : changes) scatter(change.item, change.channel, change.delta);
    }

    void complete() override {
        for (index ch = 0; ch < part_.channels; ++ch)
            for (index i = 0; i < part_.n; ++i) part_.scores[ch * part_.n + i] = at(i, ch);
    }

  private:
    void scatter(index item, index channel, double delta) {
        items_.scatter(item, delta, weights_.data() + channel * items_.dimension());
    }

    Part& part_;
    const Items& items_;
    std::vector<double> weights_;
};

}  // namespace

std::unique_ptr<Scores> kernel_scores(Part& part, Rows& rows) {
    return std::make_unique<KernelScores>(part, rows);
}

std::unique_ptr<Scores> linear_scores(Part& part, const Items& items) {
    return std::make_unique<LinearScores>(part, items);
}

}  // namespace maxmargin
