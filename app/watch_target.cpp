#include "watch_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

std::string only_socket(const char* command) {
    const std::vector<std::string> there = web::sockets_there();
    if (there.size() == 1) return there.front();
    const std::string folder = std::filesystem::path(web::default_socket("x")).parent_path();
    if (there.empty())
        throw core::RunError(
            fmt::format("{}: no weir has a socket in {}; --socket or --url says where one is", command, folder));
    std::string names;
    for (const std::string& path : there)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", std::filesystem::path(path).stem().string());
    throw core::UsageError(fmt::format("{}: several have sockets in {}; --name is one of {}", command, folder, names));
}

/// "http://HOST:PORT", which may be written without its beginning, and with a slash at its end.
std::string base_url(std::string url) {
    if (url.find("://") == std::string::npos) url = "http://" + url;
    while (url.ends_with('/')) url.pop_back();
    return url;
}

}  // namespace

void add_target_options(po::options_description& description) {
    // clang-format off
    description.add_options()
        ("name", po::value<std::string>()->value_name("NAME"), "of the run's configuration; not needed where there is only one")
        ("socket", po::value<std::string>()->value_name("PATH"), "its UNIX socket, if that is not where it usually is")
        ("url", po::value<std::string>()->value_name("URL"), "over the network: http://HOST:PORT")
        ("token-file", po::value<std::string>()->value_name("FILE"), "what is in it is shown with changes; goes with --url");
    // clang-format on
}

web::Client target_of(const po::variables_map& given, const char* command) {
    const auto text = [&](const char* name) {
        return given.count(name) > 0 ? given[name].as<std::string>() : std::string();
    };
    if (given.count("name") + given.count("socket") + given.count("url") > 1)
        throw core::UsageError(fmt::format("{}: --name, --socket and --url say the same thing: give one", command));
    if (given.count("token-file") > 0 && given.count("url") == 0)
        throw core::UsageError(fmt::format("{}: --token-file goes with --url: a socket asks for no token", command));
    web::Client::Options options;
    if (given.count("url") > 0)
        options.url = base_url(text("url"));
    else if (given.count("name") > 0)
        options.socket = web::default_socket(text("name"));
    else
        options.socket = given.count("socket") > 0 ? text("socket") : only_socket(command);
    if (given.count("token-file") > 0) options.token = web::token_in(text("token-file"));
    return web::Client(std::move(options));
}

}  // namespace weir::app
