// What an option does, as a callable of any type.
#pragma once

#include <memory>
#include <utility>

namespace weir::options {

template <class>
class Callback;

/// As std::function for what is described once and called seldom: copies share the callable. There are hundreds of
/// them, and std::function takes a compiler more than twice as long for each.
template <class R, class... A>
class Callback<R(A...)> {
public:
    Callback() = default;
    template <class F>
    Callback(F call) : callable_(static_cast<const Any*>(new Of<F>{{&Of<F>::call}, std::move(call)}), &Of<F>::drop) {}

    explicit operator bool() const { return callable_ != nullptr; }
    R operator()(A... with) const { return callable_->call(*callable_, std::forward<A>(with)...); }

private:
    // Pointers to functions: virtual ones would bring a table and the long name of its type for each callable.
    struct Any {
        R (*call)(const Any&, A...);
    };
    template <class F>
    struct Of : Any {
        static R call(const Any& any, A... with) { return static_cast<const Of&>(any).held(std::forward<A>(with)...); }
        static void drop(const Any* any) { delete static_cast<const Of*>(any); }
        F held;
    };

    std::shared_ptr<const Any> callable_;
};

}  // namespace weir::options
