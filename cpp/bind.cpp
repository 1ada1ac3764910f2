// The module maxmargin._core: items, and what can be done with them. Checks what comes in, borrows
// arrays, and lets go of the interpreter's lock while the core computes.
#include "bind.hpp"

#include <cmath>
#include <functional>

#include "items.hpp"
#include "pool.hpp"
#include "tile.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

// ---- Items written in Python -----------------------------------------------------------------

// Forwards to a Python object with the methods of maxmargin.kernels.Items. Never concurrent.
class PythonItems final : public Items {
  public:
    explicit PythonItems(nb::object items)
        : size_(static_cast<index>(nb::len(items))),
          single_(nb::cast<bool>(items.attr("dtype").attr("__eq__")("float32"))),
          items_(keep(std::move(items))) {}

    index size() const override { return size_; }
    bool single_precision() const override { return single_; }
    bool concurrent() const override { return false; }

    void tile(std::span<const index> rows, const Items& other, index begin, index end, float* out,
              index stride) const override {
        call(rows, other, begin, end, out, stride);
    }
    void tile(std::span<const index> rows, const Items& other, index begin, index end, double* out,
              index stride) const override {
        call(rows, other, begin, end, out, stride);
    }

    void diagonal(double* out) const override {
        const nb::gil_scoped_acquire lock;
        copy<double>(items_->attr("diagonal")(), {size_}, out, size_);
    }

    std::unique_ptr<Items> subset(std::span<const index> rows) const override {
        const nb::gil_scoped_acquire lock;
        return std::make_unique<PythonItems>(items_->attr("subset")(index_array(rows)));
    }

  private:
    template <class T>
    void call(std::span<const index> rows, const Items& other, index begin, index end, T* out,
              index stride) const {
        const auto* right = dynamic_cast<const PythonItems*>(&other);
        if (right == nullptr)
            throw std::invalid_argument("other: these items were made by another kernel");
        const nb::gil_scoped_acquire lock;
        std::vector<index> columns(static_cast<std::size_t>(end - begin));
        std::iota(columns.begin(), columns.end(), begin);
        copy<T>(items_->attr("tile")(index_array(rows), *right->items_, index_array(columns)),
                {static_cast<index>(rows.size()), end - begin}, out, stride);
    }

    // Copies what Python returned, row by row, if it is what was asked for.
    template <class T>
    static void copy(const nb::object& result, std::initializer_list<index> shape, T* out,
                     index stride) {
        const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(
            result, sizeof(T) == sizeof(float) ? "float32" : "float64");
        const auto values = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(array);
        bool fits = values.ndim() == shape.size();
        for (std::size_t i = 0; fits && i < shape.size(); ++i)
            fits = static_cast<index>(values.shape(i)) == shape.begin()[i];
        if (!fits)
            throw std::invalid_argument(
                "kernel: expected one value for each pair of items (or each item), got an array of "
                "shape " +
                std::string(nb::str(array.attr("shape")).c_str()));
        if (!std::all_of(values.data(), values.data() + values.size(),
                         [](T v) { return std::isfinite(v); }))
            throw std::invalid_argument("kernel: it returned NaN or infinity");
        const index columns = shape.begin()[shape.size() - 1];
        const index rows = shape.size() == 1 ? 1 : shape.begin()[0];
        for (index r = 0; r < rows; ++r)
            std::copy_n(values.data() + r * columns, columns, out + r * stride);
    }

    index size_;
    bool single_;
    std::shared_ptr<nb::object> items_;
};

// ---- Making items ----------------------------------------------------------------------------

Kernel make_kernel(const std::string& name, double gamma, double coef0, int degree) {
    using Kind = Kernel::Kind;
    constexpr std::pair<const char*, Kind> names[] = {{"linear", Kind::linear},
                                                      {"polynomial", Kind::polynomial},
                                                      {"rbf", Kind::rbf},
                                                      {"sigmoid", Kind::sigmoid},
                                                      {"laplacian", Kind::laplacian}};
    for (const auto& [known, kind] : names)
        if (name == known) {
            // The exponentials are for negative arguments only.
            const bool exponential = kind == Kind::rbf || kind == Kind::laplacian;
            if (exponential && !(gamma >= 0.0))
                throw std::invalid_argument("gamma: it must not be negative");
            if (degree < 0) throw std::invalid_argument("degree: it must not be negative");
            return {kind, gamma, coef0, degree};
        }
    throw std::invalid_argument("kernel: there is none called '" + name + "'");
}

