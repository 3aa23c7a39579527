#include "options/any_option.hpp"

#include "options/reader.hpp"
#include "options/text.hpp"

namespace weir::options {

using nlohmann::json;

namespace {

using Part = Callback<const void*(const void*)>;

/// What is done to the part, done to the whole.
template <class R>
Callback<R(const void*)> asks(const Callback<R(const void*)>& of_part, const Part& part) {
    return [of_part, part](const void* from) { return of_part(part(from)); };
}
Callback<void(void*)> fills(const Callback<void(void*)>& of_part, const Part& part) {
    return [of_part, part](void* into) { of_part(const_cast<void*>(part(into))); };
}
Callback<void(TableReader&, void*)> looks(const Callback<void(TableReader&, void*)>& of_part, const Part& part) {
    return [of_part, part](TableReader& table, void* into) { of_part(table, const_cast<void*>(part(into))); };
}

}  // namespace

AnyOption::AnyOption(const ValuesType& values, std::string_view key, std::string kind, std::string_view meaning)
    : values_(&values), key_(key), kind_(std::move(kind)), meaning_(meaning) {}

AnyOption AnyOption::within(const ValuesType& whole, const Part& part) const {
    AnyOption out = *this;
    out.values_ = &whole;
    if (refused_) out.refused_ = asks(refused_, part);
    if (fill_) out.fill_ = fills(fill_, part);
    if (read_) out.read_ = looks(read_, part);
    if (check_) out.check_ = looks(check_, part);
    if (check_unset_) out.check_unset_ = looks(check_unset_, part);
    if (value_) out.value_ = asks(value_, part);
    if (reported_) out.reported_ = asks(reported_, part);
    return out;
}

void AnyOption::require(std::string accepted) {
    required_ = std::move(accepted);
}
void AnyOption::set_refused(Callback<std::string(const void*)> why) {
    refused_ = std::move(why);
}
void AnyOption::set_fill(Callback<void(void*)> fill) {
    fill_ = std::move(fill);
}
void AnyOption::set_unset(std::string words) {
    unset_ = std::move(words);
}
void AnyOption::set_none(json value, std::string words) {
    none_ = std::move(value);
    set_unset(std::move(words));
}
void AnyOption::set_kind(std::string words) {
    kind_ = std::move(words);
}
void AnyOption::set_usual(std::string words) {
    usually_ = std::move(words);
}
void AnyOption::set_check(Callback<void(TableReader&, void*)> look) {
    check_ = std::move(look);
}
void AnyOption::set_check_unset(Callback<void(TableReader&, void*)> look) {
    check_unset_ = std::move(look);
}
void AnyOption::also_check(Callback<void(TableReader&, void*)> look) {
    check_ = [first = std::move(check_), then = std::move(look)](TableReader& table, void* into) {
        if (first) first(table, into);
        then(table, into);
    };
}
void AnyOption::set_text(Callback<std::string(const json&)> text) {
    text_ = std::move(text);
}
void AnyOption::set_reported(Callback<json(const void*)> value) {
    reported_ = std::move(value);
}
void AnyOption::set_unprinted() {
    printed_ = false;
}
void AnyOption::set_read(Callback<void(TableReader&, void*)> read) {
    read_ = std::move(read);
    schema_ = json::object();  // the one before was of what was read before
}
void AnyOption::set_schema(json schema) {
    schema_ = std::move(schema);
}
void AnyOption::set_value(Callback<json(const void*)> value) {
    value_ = std::move(value);
}

void AnyOption::read(TableReader& table, void* into) const {
    if (refused_)
        if (const std::string why = refused_(into); !why.empty()) return table.refuse(key_, why);
    if (table.get(key_) == nullptr) {
        if (is_required()) table.missing(key_, required_);
        if (fill_) fill_(into);
        if (check_unset_) check_unset_(table, into);
        return;
    }
    read_(table, into);
    if (check_) check_(table, into);
}

json AnyOption::value(const void* from) const {
    json value = value_(from);
    return none_ && value == *none_ ? json() : value;
}

json AnyOption::report(const void* from) const {
    return reported_ ? reported_(from) : value(from);
}

bool AnyOption::is_default(const void* from) const {
    if (is_required()) return false;
    const auto usual = fill_ ? values_->copy(from) : values_->as_left_out();
    if (fill_) fill_(usual.get());
    return value(from) == value(usual.get());
}

std::string AnyOption::text(const json& value) const {
    return text_ ? text_(value) : toml_text(value);
}

std::string AnyOption::line(const void* from) const {
    if (!printed_ || !belongs(from)) return {};
    const json shown = value(from);
    if (!shown.is_null()) return std::string(key_) + " = " + text(shown) + (is_default(from) ? "  # default\n" : "\n");
    return unset_.empty() ? std::string() : "# " + std::string(key_) + ": " + unset_ + " (default)\n";
}

Explained AnyOption::explained() const {
    Explained out{std::string(key_), kind_, usually_, meaning_, schema_, false};
    out.always = is_required() && !refused_ && usually_.empty();
    if (!out.fallback.empty()) return out;
    if (is_required()) {
        out.fallback = "required";
    } else if (const json fallback = value(values_->as_left_out().get()); !fallback.is_null() && !fill_) {
        out.fallback = text(fallback);
        if (fallback.is_string()) out.fallback = "`" + out.fallback + "`";
        if (fallback.is_number()) std::erase(out.fallback, '"');  // of a size
    } else {
        out.fallback = unset_.empty() ? "none" : unset_;
    }
    return out;
}

std::vector<std::string_view> AnyTable::keys() const {
    std::vector<std::string_view> keys;
    for (const AnyOption& option : options_) keys.push_back(option.key());
    return keys;
}

std::vector<Explained> AnyTable::explained() const {
    std::vector<Explained> out;
    for (const AnyOption& option : options_) out.push_back(option.explained());
    return out;
}

void AnyTable::read(TableReader& table, void* into) const {
    table.allow(keys());
    read_values(table, into);
}

void AnyTable::read_values(TableReader& table, void* into) const {
    for (const AnyOption& option : options_) option.read(table, into);
}

std::string AnyTable::print(const void* from) const {
    std::string out;
    for (const AnyOption& option : options_) out += option.line(from);
    return out;
}

json AnyTable::report(const void* from) const {
    json out = json::object();
    for (const AnyOption& option : options_)
        if (json value = option.belongs(from) ? option.report(from) : json(); !value.is_null())
            out[std::string(option.key())] = std::move(value);
    return out;
}

json AnyTable::brief(const void* from) const {
    if (from == nullptr) return nullptr;
    json out = json::object();
    for (const AnyOption& option : options_)
        if (json value = option.value(from); !value.is_null() && option.belongs(from) && !option.is_default(from))
            out[std::string(option.key())] = std::move(value);
    return out;
}

std::string AnyTable::inline_text(const json& value) const {
    std::string out;
    for (const AnyOption& option : options_)
        if (const auto at = value.find(option.key()); at != value.end())
            out.append(out.empty() ? "{ " : ", ").append(option.key()).append(" = ").append(option.text(*at));
    return out + " }";
}

std::string AnyTable::inline_list(const json& values) const {
    std::string out;
    for (const json& entry : values) out += (out.empty() ? "[" : ", ") + inline_text(entry);
    return out + "]";
}

AnyOption& AnyTable::add(AnyOption option) {
    return options_.emplace_back(std::move(option));
}

AnyOption& AnyTable::add(const ValuesType& values, std::string_view key, std::string kind, std::string_view meaning) {
    return options_.emplace_back(values, key, std::move(kind), meaning);
}

void AnyTable::include(const AnyTable& other) {
    options_.insert(options_.end(), other.options_.begin(), other.options_.end());
}

}  // namespace weir::options
