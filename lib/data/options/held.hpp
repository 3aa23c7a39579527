// A value whose type only its owner knows: the options of a kind, in a list of things of several kinds.
#pragma once

#include <any>
#include <concepts>
#include <type_traits>
#include <utility>

namespace weir::options {

/// Copied and compared as the value in it.
class Held {
public:
    Held() = default;
    template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Held>) Held(T value)
        : value_(std::move(value)),
          equal_([](const Held& a, const Held& b) { return *a.get_if<T>() == *b.get_if<T>(); }) {}

    /// The value if it is a T.
    template <class T>
    [[nodiscard]] const T* get_if() const noexcept {
        return std::any_cast<T>(&value_);
    }
    template <class T>
    [[nodiscard]] T* get_if() noexcept {
        return std::any_cast<T>(&value_);
    }
    bool operator==(const Held& other) const {
        if (value_.type() != other.value_.type()) return false;
        return equal_ == nullptr || equal_(*this, other);
    }

private:
    std::any value_;
    bool (*equal_)(const Held&, const Held&) = nullptr;
};

}  // namespace weir::options