template <class T>
Dense<T> view(const Borrowed<T, 2>& x) {
    const auto rows = static_cast<index>(x.shape(0)), columns = static_cast<index>(x.shape(1));
    return {x.data(), rows, columns, columns};
}

template <class T>
std::shared_ptr<Items> make_dense(const Kernel& kernel, const Borrowed<T, 2>& x) {
    const std::shared_ptr<const void> owner = keep(Borrowed<T, 2>(x));
    const nb::gil_scoped_release unlocked;
    return dense_items(kernel, view(x), owner);
}

template <class T, class I>
std::shared_ptr<Items> make_csr(const Kernel& kernel, const Borrowed<T, 1>& values,
                                const Borrowed<I, 1>& indices, const Borrowed<I, 1>& starts,
                                index n_features) {
    const Csr<T, I> x = checked_csr<T, I>(values, indices, starts, n_features);
    struct Arrays {
        Borrowed<T, 1> values;
        Borrowed<I, 1> indices, starts;
    };
    const std::shared_ptr<const void> owner = keep(Arrays{values, indices, starts});
    const nb::gil_scoped_release unlocked;
    return csr_items(kernel, x, owner);
}

template <class T>
std::shared_ptr<Items> make_gram(const Borrowed<T, 2>& matrix, const std::optional<Indices>& ids,
                                 bool positive) {
    const std::shared_ptr<const void> owner = keep(Borrowed<T, 2>(matrix));
    if (!ids) return gram_items(view(matrix), {}, owner, positive);
    return gram_items(view(matrix), {ids->data(), ids->size()}, owner, positive);
}

// ---- Using them ------------------------------------------------------------------------------
// The lock is let go of in a block of its own: `return array` copies a reference and needs it.

template <class T>
nb::object tile_as(const Items& items, const std::vector<index>& rows, const Items& right,
                   index begin, index end, int n_threads) {
    constexpr index rows_per_chunk = 32;
    const auto n = static_cast<index>(rows.size()), width = end - begin;
    const auto [array, data] = new_array<T>({n, width});
    const index per_chunk = items.concurrent() ? rows_per_chunk : std::max<index>(n, 1);
    {
        const nb::gil_scoped_release unlocked;
        auto poll = interruptible();
        pool().run((n + per_chunk - 1) / per_chunk, n_threads,
                   [&, out = data](index chunk) {
                       const index first = chunk * per_chunk;
                       const std::span some(rows.data() + first, std::min(per_chunk, n - first));
                       items.tile(some, right, begin, end, out + first * width, width);
                   },
                   &poll);
    }
    return array;
}

nb::object tile(const Items& items, const std::optional<Indices>& rows, const Items& other,
                const std::optional<Indices>& cols, const nb::object& n_jobs, bool in_float64) {
    const std::vector<index> left = checked(rows, items.size(), "rows");
    std::unique_ptr<Items> packed;
    if (cols) packed = other.subset(checked(cols, other.size(), "cols"));
    const Items& right = packed ? *packed : other;
    const int n_threads = threads(n_jobs);
    if (items.single_precision() && !in_float64)
        return tile_as<float>(items, left, right, 0, right.size(), n_threads);
    return tile_as<double>(items, left, right, 0, right.size(), n_threads);
}

nb::object diagonal(const Items& items) {
    const auto [array, data] = new_array<double>({items.size()});
    {
        const nb::gil_scoped_release unlocked;
        items.diagonal(data);
    }
    return array;
}

nb::object multiply_items(const Items& items, const Items& other, const Borrowed<double, 2>& v,
                          const nb::object& n_jobs) {
    if (static_cast<index>(v.shape(0)) != other.size())
        throw std::invalid_argument("V: it has " + std::to_string(v.shape(0)) +
                                    " rows, and other has " + std::to_string(other.size()) +
                                    " items");
    const auto k = static_cast<index>(v.shape(1));
    const auto [array, data] = new_array<double>({items.size(), k});
    const int n_threads = threads(n_jobs);
    {
        const nb::gil_scoped_release unlocked;
        const auto poll = interruptible();
        multiply(items, other, v.data(), k, data, n_threads, &poll);
    }
    return array;
}

