// The text format of SVMlight in the module maxmargin._core; see maxmargin.io.
#include "bind.hpp"
#include "svmlight.hpp"

using namespace nb::literals;

namespace maxmargin {
namespace {

// The vector becomes the memory of an array.
template <class T>
nb::object as_array(std::vector<T>&& values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* const data = kept->data();
    const std::size_t size = kept->size();
    const nb::capsule owner(kept.get(), [](void* vector) noexcept {
        delete static_cast<std::vector<T>*>(vector);  // NOLINT(cppcoreguidelines-owning-memory)
    });
    static_cast<void>(kept.release());
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

std::string_view view(const nb::bytes& text) { return {text.c_str(), text.size()}; }

template <class T>
void bind_parser(nb::module_& m, const char* name) {
    using Parser = SvmlightParser<T>;
    nb::class_<Parser>(m, name, "Reads rows from text, piece by piece.")
        .def(nb::init<index, index, bool>(), "first"_a, "last"_a, "queries"_a)
        .def(
            "feed",
            [](Parser& self, const nb::bytes& text) {
                const nb::gil_scoped_release unlocked;
                self.feed(view(text));
            },
            "text"_a, "Parse the whole lines of all text so far.")
        .def(
            "finish",
            [](Parser& self) {
                const nb::gil_scoped_release unlocked;
                self.finish();
            },
            "Parse the last line, which may lack an end.")
        .def(
            "take",
            [](Parser& self) {
                TextRows<T> rows = self.take();
                return nb::make_tuple(
                    as_array(std::move(rows.values)), as_array(std::move(rows.indices)),
                    as_array(std::move(rows.starts)), as_array(std::move(rows.labels)),
                    as_array(std::move(rows.queries)));
            },
            "Values, indices, starts, labels and query ids of the rows since the last time.")
        .def_prop_ro("bytes", &Parser::bytes)
        .def_prop_ro("smallest", &Parser::smallest)
        .def_prop_ro("largest", &Parser::largest);
}

template <class T, class I>
nb::bytes text_of(const Borrowed<T, 1>& values, const Borrowed<I, 1>& indices,
                  const Borrowed<I, 1>& starts, const Borrowed<double, 1>& labels,
                  const Indices& queries, index first) {
    const auto n = static_cast<index>(labels.size());
    const auto nonzeros = static_cast<index>(values.size());
    const Csr<T, I> rows{values.data(), indices.data(), starts.data(), n, 0};
    if (static_cast<index>(starts.size()) != n + 1 || indices.size() != values.size() ||
        (queries.size() != 0 && queries.size() != labels.size()) || rows.starts[0] < 0 ||
        rows.starts[n] > nonzeros || !std::is_sorted(rows.starts, rows.starts + n + 1))
        throw std::invalid_argument("X, y, query_id: the arrays do not fit together");
    std::string text;
    {
        const nb::gil_scoped_release unlocked;
        text = svmlight_text(rows, {labels.data(), labels.size()}, {queries.data(), queries.size()},
                             first);
    }
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    bind_parser<float>(m, "SvmlightParser32");
    bind_parser<double>(m, "SvmlightParser64");
    const auto def_text = [&m](auto write) {
        m.def("svmlight_text", write, "values"_a.noconvert(), "indices"_a.noconvert(),
              "starts"_a.noconvert(), "labels"_a.noconvert(), "queries"_a.noconvert(), "first"_a);
    };
    def_text(&text_of<float, std::int32_t>);
    def_text(&text_of<float, std::int64_t>);
    def_text(&text_of<double, std::int32_t>);
    def_text(&text_of<double, std::int64_t>);
}

}  // namespace maxmargin