nb::object dtype(const Items& items) {
    return nb::module_::import_("numpy").attr("dtype")(items.single_precision() ? "float32"
                                                                                : "float64");
}

void bind_items(nb::module_& m) {
    nb::class_<Kernel>(m, "Kernel", "A vector kernel, as native code sees it.")
        .def(nb::new_(&make_kernel), "name"_a, "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 3);

    nb::class_<Items>(m, "Items",
                      "A data set made ready for a kernel; see maxmargin.kernels.Items.")
        .def("__len__", &Items::size)
        .def_prop_ro("positive", &Items::positive,
                     "Whether the kernel is positive semi-definite by construction.")
        .def_prop_ro("dtype", &dtype, nb::sig("def dtype(self) -> numpy.dtype"),
                     "The type of the data, and of tiles.")
        .def_prop_ro("product_cost", &Items::product_cost,
                     "For the linear kernel: the numbers that the product of a row and w reads, "
                     "one after the other; 0 for others.")
        .def("tile", &tile, "rows"_a.none(), "other"_a, "cols"_a.none() = nb::none(),
             "n_jobs"_a.none() = nb::none(), "in_float64"_a = false,
             nb::sig("def tile(self, rows: numpy.ndarray | None, other: Items, "
                     "cols: numpy.ndarray | None = None, n_jobs: int | None = None, "
                     "in_float64: bool = False) -> numpy.ndarray"),
             "The kernel between these rows and those columns of `other`.")
        .def("diagonal", &diagonal, nb::sig("def diagonal(self) -> numpy.ndarray"),
             "The kernel between each item and itself.")
        .def("multiply", &multiply_items, "other"_a, "V"_a, "n_jobs"_a.none() = nb::none(),
             nb::sig("def multiply(self, other: Items, V: numpy.ndarray, "
                     "n_jobs: int | None = None) -> numpy.ndarray"),
             "K(self, other) @ V, without holding K.")
        .def(
            "subset",
            [](const Items& items, const Indices& rows) {
                return std::shared_ptr<Items>(items.subset(checked(rows, items.size(), "rows")));
            },
            "rows"_a, nb::sig("def subset(self, rows: numpy.ndarray) -> Items"),
            "A packed copy of these rows.");

    m.def("dense_items", &make_dense<float>, "kernel"_a, "X"_a.noconvert());
    m.def("dense_items", &make_dense<double>, "kernel"_a, "X"_a.noconvert());
    const auto def_csr = [&m](auto make) {
        m.def("csr_items", make, "kernel"_a, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "n_features"_a);
    };
    def_csr(&make_csr<float, std::int32_t>);
    def_csr(&make_csr<float, std::int64_t>);
    def_csr(&make_csr<double, std::int32_t>);
    def_csr(&make_csr<double, std::int64_t>);
    m.def("gram_items", &make_gram<float>, "matrix"_a.noconvert(), "ids"_a.none() = nb::none(),
          "positive"_a = false);
    m.def("gram_items", &make_gram<double>, "matrix"_a.noconvert(), "ids"_a.none() = nb::none(),
          "positive"_a = false);
    m.def(
        "python_items",
        [](nb::object items) -> std::shared_ptr<Items> {
            return std::make_shared<PythonItems>(std::move(items));
        },
        "items"_a, "Items that forward to a Python object with the same methods.");
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(_core, m) {
    m.doc() = "The compiled core of maxmargin.";
    maxmargin::tiles();  // an instruction set that is not to be had fails the import, not a fit
    m.def("instruction_set", &maxmargin::instruction_set,
          "The instruction set that computes the kernels: generic, avx2 or avx512.");
    m.def(
        "thread_limit", [] { return maxmargin::pool().limit(); },
        "The most threads that any computation may use (set through threadpoolctl).");
    maxmargin::bind_items(m);
    maxmargin::bind_solver(m);
    maxmargin::bind_linear(m);
    maxmargin::bind_svmlight(m);
    maxmargin::bind_perceptron(m);
    maxmargin::bind_stochastic(m);
    maxmargin::bind_descents(m);
    maxmargin::bind_coordinate_newton(m);
}
